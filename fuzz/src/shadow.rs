//! The page store `shadow`: histories with damage, and hostile bytes under right checksums.

use crate::dictionary::{install, page_of_text};
use crate::store::{COMPRESSIONS, TABLE, meta, page, refuses};
use duramen::base::{PageId, bytes};
use duramen::io::{Disk, MemoryDisk};
use duramen::store::{
    self, Base, ChangedParts, DeltaBlocks, Meta, PagePolicy, PageSource, PageStore, StoreKind, StoreOptions, Target,
    fuzzing,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Pages of the files made here.
const PAGES: u32 = 8;

/// Pages of a history with a dictionary, at most.
const MAX_PAGES: u32 = 4 * PAGES;

/// How they write changes.
const DELTAS: [DeltaBlocks; 3] = [
    DeltaBlocks::OFF,
    DeltaBlocks { threshold: 700, segment: 32, blocks: 1 },
    DeltaBlocks { threshold: 2000, segment: 64, blocks: 4 },
];

/// The places of compressed pages. The last target is rounded up to a block.
const TARGETS: [Target; 3] = [Target::Fit, Target::Bytes(4096), Target::Bytes(2048)];

/// The end of a history.
const END: u8 = 255;

/// A file and the pages that were ever written to it.
struct History {
    disk: Arc<dyn Disk>,
    written: BTreeMap<u32, Vec<Vec<u8>>>,
    closed: bool,
}

fn meta_of_file() -> Meta {
    Meta { page_size: 2 * crate::store::PAGE_SIZE - StoreKind::Shadow.trailer(), high_water: MAX_PAGES, ..meta() }
}

/// Plays a history: how changes are written and whether there is a dictionary, then a byte a step, and after the end
/// whether the database is closed.
fn play(input: &mut impl Iterator<Item = u8>) -> History {
    let first = usize::from(input.next().unwrap_or(0));
    let (delta, dictionary) = (DELTAS[first % DELTAS.len()], first / DELTAS.len() % 2 == 1);
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    let (options, meta) = (StoreOptions { kind: StoreKind::Shadow, delta }, meta_of_file());
    let store = store::create(options, disk.clone(), Path::new("fuzz"), meta).expect("memory does not fail");
    let mut written: BTreeMap<u32, Vec<Vec<u8>>> = BTreeMap::new();
    let mut changed: BTreeMap<u32, ChangedParts> = BTreeMap::new();
    if dictionary {
        install(&*store, meta, PAGES, |id, page| written.entry(id).or_default().push(page));
    }
    for (version, step) in (11u64..).zip(input.by_ref().take_while(|step| *step != END)) {
        if step >= 220 {
            store.finish(store.begin_checkpoint(), meta).expect("memory does not fail");
            continue;
        }
        let id = u32::from(step) % PAGES;
        let kind = usize::from(step) / 8;
        let compression = COMPRESSIONS[kind % COMPRESSIONS.len()];
        let target = TARGETS[kind / COMPRESSIONS.len() % TARGETS.len()];
        let policy = PagePolicy { compression, target, dictionary, ..PagePolicy::default() };
        store.compression().expect("it compresses").set_policy(TABLE, policy);
        let last = written.get(&id).and_then(|versions| versions.last()).filter(|_| step < 150);
        let parts = changed.entry(id).or_insert(ChangedParts::ALL);
        let page = match last {
            Some(last) => {
                let (mut page, at) = (last.clone(), 100 + usize::from(step) * 17);
                bytes::put_u64(&mut page, 0, version);
                page[at] ^= 1;
                parts.add(at..at + 1, page.len());
                page
            }
            None => {
                *parts = ChangedParts::ALL;
                if dictionary {
                    page_of_text(id, version, 6000, meta.page_size)
                } else {
                    page(id, version, 6000, meta.page_size)
                }
            }
        };
        let mut writer = store.writer();
        if writer.push(PageId(id), &page, *parts) == Base::Moves {
            *parts = ChangedParts::NONE;
        }
        writer.write().expect("memory does not fail");
        written.entry(id).or_default().push(page);
    }
    let closed = input.next().is_some_and(|wish| wish % 2 == 1);
    if closed {
        store.finish(store.begin_checkpoint(), meta).expect("memory does not fail");
        store.close(meta).expect("memory does not fail");
    }
    History { disk, written, closed }
}

/// Changes the file: three bytes say where, the fourth one which bits.
fn damage(disk: &dyn Disk, input: &mut impl Iterator<Item = u8>) {
    while let (Some(high), Some(middle), Some(low), Some(mask)) =
        (input.next(), input.next(), input.next(), input.next())
    {
        let at = u64::from(u32::from_be_bytes([0, high, middle, low])) % disk.size().expect("memory does not fail");
        let mut byte = [0];
        disk.read_at(at, &mut byte).expect("inside");
        disk.write_at(at, &[byte[0] ^ mask]).expect("inside");
    }
}

/// Opens the file in each way, calls `visit` for each page that is read, and returns how many the first way reads. The
/// last way writes each page that can be read.
fn read_all(history: &History, mut visit: impl FnMut(u32, &[u8])) -> usize {
    let mut page = vec![0; meta_of_file().page_size];
    let mut count = |store: &dyn PageStore, visit: &mut dyn FnMut(u32, &[u8])| {
        let mut read = 0;
        for id in 0..store.ids_end().min(MAX_PAGES) {
            match store.read(PageId(id), &mut page) {
                Ok(Some(_)) => {
                    visit(id, &page);
                    read += 1;
                }
                Ok(None) => {}
                Err(error) => refuses(id, &error),
            }
        }
        read
    };
    let path = Path::new("fuzz");
    for source in [PageSource::Structures, PageSource::Images] {
        if let Ok(rescued) = store::open_damaged(history.disk.clone(), path, meta_of_file().page_size, source) {
            rescued.store.survey(&mut |image| visit(image.page.0, &[])).expect("memory does not fail");
            count(&*rescued.store, &mut visit);
        }
    }
    let mut first = None;
    for unclean in [false, true] {
        let Ok((store, meta)) = store::open(history.disk.clone(), path) else { return 0 };
        if history.closed && !unclean {
            store.use_closed_state();
        }
        if unclean {
            (0..MAX_PAGES).for_each(|id| store.note_in_log(PageId(id)));
        }
        let read = count(&*store, &mut visit);
        first.get_or_insert(read);
        if unclean {
            write_all(&*store, meta);
        }
    }
    first.unwrap_or(0)
}

/// Writes each page that can be read, and makes a checkpoint.
fn write_all(store: &dyn PageStore, meta: Meta) {
    let mut page = vec![0; meta.page_size];
    for id in (0..store.ids_end().min(MAX_PAGES)).map(PageId) {
        if let Ok(Some(changed)) = store.read(id, &mut page) {
            let lsn = bytes::get_u64(&page, 0);
            bytes::put_u64(&mut page, 0, lsn.saturating_add(1));
            let mut writer = store.writer();
            writer.push(id, &page, changed);
            writer.write().expect("memory does not fail");
        }
    }
    store.finish(store.begin_checkpoint(), meta).expect("memory does not fail");
}

/// Takes `data` as a history and the damage done to the file afterwards. Whatever page is read must be one that was
/// written under that id. Returns how many were read.
pub fn damage_shadow(data: &[u8]) -> usize {
    let mut input = data.iter().copied();
    let history = play(&mut input);
    damage(&*history.disk, &mut input);
    read_all(&history, |id, page| {
        let known = history.written.get(&id);
        let is_right = known.is_some_and(|versions| page.is_empty() || versions.iter().any(|version| version == page));
        assert!(is_right, "page {id} was never written");
    })
}

/// The same, but then all checksums are made right. Whatever the slots, the delta blocks and the map say, reading and
/// writing must end without a panic. Returns how many pages were read.
pub fn hostile_shadow(data: &[u8]) -> usize {
    let mut input = data.iter().copied();
    let history = play(&mut input);
    damage(&*history.disk, &mut input);
    if fuzzing::reseal(&history.disk).is_err() {
        return 0;
    }
    read_all(&history, |_, _| ())
}

//! The page store's decoders: superblocks, the directory and chunks of the page table, images, and whole files.

use crate::dictionary;
use duramen::Error;
use duramen::base::{Lsn, PageId, TableId, bytes};
use duramen::io::{Disk, MemoryDisk};
use duramen::page::{run_page, unpack};
use duramen::store::fuzzing;
use duramen::store::superblock::choose;
use duramen::store::{self, Compression, Meta, PagePolicy, PageSource, PageStore, StoreKind, Target, WriteTotals};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// The table of the pages made here.
pub const TABLE: TableId = TableId(1);

/// How they are compressed.
pub const COMPRESSIONS: [Compression; 4] =
    [Compression::None, Compression::Lz4, Compression::Zstd(3), Compression::Zlib(6)];
const TARGETS: [Target; 3] = [Target::Fit, Target::Bytes(2048), Target::Bytes(1024)];

/// The page size of the files made here.
pub const PAGE_SIZE: usize = 4096;

/// Reads `data` as the front of a file. A superblock that is accepted encodes to one that says the same. True if there
/// was one.
pub fn superblock(data: &[u8]) -> bool {
    let Ok(found) = choose(data, Path::new("fuzz")) else { return false };
    let again = choose(&found.superblock.encode(), Path::new("fuzz")).expect("what was read can be written");
    assert_eq!(again.superblock, found.superblock);
    true
}

/// Reads `data` as a directory, as a group and as a chunk of a page table, and as a free map, which must encode to the
/// same bytes. True if it is one of them.
pub fn page_table(data: &[u8]) -> bool {
    let decoded = fuzzing::page_table(data);
    decoded.iter().for_each(|again| assert_eq!(again, data));
    !decoded.is_empty()
}

/// Reads `data` as page id, checksum and an image that should have them. True if the image holds a page.
pub fn image(data: &[u8]) -> bool {
    let id = PageId(bytes::get_u32(data, 0));
    let image = data.get(8..).unwrap_or_default();
    let Ok(packed) = fuzzing::open_image(image, id, bytes::get_u32(data, 4), PAGE_SIZE) else { return false };
    let mut page = vec![0; PAGE_SIZE];
    unpack(&packed, &mut page).is_ok()
}

/// Opens `data` as a file, reads every page, and if it opened, writes and makes a checkpoint in it. Returns how many
/// pages were read.
pub fn read_store(data: &[u8]) -> usize {
    let disk = Arc::new(MemoryDisk::new());
    disk.write_at(0, data).expect("memory does not fail");
    if let Ok(rescued) = store::open_damaged(disk.clone(), Path::new("fuzz"), PAGE_SIZE, PageSource::Structures) {
        let (store, mut page) = (rescued.store, vec![0; rescued.meta.page_size]);
        let pages = store.pages().expect("all that can be read was read");
        pages.into_iter().for_each(|id| drop(store.read(id, &mut page)));
    }
    let Ok((store, meta)) = store::open(disk.clone(), Path::new("fuzz")) else { return 0 };
    let mut page = vec![0; meta.page_size];
    let read = (0..2048).filter(|&id| matches!(store.read(PageId(id), &mut page), Ok(Some(_)))).count();
    let mut new = vec![0; meta.page_size];
    unpack(&run_page(PageId(3), TableId(1), PageId::NONE, b"new"), &mut new).expect("it fits");
    match store.write(PageId(3), &new) {
        // The chunk of the page table has the right checksum and cannot be true: only a file made for it has that.
        Err(Error::CorruptMeta { .. }) => return read,
        written => written.expect("memory does not fail"),
    }
    store.finish(store.begin_checkpoint(), meta).expect("memory does not fail");
    let (again, _) = store::open(disk, Path::new("fuzz")).expect("it was just written");
    assert!(again.read(PageId(3), &mut page).expect("it was just written").is_some());
    assert_eq!(page, new);
    read
}

/// Checks the error of reading a page.
pub(crate) fn refuses(id: u32, error: &Error) {
    assert!(matches!(error, Error::Corrupt { page, .. } if page.0 == id), "page {id}: {error}");
}

/// Takes `data` as a history (write, drop, checkpoint, add a dictionary) and the damage done to the file afterwards.
/// Every page that is read must have been written under that id. Returns how many were read.
pub fn damage_store(data: &[u8]) -> usize {
    let disk = Arc::new(MemoryDisk::new());
    let meta = meta();
    let store = store::create(StoreKind::Table, disk.clone(), Path::new("fuzz"), meta).expect("memory does not fail");
    let mut written: BTreeMap<u32, Vec<Vec<u8>>> = BTreeMap::new();
    let (mut input, mut has_dictionary) = (data.iter().copied(), false);
    for (version, step) in (1u64..).zip(input.by_ref().take_while(|&step| step != 255)) {
        let id = u32::from(step % 16) * 40;
        let [compression, target] = [usize::from(step), usize::from(step) / COMPRESSIONS.len()];
        let compression = COMPRESSIONS[compression % COMPRESSIONS.len()];
        let target = TARGETS[target % TARGETS.len()];
        let policy = PagePolicy { compression, target, dictionary: has_dictionary, ..PagePolicy::default() };
        store.compression().expect("it compresses").set_policy(TABLE, policy);
        match step {
            240.. => store.finish(store.begin_checkpoint(), meta).expect("memory does not fail"),
            230.. if has_dictionary => {}
            230.. => {
                dictionary::install(&*store, meta, 1, |id, page| written.entry(id).or_default().push(page));
                has_dictionary = true;
            }
            200.. => store.drop_page(PageId(id)).expect("memory does not fail"),
            _ => {
                let make = if has_dictionary { dictionary::page_of_text } else { page };
                let page = make(id, version, usize::from(step) * 10, PAGE_SIZE);
                store.write(PageId(id), &page).expect("memory does not fail");
                written.entry(id).or_default().push(page);
            }
        }
    }
    while let (Some(high), Some(middle), Some(low), Some(mask)) =
        (input.next(), input.next(), input.next(), input.next())
    {
        // 24 bits reach every byte: the file has at most 255 pages of history.
        let at = u64::from(u32::from_be_bytes([0, high, middle, low])) % disk.size().expect("memory does not fail");
        let mut byte = [0];
        disk.read_at(at, &mut byte).expect("inside");
        disk.write_at(at, &[byte[0] ^ mask]).expect("inside");
    }
    let count = |store: &dyn PageStore| {
        let mut page = vec![0; PAGE_SIZE];
        let mut read = 0;
        for id in 0..700 {
            match store.read(PageId(id), &mut page) {
                Ok(Some(_)) => {
                    let known = written.get(&id).is_some_and(|versions| versions.contains(&page));
                    assert!(known, "page {id} was never written");
                    read += 1;
                }
                Ok(None) => {}
                Err(error) => refuses(id, &error),
            }
        }
        read
    };
    let rescued = store::open_damaged(disk.clone(), Path::new("fuzz"), PAGE_SIZE, PageSource::Structures);
    let rescued = rescued.map_or(0, |rescued| count(&*rescued.store));
    let read = store::open(disk, Path::new("fuzz")).map_or(0, |(store, _)| count(&*store));
    assert!(rescued >= read, "{rescued} pages of {read} are found");
    read
}

/// The superblock of the files made here.
pub fn meta() -> Meta {
    Meta {
        database_id: 1,
        page_size: PAGE_SIZE,
        clean: true,
        log_follows: false,
        epoch: 1,
        redo: Lsn(10),
        store_lsn: Lsn(10),
        last: Lsn(10),
        high_water: 700,
        maps: 0,
        life: WriteTotals::default(),
    }
}

/// A sound page.
pub fn page(id: u32, version: u64, len: usize, page_size: usize) -> Vec<u8> {
    let mut page = vec![0; page_size];
    let payload = vec![(version & 0xFF) as u8; len];
    unpack(&run_page(PageId(id), TableId(1), PageId::NONE, &payload), &mut page).expect("it fits");
    bytes::put_u64(&mut page, 0, version);
    page
}

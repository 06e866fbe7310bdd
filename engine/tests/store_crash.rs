//! A power cut leaves exactly one whole checkpoint of the page store: the last one acknowledged, or the one that was
//! being made. Power is cut at every event of histories of flushes, drops, checkpoints, compactions and superblock
//! writes; the store is then used on and checked again.

use duramen::base::{Error, Lsn, PageId, Result, TableId, bytes};
use duramen::io::{OpenMode, Volume};
use duramen::page::{run_page, unpack};
use duramen::store::{self, ChangedParts, Meta, PageStore, StoreKind, WriteTotals};
use duramen_sim::{FailingVolume, Fault, Trigger};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

const PAGE_SIZE: usize = 4096;
const PAGES: u32 = 300;
const FILE: &str = "db";

type Pages = BTreeMap<u32, Vec<u8>>;

fn meta(last: u64) -> Meta {
    Meta {
        database_id: 7,
        page_size: PAGE_SIZE,
        clean: false,
        epoch: 1,
        redo: Lsn(last),
        table: Lsn(last),
        last: Lsn(last),
        high_water: PAGES,
        life: WriteTotals::default(),
    }
}

/// A sound page whose content and length follow from `version`.
fn page(id: u32, version: u64) -> Vec<u8> {
    let payload = vec![version as u8 | 1; (version * 397 % 3000) as usize];
    let mut page = vec![0; PAGE_SIZE];
    unpack(&run_page(PageId(id), TableId(3), PageId::NONE, &payload), &mut page).unwrap();
    bytes::put_u64(&mut page, 0, version);
    page
}

/// A store with what it should hold and every checkpoint that was begun.
struct Run {
    volume: FailingVolume,
    store: Arc<dyn PageStore>,
    pages: Pages,
    checkpoints: Vec<Pages>,
    version: u64,
}

impl Run {
    fn create(volume: &FailingVolume) -> Result<Run> {
        let disk = volume.open(FILE, OpenMode::CreateNew)?;
        let store = store::create(StoreKind::Table, disk, Path::new(FILE), meta(0))?;
        volume.sync()?;
        volume.mark(1);
        Ok(Run { volume: volume.clone(), store, pages: Pages::new(), checkpoints: vec![Pages::new()], version: 0 })
    }

    /// Opens what a cut has left; `None` where the creation was cut.
    fn open(volume: &FailingVolume, checkpoints: &[Pages], acknowledged: Option<u64>) -> Option<Run> {
        let opened = volume.open(FILE, OpenMode::Write).and_then(|disk| store::open(disk, Path::new(FILE)));
        let (store, found_meta) = match opened {
            Ok(opened) => opened,
            Err(Error::NotFound { .. } | Error::NotADatabase { .. } | Error::CorruptMeta { .. })
                if acknowledged.is_none() =>
            {
                return None;
            }
            Err(error) => panic!("the store does not open: {error}"),
        };
        let pages = read_all(&*store);
        let number = usize::try_from(found_meta.last.0).unwrap();
        assert!(number as u64 + 1 >= acknowledged.unwrap_or(0), "an acknowledged checkpoint is lost");
        assert_eq!(Some(&pages), checkpoints.get(number), "checkpoint {number} is not whole");
        let checkpoints = checkpoints[..=number].to_vec();
        Some(Run { volume: volume.clone(), store, pages, checkpoints, version: 1_000_000 })
    }

    fn write(&mut self, ids: impl Iterator<Item = u32>) -> Result<()> {
        let mut writer = self.store.writer();
        let mut new = Pages::new();
        for id in ids {
            self.version += 1;
            writer.push(PageId(id), new.entry(id).or_insert(page(id, self.version)), ChangedParts::ALL);
        }
        writer.write()?;
        self.pages.extend(new);
        Ok(())
    }

    fn drop_pages(&mut self, ids: impl Iterator<Item = u32>) {
        for id in ids {
            self.store.drop_page(PageId(id));
            self.pages.remove(&id);
        }
    }

    /// Writes go on between the freeze and the end of the checkpoint, as they do beside a running database.
    fn checkpoint(&mut self, meanwhile: impl Iterator<Item = u32>) -> Result<()> {
        self.checkpoints.push(self.pages.clone());
        let number = self.checkpoints.len() as u64 - 1;
        let frozen = self.store.freeze();
        self.write(meanwhile)?;
        self.store.finish(frozen, meta(number))?;
        self.volume.mark(number + 1);
        Ok(())
    }

    fn compact(&mut self) -> Result<()> {
        self.store.relocate(8)?;
        self.checkpoint(std::iter::empty())?;
        self.store.shrink(0)
    }
}

fn read_all(store: &dyn PageStore) -> Pages {
    let mut found = Pages::new();
    let mut buffer = vec![0; PAGE_SIZE];
    for id in 0..PAGES {
        if store.read(PageId(id), &mut buffer).unwrap().is_some() {
            found.insert(id, buffer.clone());
        }
    }
    found
}

fn history(run: &mut Run) -> Result<()> {
    run.write(0..12)?;
    run.checkpoint(4..6)?;
    run.write((0..12).step_by(2))?;
    run.drop_pages(6..9);
    run.write(280..284)?;
    run.checkpoint(0..3)?;
    run.write(0..4)?;
    run.write(0..4)?;
    run.drop_pages(280..284);
    run.checkpoint(std::iter::empty())?;
    run.store.file().write_meta(meta(run.checkpoints.len() as u64 - 1))?;
    run.drop_pages(0..5);
    run.compact()?;
    run.write(20..24)?;
    run.compact()?;
    run.write(9..12)
}

#[test]
fn every_power_cut_leaves_one_whole_checkpoint() {
    let volume = FailingVolume::new(1);
    let mut run = Run::create(&volume).unwrap();
    history(&mut run).unwrap();
    let cuts = volume.cuts(6);
    assert!(cuts.len() > 400, "{}", cuts.len());
    for cut in cuts {
        let crashed = volume.crash(cut);
        let acknowledged = volume.last_mark_before(cut.event);
        let Some(mut after) = Run::open(&crashed, &run.checkpoints, acknowledged) else { continue };
        // Life goes on: nothing that the cut left behind is in the way.
        after.write(0..6).unwrap();
        after.checkpoint(6..8).unwrap();
        after.write(2..4).unwrap();
        let reopened = Run::open(&crashed, &after.checkpoints, None).unwrap();
        assert_eq!(reopened.pages, after.checkpoints[after.checkpoints.len() - 1], "{cut:?}");
    }
}

#[test]
fn a_cut_after_a_cut_leaves_one_whole_checkpoint() {
    let volume = FailingVolume::new(2);
    let mut run = Run::create(&volume).unwrap();
    history(&mut run).unwrap();
    for cut in volume.cuts(1).into_iter().step_by(7) {
        let crashed = volume.crash(cut);
        let Some(mut after) = Run::open(&crashed, &run.checkpoints, volume.last_mark_before(cut.event)) else {
            continue;
        };
        crashed.mark(after.checkpoints.len() as u64);
        after.write(0..3).unwrap();
        after.checkpoint(std::iter::once(1)).unwrap();
        for second in crashed.cuts(2) {
            let acknowledged = crashed.last_mark_before(second.event);
            assert!(Run::open(&crashed.crash(second), &after.checkpoints, acknowledged).is_some());
        }
    }
}

#[test]
fn a_full_device_loses_nothing_and_works_on_when_there_is_room_again() {
    let volume = FailingVolume::new(3);
    let mut run = Run::create(&volume).unwrap();
    run.write(0..20).unwrap();
    run.checkpoint(std::iter::empty()).unwrap();
    run.store.shrink(0).unwrap();
    volume.limit_space(Some(30_000));
    let failed = (0..100).find_map(|round| run.write(round * 2..round * 2 + 10).err());
    assert!(matches!(failed, Some(Error::Full { .. })), "{failed:?}");
    assert_eq!(read_all(&*run.store), run.pages);
    let crashed = volume.crash(volume.cuts(1)[volume.cuts(1).len() - 1]);
    assert!(Run::open(&crashed, &run.checkpoints, Some(2)).is_some());
    volume.limit_space(None);
    run.write(50..60).unwrap();
    run.checkpoint(std::iter::empty()).unwrap();
    assert_eq!(Run::open(&volume, &run.checkpoints, Some(3)).unwrap().pages, run.pages);
}

#[test]
fn after_a_failed_sync_no_checkpoint_is_acknowledged() {
    let volume = FailingVolume::new(4);
    let mut run = Run::create(&volume).unwrap();
    run.write(0..20).unwrap();
    run.checkpoint(std::iter::empty()).unwrap();
    run.write(0..20).unwrap();
    volume.inject(Fault::FailSync, Trigger::once());
    assert!(run.checkpoint(std::iter::empty()).is_err());
    assert!(matches!(run.checkpoint(std::iter::empty()), Err(Error::Poisoned { .. })));
    assert!(matches!(run.store.file().write_meta(meta(0)), Err(Error::Poisoned { .. })));
    assert_eq!(read_all(&*run.store), run.pages, "reading goes on");
    for cut in volume.cuts(3) {
        if volume.last_mark_before(cut.event) == Some(2) {
            assert!(Run::open(&volume.crash(cut), &run.checkpoints, Some(2)).is_some());
        }
    }
}

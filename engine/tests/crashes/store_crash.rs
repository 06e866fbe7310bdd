//! Promise of the page stores: after a power cut each page that the last checkpoint had exists, with its image of that
//! moment or a later one, and redo can continue from it. The page store `table` restores exactly the checkpoint. The
//! tests cut the power at every event of histories of flushes, changes, drops, checkpoints, compactions and superblock
//! writes. Then they redo the log, continue to use the store, and check it again.

#[path = "durable_changes.rs"]
mod durable_changes;
#[path = "free_end.rs"]
mod free_end;

use crate::device::make_device;
use crate::workload::{DELTAS, page_size_of};
use duramen::base::{Error, Lsn, PageId, Result, TableId, bytes};
use duramen::io::{DeviceDisk, Disk, OpenMode, Volume};
use duramen::page::{run_page, unpack};
use duramen::store::{
    self, Base, ChangedParts, Compression, DeltaBlocks, Meta, PagePolicy, PageStore, StoreKind, StoreOptions, Target,
    WriteTotals,
};
use duramen_sim::{Cut, CutChoice, FailingVolume, Fault, Trigger};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

const PAGES: u32 = 300;
const FILE: &str = "db";
/// The table of all pages.
const TABLE: TableId = TableId(3);
/// The LSN at which the log begins.
const FIRST_LSN: u64 = 1;

/// The kind of the device.
#[derive(Clone, Copy, Debug)]
enum Device {
    Plain,
    /// It writes blocks of 4 KiB atomically.
    Atomic,
    /// A trim changes nothing.
    WithoutTrims,
    /// The file is a block device of so many MiB.
    Block(u64),
}

/// A store, its delta blocks, and the device.
#[derive(Clone, Copy, Debug)]
struct Shape {
    options: StoreOptions,
    device: Device,
}

impl Shape {
    const TABLE: Shape = Shape::of(StoreKind::Table, DeltaBlocks::OFF, Device::Plain);

    const fn of(kind: StoreKind, delta: DeltaBlocks, device: Device) -> Shape {
        Shape { options: StoreOptions { kind, delta }, device }
    }

    fn all() -> Vec<Shape> {
        let devices = [Device::Plain, Device::Atomic, Device::WithoutTrims];
        let shadow =
            DELTAS.into_iter().flat_map(|delta| devices.map(|device| Shape::of(StoreKind::Shadow, delta, device)));
        std::iter::once(Shape::TABLE).chain(shadow).collect()
    }

    fn volume(self, seed: u64) -> FailingVolume {
        let volume = FailingVolume::new(seed);
        match self.device {
            Device::Plain | Device::Block(_) => volume,
            Device::Atomic => volume.with_atomic_blocks(),
            Device::WithoutTrims => volume.without_trims(),
        }
    }

    fn create_file(self, volume: &FailingVolume) -> Result<Arc<dyn Disk>> {
        match self.device {
            Device::Block(mib) => make_device(volume, FILE, mib).and_then(|()| self.open_file(volume)),
            _ => volume.open(FILE, OpenMode::CreateNew),
        }
    }

    fn open_file(self, volume: &FailingVolume) -> Result<Arc<dyn Disk>> {
        let disk = volume.open(FILE, OpenMode::Write)?;
        let is_device = matches!(self.device, Device::Block(_));
        Ok(if is_device { Arc::new(DeviceDisk::open(disk, Path::new(FILE))?) } else { disk })
    }

    fn page_len(self) -> usize {
        page_size_of(self.options.kind, self.options.delta) - self.options.kind.trailer()
    }

    fn meta(self, redo: u64) -> Meta {
        Meta {
            database_id: 7,
            page_size: self.page_len(),
            clean: false,
            log_follows: false,
            epoch: 1,
            redo: Lsn(redo),
            store_lsn: Lsn(redo),
            last: Lsn(redo),
            high_water: PAGES,
            maps: 0,
            life: WriteTotals::default(),
        }
    }
}

/// A mark in the history of the volume: the redo point of the last checkpoint that was acknowledged, and the
/// end of the log, which was durable there.
#[derive(Clone, Copy, Debug)]
struct Mark {
    redo: u64,
    end: u64,
}

impl Mark {
    fn set(self, volume: &FailingVolume) {
        volume.mark(self.redo << 32 | self.end);
    }

    fn before(volume: &FailingVolume, event: usize) -> Option<Mark> {
        volume.last_mark_before(event).map(|mark| Mark { redo: mark >> 32, end: mark & u64::from(u32::MAX) })
    }
}

/// The log of a page: the LSN of each change, and the page after it, if it was not dropped.
type PageLog = Vec<(u64, Option<Vec<u8>>)>;

/// A store with the log of its pages.
struct Run {
    shape: Shape,
    volume: FailingVolume,
    store: Arc<dyn PageStore>,
    log: BTreeMap<u32, PageLog>,
    /// The parts in which each page differs from its base. A page that is not here differs in all.
    changed: BTreeMap<u32, ChangedParts>,
    /// Redo points of the checkpoints that were begun.
    checkpoints: Vec<u64>,
    acknowledged: u64,
    /// Pages that were dropped, with the LSN of that, whose ids must not be used yet.
    pending_frees: BTreeMap<u32, u64>,
    /// The end of the log.
    end: u64,
}

impl Run {
    fn create(shape: Shape, volume: &FailingVolume) -> Result<Run> {
        let disk = shape.create_file(volume)?;
        let store = store::create(shape.options, disk.clone(), Path::new(FILE), shape.meta(FIRST_LSN))?;
        disk.complete()?;
        volume.sync()?;
        let run = Run {
            shape,
            volume: volume.clone(),
            store,
            log: BTreeMap::new(),
            changed: BTreeMap::new(),
            checkpoints: vec![FIRST_LSN],
            acknowledged: FIRST_LSN,
            pending_frees: BTreeMap::new(),
            end: FIRST_LSN,
        };
        run.mark();
        Ok(run)
    }

    fn mark(&self) {
        Mark { redo: self.acknowledged, end: self.end }.set(&self.volume);
    }

    /// Opens what a cut has left of the files of this run, and plays redo; `None` where the creation was cut.
    fn recover(&self, volume: &FailingVolume, mark: Option<Mark>) -> Option<Run> {
        let opened = self.shape.open_file(volume).and_then(|disk| store::open(disk, Path::new(FILE)));
        let (store, meta) = match opened {
            Ok(opened) => opened,
            Err(Error::NotFound { .. } | Error::NotADatabase { .. } | Error::CorruptMeta { .. }) if mark.is_none() => {
                return None;
            }
            Err(error) => panic!("the store does not open: {error}"),
        };
        let Mark { redo: acknowledged, end } = mark.unwrap_or(Mark { redo: FIRST_LSN, end: FIRST_LSN });
        let redo = meta.redo.0;
        assert!(redo >= acknowledged, "an acknowledged checkpoint is lost");
        let known = self.checkpoints.iter().position(|point| *point == redo).expect("a checkpoint that was begun");
        let mut run = Run {
            shape: self.shape,
            volume: volume.clone(),
            store,
            log: self.log.clone(),
            changed: BTreeMap::new(),
            checkpoints: self.checkpoints[..=known].to_vec(),
            acknowledged: redo,
            pending_frees: BTreeMap::new(),
            end,
        };
        run.log.values_mut().for_each(|log| log.retain(|(lsn, _)| *lsn <= end));
        run.redo(redo).unwrap();
        Some(run)
    }

    /// The work of recovery between opening and its first checkpoint.
    fn redo(&mut self, redo: u64) -> Result<()> {
        self.store.note_log_end(Lsn(self.end))?;
        let since = |log: &PageLog| log.iter().any(|(lsn, _)| *lsn >= redo);
        let changed: Vec<u32> = self.log.iter().filter(|(_, log)| since(log)).map(|(id, _)| *id).collect();
        if self.shape.options.kind == StoreKind::Table {
            let at = self.pages_before(redo);
            assert_eq!(self.read_all()?, at, "the checkpoint is not whole");
        }
        for id in 0..PAGES {
            let log = self.log.get(&id).cloned().unwrap_or_default();
            if log.iter().any(|(lsn, page)| *lsn >= redo && page.is_none()) && !self.store.file().kind().reuses_ids() {
                // Redo does not look at a page that the log frees.
                self.store.drop_page(PageId(id))?;
                self.pending_frees.insert(id, self.end);
                continue;
            }
            if changed.contains(&id) {
                self.store.note_in_log(PageId(id));
                self.redo_page(id, &log, redo)?;
            } else if let Some((_, Some(page))) = log.last() {
                assert!(self.read(id)?.as_ref() == Some(page), "page {id}, which was not changed since");
            }
        }
        Ok(())
    }

    /// Redo of a page that the log changes, and does not free.
    fn redo_page(&mut self, id: u32, log: &PageLog, redo: u64) -> Result<()> {
        let before = log.iter().rev().find(|(lsn, _)| *lsn < redo).and_then(|(_, page)| page.clone());
        let found = match self.read(id) {
            // The log formats it.
            Err(Error::Corrupt { .. }) if before.is_none() => None,
            read => read?,
        };
        match &found {
            Some(found) => assert!(log.iter().any(|(_, page)| page.as_ref() == Some(found)), "page {id} was never so"),
            None => assert!(before.is_none(), "page {id} is lost"),
        }
        if let (Some(found), Some(before)) = (&found, &before) {
            assert!(lsn_of(found) >= lsn_of(before), "page {id} is older than the checkpoint");
        }
        let Some((_, Some(last))) = log.last() else {
            self.store.drop_page(PageId(id))?;
            return Ok(());
        };
        if found.as_ref() == Some(last) {
            return Ok(());
        }
        // The first change after the redo point formats a page that there was not.
        let formatted = log.iter().map(|(lsn, _)| *lsn).find(|lsn| *lsn >= redo);
        let base = found.filter(|found| before.is_some() || Some(lsn_of(found)) >= formatted);
        self.note_change(id, base.as_deref(), last);
        self.flush(&BTreeMap::from([(id, last.clone())]))
    }

    /// The pages after all changes before that LSN.
    fn pages_before(&self, lsn: u64) -> BTreeMap<u32, Vec<u8>> {
        let last = |log: &PageLog| log.iter().rev().find(|(at, _)| *at < lsn)?.1.clone();
        self.log.iter().filter_map(|(id, log)| Some((*id, last(log)?))).collect()
    }

    fn pages(&self) -> BTreeMap<u32, Vec<u8>> {
        self.pages_before(u64::MAX)
    }

    fn read(&mut self, id: u32) -> Result<Option<Vec<u8>>> {
        let mut page = vec![0; self.shape.page_len()];
        let changed = self.store.read(PageId(id), &mut page)?;
        Ok(changed.map(|changed| {
            self.changed.insert(id, changed);
            page
        }))
    }

    fn read_all(&mut self) -> Result<BTreeMap<u32, Vec<u8>>> {
        let read = |id| Ok(self.read(id)?.map(|page| (id, page)));
        (0..PAGES).map(read).filter_map(Result::transpose).collect()
    }

    fn note_change(&mut self, id: u32, before: Option<&[u8]>, page: &[u8]) {
        let Some(before) = before else {
            self.changed.remove(&id);
            return;
        };
        if let Some(changed) = self.changed.get_mut(&id) {
            ChangedParts::between(before, page).ranges(page.len()).for_each(|range| changed.add(range, page.len()));
        }
    }

    /// Compresses pages, in another way each time, if the store can.
    fn flush(&mut self, pages: &BTreeMap<u32, Vec<u8>>) -> Result<()> {
        if let Some(compression) = self.store.compression() {
            let ways =
                [Compression::Lz4, Compression::None, Compression::Zstd(1), Compression::Lz4, Compression::Zlib(1)];
            let target = if self.end.is_multiple_of(3) { Target::Bytes(2048) } else { Target::Fit };
            let way = ways[self.end as usize % ways.len()];
            compression.set_policy(TABLE, PagePolicy { compression: way, target, ..PagePolicy::default() });
        }
        let mut writer = self.store.writer();
        let mut after = Vec::new();
        for (&id, page) in pages {
            let changed = self.changed.get(&id).copied().unwrap_or(ChangedParts::ALL);
            match writer.push(PageId(id), page, changed) {
                Base::Moves => after.push((id, ChangedParts::NONE)),
                Base::Stays => after.push((id, changed)),
            }
        }
        writer.write()?;
        self.changed.extend(after);
        Ok(())
    }

    /// Changes pages, in the log and then in the store: each gets what `change` makes of its number and of what it was.
    fn change_with(
        &mut self,
        ids: impl Iterator<Item = u32>,
        change: impl Fn(u32, u64, Option<&[u8]>) -> Option<Vec<u8>>,
    ) -> Result<()> {
        let now = self.pages();
        let mut new = BTreeMap::new();
        for id in ids.filter(|id| !self.pending_frees.contains_key(id)).collect::<BTreeSet<u32>>() {
            let before = now.get(&id).map(Vec::as_slice);
            let Some(page) = change(id, self.end + 1, before) else { continue };
            self.end += 1;
            self.log.entry(id).or_default().push((self.end, Some(page.clone())));
            self.note_change(id, before, &page);
            new.insert(id, page);
        }
        // The log is durable before the pages are written.
        self.mark();
        self.flush(&new)
    }

    /// Writes pages with contents that have nothing to do with what they were.
    fn write(&mut self, ids: impl Iterator<Item = u32>) -> Result<()> {
        let len = self.shape.page_len();
        self.change_with(ids, |id, lsn, _| Some(page(len, id, lsn)))
    }

    /// Changes a few bytes of pages that there are.
    fn change(&mut self, ids: impl Iterator<Item = u32>) -> Result<()> {
        self.change_with(ids, |_, lsn, before| {
            let mut page = before?.to_vec();
            bytes::put_u64(&mut page, 0, lsn);
            let payload = PAYLOAD + (lsn * 67 % MIN_PAYLOAD as u64) as usize;
            page[payload] = page[payload].wrapping_add(2);
            Some(page)
        })
    }

    fn drop_pages(&mut self, ids: impl Iterator<Item = u32>) {
        let now = self.pages();
        for id in ids.filter(|id| now.contains_key(id)) {
            self.end += 1;
            self.log.entry(id).or_default().push((self.end, None));
            self.changed.remove(&id);
            if !self.store.file().kind().reuses_ids() {
                self.pending_frees.insert(id, self.end);
            }
            self.store.drop_page(PageId(id)).unwrap();
        }
        self.mark();
    }

    /// Changes go on between the beginning and the end of the checkpoint, as they do beside a running database.
    fn checkpoint(&mut self, meanwhile: impl Iterator<Item = u32>) -> Result<()> {
        self.end += 1;
        let redo = self.end;
        self.checkpoints.push(redo);
        let token = self.store.begin_checkpoint();
        self.change(meanwhile)?;
        self.store.finish(token, self.shape.meta(redo))?;
        self.acknowledged = redo;
        let free: Vec<u32> = self.pending_frees.iter().filter(|(_, lsn)| **lsn < redo).map(|(id, _)| *id).collect();
        for id in free {
            self.pending_frees.remove(&id);
            self.store.discard_page(PageId(id));
        }
        self.mark();
        Ok(())
    }

    fn compact(&mut self) -> Result<()> {
        self.store.relocate(self.store.stats().used_bytes(), 8)?;
        self.checkpoint(std::iter::empty())?;
        self.store.shrink(0)
    }

    /// Closes the store, and opens it again as a database does.
    fn close(&mut self) -> Result<()> {
        self.checkpoint(std::iter::empty())?;
        self.store.shrink(0)?;
        let meta = self.shape.meta(self.acknowledged);
        self.store.close(Meta { clean: true, ..meta })?;
        self.store = store::open(self.shape.open_file(&self.volume)?, Path::new(FILE))?.0;
        self.changed.clear();
        self.store.use_closed_state();
        self.store.file().make_superblock_durable(false)?;
        self.store.file().write_meta(meta)
    }

    fn check(&mut self, what: &str) {
        for (id, page) in self.pages() {
            let found = self.read(id).unwrap_or_else(|error| panic!("{what}, page {id}: {error}"));
            assert!(found == Some(page), "{what}: page {id}");
        }
    }
}

/// The offset of the payload in a page, and its least length.
const PAYLOAD: usize = 100;
const MIN_PAYLOAD: usize = 800;

/// A sound page whose content and length follow from its LSN. Half of all pages do not become smaller.
fn page(len: usize, id: u32, lsn: u64) -> Vec<u8> {
    let mut payload = vec![lsn as u8 | 1; MIN_PAYLOAD + PAYLOAD + (lsn as usize * 397 % (len - 1180))];
    if lsn.is_multiple_of(2) {
        fastrand::Rng::with_seed(lsn).fill(&mut payload);
    }
    let mut page = vec![0; len];
    unpack(&run_page(PageId(id), TABLE, PageId::NONE, &payload), &mut page).unwrap();
    bytes::put_u64(&mut page, 0, lsn);
    page
}

fn lsn_of(page: &[u8]) -> u64 {
    bytes::get_u64(page, 0)
}

fn history(run: &mut Run) -> Result<()> {
    run.write(0..12)?;
    run.checkpoint(4..6)?;
    run.change((0..12).step_by(2))?;
    run.drop_pages(6..9);
    run.write(280..284)?;
    run.checkpoint(0..3)?;
    run.change(0..4)?;
    run.write(2..6)?;
    run.change(0..4)?;
    run.drop_pages(280..284);
    run.checkpoint(9..11)?;
    run.store.file().write_meta(run.shape.meta(run.acknowledged))?;
    run.change(9..12)?;
    run.drop_pages(0..5);
    run.compact()?;
    run.change(9..12)?;
    run.write(20..24)?;
    run.compact()?;
    run.change(9..12)?;
    run.write(9..11)?;
    run.write(0..3)
}

#[test]
fn redo_continues_after_every_power_cut() {
    for shape in Shape::all() {
        let volume = shape.volume(1);
        let mut run = Run::create(shape, &volume).unwrap();
        history(&mut run).unwrap();
        run.check("the history");
        let cuts = volume.cuts(6);
        assert!(cuts.len() > 400, "{}", cuts.len());
        for cut in cuts {
            let what = format!("{shape:?}, {cut:?}, a {}", volume.describe(cut.event));
            let crashed = volume.crash(cut);
            let Some(mut after) = run.recover(&crashed, Mark::before(&volume, cut.event)) else { continue };
            after.check(&what);
            // Writing goes on after the cut.
            after.write(0..6).unwrap();
            after.checkpoint(6..8).unwrap();
            after.change(2..4).unwrap();
            after.write(4..6).unwrap();
            after.checkpoint(std::iter::empty()).unwrap();
            after.check(&what);
            let mark = Mark { redo: after.acknowledged, end: after.end };
            after.recover(&crashed, Some(mark)).unwrap().check(&what);
        }
    }
}

/// The free map of a close counts until the first checkpoint after it.
#[test]
fn redo_continues_after_every_power_cut_around_a_close() {
    let shape = Shape::TABLE;
    let volume = shape.volume(5);
    let mut run = Run::create(shape, &volume).unwrap();
    run.write(0..12).unwrap();
    run.write(280..290).unwrap();
    run.close().unwrap();
    run.change(0..4).unwrap();
    run.drop_pages(6..9);
    run.checkpoint(2..5).unwrap();
    run.write(5..8).unwrap();
    run.change(280..284).unwrap();
    run.close().unwrap();
    run.write(0..6).unwrap();
    run.checkpoint(9..11).unwrap();
    run.change(0..3).unwrap();
    run.check("the history");
    for cut in volume.cuts(6) {
        let what = format!("{shape:?}, {cut:?}, a {}", volume.describe(cut.event));
        let crashed = volume.crash(cut);
        let Some(mut after) = run.recover(&crashed, Mark::before(&volume, cut.event)) else { continue };
        after.check(&what);
        // Here the superblock may name a free map.
        after.store.check_places().unwrap();
        after.write(0..6).unwrap();
        after.close().unwrap();
        after.change(280..283).unwrap();
        after.write(4..6).unwrap();
        after.checkpoint(std::iter::empty()).unwrap();
        after.store.check_places().unwrap();
        after.check(&what);
        let mark = Mark { redo: after.acknowledged, end: after.end };
        after.recover(&crashed, Some(mark)).unwrap().check(&what);
    }
}

#[test]
fn redo_continues_after_a_second_power_cut() {
    for shape in Shape::all() {
        let volume = shape.volume(2);
        let mut run = Run::create(shape, &volume).unwrap();
        history(&mut run).unwrap();
        for cut in volume.cuts(1).into_iter().step_by(7) {
            let crashed = volume.crash(cut);
            let mark = Mark::before(&volume, cut.event);
            // The recovery is cut, too.
            mark.unwrap_or(Mark { redo: FIRST_LSN, end: FIRST_LSN }).set(&crashed);
            let Some(mut after) = run.recover(&crashed, mark) else { continue };
            after.checkpoint(std::iter::once(1)).unwrap();
            after.change(0..3).unwrap();
            after.write(8..10).unwrap();
            after.checkpoint(std::iter::once(9)).unwrap();
            for second in crashed.cuts(2) {
                let what = format!("{shape:?}, {cut:?}, then {second:?}, a {}", crashed.describe(second.event));
                let mark = Mark::before(&crashed, second.event).or(mark);
                after.recover(&crashed.crash(second), mark).expect("it was created").check(&what);
            }
        }
    }
}

#[test]
fn a_full_device_loses_nothing_and_works_on_when_there_is_room_again() {
    for shape in Shape::all() {
        let volume = shape.volume(3);
        let mut run = Run::create(shape, &volume).unwrap();
        run.write(0..20).unwrap();
        run.checkpoint(std::iter::empty()).unwrap();
        run.store.shrink(0).unwrap();
        let before = run.pages();
        volume.limit_space(Some(30_000));
        let failed = (0..100).find_map(|round| run.write(round * 2..round * 2 + 10).err());
        assert!(matches!(failed, Some(Error::Full { .. })), "{failed:?}");
        let after = run.pages();
        for (id, page) in &before {
            let found = run.read(*id).unwrap().unwrap();
            assert!(found == *page || lsn_of(&found) > lsn_of(page) && after.contains_key(id), "{shape:?}, page {id}");
        }
        let last = volume.cuts(1)[volume.cuts(1).len() - 1];
        let crashed = volume.crash(last);
        let mut recovered = run.recover(&crashed, Mark::before(&volume, last.event)).unwrap();
        recovered.check("recovered");
        volume.limit_space(None);
        // The pages that could not be written are still in memory.
        run.changed.clear();
        run.flush(&after).unwrap();
        run.write(50..60).unwrap();
        run.checkpoint(std::iter::empty()).unwrap();
        run.check("written again");
        run.recover(&volume, Some(Mark { redo: run.acknowledged, end: run.end })).unwrap().check("reopened");
    }
}

#[test]
fn after_a_failed_sync_no_checkpoint_is_acknowledged() {
    for shape in Shape::all() {
        let volume = shape.volume(4);
        let mut run = Run::create(shape, &volume).unwrap();
        run.write(0..20).unwrap();
        run.checkpoint(std::iter::empty()).unwrap();
        let first = run.acknowledged;
        run.write(0..10).unwrap();
        run.change(10..20).unwrap();
        volume.inject(Fault::FailSync, Trigger::once());
        assert!(run.checkpoint(std::iter::empty()).is_err());
        assert!(matches!(run.checkpoint(std::iter::empty()), Err(Error::Poisoned { .. })));
        assert!(matches!(run.store.file().write_meta(shape.meta(FIRST_LSN)), Err(Error::Poisoned { .. })));
        run.check("reading goes on");
        for cut in volume.cuts(3) {
            let mark = Mark::before(&volume, cut.event);
            if mark.is_some_and(|mark| mark.redo == first) {
                let what = format!("{shape:?}, {cut:?}, a {}", volume.describe(cut.event));
                run.recover(&volume.crash(cut), mark).unwrap().check(&what);
            }
        }
    }
}

//! Compares any store with a map of pages, through random writes, drops, checkpoints, failures, compactions and
//! reopenings.

use super::slots::SlotStore;
use super::*;
use crate::base::limits::PAGE_HEADER;
use crate::store::kinds::StoreFormat;
use crate::store::shadow::ShadowStore;
use crate::store::table::TableStore;
use crate::store::{
    Base, ChangedParts, CheckpointToken, Compression, DatabaseFile, DeltaBlocks, Overflow, PagePolicy, StoreOptions,
    StoreRoom, StoreSetup, StoreSurvey, Target,
};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const PAGES: u32 = 600;

type Pages = BTreeMap<u32, Vec<u8>>;

#[derive(Clone, Debug)]
pub(in crate::store) enum Step {
    Write(Vec<u32>),
    /// Writes a few of the first pages with a few other bytes.
    Change(Vec<(u32, u16)>),
    Unlogged(u32),
    Drop(Vec<u32>),
    BeginCheckpoint,
    Finish,
    WriteMeta,
    Fail {
        left: i64,
        reaches: bool,
    },
    Compact,
    PersistTable,
    SetPolicy(PagePolicy),
    Reopen,
    Close,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let ids = || proptest::collection::vec(0..PAGES, 1..40);
    let step = prop_oneof![
        6 => ids().prop_map(Step::Write),
        8 => proptest::collection::vec((0..5u32, any::<u16>()), 1..5).prop_map(Step::Change),
        2 => (0..PAGES).prop_map(Step::Unlogged),
        3 => ids().prop_map(Step::Drop),
        4 => Just(Step::BeginCheckpoint),
        4 => Just(Step::Finish),
        1 => Just(Step::WriteMeta),
        1 => (0i64..6, any::<bool>()).prop_map(|(left, reaches)| Step::Fail { left, reaches }),
        2 => Just(Step::Compact),
        1 => Just(Step::PersistTable),
        2 => policies().prop_map(Step::SetPolicy),
        1 => Just(Step::Reopen),
        1 => Just(Step::Close),
    ];
    proptest::collection::vec(step, 1..80)
}

fn policies() -> impl Strategy<Value = PagePolicy> {
    let compression = proptest::sample::select(
        &[Compression::None, Compression::Lz4, Compression::Zstd(1), Compression::Zlib(1)][..],
    );
    let target = proptest::sample::select(Target::all(2 * PAGE_SIZE).collect::<Vec<_>>());
    let overflow = proptest::sample::select(&[Overflow::Spill, Overflow::Split][..]);
    (compression, target, overflow).prop_map(|(compression, target, overflow)| PagePolicy {
        compression,
        target,
        overflow,
        dictionary: matches!(compression, Compression::Zstd(_)),
    })
}

/// A store to be tested.
pub(in crate::store) trait Subject: PageStore + Sized {
    const KIND: StoreKind;
    /// A reopening finds each page as the checkpoint had it, and none that was written later.
    const REOPENS_AT_CHECKPOINT: bool;
    /// After a failed write each page has the image that it had before.
    const FAILED_WRITES_KEEP_PAGES: bool = true;

    fn of(file: DatabaseFile) -> Result<Self>;

    /// Options of a new store, and the length of its pages.
    fn setups() -> BoxedStrategy<(StoreOptions, usize)> {
        Just((Self::KIND.into(), page_size(Self::KIND))).boxed()
    }

    /// Looks at what only this store knows.
    fn check(&self) {}
}

impl Subject for SlotStore {
    const KIND: StoreKind = StoreKind::Slots;
    const REOPENS_AT_CHECKPOINT: bool = false;

    fn of(file: DatabaseFile) -> Result<SlotStore> {
        SlotStore::open(file)
    }
}

impl Subject for ShadowStore {
    const KIND: StoreKind = StoreKind::Shadow;
    const REOPENS_AT_CHECKPOINT: bool = false;
    const FAILED_WRITES_KEEP_PAGES: bool = false;

    fn of(file: DatabaseFile) -> Result<ShadowStore> {
        ShadowStore::open(file)
    }

    fn setups() -> BoxedStrategy<(StoreOptions, usize)> {
        let setup = |(blocks, threshold, shift)| {
            let delta = DeltaBlocks { threshold, segment: 32, blocks };
            (StoreOptions { kind: StoreKind::Shadow, delta }, (PAGE_SIZE << shift) - StoreKind::Shadow.trailer())
        };
        (0u8..=4, 1u16..=2048, 0usize..=2).prop_map(setup).boxed()
    }
}

/// The parts in which pages differ from their bases, as the pool knows them. A page that is not here differs in all.
type Changed = BTreeMap<u32, ChangedParts>;

fn write_all<S: Subject>(store: &S, pages: &Pages, changed: &mut Changed) -> Result<()> {
    let mut writer = store.writer();
    let mut after = Changed::new();
    for (&id, page) in pages {
        let parts = changed.get(&id).copied().unwrap_or(ChangedParts::ALL);
        let base = writer.push(PageId(id), page, parts);
        after.insert(id, if base == Base::Moves { ChangedParts::NONE } else { parts });
    }
    writer.write()?;
    changed.extend(after);
    Ok(())
}

pub(in crate::store) struct ModelRun<S> {
    pub(in crate::store) disk: Arc<Failing>,
    pub(in crate::store) store: S,
    pub(in crate::store) pages: Pages,
    meta: Meta,
    changed: Changed,
    /// The states that a reopening may find: one, or two after a superblock whose writing failed.
    durable: Vec<Pages>,
    /// All contents that were written, or may have been.
    written: BTreeMap<u32, Vec<Vec<u8>>>,
    checkpoint: Option<(CheckpointToken, Pages, BTreeSet<u32>)>,
    /// Dropped pages whose ids must not be used before the next checkpoint.
    pending_frees: BTreeSet<u32>,
    seed: u64,
    /// A write has failed that was not repeated, so that pages may be other than in the model.
    damaged: bool,
}

impl<S: Subject> ModelRun<S> {
    pub(in crate::store) fn new() -> ModelRun<S> {
        ModelRun::with(S::KIND.into(), page_size(S::KIND))
    }

    fn with(options: StoreOptions, page_size: usize) -> ModelRun<S> {
        let (disk, meta) = (disk(), Meta { page_size, ..meta() });
        let file = DatabaseFile::create(options, disk.clone(), Path::new("db"), meta).unwrap();
        let store = S::of(file).unwrap();
        let (pages, written) = (Pages::new(), BTreeMap::new());
        ModelRun {
            disk,
            store,
            pages,
            meta,
            changed: Changed::new(),
            durable: vec![Pages::new()],
            written,
            checkpoint: None,
            pending_frees: BTreeSet::new(),
            seed: 0,
            damaged: false,
        }
    }

    fn page(&mut self, id: u32) -> Vec<u8> {
        self.seed += 1;
        let page = sample_of(self.meta.page_size, id, self.seed, self.seed);
        self.written.entry(id).or_default().push(page.clone());
        page
    }

    pub(in crate::store) fn step(&mut self, step: &Step) {
        match step {
            Step::Write(ids) => {
                let free: Vec<u32> = ids.iter().copied().filter(|id| !self.pending_frees.contains(id)).collect();
                let new: Pages = free.iter().map(|&id| (id, self.page(id))).collect();
                self.changed.retain(|id, _| !new.contains_key(id));
                self.write(new);
            }
            Step::Change(changes) => {
                let mut new = Pages::new();
                for (id, at) in changes {
                    let Some(before) = new.get(id).or(self.pages.get(id)).cloned() else { continue };
                    let page = self.changed_page(*id, &before, *at);
                    new.insert(*id, page);
                }
                self.write(new);
            }
            Step::Unlogged(id) if self.pending_frees.contains(id) => {}
            &Step::Unlogged(id) => {
                let page = self.page(id);
                let mut packed = Vec::new();
                crate::page::Page::new(&page).packed_into(&mut packed);
                if self.with_retry(|store, _| store.write_unlogged(&[(PageId(id), packed.clone())]).map(drop)) {
                    self.pages.insert(id, page);
                    self.changed.remove(&id);
                }
            }
            Step::Drop(ids) => {
                for id in ids {
                    self.store.drop_page(PageId(*id)).unwrap();
                    self.pages.remove(id);
                    self.changed.remove(id);
                    if !S::KIND.reuses_ids() {
                        self.pending_frees.insert(*id);
                    }
                }
            }
            Step::BeginCheckpoint => {
                self.checkpoint = Some((self.store.begin_checkpoint(), self.pages.clone(), self.pending_frees.clone()))
            }
            Step::Finish => self.finish(),
            Step::WriteMeta => {
                let _ = self.store.file().write_meta(Meta { last: Lsn(self.seed), ..self.meta });
            }
            &Step::Fail { left, reaches } => self.disk.arm(left, all_or_none(reaches)),
            Step::Compact => {
                if self.store.relocate(self.store.stats().used_bytes(), 20).is_ok() {
                    self.store.shrink(0).unwrap();
                }
            }
            Step::PersistTable => {
                self.store.set_up(StoreSetup { persist_table: true, ..StoreSetup::default() });
            }
            Step::SetPolicy(policy) => {
                if let Some(compression) = self.store.compression() {
                    compression.set_policy(SAMPLE_TABLE, *policy);
                }
            }
            Step::Reopen => self.reopen(),
            Step::Close => self.close(),
        }
    }

    /// Says whether pages have been written. Where a failed write may have damaged some, there is another one, as from
    /// the pool, which still has them.
    fn with_retry(&mut self, write: impl Fn(&S, &mut Changed) -> Result<()>) -> bool {
        let written = write(&self.store, &mut self.changed);
        if written.is_err() && !S::FAILED_WRITES_KEEP_PAGES {
            self.disk.arm(-1, 0);
            let is_written = write(&self.store, &mut self.changed).is_ok();
            self.damaged |= !is_written;
            return is_written;
        }
        written.is_ok()
    }

    fn write(&mut self, new: Pages) {
        if self.with_retry(|store, changed| write_all(store, &new, changed)) {
            self.pages.extend(new);
        }
    }

    /// The page with a few bytes changed: of its payload, if it has one, and its LSN.
    fn changed_page(&mut self, id: u32, before: &[u8], at: u16) -> Vec<u8> {
        self.seed += 1;
        let mut page = before.to_vec();
        put_u64(&mut page, 0, self.seed);
        // The bytes of a payload are not 0, and what follows them is.
        let payload = page[PAGE_HEADER..].iter().position(|byte| *byte == 0).unwrap_or(page.len() - PAGE_HEADER);
        if payload > 0 {
            page[PAGE_HEADER + usize::from(at) % payload] ^= 0x80;
        }
        if let Some(changed) = self.changed.get_mut(&id) {
            let now = ChangedParts::between(before, &page);
            changed.0.iter_mut().zip(now.0).for_each(|(word, bits)| *word |= bits);
        }
        self.written.entry(id).or_default().push(page.clone());
        page
    }

    fn finish(&mut self) {
        let Some((token, pages, freed)) = self.checkpoint.take() else { return };
        match self.store.finish(token, self.meta) {
            Ok(()) => {
                self.durable = vec![pages];
                for id in freed.into_iter().filter(|id| self.pending_frees.remove(id)) {
                    self.store.discard_page(PageId(id));
                }
            }
            Err(_) => self.durable.push(pages),
        }
    }

    /// Closes and opens the store, if no failure is in the way.
    fn close(&mut self) {
        self.step(&Step::BeginCheckpoint);
        self.finish();
        let meta = Meta { clean: true, ..self.meta };
        let is_closed = self.durable.len() == 1 && self.store.shrink(0).is_ok() && self.store.close(meta).is_ok();
        if !is_closed {
            return self.reopen();
        }
        let (pages, damaged) = (std::mem::take(&mut self.pages), self.damaged);
        self.open(true);
        // The slots of dropped pages are not cleared in the store that is for these tests alone.
        assert!(damaged || S::KIND == StoreKind::Slots || self.pages == pages);
        self.store.file().write_meta(self.meta).unwrap();
    }

    fn reopen(&mut self) {
        self.open(false);
    }

    fn open(&mut self, was_closed: bool) {
        self.disk.arm(-1, 0);
        self.checkpoint = None;
        self.pending_frees.clear();
        self.store = S::of(DatabaseFile::open(self.disk.clone(), Path::new("db")).unwrap()).unwrap();
        match was_closed {
            true => self.store.use_closed_state(),
            // As every recovery does before it writes a page.
            false => self.store.note_log_end(Lsn(self.seed)).unwrap(),
        }
        self.changed.clear();
        self.damaged = false;
        let found = self.all();
        let mut page = vec![0; self.meta.page_size];
        for id in found.keys() {
            let changed = self.store.read(PageId(*id), &mut page).unwrap().unwrap();
            self.changed.insert(*id, changed);
        }
        let fits = |durable: &Pages| match S::REOPENS_AT_CHECKPOINT {
            true => durable == &found,
            false => {
                let later = |id, page| self.written.get(id).is_some_and(|written| written.contains(page));
                durable.keys().all(|id| found.contains_key(id))
                    && found.iter().all(|(id, page)| durable.get(id) == Some(page) || later(id, page))
            }
        };
        assert!(self.durable.iter().any(fits), "neither the last checkpoint nor the one that failed");
        if !was_closed {
            // A close may have failed after its first superblock. The database is open again.
            self.store.file().write_meta(self.meta).unwrap();
        }
        self.pages = found.clone();
        self.durable = vec![found];
    }

    pub(in crate::store) fn all(&self) -> Pages {
        let mut page = vec![0; self.meta.page_size];
        let mut found = Pages::new();
        for id in 0..PAGES {
            if self.store.read(PageId(id), &mut page).unwrap().is_some() {
                found.insert(id, page.clone());
            }
        }
        found
    }
}

on_each_store! {
    of_types:
    is_a_map_and_a_reopening_finds_the_last_checkpoint
    an_overtaken_checkpoint_is_refused
    the_superblock_alone_can_be_rewritten
}

/// A store that does not reopen at a checkpoint may also find what was written after it.
fn is_a_map_and_a_reopening_finds_the_last_checkpoint<S: Subject>() {
    let config = ProptestConfig { cases: 96, max_shrink_iters: 4000, ..ProptestConfig::default() };
    proptest!(config, |((options, page_size) in S::setups(), steps in steps())| {
        let mut run = ModelRun::<S>::with(options, page_size);
        for step in &steps {
            run.step(step);
            run.store.check();
        }
        assert_eq!(run.all(), run.pages);
        run.reopen();
    });
}

#[test]
fn a_compaction_leaves_no_free_runs_and_truncates_the_file() {
    let mut run = ModelRun::<TableStore>::new();
    run.step(&Step::Write((0..PAGES).collect()));
    run.step(&Step::Drop((0..PAGES).filter(|id| id % 10 != 0).collect()));
    let checkpoint = |run: &mut ModelRun<TableStore>| {
        run.step(&Step::BeginCheckpoint);
        run.step(&Step::Finish);
    };
    checkpoint(&mut run);
    let before = run.store.stats();
    loop {
        let moved = run.store.relocate(run.store.stats().used_bytes(), 16).unwrap();
        checkpoint(&mut run);
        run.store.shrink(0).unwrap();
        if moved == 0 {
            break;
        }
    }
    let after = run.store.stats();
    assert_eq!(after.pages, u64::from(PAGES) / 10);
    assert!(after.file_bytes * 5 < before.file_bytes, "{before:?} {after:?}");
    assert!(after.file_bytes < after.live_bytes * 11 / 10 + 20_000, "{after:?}");
    assert_eq!(run.all(), run.pages);
    run.reopen();
    assert_eq!(run.disk.size().unwrap(), after.file_bytes);
}

fn an_overtaken_checkpoint_is_refused<S: Subject>() {
    let mut run = ModelRun::<S>::new();
    (&run.store as &dyn PageStore).write(PageId(1), &sample_of(page_size(S::KIND), 1, 1, 1)).unwrap();
    let first = run.store.begin_checkpoint();
    let second = run.store.begin_checkpoint();
    assert!(matches!(run.store.finish(first, meta_of(S::KIND)), Err(Error::Poisoned { .. })));
    run.store.finish(second, meta_of(S::KIND)).unwrap();
    run.store = S::of(DatabaseFile::open(run.disk.clone(), Path::new("db")).unwrap()).unwrap();
    assert_eq!(run.store.stats().pages, 1);
}

fn the_superblock_alone_can_be_rewritten<S: Subject>() {
    let run = ModelRun::<S>::new();
    (&run.store as &dyn PageStore).write(PageId(1), &sample_of(page_size(S::KIND), 1, 1, 1)).unwrap();
    run.store.finish(run.store.begin_checkpoint(), Meta { clean: true, ..meta_of(S::KIND) }).unwrap();
    for epoch in 10..14 {
        run.store.file().write_meta(Meta { epoch, ..meta_of(S::KIND) }).unwrap();
        let (store, found) = crate::store::open(run.disk.clone(), Path::new("db")).unwrap();
        assert_eq!((store.file().kind(), found.epoch, found.clean), (S::KIND, epoch, false));
        assert_eq!(store.stats().pages, 1);
    }
}

//! The store against a map of pages, through random writes, drops, checkpoints, failures, compactions and reopenings.

use super::*;
use crate::store::table::place::{Extent, FIRST_GRAIN};
use crate::store::{Frozen, ImageBatch, WriteKind};
use proptest::prelude::*;
use std::collections::BTreeMap;

const PAGES: u32 = 600;

type Pages = BTreeMap<u32, Vec<u8>>;

#[derive(Clone, Debug)]
enum Step {
    Write(Vec<u32>),
    Unlogged(u32),
    Drop(Vec<u32>),
    Freeze,
    Finish,
    WriteMeta,
    Fail { left: i64, reaches: bool },
    Compact,
    Reopen,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let ids = || proptest::collection::vec(0..PAGES, 1..40);
    let step = prop_oneof![
        6 => ids().prop_map(Step::Write),
        2 => (0..PAGES).prop_map(Step::Unlogged),
        3 => ids().prop_map(Step::Drop),
        4 => Just(Step::Freeze),
        4 => Just(Step::Finish),
        1 => Just(Step::WriteMeta),
        1 => (0i64..6, any::<bool>()).prop_map(|(left, reaches)| Step::Fail { left, reaches }),
        2 => Just(Step::Compact),
        1 => Just(Step::Reopen),
    ];
    proptest::collection::vec(step, 1..80)
}

struct Run {
    disk: Arc<Failing>,
    store: TableStore,
    pages: Pages,
    /// What a reopening may find: one state, or two after a superblock whose writing failed.
    durable: Vec<Pages>,
    frozen: Option<(Frozen, Pages)>,
    seed: u64,
}

impl Run {
    fn new() -> Run {
        let disk = disk();
        let store = create(&disk);
        Run { disk, store, pages: Pages::new(), durable: vec![Pages::new()], frozen: None, seed: 0 }
    }

    fn page(&mut self, id: u32) -> Vec<u8> {
        self.seed += 1;
        sample(id, self.seed, self.seed)
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Write(ids) => {
                let mut batch = ImageBatch::new();
                let new: Pages = ids.iter().map(|&id| (id, self.page(id))).collect();
                new.iter().for_each(|(&id, page)| batch.push(PageId(id), page));
                if self.store.write_batch(&mut batch, WriteKind::Flush).is_ok() {
                    self.pages.extend(new);
                }
            }
            &Step::Unlogged(id) => {
                let page = self.page(id);
                let mut packed = Vec::new();
                crate::page::Page::new(&page).packed_into(&mut packed);
                if let Ok(location) = self.store.write_unlogged(PageId(id), &packed) {
                    assert_eq!(self.store.location(PageId(id)), Some(location));
                    self.pages.insert(id, page);
                }
            }
            Step::Drop(ids) => {
                for id in ids {
                    self.store.drop_page(PageId(*id));
                    self.pages.remove(id);
                }
            }
            Step::Freeze => self.frozen = Some((self.store.freeze(), self.pages.clone())),
            Step::Finish => self.finish(),
            Step::WriteMeta => {
                let _ = self.store.write_meta(Meta { last: Lsn(self.seed), ..meta() });
            }
            &Step::Fail { left, reaches } => self.disk.arm(left, reaches),
            Step::Compact => {
                let tail = self.store.tail_pages(20);
                if self.store.relocate(&tail).is_ok() {
                    self.store.shrink(0).unwrap();
                }
            }
            Step::Reopen => self.reopen(),
        }
    }

    fn finish(&mut self) {
        let Some((frozen, pages)) = self.frozen.take() else { return };
        match self.store.finish(frozen, meta()) {
            Ok(()) => self.durable = vec![pages],
            Err(_) => self.durable.push(pages),
        }
    }

    fn reopen(&mut self) {
        self.disk.arm(-1, false);
        self.frozen = None;
        self.store = open(&self.disk).unwrap().0;
        let found = self.all();
        assert!(self.durable.contains(&found), "neither the last checkpoint nor the one that failed");
        self.pages = found.clone();
        self.durable = vec![found];
    }

    fn all(&self) -> Pages {
        let mut page = vec![0; PAGE_SIZE];
        let mut found = Pages::new();
        for id in 0..PAGES {
            if self.store.read(PageId(id), &mut page).unwrap() {
                found.insert(id, page.clone());
            }
        }
        found
    }

    /// Every used grain has exactly one use.
    fn check_places(&self) {
        let current = self.store.current.lock();
        let state = self.store.state.lock();
        let mut extents = vec![Extent { first: 0, grains: FIRST_GRAIN }, current.superblock.directory()];
        state.table.each(|_, place| extents.push(place.extent()));
        extents
            .extend((0..state.table.chunks()).filter_map(|index| state.table.home(index)).map(|at| at.place.extent()));
        extents.extend(state.quarantine.iter().chain(&state.frozen).chain(state.reserved.values()));
        extents.sort_unstable();
        for pair in extents.windows(2) {
            assert!(pair[0].end() <= pair[1].first || pair[0].grains == 0, "{pair:?} overlap");
        }
        assert_eq!(extents.iter().map(|extent| extent.grains).sum::<u64>(), state.allocator.used());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, max_shrink_iters: 4000, ..ProptestConfig::default() })]
    #[test]
    fn the_store_is_a_map_and_a_reopening_finds_the_last_checkpoint(steps in steps()) {
        let mut run = Run::new();
        for step in &steps {
            run.step(step);
            run.check_places();
        }
        prop_assert_eq!(&run.all(), &run.pages);
        run.reopen();
    }
}

#[test]
fn a_compaction_leaves_no_gaps_and_cuts_the_file() {
    let mut run = Run::new();
    run.step(&Step::Write((0..PAGES).collect()));
    run.step(&Step::Drop((0..PAGES).filter(|id| id % 10 != 0).collect()));
    let checkpoint = |run: &mut Run| {
        run.step(&Step::Freeze);
        run.step(&Step::Finish);
    };
    checkpoint(&mut run);
    let before = run.store.stats();
    loop {
        let tail = run.store.tail_pages(16);
        let moved = run.store.relocate(&tail).unwrap();
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

#[test]
fn location_records_are_redone_and_their_places_kept() {
    let mut run = Run::new();
    run.step(&Step::Write((0..50).collect()));
    run.step(&Step::Freeze);
    run.step(&Step::Finish);
    let mut locations = Vec::new();
    for id in 100..150 {
        run.step(&Step::Unlogged(id));
        locations.push((PageId(id), run.store.location(PageId(id)).unwrap()));
    }
    let expected = run.pages.clone();
    run.store = open(&run.disk).unwrap().0;
    for (_, location) in &locations {
        run.store.reserve(*location);
    }
    // Pages that redo writes out before it comes to the location records.
    run.step(&Step::Write((0..50).collect()));
    for (id, location) in &locations {
        run.store.install(*id, *location).unwrap();
        run.store.install(*id, *location).unwrap();
    }
    run.check_places();
    let found = run.all();
    assert!(expected.range(100..).all(|(id, page)| found.get(id) == Some(page)));
    let elsewhere = run.store.location(PageId(0)).unwrap();
    assert!(matches!(run.store.install(PageId(1), elsewhere), Err(Error::CorruptMeta { .. })));
}

#[test]
fn a_reserved_place_that_nobody_installs_is_free_after_a_checkpoint() {
    let mut run = Run::new();
    run.step(&Step::Unlogged(5));
    let location = run.store.location(PageId(5)).unwrap();
    run.store = open(&run.disk).unwrap().0;
    let before = run.store.stats();
    run.store.reserve(location);
    assert!(run.store.stats().free_bytes < before.free_bytes);
    let frozen = run.store.freeze();
    run.store.finish(frozen, meta()).unwrap();
    assert_eq!(run.store.stats().free_bytes, before.free_bytes);
}

#[test]
fn an_overtaken_checkpoint_is_refused() {
    let run = Run::new();
    run.store.write(PageId(1), &sample(1, 1, 1)).unwrap();
    let first = run.store.freeze();
    let second = run.store.freeze();
    assert!(matches!(run.store.finish(first, meta()), Err(Error::Poisoned { .. })));
    run.store.finish(second, meta()).unwrap();
    assert_eq!(open(&run.disk).unwrap().0.stats().pages, 1);
}

#[test]
fn the_superblock_alone_can_be_rewritten() {
    let run = Run::new();
    run.store.write(PageId(1), &sample(1, 1, 1)).unwrap();
    run.store.finish(run.store.freeze(), Meta { clean: true, ..meta() }).unwrap();
    for epoch in 10..14 {
        run.store.write_meta(Meta { epoch, ..meta() }).unwrap();
        let (store, found) = open(&run.disk).unwrap();
        assert_eq!((found.epoch, found.clean, store.stats().pages), (epoch, false, 1));
    }
}

//! Prepares everything that a commit needs before it may change anything: its pages, which are read and kept in memory,
//! and space in the log and in the file. All numbers are upper bounds. If a resource is missing later, all writing
//! stops.

use super::detached_key;
use super::steps::Step;
use crate::base::limits::{MAX_VALUE, long_key_head, max_inline_key};
use crate::base::{PageId, Result};
use crate::page::{Page, RecordListKind, run_capacity};
use crate::store::Pin;
use crate::tree::{KeyRange, LeafTarget, Tree};
use crate::txn::engine::Engine;
use crate::txn::large;
use crate::txn::space::page_ids::ids_per_map;
use std::collections::BTreeSet;
use std::iter::Peekable;

/// Log bytes of a record besides its key and its value.
const RECORD_LOG: usize = 16;
/// A page has no more entries.
const MAX_ENTRIES: usize = u16::MAX as usize;
/// The most log bytes of an addition to a record, and of its numbers in a logical record.
const ADD_LOG: usize = 24;
/// One batch leaves a quarter of the frames of the cache to other threads, but at least this number of frames, or half
/// of all frames if that is less.
const FRAMES_LEFT: usize = 1024;
/// Log bytes of a change of an allocation map.
const MAP_LOG: usize = 64;

/// The resources that a commit needs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reservation {
    /// The number of pages that it may change, as one batch.
    pub(in crate::txn) pages: usize,
    /// The number of dirty pages that it may leave. If pages are merged, only one of them counts.
    pub(super) images: usize,
    /// Bytes of its operations in the log.
    pub(in crate::txn) log: usize,
    /// Bytes of its steps in a logical record.
    pub(in crate::txn) logical: usize,
    /// Bytes of the keys and values that it puts and of the keys that it removes.
    pub(super) user: u64,
    /// True if a step adds data.
    pub(super) adds: bool,
    /// The number of runs (of large values or long keys) that it may free. Their pages may be in any allocation map.
    runs: usize,
    /// Bytes of new pages that the entries may need.
    new_bytes: usize,
}

impl Reservation {
    /// The number of new pages. A new page may be only half full.
    fn new_pages(&self, page_size: usize) -> usize {
        self.new_bytes.div_ceil(page_size / 2)
    }
}

/// The number of allocation maps that the pages of the longest run can be in.
fn maps_of_longest_run(page_size: usize) -> usize {
    let of_map = run_capacity(page_size).saturating_mul(ids_per_map(page_size) as usize).max(1);
    usize::try_from(MAX_VALUE).map_or(usize::MAX, |most| most / of_map + 2)
}

/// Examines the steps of a commit, reads the pages that they will change, and adds up the space and pages they need.
pub(super) struct ReservationEstimate<'e> {
    engine: &'e Engine,
    catalog: Tree,
    page_size: usize,
    reservation: Reservation,
    /// The leaves, pinned until the commit ends. `None`: they are too many for one batch.
    pins: Option<Vec<Pin<'e>>>,
    /// Roots of trees that the commit itself creates.
    created: BTreeSet<PageId>,
    /// True if an earlier step removes a range of keys.
    clears: bool,
    /// The path to the last leaf.
    path: Vec<PageId>,
    /// The path to the leaf before it.
    before: Vec<PageId>,
    /// The last leaf.
    last: PageId,
}

/// The space that a commit needs, and its leaves, pinned, if it fits in one batch.
pub(super) struct PinnedReservation<'e> {
    pub(super) reservation: Reservation,
    pub(super) pins: Option<Vec<Pin<'e>>>,
}

impl<'e> ReservationEstimate<'e> {
    /// Examines all steps.
    pub(in crate::txn) fn take<'a>(
        engine: &'e Engine,
        catalog: &Tree,
        steps: impl Iterator<Item = Step<'a>>,
    ) -> Result<PinnedReservation<'e>> {
        let page_size = engine.pool.page_size();
        let mut estimate = ReservationEstimate {
            engine,
            catalog: *catalog,
            page_size,
            // The allocation maps of the pages that are taken and freed.
            reservation: Reservation { pages: 2, images: 2, ..Reservation::default() },
            pins: Some(Vec::new()),
            created: BTreeSet::new(),
            clears: false,
            path: Vec::new(),
            before: Vec::new(),
            last: PageId::NONE,
        };
        let max_log = engine.log()?.max_payload() / 4;
        let frames = engine.pool.capacity();
        let max_pages = frames - (frames / 4).max(FRAMES_LEFT.min(frames / 2));
        let mut steps = steps.peekable();
        let (all_maps, of_run) = (engine.map_count(), maps_of_longest_run(page_size));
        let maps_of = |reservation: &Reservation| {
            all_maps.min(reservation.runs.saturating_mul(of_run).saturating_add(reservation.new_pages(page_size)))
        };
        while let Some(step) = steps.next() {
            estimate.examine(step, &mut steps)?;
            let reservation = &estimate.reservation;
            let others = reservation.new_pages(page_size) + maps_of(reservation);
            if reservation.pages + others > max_pages || reservation.log > max_log {
                estimate.pins = None;
            }
        }
        let mut reservation = estimate.reservation;
        let maps = maps_of(&reservation);
        reservation.pages += reservation.new_pages(page_size) + maps;
        reservation.images += reservation.new_pages(page_size) + maps;
        reservation.log += maps * MAP_LOG;
        Ok(PinnedReservation { reservation, pins: estimate.pins })
    }

    fn examine<'a>(&mut self, step: Step<'a>, rest: &mut Peekable<impl Iterator<Item = Step<'a>>>) -> Result<()> {
        match step {
            Step::Adopt { .. } => {
                self.reservation.new_bytes += 64;
                self.add(64, 64, true);
            }
            Step::Create { tree } => {
                self.created.insert(tree.root);
                self.pages(1, 1);
                self.add(256, 64, true);
            }
            Step::Drop { tree, .. } => self.note_detached(tree.root, 1)?,
            Step::Clear { tree, lower, upper } => self.clear(tree, lower, upper)?,
            Step::Put { tree, key, .. } | Step::AddToRecord { tree, key, .. } | Step::Remove { tree, key, .. } => {
                self.leaf(step, tree, key, rest)?;
            }
        }
        Ok(())
    }

    fn add(&mut self, log: usize, logical: usize, adds: bool) {
        self.reservation.log += log;
        self.reservation.logical += logical;
        self.reservation.adds |= adds;
    }

    fn pages(&mut self, pages: usize, images: usize) {
        self.reservation.pages += pages;
        self.reservation.images += images;
    }

    /// Adds what `count` new catalog entries of detached subtrees need.
    fn note_detached(&mut self, root: PageId, count: usize) -> Result<()> {
        self.catalog.leaf_for(&self.engine.pages(), &detached_key(root), |_| ())?;
        // Each entry changes a leaf of the catalog and may split it.
        self.pages(2 * count, count);
        self.add(count * 256, 64, false);
        Ok(())
    }

    /// Reads and pins the leaf that `target` names. Adds it and the pages on the path to it: each of these may change
    /// and be merged with its neighbour.
    fn visit<R>(&mut self, tree: &Tree, target: LeafTarget<'_>, look: impl FnOnce(Page<'_>) -> R) -> Result<R> {
        std::mem::swap(&mut self.path, &mut self.before);
        let mut leaf = PageId::NONE;
        let looked = tree.leaf_with_path(&self.engine.pages(), target, &mut self.path, |page| {
            leaf = page.id();
            look(page)
        })?;
        if leaf == self.last {
            return Ok(looked);
        }
        let known = self.path.iter().zip(&self.before).take_while(|(now, before)| now == before).count();
        self.note_leaf(leaf, self.path.len() - known);
        if let Some(pins) = &mut self.pins {
            pins.push(self.engine.pool.pin(leaf)?);
        }
        Ok(looked)
    }

    /// Like [`ReservationEstimate::visit`] for the leaf of a key, without a descent if its place is known.
    fn visit_key<R>(
        &mut self,
        step: &Step<'_>,
        tree: &Tree,
        key: &[u8],
        look: impl FnOnce(Page<'_>) -> R,
    ) -> Result<R> {
        let (hint, pool) = (step.hint(), &self.engine.pool);
        if hint.leaf.is_none() {
            return self.visit(tree, LeafTarget::Covering(key), look);
        }
        let latched = pool.read(hint.leaf)?;
        let page = Page::new(&latched);
        if page.lsn() != hint.lsn || page.id() != hint.leaf {
            drop(latched);
            return self.visit(tree, LeafTarget::Covering(key), look);
        }
        let looked = look(page);
        if hint.leaf != self.last {
            self.note_leaf(hint.leaf, hint.inner.into());
            if let Some(pins) = &mut self.pins {
                let pin = pool.pin_latched(hint.leaf, &latched);
                drop(latched);
                pins.push(pin.map_or_else(|| pool.pin(hint.leaf), Ok)?);
            }
        }
        Ok(looked)
    }

    /// Adds a leaf that may change, and the inner pages on the path to it that were not counted yet, each with a
    /// neighbour, or with the new page of a split.
    fn note_leaf(&mut self, leaf: PageId, inner: usize) {
        self.last = leaf;
        self.pages(1 + 2 * inner, 1 + 2 * inner);
        self.reservation.log += inner * 64;
    }

    /// Adds a page besides the last leaf: the neighbour with which it may be merged when it has lost entries, or the
    /// new page of a split. A put that needs no space changes the leaf alone.
    fn note_neighbour(&mut self) {
        self.pages(1, 0);
    }

    /// Examines a point write and those after it that belong to the same leaf.
    fn leaf<'a>(
        &mut self,
        step: Step<'a>,
        tree: &Tree,
        key: &[u8],
        rest: &mut Peekable<impl Iterator<Item = Step<'a>>>,
    ) -> Result<()> {
        let mut own = Entries::of(tree);
        if self.created.contains(&tree.root) {
            own.add(&step, 0, self.page_size);
            own.may_split = true;
            self.count(&own, 0);
            return Ok(());
        }
        let head = long_key_head(self.page_size);
        let page_size = self.page_size;
        let mut heap = Vec::new();
        let (clears, pages) = (self.clears, self.engine.pages());
        self.visit_key(&step, tree, key, |page| {
            // An earlier removal of a range may remove the entry that is there now.
            let replaced = |step: &Step<'_>| if clears { 0 } else { replaced_bytes(page, step, head) };
            let mut take = |step: Step<'a>| {
                own.add(&step, replaced(&step), page_size);
                if own.out_of_line {
                    heap.push(step);
                }
            };
            take(step);
            let here = |next: &Step<'_>| {
                let target = next.target().filter(|(other, _)| other.root == tree.root);
                target.is_some_and(|(_, key)| key.len() < head && page.below_upper(key))
            };
            while let Some(next) = rest.next_if(here) {
                take(next);
            }
            let growth = tree.layout.leaf.most_growth();
            let grows = growth.map(|of_one| 2 * own.bytes + own.new * of_one + page_size / 8);
            let is_full = grows.is_none_or(|grows| page.free() < grows) || page.count() + own.new > MAX_ENTRIES;
            own.may_split = own.bytes > 0 && is_full || own.removes && tree.layout.leaf.may_grow_on_removal();
            let is_near_full = own.bytes > 0 && page.free() < room_before_split(own.pages, page_size);
            if is_near_full { tree.read_ambiguous_keys(&pages, page) } else { Ok(()) }
        })??;
        if own.may_split || own.removes {
            self.note_neighbour();
            self.reservation.images += usize::from(own.may_split);
        }
        self.read_heap(&heap, own.pages)?;
        self.reservation.runs += own.runs;
        // After a split, a half may have no room for an entry with one of the longest keys. The longest key takes a
        // fifth of a page; a sixth is near enough. The half is then divided again.
        let second_split = if 6 * own.longest > page_size { page_size / 2 } else { 0 };
        let split = if own.may_split { page_size / 2 + second_split + 4 * own.longest + RECORD_LOG } else { 0 };
        let merge = if own.removes { page_size } else { 0 };
        self.count(&own, split.max(merge));
        Ok(())
    }

    /// Adds what the writes to one leaf need. `contents` is the number of log bytes of the leaf's own content.
    fn count(&mut self, own: &Entries, contents: usize) {
        self.pages(own.heap, own.heap);
        self.reservation.new_bytes += own.pages;
        self.reservation.user += own.user;
        let splits = if own.may_split { own.splits } else { 0 };
        self.add(own.log + splits + contents, own.logical, own.adds);
    }

    /// Reads the pages of the key heap that these steps, which change one leaf, need.
    fn read_heap(&self, steps: &[Step<'_>], added: usize) -> Result<()> {
        let puts = steps.iter().any(|step| matches!(step, Step::Put { .. }));
        let room = if puts { room_before_split(added, self.page_size) } else { 0 };
        for (tree, key) in steps.iter().filter_map(Step::target) {
            if tree.read_heap_for(&self.engine.pages(), key, room)? {
                break;
            }
        }
        Ok(())
    }

    /// Examines the removal of a range: the leaves at its ends and, if these are two, the subtrees between them, which
    /// are detached.
    fn clear(&mut self, tree: &Tree, lower: &[u8], upper: Option<&[u8]>) -> Result<()> {
        self.clears = true;
        let keys = lower.len() + upper.map_or(0, <[u8]>::len);
        self.add(64, keys + 64, false);
        self.reservation.user += keys as u64;
        if self.created.contains(&tree.root) {
            return Ok(());
        }
        let head = long_key_head(self.page_size);
        let (entries, within) = self.visit_emptied(tree, LeafTarget::Covering(lower), |page| {
            (page.count(), upper.is_some_and(|upper| upper.len() < head && page.below_upper(upper)))
        })?;
        self.reservation.runs += 2 * entries + 2;
        // A leaf whose keys are out of line may be divided, and keys may be removed from up to 32 pages of the key
        // heap.
        if Entries::of(tree).out_of_line {
            self.pages(32, 32);
            self.add(2 * self.page_size, 0, false);
            self.note_detached(tree.root, 2)?;
        }
        if within {
            return Ok(());
        }
        self.reservation.runs +=
            2 * self.visit_emptied(tree, upper.map_or(LeafTarget::Last, LeafTarget::Before), |page| page.count())?;
        let keys = KeyRange::between(lower, upper);
        let levels = tree.detaching_levels(&self.engine.pages(), &keys)?;
        // A detached subtree gets a new root. An empty subtree takes its place and is merged with its neighbour at each
        // level. The leaf before it gets a new right link.
        let longest = max_inline_key(self.page_size) + 1;
        for level in levels.into_iter().map(usize::from) {
            self.pages(3 + level, 2);
            self.add((1 + level) * (self.page_size + 2 * longest + 128), 0, false);
            self.note_detached(tree.root, 1)?;
        }
        Ok(())
    }

    /// Like [`ReservationEstimate::visit`], for a leaf that may become nearly empty and be merged with its neighbour.
    fn visit_emptied<R>(&mut self, tree: &Tree, target: LeafTarget<'_>, look: impl FnOnce(Page<'_>) -> R) -> Result<R> {
        let last = self.last;
        let looked = self.visit(tree, target, look)?;
        self.note_neighbour();
        if self.last != last {
            self.add(self.page_size + self.page_size / 8, 0, false);
        }
        Ok(looked)
    }
}

/// A leaf with this number of free bytes is not split by puts that need `added` bytes of pages.
fn room_before_split(added: usize, page_size: usize) -> usize {
    2 * added + page_size / 16
}

/// The space that the writes to one leaf need.
#[derive(Default)]
struct Entries {
    /// Bytes of the keys and records of the puts that need space, and the number of these puts.
    bytes: usize,
    new: usize,
    /// Bytes of new pages that they may need.
    pages: usize,
    /// The number of pages of the key heap.
    heap: usize,
    /// Log bytes without those of split pages (`log`), and those of split pages (`splits`).
    log: usize,
    splits: usize,
    logical: usize,
    /// Bytes of keys and values of the user.
    user: u64,
    /// The length of the longest key, as a page keeps it.
    longest: usize,
    removes: bool,
    adds: bool,
    may_split: bool,
    /// The number of runs (of large values or long keys) that may be replaced.
    runs: usize,
    /// True if the keys are out of line, in pages of the key heap.
    out_of_line: bool,
}

/// For a step that puts an entry in a leaf: the bytes of its key and record that replace bytes of an old entry and so
/// take no more space.
fn replaced_bytes(page: Page<'_>, step: &Step<'_>, head: usize) -> usize {
    let Step::Put { key, record, hint, .. } = *step else { return 0 };
    let slot = match hint.leaf {
        leaf if leaf == page.id() && hint.lsn == page.lsn() => Some(usize::from(hint.slot)).filter(|_| hint.there),
        leaf if leaf.is_none() && key.len() <= head => page.search(key).ok(),
        _ => None,
    };
    let old = slot.map(|slot| page.record(slot)).filter(|old| old.large == record.large);
    old.map_or(0, |old| key.len() + old.bytes.len().min(record.bytes.len()))
}

impl Entries {
    /// No writes yet, for a leaf of this tree.
    fn of(tree: &Tree) -> Entries {
        Entries { out_of_line: tree.keys_are_out_of_line(), ..Entries::default() }
    }

    /// Adds a step. `replaced` is the number of bytes of its entry that take no more space in the leaf.
    fn add(&mut self, step: &Step<'_>, replaced: usize, page_size: usize) {
        let Some((tree, key)) = step.target() else { return };
        if matches!(step, Step::AddToRecord { .. }) {
            // The record keeps its length, so the leaf is neither split nor merged.
            self.logical += key.len() + ADD_LOG;
            self.log += ADD_LOG;
            return;
        }
        let inline = max_inline_key(page_size) + 1;
        let kept = key.len().min(inline);
        let (record, value) = match step {
            Step::Put { record, .. } => (record.bytes.len(), large::value_len(*record)),
            _ => (0, 0),
        };
        if tree.root != super::CATALOG_ROOT {
            self.user += key.len() as u64 + value;
        }
        self.longest = self.longest.max(kept);
        let large = match tree.root {
            super::CATALOG_ROOT => key.first() == Some(&super::DICTIONARY_PREFIX),
            _ => tree.layout.records == RecordListKind::Variable,
        };
        // Besides the run of a long key there may be runs of separators.
        self.runs += usize::from(large) + if key.len() >= inline { 3 } else { 0 };
        self.heap += usize::from(self.out_of_line);
        self.logical += key.len() + record + RECORD_LOG / 2;
        self.log += RECORD_LOG;
        if !matches!(step, Step::Put { .. }) {
            self.removes = true;
            return;
        }
        self.adds |= tree.root != super::CATALOG_ROOT;
        self.log += kept + record;
        if replaced == key.len() + record {
            return;
        }
        let entry = kept + record + RECORD_LOG / 2;
        self.bytes += entry;
        self.new += 1;
        // A split leaves two half-full pages, which must fill up before they split again. The longer the entries, the
        // less even the halves. A split also adds a separator to the parent, and both pages repeat their fences.
        self.splits += entry + 4 * entry * entry / page_size + 2 * entry * (4 * kept + 64) / page_size;
        self.pages += entry;
        // A key that is too long for a page has a run of pages, and so may the separators that it changes.
        if key.len() > inline {
            let run = key.len().div_ceil(run_capacity(page_size).max(1));
            self.pages += (1 + 2 * run) * page_size / 2 + 2 * kept;
            self.log += 2 * (key.len() + run * 64) + 4 * kept;
        }
        if self.out_of_line {
            self.log += kept + 64;
            self.pages += kept;
        }
    }
}

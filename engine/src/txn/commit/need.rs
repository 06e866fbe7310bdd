//! What a commit needs before it may change anything: its pages read and kept in memory, room in the log and in the file. All
//! of it is an upper bound: what is found missing later stops all writing.

use super::detached_key;
use super::steps::Step;
use crate::base::limits::{MAX_VALUE, long_key_head, max_inline_key};
use crate::base::{PageId, Result};
use crate::page::{Page, RecordListKind, run_capacity};
use crate::store::Pin;
use crate::tree::{KeyRange, Target, Tree};
use crate::txn::engine::Engine;
use crate::txn::large;
use crate::txn::space::page_ids::ids_per_map;
use std::collections::BTreeSet;
use std::iter::Peekable;

/// Log bytes of a record beyond those of its key and its value.
const RECORD_LOG: usize = 16;
/// Log bytes of a change of an allocation map.
const MAP_LOG: usize = 64;

/// What a commit needs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Need {
    /// Pages that it may change, as one batch.
    pub(in crate::txn) pages: usize,
    /// Changed pages that it may leave. Of those that are merged only one is.
    pub(super) images: usize,
    /// Bytes of its operations in the log.
    pub(in crate::txn) log: usize,
    /// Bytes of its steps in a logical record.
    pub(in crate::txn) logical: usize,
    /// Bytes of the keys and values that it puts or removes.
    pub(super) user: u64,
    /// There is a step that does not give room back.
    pub(super) adds: bool,
    /// So many runs of pages, of large values or long keys, it may free; their pages may be any map's.
    runs: usize,
    /// Bytes that new entries may take of pages of their own, twice over, because these may be half full.
    weight: usize,
}

impl Need {
    /// Pages that it may change and does not find.
    fn new_pages(&self, page_size: usize) -> usize {
        self.weight.div_ceil(page_size / 2)
    }
}

/// Allocation maps that the pages of the longest run can be in.
fn maps_of_longest_run(page_size: usize) -> usize {
    let of_map = run_capacity(page_size).saturating_mul(ids_per_map(page_size) as usize).max(1);
    usize::try_from(MAX_VALUE).map_or(usize::MAX, |most| most / of_map + 2)
}

/// Looks at the steps of a commit, reads what they will change and adds up what they need.
pub(super) struct Survey<'e> {
    engine: &'e Engine,
    catalog: Tree,
    page_size: usize,
    need: Need,
    /// The leaves, in memory until the commit ends; `None`: they are too many for one batch.
    pins: Option<Vec<Pin<'e>>>,
    /// Roots of trees that are yet to be created.
    created: BTreeSet<PageId>,
    /// A range of keys is removed before the steps that follow.
    clears: bool,
    /// The way to the last leaf.
    way: Vec<PageId>,
    /// And that to the one before.
    before: Vec<PageId>,
    /// The last leaf.
    last: PageId,
}

/// What a commit needs, and its leaves, pinned, if they go into one batch.
pub(super) struct Surveyed<'e> {
    pub(super) need: Need,
    pub(super) pins: Option<Vec<Pin<'e>>>,
}

impl<'e> Survey<'e> {
    /// Looks at all steps.
    pub(in crate::txn) fn take<'a>(
        engine: &'e Engine,
        catalog: &Tree,
        steps: impl Iterator<Item = Step<'a>>,
    ) -> Result<Surveyed<'e>> {
        let page_size = engine.pool.page_size();
        let mut survey = Survey {
            engine,
            catalog: *catalog,
            page_size,
            // The maps of the pages that are taken and freed.
            need: Need { pages: 2, images: 2, ..Need::default() },
            pins: Some(Vec::new()),
            created: BTreeSet::new(),
            clears: false,
            way: Vec::new(),
            before: Vec::new(),
            last: PageId::NONE,
        };
        let most_log = engine.log()?.most_payload() / 4;
        let most_pages = engine.pool.capacity() / 2;
        let mut steps = steps.peekable();
        let (all_maps, of_run) = (engine.map_count(), maps_of_longest_run(page_size));
        let maps_of = |need: &Need| all_maps.min(need.runs.saturating_mul(of_run));
        while let Some(step) = steps.next() {
            survey.look_at(step, &mut steps)?;
            let need = &survey.need;
            let others = need.new_pages(page_size) + maps_of(need);
            if need.pages + others > most_pages || need.log > most_log {
                survey.pins = None;
            }
        }
        let mut need = survey.need;
        let maps = maps_of(&need);
        need.pages += need.new_pages(page_size) + maps;
        need.images += need.new_pages(page_size) + maps;
        need.log += maps * MAP_LOG;
        Ok(Surveyed { need, pins: survey.pins })
    }

    fn look_at<'a>(&mut self, step: Step<'a>, rest: &mut Peekable<impl Iterator<Item = Step<'a>>>) -> Result<()> {
        match step {
            Step::Adopt { .. } => {
                self.need.weight += 64;
                self.add(64, 64, true);
            }
            Step::Create { tree } => {
                self.created.insert(tree.root);
                self.pages(1, 1);
                self.add(256, 64, true);
            }
            Step::Drop { tree, .. } => self.note_detached(tree.root, 1)?,
            Step::Clear { tree, lower, upper } => self.clear(tree, lower, upper)?,
            Step::Put { tree, key, .. } | Step::Remove { tree, key, .. } => self.leaf(step, tree, key, rest)?,
        }
        Ok(())
    }

    fn add(&mut self, log: usize, logical: usize, adds: bool) {
        self.need.log += log;
        self.need.logical += logical;
        self.need.adds |= adds;
    }

    fn pages(&mut self, pages: usize, images: usize) {
        self.need.pages += pages;
        self.need.images += images;
    }

    /// The catalog will name so many detached subtrees.
    fn note_detached(&mut self, root: PageId, count: usize) -> Result<()> {
        self.catalog.leaf_for(&self.engine.pages(), &detached_key(root), |_| ())?;
        // Each changes a leaf of the catalog, and some split it.
        self.pages(2 * count, count);
        self.add(count * 256, 64, false);
        Ok(())
    }

    /// Reads the leaf that `target` names and keeps it; adds the pages on the way there, each of which may change and be merged
    /// with its neighbour.
    fn visit<R>(&mut self, tree: &Tree, target: Target<'_>, look: impl FnOnce(Page<'_>) -> R) -> Result<R> {
        std::mem::swap(&mut self.way, &mut self.before);
        let mut leaf = PageId::NONE;
        let looked = tree.way_to(&self.engine.pages(), target, &mut self.way, |page| {
            leaf = page.id();
            look(page)
        })?;
        if leaf == self.last {
            return Ok(looked);
        }
        self.last = leaf;
        let known = self.way.iter().zip(&self.before).take_while(|(now, before)| now == before).count();
        let pages = 1 + self.way.len() - known;
        self.pages(2 * pages, pages);
        self.need.log += (self.way.len() - known) * 64;
        if let Some(pins) = &mut self.pins {
            pins.push(self.engine.pool.pin(leaf)?);
        }
        Ok(looked)
    }

    /// A point write, and those after it that go to the same leaf.
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
        let mut heap = if own.out_of_line { vec![step] } else { Vec::new() };
        let clears = self.clears;
        self.visit(tree, Target::Covering(key), |page| {
            // A range that is removed before may take what is there.
            let replaced = |step: &Step<'_>| if clears { 0 } else { replaced_bytes(page, step, head) };
            own.add(&step, replaced(&step), page_size);
            let here = |next: &Step<'_>| {
                let target = next.target().filter(|(other, _)| other.root == tree.root);
                target.is_some_and(|(_, key)| key.len() < head && page.below_upper(key))
            };
            while let Some(next) = rest.next_if(here) {
                own.add(&next, replaced(&next), page_size);
                if own.out_of_line {
                    heap.push(next);
                }
            }
            let grows = 2 * own.bytes + page_size / 8;
            own.may_split = own.bytes > 0 && (!tree.layout.leaf.adds_up() || page.free() < grows);
        })?;
        self.read_heap(&heap, own.pages)?;
        self.need.runs += own.runs;
        let split = if own.may_split { page_size / 2 + 4 * own.longest + RECORD_LOG } else { 0 };
        let merge = if own.removes { page_size } else { 0 };
        self.count(&own, split.max(merge));
        Ok(())
    }

    /// Adds the entries of one leaf; `contents`: log bytes of the leaf's own content.
    fn count(&mut self, own: &Entries, contents: usize) {
        self.pages(own.heap, own.heap);
        self.need.weight += own.pages;
        self.need.user += own.user;
        let splits = if own.may_split { own.splits } else { 0 };
        self.add(own.log + splits + contents, own.logical, own.adds);
    }

    /// Reads what these steps, which change one leaf, need of the key heap.
    fn read_heap(&self, steps: &[Step<'_>], added: usize) -> Result<()> {
        let puts = steps.iter().any(|step| matches!(step, Step::Put { .. }));
        let room = if puts { 2 * added + self.page_size / 16 } else { 0 };
        for (tree, key) in steps.iter().filter_map(Step::target) {
            if tree.read_heap_for(&self.engine.pages(), key, room)? {
                break;
            }
        }
        Ok(())
    }

    /// A range: the leaves at its ends, and, if they are two, what is detached between them.
    fn clear(&mut self, tree: &Tree, lower: &[u8], upper: Option<&[u8]>) -> Result<()> {
        self.clears = true;
        let keys = lower.len() + upper.map_or(0, <[u8]>::len);
        self.add(64, keys + 64, false);
        self.need.user += keys as u64;
        if self.created.contains(&tree.root) {
            return Ok(());
        }
        let head = long_key_head(self.page_size);
        let (entries, within) = self.visit_thinned(tree, Target::Covering(lower), |page| {
            (page.count(), upper.is_some_and(|upper| upper.len() < head && page.below_upper(upper)))
        })?;
        self.need.runs += 2 * entries + 2;
        // Of keys that are out of line some get a leaf of their own, or are taken out of so many pages.
        if Entries::of(tree).out_of_line {
            self.pages(32, 32);
            self.add(2 * self.page_size, 0, false);
            self.note_detached(tree.root, 2)?;
        }
        if within {
            return Ok(());
        }
        self.need.runs +=
            2 * self.visit_thinned(tree, upper.map_or(Target::Last, Target::Before), |page| page.count())?;
        let keys = KeyRange { lower: lower.to_vec(), upper: upper.map(<[u8]>::to_vec) };
        let levels = tree.detaching_levels(&self.engine.pages(), &keys)?;
        // The root of what is detached is new, and so is the empty subtree in its place, which is merged with what is beside it
        // at each level. Besides, the leaf before it says that it comes next.
        let longest = max_inline_key(self.page_size) + 1;
        for level in levels.into_iter().map(usize::from) {
            self.pages(3 + level, 2);
            self.add((1 + level) * (self.page_size + 2 * longest + 128), 0, false);
            self.note_detached(tree.root, 1)?;
        }
        Ok(())
    }

    /// As [`Survey::visit`], of a leaf that may become thin, and then be merged with its neighbour.
    fn visit_thinned<R>(&mut self, tree: &Tree, target: Target<'_>, look: impl FnOnce(Page<'_>) -> R) -> Result<R> {
        let last = self.last;
        let looked = self.visit(tree, target, look)?;
        if self.last != last {
            self.add(self.page_size + self.page_size / 8, 0, false);
        }
        Ok(looked)
    }
}

/// What the writes to one leaf need.
#[derive(Default)]
struct Entries {
    /// Bytes of the entries that are put, keys and records.
    bytes: usize,
    /// Bytes of pages that they may need beyond the leaf.
    pages: usize,
    /// Pages of the key heap.
    heap: usize,
    /// Log bytes, without those of pages that are split, and those.
    log: usize,
    splits: usize,
    logical: usize,
    /// Bytes of keys and values.
    user: u64,
    /// The longest key that a page may keep.
    longest: usize,
    removes: bool,
    adds: bool,
    may_split: bool,
    /// Runs of large values, or of long keys, that were there.
    runs: usize,
    /// The keys are in pages of the key heap as well.
    out_of_line: bool,
}

/// Of the entry that a step puts in a leaf: bytes of its key and its record that are there already, and take no more room.
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
    /// None yet, in a leaf of this tree.
    fn of(tree: &Tree) -> Entries {
        Entries { out_of_line: tree.keys_are_out_of_line(), ..Entries::default() }
    }

    /// Adds a step; so many bytes of its entry are in the leaf already.
    fn add(&mut self, step: &Step<'_>, replaced: usize, page_size: usize) {
        let Some((tree, key)) = step.target() else { return };
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
        let large = tree.layout.records == RecordListKind::Variable && tree.root != super::CATALOG_ROOT;
        // Beside a long key's own run there may be those of separators.
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
        // A page that is split is half as full, and has to be filled before it is split again: the longer the entries, the
        // less evenly it is divided. A split puts a separator above, and says the fences again.
        self.splits += entry + 4 * entry * entry / page_size + 2 * entry * (4 * kept + 64) / page_size;
        self.pages += entry;
        // A key too long for a page has pages of its own, and so may the separators that it pushes aside.
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

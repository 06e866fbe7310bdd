//! Commit: a transaction's steps become page changes and one batch in the log (or, for a large transaction, one
//! logical record and several batches).
//!
//! Everything that can fail without harm fails first: reading and pinning the pages, reserving log space. A failure
//! after the first change poisons the engine.

use super::appends::Append;
use super::applier::{Applier, FinishedBatch, Pages};
use super::engine::{Durability, Engine};
use super::large;
use super::logical::{self, LogicalTransaction};
use super::reclaim::{Runs, Waiting};
use super::record::OPERATIONS;
use super::versions::Detached;
use crate::base::limits::{long_key_head, max_inline_key};
use crate::base::watermark::Watermark;
use crate::base::{Error, Lsn, PageId, Result, TableId};
use crate::log::BatchBuffer;
use crate::page::{Page, Record, run_capacity};
use crate::store::{Location, Pin};
use crate::tree::{Near, Put, Removal, Stretch, Tree};
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

/// The root of the catalog, for ever.
pub(crate) const CATALOG_ROOT: PageId = PageId(1);
/// Catalog keys that begin with this byte name detached subtrees: the byte, then the root page id, big-endian.
pub(crate) const DETACHED_PREFIX: u8 = 1;

/// One step of a transaction, in the order in which they are applied.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step<'a> {
    /// A page written outside the log becomes part of the database.
    Adopt { page: PageId, location: Option<Location> },
    /// A new, empty tree on a reserved root page.
    Create { tree: &'a Tree },
    /// A tree is unlinked whole.
    Drop { tree: &'a Tree, runs: Runs },
    /// A range of keys is removed.
    Clear { tree: &'a Tree, range: &'a Stretch },
    /// A key gets a record. `near`: where its place is, or [`Near::NONE`]; see [`super::appends::EntryDelta`].
    Put { tree: &'a Tree, key: &'a [u8], record: Record<'a>, near: Near },
    /// A key is removed.
    Remove { tree: &'a Tree, key: &'a [u8], near: Near },
}

/// Log bytes of a commit beyond those of its keys and records: pages that split, and the catalog.
const COMMIT_LOG: usize = 256 << 10;
/// The most log bytes that are reserved for pages that split or merge.
const MOST_CONTENTS: usize = 64 << 20;
/// Log bytes and pages kept for transactions that only remove.
const RELIEF_LOG: usize = 1 << 20;
pub(super) const RELIEF_PAGES: usize = 32;

impl<'a> Step<'a> {
    /// True for what gives room back, or will, and for what the catalog notes about that.
    fn relieves(&self) -> bool {
        match self {
            Step::Drop { .. } | Step::Clear { .. } | Step::Remove { .. } => true,
            Step::Put { tree, .. } => tree.root == CATALOG_ROOT,
            Step::Adopt { .. } | Step::Create { .. } => false,
        }
    }

    /// The tree and key whose leaf the step changes, if it is one.
    fn target(&self) -> Option<(&'a Tree, &'a [u8])> {
        match *self {
            Step::Put { tree, key, .. } | Step::Remove { tree, key, .. } => Some((tree, key)),
            _ => None,
        }
    }

    /// Where the key's place is, if that is known.
    fn near(&self) -> Near {
        match *self {
            Step::Put { near, .. } | Step::Remove { near, .. } => near,
            _ => Near::NONE,
        }
    }
}

/// How many steps ahead of the one being applied the leaves are prefetched.
const AHEAD: usize = 4;

impl Engine {
    /// Carries out a transaction. The caller holds the writer's lock and gives it up after this returns; waiting for
    /// the device is [`Engine::settle`]'s.
    ///
    /// `appends` come behind all steps; a logged transaction has them as steps.
    pub(crate) fn commit(&self, steps: &[Step<'_>], appends: &[Append<'_>], catalog: &Tree) -> Result<Lsn> {
        debug_assert!(appends.is_empty() || !self.is_logged(), "what is appended is not in the log");
        self.check_poison()?;
        self.prune();
        let mut created = BTreeSet::new();
        let (pins, covered) = self.pin(steps, &mut created)?;
        if self.is_logged() {
            let rest = steps.get(covered..).unwrap_or_default();
            self.make_room(steps, pins.len() + self.count_leaves(rest, &mut created)?, !rest.is_empty())?;
            if steps.iter().any(|step| matches!(step, Step::Adopt { location: Some(_), .. }))
                && let Some(store) = &self.store
            {
                // After a failed sync the store takes no checkpoint any more, so the log could only grow.
                store.sync().inspect_err(|cause| self.poison(cause))?;
            }
        }
        let outcome = if covered == steps.len() {
            self.apply_batch(steps, appends, catalog, None)
        } else {
            drop(pins);
            self.commit_large(steps, catalog)
        };
        outcome.inspect_err(|cause| self.poison(cause))
    }

    /// Reserves what the log and, at the next checkpoint, the file will need, so that neither fails for want of space once
    /// pages have changed. Some of it is kept for transactions that only remove: on a full device they are the way out.
    fn make_room(&self, steps: &[Step<'_>], leaves: usize, large: bool) -> Result<()> {
        let bytes: usize = steps.iter().map(|step| self.weight(step)).sum();
        let page_size = self.pool.page_size();
        let relieves = steps.iter().all(Step::relieves);
        let kept = if relieves { 0 } else { RELIEF_LOG };
        // Each leaf may be split or merged, which logs the new content of a page. In a large transaction hardly all are.
        let contents = (leaves * page_size).min(MOST_CONTENTS);
        // A large transaction is in the log twice, and the pages that its new entries fill are split in their turn.
        let entries = if large { 3 * bytes } else { 2 * bytes };
        self.log()?.reserve(entries + contents + COMMIT_LOG + kept)?;
        let Some(store) = &self.store else { return Ok(()) };
        // Besides, new pages take half of theirs at least, and each may change a page above it.
        let heap: usize = steps.iter().map(heap_pages).sum();
        let images = 2 * leaves + heap + 4 * bytes / page_size + if relieves { 0 } else { RELIEF_PAGES };
        store.ensure_room(self.pool.dirty_pages() + images as u64)
    }

    /// Reserves again what transactions that only remove rely on, if there is room for it.
    pub(crate) fn reserve_relief(&self) -> Result<()> {
        match self.log()?.reserve(RELIEF_LOG + COMMIT_LOG) {
            Err(Error::Full { .. }) => Ok(()),
            reserved => reserved,
        }
    }

    /// A transaction that needs too much of the pool at once: the log gets it whole, then it is applied piece by piece.
    fn commit_large(&self, steps: &[Step<'_>], catalog: &Tree) -> Result<Lsn> {
        {
            // A checkpoint must not begin behind the record and before it is known to be needed.
            let _between_batches = self.apply.lock();
            let start = logical::write(self.log()?, steps)?;
            self.unfinished.store(start.0, Ordering::Release);
        }
        self.apply_pieces(steps, 0, catalog)
    }

    /// Applies the steps of a large transaction from `done` on.
    pub(crate) fn apply_pieces(&self, steps: &[Step<'_>], mut done: usize, catalog: &Tree) -> Result<Lsn> {
        loop {
            let rest = steps.get(done..).unwrap_or_default();
            let (_pins, covered) = self.pin(rest, &mut BTreeSet::new())?;
            let piece = rest.get(..covered.max(1)).unwrap_or(rest);
            done += piece.len();
            let last = done >= steps.len();
            let end = self.apply_batch(piece, &[], catalog, Some((done as u64, last)))?;
            if last {
                self.unfinished.store(u64::MAX, Ordering::Release);
                return Ok(end);
            }
        }
    }

    /// Reads the leaves that the steps will change, piece by piece, and says how many they are: what a large transaction
    /// meets there must be met before the log has it.
    fn count_leaves(&self, mut steps: &[Step<'_>], created: &mut BTreeSet<PageId>) -> Result<usize> {
        let mut leaves = 0;
        while !steps.is_empty() {
            let (pins, covered) = self.pin(steps, created)?;
            leaves += pins.len();
            steps = steps.get(covered.max(1)..).unwrap_or_default();
        }
        Ok(leaves)
    }

    /// Bytes of pages that a step may need beyond the leaf that it changes: two to a byte of new content. A key too long for
    /// a page has pages of its own, and so may the separators that it pushes aside.
    fn weight(&self, step: &Step<'_>) -> usize {
        let page_size = self.pool.page_size();
        let long = step.target().map_or(0, |(_, key)| key.len());
        let runs = match long > max_inline_key(page_size) {
            true => 1 + 2 * long.div_ceil(run_capacity(page_size).max(1)),
            false => 0,
        };
        step_bytes(step) + runs * page_size / 2
    }

    /// Reads and pins the leaves that the steps will change, as long as they take at most a quarter of the pool;
    /// returns how many steps that covers. `created` are the roots of trees that are yet to be created.
    fn pin(&self, steps: &[Step<'_>], created: &mut BTreeSet<PageId>) -> Result<(Vec<Pin<'_>>, usize)> {
        let mut pins = Vec::new();
        if !self.is_logged() {
            return Ok((pins, steps.len()));
        }
        // A quarter for leaves; splits and the inner pages on the way find room in the rest.
        let most = (self.pool.capacity() / 4).max(1);
        // New entries may fill pages of their own; half a page of them is taken for one.
        let half_page = self.pool.page_size() / 2;
        let mut weight = 0;
        let mut index = 0;
        while let Some(step) = steps.get(index) {
            let first = index;
            weight += self.weight(step) + heap_pages(step) * half_page;
            if pins.len() + weight / half_page >= most && index > 0 {
                return Ok((pins, index));
            }
            index += 1;
            if let Step::Create { tree } = step {
                created.insert(tree.root);
            }
            let Some((tree, key)) = step.target() else { continue };
            if created.contains(&tree.root) {
                continue;
            }
            let mut leaf = PageId::NONE;
            tree.leaf_for(&Pages(&self.pool), key, |page| {
                leaf = page.id();
                while pins.len() + weight / half_page < most
                    && let Some(step) = steps.get(index)
                    && let Some((next_tree, next)) = step.target()
                    && next_tree.root == tree.root
                    && self.covers(page, next)
                {
                    weight += self.weight(step) + heap_pages(step) * half_page;
                    index += 1;
                }
            })?;
            pins.push(self.pool.pin(leaf)?);
            if tree.layout.leaf.keeps_keys_apart() {
                self.read_heap(steps.get(first..index).unwrap_or_default())?;
            }
        }
        Ok((pins, index))
    }

    /// Reads what these steps, which change one leaf, need of the key heap.
    fn read_heap(&self, steps: &[Step<'_>]) -> Result<()> {
        let puts = steps.iter().filter(|step| matches!(step, Step::Put { .. }));
        let added: usize = puts.map(|step| self.weight(step)).sum();
        let room = if added > 0 { 2 * added + self.pool.page_size() / 16 } else { 0 };
        for (tree, key) in steps.iter().filter_map(Step::target) {
            if tree.read_heap_for(&Pages(&self.pool), key, room)? {
                break;
            }
        }
        Ok(())
    }

    /// Applies steps as one batch and appends it to the log. Returns the batch's end.
    fn apply_batch(
        &self,
        steps: &[Step<'_>],
        appends: &[Append<'_>],
        catalog: &Tree,
        progress: Option<(u64, bool)>,
    ) -> Result<Lsn> {
        let mut clock = self.apply.lock();
        let start = if self.is_logged() { self.log()?.next_lsn() } else { *clock };
        let applier = Applier::new(self, start, BatchBuffer::new());
        // An earlier piece of the transaction may have freed pages whose ids are taken again.
        let near_holds = progress.is_none();
        let near = |step: &Step<'_>| {
            let near = Some(step.near()).filter(|near| near_holds && !applier.has_freed(near.leaf));
            near.unwrap_or(Near::NONE)
        };
        let mut rest = steps;
        while let Some(step) = rest.first() {
            if let Some(next) = rest.get(AHEAD).map(|step| step.near().leaf).filter(|next| !next.is_none()) {
                self.pool.prefetch(next);
            }
            let done = self.apply_run(&applier, rest, near)?;
            if done == 0 {
                self.apply_step(&applier, step, near(step), catalog)?;
            }
            rest = rest.get(done.max(1)..).unwrap_or_default();
        }
        appends.iter().try_for_each(|append| self.append(&applier, append))?;
        if let Some((done, last)) = progress {
            applier.progress(done, last);
        }
        let end = self.append_batch(applier.finish(), start)?;
        *clock = end;
        Ok(end)
    }

    /// Puts a finished batch in the log and lets go of what it freed. Returns the batch's end.
    pub(crate) fn append_batch(&self, finished: FinishedBatch, start: Lsn) -> Result<Lsn> {
        let FinishedBatch { mut batch, ops, freed, held_back } = finished;
        let end = match self.log.get() {
            Some(log) => log.append_buffer(OPERATIONS, &mut batch)?,
            None => start.plus(ops + 2),
        };
        self.release_pages(&freed);
        if !held_back.is_empty() {
            self.deferred.lock().push_back((start.plus(1), held_back));
        }
        Ok(end)
    }

    /// Applies what recovery found unfinished of a large transaction.
    pub(crate) fn finish_large(&self, transaction: &LogicalTransaction, catalog: &Tree) -> Result<Lsn> {
        self.unfinished.store(transaction.start.0, Ordering::Release);
        self.apply_pieces(&transaction.steps(), transaction.done, catalog)
    }

    /// Carries out the first of these steps together, if they put several new entries in one leaf; says how many.
    fn apply_run<'s>(
        &self,
        applier: &Applier<'_>,
        steps: &[Step<'s>],
        near: impl Fn(&Step<'s>) -> Near,
    ) -> Result<usize> {
        let Some(&Step::Put { tree, .. }) = steps.first() else { return Ok(0) };
        let puts = steps.iter().map_while(|step| match *step {
            Step::Put { tree: of, key, record, .. } if of.root == tree.root => {
                Some(Put { key, record, near: near(step) })
            }
            _ => None,
        });
        tree.put_run(applier, puts, |entries| {
            self.versions.add_new(tree.table, applier.event_lsn(), entries.iter().map(|entry| entry.key));
            Ok(())
        })
    }

    /// `near`: where the key's place was, in a leaf that is still one of the tree.
    fn apply_step(&self, applier: &Applier<'_>, step: &Step<'_>, near: Near, catalog: &Tree) -> Result<()> {
        match *step {
            Step::Adopt { page, location } => applier.adopt(page, location),
            Step::Create { tree } => {
                let mut page = applier.adopt_for_format(tree.root)?;
                tree.format(applier, &mut page)
            }
            Step::Drop { tree, runs } => self.file_detached(applier, catalog, tree, runs),
            Step::Clear { tree, range } => self.clear(applier, catalog, tree, range),
            Step::Put { tree, key, record, .. } => {
                let before = |old: Option<Record<'_>>| self.note_before(applier, tree.table, key, old);
                tree.put_near(applier, near, key, record, before).map(drop)
            }
            Step::Remove { tree, key, .. } => {
                let before = |old: Record<'_>| self.note_before(applier, tree.table, key, Some(old));
                tree.remove_near(applier, near, key, before).map(drop)
            }
        }
    }

    /// Files a before-image, and frees the run of a large value once no snapshot can want it.
    pub(crate) fn note_before(
        &self,
        applier: &Applier<'_>,
        table: TableId,
        key: &[u8],
        old: Option<Record<'_>>,
    ) -> Result<()> {
        self.versions.add(table, key, applier.event_lsn(), old);
        match old {
            Some(old) if old.large => large::free(self, applier, &[old]),
            _ => Ok(()),
        }
    }

    fn clear(&self, applier: &Applier<'_>, catalog: &Tree, tree: &Tree, range: &Stretch) -> Result<()> {
        let before = |removal: Removal<'_>| match removal {
            Removal::Entry { key, record } => self.note_before(applier, tree.table, key, Some(record)),
            Removal::Subtree(subtree) => {
                let detached = Detached {
                    lsn: applier.event_lsn(),
                    root: subtree.root,
                    lower: subtree.lower.clone(),
                    upper: subtree.upper.clone(),
                };
                self.versions.add_detached(tree.table, detached);
                Ok(())
            }
        };
        let removed = tree.remove_range(applier, range, before)?;
        for subtree in &removed.detached {
            self.file_detached(applier, catalog, &Tree { root: subtree.root, ..*tree }, Runs::Free)?;
        }
        Ok(())
    }

    /// Notes in the catalog that a subtree waits to be freed.
    fn file_detached(&self, applier: &Applier<'_>, catalog: &Tree, subtree: &Tree, runs: Runs) -> Result<()> {
        let [a, b, c, d] = subtree.table.0.to_le_bytes();
        let record = Record { bytes: &[a, b, c, d, runs as u8], large: false };
        let key = detached_key(subtree.root);
        let before = |old: Option<Record<'_>>| self.note_before(applier, catalog.table, &key, old);
        catalog.put(applier, &key, record, before)?;
        let waiting = Waiting { since: applier.event_lsn(), table: subtree.table, runs };
        self.detached.lock().insert(subtree.root, waiting);
        Ok(())
    }

    /// The end of the last batch; the caller holds the writer's lock.
    pub(crate) fn last_end(&self) -> Lsn {
        *self.apply.lock()
    }

    /// Says that a commit waits for the device; to be called before the writer's lock is given up, so that no later
    /// commit, whose publishing makes this one visible as well, overtakes it.
    pub(crate) fn announce(&self, end: Lsn, durability: Durability) {
        if durability == Durability::Commit {
            self.awaited.fetch_max(end.0, Ordering::AcqRel);
        }
    }

    /// Waits until a commit that ends at `end`, and what was announced before it, is as durable as asked, then makes it
    /// visible.
    pub(crate) fn settle(&self, end: Lsn, durability: Durability) -> Result<()> {
        if let Some(log) = self.log.get() {
            let target = match durability {
                Durability::Commit => end,
                Durability::Interval | Durability::None => Lsn(self.awaited.load(Ordering::Acquire)),
            };
            if log.durable() < target {
                log.make_durable(target).inspect_err(|cause| self.poison(cause))?;
            }
        }
        self.snapshots.publish(end);
        Ok(())
    }

    /// True if a key above those that led to `leaf` lies in it, too; false also where that takes more than a look.
    fn covers(&self, leaf: Page<'_>, key: &[u8]) -> bool {
        key.len() < long_key_head(self.pool.page_size()) && leaf.below_upper(key)
    }
}

/// The catalog key under which a detached subtree waits.
pub(crate) fn detached_key(root: PageId) -> [u8; 5] {
    let [a, b, c, d] = root.0.to_be_bytes();
    [DETACHED_PREFIX, a, b, c, d]
}

/// Pages of the key heap that a step may change.
fn heap_pages(step: &Step<'_>) -> usize {
    usize::from(step.target().is_some_and(|(tree, _)| tree.layout.leaf.keeps_keys_apart()))
}

fn step_bytes(step: &Step<'_>) -> usize {
    match step {
        Step::Put { key, record, .. } => key.len() + record.bytes.len() + 16,
        Step::Remove { key, .. } => key.len() + 16,
        Step::Clear { range, .. } => range.lower.len() + range.upper.as_ref().map_or(0, Vec::len) + 64,
        _ => 64,
    }
}

//! The version store: before-images of what changed since the oldest open snapshot, beside the pages and never in
//! them.
//!
//! An event is filed *before* its page changes, so a reader that finds a leaf newer than its snapshot always finds
//! here what it must undo. Nothing here touches a page.
//!
//! A batch's events first lie in runs (`version_run`), which cost next to nothing to file and to forget: mostly no
//! snapshot ever asks for them. Those that one still may ask for at the next pruning are filed key by key (`kept_events`).
//! Pruning works in pieces, and nobody waits for longer than one of them takes.

pub(super) mod detached_ranges;
pub(super) mod kept_events;
pub(super) mod key_events;
mod prune;
pub(super) mod range_pieces;
pub(super) mod snapshots;
pub(super) mod version_run;

use crate::base::{Lsn, TableId};
use crate::page::Record;
use crate::tree::KeyRange;
use detached_ranges::{Detached, DetachedRanges, Route};
use kept_events::{Gone, KeptEvents};
use parking_lot::RwLock;
use range_pieces::At;
use snapshots::{Look, Snapshots};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use version_run::VersionRun;

/// A record as a leaf keeps it, owned: the bytes themselves, or the pointer to a run of pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OwnedRecord {
    pub(crate) bytes: Box<[u8]>,
    pub(crate) large: bool,
}

impl OwnedRecord {
    /// The record, borrowed.
    pub(crate) fn view(&self) -> Record<'_> {
        Record { bytes: &self.bytes, large: self.large }
    }
}

impl From<Record<'_>> for OwnedRecord {
    fn from(record: Record<'_>) -> OwnedRecord {
        OwnedRecord { bytes: record.bytes.into(), large: record.large }
    }
}

/// What a key had before an event: its record, or nothing.
pub(crate) type Before = Option<OwnedRecord>;

#[derive(Default)]
struct Inner {
    /// Events filed key by key: earlier ones than those in runs.
    kept: KeptEvents,
    /// Events in commit order.
    runs: VecDeque<VersionRun>,
    detached: DetachedRanges,
}

/// More runs than this are filed key by key: each look goes through all of them.
const MAX_RUNS: usize = 64;

/// What pruning has done.
pub(crate) struct Pruned {
    pub(crate) gone: Gone,
    /// All has been sorted that no new snapshot can ask for.
    pub(crate) sorted: bool,
    /// Nothing is left to forget.
    pub(crate) done: bool,
}

/// What is kept for open snapshots.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HeldBack {
    /// Point events, and those in runs, which mostly go with the next commit.
    pub(crate) events: usize,
    /// Bytes of memory, without those of runs.
    pub(crate) bytes: usize,
    /// Bytes of runs.
    pub(crate) run_bytes: usize,
}

impl Inner {
    fn add(&mut self, table: TableId, key: &[u8], lsn: Lsn, before: Option<Record<'_>>) {
        if let Some(run) = self.runs.back_mut().filter(|run| run.takes(table, lsn, key)) {
            run.push(key, before);
            return;
        }
        if self.runs.len() >= MAX_RUNS {
            for mut run in self.runs.drain(..) {
                // A large record of a second change at one LSN cannot be: a transaction changes each key once.
                self.kept.file(&mut run, None, usize::MAX, &mut Gone::default());
            }
        }
        let mut run = VersionRun::new(table, lsn);
        run.push(key, before);
        self.runs.push_back(run);
    }

    /// Sorts up to `most` of the events that no new snapshot can ask for any more: those that an open one may ask for are
    /// filed key by key, the others forgotten. Says how many are left of `most`.
    fn sort(&mut self, snapshots: &Snapshots, look: &Look, most: usize, gone: &mut Gone) -> usize {
        let mut left = most - self.detached.see(snapshots, look.visible, most, gone);
        left -= self.kept.see(snapshots, look.visible, left, gone);
        while left > 0
            && let Some(mut run) = self.runs.pop_front_if(|run| run.lsn() <= look.visible)
        {
            let asked = look.oldest.filter(|oldest| *oldest < run.lsn());
            let Some((oldest, newest)) = asked.zip(snapshots.newest_before(run.lsn())) else {
                gone.runs.push(run);
                continue;
            };
            self.kept.note_oldest(oldest);
            left -= self.kept.file(&mut run, Some(newest), left, gone);
            if run.left() > 0 {
                self.runs.push_front(run);
            }
        }
        left
    }

    /// The runs that tell a snapshot of a table's events before `until`.
    fn runs_for(&self, table: TableId, snapshot: Lsn, until: Lsn) -> impl Iterator<Item = &VersionRun> {
        self.runs.iter().filter(move |run| run.table() == table && run.lsn() > snapshot && run.lsn() < until)
    }
}

/// The version store: before-images for the open snapshots.
#[derive(Default)]
pub(crate) struct Versions {
    inner: RwLock<Inner>,
    /// Something is kept for an open snapshot, so that there is something to forget when one closes.
    holding: AtomicBool,
}

impl Versions {
    /// Files what `key` had before the change at `lsn`. A second change of the key at the same LSN keeps the first.
    pub(crate) fn add(&self, table: TableId, key: &[u8], lsn: Lsn, before: Option<Record<'_>>) {
        self.inner.write().add(table, key, lsn, before);
    }

    /// Files that keys, which are in order, had nothing before the change at `lsn`.
    pub(crate) fn add_new<'k>(&self, table: TableId, lsn: Lsn, mut keys: impl Iterator<Item = &'k [u8]>) {
        let Some(first) = keys.next() else { return };
        let mut inner = self.inner.write();
        inner.add(table, first, lsn, None);
        // The run that has the first takes all that follow.
        if let Some(run) = inner.runs.back_mut() {
            run.push_new(keys);
        }
    }

    /// Files that a range of keys was detached.
    pub(crate) fn add_detached(&self, table: TableId, range: Detached) {
        self.inner.write().detached.add(table, range);
    }

    /// What `key` had at `snapshot`: `None` if no event since tells, so that the tree is right.
    pub(crate) fn point(&self, table: TableId, key: &[u8], snapshot: Lsn, until: Lsn) -> Option<Before> {
        let inner = self.inner.read();
        let filed = || inner.kept.point(table, key, snapshot, until).cloned();
        let in_run = |run: &VersionRun| Some(run.get(key)?.map(OwnedRecord::from));
        // What is filed key by key is older than what is in runs.
        filed().or_else(|| inner.runs_for(table, snapshot, until).find_map(in_run))
    }

    /// Where `snapshot` finds what is at a position, if that was detached since.
    pub(crate) fn route(&self, table: TableId, at: At<'_>, snapshot: Lsn) -> Option<Route> {
        self.inner.read().detached.route(table, at, snapshot)
    }

    /// Cuts a range around a position so that it is clear of every range detached since `snapshot`; only for
    /// a position that [`Versions::route`] sends nowhere else.
    pub(crate) fn clear_range(&self, table: TableId, at: At<'_>, snapshot: Lsn, key_range: &mut KeyRange) {
        self.inner.read().detached.clear_range(table, at, snapshot, key_range);
    }

    /// The point events of `[from, to)` that `snapshot` must undo, first event of each key, in key order.
    pub(crate) fn points(
        &self,
        table: TableId,
        from: &[u8],
        to: Option<&[u8]>,
        snapshot: Lsn,
        until: Lsn,
    ) -> Vec<(Arc<[u8]>, Before)> {
        let inner = self.inner.read();
        if to.is_some_and(|to| to <= from) {
            return Vec::new();
        }
        let filed = inner.kept.points(table, (from, to), (snapshot, until));
        let mut runs = inner.runs_for(table, snapshot, until).peekable();
        if runs.peek().is_none() {
            return filed.collect();
        }
        let mut found: BTreeMap<Arc<[u8]>, Before> = filed.collect();
        for (key, before) in runs.flat_map(|run| run.range(from, to)) {
            if !found.contains_key(key) {
                found.insert(key.into(), before.map(OwnedRecord::from));
            }
        }
        found.into_iter().collect()
    }

    /// Forgets what no snapshot can ask for, looking at up to `most` events. Those of batches that new snapshots do not see
    /// yet stay in their runs: mostly they are forgotten before anybody asks.
    pub(crate) fn prune(&self, snapshots: &Snapshots, most: usize) -> Pruned {
        let mut gone = Gone::default();
        let mut guard = self.inner.write();
        let inner = &mut *guard;
        // Under the lock, as is what is made of it: a snapshot that closes later is told to whoever looks next.
        let mut look = snapshots.look();
        inner.detached.close(&look.closed);
        inner.kept.close(std::mem::take(&mut look.closed));
        let left = inner.sort(snapshots, &look, most, &mut gone);
        inner.kept.forget(snapshots, left, &mut gone);
        inner.detached.forget(snapshots, left, &mut gone);
        self.holding.store(inner.kept.len() > 0 || !inner.detached.is_empty(), Ordering::Release);
        let done = left > 0 && !inner.kept.is_closing() && !inner.detached.is_closing();
        Pruned { gone, sorted: left > 0, done }
    }

    /// True if something may be kept for an open snapshot.
    pub(crate) fn is_holding(&self) -> bool {
        self.holding.load(Ordering::Acquire)
    }

    /// What is kept for open snapshots.
    pub(crate) fn held_back(&self) -> HeldBack {
        let inner = self.inner.read();
        HeldBack {
            events: inner.kept.len() + inner.runs.iter().map(VersionRun::left).sum::<usize>(),
            bytes: inner.kept.bytes() + inner.detached.bytes(),
            run_bytes: inner.runs.iter().map(VersionRun::bytes).sum(),
        }
    }

    /// Since when a snapshot has held anything back, if it does.
    pub(crate) fn holding_since(&self, snapshot: Lsn) -> Option<Instant> {
        self.inner.read().kept.since(snapshot)
    }
}

#[cfg(test)]
mod tests;

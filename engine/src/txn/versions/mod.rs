//! The version store: before-images of the changes since the oldest open snapshot, in memory. They are never in pages.
//!
//! An event is added *before* its page changes. So a reader that finds a leaf newer than its snapshot always finds the
//! before-images here. This module uses no pages.
//!
//! The events of a batch are first in runs (`version_run`), which are cheap to fill and to drop, because usually no
//! snapshot needs them. Pruning moves the events that a snapshot may still need to `kept_events`, key by key. It works
//! in bounded pieces, so that no thread waits long for the lock.

pub(super) mod detached_ranges;
pub(super) mod kept_events;
pub(super) mod key_events;
mod prune;
pub(super) mod range_map;
pub(super) mod snapshots;
pub(super) mod version_run;

use crate::base::{Lsn, TableId};
use crate::page::Record;
use crate::tree::KeyRange;
use detached_ranges::{Detached, DetachedRanges, Route};
use kept_events::{KeptEvents, RemovedVersions};
use parking_lot::RwLock;
use range_map::Position;
use snapshots::{SnapshotState, Snapshots};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use version_run::VersionRun;

/// An owned record, as in a leaf: the bytes themselves, or a pointer to a run of pages.
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

/// The record that a key had before an event, or `None`.
pub(crate) type Before = Option<OwnedRecord>;

#[derive(Default)]
struct VersionsInner {
    /// Events by key. They are older than those in runs.
    kept: KeptEvents,
    /// Events in commit order.
    runs: VecDeque<VersionRun>,
    /// A run that was dropped, whose memory the next one uses.
    spare: Option<VersionRun>,
    detached: DetachedRanges,
}

/// If there are more runs than this, their events move to `kept`, because each read searches all runs.
const MAX_RUNS: usize = 64;

/// The result of pruning.
pub(crate) struct Pruned {
    pub(crate) removed: RemovedVersions,
    /// All events that are visible to every new snapshot were assigned to an open snapshot or removed.
    pub(crate) assigned: bool,
    /// Nothing is left to remove.
    pub(crate) done: bool,
}

/// The size of the versions that are kept for open snapshots.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HeldBack {
    /// The number of events, including those in runs. Most of those are removed at the next commit.
    pub(crate) events: usize,
    /// Bytes of memory, without those of runs.
    pub(crate) bytes: usize,
    /// Bytes of runs.
    pub(crate) run_bytes: usize,
}

impl VersionsInner {
    fn add(&mut self, table: TableId, key: &[u8], lsn: Lsn, before: Option<Record<'_>>) {
        if let Some(run) = self.runs.back_mut().filter(|run| run.accepts(table, lsn, key)) {
            run.push(key, before);
            return;
        }
        if self.runs.len() >= MAX_RUNS {
            for mut run in self.runs.drain(..) {
                // No large record can be removed here: it would be of a second change at one LSN, and a transaction
                // changes each key once.
                self.kept.add_run(&mut run, None, usize::MAX, &mut RemovedVersions::default());
            }
        }
        let spare = self.spare.take();
        let mut run = spare.map_or_else(|| VersionRun::new(table, lsn), |spare| spare.reused(table, lsn));
        run.push(key, before);
        self.runs.push_back(run);
    }

    /// Assigns up to `limit` of the events that every new snapshot sees to the open snapshots that may need them.
    /// Removes those that none needs. Returns how much of `limit` is left.
    fn assign(
        &mut self,
        snapshots: &Snapshots,
        state: &SnapshotState,
        limit: usize,
        removed: &mut RemovedVersions,
    ) -> usize {
        let mut left = limit - self.detached.assign(snapshots, state.visible, limit, removed);
        left -= self.kept.assign(snapshots, state.visible, left, removed);
        while left > 0
            && let Some(mut run) = self.runs.pop_front_if(|run| run.lsn() <= state.visible)
        {
            let needed = state.oldest.filter(|oldest| *oldest < run.lsn());
            let Some((oldest, newest)) = needed.zip(snapshots.newest_before(run.lsn())) else {
                match run.is_reusable() {
                    true => self.spare = Some(run),
                    false => removed.runs.push(run),
                }
                continue;
            };
            self.kept.note_oldest(oldest);
            left -= self.kept.add_run(&mut run, Some(newest), left, removed);
            if run.left() > 0 {
                self.runs.push_front(run);
            }
        }
        left
    }

    /// The runs with events of a table that a snapshot may need, before `until`.
    fn runs_for(&self, table: TableId, snapshot: Lsn, until: Lsn) -> impl Iterator<Item = &VersionRun> {
        self.runs.iter().filter(move |run| run.table() == table && run.lsn() > snapshot && run.lsn() < until)
    }
}

/// Before-images for the open snapshots.
#[derive(Default)]
pub(crate) struct Versions {
    inner: RwLock<VersionsInner>,
    /// True if something is kept for an open snapshot, so that there may be something to remove when one closes.
    holding: AtomicBool,
}

impl Versions {
    /// Adds the before-image of `key` for a change at `lsn`. If the key changes again at this LSN, the first
    /// before-image stays.
    pub(crate) fn add(&self, table: TableId, key: &[u8], lsn: Lsn, before: Option<Record<'_>>) {
        self.inner.write().add(table, key, lsn, before);
    }

    /// Adds events for new keys, which must be in order: they had no record before `lsn`.
    pub(crate) fn add_new<'k>(&self, table: TableId, lsn: Lsn, mut keys: impl Iterator<Item = &'k [u8]>) {
        let Some(first) = keys.next() else { return };
        let mut inner = self.inner.write();
        inner.add(table, first, lsn, None);
        // The run that has the first key accepts all that follow.
        if let Some(run) = inner.runs.back_mut() {
            run.push_new(keys);
        }
    }

    /// Adds a range of keys that was detached.
    pub(crate) fn add_detached(&self, table: TableId, range: Detached) {
        self.inner.write().detached.add(table, range);
    }

    /// The record of `key` at `snapshot`, if an event since then has it. `None`: the record in the tree is right.
    pub(crate) fn point(&self, table: TableId, key: &[u8], snapshot: Lsn, until: Lsn) -> Option<Before> {
        let inner = self.inner.read();
        let kept = || inner.kept.point(table, key, snapshot, until).cloned();
        let in_run = |run: &VersionRun| Some(run.get(key)?.map(OwnedRecord::from));
        // Events in `kept` are older than those in runs.
        kept().or_else(|| inner.runs_for(table, snapshot, until).find_map(in_run))
    }

    /// The detached subtree in which `snapshot` finds a position, if it was detached since.
    pub(crate) fn route(&self, table: TableId, at: Position<'_>, snapshot: Lsn) -> Option<Route> {
        self.inner.read().detached.route(table, at, snapshot)
    }

    /// Cuts a range around a position so that it does not overlap any range detached since `snapshot`. Only for
    /// positions for which [`Versions::route`] returns `None`.
    pub(crate) fn clear_range(&self, table: TableId, at: Position<'_>, snapshot: Lsn, key_range: &mut KeyRange) {
        self.inner.read().detached.clear_range(table, at, snapshot, key_range);
    }

    /// The before-images of `[from, to)` that `snapshot` must use: of each key the first event after it, in key order.
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
        let kept = inner.kept.points(table, (from, to), (snapshot, until));
        let mut runs = inner.runs_for(table, snapshot, until).peekable();
        if runs.peek().is_none() {
            return kept.collect();
        }
        let mut found: BTreeMap<Arc<[u8]>, Before> = kept.collect();
        for (key, before) in runs.flat_map(|run| run.range(from, to)) {
            if !found.contains_key(key) {
                found.insert(key.into(), before.map(OwnedRecord::from));
            }
        }
        found.into_iter().collect()
    }

    /// Removes events that no snapshot can need. Examines up to `limit` events. Events that new snapshots do not see
    /// yet stay in their runs, because usually they are removed before a snapshot needs them.
    pub(crate) fn prune(&self, snapshots: &Snapshots, limit: usize) -> Pruned {
        let mut removed = RemovedVersions::default();
        let mut guard = self.inner.write();
        let inner = &mut *guard;
        // This and the use of it happen under the lock, so a list of closed snapshots is processed before a later one.
        let mut state = snapshots.take_state();
        inner.detached.close(&state.closed);
        inner.kept.close(std::mem::take(&mut state.closed));
        let left = inner.assign(snapshots, &state, limit, &mut removed);
        inner.kept.remove_closed(snapshots, left, &mut removed);
        inner.detached.remove_closed(snapshots, left, &mut removed);
        self.holding.store(inner.kept.len() > 0 || !inner.detached.is_empty(), Ordering::Release);
        let done = left > 0 && !inner.kept.is_closing() && !inner.detached.is_closing();
        Pruned { removed, assigned: left > 0, done }
    }

    /// True if something may be kept for an open snapshot.
    pub(crate) fn is_holding(&self) -> bool {
        self.holding.load(Ordering::Acquire)
    }

    /// The size of the versions that are kept for open snapshots.
    pub(crate) fn held_back(&self) -> HeldBack {
        let inner = self.inner.read();
        HeldBack {
            events: inner.kept.len() + inner.runs.iter().map(VersionRun::left).sum::<usize>(),
            bytes: inner.kept.bytes() + inner.detached.bytes(),
            run_bytes: inner.runs.iter().map(VersionRun::bytes).sum(),
        }
    }

    /// The time since which a snapshot has held something back, if it does.
    pub(crate) fn holding_since(&self, snapshot: Lsn) -> Option<Instant> {
        self.inner.read().kept.since(snapshot)
    }
}

#[cfg(test)]
mod tests;

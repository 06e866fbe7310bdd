//! Events by key, and the open snapshot for which each event is kept.
//!
//! Let a key have an event at L, and its event before that at P. Only snapshots in [P, L) need the event at L: older
//! ones find the earlier event first, and newer ones contain the change. The event is kept for the newest open snapshot
//! in this range. When that snapshot closes, the event is kept for the next older one if that is in [P, L) too;
//! otherwise it is removed. So a key has at most one event for each open snapshot, however often it changes, and
//! closing a snapshot examines only the versions that were kept for it.

use super::key_events::{self, KeyEvents};
use super::range_map::RangeMap;
use super::snapshots::Snapshots;
use super::version_run::VersionRun;
use crate::base::{Lsn, TableId};
use crate::txn::versions::{Before, OwnedRecord};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;
use std::time::Instant;

/// The identity of an event.
struct EventId {
    table: TableId,
    lsn: Lsn,
    key: Arc<[u8]>,
}

/// The events that are kept for an open snapshot.
struct SnapshotEvents {
    /// The time since which it has held something back.
    since: Instant,
    events: Vec<EventId>,
}

impl Default for SnapshotEvents {
    fn default() -> SnapshotEvents {
        SnapshotEvents { since: Instant::now(), events: Vec::new() }
    }
}

/// Removed versions: memory that is to be freed without a lock, and large records whose pages no snapshot can read.
#[derive(Default)]
pub(crate) struct RemovedVersions {
    pub(crate) runs: Vec<VersionRun>,
    pub(crate) detached: Vec<RangeMap>,
    records: Vec<OwnedRecord>,
}

impl RemovedVersions {
    /// The large records in it.
    pub(crate) fn larges(self) -> impl Iterator<Item = OwnedRecord> {
        let of_runs: Vec<OwnedRecord> = self.runs.iter().flat_map(VersionRun::larges).collect();
        self.records.into_iter().chain(of_runs)
    }

    fn note(&mut self, before: Before) {
        self.records.extend(before.filter(|record| record.large));
    }
}

/// Events by key. Each is kept for one snapshot.
#[derive(Default)]
pub(super) struct KeptEvents {
    tables: HashMap<TableId, BTreeMap<Arc<[u8]>, KeyEvents>>,
    /// Events that a future snapshot may still need, in commit order.
    unseen: VecDeque<EventId>,
    held: BTreeMap<Lsn, SnapshotEvents>,
    /// The events that were kept for snapshots that have closed.
    closing: Vec<(Lsn, Vec<EventId>)>,
    count: usize,
    bytes: usize,
}

impl KeptEvents {
    /// The number of events.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Bytes of memory that the events use.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The time since which a snapshot has held something back, if it does.
    pub(crate) fn since(&self, snapshot: Lsn) -> Option<Instant> {
        self.held.get(&snapshot).map(|held| held.since)
    }

    /// True if there are events of closed snapshots to process.
    pub(super) fn is_closing(&self) -> bool {
        !self.closing.is_empty()
    }

    /// The record before the first event of `key` after `snapshot`, if that event is before `until`.
    pub(crate) fn point(&self, table: TableId, key: &[u8], snapshot: Lsn, until: Lsn) -> Option<&Before> {
        self.tables.get(&table)?.get(key)?.first_after(snapshot, until)
    }

    /// Like [`KeptEvents::point`], for all keys of `[from, to)`, in order.
    pub(crate) fn points(
        &self,
        table: TableId,
        (from, to): (&[u8], Option<&[u8]>),
        (snapshot, until): (Lsn, Lsn),
    ) -> impl Iterator<Item = (Arc<[u8]>, Before)> {
        let bounds = (Bound::Included(from), to.map_or(Bound::Unbounded, Bound::Excluded));
        let keys = self.tables.get(&table).into_iter().flat_map(move |keys| keys.range::<[u8], _>(bounds));
        keys.filter_map(move |(key, events)| Some((key.clone(), events.first_after(snapshot, until)?.clone())))
    }

    /// Moves up to `limit` events of a run here. `newest` is the newest open snapshot before them if they are visible.
    /// Without it all of them are kept until they are visible. Returns how many events it examined.
    pub(crate) fn add_run(
        &mut self,
        run: &mut VersionRun,
        newest: Option<Lsn>,
        limit: usize,
        removed: &mut RemovedVersions,
    ) -> usize {
        let (table, lsn) = (run.table(), run.lsn());
        let keys = self.tables.entry(table).or_default();
        let list = newest.map(|newest| &mut self.held.entry(newest).or_default().events);
        let mut kept = Vec::new();
        let mut done = 0;
        while done < limit
            && let Some((key, before)) = run.next_to_move()
        {
            done += 1;
            let last = keys.get(key).map_or(Lsn::ZERO, KeyEvents::last);
            // Of two changes at one LSN only the first has the before-image.
            if newest.map_or(last == lsn, |newest| last > newest) {
                removed.note(before.map(OwnedRecord::from));
                continue;
            }
            let (key, before): (Arc<[u8]>, Before) = (key.into(), before.map(OwnedRecord::from));
            self.count += 1;
            self.bytes += key_events::bytes(&key, before.as_ref());
            match keys.entry(key.clone()) {
                Entry::Occupied(events) => events.into_mut().add(lsn, before),
                Entry::Vacant(place) => drop(place.insert(KeyEvents::new(lsn, before))),
            }
            kept.push(EventId { table, lsn, key });
        }
        if keys.is_empty() {
            self.tables.remove(&table);
        }
        match list {
            Some(list) => list.append(&mut kept),
            None => self.unseen.extend(kept),
        }
        done
    }

    /// Notes the time from which the oldest snapshot holds something back.
    pub(super) fn note_oldest(&mut self, oldest: Lsn) {
        self.held.entry(oldest).or_default();
    }

    /// Assigns up to `limit` events that every new snapshot sees to the open snapshots that may need them, or removes
    /// them. Returns how many it examined.
    pub(super) fn assign(
        &mut self,
        snapshots: &Snapshots,
        visible: Lsn,
        limit: usize,
        removed: &mut RemovedVersions,
    ) -> usize {
        let (mut done, mut newest) = (0, (Lsn::ZERO, None));
        while done < limit
            && let Some(event) = self.unseen.pop_front_if(|event| event.lsn <= visible)
        {
            done += 1;
            if newest.0 != event.lsn {
                newest = (event.lsn, snapshots.newest_before(event.lsn));
            }
            self.reassign(event, newest.1, removed);
        }
        done
    }

    /// Moves the events of closed snapshots to `closing`.
    pub(crate) fn close(&mut self, closed: Vec<Lsn>) {
        for snapshot in closed {
            if let Some(SnapshotEvents { events, .. }) = self.held.remove(&snapshot) {
                self.closing.push((snapshot, events));
            }
        }
    }

    /// Reassigns or removes up to `limit` events of closed snapshots.
    pub(crate) fn remove_closed(&mut self, snapshots: &Snapshots, limit: usize, removed: &mut RemovedVersions) {
        let mut left = limit;
        while left > 0
            && let Some((snapshot, mut events)) = self.closing.pop()
        {
            let older = snapshots.newest_before(snapshot);
            while left > 0
                && let Some(event) = events.pop()
            {
                left -= 1;
                self.reassign(event, older, removed);
            }
            if !events.is_empty() {
                self.closing.push((snapshot, events));
            }
        }
    }

    /// Keeps an event for `newest`, the newest open snapshot that may need it, or removes it.
    fn reassign(&mut self, event: EventId, newest: Option<Lsn>, removed: &mut RemovedVersions) {
        let Some(keys) = self.tables.get_mut(&event.table) else { return };
        if let Some(newest) = newest
            && keys.get(&event.key).is_some_and(|events| newest >= events.preceding(event.lsn))
        {
            self.held.entry(newest).or_default().events.push(event);
            return;
        }
        let key_len = event.key.len();
        let Entry::Occupied(mut events) = keys.entry(event.key) else { return };
        let before = match events.get().is_only(event.lsn) {
            true => events.remove().into_only(event.lsn),
            false => events.get_mut().take(event.lsn),
        };
        if keys.is_empty() {
            self.tables.remove(&event.table);
        }
        let Some(before) = before else { return };
        self.count -= 1;
        self.bytes -= key_events::bytes(&[], before.as_ref()) + key_len;
        removed.note(before);
    }
}

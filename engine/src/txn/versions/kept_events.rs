//! Events filed key by key, and which open snapshot each is kept for.
//!
//! An event at L of a key whose event before it is at P is asked for by the snapshots of [P, L) alone: older ones find the
//! earlier event first, younger ones see what the change made. It is kept for the newest open snapshot of these. When that
//! closes, it goes to the next older one, if that is in [P, L) too, and is forgotten otherwise. So a key has at most one event
//! for each open snapshot, however often it changes, and closing a snapshot looks at what was kept for it and at nothing else.

use super::key_events::{self, KeyEvents};
use super::range_pieces::Pieces;
use super::snapshots::Snapshots;
use super::version_run::VersionRun;
use crate::base::{Lsn, TableId};
use crate::txn::versions::{Before, OwnedRecord};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;
use std::time::Instant;

/// An event's place.
struct EventId {
    table: TableId,
    lsn: Lsn,
    key: Arc<[u8]>,
}

/// What is kept for an open snapshot.
struct Held {
    /// Since when it has held anything back.
    since: Instant,
    events: Vec<EventId>,
}

impl Default for Held {
    fn default() -> Held {
        Held { since: Instant::now(), events: Vec::new() }
    }
}

/// What was forgotten: memory to give back without a lock, and large records, whose pages nobody reads any more.
#[derive(Default)]
pub(crate) struct Gone {
    pub(crate) runs: Vec<VersionRun>,
    pub(crate) detached: Vec<Pieces>,
    records: Vec<OwnedRecord>,
}

impl Gone {
    /// The large records among them.
    pub(crate) fn larges(self) -> impl Iterator<Item = OwnedRecord> {
        let of_runs: Vec<OwnedRecord> = self.runs.iter().flat_map(VersionRun::larges).collect();
        self.records.into_iter().chain(of_runs)
    }

    fn note(&mut self, before: Before) {
        self.records.extend(before.filter(|record| record.large));
    }
}

/// Events by key, each kept for one snapshot.
#[derive(Default)]
pub(super) struct KeptEvents {
    tables: HashMap<TableId, BTreeMap<Arc<[u8]>, KeyEvents>>,
    /// Events that a snapshot that is yet to begin may still ask for, in commit order.
    unseen: VecDeque<EventId>,
    held: BTreeMap<Lsn, Held>,
    /// What was kept for snapshots that have closed.
    closing: Vec<(Lsn, Vec<EventId>)>,
    count: usize,
    bytes: usize,
}

impl KeptEvents {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Bytes of memory that they take.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Since when a snapshot has held anything back, if it does.
    pub(crate) fn since(&self, snapshot: Lsn) -> Option<Instant> {
        self.held.get(&snapshot).map(|held| held.since)
    }

    /// True if something was kept for snapshots that have closed.
    pub(super) fn is_closing(&self) -> bool {
        !self.closing.is_empty()
    }

    /// What `key` had before its first event after `snapshot`, if that is before `until`.
    pub(crate) fn point(&self, table: TableId, key: &[u8], snapshot: Lsn, until: Lsn) -> Option<&Before> {
        self.tables.get(&table)?.get(key)?.first_after(snapshot, until)
    }

    /// The same of all keys of `[from, to)`, in order.
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

    /// Files up to `most` events of a run. `newest`: the newest snapshot before them, where they are visible; without it all are kept
    /// for now. Says how many it looked at.
    pub(crate) fn file(&mut self, run: &mut VersionRun, newest: Option<Lsn>, most: usize, gone: &mut Gone) -> usize {
        let (table, lsn) = (run.table(), run.lsn());
        let keys = self.tables.entry(table).or_default();
        let list = newest.map(|newest| &mut self.held.entry(newest).or_default().events);
        let mut wanted = Vec::new();
        let mut done = 0;
        while done < most
            && let Some((key, before)) = run.next_to_file()
        {
            done += 1;
            let last = keys.get(key).map_or(Lsn::ZERO, KeyEvents::last);
            // Of two changes at one LSN the first tells what was there.
            if newest.map_or(last == lsn, |newest| last > newest) {
                gone.note(before.map(OwnedRecord::from));
                continue;
            }
            let (key, before): (Arc<[u8]>, Before) = (key.into(), before.map(OwnedRecord::from));
            self.count += 1;
            self.bytes += key_events::bytes(&key, before.as_ref());
            match keys.entry(key.clone()) {
                Entry::Occupied(events) => events.into_mut().add(lsn, before),
                Entry::Vacant(place) => drop(place.insert(KeyEvents::new(lsn, before))),
            }
            wanted.push(EventId { table, lsn, key });
        }
        if keys.is_empty() {
            self.tables.remove(&table);
        }
        match list {
            Some(list) => list.append(&mut wanted),
            None => self.unseen.extend(wanted),
        }
        done
    }

    /// Notes from when on a snapshot holds back what others need as well.
    pub(super) fn note_oldest(&mut self, oldest: Lsn) {
        self.held.entry(oldest).or_default();
    }

    /// Finds out for whom up to `most` of the events that no new snapshot can ask for any more are to be kept; says how many
    /// it looked at.
    pub(super) fn see(&mut self, snapshots: &Snapshots, visible: Lsn, most: usize, gone: &mut Gone) -> usize {
        let (mut done, mut newest) = (0, (Lsn::ZERO, None));
        while done < most
            && let Some(event) = self.unseen.pop_front_if(|event| event.lsn <= visible)
        {
            done += 1;
            if newest.0 != event.lsn {
                newest = (event.lsn, snapshots.newest_before(event.lsn));
            }
            self.hand_on(event, newest.1, gone);
        }
        done
    }

    /// Takes note of snapshots that have closed.
    pub(crate) fn close(&mut self, closed: Vec<Lsn>) {
        for snapshot in closed {
            if let Some(Held { events, .. }) = self.held.remove(&snapshot) {
                self.closing.push((snapshot, events));
            }
        }
    }

    /// Hands on, or forgets, up to `most` events of snapshots that have closed.
    pub(crate) fn forget(&mut self, snapshots: &Snapshots, most: usize, gone: &mut Gone) {
        let mut left = most;
        while left > 0
            && let Some((snapshot, mut events)) = self.closing.pop()
        {
            let older = snapshots.newest_before(snapshot);
            while left > 0
                && let Some(event) = events.pop()
            {
                left -= 1;
                self.hand_on(event, older, gone);
            }
            if !events.is_empty() {
                self.closing.push((snapshot, events));
            }
        }
    }

    /// Keeps an event for `newest`, the newest open snapshot that may ask for it, or forgets it.
    fn hand_on(&mut self, event: EventId, newest: Option<Lsn>, gone: &mut Gone) {
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
        gone.note(before);
    }
}

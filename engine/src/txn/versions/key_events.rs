//! The events of one key, each at its LSN. Which snapshots need an event must not be in this file.

use crate::base::Lsn;
use crate::txn::versions::{Before, OwnedRecord};
use std::collections::BTreeMap;

/// The events of one key. There is hardly ever more than one, so the first needs no memory of its own.
pub(super) struct KeyEvents {
    first: (Lsn, Before),
    later: BTreeMap<Lsn, Before>,
}

impl KeyEvents {
    /// One event.
    pub(crate) fn new(lsn: Lsn, before: Before) -> KeyEvents {
        KeyEvents { first: (lsn, before), later: BTreeMap::new() }
    }

    /// Adds an event, later than all others.
    pub(crate) fn add(&mut self, lsn: Lsn, before: Before) {
        self.later.insert(lsn, before);
    }

    /// The LSN of the last event.
    pub(crate) fn last(&self) -> Lsn {
        self.later.last_key_value().map_or(self.first.0, |(lsn, _)| *lsn)
    }

    /// The LSN of the event before the one at `lsn`; zero if that is the first.
    pub(super) fn preceding(&self, lsn: Lsn) -> Lsn {
        let first = if self.first.0 < lsn { self.first.0 } else { Lsn::ZERO };
        self.later.range(..lsn).next_back().map_or(first, |(lsn, _)| *lsn)
    }

    /// What the key had before its first event after `snapshot`, if that is before `until`.
    pub(super) fn first_after(&self, snapshot: Lsn, until: Lsn) -> Option<&Before> {
        let (lsn, before) = match self.first.0 > snapshot {
            true => (self.first.0, &self.first.1),
            false => self.later.range(snapshot.plus(1)..).next().map(|(lsn, before)| (*lsn, before))?,
        };
        (lsn < until).then_some(before)
    }

    /// Takes out the event at `lsn`, if it is there and not the only one.
    pub(crate) fn take(&mut self, lsn: Lsn) -> Option<Before> {
        if self.first.0 != lsn {
            return self.later.remove(&lsn);
        }
        let next = self.later.pop_first()?;
        Some(std::mem::replace(&mut self.first, next).1)
    }

    /// What the key had before the event at `lsn`, if that is its only one.
    pub(super) fn into_only(self, lsn: Lsn) -> Option<Before> {
        (self.first.0 == lsn && self.later.is_empty()).then_some(self.first.1)
    }

    /// True if there is one event alone, at `lsn`.
    pub(super) fn is_only(&self, lsn: Lsn) -> bool {
        self.first.0 == lsn && self.later.is_empty()
    }
}

/// Bytes of memory of an event with its key: its places in the map of keys, in the list of what is kept for a snapshot, and
/// the headers of what is allocated for it.
const EVENT_BYTES: usize = 208;

/// Bytes of memory that an event takes.
pub(crate) fn bytes(key: &[u8], before: Option<&OwnedRecord>) -> usize {
    EVENT_BYTES + key.len() + before.map_or(0, |record| record.bytes.len())
}

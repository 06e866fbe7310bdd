//! The events of one key, each at its LSN.

use crate::base::Lsn;
use crate::txn::versions::{Before, OwnedRecord};
use std::collections::BTreeMap;

/// The events of one key. There is rarely more than one, so the first is stored without an allocation.
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

    /// The record before the first event after `snapshot`, if that event is before `until`.
    pub(super) fn first_after(&self, snapshot: Lsn, until: Lsn) -> Option<&Before> {
        let (lsn, before) = match self.first.0 > snapshot {
            true => (self.first.0, &self.first.1),
            false => self.later.range(snapshot.plus(1)..).next().map(|(lsn, before)| (*lsn, before))?,
        };
        (lsn < until).then_some(before)
    }

    /// Removes the event at `lsn`, if it exists and is not the only one.
    pub(crate) fn take(&mut self, lsn: Lsn) -> Option<Before> {
        if self.first.0 != lsn {
            return self.later.remove(&lsn);
        }
        let next = self.later.pop_first()?;
        Some(std::mem::replace(&mut self.first, next).1)
    }

    /// The record before the event at `lsn`, if this is the only event.
    pub(super) fn into_only(self, lsn: Lsn) -> Option<Before> {
        (self.first.0 == lsn && self.later.is_empty()).then_some(self.first.1)
    }

    /// True if the only event is at `lsn`.
    pub(super) fn is_only(&self, lsn: Lsn) -> bool {
        self.first.0 == lsn && self.later.is_empty()
    }
}

/// Bytes of memory of an event besides its key and record: its entries in the map of keys and in the list of a
/// snapshot, and the headers of its allocations.
const EVENT_BYTES: usize = 208;

/// Bytes of memory that an event uses.
pub(crate) fn bytes(key: &[u8], before: Option<&OwnedRecord>) -> usize {
    EVENT_BYTES + key.len() + before.map_or(0, |record| record.bytes.len())
}

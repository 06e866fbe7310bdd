//! A run: before-images of one batch, for keys of one table that came in order. Adding an event copies its key.
//! Dropping the run removes all its events.

use super::OwnedRecord;
use crate::base::{Lsn, TableId, bytes};
use crate::page::Record;
use crate::txn::entry_arena::EntryArena;

/// A run with more bytes of memory is dropped rather than kept for another batch.
const MAX_REUSED: usize = 16 << 10;

/// The before-images of one batch.
#[derive(Debug)]
pub(crate) struct VersionRun {
    table: TableId,
    lsn: Lsn,
    /// Keys and the records that they had.
    events: EntryArena,
    /// One of the records is large. Its pages are freed when the event is removed.
    any_large: bool,
    /// The number of first events that were moved to `kept_events`.
    moved: usize,
}

impl VersionRun {
    /// No events yet, all at `lsn`.
    pub(crate) fn new(table: TableId, lsn: Lsn) -> VersionRun {
        VersionRun { table, lsn, events: EntryArena::default(), any_large: false, moved: 0 }
    }

    /// The same memory without events, for those of another batch.
    pub(crate) fn reused(mut self, table: TableId, lsn: Lsn) -> VersionRun {
        self.events.clear();
        VersionRun { events: self.events, ..VersionRun::new(table, lsn) }
    }

    /// True if the run has no large record, and so little memory that another run may use it.
    pub(crate) fn is_reusable(&self) -> bool {
        !self.any_large && self.bytes() <= MAX_REUSED
    }

    pub(crate) fn table(&self) -> TableId {
        self.table
    }

    pub(crate) fn lsn(&self) -> Lsn {
        self.lsn
    }

    /// True if an event of `key` can be added: it has this table and LSN, and its key is above all others.
    #[inline]
    pub(crate) fn accepts(&self, table: TableId, lsn: Lsn, key: &[u8]) -> bool {
        let is_above = self.events.len() == 0 || bytes::is_below(self.events.last_key(), key);
        self.table == table && self.lsn == lsn && is_above
    }

    /// Adds an event for which [`VersionRun::accepts`] is true.
    #[inline]
    pub(crate) fn push(&mut self, key: &[u8], before: Option<Record<'_>>) {
        self.any_large |= before.is_some_and(|record| record.large);
        self.events.push(key, before);
    }

    /// Adds events of new keys, which are in order and above all others.
    pub(crate) fn push_new<'k>(&mut self, keys: impl Iterator<Item = &'k [u8]>) {
        self.events.push_keys(keys);
    }

    /// The first index whose key is not below `key`.
    fn position(&self, key: &[u8]) -> usize {
        self.events.position(key, self.events.len(), |index| index)
    }

    /// The record that `key` had, if the key has an event.
    pub(crate) fn get(&self, key: &[u8]) -> Option<Option<Record<'_>>> {
        let (found, before) = self.events.get(self.position(key))?;
        (found == key).then_some(before)
    }

    /// The events of the keys of `[from, to)`, in order.
    pub(crate) fn range(&self, from: &[u8], to: Option<&[u8]>) -> impl Iterator<Item = (&[u8], Option<Record<'_>>)> {
        let end = to.map_or(self.events.len(), |to| self.position(to));
        (self.position(from)..end).filter_map(|index| self.events.get(index))
    }

    /// The number of events that were not moved yet.
    pub(crate) fn left(&self) -> usize {
        self.events.len() - self.moved
    }

    /// The next event to move.
    pub(crate) fn next_to_move(&mut self) -> Option<(&[u8], Option<Record<'_>>)> {
        let event = self.events.get(self.moved)?;
        self.moved += 1;
        Some(event)
    }

    /// The large records of the events that are yet to be moved key by key.
    pub(crate) fn larges(&self) -> impl Iterator<Item = OwnedRecord> {
        let from = if self.any_large { self.moved } else { self.events.len() };
        let records = (from..self.events.len()).filter_map(|index| self.events.get(index)?.1);
        records.filter(|record| record.large).map(OwnedRecord::from)
    }

    /// Bytes of memory that the run uses.
    pub(crate) fn bytes(&self) -> usize {
        self.events.allocated()
    }
}

//! A run: the before-images of one batch for keys of one table that came in order. Filing an event copies its key;
//! dropping the run forgets all its events. How long events are needed must not be in this file.

use super::OwnedRecord;
use crate::base::{Lsn, TableId, bytes};
use crate::page::Record;
use crate::txn::entry_arena::EntryArena;

/// The before-images of one batch.
#[derive(Debug)]
pub(crate) struct VersionRun {
    table: TableId,
    lsn: Lsn,
    /// Keys and what they had.
    events: EntryArena,
    /// One of the records is a large one, whose pages wait for the event to go.
    any_large: bool,
    /// So many of the first events have been filed key by key.
    filed: usize,
}

impl VersionRun {
    /// No events yet, all at `lsn`.
    pub(crate) fn new(table: TableId, lsn: Lsn) -> VersionRun {
        VersionRun { table, lsn, events: EntryArena::default(), any_large: false, filed: 0 }
    }

    pub(crate) fn table(&self) -> TableId {
        self.table
    }

    pub(crate) fn lsn(&self) -> Lsn {
        self.lsn
    }

    /// True if an event of `key` can be added: the key is above all others.
    #[inline]
    pub(crate) fn takes(&self, table: TableId, lsn: Lsn, key: &[u8]) -> bool {
        let is_above = self.events.len() == 0 || bytes::is_below(self.events.last_key(), key);
        self.table == table && self.lsn == lsn && is_above
    }

    /// Adds an event that it [`VersionRun::takes`].
    #[inline]
    pub(crate) fn push(&mut self, key: &[u8], before: Option<Record<'_>>) {
        self.any_large |= before.is_some_and(|record| record.large);
        self.events.push(key, before);
    }

    /// Adds events of keys that had nothing, in order and above all others.
    pub(crate) fn push_new<'k>(&mut self, keys: impl Iterator<Item = &'k [u8]>) {
        self.events.push_keys(keys);
    }

    /// The first index whose key is not below `key`.
    fn position(&self, key: &[u8]) -> usize {
        self.events.position(key, self.events.len(), |index| index)
    }

    /// What `key` had, if it has an event.
    pub(crate) fn get(&self, key: &[u8]) -> Option<Option<Record<'_>>> {
        let (found, before) = self.events.get(self.position(key))?;
        (found == key).then_some(before)
    }

    /// The events of the keys of `[from, to)`, in order.
    pub(crate) fn range(&self, from: &[u8], to: Option<&[u8]>) -> impl Iterator<Item = (&[u8], Option<Record<'_>>)> {
        let end = to.map_or(self.events.len(), |to| self.position(to));
        (self.position(from)..end).filter_map(|index| self.events.get(index))
    }

    /// How many events are yet to be filed key by key.
    pub(crate) fn left(&self) -> usize {
        self.events.len() - self.filed
    }

    /// The next of these.
    pub(crate) fn next_to_file(&mut self) -> Option<(&[u8], Option<Record<'_>>)> {
        let event = self.events.get(self.filed)?;
        self.filed += 1;
        Some(event)
    }

    /// The large records of the events that are yet to be filed key by key.
    pub(crate) fn larges(&self) -> impl Iterator<Item = OwnedRecord> {
        let from = if self.any_large { self.filed } else { self.events.len() };
        let records = (from..self.events.len()).filter_map(|index| self.events.get(index)?.1);
        records.filter(|record| record.large).map(OwnedRecord::from)
    }

    /// Bytes of memory that it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.events.allocated()
    }
}

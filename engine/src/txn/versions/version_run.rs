//! A run: what the keys of one table had before one batch, for keys that came in order. Filing an event is copying
//! its key, forgetting them all is dropping the run. How long they are needed must never be known here.

use super::OwnedRecord;
use crate::base::{Lsn, TableId, bytes};
use crate::page::Record;

/// See the module's words.
#[derive(Debug)]
pub(in crate::txn) struct Run {
    table: TableId,
    lsn: Lsn,
    /// Keys and what they had, one behind the other: memory of its own for each record would cost more than the change
    /// that it is kept for.
    arena: Vec<u8>,
    /// None while all events are alike.
    events: Vec<Event>,
    /// If not 0, all events are alike: of keys of so many bytes that had nothing. Then where each lies needs no note.
    width: usize,
    /// One of the records is a large one, whose pages wait for the event to go.
    any_large: bool,
    /// So many of the first events have been filed key by key.
    filed: usize,
}

/// A key's event, in the arena.
#[derive(Clone, Copy, Debug)]
struct Event {
    /// Where the key begins.
    at: usize,
    /// Where it ends and what it had begins.
    record: usize,
    had: Had,
}

/// What a key had.
#[derive(Clone, Copy, Debug)]
enum Had {
    Nothing,
    /// A record, to where the next key begins.
    Record {
        large: bool,
    },
}

impl Run {
    /// No events yet, all at `lsn`.
    pub(in crate::txn) fn new(table: TableId, lsn: Lsn) -> Run {
        Run { table, lsn, arena: Vec::new(), events: Vec::new(), width: 0, any_large: false, filed: 0 }
    }

    pub(in crate::txn) fn table(&self) -> TableId {
        self.table
    }

    pub(in crate::txn) fn lsn(&self) -> Lsn {
        self.lsn
    }

    pub(in crate::txn) fn len(&self) -> usize {
        self.arena.len().checked_div(self.width).unwrap_or(self.events.len())
    }

    /// The key of the event of `index`, empty where there is none, and what it had.
    #[inline]
    fn event(&self, index: usize) -> (&[u8], Option<Record<'_>>) {
        if self.width > 0 {
            return (bytes::slice(&self.arena, index * self.width, (index + 1) * self.width), None);
        }
        let Some(event) = self.events.get(index) else { return (&[], None) };
        let end = self.events.get(index + 1).map_or(self.arena.len(), |next| next.at);
        let before = match event.had {
            Had::Nothing => None,
            Had::Record { large } => Some(Record { bytes: bytes::slice(&self.arena, event.record, end), large }),
        };
        (bytes::slice(&self.arena, event.at, event.record), before)
    }

    /// True if an event of `key` can be added: the key is above all others.
    #[inline]
    pub(in crate::txn) fn takes(&self, table: TableId, lsn: Lsn, key: &[u8]) -> bool {
        let last = self.len().checked_sub(1);
        self.table == table && self.lsn == lsn && last.is_none_or(|last| bytes::is_below(self.event(last).0, key))
    }

    /// Adds an event that it [`Run::takes`].
    #[inline]
    pub(in crate::txn) fn push(&mut self, key: &[u8], before: Option<Record<'_>>) {
        if before.is_none() && self.is_alike(key.len()) {
            self.width = key.len();
            bytes::append(&mut self.arena, key);
            return;
        }
        self.unfold();
        self.any_large |= before.is_some_and(|record| record.large);
        let had = before.map_or(Had::Nothing, |record| Had::Record { large: record.large });
        let at = self.arena.len();
        self.events.push(Event { at, record: at + key.len(), had });
        bytes::append(&mut self.arena, key);
        bytes::append(&mut self.arena, before.map_or(&[], |record| record.bytes));
    }

    /// Adds events of keys of `width` bytes each, one behind the other, that had nothing, of which it takes the first.
    pub(in crate::txn) fn push_new(&mut self, width: usize, keys: &[u8]) {
        if self.is_alike(width) {
            self.width = width;
            self.arena.extend_from_slice(keys);
        } else {
            keys.chunks_exact(width.max(1)).for_each(|key| self.push(key, None));
        }
    }

    /// True if the events are alike, and so is one of such a key that had nothing.
    #[inline]
    fn is_alike(&self, width: usize) -> bool {
        width > 0 && (self.width == width || self.len() == 0)
    }

    /// Notes where each event lies, as one that is not like them needs.
    fn unfold(&mut self) {
        if let Some(count) = self.arena.len().checked_div(self.width) {
            let places = (0..count).map(|index| (index * self.width, (index + 1) * self.width));
            self.events = places.map(|(at, record)| Event { at, record, had: Had::Nothing }).collect();
            self.width = 0;
        }
    }

    /// The first index whose key is not below `key`.
    fn position(&self, key: &[u8]) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            match self.event(middle).0 < key {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }

    /// What `key` had, if it has an event.
    pub(in crate::txn) fn get(&self, key: &[u8]) -> Option<Option<Record<'_>>> {
        let at = self.position(key);
        let (found, before) = self.event(at);
        (at < self.len() && found == key).then_some(before)
    }

    /// The events of the keys of `[from, to)`, in order.
    pub(in crate::txn) fn range(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
    ) -> impl Iterator<Item = (&[u8], Option<Record<'_>>)> {
        let end = to.map_or(self.len(), |to| self.position(to));
        (self.position(from)..end).map(|index| self.event(index))
    }

    /// How many events are yet to be filed key by key.
    pub(in crate::txn) fn left(&self) -> usize {
        self.len() - self.filed
    }

    /// The next of these.
    pub(in crate::txn) fn next_to_file(&mut self) -> Option<(&[u8], Option<Record<'_>>)> {
        let index = self.filed;
        if index >= self.len() {
            return None;
        }
        self.filed += 1;
        Some(self.event(index))
    }

    /// The large records of the events that are yet to be filed key by key.
    pub(in crate::txn) fn larges(&self) -> impl Iterator<Item = OwnedRecord> {
        let from = if self.any_large { self.filed } else { self.len() };
        let records = (from..self.len()).filter_map(|index| self.event(index).1);
        records.filter(|record| record.large).map(OwnedRecord::from)
    }

    /// Bytes of memory that it takes.
    pub(in crate::txn) fn bytes(&self) -> usize {
        self.arena.capacity() + self.events.capacity() * size_of::<Event>()
    }
}

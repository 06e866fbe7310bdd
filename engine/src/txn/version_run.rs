//! A run: what the keys of one table had before one batch, for keys that came in order. Filing an event is copying
//! its key, forgetting them all is dropping the run. How long they are needed must never be known here.

use super::versions::Before;
use crate::base::{Lsn, TableId, bytes};
use std::sync::Arc;

/// See the module's words.
#[derive(Debug)]
pub(super) struct Run {
    table: TableId,
    lsn: Lsn,
    /// The keys, one behind the other.
    keys: Vec<u8>,
    /// Where each key ends, and what it had.
    events: Vec<(usize, Before)>,
}

impl Run {
    /// No events yet, all at `lsn`.
    pub(super) fn new(table: TableId, lsn: Lsn) -> Run {
        Run { table, lsn, keys: Vec::new(), events: Vec::new() }
    }

    pub(super) fn table(&self) -> TableId {
        self.table
    }

    pub(super) fn lsn(&self) -> Lsn {
        self.lsn
    }

    pub(super) fn len(&self) -> usize {
        self.events.len()
    }

    fn key(&self, index: usize) -> &[u8] {
        let end = |index: usize| self.events.get(index).map_or(0, |(end, _)| *end);
        bytes::slice(&self.keys, index.checked_sub(1).map_or(0, end), end(index))
    }

    /// True if an event of `key` can be added: the key is above all others.
    pub(super) fn takes(&self, table: TableId, lsn: Lsn, key: &[u8]) -> bool {
        let last = self.len().checked_sub(1);
        self.table == table && self.lsn == lsn && last.is_none_or(|last| self.key(last) < key)
    }

    /// Adds an event that it [`Run::takes`].
    pub(super) fn push(&mut self, key: &[u8], before: Before) {
        self.keys.extend_from_slice(key);
        self.events.push((self.keys.len(), before));
    }

    /// The first index whose key is not below `key`.
    fn position(&self, key: &[u8]) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            match self.key(middle) < key {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }

    /// What `key` had, if it has an event.
    pub(super) fn get(&self, key: &[u8]) -> Option<&Before> {
        let at = self.position(key);
        self.events.get(at).filter(|_| self.key(at) == key).map(|(_, before)| before)
    }

    /// The events of the keys of `[from, to)`, in order.
    pub(super) fn range(&self, from: &[u8], to: Option<&[u8]>) -> impl Iterator<Item = (&[u8], &Before)> {
        let end = to.map_or(self.len(), |to| self.position(to));
        let start = self.position(from).min(end);
        let events = self.events.get(start..end).unwrap_or_default();
        events.iter().zip(start..).map(|((_, before), index)| (self.key(index), before))
    }

    /// All events, in the order of their keys.
    pub(super) fn into_events(self) -> impl Iterator<Item = (Arc<[u8]>, Before)> {
        let Run { keys, events, .. } = self;
        let mut start = 0;
        events.into_iter().map(move |(end, before)| {
            let key = bytes::slice(&keys, start, end).into();
            start = end;
            (key, before)
        })
    }
}

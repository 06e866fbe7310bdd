//! The point writes of a write set, by key. As long as they come in the order of their keys (loads, timestamps,
//! counters) they are appended to arrays, at a fraction of what a map costs; the first one out of order moves them to a
//! map. What a write means must never be known here.

use super::versions::OwnedRecord;
use std::collections::BTreeMap;
use std::ops::{Bound, Range};

/// A record that was written, or a removal.
type Write = Option<OwnedRecord>;

/// A key and what was written there.
pub(crate) type PointWrite<'a> = (&'a [u8], Option<&'a OwnedRecord>);

/// Writes in key order, each key once: all of them in the arrays, or all in the map.
#[derive(Default, Debug)]
pub(crate) struct PointWrites {
    /// The keys, one after the other.
    keys: Vec<u8>,
    /// Where each key ends, and its write.
    writes: Vec<(usize, Write)>,
    map: BTreeMap<Vec<u8>, Write>,
}

impl PointWrites {
    /// Writes at a key; returns what was written there before, if anything was.
    pub(crate) fn insert(&mut self, key: &[u8], write: Write) -> Option<Write> {
        if self.map.is_empty() {
            let last = self.writes.len().checked_sub(1);
            match last.map(|last| key.cmp(self.key(last))) {
                None | Some(std::cmp::Ordering::Greater) => {
                    self.keys.extend_from_slice(key);
                    self.writes.push((self.keys.len(), write));
                    return None;
                }
                Some(std::cmp::Ordering::Equal) => {
                    return self.writes.last_mut().map(|(_, last)| std::mem::replace(last, write));
                }
                Some(std::cmp::Ordering::Less) => self.move_to_map(),
            }
        }
        self.map.insert(key.to_vec(), write)
    }

    /// Forgets what was written at a key, and returns it.
    pub(crate) fn remove(&mut self, key: &[u8]) -> Option<Write> {
        self.move_to_map();
        self.map.remove(key)
    }

    /// What was written at a key.
    pub(crate) fn get(&self, key: &[u8]) -> Option<&Write> {
        if self.writes.is_empty() {
            return self.map.get(key);
        }
        let at = self.position(key);
        self.writes.get(at).filter(|_| self.key(at) == key).map(|(_, write)| write)
    }

    /// The writes of `[from, to)`, in key order.
    pub(crate) fn range<'a>(
        &'a self,
        from: &[u8],
        to: Option<&[u8]>,
    ) -> impl Iterator<Item = PointWrite<'a>> + use<'a> {
        let to = to.map(|to| to.max(from));
        let slots = self.position(from)..to.map_or(self.writes.len(), |to| self.position(to));
        let bounds = (Bound::Included(from), to.map_or(Bound::Unbounded, Bound::Excluded));
        let in_map = self.map.range::<[u8], _>(bounds).map(|(key, write)| (key.as_slice(), write.as_ref()));
        self.slots(slots).chain(in_map)
    }

    /// All writes, in key order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = PointWrite<'_>> {
        let in_map = self.map.iter().map(|(key, write)| (key.as_slice(), write.as_ref()));
        self.slots(0..self.writes.len()).chain(in_map)
    }

    /// True if there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.writes.is_empty() && self.map.is_empty()
    }

    /// The key of a slot of the arrays.
    fn key(&self, slot: usize) -> &[u8] {
        let end = |slot: usize| self.writes.get(slot).map_or(0, |(end, _)| *end);
        self.keys.get(slot.checked_sub(1).map_or(0, end)..end(slot)).unwrap_or_default()
    }

    /// The first slot of the arrays whose key is not below this one.
    fn position(&self, key: &[u8]) -> usize {
        let (mut low, mut high) = (0, self.writes.len());
        while low < high {
            let middle = low.midpoint(high);
            if self.key(middle) < key { low = middle + 1 } else { high = middle }
        }
        low
    }

    fn slots(&self, slots: Range<usize>) -> impl Iterator<Item = PointWrite<'_>> {
        let write = |slot: usize| self.writes.get(slot).and_then(|(_, write)| write.as_ref());
        slots.map(move |slot| (self.key(slot), write(slot)))
    }

    fn move_to_map(&mut self) {
        let mut start = 0;
        for (end, write) in std::mem::take(&mut self.writes) {
            self.map.insert(self.keys.get(start..end).unwrap_or_default().to_vec(), write);
            start = end;
        }
        self.keys = Vec::new();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Op {
        Insert(u8, Option<u8>),
        /// Above all that were inserted so far.
        Append(Option<u8>),
        Remove(u8),
    }

    fn op() -> impl Strategy<Value = Op> {
        let write = || prop::option::weighted(0.8, any::<u8>());
        prop_oneof![
            2 => (0u8..60, write()).prop_map(|(key, write)| Op::Insert(key, write)),
            30 => write().prop_map(Op::Append),
            1 => (0u8..60).prop_map(Op::Remove),
        ]
    }

    fn record(byte: u8) -> OwnedRecord {
        OwnedRecord { bytes: [byte].as_slice().into(), large: false }
    }

    proptest! {
        #[test]
        fn writes_are_a_map_whatever_their_order(ops in prop::collection::vec(op(), 0..60), from in 0u8..70, to in 0u8..70) {
            let (mut writes, mut model) = (PointWrites::default(), BTreeMap::<Vec<u8>, Write>::new());
            for op in ops {
                match op {
                    Op::Insert(key, write) => {
                        let write = write.map(record);
                        prop_assert_eq!(writes.insert(&[key], write.clone()), model.insert(vec![key], write));
                    }
                    Op::Append(write) => {
                        let key = model.last_key_value().map_or(vec![0], |(last, _)| [last.as_slice(), &[7]].concat());
                        prop_assert_eq!(writes.insert(&key, write.map(record)), None);
                        model.insert(key, write.map(record));
                    }
                    Op::Remove(key) => prop_assert_eq!(writes.remove(&[key]), model.remove([key].as_slice())),
                }
            }
            prop_assert_eq!(writes.is_empty(), model.is_empty());
            prop_assert!(writes.iter().eq(model.iter().map(|(key, write)| (key.as_slice(), write.as_ref()))));
            for key in 0..70u8 {
                prop_assert_eq!(writes.get(&[key]), model.get([key].as_slice()));
            }
            for to in [None, Some(to)] {
                let inside = model
                    .iter()
                    .filter(|(key, _)| key.as_slice() >= [from].as_slice() && to.is_none_or(|to| key.as_slice() < [to].as_slice()));
                let inside: Vec<_> = inside.map(|(key, write)| (key.as_slice(), write.as_ref())).collect();
                let to = to.map(|to| [to]);
                let to = to.as_ref().map(<[u8; 1]>::as_slice);
                prop_assert_eq!(writes.range(&[from], to).collect::<Vec<_>>(), inside);
            }
        }
    }
}

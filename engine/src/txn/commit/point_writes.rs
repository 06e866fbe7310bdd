//! The point writes of a write set, by key. They are appended to arrays, which cost much less than a map. If a write
//! comes after the sorted order was used, all writes move to a map, except if they came in order.

use super::write_arrays::WriteArrays;
use crate::page::Record;
use crate::txn::entry_arena::UniformEntries;
use crate::txn::versions::OwnedRecord;
use std::collections::{BTreeMap, btree_map};
use std::ops::{Bound, Range};

/// A key and the record that was written, or `None` for a removal.
pub(crate) type PointWrite<'a> = (&'a [u8], Option<Record<'a>>);

/// The last write of each key. All writes are in the arrays, or all are in the map.
#[derive(Default, Debug)]
pub(crate) struct PointWrites {
    arrays: WriteArrays,
    map: BTreeMap<Vec<u8>, Option<OwnedRecord>>,
    /// One of the records is large. Then a write that replaces another must return the old record.
    any_large: bool,
}

impl PointWrites {
    /// Writes a key. Returns the large record that this replaces, if there was one.
    #[inline(always)]
    pub(crate) fn insert(&mut self, key: &[u8], record: Option<Record<'_>>) -> Option<OwnedRecord> {
        if let Some(Record { bytes, large: false }) = record
            && self.arrays.push_uniform(key, bytes)
        {
            return None;
        }
        self.insert_any(key, record)
    }

    #[inline(never)]
    fn insert_any(&mut self, key: &[u8], record: Option<Record<'_>>) -> Option<OwnedRecord> {
        self.any_large |= record.is_some_and(|record| record.large);
        if self.map.is_empty() {
            if !self.any_large && self.arrays.push(key, record) {
                return None;
            }
            self.move_to_map();
        }
        let before = self.map.insert(key.to_vec(), record.map(OwnedRecord::from));
        before.flatten().filter(|before| before.large)
    }

    /// Removes the write of a key. Returns its record if that is large.
    pub(crate) fn remove(&mut self, key: &[u8]) -> Option<OwnedRecord> {
        self.move_to_map();
        self.map.remove(key).flatten().filter(|record| record.large)
    }

    /// The write of a key, if there is one.
    pub(crate) fn get(&self, key: &[u8]) -> Option<Option<Record<'_>>> {
        if self.arrays.is_empty() {
            return self.map.get(key).map(view);
        }
        self.arrays.get(key)
    }

    /// The writes of `[from, to)`, in key order.
    pub(crate) fn range<'a>(
        &'a self,
        from: &[u8],
        to: Option<&[u8]>,
    ) -> impl Iterator<Item = PointWrite<'a>> + use<'a> {
        let to = to.map(|to| to.max(from));
        let ranks = self.arrays.position(from)..to.map_or_else(|| self.arrays.len(), |to| self.arrays.position(to));
        let bounds = (Bound::Included(from), to.map_or(Bound::Unbounded, Bound::Excluded));
        let in_map = self.map.range::<[u8], _>(bounds).map(|(key, write)| (key.as_slice(), view(write)));
        self.arrays.ranks(ranks).chain(in_map)
    }

    /// The key of the last write, if all writes are records, all keys have one length, all records have one length, and
    /// the keys came in ascending order.
    pub(crate) fn last_in_order(&self) -> Option<&[u8]> {
        self.arrays.last_in_order()
    }

    /// How many writes have a key up to `key`. Only if [`PointWrites::last_in_order`] returns a key.
    pub(crate) fn rank_above(&self, key: &[u8]) -> usize {
        self.arrays.position(&[key, &[0]].concat())
    }

    /// All writes, in key order.
    pub(crate) fn iter(&self) -> Iter<'_> {
        let uniform = self.arrays.uniform_in_order();
        let ranks = if uniform.is_some() { 0..0 } else { 0..self.arrays.len() };
        Iter { uniform, arrays: &self.arrays, ranks, map: self.map.iter() }
    }

    /// How many writes there are.
    pub(crate) fn len(&self) -> usize {
        self.arrays.len() + self.map.len()
    }

    /// True if there are no writes.
    pub(crate) fn is_empty(&self) -> bool {
        self.arrays.is_empty() && self.map.is_empty()
    }

    /// Removes all writes. It keeps a little memory for the next ones.
    pub(crate) fn reset(&mut self) {
        self.arrays.reset();
        (self.map, self.any_large) = (BTreeMap::new(), false);
    }

    fn move_to_map(&mut self) {
        let arrays = std::mem::take(&mut self.arrays);
        let writes = arrays.ranks(0..arrays.len());
        self.map.extend(writes.map(|(key, record)| (key.to_vec(), record.map(OwnedRecord::from))));
    }
}

/// The iterator of [`PointWrites::iter`].
#[derive(Clone, Debug)]
pub(crate) struct Iter<'a> {
    /// The writes, if they have one shape and came in order. The other fields are then empty.
    uniform: Option<UniformEntries<'a>>,
    arrays: &'a WriteArrays,
    ranks: Range<usize>,
    map: btree_map::Iter<'a, Vec<u8>, Option<OwnedRecord>>,
}

impl<'a> Iterator for Iter<'a> {
    type Item = PointWrite<'a>;

    #[inline(always)]
    fn next(&mut self) -> Option<PointWrite<'a>> {
        self.nth(0)
    }

    #[inline(always)]
    fn nth(&mut self, n: usize) -> Option<PointWrite<'a>> {
        match &mut self.uniform {
            Some(uniform) => uniform.nth(n),
            None => self.nth_other(n),
        }
    }
}

impl<'a> Iter<'a> {
    /// The keys and the bytes of the records, if the writes have one shape, came in order, and are all records that are
    /// not large.
    pub(in crate::txn) fn uniform_records(
        &self,
    ) -> Option<impl Iterator<Item = (&'a [u8], &'a [u8])> + Clone + use<'a>> {
        self.uniform.as_ref()?.records()
    }

    #[inline(never)]
    fn nth_other(&mut self, n: usize) -> Option<PointWrite<'a>> {
        // Either the arrays or the map are empty.
        match self.ranks.nth(n) {
            Some(rank) => self.arrays.nth(rank),
            None => self.map.nth(n).map(|(key, write)| (key.as_slice(), view(write))),
        }
    }
}

fn view(write: &Option<OwnedRecord>) -> Option<Record<'_>> {
    write.as_ref().map(OwnedRecord::view)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum WriteOp {
        Insert(Vec<u8>, Option<u8>),
        InsertLarge(Vec<u8>),
        /// A key above all others.
        Append(Option<u8>),
        Remove(Vec<u8>),
        /// A read in key order.
        Range,
    }

    /// Keys with few or many common first bytes, and keys that differ only in the number of zeros at the end.
    fn key() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            (0u8..60).prop_map(|byte| vec![byte]),
            (0usize..20, 0u8..3).prop_map(|(zeros, last)| [vec![7; 3], vec![0; zeros], vec![last]].concat()),
            (0usize..12).prop_map(|zeros| vec![0; zeros]),
        ]
    }

    fn op() -> impl Strategy<Value = WriteOp> {
        let write = || prop::option::weighted(0.8, any::<u8>());
        prop_oneof![
            20 => (key(), write()).prop_map(|(key, write)| WriteOp::Insert(key, write)),
            1 => key().prop_map(WriteOp::InsertLarge),
            20 => write().prop_map(WriteOp::Append),
            1 => key().prop_map(WriteOp::Remove),
            1 => Just(WriteOp::Range),
        ]
    }

    /// Mostly entries whose keys have one length and whose records have one length.
    fn uniform() -> impl Strategy<Value = WriteOp> {
        prop_oneof![
            60 => (any::<u8>(), any::<u8>())
                .prop_map(|(byte, write)| WriteOp::Insert(vec![9, 9, 9, byte], Some(write))),
            1 => op(),
        ]
    }

    fn ops() -> impl Strategy<Value = Vec<WriteOp>> {
        let in_order = (0u8..80).prop_map(|count| {
            (0..count).map(|byte| WriteOp::Insert(vec![9, 9, 9, byte], Some(byte))).collect::<Vec<_>>()
        });
        prop_oneof![
            prop::collection::vec(op(), 0..60),
            (in_order, prop::collection::vec(uniform(), 0..60)).prop_map(|(first, then)| [first, then].concat()),
        ]
    }

    type Model = BTreeMap<Vec<u8>, Option<OwnedRecord>>;

    fn same(writes: &PointWrites, model: &Model, from: &[u8], to: Option<&[u8]>) -> bool {
        let inside = model.iter().filter(|(key, _)| key.as_slice() >= from && to.is_none_or(|to| key.as_slice() < to));
        writes.range(from, to).eq(inside.map(|(key, write)| (key.as_slice(), view(write))))
    }

    proptest! {
        #[test]
        fn the_last_write_of_a_short_key_counts(writes in prop::collection::vec((0u32..40, prop::option::of(any::<u8>())), 0..200)) {
            let (mut arrays, mut model) = (PointWrites::default(), Model::new());
            for (key, write) in writes {
                let (key, bytes) = (key.wrapping_mul(0x0700_0001).to_be_bytes(), write.map(|byte| [byte]));
                let record = bytes.as_ref().map(|bytes| Record::inline(bytes));
                arrays.insert(&key, record);
                model.insert(key.to_vec(), record.map(OwnedRecord::from));
            }
            prop_assert!(arrays.iter().eq(model.iter().map(|(key, write)| (key.as_slice(), view(write)))));
            prop_assert!(arrays.map.is_empty());
        }

        #[test]
        fn writes_in_any_order_agree_with_a_map(ops in ops(), from in key(), to in key(), byte: u8) {
            let (mut writes, mut model) = (PointWrites::default(), Model::new());
            let large = |before: Option<Option<OwnedRecord>>| before.flatten().filter(|before| before.large);
            for op in ops {
                match op {
                    WriteOp::Insert(key, write) => {
                        let bytes = write.map(|byte| [byte]);
                        let record = bytes.as_ref().map(|bytes| Record::inline(bytes));
                        let before = model.insert(key.clone(), record.map(OwnedRecord::from));
                        prop_assert_eq!(writes.insert(&key, record), large(before));
                    }
                    WriteOp::InsertLarge(key) => {
                        let record = Record { bytes: &[1; 12], large: true };
                        let before = model.insert(key.clone(), Some(record.into()));
                        prop_assert_eq!(writes.insert(&key, Some(record)), large(before));
                    }
                    WriteOp::Append(write) => {
                        let key = model.last_key_value().map_or(vec![0], |(last, _)| [last.as_slice(), &[7]].concat());
                        let bytes = write.map(|byte| [byte]);
                        let record = bytes.as_ref().map(|bytes| Record::inline(bytes));
                        prop_assert_eq!(writes.insert(&key, record), None);
                        model.insert(key, record.map(OwnedRecord::from));
                    }
                    WriteOp::Remove(key) => prop_assert_eq!(writes.remove(&key), large(model.remove(&key))),
                    WriteOp::Range => prop_assert!(same(&writes, &model, &from, Some(&to))),
                }
            }
            prop_assert_eq!(writes.is_empty(), model.is_empty());
            prop_assert!(writes.iter().eq(model.iter().map(|(key, write)| (key.as_slice(), view(write)))));
            for key in model.keys().chain([&from, &to]) {
                prop_assert_eq!(writes.get(key), model.get(key).map(view));
            }
            prop_assert!(same(&writes, &model, &from, Some(&to)) && same(&writes, &model, &from, None));
            if let Some(last) = writes.last_in_order() {
                prop_assert_eq!(model.last_key_value().map(|(key, _)| key.as_slice()), Some(last));
                for from in [from, vec![9, 9, 9, byte]] {
                    let not_above = model.keys().filter(|key| **key <= from).count();
                    prop_assert_eq!(writes.rank_above(&from), not_above);
                }
            }
            for n in [0, 1, 7, 70] {
                let nth = |n| model.iter().nth(n).map(|(key, write)| (key.as_slice(), view(write)));
                let mut iter = writes.iter();
                prop_assert_eq!((iter.nth(n), iter.next()), (nth(n), nth(n + 1)));
            }
        }
    }

    #[test]
    fn overwrites_of_few_keys_take_little_memory() {
        let (mut writes, record) = (PointWrites::default(), [7; 1000]);
        for turn in 0..4_000u32 {
            let bytes = &record[..1000 - turn as usize / 4];
            writes.insert(&(turn * 7 % 100).to_be_bytes(), Some(Record::inline(bytes)));
        }
        assert!(writes.map.is_empty() && writes.arrays.bytes() < 2 << 20);
        assert_eq!(writes.iter().count(), 100);
        let last = writes.get(&(3_999u32 * 7 % 100).to_be_bytes()).flatten();
        assert_eq!(last.map(|record| record.bytes.len()), Some(1000 - 3_999 / 4));
    }
}

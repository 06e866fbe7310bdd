//! The writes of a transaction to one table, which it keeps in memory until it commits.
//!
//! Point writes are always newer than cleared ranges: clearing a range removes the point writes inside it.

use super::point_writes::{self, PointWrite, PointWrites};
use crate::page::Record;
use crate::tree::KeyRange;
use crate::txn::versions::OwnedRecord;

/// The writes to one table.
#[derive(Default, Debug)]
pub(crate) struct WriteSet {
    points: PointWrites,
    /// Sorted and disjoint.
    cleared: Vec<KeyRange>,
}

/// The last write of a key in a write set.
pub(crate) enum LastWrite<'a> {
    /// The last write put this record.
    Record(Record<'a>),
    /// The key was removed.
    Removed,
    /// No write: the tree has the record, if there is one.
    Unwritten,
}

impl WriteSet {
    /// Writes a key or, with `None`, removes it. Returns the large record that this transaction had written before, if
    /// there is one.
    #[inline(always)]
    pub(crate) fn put(&mut self, key: &[u8], record: Option<Record<'_>>) -> Option<OwnedRecord> {
        self.points.insert(key, record)
    }

    /// Removes every key of a range. Returns the large records that this transaction had written there.
    pub(crate) fn clear(&mut self, range: KeyRange) -> Vec<OwnedRecord> {
        let inside: Vec<Vec<u8>> =
            self.points_in(&range.lower, range.upper.as_deref()).map(|(key, _)| key.to_vec()).collect();
        let mut dropped = Vec::new();
        for key in inside {
            dropped.extend(self.points.remove(&key));
        }
        range.merge_into(&mut self.cleared);
        dropped
    }

    /// The write of this transaction to `key`.
    pub(crate) fn get(&self, key: &[u8]) -> LastWrite<'_> {
        match self.points.get(key) {
            Some(Some(record)) => LastWrite::Record(record),
            Some(None) => LastWrite::Removed,
            None if self.is_cleared(key) => LastWrite::Removed,
            None => LastWrite::Unwritten,
        }
    }

    /// True if `key` is in a cleared range.
    pub(crate) fn is_cleared(&self, key: &[u8]) -> bool {
        // The ranges are sorted and disjoint, so only the last one that begins at or before the key can contain it.
        let after = self.cleared.partition_point(|range| range.lower.as_slice() <= key);
        after.checked_sub(1).and_then(|last| self.cleared.get(last)).is_some_and(|range| range.contains(key))
    }

    /// True if a write or a cleared range may touch `[from, to)`.
    pub(crate) fn touches(&self, from: &[u8], to: Option<&[u8]>) -> bool {
        if to.is_some_and(|to| to <= from) {
            return false;
        }
        !self.cleared.is_empty() || self.points.range(from, to).next().is_some()
    }

    /// The point writes of `[from, to)` in key order.
    pub(crate) fn points_in<'a>(
        &'a self,
        from: &[u8],
        to: Option<&[u8]>,
    ) -> impl Iterator<Item = PointWrite<'a>> + use<'a> {
        self.points.range(from, to)
    }

    /// All point writes, in key order.
    pub(crate) fn points(&self) -> point_writes::Iter<'_> {
        self.points.iter()
    }

    /// How many point writes there are.
    pub(crate) fn len(&self) -> usize {
        self.points.len()
    }

    /// The key of the last point write, if all are records, all keys have one length, all records have one length, and
    /// the keys came in order.
    pub(crate) fn last_in_order(&self) -> Option<&[u8]> {
        self.points.last_in_order()
    }

    /// How many point writes have a key up to `key`. Only if [`WriteSet::last_in_order`] returns a key.
    pub(crate) fn rank_above(&self, key: &[u8]) -> usize {
        self.points.rank_above(key)
    }

    /// Removes all writes. It keeps a little memory for the next ones.
    pub(crate) fn reset(&mut self) {
        self.points.reset();
        self.cleared = Vec::new();
    }

    /// The cleared ranges, sorted and disjoint.
    pub(crate) fn cleared(&self) -> &[KeyRange] {
        &self.cleared
    }

    /// True if there is nothing to write.
    pub(crate) fn is_empty(&self) -> bool {
        self.points.is_empty() && self.cleared.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(bytes: &[u8]) -> Option<Record<'_>> {
        Some(Record::inline(bytes))
    }

    #[test]
    fn later_writes_replace_earlier_ones_and_cleared_ranges() {
        let mut set = WriteSet::default();
        set.put(b"b", record(b"1"));
        set.clear(KeyRange { lower: b"a".to_vec(), upper: Some(b"c".to_vec()) });
        assert!(matches!(set.get(b"b"), LastWrite::Removed));
        assert!(matches!(set.get(b"c"), LastWrite::Unwritten));
        set.put(b"b", record(b"2"));
        assert!(matches!(set.get(b"b"), LastWrite::Record(r) if r.bytes == b"2"));
        set.put(b"b", None);
        assert!(matches!(set.get(b"b"), LastWrite::Removed));
        assert!(set.touches(b"x", None) && !set.is_empty());
    }
}

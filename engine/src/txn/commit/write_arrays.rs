//! Writes in the order in which they were made, in one arena. The order of the keys is computed on first use, at the
//! latest at commit.

use super::point_writes::PointWrite;
use crate::base::bytes;
use crate::page::Record;
use crate::txn::entry_arena::{EntryArena, UniformEntries};
use std::ops::Range;
use std::sync::OnceLock;

/// The number of bytes at which overwritten writes are removed for the first time.
const FIRST_LIMIT: usize = 1 << 20;

/// If the arrays have more bytes than this after a transaction, they are dropped.
const MAX_KEPT_BYTES: usize = 16 << 10;

/// Writes in the order in which they were made.
#[derive(Debug)]
pub(crate) struct WriteArrays {
    /// Keys with the records written, or without a record for a removal.
    writes: EntryArena,
    /// The keys came in ascending order, each key once.
    in_order: bool,
    /// The index of the last write of each key, in the order of the keys. Computed on first use, and only if the keys
    /// did not come in order.
    order: OnceLock<Vec<u32>>,
    /// With more bytes than this, overwritten writes are removed.
    limit: usize,
}

impl Default for WriteArrays {
    fn default() -> WriteArrays {
        WriteArrays { writes: EntryArena::default(), in_order: true, order: OnceLock::new(), limit: FIRST_LIMIT }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "truncation is what it is for")]
fn low_half(number: u64) -> u32 {
    number as u32
}

impl WriteArrays {
    /// Adds a write of a record if it has the shape of all other entries.
    #[inline(always)]
    pub(crate) fn push_uniform(&mut self, key: &[u8], record: &[u8]) -> bool {
        let bytes = self.writes.bytes() + key.len() + record.len();
        if self.order.get().is_some() || bytes > self.limit.min(u32::MAX as usize) {
            return false;
        }
        let in_order = self.in_order && bytes::is_below(self.writes.last_key(), key);
        let pushed = self.writes.push_uniform(key, Some(Record::inline(record)));
        if pushed {
            self.in_order = in_order;
        }
        pushed
    }

    /// Adds a write with any key. Returns false if the sorted order was already computed, because it would have to be
    /// computed again.
    pub(crate) fn push(&mut self, key: &[u8], record: Option<Record<'_>>) -> bool {
        if self.order.get().is_some() || self.writes.len() >= u32::MAX as usize {
            return false;
        }
        self.in_order = self.in_order && (self.is_empty() || bytes::is_below(self.writes.last_key(), key));
        self.writes.push(key, record);
        if self.bytes() > self.limit {
            self.remove_overwritten();
        }
        true
    }

    /// Bytes that all writes use.
    pub(crate) fn bytes(&self) -> usize {
        self.writes.bytes()
    }

    /// True if there are no writes.
    pub(crate) fn is_empty(&self) -> bool {
        self.writes.len() == 0
    }

    /// The key of the last write, if all writes are records, all keys have one length, all records have one length, and
    /// the keys came in order.
    pub(crate) fn last_in_order(&self) -> Option<&[u8]> {
        (self.in_order && self.writes.has_uniform_records()).then(|| self.writes.last_key())
    }

    /// The number of different keys.
    pub(crate) fn len(&self) -> usize {
        if self.in_order { self.writes.len() } else { self.order().len() }
    }

    /// The index of the write at a rank in key order. For other ranks it is the index of no write.
    #[inline(always)]
    fn index(&self, rank: usize) -> usize {
        if self.in_order { rank } else { self.order().get(rank).map_or(usize::MAX, |index| *index as usize) }
    }

    /// The first rank whose key is not below `key`.
    pub(crate) fn position(&self, key: &[u8]) -> usize {
        self.writes.position(key, self.len(), |rank| self.index(rank))
    }

    /// The last write of a key.
    pub(crate) fn get(&self, key: &[u8]) -> Option<Option<Record<'_>>> {
        let (found, record) = self.nth(self.position(key))?;
        (found == key).then_some(record)
    }

    /// The last writes of the keys at these ranks, in key order.
    pub(crate) fn ranks(&self, ranks: Range<usize>) -> impl Iterator<Item = PointWrite<'_>> {
        ranks.filter_map(|rank| self.nth(rank))
    }

    /// All writes, if they have one shape and came in order.
    pub(crate) fn uniform_in_order(&self) -> Option<UniformEntries<'_>> {
        if self.in_order { self.writes.uniform() } else { None }
    }

    /// The last write of the key at a rank.
    #[inline(always)]
    pub(crate) fn nth(&self, rank: usize) -> Option<PointWrite<'_>> {
        self.writes.get(self.index(rank))
    }

    fn order(&self) -> &[u32] {
        self.order.get_or_init(|| self.sorted())
    }

    /// The indexes of the last writes of each key, in key order. The keys are sorted by the eight bytes after their
    /// common prefix, which are usually different.
    fn sorted(&self) -> Vec<u32> {
        if let Some(order) = self.sorted_short() {
            return order;
        }
        let keys = || (0..self.writes.len()).map(|index| self.writes.key(index));
        let common = keys().map(|key| bytes::common_prefix(self.writes.key(0), key)).min().unwrap_or(0);
        let head = |key: &[u8]| match key.get(common..).unwrap_or_default() {
            [a, b, c, d, e, f, g, h, ..] => u64::from_be_bytes([*a, *b, *c, *d, *e, *f, *g, *h]),
            rest => rest.iter().fold(0, |head, byte| head << 8 | u64::from(*byte)) << (64 - 8 * rest.len().max(1)),
        };
        // One number of head and index sorts fast: most heads are different.
        let mut all: Vec<u128> = keys().zip(0u32..).map(|(k, i)| u128::from(head(k)) << 32 | u128::from(i)).collect();
        all.sort_unstable();
        let index = |one: u128| {
            let [a, b, c, d, ..] = one.to_le_bytes();
            u32::from_le_bytes([a, b, c, d])
        };
        let key = |one: u128| self.writes.key(index(one) as usize);
        let mut order = Vec::with_capacity(all.len());
        for same in all.chunk_by_mut(|a, b| a >> 32 == b >> 32) {
            if same.len() > 1 {
                same.sort_unstable_by(|a, b| bytes::compare(key(*a), key(*b)).then_with(|| a.cmp(b)));
            }
            // The last write of a key has the greatest index.
            order.extend(
                same.chunk_by(|a, b| key(*a) == key(*b)).filter_map(|writes| writes.last()).map(|one| index(*one)),
            );
        }
        order
    }

    /// Like `sorted`, for keys of four bytes, as integers: only half as many bytes to sort.
    fn sorted_short(&self) -> Option<Vec<u32>> {
        let mut all: Vec<u64> = Vec::with_capacity(self.writes.len());
        for (place, index) in (0..self.writes.len()).zip(0u32..) {
            let key = self.writes.key(place).try_into().ok()?;
            all.push(u64::from(u32::from_be_bytes(key)) << 32 | u64::from(index));
        }
        all.sort_unstable();
        // The last write of a key has the greatest index.
        let nexts = all.iter().skip(1).map(|next| Some(next >> 32)).chain([None]);
        let mut order = Vec::with_capacity(all.len());
        for (one, next) in all.iter().zip(nexts) {
            if Some(one >> 32) != next {
                order.push(low_half(*one));
            }
        }
        Some(order)
    }

    /// Removes all writes. It keeps a little memory for the next ones.
    pub(crate) fn reset(&mut self) {
        let mut writes = std::mem::take(&mut self.writes);
        *self = WriteArrays::default();
        if writes.allocated() <= MAX_KEPT_BYTES {
            writes.clear();
            self.writes = writes;
        }
    }

    /// Keeps only the last write of each key, in key order.
    fn remove_overwritten(&mut self) {
        if self.in_order {
            // Nothing is overwritten.
            self.limit = (2 * self.bytes()).max(FIRST_LIMIT);
            return;
        }
        let mut kept = WriteArrays { limit: usize::MAX, ..WriteArrays::default() };
        for (key, record) in self.ranks(0..self.len()) {
            kept.push(key, record);
        }
        *self = WriteArrays { limit: (2 * kept.bytes()).max(FIRST_LIMIT), ..kept };
    }
}

//! Writes in the order in which they came: keys and records lie in one arena, so that a write costs two copies and no
//! memory of its own. The order of the keys is found when it is first asked for, at the latest at commit. What a write
//! means must never be known here.

use super::point_writes::PointWrite;
use crate::base::bytes;
use crate::page::Record;
use std::ops::Range;
use std::sync::OnceLock;

/// A write. Its key and the bytes of its record lie at `at`, one behind the other.
#[derive(Clone, Copy, Debug)]
struct Write {
    at: usize,
    key: u32,
    what: What,
}

/// What was written at a key.
#[derive(Clone, Copy, Debug)]
enum What {
    Removal,
    /// A record of so many bytes.
    Record {
        len: u32,
        large: bool,
    },
}

/// What all writes are, if they are alike: keys of so many bytes, at least one, and records within the page, one of which with
/// its key takes `stride` bytes. Then where each lies needs no note.
#[derive(Clone, Copy, Debug)]
struct Alike {
    key: usize,
    stride: usize,
    count: usize,
}

/// The last of a table's writes in the order of their keys: entries, their keys all of one length, without gaps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tail<'a> {
    bytes: &'a [u8],
    key: usize,
    stride: usize,
}

impl<'a> Tail<'a> {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() / self.stride.max(1)
    }

    /// The keys and records.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        let key = self.key;
        self.bytes.chunks_exact(self.stride.max(1)).map(move |entry| entry.split_at_checked(key).unwrap_or_default())
    }

    /// The length of the keys and all of them, one behind the other, if there are no records between them.
    pub(crate) fn keys_alone(&self) -> Option<(usize, &'a [u8])> {
        (self.key == self.stride).then_some((self.key, self.bytes))
    }
}

/// Bytes that writes may take before those that were overwritten are thrown out for the first time.
const FIRST_LIMIT: usize = 1 << 20;

/// See the module's words.
#[derive(Debug)]
pub(in crate::txn) struct WriteArrays {
    arena: Vec<u8>,
    /// None while all are alike.
    writes: Vec<Write>,
    alike: Option<Alike>,
    /// The writes came in the order of their keys, each key once.
    in_order: bool,
    /// If not, and if it has been asked for: the last write of each key, in the order of the keys.
    order: OnceLock<Vec<u32>>,
    /// With more bytes than that, overwritten writes are looked for.
    limit: usize,
}

impl Default for WriteArrays {
    fn default() -> WriteArrays {
        WriteArrays {
            arena: Vec::new(),
            writes: Vec::new(),
            alike: None,
            in_order: true,
            order: OnceLock::new(),
            limit: FIRST_LIMIT,
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "truncation is what it is for")]
fn low_half(number: u64) -> u32 {
    number as u32
}

impl WriteArrays {
    /// Adds an entry if it is like all others.
    #[inline(always)]
    pub(in crate::txn) fn push_alike(&mut self, key: &[u8], record: &[u8]) -> bool {
        let Some(alike) = &mut self.alike else { return false };
        let from = self.arena.len().wrapping_sub(alike.stride);
        if key.len() != alike.key
            || record.len() != alike.stride - alike.key
            || self.order.get().is_some()
            || self.arena.len() + alike.stride > self.limit.min(u32::MAX as usize)
        {
            return false;
        }
        self.in_order = self.in_order && bytes::is_below(bytes::slice(&self.arena, from, from + alike.key), key);
        alike.count += 1;
        bytes::append(&mut self.arena, key);
        bytes::append(&mut self.arena, record);
        true
    }

    /// Adds a write, of whatever key, unless the order of the keys has been asked for and would have to be found again.
    pub(in crate::txn) fn push(&mut self, key: &[u8], record: Option<Record<'_>>) -> bool {
        let (Ok(key_len), Ok(len)) = (u32::try_from(key.len()), u32::try_from(record.map_or(0, |r| r.bytes.len())))
        else {
            return false;
        };
        if self.order.get().is_some() || self.total() >= u32::MAX as usize {
            return false;
        }
        let plain = record.filter(|record| !record.large && !key.is_empty());
        let one = plain.map(|record| Alike { key: key.len(), stride: key.len() + record.bytes.len(), count: 0 });
        if self.is_empty() {
            self.alike = one;
        }
        let is_other = |all: Alike| one.is_none_or(|one| (all.key, all.stride) != (one.key, one.stride));
        if self.alike.is_some_and(is_other) {
            self.unfold();
        }
        self.in_order = self.in_order && self.last().is_none_or(|last| bytes::is_below(self.key(last), key));
        let what = record.map_or(What::Removal, |record| What::Record { len, large: record.large });
        match &mut self.alike {
            Some(alike) => alike.count += 1,
            None => self.writes.push(Write { at: self.arena.len(), key: key_len, what }),
        }
        bytes::append(&mut self.arena, key);
        bytes::append(&mut self.arena, record.map_or(&[], |record| record.bytes));
        if self.bytes() > self.limit {
            self.throw_out();
        }
        true
    }

    /// Bytes of all writes.
    pub(in crate::txn) fn bytes(&self) -> usize {
        self.arena.len() + self.writes.len() * size_of::<Write>()
    }

    /// True if nothing was written.
    pub(in crate::txn) fn is_empty(&self) -> bool {
        self.total() == 0
    }

    /// How many writes there are, those that were overwritten among them.
    fn total(&self) -> usize {
        self.alike.map_or(self.writes.len(), |alike| alike.count)
    }

    /// The write of that index, in the order in which they came.
    #[inline]
    fn write(&self, index: usize) -> Option<Write> {
        let Some(Alike { key, stride, count }) = self.alike else { return self.writes.get(index).copied() };
        #[expect(clippy::cast_possible_truncation, reason = "they came as u32")]
        let (key, len) = (key as u32, (stride - key) as u32);
        (index < count).then_some(Write { at: index * stride, key, what: What::Record { len, large: false } })
    }

    fn last(&self) -> Option<Write> {
        self.write(self.total().checked_sub(1)?)
    }

    /// Notes where each write lies, as one that is not like them needs.
    fn unfold(&mut self) {
        self.writes = (0..self.total()).map_while(|index| self.write(index)).collect();
        self.alike = None;
    }

    /// The writes from `rank` on, if they are alike and came in order.
    pub(in crate::txn) fn tail(&self, rank: usize) -> Option<Tail<'_>> {
        let Alike { key, stride, .. } = self.alike.filter(|_| self.in_order)?;
        let bytes = self.arena.get(rank.checked_mul(stride)?..)?;
        Some(Tail { bytes, key, stride })
    }

    /// How many keys there are.
    pub(in crate::txn) fn len(&self) -> usize {
        if self.in_order { self.total() } else { self.order().len() }
    }

    /// The write at a rank, below [`WriteArrays::len`], of the order of the keys.
    #[inline]
    fn at(&self, rank: usize) -> Option<Write> {
        match self.in_order {
            true => self.write(rank),
            false => self.write(*self.order().get(rank)? as usize),
        }
    }

    /// The first rank whose key is not below this one.
    pub(in crate::txn) fn position(&self, key: &[u8]) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            match self.at(middle).is_some_and(|write| self.key(write) < key) {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }

    /// What was written last at a key.
    pub(in crate::txn) fn get(&self, key: &[u8]) -> Option<Option<Record<'_>>> {
        let write = self.at(self.position(key))?;
        (self.key(write) == key).then(|| self.record(write))
    }

    /// The last write of each key at these ranks, in the order of the keys.
    pub(in crate::txn) fn ranks(&self, ranks: Range<usize>) -> impl Iterator<Item = PointWrite<'_>> {
        ranks.filter_map(|rank| self.nth(rank))
    }

    /// The last write of the key at a rank.
    #[inline]
    pub(in crate::txn) fn nth(&self, rank: usize) -> Option<PointWrite<'_>> {
        let write = self.at(rank)?;
        Some((self.key(write), self.record(write)))
    }

    #[inline]
    fn key(&self, write: Write) -> &[u8] {
        bytes::slice(&self.arena, write.at, write.at + write.key as usize)
    }

    fn record(&self, write: Write) -> Option<Record<'_>> {
        let What::Record { len, large } = write.what else { return None };
        let at = write.at + write.key as usize;
        Some(Record { bytes: bytes::slice(&self.arena, at, at + len as usize), large })
    }

    fn order(&self) -> &[u32] {
        self.order.get_or_init(|| self.sorted())
    }

    /// The last write of each key, in the order of the keys. These are sorted by the eight bytes behind what all have in
    /// common, which mostly tell them apart.
    fn sorted(&self) -> Vec<u32> {
        if let Some(order) = self.sorted_short() {
            return order;
        }
        let first = self.write(0).map_or(&[][..], |write| self.key(write));
        let writes = || (0..self.total()).map_while(|index| self.write(index));
        let common = |write| bytes::common_prefix(first, self.key(write));
        let common = writes().map(common).min().unwrap_or(0);
        let head = |write| match self.key(write).get(common..).unwrap_or_default() {
            [a, b, c, d, e, f, g, h, ..] => u64::from_be_bytes([*a, *b, *c, *d, *e, *f, *g, *h]),
            rest => rest.iter().fold(0, |head, byte| head << 8 | u64::from(*byte)) << (64 - 8 * rest.len().max(1)),
        };
        // One number of head and index: those of keys with different heads compare as fast as can be.
        let mut all: Vec<u128> = writes().zip(0u32..).map(|(w, i)| u128::from(head(w)) << 32 | u128::from(i)).collect();
        all.sort_unstable();
        let index = |one: u128| {
            let [a, b, c, d, ..] = one.to_le_bytes();
            u32::from_le_bytes([a, b, c, d])
        };
        let key = |one: u128| self.write(index(one) as usize).map_or(&[][..], |write| self.key(write));
        let mut order = Vec::with_capacity(all.len());
        for same in all.chunk_by_mut(|a, b| a >> 32 == b >> 32) {
            if same.len() > 1 {
                same.sort_unstable_by(|a, b| bytes::compare(key(*a), key(*b)).then_with(|| a.cmp(b)));
            }
            // Of one key the last write has the greatest index.
            order.extend(
                same.chunk_by(|a, b| key(*a) == key(*b)).filter_map(|writes| writes.last()).map(|one| index(*one)),
            );
        }
        order
    }

    /// The same where all keys have four bytes, as integers: half as much to sort.
    fn sorted_short(&self) -> Option<Vec<u32>> {
        let number = |(write, index): (Write, u32)| {
            let key = self.key(write).try_into().ok()?;
            Some(u64::from(u32::from_be_bytes(key)) << 32 | u64::from(index))
        };
        let mut all: Vec<u64> = Vec::with_capacity(self.total());
        for one in (0..self.total()).map_while(|index| self.write(index)).zip(0..) {
            all.push(number(one)?);
        }
        all.sort_unstable();
        // Of one key the last write has the greatest index.
        let nexts = all.iter().skip(1).map(|next| Some(next >> 32)).chain([None]);
        let mut order = Vec::with_capacity(all.len());
        for (one, next) in all.iter().zip(nexts) {
            if Some(one >> 32) != next {
                order.push(low_half(*one));
            }
        }
        Some(order)
    }

    /// Keeps the last write of each key alone, in order.
    fn throw_out(&mut self) {
        if self.in_order {
            // Each key is there once.
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

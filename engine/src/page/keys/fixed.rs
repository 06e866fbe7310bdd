//! The fixed-length key list: keys of one length, packed in order. It has no slots and does not cut the page's prefix.
//!
//! The layout is `[length u16] [keys]`; an empty list takes no bytes. The first key that is not empty sets the length.
//! An inner page's key 0, which is empty, is kept as zeros of that length.

use super::row::KeyFront;
use super::scheme::{Build, EditResult, Features, List, Scheme, insert_planned, own_bytes, wrong_length};
use super::{AdjacentKeys, InsertPlan, KeyState, WalkPosition};
use crate::base::bytes;
use crate::page::check::cannot_hold;
use std::cmp::Ordering;
use std::ops::Range;

/// The bytes of the length field.
const FIELD: usize = 2;

/// A fixed-length key list to read.
#[derive(Clone, Copy)]
pub(crate) struct Fixed<'a> {
    keys: &'a [u8],
    stride: usize,
    count: usize,
}

impl<'a> Fixed<'a> {
    #[inline(always)]
    pub(super) fn new(list: &'a [u8], count: usize) -> Fixed<'a> {
        let stride = usize::from(bytes::get_u16(list, 0));
        Fixed { keys: list.get(FIELD..).unwrap_or_default(), stride, count }
    }

    #[inline(always)]
    fn key(&self, slot: usize) -> &'a [u8] {
        bytes::slice(self.keys, slot * self.stride, slot * self.stride + self.stride)
    }

    /// Returns the list from the key of `slot` on.
    #[inline(always)]
    fn tail(&self, slot: usize) -> &'a [u8] {
        self.keys.get(slot * self.stride..).unwrap_or_default()
    }

    /// Searches keys as long as a machine integer, without branches, as the slotted list searches its heads.
    #[inline(always)]
    fn search_integers<const N: usize, T: Ord>(
        &self,
        key: &[u8],
        keys: &[[u8; N]],
        integer: impl Fn([u8; N]) -> T,
    ) -> Result<usize, usize> {
        let Some(wanted) = key.first_chunk().filter(|_| key.len() == N).map(|bytes| integer(*bytes)) else {
            return self.search_bytes(key);
        };
        let keys = keys.get(..self.count).unwrap_or_default();
        let (mut base, mut size) = (0, keys.len());
        // A step that compares three keys at once takes little more time than a step that compares one.
        while size > 3 {
            let quarter = size / 4;
            let not_above = |part: usize| {
                usize::from(keys.get(base + part * quarter).is_some_and(|there| integer(*there) <= wanted))
            };
            let parts = not_above(1) + not_above(2) + not_above(3);
            base += parts * quarter;
            // The last part contains the remainder. Other parts may contain some keys that are known to be above the
            // sought one.
            size -= 3 * quarter;
        }
        while size > 1 {
            let half = size / 2;
            let below = keys.get(base + half).is_some_and(|there| integer(*there) <= wanted);
            base = std::hint::select_unpredictable(below, base + half, base);
            size -= half;
        }
        match keys.get(base).map(|there| integer(*there).cmp(&wanted)) {
            Some(Ordering::Equal) => Ok(base),
            Some(Ordering::Less) => Err(base + 1),
            _ => Err(base),
        }
    }

    fn search_bytes(&self, key: &[u8]) -> Result<usize, usize> {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low.midpoint(high);
            match bytes::compare(self.key(middle), key) {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return Ok(middle),
                Ordering::Greater => high = middle,
            }
        }
        Err(low)
    }
}

impl<'a> List<'a> for Fixed<'a> {
    fn first_longer(&self, from: usize, len: usize) -> Option<usize> {
        (from < self.count && self.stride > len).then_some(from)
    }

    #[inline]
    fn search(&self, key: &[u8]) -> Result<usize, usize> {
        match self.stride {
            8 => self.search_integers(key, self.keys.as_chunks::<8>().0, u64::from_be_bytes),
            4 => self.search_integers(key, self.keys.as_chunks::<4>().0, u32::from_be_bytes),
            _ => self.search_bytes(key),
        }
    }

    #[inline]
    fn part_of_way(&self, from: Option<&[u8]>, slot: usize, key: &[u8]) -> Option<usize> {
        let from = from.unwrap_or_else(|| self.key(slot));
        let integer = |bytes: &[u8]| bytes.try_into().ok().map(|bytes| u64::from(u32::from_be_bytes(bytes)));
        let (key, from, to) = (integer(key)?, integer(from)?, integer(self.key(slot + 1))?);
        let part = (key.checked_sub(from)? << 16).checked_div(to.checked_sub(from)?)?;
        usize::try_from(part).ok()
    }

    #[inline]
    fn append(&self, slot: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(self.key(slot));
    }

    #[inline]
    fn entry_bytes(&self, _slot: usize) -> usize {
        self.stride
    }

    #[inline]
    fn suffix_len(&self, _slot: usize) -> usize {
        self.stride
    }

    fn check(&self, list: &[u8], count: usize) -> Result<(), String> {
        let expected = if count == 0 { 0 } else { FIELD + count * self.stride };
        if list.len() == expected {
            return Ok(());
        }
        Err(cannot_hold(list.len(), count, format_args!("keys of {} bytes", self.stride)))
    }

    #[inline]
    fn common_with_previous(&self, slot: usize) -> usize {
        slot.checked_sub(1).map_or(0, |left| bytes::common_prefix(self.key(left), self.key(slot)))
    }

    #[inline(always)]
    fn is_above(&self, slot: usize, suffix: &[u8]) -> bool {
        self.key(slot) > suffix
    }

    #[inline]
    fn is_above_previous(&self, slot: usize) -> bool {
        slot.checked_sub(1).is_none_or(|left| self.key(left) < self.key(slot))
    }

    fn add_to(&self, row: &mut AdjacentKeys, prefix: &[u8], _place: &mut WalkPosition, from: usize, to: usize) {
        let lead = KeyFront::new([prefix, &[]]);
        (from..to).for_each(|slot| row.push_tail(&lead, self.stride, self.tail(slot)));
    }
}

/// Returns the key length of a list of `count` keys of `now` bytes with `suffix` in it; `None` if it cannot hold
/// `suffix`. The first key sets the length, or the second if the first is an inner page's empty key.
fn stride_with(now: usize, count: usize, inner: bool, suffix: &[u8]) -> Option<usize> {
    let unset = count == 0 || (inner && count == 1 && now == 0);
    (unset || suffix.len() == now).then_some(suffix.len())
}

/// The implementation of [`Scheme`] for the fixed-length key list.
#[derive(Clone, Copy)]
pub(crate) struct FixedScheme;

impl Scheme for FixedScheme {
    type List<'a> = Fixed<'a>;
    type Builder = FixedKeysBuilder;

    #[inline(always)]
    fn features(self) -> Features {
        Features { cuts_prefix: false, one_length: true, ..Features::USUAL }
    }

    #[inline(always)]
    fn list(self, list: &[u8], count: usize, _granule: usize) -> Fixed<'_> {
        Fixed::new(list, count)
    }

    fn builder(self, _granule: usize, inner: bool, _bytes: usize) -> FixedKeysBuilder {
        FixedKeysBuilder { inner, stride: 0, count: 0, keys: Vec::new() }
    }

    fn entry_bytes(self, suffix_len: usize) -> usize {
        suffix_len
    }

    fn least_entry_bytes(self, len: usize, _common: usize, _inner: bool) -> usize {
        len
    }

    fn first_key_len_is_valid(self, _len: usize) -> bool {
        true
    }

    fn is_changeable(self, list: &[u8], state: KeyState) -> bool {
        Fixed::new(list, state.count).check(list, state.count).is_ok()
    }

    fn plan(self, list: &[u8], state: KeyState, _slot: usize, suffix: &[u8]) -> Result<Option<InsertPlan>, String> {
        let now = Fixed::new(list, state.count).stride;
        match stride_with(now, state.count, state.inner, suffix) {
            Some(stride) => Ok(Some(InsertPlan::of(FIELD + (state.count + 1) * stride))),
            None => Err(wrong_length(suffix.len(), now)),
        }
    }

    fn insert(self, list: &mut [u8], state: KeyState, slot: usize, suffix: &[u8]) -> EditResult {
        insert_planned(self, list, state, slot, suffix, |list, _| {
            // A hostile page may have bytes after the list. They must not set the key length.
            let now = Fixed::new(bytes::slice(list, 0, state.bytes), state.count).stride;
            let stride = now.max(suffix.len());
            bytes::put_u16(list, 0, bytes::u16_of(stride));
            let at = FIELD + slot * stride;
            bytes::shift(list, at, FIELD + state.count * stride, at + stride);
            bytes::zero(list, at, at + stride);
            bytes::put(list, at, suffix);
        })
    }

    fn remove(self, list: &mut [u8], state: KeyState, from: usize, to: usize) -> EditResult {
        let list = own_bytes(list, state);
        let stride = Fixed::new(list, state.count).stride;
        let left = state.count - (to - from);
        bytes::shift(list, FIELD + to * stride, state.bytes, FIELD + from * stride);
        let end = if left == 0 { 0 } else { FIELD + left * stride };
        bytes::zero(list, end, state.bytes);
        Ok(Some(end))
    }
}

/// A fixed-length key list under construction.
pub(crate) struct FixedKeysBuilder {
    inner: bool,
    stride: usize,
    count: usize,
    keys: Vec<u8>,
}

impl Build for FixedKeysBuilder {
    type List<'a> = Fixed<'a>;

    fn bytes(&self) -> usize {
        if self.count == 0 { 0 } else { FIELD + self.count * self.stride }
    }

    fn bytes_with(&self, suffix: &[u8]) -> Option<usize> {
        let stride = stride_with(self.stride, self.count, self.inner, suffix)?;
        Some(FIELD + (self.count + 1) * stride)
    }

    fn push(&mut self, suffix: &[u8]) {
        if self.stride < suffix.len() {
            // Only an empty key can precede the key that sets the length.
            self.stride = suffix.len();
            self.keys.resize(self.count * self.stride, 0);
        }
        self.keys.extend_from_slice(suffix);
        self.count += 1;
    }

    fn take(&mut self, from: &Fixed<'_>, slots: Range<usize>, cut: usize) -> bool {
        let Some(first) = slots.clone().next() else { return true };
        let stride = from.stride;
        let keys = bytes::slice(from.keys, first * stride, slots.end * stride);
        let taken = cut == 0
            && stride_with(self.stride, self.count, self.inner, from.key(first)) == Some(stride)
            && keys.len() == slots.len() * stride;
        if taken {
            let (first, rest) = keys.split_at(stride);
            self.push(first);
            self.keys.extend_from_slice(rest);
            self.count += slots.len() - 1;
        }
        taken
    }

    fn finish(self, _room: usize, out: &mut Vec<u8>) {
        if self.count > 0 {
            out.extend_from_slice(&bytes::u16_of(self.stride).to_le_bytes());
            out.extend_from_slice(&self.keys);
        }
    }
}

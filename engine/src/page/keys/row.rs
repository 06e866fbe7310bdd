//! Whole keys of a list, adjacent in one buffer, for callers that read many keys.
//!
//! Parts of keys have about ten bytes and lengths that a branch predictor cannot foresee. A part is therefore copied
//! together with the bytes after it, [`WIDE`] bytes at once. The next copy overwrites the excess bytes.

use super::slotted::{HEAD, Slotted};
use crate::base::{bytes, varint};
use std::ops::Range;

/// The minimum length of a buffer that has keys.
const MIN_BUFFER: usize = 512;
/// The bytes that are copied at once; parts of keys are seldom longer.
const WIDE: usize = 32;
/// The bytes for a key of a slotted list: its lead, its head and the rest, including the excess bytes of a copy.
const ROOM: usize = 2 * WIDE + HEAD;

/// Adjacent keys. A row that is used again does not allocate.
#[derive(Clone, Default, Debug)]
pub(crate) struct AdjacentKeys {
    /// At least [`WIDE`] bytes longer than the keys. It never becomes shorter, so that the place of a key exists before
    /// its bytes are copied.
    buffer: Vec<u8>,
    /// The end of each key.
    ends: Vec<usize>,
}

/// The bytes that several keys begin with.
pub(super) struct KeyFront<'a> {
    parts: [&'a [u8]; 2],
    len: usize,
    /// The parts, if they are together at most this long.
    wide: [u8; WIDE],
}

impl<'a> KeyFront<'a> {
    pub(super) fn new(parts: [&'a [u8]; 2]) -> KeyFront<'a> {
        let [front, back] = parts;
        let (mut wide, len) = ([0; WIDE], front.len() + back.len());
        if len <= WIDE {
            bytes::put(&mut wide, 0, front);
            bytes::put(&mut wide, front.len(), back);
        }
        KeyFront { parts, len, wide }
    }
}

impl AdjacentKeys {
    /// Removes all keys.
    pub(crate) fn clear(&mut self) {
        self.ends.clear();
    }

    /// Makes room for `keys` more keys.
    pub(crate) fn reserve(&mut self, keys: usize) {
        self.ends.reserve(keys);
    }

    /// Returns the allocated memory in bytes.
    pub(crate) fn room(&self) -> usize {
        self.buffer.capacity() + self.ends.capacity() * size_of::<usize>()
    }

    /// Returns the number of keys.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns the range of the key at `index`.
    #[inline]
    fn place(&self, index: usize) -> Option<Range<usize>> {
        let from = index.checked_sub(1).map_or(Some(&0), |before| self.ends.get(before))?;
        Some(*from..*self.ends.get(index)?)
    }

    /// Returns the key at `index`; empty if there is none.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> &[u8] {
        self.place(index).and_then(|place| self.buffer.get(place)).unwrap_or_default()
    }

    /// Adds a key.
    #[inline]
    pub(crate) fn push(&mut self, key: &[u8]) {
        let at = self.begin(key.len());
        self.copy(at, key, key.len());
    }

    /// Adds a key of `len` bytes, which the caller then copies. Returns the offset of its first byte.
    #[inline(always)]
    fn begin(&mut self, len: usize) -> usize {
        let from = self.ends.last().copied().unwrap_or(0);
        let to = from + len;
        self.make_room(to + WIDE);
        self.ends.push(to);
        from
    }

    /// Copies the first `len` bytes of `source` to `at`. Writes at most [`WIDE`] bytes if `len` is not larger.
    #[inline(always)]
    fn copy(&mut self, at: usize, source: &[u8], len: usize) {
        let place = self.buffer.get_mut(at..).unwrap_or_default();
        match (place.first_chunk_mut::<WIDE>(), source.first_chunk::<WIDE>()) {
            (Some(place), Some(source)) if len <= WIDE => *place = *source,
            _ => bytes::copy(place.get_mut(..len).unwrap_or_default(), bytes::slice(source, 0, len)),
        }
    }

    /// Copies a lead to `at`. Returns its end.
    #[inline(always)]
    fn copy_lead(&mut self, at: usize, lead: &KeyFront<'_>) -> usize {
        if lead.len <= WIDE {
            self.copy(at, &lead.wide, lead.len);
        } else {
            let [front, back] = lead.parts;
            bytes::put(&mut self.buffer, at, front);
            bytes::put(&mut self.buffer, at + front.len(), back);
        }
        at + lead.len
    }

    /// Adds a key that consists of the lead and the first `len` bytes of `tail`. If `tail` is shorter, adds the lead
    /// alone.
    #[inline(always)]
    pub(super) fn push_tail(&mut self, lead: &KeyFront<'_>, len: usize, tail: &[u8]) {
        let len = if len <= tail.len() { len } else { 0 };
        let at = self.begin(lead.len + len);
        let at = self.copy_lead(at, lead);
        self.copy(at, tail, len);
    }

    /// Adds the keys of some slots of a slotted list.
    #[inline(never)]
    pub(super) fn push_slotted(&mut self, lead: &KeyFront<'_>, list: &Slotted<'_>, slots: Range<usize>) {
        let mut at = self.ends.last().copied().unwrap_or(0);
        let mut left = slots.len();
        self.make_room(at + left * ROOM);
        let short_lead = lead.len <= WIDE;
        for (head, entry) in list.parts(slots) {
            let padded;
            let wide = match entry.first_chunk::<{ 1 + WIDE }>() {
                Some(wide) => wide,
                None => {
                    padded = pad(entry);
                    &padded
                }
            };
            let [len, rest @ ..] = wide;
            let len = usize::from(*len);
            let in_head = len.min(HEAD);
            let place = self.buffer.get_mut(at..).and_then(|place| place.first_chunk_mut::<ROOM>());
            match place {
                Some(place) if short_lead && len <= WIDE && len - in_head < entry.len() => {
                    // The length of the place is a constant, so that the compiler removes most bounds checks.
                    bytes::put_array(place, 0, lead.wide);
                    bytes::put_array(place, lead.len, head.to_be_bytes());
                    bytes::put_array(place, lead.len + in_head, *rest);
                    at += lead.len + len;
                    self.ends.push(at);
                }
                _ => {
                    at = self.push_long(lead, head, entry);
                    self.make_room(at + left * ROOM);
                }
            }
            left -= 1;
        }
    }

    /// Adds a key of a slotted list, of any length. Returns its end.
    #[cold]
    #[inline(never)]
    fn push_long(&mut self, lead: &KeyFront<'_>, head: u32, entry: &[u8]) -> usize {
        let (len, size) = varint::get(entry);
        let (in_head, rest) = (len.min(HEAD), bytes::slice(entry, size, size + len.saturating_sub(HEAD)));
        let at = self.begin(lead.len + in_head + rest.len());
        let at = self.copy_lead(at, lead);
        bytes::put(&mut self.buffer, at, bytes::slice(&head.to_be_bytes(), 0, in_head));
        bytes::put(&mut self.buffer, at + in_head, rest);
        at + in_head + rest.len()
    }

    /// Makes the buffer at least `len` bytes long.
    #[inline(always)]
    fn make_room(&mut self, len: usize) {
        if len > self.buffer.len() {
            grow(&mut self.buffer, len);
        }
    }

    /// Adds a key that consists of the lead, of the first `shared` bytes that the key before has after the lead, and
    /// of the first `len` bytes of `tail`. For the first key of the row `before` is those bytes of the key before.
    #[inline(always)]
    pub(super) fn push_shared(&mut self, lead: &KeyFront<'_>, before: &[u8], shared: usize, len: usize, tail: &[u8]) {
        let len = if len <= tail.len() { len } else { 0 };
        let Some(last) = self.len().checked_sub(1).and_then(|last| self.place(last)) else {
            let shared = shared.min(before.len());
            let at = self.begin(lead.len + shared + len);
            let at = self.copy_lead(at, lead);
            self.copy(at, before, shared);
            return self.copy(at + shared, tail, len);
        };
        let from = last.start + lead.len;
        let shared = shared.min(last.end.saturating_sub(from));
        let at = self.begin(lead.len + shared + len);
        let at = self.copy_lead(at, lead);
        match self.buffer.get(from..).and_then(|there| there.first_chunk::<WIDE>()).copied() {
            Some(wide) if shared <= WIDE => self.copy(at, &wide, shared),
            _ => bytes::shift(&mut self.buffer, from, from + shared, at),
        }
        self.copy(at + shared, tail, len);
    }
}

/// Makes a buffer at least `len` bytes long.
#[cold]
#[inline(never)]
fn grow(buffer: &mut Vec<u8>, len: usize) {
    buffer.resize((2 * len).max(MIN_BUFFER), 0);
}

/// Returns the end of a list, padded with zeros.
#[inline(never)]
fn pad(end: &[u8]) -> [u8; 1 + WIDE] {
    let mut padded = [0; 1 + WIDE];
    bytes::put(&mut padded, 0, end);
    padded
}

//! The PkB key list without its heap: the form for disks of "Revisiting B-tree Compression". For each key it has a
//! part, which distinguishes the key from the key before, and the place of the whole key in a page of the key heap.
//!
//! The layout is `open u32 | [entry; count]`, where an entry is `part | page u32 | number u16`. A [part](super::parts)
//! is made from whole keys. The part of the first entry may share fewer bytes with the page's lower fence than its key
//! does. `open` is the last heap page that the list did not refer to before an insertion. It most likely has room, if
//! an entry still refers to it.
//!
//! An insertion contains its entry and, unless it goes after the last entry, the new part of the entry after it.

use super::parts::{FIELD, PartialKey, PartialKeys, part_of};
use crate::base::{PageId, bytes};
use crate::page::keys::scheme::{Build, List};
use crate::page::keys::{AdjacentKeys, KeyState, WalkPosition};
use std::ops::Range;

/// The bytes of `open`.
pub(crate) const OPEN: usize = 4;
/// The bytes of a place.
const PLACE: usize = 6;

/// The place of a key in the key heap.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct KeyPlace {
    /// The heap page of the key.
    pub page: PageId,
    /// The key's number in that page.
    pub number: u16,
}

impl KeyPlace {
    /// The place of no key. It stands for a place that is not known yet.
    pub const NONE: KeyPlace = KeyPlace { page: PageId::NONE, number: 0 };

    fn get(entry: &[u8], at: usize) -> KeyPlace {
        KeyPlace { page: PageId(bytes::get_u32(entry, at)), number: bytes::get_u16(entry, at + 4) }
    }
}

/// Returns the bytes of an entry whose part has `part` bytes of its key.
#[inline(always)]
pub(crate) fn entry_bytes(part: usize) -> usize {
    FIELD + part + PLACE
}

/// Returns the image of an insertion of `key`, which is at `place`, into a list with parts of `part` bytes. `before` is
/// the key before it, or the bytes that all keys of the page are known to share. `next` is the key after it, if there
/// is one.
pub(crate) fn entry(part: usize, before: &[u8], key: &[u8], next: Option<&[u8]>, place: KeyPlace) -> Vec<u8> {
    let width = FIELD + part;
    let mut entry = bytes::slice(&part_of(Some(before), key), 0, width).to_vec();
    entry.extend(place.page.0.to_le_bytes());
    entry.extend(place.number.to_le_bytes());
    if let Some(next) = next {
        entry.extend_from_slice(bytes::slice(&part_of(Some(key), next), 0, width));
    }
    entry
}

/// A PkB key list without its heap, to read.
#[derive(Clone, Copy)]
pub(crate) struct OutOfLine<'a> {
    list: &'a [u8],
    count: usize,
    part: usize,
}

impl<'a> OutOfLine<'a> {
    #[inline(always)]
    pub(crate) fn new(list: &'a [u8], count: usize, part: usize) -> OutOfLine<'a> {
        // The list's length limits the number of entries of a hostile page.
        let count = count.min(list.len().saturating_sub(OPEN) / entry_bytes(part));
        OutOfLine { list, count, part }
    }

    #[inline(always)]
    fn parts(&self) -> PartialKeys<'a> {
        PartialKeys::new(self.list.get(OPEN..).unwrap_or_default(), self.count, self.part, entry_bytes(self.part))
    }

    /// Searches for a key; see [`PartialKeys::search_with`].
    #[inline]
    pub(crate) fn search_with<K: AsRef<[u8]>, E>(
        &self,
        lower: &[u8],
        key: &[u8],
        read: impl FnMut(usize) -> Result<K, E>,
    ) -> Result<Result<usize, usize>, E> {
        self.parts().search_with(lower, key, read)
    }

    /// Returns the bytes of an entry; empty if there is no such slot.
    #[inline]
    pub(crate) fn entry(&self, slot: usize) -> &'a [u8] {
        let at = OPEN + slot * entry_bytes(self.part);
        if slot < self.count { bytes::slice(self.list, at, at + entry_bytes(self.part)) } else { &[] }
    }

    /// Returns the place of the key of `slot`.
    #[inline]
    pub(crate) fn place(&self, slot: usize) -> KeyPlace {
        KeyPlace::get(self.entry(slot), FIELD + self.part)
    }

    /// Returns the heap page that most likely has room, if an entry refers to it.
    pub(crate) fn open(&self) -> Option<PageId> {
        let open = PageId(bytes::get_u32(self.list, 0));
        self.names(open).then_some(open)
    }

    fn names(&self, page: PageId) -> bool {
        (0..self.count).any(|slot| self.place(slot).page == page)
    }

    /// Returns the part of slot `to` after the removal of the entries `[from, to)` before it. The known parts determine
    /// it: the parts from the last one with the shortest offset on contain the bytes after that offset.
    fn part_without(&self, from: usize, to: usize) -> PartialKey {
        let (parts, width) = (self.parts(), self.part);
        let shared = (from..=to).map(|slot| parts.offset(slot)).min().unwrap_or(0);
        let mut part = PartialKey::default();
        bytes::put_u16(&mut part, 0, bytes::u16_of(shared));
        let first = (from..=to).rfind(|slot| parts.offset(*slot) == shared).unwrap_or(to);
        for slot in first..=to {
            let at = parts.offset(slot).saturating_sub(shared);
            if at < width {
                bytes::put(&mut part, FIELD + at, bytes::slice(parts.part(slot), 0, width - at));
            }
        }
        part
    }

    /// Returns false if the part of `slot` cannot belong to a key that begins with `known`. `whole`: `known` is the
    /// whole key.
    pub(crate) fn part_shows(&self, slot: usize, known: &[u8], whole: bool) -> bool {
        let parts = self.parts();
        let rest = known.get(parts.offset(slot)..).unwrap_or_default();
        let part = parts.part(slot);
        let same = part.iter().zip(rest).all(|(a, b)| a == b);
        same && (!whole || bytes::are_zero(part.get(rest.len()..).unwrap_or_default()))
    }

    /// Returns true if the part of `slot` is the right one for `key` after `before`. The first part may also share
    /// fewer bytes, or more bytes than `before` has.
    pub(crate) fn part_is(&self, slot: usize, before: &[u8], key: &[u8]) -> bool {
        let parts = self.parts();
        let shared = parts.offset(0);
        let known = match slot {
            0 if shared <= before.len() => bytes::slice(before, 0, shared),
            0 => bytes::slice(key, 0, shared),
            _ => before,
        };
        let expected = part_of(Some(known), key);
        let offset = usize::from(bytes::get_u16(&expected, 0));
        offset == parts.offset(slot) && bytes::slice(&expected, FIELD, FIELD + self.part) == parts.part(slot)
    }
}

impl<'a> List<'a> for OutOfLine<'a> {
    fn search(&self, _suffix: &[u8]) -> Result<usize, usize> {
        Err(0)
    }

    #[inline]
    fn append(&self, slot: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(self.entry(slot));
    }

    #[inline]
    fn entry_bytes(&self, _slot: usize) -> usize {
        entry_bytes(self.part)
    }

    #[inline]
    fn suffix_len(&self, _slot: usize) -> usize {
        entry_bytes(self.part)
    }

    /// The page does not know the lengths of its keys: any key may be longer than `len`.
    fn first_longer(&self, from: usize, _len: usize) -> Option<usize> {
        (!self.entry(from).is_empty()).then_some(from)
    }

    #[inline]
    fn common_with_previous(&self, slot: usize) -> usize {
        self.parts().offset(slot)
    }

    #[inline]
    fn is_above_previous(&self, _slot: usize) -> bool {
        true
    }

    fn add_to(&self, row: &mut AdjacentKeys, _prefix: &[u8], _place: &mut WalkPosition, from: usize, to: usize) {
        (from..to).for_each(|slot| row.push(self.entry(slot)));
    }

    #[inline(always)]
    fn out_of_line(&self) -> Option<OutOfLine<'a>> {
        Some(*self)
    }

    fn kept_bytes(&self, _count: usize) -> usize {
        self.count * self.part
    }

    fn check(&self, _list: &[u8], count: usize) -> Result<(), String> {
        if self.list.len() != OPEN + count * entry_bytes(self.part) {
            return Err(format!("{} bytes do not match {count} entries", self.list.len()));
        }
        let parts = self.parts();
        for slot in 0..count {
            if self.place(slot).page.is_none() {
                return Err(no_place(slot));
            }
            let Some(left) = slot.checked_sub(1) else { continue };
            let known = parts.offset(slot).checked_sub(parts.offset(left)).and_then(|at| parts.part(left).get(at));
            // A zero in a part may be a byte of the key or padding.
            if known.is_some_and(|there| *there > 0 && parts.part(slot).first().is_none_or(|byte| byte <= there)) {
                return Err(format!("the part of slot {slot} is not above the one before it"));
            }
        }
        Ok(())
    }
}

/// A PkB key list without its heap under construction.
pub(crate) struct OutOfLineBuilder {
    part: usize,
    count: usize,
    bytes: Vec<u8>,
}

impl OutOfLineBuilder {
    pub(crate) fn new(part: usize, bytes: usize) -> OutOfLineBuilder {
        let mut list = Vec::with_capacity(bytes);
        list.resize(OPEN, 0);
        OutOfLineBuilder { part, count: 0, bytes: list }
    }
}

impl Build for OutOfLineBuilder {
    type List<'a> = OutOfLine<'a>;

    fn bytes(&self) -> usize {
        self.bytes.len()
    }

    #[inline]
    fn bytes_with(&self, entry: &[u8]) -> Option<usize> {
        (entry.len() == entry_bytes(self.part)).then(|| self.bytes.len() + entry.len())
    }

    #[inline]
    fn push(&mut self, entry: &[u8]) {
        self.bytes.extend_from_slice(entry);
        self.count += 1;
    }

    fn take(&mut self, from: &OutOfLine<'_>, slots: Range<usize>, _cut: usize) -> bool {
        if from.part != self.part {
            return false;
        }
        if bytes::get_u32(&self.bytes, 0) == 0 {
            bytes::put(&mut self.bytes, 0, bytes::slice(from.list, 0, OPEN));
        }
        slots.for_each(|slot| self.push(from.entry(slot)));
        true
    }

    fn finish(self, _room: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.bytes);
    }
}

/// See [`crate::page::keys::is_changeable`].
pub(crate) fn is_changeable(list: &[u8], count: usize, part: usize) -> bool {
    list.len() == OPEN + count * entry_bytes(part)
}

/// See [`crate::page::keys::plan`]. Returns an error if the image of the insertion has the wrong length.
pub(crate) fn bytes_with(state: KeyState, part: usize, slot: usize, image: &[u8]) -> Result<usize, String> {
    let next = if slot < state.count { FIELD + part } else { 0 };
    if image.len() != entry_bytes(part) + next {
        return Err(format!("an insert image of {} bytes in a list with parts of {part} bytes", image.len()));
    }
    Ok(state.bytes + entry_bytes(part))
}

/// See [`crate::page::keys::insert`].
pub(crate) fn insert(list: &mut [u8], state: KeyState, part: usize, slot: usize, image: &[u8]) {
    let (size, place) = (entry_bytes(part), KeyPlace::get(image, FIELD + part));
    if !OutOfLine::new(bytes::slice(list, 0, state.bytes), state.count, part).names(place.page) {
        bytes::put(list, 0, &place.page.0.to_le_bytes());
    }
    let at = OPEN + slot * size;
    bytes::shift(list, at, state.bytes, at + size);
    bytes::put(list, at, bytes::slice(image, 0, size));
    bytes::put(list, at + size, image.get(size..).unwrap_or_default());
}

/// See [`crate::page::keys::remove`].
pub(crate) fn remove(list: &mut [u8], state: KeyState, part: usize, from: usize, to: usize) -> usize {
    let size = entry_bytes(part);
    if from < to && to < state.count {
        let left = OutOfLine::new(list, state.count, part).part_without(from, to);
        bytes::put(list, OPEN + to * size, bytes::slice(&left, 0, FIELD + part));
    }
    bytes::shift(list, OPEN + to * size, state.bytes, OPEN + from * size);
    let end = state.bytes.saturating_sub((to - from) * size);
    bytes::zero(list, end, state.bytes);
    end
}

/// The damage of an entry without a key.
pub(crate) fn no_place(slot: usize) -> String {
    format!("the key of slot {slot} has no place")
}

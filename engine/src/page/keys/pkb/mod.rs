//! The PkB key list: whole keys in a heap, and of each key the part that distinguishes it from the key before. This
//! file reads, searches and checks such a list; `edit` changes it.
//!
//! The layout is `[part; cap] [slot u16; cap] [heap]`. A [part](parts) is made from suffixes; the first one shares
//! nothing. A slot is the offset of its entry in the heap: `varint(suffix length) | suffix`. There is never garbage in
//! the heap.

mod build;
pub(super) mod edit;
pub(super) mod out_of_line;
mod parts;
mod scheme;

use super::row::KeyFront;
use super::scheme::List;
use super::{AdjacentKeys, WalkPosition, capacity};
use crate::base::{bytes, varint};
use crate::page::check::{cannot_hold, check_unused};
pub(super) use build::PkbBuilder;
use parts::{FIELD, PartialKeys, part_of};
pub(super) use scheme::{OutOfLineScheme, PkbScheme};

/// Returns the bytes of a part and a slot together.
#[inline(always)]
fn fixed(part: usize) -> usize {
    FIELD + part + FIELD
}

/// Returns the bytes of the heap that a suffix of that length takes.
#[inline(always)]
fn heap_bytes(len: usize) -> usize {
    varint::size(len) + len
}

/// Returns the bytes of the whole list that a suffix of that length takes.
pub(super) fn entry_bytes(len: usize, part: usize) -> usize {
    fixed(part) + heap_bytes(len)
}

/// A PkB key list to read.
#[derive(Clone, Copy)]
pub(crate) struct Pkb<'a> {
    list: &'a [u8],
    parts: PartialKeys<'a>,
    count: usize,
    cap: usize,
    part: usize,
}

impl<'a> Pkb<'a> {
    #[inline(always)]
    pub(super) fn new(list: &'a [u8], count: usize, granule: usize, part: usize) -> Pkb<'a> {
        let cap = capacity(count, granule);
        // The list's length limits the number of entries of a hostile page, so that every loop over them ends soon.
        let count = count.min(list.len() / fixed(part));
        Pkb { list, parts: PartialKeys::new(list, count, part, FIELD + part), count, cap, part }
    }

    /// Returns how many bytes the key of `slot` shares with the one before.
    #[inline(always)]
    fn offset(&self, slot: usize) -> usize {
        self.parts.offset(slot)
    }

    /// Returns the bytes of the key of `slot` after its offset.
    #[inline(always)]
    fn part(&self, slot: usize) -> &'a [u8] {
        self.parts.part(slot)
    }

    /// Returns the heap offset of the entry of `slot`.
    #[inline(always)]
    fn place(&self, slot: usize) -> usize {
        usize::from(bytes::get_u16(self.list, self.cap * (FIELD + self.part) + FIELD * slot))
    }

    /// Returns the whole suffix of `slot`; empty if there is no such slot.
    #[inline]
    pub(super) fn key(&self, slot: usize) -> &'a [u8] {
        let (len, tail) = self.tail(slot);
        bytes::slice(tail, 0, len)
    }

    /// Returns the length of the suffix of `slot`, and the list from the suffix on; nothing if there is no such slot.
    #[inline(always)]
    pub(super) fn tail(&self, slot: usize) -> (usize, &'a [u8]) {
        if slot >= self.count {
            return (0, &[]);
        }
        let entry = self.list.get(fixed(self.part) * self.cap + self.place(slot)..).unwrap_or_default();
        let (len, size) = varint::get(entry);
        (len, entry.get(size..).unwrap_or_default())
    }
}

impl<'a> List<'a> for Pkb<'a> {
    #[inline]
    fn search(&self, key: &[u8]) -> Result<usize, usize> {
        self.parts.search(key, |slot| self.key(slot))
    }

    #[inline]
    fn entry_bytes(&self, slot: usize) -> usize {
        entry_bytes(self.key(slot).len(), self.part)
    }

    fn first_longer(&self, from: usize, len: usize) -> Option<usize> {
        (from..self.count).find(|slot| self.key(*slot).len() > len)
    }

    #[inline]
    fn common_with_previous(&self, slot: usize) -> usize {
        if slot == 0 { 0 } else { self.offset(slot) }
    }

    #[inline]
    fn is_above_previous(&self, slot: usize) -> bool {
        slot.checked_sub(1).is_none_or(|left| self.key(left) < self.key(slot))
    }

    fn check(&self, _list: &[u8], count: usize) -> Result<(), String> {
        let (list, cap, part) = (self.list, self.cap, self.part);
        if list.len() < fixed(part) * cap {
            return Err(cannot_hold(list.len(), count, "slots"));
        }
        let slots = cap * (FIELD + part);
        check_unused(&[
            bytes::slice(list, count * (FIELD + part), slots),
            bytes::slice(list, slots + FIELD * count, fixed(part) * cap),
        ])?;
        let heap = list.get(fixed(part) * cap..).unwrap_or_default();
        crate::page::records::check_tiling(heap, (0..count).map(|slot| self.place(slot)), |entry| {
            let (len, size) = varint::get(entry);
            (size == varint::size(len)).then_some(size + len)
        })?;
        for slot in 0..count {
            let expected = part_of(slot.checked_sub(1).map(|left| self.key(left)), self.key(slot));
            let at = slot * (FIELD + part);
            if bytes::slice(list, at, at + FIELD + part) != bytes::slice(&expected, 0, FIELD + part) {
                return Err(format!("the part of slot {slot} does not match its key"));
            }
        }
        Ok(())
    }

    #[inline]
    fn append(&self, slot: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(self.key(slot));
    }

    #[inline]
    fn suffix_len(&self, slot: usize) -> usize {
        self.key(slot).len()
    }

    fn add_to(&self, row: &mut AdjacentKeys, prefix: &[u8], _place: &mut WalkPosition, from: usize, to: usize) {
        let lead = KeyFront::new([prefix, &[]]);
        (from..to).for_each(|slot| {
            let (len, tail) = self.tail(slot);
            row.push_tail(&lead, len, tail);
        });
    }
}

/// Returns false if the parts and slots are not within the list. Such a list must not be changed.
pub(super) fn is_changeable(list: &[u8], count: usize, granule: usize, part: usize) -> bool {
    list.len() >= fixed(part) * capacity(count, granule)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::keys::scheme::Build;
    use proptest::prelude::*;

    fn list(keys: &[&[u8]], part: usize) -> Vec<u8> {
        let mut builder = PkbBuilder::new(1, part, 512);
        keys.iter().for_each(|key| builder.push(key));
        let mut out = Vec::new();
        builder.finish(0, &mut out);
        out
    }

    #[test]
    fn the_paper_s_keys_are_as_documented() {
        let keys: [&[u8]; 6] = [b"abcd", b"abefg", b"abexyz", b"abfe", b"bacd", b"bcdmn"];
        let parts = b"\0\0ab\x02\0ef\x03\0xy\x02\0fe\0\0ba\x01\0cd";
        let slots = [0, 0, 5, 0, 11, 0, 18, 0, 23, 0, 28, 0];
        let heap = b"\x04abcd\x05abefg\x06abexyz\x04abfe\x04bacd\x05bcdmn";
        assert_eq!(list(&keys, 2), [&parts[..], &slots, heap].concat());
    }

    fn any_key() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop_oneof![3 => Just(0u8), 3 => Just(b'a'), 2 => Just(b'b'), 1 => any::<u8>()];
        proptest::collection::vec(byte, 0..9)
    }

    proptest! {
        #[test]
        fn a_search_reads_one_key_at_most(
            all in proptest::collection::btree_set(any_key(), 0..40), probe in any_key(), part in 1usize..9,
        ) {
            let all: Vec<&[u8]> = all.iter().map(Vec::as_slice).collect();
            let bytes = list(&all, part);
            let view = Pkb::new(&bytes, all.len(), 1, part);
            prop_assert_eq!(view.check(&bytes, all.len()), Ok(()));
            for probe in all.iter().copied().chain([probe.as_slice()]) {
                let mut reads = 0;
                let found = view.parts.search(probe, |slot| {
                    reads += 1;
                    view.key(slot)
                });
                prop_assert_eq!(found, all.binary_search(&probe));
                prop_assert!(reads <= 1);
            }
        }
    }
}

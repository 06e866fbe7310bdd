//! Whole keys of a list side by side in one buffer, for those who want many of them. What they are wanted for must never
//! be known here.

use super::slotted::{Entry, HEAD};
use super::{KeyList, Place};
use crate::base::bytes;

/// Bytes of a buffer that has keys at all.
const LEAST: usize = 512;

/// Keys side by side; used again and again it allocates nothing.
#[derive(Clone, Default, Debug)]
pub(in crate::page) struct KeyRow {
    /// More than the keys take: only ever longer, so that a key's place is there before its bytes are.
    buffer: Vec<u8>,
    /// Where each key ends.
    ends: Vec<usize>,
}

impl KeyRow {
    /// Forgets the keys.
    pub(in crate::page) fn clear(&mut self) {
        self.ends.clear();
    }

    /// How many keys there are.
    #[inline]
    pub(in crate::page) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The key at `index`; empty where there is none.
    #[inline]
    pub(in crate::page) fn get(&self, index: usize) -> &[u8] {
        let from = index.checked_sub(1).map_or(Some(&0), |before| self.ends.get(before));
        match (from, self.ends.get(index)) {
            (Some(from), Some(to)) => bytes::slice(&self.buffer, *from, *to),
            _ => &[],
        }
    }

    /// Adds a key of several parts.
    #[inline(always)]
    pub(in crate::page) fn push<const PARTS: usize>(&mut self, parts: [&[u8]; PARTS]) {
        let from = self.ends.last().copied().unwrap_or(0);
        let to = from + parts.iter().map(|part| part.len()).sum::<usize>();
        if to > self.buffer.len() {
            self.grow(to);
        }
        let mut place = self.buffer.get_mut(from..to).unwrap_or_default();
        for part in parts {
            let Some((front, rest)) = place.split_at_mut_checked(part.len()) else { break };
            bytes::copy(front, part);
            place = rest;
        }
        self.ends.push(to);
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, len: usize) {
        self.buffer.resize((2 * len).max(LEAST), 0);
    }

    /// Adds `prefix`, `group` and what an entry of a slotted list has behind them.
    #[inline(always)]
    fn push_entry(&mut self, prefix: &[u8], group: &[u8], entry: Entry<'_>) {
        let head = entry.head.to_be_bytes();
        self.push([prefix, group, bytes::slice(&head, 0, entry.len.min(HEAD)), entry.rest]);
    }
}

impl KeyList<'_> {
    /// Adds the keys of the slots `[from, to)`, each behind `prefix`; fewer where the list has no more. `place` is where the
    /// last ones ended, if they were of this list.
    pub(in crate::page) fn add_to(&self, row: &mut KeyRow, prefix: &[u8], place: &mut Place, from: usize, to: usize) {
        match self {
            KeyList::Slotted(list) => (from..to).for_each(|slot| row.push_entry(prefix, &[], list.entry(slot))),
            KeyList::Db2(list) => list.each(from, to, |group, entry| row.push_entry(prefix, group, entry)),
            KeyList::Fixed(list) => (from..to).for_each(|slot| row.push([prefix, list.key(slot)])),
            KeyList::Pkb(list) => (from..to).for_each(|slot| row.push([prefix, list.key(slot)])),
            KeyList::Delta(_) | KeyList::Blocks(_) => {
                self.seek(place, from);
                while place.slot() < to && self.advance(place) {
                    row.push([prefix, place.key()]);
                }
            }
        }
    }
}

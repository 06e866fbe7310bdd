//! Builds a DB2 key list entry by entry, in order. Keys that are appended one by one get prefixes when the list has
//! grown. Keys that are copied from another list keep the groups that they have there.

use super::layout::{KeyBuffer, PrefixRun, optimize};
use super::{Db2, DirectoryGroup, FIELD, GROUP, head_of};
use crate::base::bytes;
use crate::page::keys::Walked;
use crate::page::keys::scheme::Build;
use crate::page::keys::slotted::SlottedBuilder;

/// The group of an entry in the list that it is copied from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) group: usize,
    /// The bytes of the group's prefix that remain.
    pub(crate) prefix: usize,
}

impl Origin {
    /// Returns the origin of an entry that loses its first `cut` bytes.
    pub(crate) fn of(entry: &Walked<'_>, cut: usize) -> Origin {
        Origin { group: entry.group, prefix: entry.prefix.saturating_sub(cut) }
    }
}

/// A DB2 key list under construction.
pub(crate) struct Db2Builder {
    /// The approximate greatest length of the list in bytes.
    most: usize,
    /// The length in bytes at which prefixes are chosen again.
    next: usize,
    groups: Vec<[u8; GROUP]>,
    prefixes: Vec<u8>,
    suffixes: SlottedBuilder,
    keys: KeyBuffer,
    /// The prefix of the last group, and the origin of that group.
    prefix: Vec<u8>,
    origin: Option<Origin>,
}

/// The group of the next entry.
enum NextGroup {
    /// The entry joins the last group.
    Join,
    /// The entry begins a group with a prefix of that many bytes.
    Open(usize),
}

impl Db2Builder {
    /// Begins a list for a page of up to `bytes` bytes.
    pub(crate) fn new(granule: usize, bytes: usize) -> Db2Builder {
        Db2Builder {
            most: bytes,
            next: bytes / 2,
            groups: Vec::new(),
            prefixes: Vec::new(),
            suffixes: SlottedBuilder::new(granule, bytes, false),
            keys: KeyBuffer::of_about(bytes),
            prefix: Vec::new(),
            origin: None,
        }
    }

    fn next_group(&self, key: &[u8], origin: Option<Origin>) -> NextGroup {
        let applies = key.starts_with(&self.prefix);
        match origin {
            Some(origin) if origin.prefix == 0 && self.groups.is_empty() => NextGroup::Join,
            Some(origin) if self.origin == Some(origin) && applies && self.prefix.len() == origin.prefix => {
                NextGroup::Join
            }
            Some(origin) => NextGroup::Open(origin.prefix.min(key.len())),
            None if applies => NextGroup::Join,
            None => NextGroup::Open(0),
        }
    }

    /// Returns the bytes that a new group adds to the directory. The first one also adds a group for the keys before
    /// it.
    fn opened(&self) -> usize {
        if self.groups.is_empty() && self.keys.len() > 0 { 2 * GROUP } else { GROUP }
    }

    fn bytes_behind(&self, front: usize, suffix_len: usize) -> usize {
        self.front() + front + self.suffixes.slotted_bytes_with(suffix_len)
    }

    fn front(&self) -> usize {
        FIELD + GROUP * self.groups.len() + self.prefixes.len()
    }

    /// Appends a key. `origin` is its group in the list that it is copied from.
    fn push_from(&mut self, key: &[u8], origin: Option<Origin>) {
        if let NextGroup::Open(prefix) = self.next_group(key, origin) {
            let first = if self.keys.len() > 0 { self.keys.key(0) } else { key };
            self.open(head_of(first), self.keys.len(), key, prefix);
        }
        self.origin = origin;
        self.suffixes.push(key.get(self.prefix.len()..).unwrap_or_default());
        self.keys.push(|out| out.extend_from_slice(key));
        if origin.is_none() && self.bytes() > self.next {
            let now = self.runs();
            let runs = optimize(&self.keys, &now, self.most / 4);
            if runs != now {
                let keys = std::mem::take(&mut self.keys);
                self.lay_out(keys, &runs);
            }
            // Prefixes are chosen at a half, three quarters, seven eighths of the page, and so on as long as the list
            // grows.
            let bytes = self.bytes();
            self.next = bytes + self.most.saturating_sub(bytes).max(self.most / 16) / 2;
        }
    }

    /// Begins a group at `slot`, whose prefix is the first `prefix` bytes of `key`. `first` is the head of the list's
    /// first key.
    fn open(&mut self, first: u32, slot: usize, key: &[u8], prefix: usize) {
        if self.groups.is_empty() && slot > 0 {
            self.groups.push(DirectoryGroup { head: first, slot: 0, offset: 0 }.field());
        }
        self.prefix.clear();
        self.prefix.extend_from_slice(bytes::slice(key, 0, prefix));
        self.prefixes.extend_from_slice(&self.prefix);
        self.groups.push(DirectoryGroup { head: head_of(key), slot, offset: self.prefixes.len() }.field());
    }

    fn runs(&self) -> Vec<PrefixRun> {
        let mut before = 0;
        let run = |field| {
            let DirectoryGroup { slot, offset, .. } = DirectoryGroup::of(field);
            let prefix = offset.saturating_sub(std::mem::replace(&mut before, offset));
            PrefixRun { first: slot, prefix }
        };
        self.groups.iter().map(run).collect()
    }

    /// Lays the list out again with these keys and these prefixes.
    pub(super) fn lay_out(&mut self, keys: KeyBuffer, runs: &[PrefixRun]) {
        self.groups.clear();
        self.prefixes.clear();
        self.prefix.clear();
        self.suffixes.clear();
        let mut runs = runs.iter().peekable();
        for slot in 0..keys.len() {
            let key = keys.key(slot);
            if let Some(run) = runs.next_if(|run| run.first == slot) {
                self.open(head_of(keys.key(0)), slot, key, run.prefix);
            }
            self.suffixes.push(key.get(self.prefix.len()..).unwrap_or_default());
        }
        self.keys = keys;
    }
}

impl Build for Db2Builder {
    type List<'a> = Db2<'a>;

    fn bytes(&self) -> usize {
        if self.keys.len() == 0 { 0 } else { self.front() + self.suffixes.bytes() }
    }

    #[inline]
    fn bytes_with(&self, key: &[u8]) -> Option<usize> {
        Some(match self.next_group(key, None) {
            NextGroup::Join => self.bytes_behind(0, key.len().saturating_sub(self.prefix.len())),
            NextGroup::Open(prefix) => self.bytes_behind(self.opened() + prefix, key.len() - prefix),
        })
    }

    fn finish(self, _room: usize, out: &mut Vec<u8>) {
        if self.keys.len() > 0 {
            out.extend_from_slice(&bytes::u16_of(self.groups.len()).to_le_bytes());
            out.extend_from_slice(self.groups.as_flattened());
            out.extend_from_slice(&self.prefixes);
            self.suffixes.finish(0, out);
        }
    }

    #[inline]
    fn push(&mut self, suffix: &[u8]) {
        self.push_from(suffix, None);
    }

    #[inline]
    fn push_walked(&mut self, entry: &Walked<'_>, cut: usize) -> Option<usize> {
        self.push_from(entry.suffix.get(cut..).unwrap_or_default(), Some(Origin::of(entry, cut)));
        Some(self.bytes())
    }

    #[inline]
    fn bytes_after(&self, _expected: usize) -> usize {
        self.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 500, max_shrink_iters: 500, ..ProptestConfig::default() })]

        #[test]
        fn new_prefixes_never_need_more_room_than_bytes_with_has_returned(
            most in 64usize..600,
            keys in prop::collection::vec(("[ab]{0,30}", prop::option::of((0usize..4, 0usize..30))), 0..60),
        ) {
            let mut builder = Db2Builder::new(1, most);
            for (key, origin) in keys {
                let origin = origin.map(|(group, prefix)| Origin { group, prefix: prefix.min(key.len()) });
                let promised = if origin.is_none() { builder.bytes_with(key.as_bytes()) } else { None };
                builder.push_from(key.as_bytes(), origin);
                if let Some(promised) = promised {
                    prop_assert!(builder.bytes() <= promised, "{} bytes, more than {promised}", builder.bytes());
                }
            }
        }
    }

    #[test]
    fn the_paper_s_keys_are_as_documented() {
        let mut keys = KeyBuffer::default();
        for key in ["abcd", "abefg", "abexyz", "abfe", "bacd", "bcdmn"] {
            keys.push(|out| out.extend_from_slice(key.as_bytes()));
        }
        let mut builder = Db2Builder::new(1, 512);
        builder.lay_out(keys, &[PrefixRun { first: 0, prefix: 2 }, PrefixRun { first: 4, prefix: 1 }]);
        let (bytes, mut list) = (builder.bytes(), Vec::new());
        builder.finish(0, &mut list);
        let front = b"\x02\0dcba\0\0\x02\0dcab\x04\0\x03\0abb";
        let heads = b"\0\0dc\0gfezyxe\0\0ef\0dcanmdc";
        let rest = b"\0\0\x01\0\x02\0\x03\0\x04\0\x05\0\x02\x03\x04\x02\x03\x04";
        assert_eq!(list, [&front[..], heads, rest].concat());
        assert_eq!(bytes, list.len());
    }
}

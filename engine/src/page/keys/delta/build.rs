//! Builds a prefix-delta key list entry by entry, in order.

use super::best::{self, MIN_FOOTER};
use super::{DISTANCE, Delta, DeltaScheme, DirectoryGroup, GROUP, directory, entry_size};
use crate::base::{bytes, varint};
use crate::page::keys::scheme::Build;
use crate::page::keys::slotted::head_of;
use crate::page::keys::{USUAL_SUFFIX, Walked};

/// A prefix-delta key list under construction.
pub(crate) struct DeltaBuilder {
    grouped: bool,
    /// True if the list has a footer.
    best: bool,
    groups: Vec<[u8; GROUP]>,
    entries: Vec<u8>,
    last: Vec<u8>,
    count: usize,
    /// The number of entries of the last group.
    in_group: usize,
    /// The group of the last entry in the list that it was copied from.
    origin: Option<usize>,
}

impl DeltaBuilder {
    /// Begins a list for a page of up to `bytes` bytes.
    pub(crate) fn new(scheme: DeltaScheme, bytes: usize) -> DeltaBuilder {
        let DeltaScheme { grouped, best } = scheme;
        let (groups, entries, last) = (Vec::new(), Vec::with_capacity(bytes), Vec::with_capacity(USUAL_SUFFIX));
        DeltaBuilder { grouped, best, groups, entries, last, count: 0, in_group: 0, origin: None }
    }

    /// Returns true if the next entry begins a group. An entry that is copied from another list begins a group only if
    /// it did so there. A copy therefore never needs more room than the original.
    #[inline]
    fn starts(&self, origin: Option<usize>) -> bool {
        let here = origin.is_none() || origin != self.origin;
        self.grouped && (self.count == 0 || (here && self.in_group >= DISTANCE))
    }

    #[inline]
    fn shared(&self, suffix: &[u8], origin: Option<usize>) -> usize {
        if self.starts(origin) { 0 } else { bytes::common_prefix(&self.last, suffix) }
    }

    fn bytes_of(&self, groups: usize) -> usize {
        let directory = if self.grouped { directory::end(groups) } else { 0 };
        let footer = if self.best { MIN_FOOTER } else { 0 };
        directory + self.entries.len() + footer
    }

    #[inline]
    fn push_from(&mut self, suffix: &[u8], origin: Option<usize>) {
        let shared = self.shared(suffix, origin);
        if self.starts(origin) {
            self.groups
                .push(DirectoryGroup { head: head_of(suffix), slot: self.count, offset: self.entries.len() }.field());
            self.in_group = 0;
        }
        let rest = suffix.get(shared..).unwrap_or_default();
        varint::push(&mut self.entries, shared as u64);
        varint::push(&mut self.entries, rest.len() as u64);
        self.entries.extend_from_slice(rest);
        self.last.truncate(shared);
        self.last.extend_from_slice(rest);
        self.count += 1;
        self.in_group += 1;
        self.origin = origin;
    }
}

impl Build for DeltaBuilder {
    type List<'a> = Delta<'a>;

    #[inline]
    fn bytes(&self) -> usize {
        self.bytes_of(self.groups.len())
    }

    #[inline]
    fn bytes_with(&self, suffix: &[u8]) -> Option<usize> {
        let shared = self.shared(suffix, None);
        let list = self.bytes_of(self.groups.len() + usize::from(self.starts(None)));
        Some(list + entry_size(shared, suffix.len() - shared))
    }

    fn finish(self, room: usize, out: &mut Vec<u8>) {
        let at = out.len();
        if self.grouped && self.count > 0 {
            out.extend_from_slice(&bytes::u16_of(self.groups.len()).to_le_bytes());
            out.extend_from_slice(self.groups.as_flattened());
        }
        out.extend_from_slice(&self.entries);
        if self.best && self.count > 0 {
            let list = out.get(at..).unwrap_or_default();
            let footer = best::footer(list, self.count, self.grouped, room.saturating_sub(list.len()));
            out.extend_from_slice(&footer);
        }
    }

    #[inline]
    fn push(&mut self, suffix: &[u8]) {
        self.push_from(suffix, None);
    }

    #[inline]
    fn push_walked(&mut self, entry: &Walked<'_>, cut: usize) -> Option<usize> {
        self.push_from(entry.suffix.get(cut..).unwrap_or_default(), Some(entry.group));
        Some(self.bytes())
    }
}

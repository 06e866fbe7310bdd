//! [`Places`]: the lengths of the places of a store, and so which pages are worth compressing.

use super::{Compression, Overflow, PagePolicy, Target};
use crate::page::Page;

/// The lengths of the places of a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Places {
    /// Each place is a multiple of this.
    pub(in crate::store) unit: usize,
    /// Bytes of the store itself in a place.
    pub(in crate::store) header: usize,
    /// The place of a page that misses the target of its table.
    pub(in crate::store) whole: usize,
    /// A page that the table's policy does not compress gets such a place, too. No place is longer.
    pub(in crate::store) fixed: bool,
}

impl Places {
    /// Bytes of the place for a content of `len` bytes, if it may be as short as that.
    pub(in crate::store) fn shortest(&self, len: usize) -> usize {
        let place = (self.header + len).next_multiple_of(self.unit);
        if self.fixed { place.min(self.whole) } else { place }
    }

    /// Bytes of a place that meets a target.
    pub fn of_target(&self, bytes: u32) -> usize {
        (bytes as usize).next_multiple_of(self.unit)
    }

    /// The most bytes that a packed page of `len` bytes may have after compression with this policy. `None`: the page
    /// is not compressed.
    pub(crate) fn most_compressed(&self, policy: PagePolicy, len: usize) -> Option<usize> {
        let place = match policy {
            PagePolicy { compression: Compression::None, .. } => return None,
            // The place is then shorter by a unit at least.
            PagePolicy { target: Target::Fit, .. } => self.shortest(len).checked_sub(self.unit)?,
            PagePolicy { target: Target::Bytes(bytes), .. } => self.of_target(bytes),
        };
        if self.fixed && place >= self.whole { None } else { place.checked_sub(self.header) }
    }

    /// Bytes of the place for a content of `len` bytes.
    pub(crate) fn place_len(&self, policy: PagePolicy, len: usize) -> usize {
        match policy {
            PagePolicy { compression: Compression::None, .. } if self.fixed => self.whole,
            PagePolicy { target: Target::Fit, .. } => self.shortest(len),
            PagePolicy { target: Target::Bytes(bytes), .. } if self.meets(policy, len) => self.of_target(bytes),
            PagePolicy { target: Target::Bytes(_), .. } => self.shortest(len).max(self.whole),
        }
    }

    /// True if a content of `len` bytes meets the target of the policy. Without compression none does.
    fn meets(&self, policy: PagePolicy, len: usize) -> bool {
        match policy {
            PagePolicy { target: Target::Fit, .. } => true,
            PagePolicy { compression: Compression::None, .. } => false,
            PagePolicy { target: Target::Bytes(bytes), .. } => self.header + len <= self.of_target(bytes),
        }
    }

    /// True if a page that was not compressed to its target is to be split. `packed` is the page.
    pub(super) fn is_to_be_split(&self, policy: PagePolicy, packed: &[u8]) -> bool {
        let page = Page::new(packed);
        policy.overflow == Overflow::Split
            && policy.compression != Compression::None
            && !self.meets(policy, packed.len())
            && page.is_leaf()
            && page.count() > 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_a_slot_are_whole_blocks_and_never_longer_than_the_slot() {
        let places = Places { unit: 4096, header: 32, whole: 16384, fixed: true };
        let policy =
            |compression, target| PagePolicy { compression, target, overflow: Overflow::Split, dictionary: false };
        let (fit, none) = (policy(Compression::Lz4, Target::Fit), policy(Compression::None, Target::Fit));
        let lens = [1, 4064, 4065, 12256, 12257, 16368].map(|len| places.place_len(fit, len));
        assert_eq!(lens, [4096, 4096, 8192, 12288, 16384, 16384]);
        assert_eq!((places.place_len(none, 1), places.most_compressed(none, 9000)), (16384, None));
        let most = [4064, 4065, 12256, 12257, 16368].map(|len| places.most_compressed(fit, len));
        assert_eq!(most, [None, Some(4064), Some(8160), Some(12256), Some(12256)]);
        for (target, place) in [(1024, 4096), (4096, 4096), (8192, 8192)] {
            let of = policy(Compression::Lz4, Target::Bytes(target));
            assert_eq!(places.most_compressed(of, 16368), Some(place - 32), "{target}");
            assert_eq!([places.place_len(of, place - 32), places.place_len(of, place - 31)], [place, 16384]);
        }
        let small = Places { whole: 4096, ..places };
        assert_eq!(small.most_compressed(policy(Compression::Lz4, Target::Bytes(1024)), 4080), None);
    }
}

//! A set of page ids, kept as ranges.

use crate::base::PageId;
use std::collections::BTreeMap;
use std::ops::Range;

/// The end of each range by its start. Ranges neither touch nor overlap.
#[derive(Debug, Default)]
pub(crate) struct IdRanges(BTreeMap<u32, u32>);

impl IdRanges {
    /// Adds ids. Some of them may already be in the set.
    pub(crate) fn add(&mut self, ids: Range<u32>) {
        let Range { mut start, mut end } = ids;
        if start >= end {
            return;
        }
        while let Some((&from, &to)) = self.0.range(..=end).next_back()
            && to >= start
        {
            self.0.remove(&from);
            (start, end) = (start.min(from), end.max(to));
        }
        self.0.insert(start, end);
    }

    pub(crate) fn contains(&self, id: PageId) -> bool {
        self.0.range(..=id.0).next_back().is_some_and(|(_, end)| id.0 < *end)
    }

    /// The first of these ids that is in the set.
    pub(crate) fn first_of(&self, ids: Range<u32>) -> Option<PageId> {
        let first = match self.contains(PageId(ids.start)) {
            true => ids.start,
            false => *self.0.range(ids.start..).next()?.0,
        };
        ids.contains(&first).then_some(PageId(first))
    }

    /// All ids, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = PageId> {
        self.0.iter().flat_map(|(start, end)| *start..*end).map(PageId)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn id_ranges_agree_with_a_set(adds in proptest::collection::vec((0u32..200, 0u32..30), 0..40)) {
            let (mut ranges, mut ids) = (IdRanges::default(), BTreeSet::new());
            for (start, count) in adds {
                ranges.add(start..start + count);
                ids.extend((start..start + count).map(PageId));
            }
            prop_assert!(ranges.iter().eq(ids.iter().copied()));
            prop_assert!((0..240).map(PageId).all(|id| ranges.contains(id) == ids.contains(&id)));
            for start in 0..240 {
                let first = ids.range(PageId(start)..PageId(start + 9)).next().copied();
                prop_assert_eq!(ranges.first_of(start..start + 9), first);
            }
            prop_assert!(ranges.0.iter().zip(ranges.0.keys().skip(1)).all(|((_, end), next)| end < next));
        }
    }
}

//! The free page ids, in memory: extents of ids below the high-water mark. The lowest id is taken first, so that the
//! page table can shrink. The allocation maps have the durable record of the ids in use. Ids that are reserved for an
//! unfinished transaction, or whose old content a snapshot still reads, are not in this set.

use crate::base::{Error, PageId, Result};
use std::collections::BTreeMap;

/// The number of ids that one allocation map page of `page_size` bytes covers.
pub(crate) fn ids_per_map(page_size: usize) -> u32 {
    crate::page::map_bits(page_size)
}

/// The free ids.
#[derive(Debug)]
pub(crate) struct PageIds {
    per_map: u32,
    high: u32,
    free: BTreeMap<u32, u32>,
}

impl PageIds {
    /// A set in which all ids from `high` on are free, and none below.
    pub(crate) fn new(page_size: usize, high: u32) -> PageIds {
        PageIds { per_map: ids_per_map(page_size), high, free: BTreeMap::new() }
    }

    /// Takes the lowest free id. It is never the id of an allocation map.
    pub(crate) fn take(&mut self) -> Result<PageId> {
        if let Some((start, len)) = self.free.pop_first() {
            if len > 1 {
                self.free.insert(start + 1, len - 1);
            }
            return Ok(PageId(start));
        }
        if self.high.is_multiple_of(self.per_map) {
            self.high += 1;
        }
        if self.high >= u32::MAX - self.per_map {
            return Err(Error::TooManyPages { pages: u64::from(u32::MAX) });
        }
        self.high += 1;
        Ok(PageId(self.high - 1))
    }

    /// Takes the first `count` ids of a [`PageIds::run`] and returns the first one.
    pub(crate) fn take_run(&mut self, count: usize) -> Result<PageId> {
        if count == 1 {
            return self.take();
        }
        if let Some(first) = self.find_run(count) {
            self.remove_run(first, count);
            return Ok(first);
        }
        let maps = count as u64 / u64::from(self.per_map - 1) + 2;
        if u64::from(self.high) + count as u64 + maps >= u64::from(u32::MAX - self.per_map) {
            return Err(Error::TooManyPages { pages: u64::from(u32::MAX) });
        }
        if self.high.is_multiple_of(self.per_map) {
            self.high += 1;
        }
        let first = PageId(self.high);
        if let Some(last) = Self::run_of(self.per_map, first).nth(count - 1) {
            self.high = last.0 + 1;
        }
        Ok(first)
    }

    /// The ids of a run that begins at `first`: consecutive ids without those of allocation maps.
    pub(crate) fn run(page_size: usize, first: PageId) -> impl Iterator<Item = PageId> + Send + use<> {
        Self::run_of(ids_per_map(page_size), first)
    }

    fn run_of(per_map: u32, first: PageId) -> impl Iterator<Item = PageId> + Send + use<> {
        (first.0..u32::MAX).filter(move |id| !id.is_multiple_of(per_map)).map(PageId)
    }

    /// An extent of free ids that contains a run. Extents end at allocation maps, so a run that crosses an allocation
    /// map is only taken above the high-water mark.
    fn find_run(&self, count: usize) -> Option<PageId> {
        let count = u32::try_from(count).ok()?;
        self.free.iter().find(|(_, len)| **len >= count).map(|(start, _)| PageId(*start))
    }

    fn remove_run(&mut self, first: PageId, count: usize) {
        if let Some(len) = self.free.remove(&first.0)
            && let Ok(count) = u32::try_from(count)
            && len > count
        {
            self.free.insert(first.0 + count, len - count);
        }
    }

    /// Returns an id to the set.
    pub(crate) fn give_back(&mut self, id: PageId) {
        self.give_back_run(id, 1);
    }

    /// Returns `count` consecutive ids, from `first` on, to the set.
    pub(crate) fn give_back_run(&mut self, first: PageId, count: u32) {
        let (mut start, mut len) = (first.0, count);
        if count == 0 {
            return;
        }
        if let Some((&before, &before_len)) = self.free.range(..start).next_back()
            && before + before_len == start
        {
            self.free.remove(&before);
            (start, len) = (before, before_len + count);
        }
        if let Some(after_len) = self.free.remove(&(start + len)) {
            len += after_len;
        }
        self.free.insert(start, len);
    }

    /// Takes this id, which is above the high-water mark: the root of the catalog.
    pub(crate) fn take_exactly(&mut self, id: PageId) {
        self.high = self.high.max(id.0 + 1);
    }

    /// One more than the highest id ever taken.
    pub(crate) fn high(&self) -> u32 {
        self.high
    }

    /// How many ids below the high-water mark are free.
    pub(crate) fn free_count(&self) -> u64 {
        self.free.values().map(|len| u64::from(*len)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn ids_given_back_after_a_free_id_are_all_free() {
        let mut ids = PageIds::new(256, 40);
        ids.give_back(PageId(10));
        ids.give_back_run(PageId(11), 5);
        assert_eq!(ids.free_count(), 6);
        assert_eq!(ids.take_run(6).unwrap(), PageId(10));
    }

    proptest! {
        #[test]
        fn an_id_is_never_taken_twice(steps in prop::collection::vec((any::<bool>(), 1usize..1500, any::<prop::sample::Index>()), 0..60)) {
            let mut ids = PageIds::new(256, 2);
            let mut taken = BTreeSet::new();
            for (take, count, index) in steps {
                if take || taken.is_empty() {
                    let count = if count % 3 == 0 { count } else { 1 };
                    let first = ids.take_run(count).unwrap();
                    for id in PageIds::run(256, first).take(count) {
                        prop_assert!(taken.insert(id));
                        prop_assert!(!id.0.is_multiple_of(1024));
                    }
                } else {
                    let id = *index.get(&taken.iter().copied().collect::<Vec<_>>());
                    taken.remove(&id);
                    ids.give_back(id);
                }
            }
            let maps = u64::from(ids.high().saturating_sub(1) / 1024);
            prop_assert_eq!(ids.free_count() + taken.len() as u64 + 2 + maps, u64::from(ids.high()));
        }
    }
}

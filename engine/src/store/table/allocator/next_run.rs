//! The search for a free run that has room for several images. Unlike the search for a single place it does not begin
//! at the start of the file, but where the last one has ended ("next fit"). So it returns to a region only after it was
//! at all others, and meanwhile many places of the region have become free, side by side. The file may grow by a run,
//! although it has shorter ones: without that the runs would be hardly longer than an image.

use super::{MOST_REGIONS, PlaceAllocator, UsedRegion, join, split};
use crate::store::table::place::Extent;
use crate::store::table::region::REGION;

/// The position of a search.
#[derive(Debug)]
pub(super) struct NextRun {
    /// The grains of a run that it looks for, at least.
    least: u32,
    /// The grain from which on it looks the next time.
    from: u64,
    /// Regions in a row that had no such run. It begins again when one becomes free.
    without: usize,
}

impl NextRun {
    /// A search for runs of at least this number of grains.
    pub(super) fn of_at_least(least: u32) -> NextRun {
        NextRun { least, from: 0, without: 0 }
    }

    /// A run of that length has become free.
    pub(super) fn note_free_run(&mut self, grains: u32) {
        if grains >= self.least {
            self.without = 0;
        }
    }
}

impl PlaceAllocator {
    /// The next free run for images of `most` grains together, of which the first has `size`: at least as long as the
    /// search with this number looks for, or as all images are. It ends at or before grain `limit`. There may be no
    /// region yet at that place.
    ///
    /// It begins where a free run begins, so that it leaves no second piece of this run, in which no image may have
    /// room.
    pub(super) fn next_run(&mut self, search: usize, size: u32, most: u32, limit: u64) -> Option<Extent> {
        let search = self.next_runs.get_mut(search)?;
        let least = search.least.min(most).max(size);
        let regions = split(limit).map_or(0, |(index, at)| index + usize::from(at > 0));
        for _ in 0..MOST_REGIONS {
            // The region in which a search begins is looked at again at the end.
            if search.without > regions {
                return None;
            }
            let (index, from) = split(search.from).filter(|(index, _)| *index < regions).unwrap_or((0, 0));
            let found = match self.slots.get_mut(&index) {
                Some(UsedRegion { region, longest, .. }) if *longest >= least => {
                    let found = region.find_from(from, least, self.align);
                    if found.is_none() && from == 0 {
                        *longest = region.find(least, 1).err().unwrap_or(*longest);
                    }
                    found
                }
                Some(_) => None,
                None => Some((0, REGION)),
            };
            if let Some((at, end)) = found
                && let first = join(index, at)
                && first + u64::from(least) <= limit
            {
                let grains = u64::from(end.saturating_sub(at).min(most)).min(limit - first);
                search.from = first + grains;
                search.without = 0;
                return Some(Extent { first, grains });
            }
            search.from = join(index + 1, 0);
            search.without += 1;
        }
        None
    }
}

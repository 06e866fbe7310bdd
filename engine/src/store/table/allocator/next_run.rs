//! The search for a free run that is long enough for several images. It uses the "next fit" policy: it begins where the
//! previous search ended. The search for a single place begins at the start of the file instead. So a search returns to
//! a region only after it has passed all other regions. Meanwhile many adjacent places of the region have become free.
//! A run may also make the file longer although the file has shorter free runs. Without this rule the runs would be
//! hardly longer than one image.

use super::{MAX_REGIONS, PlaceAllocator, UsedRegion, join, split};
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
    /// Returns the next free run for several images. The images take `most` grains in total, and the first one takes
    /// `size`. The run has at least `most` grains or the minimum of this search, whichever is smaller, and always at
    /// least `size` grains. It has at most `most` grains and ends at or before grain `limit`. It may be in a region
    /// that does not exist yet.
    ///
    /// The result starts at the start of a free run. So it leaves at most one free piece, at the end of that run. A
    /// second piece at the start might be too short for any image.
    pub(super) fn next_run(&mut self, search: usize, size: u32, most: u32, limit: u64) -> Option<Extent> {
        let search = self.next_runs.get_mut(search)?;
        let least = search.least.min(most).max(size);
        let regions = split(limit).map_or(0, |(index, at)| index + usize::from(at > 0));
        for _ in 0..MAX_REGIONS {
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

//! The free map: which grains of the file are free, and which of them to allocate next.
//!
//! It is a bitmap with 1 bit for each grain of 512 bytes, in regions of 1 MiB. Only regions with a used grain are in
//! memory. So the size of the map is 1/4096 of these regions, however long and fragmented the file is. A single place
//! is in the lowest free run of its length, so that the end of the file becomes free and can be truncated. For each
//! length the map remembers the lowest region that may have such a run, so that full regions are not searched again.
//!
//! A batch prefers few long runs to many short ones, so that few calls write it, with few blocks that are written in
//! part: see [`Fit`], [`LONG_RUNS`] and [`LOOSE_DIVISOR`].

mod next_run;
#[cfg(test)]
mod tests;

use super::place::{Extent, FIRST_GRAIN, MAX_GRAINS};
use super::region::{REGION, Region};
use next_run::NextRun;
use std::collections::BTreeMap;

/// Regions that are looked at for a run that is long enough for several places, so that a large file does not delay a
/// small batch.
const MAX_REGIONS: usize = 512;

/// Which free runs a batch takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fit {
    /// The next ones: see [`next_run`].
    Next,
    /// The lowest ones, so that the end of the file becomes free.
    Lowest,
}

/// The lengths in grains of the free runs that a batch prefers: at least 32 KiB of file, and else at least 16 KiB.
const LONG_RUNS: [u32; 2] = [64, 32];

/// A free run for several images is used only if it ends within the first `used + used / LOOSE_DIVISOR` grains of the
/// file, so that the end of the file becomes free. Otherwise shorter runs nearer the start are used.
const LOOSE_DIVISOR: u64 = 3;

/// The free map.
#[derive(Debug)]
pub(crate) struct PlaceAllocator {
    /// The regions with a used grain.
    slots: BTreeMap<usize, UsedRegion>,
    /// How many regions there are; those without a slot are free.
    count: usize,
    /// For each length: no region before this one has a free run of that length.
    lowest: Vec<usize>,
    used: u64,
    longest_places: LongestPlaces,
    /// One search for each of [`LONG_RUNS`].
    next_runs: [NextRun; LONG_RUNS.len()],
    /// Places begin at multiples of this number of grains.
    align: u32,
    released_twice: bool,
}

/// A region that is not free.
#[derive(Debug)]
struct UsedRegion {
    region: Box<Region>,
    /// An upper bound of its longest free run.
    longest: u32,
    /// Its longest places; `None` if it has changed since they were counted.
    longest_places: Option<u32>,
}

/// How many images of the greatest length the regions have room for. Wherever the free runs are, an image takes at most
/// one of these places. So at least this number of images of any length finds room.
#[derive(Debug)]
struct LongestPlaces {
    /// Grains of a longest place.
    grains: u32,
    /// The regions whose longest places are not counted, and perhaps some that have become free.
    changed: Vec<usize>,
    /// The number of longest places in the regions that are counted.
    total: u64,
}

impl LongestPlaces {
    /// A region's places, counted or not, are to be counted again.
    fn changed(&mut self, index: usize, counted: Option<u32>) {
        if let Some(counted) = counted {
            self.total -= u64::from(counted);
            self.changed.push(index);
        }
    }
}

fn split(grain: u64) -> Option<(usize, u32)> {
    let region = usize::try_from(grain / u64::from(REGION)).ok()?;
    let at = u32::try_from(grain % u64::from(REGION)).ok()?;
    Some((region, at))
}

fn join(region: usize, at: u32) -> u64 {
    region as u64 * u64::from(REGION) + u64::from(at)
}

impl PlaceAllocator {
    /// The map of a file in which only the superblocks' grains are used. No image is longer than `longest_place`
    /// grains.
    pub(crate) fn new(longest_place: u32) -> PlaceAllocator {
        let longest_places = LongestPlaces { grains: longest_place, changed: Vec::new(), total: 0 };
        let lowest = vec![0; REGION as usize + 1];
        let mut allocator = PlaceAllocator {
            slots: BTreeMap::new(),
            count: 0,
            lowest,
            used: 0,
            longest_places,
            next_runs: LONG_RUNS.map(NextRun::of_at_least),
            align: 1,
            released_twice: false,
        };
        allocator.claim(Extent { first: 0, grains: FIRST_GRAIN });
        allocator
    }

    /// The map in which these regions, in order, have used grains.
    pub(crate) fn of_regions(longest_place: u32, regions: impl Iterator<Item = (usize, Region)>) -> PlaceAllocator {
        let mut used = 0;
        let slot = |(index, region): (usize, Region)| {
            used += u64::from(REGION - region.free());
            (index, UsedRegion { longest: region.free(), region: Box::new(region), longest_places: None })
        };
        let slots: BTreeMap<usize, UsedRegion> = regions.map(slot).collect();
        let changed = slots.keys().copied().collect();
        let longest_places = LongestPlaces { grains: longest_place, changed, total: 0 };
        let count = slots.last_key_value().map_or(0, |(last, _)| last + 1);
        PlaceAllocator {
            slots,
            count,
            lowest: vec![0; REGION as usize + 1],
            used,
            longest_places,
            next_runs: LONG_RUNS.map(NextRun::of_at_least),
            align: 1,
            released_twice: false,
        }
    }

    /// Grains of a longest place.
    pub(crate) fn longest_place(&self) -> u32 {
        self.longest_places.grains
    }

    /// The regions with a used grain, in order.
    pub(crate) fn regions(&self) -> impl Iterator<Item = (usize, &Region)> {
        self.slots.iter().map(|(index, slot)| (*index, &*slot.region))
    }

    /// The numbers of the regions with a used grain from region `first` on, in order.
    pub(crate) fn regions_from(&self, first: u64) -> impl DoubleEndedIterator<Item = u64> {
        let first = usize::try_from(first).unwrap_or(usize::MAX);
        self.slots.range(first..).map(|(index, _)| *index as u64)
    }

    /// From now on places begin at multiples of `align` grains, a divisor of a region's, where there is one.
    pub(crate) fn align_to(&mut self, align: u32) {
        self.align = align;
    }

    /// Grains in use, the superblocks' among them.
    pub(crate) fn used(&self) -> u64 {
        self.used
    }

    /// The grain after the last used one.
    pub(crate) fn end(&self) -> u64 {
        self.slots.last_key_value().map_or(0, |(index, slot)| join(*index, slot.region.end()))
    }

    /// Forgets the regions after the last used grain.
    pub(crate) fn trim(&mut self) {
        self.count = self.slots.last_key_value().map_or(0, |(last, _)| last + 1);
        for lowest in &mut self.lowest {
            *lowest = self.count.min(*lowest);
        }
    }

    /// How many images of any length find room before grain `end`.
    pub(crate) fn longest_places(&mut self, end: u64) -> u64 {
        let grains = self.longest_places.grains;
        for index in std::mem::take(&mut self.longest_places.changed) {
            if let Some(slot) = self.slots.get_mut(&index).filter(|slot| slot.longest_places.is_none()) {
                let count = slot.region.longest_places(grains, REGION);
                slot.longest_places = Some(count);
                self.longest_places.total += u64::from(count);
            }
        }
        // Grains beyond the end do not count. Regions without a slot are free.
        let (last, within) = split(end).unwrap_or_default();
        let (mut beyond, mut behind) = (0, 0);
        for slot in self.slots.range(last..).map(|(_, slot)| slot) {
            (beyond, behind) = (beyond + 1, behind + u64::from(slot.longest_places.unwrap_or(0)));
        }
        let cut =
            self.slots.get(&last).map_or(within / grains.max(1), |slot| slot.region.longest_places(grains, within));
        let free = last.saturating_sub(self.slots.len() - beyond) as u64;
        self.longest_places.total - behind + u64::from(cut) + free * u64::from(REGION / grains.max(1))
    }

    /// The least end of a file that has all used grains, and room for `places` images of any length.
    pub(crate) fn end_with(&mut self, places: u64) -> u64 {
        let (end, region, longest) = (self.end(), u64::from(REGION), u64::from(self.longest_place()).max(1));
        let missing = places.saturating_sub(self.longest_places(end));
        let last = end.next_multiple_of(region);
        match missing.checked_sub((last - end) / longest) {
            None | Some(0) => end + missing * longest,
            // No place crosses the border of two regions.
            Some(rest) => last + rest / (region / longest) * region + rest % (region / longest) * longest,
        }
    }

    /// Allocates exactly these grains. False, with nothing changed, if one of them is in use or beyond the largest
    /// file.
    pub(crate) fn claim(&mut self, extent: Extent) -> bool {
        if extent.grains == 0 || extent.end() > MAX_GRAINS {
            return false;
        }
        let Some((last, _)) = split(extent.end() - 1) else { return false };
        let mut done = Extent { first: extent.first, grains: 0 };
        for piece in pieces(extent) {
            if !self.mark(piece, true) {
                self.unmark_all(done);
                return false;
            }
            done.grains += piece.grains;
        }
        self.used += extent.grains;
        self.count = self.count.max(last + 1);
        true
    }

    /// True if all of these grains are in use.
    pub(crate) fn is_used(&self, extent: Extent) -> bool {
        pieces(extent).all(|Extent { first, grains }| {
            let slot = split(first).and_then(|(index, at)| Some((self.slots.get(&index)?, at)));
            slot.is_some_and(|(slot, at)| slot.region.is_used(at, u32::try_from(grains).unwrap_or(REGION)))
        })
    }

    fn unmark_all(&mut self, extent: Extent) {
        for piece in pieces(extent) {
            self.mark(piece, false);
        }
    }

    fn mark(&mut self, piece: Extent, used: bool) -> bool {
        let Some((index, at)) = split(piece.first) else { return false };
        let Ok(grains) = u32::try_from(piece.grains) else { return false };
        if used {
            let slot = self.slots.entry(index).or_insert_with(|| {
                self.longest_places.changed.push(index);
                UsedRegion { region: Box::new(Region::new()), longest: REGION, longest_places: None }
            });
            let marked = slot.region.mark(at, grains, true);
            if marked {
                slot.longest = slot.longest.min(slot.region.free());
                self.longest_places.changed(index, slot.longest_places.take());
            }
            return marked;
        }
        let Some(slot) = self.slots.get_mut(&index) else { return false };
        if !slot.region.mark(at, grains, false) {
            return false;
        }
        self.longest_places.changed(index, slot.longest_places.take());
        let run = slot.region.run_around(at);
        slot.longest = run.max(slot.longest);
        self.next_runs.iter_mut().for_each(|search| search.note_free_run(run));
        for lowest in self.lowest.iter_mut().take(run as usize + 1) {
            *lowest = index.min(*lowest);
        }
        if slot.region.free() == REGION {
            self.slots.remove(&index);
        }
        true
    }

    /// Frees grains. They may be allocated again at once.
    pub(crate) fn release(&mut self, extent: Extent) {
        let mut freed = 0;
        for piece in pieces(extent) {
            let marked = self.mark(piece, false);
            if !marked {
                // Two pages had one place. Only a forged page table can have this.
                tracing::error!(?piece, "a place was released twice: check the database");
                self.released_twice = true;
            }
            freed += if marked { piece.grains } else { 0 };
        }
        self.used -= freed;
    }

    /// True if grains were released that were not in use.
    pub(crate) fn has_released_twice(&self) -> bool {
        self.released_twice
    }

    /// The lowest free run of `grains` (at most a region) in the regions there are. At most `most` regions are looked
    /// at; the next search goes on after them.
    fn find(&mut self, grains: u32, most: usize) -> Option<u64> {
        let start = self.lowest.get(grains as usize).copied().unwrap_or(0);
        let end = self.count.min(start.saturating_add(most));
        let mut slots = self.slots.range_mut(start..);
        let (mut found, mut index) = (None, start);
        while index < end {
            // A region without a slot is free.
            let Some((_, slot)) = slots.next().filter(|(at, _)| **at == index) else {
                found = Some(join(index, 0));
                break;
            };
            if slot.longest >= grains {
                match slot.region.find(grains, self.align) {
                    Ok(at) => {
                        found = Some(join(index, at));
                        break;
                    }
                    Err(exact) => slot.longest = exact,
                }
            }
            index += 1;
        }
        if let Some(lowest) = self.lowest.get_mut(grains as usize) {
            *lowest = index;
        }
        found
    }

    /// Allocates the lowest free run of `grains` that ends at or before grain `limit`; `None` if there is none.
    pub(crate) fn allocate_below(&mut self, grains: u64, limit: u64) -> Option<Extent> {
        let wanted = u32::try_from(grains).ok().filter(|grains| (1..=REGION).contains(grains))?;
        let first = self.find(wanted, usize::MAX)?;
        let extent = Extent { first, grains };
        (extent.end() <= limit && self.claim(extent)).then_some(extent)
    }

    /// The same anywhere, also between the places where others begin.
    pub(crate) fn allocate_unaligned_below(&mut self, grains: u64, limit: u64) -> Option<Extent> {
        let wanted = u32::try_from(grains).ok()?;
        let found = self.slots.iter().find_map(|(index, slot)| Some(join(*index, slot.region.find(wanted, 1).ok()?)));
        let extent = Extent { first: found?, grains };
        (extent.end() <= limit && self.claim(extent)).then_some(extent)
    }

    /// Allocates `grains` grains in one piece; `None` if the file cannot be larger.
    pub(crate) fn allocate(&mut self, grains: u64) -> Option<Extent> {
        let first = match u32::try_from(grains) {
            Ok(small) if small <= REGION => self.find(small, usize::MAX).unwrap_or_else(|| join(self.count, 0)),
            _ => self.find_regions(grains.div_ceil(u64::from(REGION))),
        };
        let extent = Extent { first, grains };
        self.claim(extent).then_some(extent)
    }

    /// The first grain of `count` wholly free regions in a row; those missing at the end are yet to be added.
    fn find_regions(&self, count: u64) -> u64 {
        let mut start = 0;
        for index in self.slots.keys() {
            if (index - start) as u64 >= count {
                break;
            }
            start = index + 1;
        }
        join(start, 0)
    }

    /// Allocates places in one free run for the first images of `sizes` grains each (at most a region each), side by
    /// side: for at least one image. Appends their first grains to `firsts`. Returns false and allocates nothing if the
    /// file cannot be larger.
    pub(crate) fn allocate_run(&mut self, sizes: &[u32], fit: Fit, end: u64, firsts: &mut Vec<u64>) -> bool {
        let Some(&size) = sizes.first() else { return true };
        let before = firsts.len();
        let run = self.run_for(size, sizes, fit, end);
        let mut next = run.first;
        for &size in sizes {
            if next + u64::from(size) > run.end() {
                break;
            }
            firsts.push(next);
            next += u64::from(size);
        }
        let claimed = self.claim(Extent { first: run.first, grains: next - run.first });
        if !claimed {
            firsts.truncate(before);
        }
        claimed
    }

    /// Returns a free run of at least `size` grains; `size` is the first of `sizes`. It prefers one long run to many
    /// short ones, even if the long run makes the file longer. The long run must end at or before grain `end` and the
    /// limit that [`LOOSE_DIVISOR`] sets. If there is no such run, it takes the lowest free run for one image. If there
    /// is none either, it adds a region to the file.
    fn run_for(&mut self, size: u32, sizes: &[u32], fit: Fit, end: u64) -> Extent {
        let total = sizes.iter().fold(0u32, |sum, &size| sum.saturating_add(size)).min(REGION).max(size);
        let dense = (self.used + self.used / LOOSE_DIVISOR).min(end).min(MAX_GRAINS);
        let together = match fit {
            Fit::Next => (0..LONG_RUNS.len()).find_map(|search| self.next_run(search, size, total, dense)),
            Fit::Lowest => self.lowest_run(size, total, dense),
        };
        together.unwrap_or_else(|| match self.find(size, usize::MAX) {
            Some(first) => Extent { first, grains: u64::from(size) },
            None => Extent { first: join(self.count, 0), grains: u64::from(total) },
        })
    }

    /// The lowest free run of `most` grains before grain `limit`, or of half of them, and so on as far as `least`.
    fn lowest_run(&mut self, least: u32, most: u32, limit: u64) -> Option<Extent> {
        let lengths = std::iter::successors(Some(most), |length| Some(length / 2)).take_while(|length| *length > least);
        for length in lengths {
            let found = self.find(length, MAX_REGIONS);
            if let Some(first) = found.filter(|first| first + u64::from(length) <= limit) {
                return Some(Extent { first, grains: u64::from(length) });
            }
        }
        None
    }
}

/// The parts of an extent, region by region.
fn pieces(extent: Extent) -> impl Iterator<Item = Extent> {
    let mut at = extent.first;
    std::iter::from_fn(move || {
        let border = (at / u64::from(REGION) + 1) * u64::from(REGION);
        let piece = Extent { first: at, grains: border.min(extent.end()).saturating_sub(at) };
        at = piece.end();
        (piece.grains > 0).then_some(piece)
    })
}

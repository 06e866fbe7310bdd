//! Where a search begins: the place that a key would have if keys were evenly spread. Those of one block nearly are, whatever
//! the distribution of all, so that few others have to be looked at. No codec belongs here.
#![allow(clippy::cast_possible_truncation, reason = "cut to 32 bits before")]

/// The place, at most `places` and these at most 256, of a key that is `distance` above the first, where the last is `range` above
/// it, a number of `width` bits. `distance` is at most `range`.
#[inline(always)]
pub(crate) fn place(distance: u64, range: u64, width: u32, places: usize) -> usize {
    // In 32 bits: what is cut off makes no difference to so few places, and the division takes a third of the time.
    let cut = width.saturating_sub(24);
    let (distance, range) = ((distance >> cut) as u32, (range >> cut) as u32);
    (distance * places as u32 / (range | 1)) as usize
}

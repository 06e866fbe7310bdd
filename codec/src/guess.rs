//! The place where a search begins: the place that a key would have if the keys were evenly spread. The keys of one
//! block nearly are, whatever the distribution of all keys is, so a search needs to look at few other keys.

/// The likely place of a key, from 0 to `places`, which is at most 256. The key is `distance` greater than the first
/// key, and the last key is `range` greater than the first, a number of `width` bits. `distance` is at most `range`.
#[allow(clippy::cast_possible_truncation, reason = "both are shifted to at most 24 bits")]
#[inline(always)]
pub(crate) fn place(distance: u64, range: u64, width: u32, places: usize) -> usize {
    // Computed in 32 bits: the lost bits make no difference for so few places, and the division takes a third of the
    // time.
    let cut = width.saturating_sub(24);
    let (distance, range) = ((distance >> cut) as u32, (range >> cut) as u32);
    (distance * places as u32 / (range | 1)) as usize
}

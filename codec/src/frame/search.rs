//! Searches a block of FOR with 32-bit keys. The code is the same for all widths and looks only at the 32 fields around
//! the likely position of the key.

use core::arch::x86_64::*;

use crate::bits::width;
use crate::{Block, Found, guess};

/// The smallest width of more keys than a window has, and the largest width with which every field is in four bytes.
const MIN: u32 = 6;
const MAX: u32 = 25;

/// The fields of a vector. A window has two vectors.
const LANES: usize = 16;

/// How the bytes of sixteen fields are moved to lanes: four bytes for each field, and the number of bits to shift them
/// down.
#[repr(C, align(64))]
struct FieldShuffle {
    bytes: [u8; 64],
    down: [u32; LANES],
}

impl FieldShuffle {
    #[allow(clippy::cast_possible_truncation)]
    #[allow(clippy::indexing_slicing, reason = "indexes are constants")]
    const fn of(width: u32) -> FieldShuffle {
        let mut shuffle = FieldShuffle { bytes: [0; 64], down: [0; LANES] };
        let mut lane = 0;
        while lane < LANES {
            let bit = lane as u32 * width;
            shuffle.down[lane] = bit % 8;
            let mut byte = 0;
            while byte < 4 {
                shuffle.bytes[4 * lane + byte] = (bit / 8) as u8 + byte as u8;
                byte += 1;
            }
            lane += 1;
        }
        shuffle
    }
}

#[allow(clippy::indexing_slicing, reason = "indexes are constants")]
static SHUFFLES: [FieldShuffle; (MAX - MIN) as usize + 1] = {
    let mut shuffles = [const { FieldShuffle::of(MIN) }; (MAX - MIN) as usize + 1];
    let mut width = MIN;
    while width <= MAX {
        shuffles[(width - MIN) as usize] = FieldShuffle::of(width);
        width += 1;
    }
    shuffles
};

compiled_for! { Vbmi,
    /// Like [`crate::Codec::lower_bound`], for a key that is greater than the first key and not greater than the last
    /// one. Returns `None` unless the block has more than 32 keys, 64 bytes can be read from each half of the window
    /// on, and the key is at or near the position that it would have if the keys were evenly spread.
    #[allow(clippy::cast_possible_truncation)]
    #[inline]
    pub(super) fn find(block: &Block<u32>, bytes: &[u8], key: u32) -> Option<Found> {
        let (claimed, range) = (u32::from(block.extent), block.last - block.first);
        let fields = usize::from(block.count).checked_sub(1)?;
        if !(MIN..=MAX).contains(&claimed) || claimed != width(range.into()) || !(2 * LANES..=255).contains(&fields) {
            return None;
        }
        let sought = key - block.first;
        let likely = guess::place(sought.into(), range.into(), claimed, fields);
        let first = LANES * (likely.saturating_sub(LANES / 2) / LANES).min((fields - LANES - 1) / LANES);
        // The fields of a vector begin with a whole byte.
        let at = first / 8 * claimed as usize;
        let window: &[u8; 64] = bytes.get(at..)?.first_chunk()?;
        let next: &[u8; 64] = bytes.get(at + LANES / 8 * claimed as usize..)?.first_chunk()?;
        let shuffle = SHUFFLES.get((claimed - MIN) as usize)?;
        // SAFETY: this function is compiled for the level, and each array has the length of a vector.
        let (below, equal) = unsafe {
            let places = _mm512_load_si512(shuffle.bytes.as_ptr().cast());
            let down = _mm512_load_si512(shuffle.down.as_ptr().cast());
            let mask = _mm512_set1_epi32(_bzhi_u32(u32::MAX, claimed) as i32);
            let sought = _mm512_set1_epi32(sought as i32);
            let compare = |bytes: &[u8; 64]| {
                let bytes = _mm512_permutexvar_epi8(places, _mm512_loadu_si512(bytes.as_ptr().cast()));
                let fields = _mm512_and_si512(_mm512_srlv_epi32(bytes, down), mask);
                (_mm512_cmplt_epu32_mask(fields, sought), _mm512_cmpeq_epu32_mask(fields, sought))
            };
            let (low, high) = (compare(window), compare(next));
            (_mm512_kunpackw(high.0.into(), low.0.into()), _mm512_kunpackw(high.1.into(), low.1.into()))
        };
        // Places after the last field do not count.
        let used = _bzhi_u32(u32::MAX, (fields - first) as u32);
        let below = below & used;
        // Otherwise the key may belong before the window or after it.
        let inside = below != used && (below != 0 || first == 0);
        let index = 1 + first + below.count_ones() as usize;
        inside.then_some(Found { index, exact: equal & used != 0 })
    }
}

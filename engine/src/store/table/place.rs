//! Places: where in the file an image is, counted in grains.

use crate::base::bytes::{get_u32, get_u64};

/// Bytes of a grain, the unit of allocation in the file: the smallest block that a device writes as a whole.
pub(crate) const GRAIN: usize = 512;
/// Grains at the front of the file that belong to the two superblocks.
pub(crate) const FIRST_GRAIN: u64 = 16;
/// The largest grain number + 1: grain numbers have 40 bits.
pub(crate) const MAX_GRAINS: u64 = 1 << 40;
const FIRST_MASK: u64 = MAX_GRAINS - 1;
const LENGTH_SHIFT: u32 = 40;
const FLAG_SHIFT: u32 = 48;

/// How many grains `bytes` bytes take.
pub(crate) fn grains_of(bytes: usize) -> u64 {
    bytes.div_ceil(GRAIN) as u64
}

/// A run of grains of any length, the unit of the allocator.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct Extent {
    pub(crate) first: u64,
    pub(crate) grains: u64,
}

impl Extent {
    /// The grain after the last.
    pub(crate) fn end(self) -> u64 {
        self.first.saturating_add(self.grains)
    }

    /// Byte offset in the file.
    pub(crate) fn offset(self) -> u64 {
        self.first.saturating_mul(GRAIN as u64)
    }

    /// Its length in bytes.
    pub(crate) fn len(self) -> u64 {
        self.grains.saturating_mul(GRAIN as u64)
    }
}

/// The place of one image: first grain in bits 0..40, number of grains (1 to 255) in bits 40..48; the bits above are
/// zero. The file offset is the first grain times [`GRAIN`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Place(u64);

impl Place {
    /// The place of `grains` grains from grain `first`; `None` if a number is out of range.
    pub(crate) fn new(first: u64, grains: u64) -> Option<Place> {
        let fits = (FIRST_GRAIN..MAX_GRAINS).contains(&first) && (1..=255).contains(&grains);
        fits.then_some(Place(first | grains << LENGTH_SHIFT))
    }

    /// The place that these 64 bits encode; `None` if they are no place.
    pub(crate) fn from_bits(bits: u64) -> Option<Place> {
        if bits >> FLAG_SHIFT != 0 {
            return None;
        }
        Place::new(bits & FIRST_MASK, bits >> LENGTH_SHIFT)
    }

    /// The 64 bits.
    pub(crate) fn bits(self) -> u64 {
        self.0
    }

    /// Its first grain.
    pub(crate) fn first(self) -> u64 {
        self.0 & FIRST_MASK
    }

    /// How many grains it has.
    pub(crate) fn grains(self) -> u64 {
        self.0 >> LENGTH_SHIFT
    }

    /// Byte offset in the file.
    pub(crate) fn offset(self) -> u64 {
        self.first() * GRAIN as u64
    }

    /// Its length in bytes.
    #[allow(clippy::cast_possible_truncation)] // at most 255
    pub(crate) fn len(self) -> usize {
        self.grains() as usize * GRAIN
    }

    pub(crate) fn extent(self) -> Extent {
        Extent { first: self.first(), grains: self.grains() }
    }
}

/// The place of a page's image and the checksum of the image. Log records and the page table contain locations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Location {
    /// The position and the length of the image.
    pub(crate) place: Place,
    /// CRC-32C of the image; see [`super::image`].
    pub(crate) crc: u32,
}

impl Location {
    /// Bytes of a location in a log record or a page table chunk: place u64, checksum u32.
    pub(crate) const BYTES: usize = 12;

    /// Its bytes, little-endian.
    pub(crate) fn encode(self) -> [u8; Location::BYTES] {
        let mut bytes = [0; Location::BYTES];
        crate::base::bytes::put_u64(&mut bytes, 0, self.place.bits());
        crate::base::bytes::put_u32(&mut bytes, 8, self.crc);
        bytes
    }

    /// Decodes a location; `None` if the bytes are none.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Location> {
        if bytes.len() < Location::BYTES {
            return None;
        }
        Some(Location { place: Place::from_bits(get_u64(bytes, 0))?, crc: get_u32(bytes, 8) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn locations_are_decoded_as_they_were_encoded(first in FIRST_GRAIN..MAX_GRAINS, grains in 1u64..=255, crc: u32) {
            let location = Location { place: Place::new(first, grains).unwrap(), crc };
            prop_assert_eq!(location.place.first(), first);
            prop_assert_eq!(location.place.grains(), grains);
            prop_assert_eq!(Location::decode(&location.encode()), Some(location));
        }

        #[test]
        fn any_bits_are_a_place_or_none(bits: u64) {
            if let Some(place) = Place::from_bits(bits) {
                prop_assert_eq!(place.bits(), bits);
                prop_assert!(place.first() >= FIRST_GRAIN && place.grains() > 0);
            }
        }
    }

    #[test]
    fn the_superblocks_are_no_place() {
        assert_eq!(Place::new(FIRST_GRAIN - 1, 1), None);
        assert_eq!(Place::new(FIRST_GRAIN, 0), None);
        assert_eq!(Place::new(FIRST_GRAIN, 256), None);
        assert_eq!(Place::from_bits(0), None);
    }
}

//! All frames of a pool: an array that grows slab by slab and whose frames never move. A slab is some frames, each with
//! its page after it. The first slabs are small, so that a small database needs little memory. Slabs grow until they
//! have 16 MiB, so that they fill huge pages. In a cache with a limit, two slabs have each size, and a slab that is
//! larger than the one before has at least half of the memory before it. So most of a small cache is in huge pages: 28
//! of 32 MiB with pages of 8 KiB. Without a limit, there are eight slabs of each size below 16 MiB, and a slab has
//! about a fifteenth to an eighth of the memory before it, except the first slabs. This keeps the memory of frames that
//! are not used yet small.

use super::frame::{Frame, LINE};
use super::growable_array::GrowableArray;
use super::huge::HugeSlice;
use std::sync::OnceLock;

/// Bytes of the pages of the first slabs, within the limits of their number of frames, and of the largest slabs.
const SLAB: (usize, usize) = (1 << 18, 1 << 24);
/// The least and the most frames of the first slabs, as powers of two.
const SLAB_BITS: (u32, u32) = (2, 9);
/// There are `1 << step` slabs of one size, then as many of twice the size. The first number is the step in a cache
/// with a limit, the second is the step without a limit.
const STEP: (u32, u32) = (1, 3);

/// A slab for each size of a page.
macro_rules! slabs {
    ($($name:ident $page_size:literal),*) => {
        enum Slab {
            $($name(HugeSlice<Frame<[u64; $page_size / 8]>>),)*
        }

        impl Slab {
            /// A slab of this number of frames; none for another page size.
            fn new(page_size: usize, frames: usize) -> Slab {
                match page_size {
                    $($page_size => Slab::$name(HugeSlice::new(frames, Frame::empty)),)*
                    _ => Slab::Bytes256(HugeSlice::new(0, Frame::empty)),
                }
            }

            #[inline(always)]
            fn get(&self, at: usize) -> Option<&Frame> {
                match self {
                    $(Slab::$name(frames) => frames.get(at).map(|frame| frame as &Frame),)*
                }
            }
        }
    };
}

slabs! {
    Bytes256 256, Bytes512 512, KiB1 1024, KiB2 2048, KiB4 4096, KiB8 8192, KiB16 16384, KiB32 32768, KiB64 65536,
    // In slots with a trailer.
    Slot4 4080, Slot8 8176, Slot16 16368, Slot32 32752, Slot64 65520
}

/// The sizes of the slabs, from which the slab of a frame follows.
#[derive(Clone, Copy)]
struct SlabSizes {
    /// The first slabs have `1 << bits` frames.
    bits: u32,
    /// The largest have `1 << most`.
    most: u32,
    /// The binary logarithm of the number of slabs of one size.
    step: u32,
}

impl SlabSizes {
    /// The slab that has a frame, the frame's place in it, and how many frames the slab has.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // fewer slabs than frames; and usize has 64 bits wherever it can matter
    fn locate(self, index: u32) -> (u32, usize, u64) {
        // With the frames of one smaller size added, the leading bits of the sum are the size and the slab.
        let at = u64::from(index) + (1 << (self.bits + self.step));
        let bits = (at.ilog2() - self.step).min(self.most);
        let slab = (u64::from(bits - self.bits) << self.step) + (at >> bits) - (1 << self.step);
        (slab as u32, (at & ((1 << bits) - 1)) as usize, 1 << bits)
    }
}

/// The frames of a pool.
pub(super) struct Frames {
    page_size: usize,
    sizes: SlabSizes,
    /// The most frames that there can be.
    capacity: u32,
    slabs: GrowableArray<OnceLock<Slab>>,
}

impl Frames {
    /// No frames yet; at most `capacity` will be asked for. `is_limited`: the pool evicts pages when it has
    /// `capacity` frames.
    pub(super) fn new(page_size: usize, capacity: u32, is_limited: bool) -> Frames {
        let all = capacity.max(1).ilog2().max(SLAB_BITS.0);
        let of = |bytes: usize| (bytes / page_size.max(1)).max(1).ilog2();
        let bits = of(SLAB.0).clamp(SLAB_BITS.0, SLAB_BITS.1.min(all));
        let step = if is_limited { STEP.0 } else { STEP.1 };
        let sizes = SlabSizes { bits, most: of(SLAB.1).max(bits), step };
        Frames {
            page_size,
            sizes,
            capacity,
            slabs: GrowableArray::new(|len| (0..len).map(|_| OnceLock::new()).collect()),
        }
    }

    /// The frame at `index`, if its slab has been made.
    #[inline(always)]
    pub(super) fn get(&self, index: u32) -> Option<&Frame> {
        let (slab, within, _) = self.sizes.locate(index);
        self.slabs.get(slab)?.get()?.get(within)
    }

    /// The frame at `index`, whose slab is made if need be.
    pub(super) fn grow(&self, index: u32) -> Option<&Frame> {
        let (slab, within, _) = self.sizes.locate(index);
        let make = || Slab::new(self.page_size, self.slab_len(index));
        self.slabs.grow(slab)?.get_or_init(make).get(within)
    }

    /// The number of frames of the slab of `index`, within the capacity.
    fn slab_len(&self, index: u32) -> usize {
        let (_, within, len) = self.sizes.locate(index);
        let left = u64::from(self.capacity.saturating_sub(index)) + within as u64;
        usize::try_from(len.min(left)).unwrap_or(usize::MAX)
    }

    /// Bytes of the first `used` frames, of the others of their slabs, and of the index that finds them.
    pub(super) fn bytes(&self, used: u32) -> usize {
        let frames = used.checked_sub(1).map_or(0, |last| {
            let (_, within, _) = self.sizes.locate(last);
            last as usize - within + self.slab_len(last)
        });
        self.slabs.bytes() + frames * (self.page_size + LINE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_size_has_frames_of_its_own_that_stay_where_they_are() {
        for shift in 8..=16 {
            let frames = Frames::new(1 << shift, u32::MAX, false);
            assert!(frames.get(0).is_none());
            let first = frames.grow(5).map(Frame::address);
            assert!(frames.grow(1000).is_some());
            assert_eq!(frames.get(5).map(Frame::address), first);
            assert_eq!(frames.get(5).map(|frame| frame.latch.read().len() * 8), Some(1 << shift));
            let distance = frames.get(5).zip(frames.get(6)).map(|(a, b)| b.address() - a.address());
            assert_eq!(distance, Some((1 << shift) + LINE));
        }
    }

    #[test]
    fn slabs_follow_one_another_and_later_slabs_are_larger() {
        for (bits, most, step) in [(2, 8, 3), (9, 15, 3), (5, 5, 3), (2, 8, 1), (5, 11, 1), (5, 5, 1)] {
            let sizes = SlabSizes { bits, most, step };
            let mut expected = (0, 0);
            for index in 0..1 << 18 {
                let (slab, within, len) = sizes.locate(index);
                assert_eq!((slab, within), expected, "frame {index}");
                assert!(len == 1 << bits || len << step <= u64::from(index) + (1 << (bits + step)));
                assert!(len <= 1 << most);
                expected = if within as u64 + 1 == len { (slab + 1, 0) } else { (slab, within + 1) };
            }
            let (slab, within, len) = sizes.locate(u32::MAX);
            assert!(slab <= u32::MAX >> bits && (within as u64) < len);
        }
    }

    #[test]
    fn the_last_slab_has_no_frames_beyond_the_capacity() {
        let frames = Frames::new(512, 5000, true);
        let found = (0..6000).filter(|index| frames.grow(*index).is_some()).count();
        assert_eq!(found, 5000);
        let least = 5000 * (512 + LINE);
        assert!((least..least + 40_000).contains(&frames.bytes(5000)), "{}", frames.bytes(5000));
    }
}

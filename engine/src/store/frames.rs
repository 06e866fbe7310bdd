//! All frames of a pool: an array that grows slab by slab and whose frames never move. A slab is a few frames, each
//! with its page behind it, so that memory is taken as pages come. Which page is in which frame must never be known here.

use super::frame::{Frame, LINE};
use super::growing::Growing;
use std::sync::OnceLock;

/// Bytes of the pages of a slab, as far as its number of frames allows.
const SLAB: usize = 1 << 18;
/// The least and the most frames of a slab, as powers of two.
const SLAB_BITS: (u32, u32) = (2, 9);

/// A slab for each size of a page.
macro_rules! slabs {
    ($($name:ident $page_size:literal),*) => {
        enum Slab {
            $($name(Box<[Frame<[u64; $page_size / 8]>]>),)*
        }

        impl Slab {
            /// A slab of so many frames; pages of no such size get none.
            fn new(page_size: usize, frames: usize) -> Slab {
                match page_size {
                    $($page_size => Slab::$name((0..frames).map(|_| Frame::empty()).collect()),)*
                    _ => Slab::Bytes256(Box::default()),
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
    Bytes256 256, Bytes512 512, KiB1 1024, KiB2 2048, KiB4 4096, KiB8 8192, KiB16 16384, KiB32 32768, KiB64 65536
}

/// See the module's words.
pub(super) struct Frames {
    page_size: usize,
    /// A slab has `1 << bits` frames.
    bits: u32,
    slabs: Growing<OnceLock<Slab>>,
}

impl Frames {
    /// No frames yet; at most about `capacity` will be asked for.
    pub(super) fn new(page_size: usize, capacity: u32) -> Frames {
        let all = capacity.max(1).ilog2().max(SLAB_BITS.0);
        let bits = (SLAB / page_size.max(1)).max(1).ilog2().clamp(SLAB_BITS.0, SLAB_BITS.1.min(all));
        Frames { page_size, bits, slabs: Growing::new(|len| (0..len).map(|_| OnceLock::new()).collect()) }
    }

    #[inline(always)]
    fn within(&self, index: u32) -> usize {
        (index & ((1 << self.bits) - 1)) as usize
    }

    /// The frame at `index`, if its slab has been made.
    #[inline(always)]
    pub(super) fn get(&self, index: u32) -> Option<&Frame> {
        self.slabs.get(index >> self.bits)?.get()?.get(self.within(index))
    }

    /// The frame at `index`, whose slab is made if need be.
    pub(super) fn grow(&self, index: u32) -> Option<&Frame> {
        let slab = self.slabs.grow(index >> self.bits)?.get_or_init(|| Slab::new(self.page_size, 1 << self.bits));
        slab.get(self.within(index))
    }

    /// Bytes of the first `used` frames, of the others of their slabs, and of what finds them.
    pub(super) fn bytes(&self, used: u32) -> usize {
        let slabs = used.div_ceil(1 << self.bits) as usize;
        self.slabs.bytes() + ((slabs << self.bits) * (self.page_size + LINE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_size_has_frames_of_its_own_that_stay_where_they_are() {
        for shift in 8..=16 {
            let frames = Frames::new(1 << shift, u32::MAX);
            assert!(frames.get(0).is_none());
            let first = frames.grow(5).map(Frame::address);
            assert!(frames.grow(1000).is_some());
            assert_eq!(frames.get(5).map(Frame::address), first);
            assert_eq!(frames.get(5).map(|frame| frame.latch.read().len() * 8), Some(1 << shift));
            let apart = frames.get(5).zip(frames.get(6)).map(|(a, b)| b.address() - a.address());
            assert_eq!(apart, Some((1 << shift) + LINE));
        }
    }
}

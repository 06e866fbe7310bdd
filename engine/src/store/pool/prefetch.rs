//! Asking the processor for memory that will be read soon. A hint and nothing else: no result depends on it.
//!
//! Why it is worth an `unsafe`: random reads of 60,000 pages of 8 KiB in memory, each asked for four reads ahead, took
//! 222 ns instead of 372; touching the page in safe code, which has to take its latch, gained nothing. Sums over 26,000
//! pages of 16 KiB, each page asked for while the one before it was summed, took .25 ns a key instead of .28 to .36.

use super::frame::LINE;

/// Brings the cache line at `address` closer, where the processor has an instruction for it.
#[inline(always)]
pub(super) fn line(address: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch reads nothing and faults on no address, mapped or not.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::without_provenance(address)) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// The same, no closer than the second cache: for much at a time, which would crowd out of the first what is being read, and
/// which may be on its way in greater numbers.
#[inline(always)]
fn far_line(address: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: as above.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(std::ptr::without_provenance(address)) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// The way from a page that is being read to the one that will be next: how far apart they lie in memory.
#[derive(Clone, Copy)]
pub struct Ahead {
    distance: usize,
}

impl Ahead {
    /// From memory at one address to memory at another.
    pub(super) fn between(here: usize, there: usize) -> Ahead {
        Ahead { distance: there.wrapping_sub(here) }
    }

    /// Asks for what lies in the next page where `bytes` lie in this one: the lines that begin in them, so that ranges
    /// side by side ask for no line twice.
    #[inline(always)]
    pub fn like(self, bytes: &[u8]) {
        let from = bytes.as_ptr().addr();
        for line in (from.next_multiple_of(LINE)..from + bytes.len()).step_by(LINE) {
            far_line(line.wrapping_add(self.distance));
        }
    }
}

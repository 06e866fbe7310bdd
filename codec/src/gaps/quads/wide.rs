//! The AVX-512 kernels of VarInt-GB and StreamVByte. They read four groups at a time if these have the same control
//! byte, as in long runs of gaps of one length. Otherwise they read the groups one by one.

use core::arch::x86_64::*;

use super::{LENGTHS, SHUFFLES, Start};
use crate::Result;
use crate::avx512::{join, keys_of_gaps};
use crate::error::{CUT, LEFT_OVER};
use crate::gaps::sinks::{WideSink, first_lanes};

/// The bytes of four groups, one group in each quarter of the vector. The groups are `step` bytes apart.
///
/// # Safety
/// The machine must have AVX-512, and 16 bytes must be readable from each group on.
#[inline(always)]
unsafe fn four_groups(from: *const u8, step: usize) -> __m512i {
    // SAFETY: guaranteed by the caller.
    unsafe { join([0, 1, 2, 3].map(|group| _mm_loadu_si128(from.add(group * step).cast()))) }
}

/// The most bytes of a group, with its control byte. A load of a group may read as many.
const GROUP: usize = 17;

/// The most control bytes of a block.
const CONTROLS: usize = 64;

/// The lengths of the gaps under one control byte. Most groups have the same control byte as the groups before. A
/// predicted branch is faster than waiting for the control byte.
struct GapLengths {
    control: u8,
    len: usize,
    shuffle: __m512i,
}

impl GapLengths {
    /// # Safety
    /// The machine must have AVX-512.
    #[inline(always)]
    unsafe fn new() -> GapLengths {
        // SAFETY: guaranteed by the caller.
        let shuffle = unsafe { _mm512_broadcast_i32x4(_mm_loadu_si128(SHUFFLES[0].as_ptr().cast())) };
        GapLengths { control: 0, len: 4, shuffle }
    }

    /// # Safety
    /// The machine must have AVX-512.
    #[allow(clippy::indexing_slicing)]
    #[inline(always)]
    unsafe fn set(&mut self, control: u8) {
        if control != self.control {
            let shuffle = SHUFFLES[usize::from(control)].as_ptr();
            self.control = control;
            self.len = usize::from(LENGTHS[usize::from(control)]);
            // SAFETY: guaranteed by the caller.
            self.shuffle = unsafe { _mm512_broadcast_i32x4(_mm_loadu_si128(shuffle.cast())) };
        }
    }
}

/// A block's groups, read sixteen gaps at a time.
struct Groups<'a, const STREAM: bool> {
    /// For StreamVByte: the control bytes, and zeros after them.
    controls: &'a [u8; CONTROLS + 4],
    data: &'a [u8],
    gap: usize,
    at: usize,
    /// The start of the last group that was read by `mixed`.
    group: usize,
    /// The last key, in every lane.
    before: __m512i,
}

impl<const STREAM: bool> Groups<'_, STREAM> {
    /// Computes keys from gaps and the last key before them.
    ///
    /// # Safety
    /// The machine must have AVX-512.
    #[inline(always)]
    unsafe fn keys(&mut self, gaps: __m512i) -> __m512i {
        // SAFETY: guaranteed by the caller.
        let (keys, last) = unsafe { keys_of_gaps(gaps, self.before) };
        self.before = last;
        keys
    }

    /// Reads up to four groups, each with its own control byte, up to the gap `end`.
    ///
    /// # Safety
    /// The machine must have AVX-512. `data` has the most bytes of four groups from `at` on.
    #[allow(clippy::indexing_slicing)]
    #[inline(always)]
    unsafe fn mixed(&mut self, end: usize) -> __m512i {
        let mut quarters = [[0u8; 16]; 4];
        // SAFETY: guaranteed by the caller.
        unsafe {
            for (i, quarter) in quarters.iter_mut().enumerate().take((end - self.gap).div_ceil(4).min(4)) {
                self.group = self.at;
                let from = self.data.as_ptr().add(self.at);
                let control = if STREAM { self.controls[(self.gap / 4 + i) % CONTROLS] } else { *from };
                let bytes = _mm_loadu_si128(from.add(usize::from(!STREAM)).cast());
                let shuffle = _mm_loadu_si128(SHUFFLES[usize::from(control)].as_ptr().cast());
                _mm_storeu_si128(quarter.as_mut_ptr().cast(), _mm_shuffle_epi8(bytes, shuffle));
                self.at += usize::from(!STREAM) + usize::from(LENGTHS[usize::from(control)]);
            }
            join(quarters.map(|quarter| _mm_loadu_si128(quarter.as_ptr().cast())))
        }
    }

    /// The first control byte of the next group. In VarInt-GB the distance to the next control byte depends on the
    /// lengths of the gaps.
    ///
    /// # Safety
    /// The next group has its control byte.
    #[inline(always)]
    unsafe fn controls(&self) -> *const u8 {
        // SAFETY: guaranteed by the caller; StreamVByte's control bytes have zeros after them.
        unsafe {
            if STREAM { self.controls.as_ptr().add(self.gap / 4 % CONTROLS) } else { self.data.as_ptr().add(self.at) }
        }
    }

    /// Reads the next four groups if they all have the same control byte.
    ///
    /// # Safety
    /// The machine must have AVX-512. `data` has four groups as long as the first one, and 16 bytes from the gaps of
    /// the last one on.
    #[inline(always)]
    unsafe fn alike(&mut self, lengths: &mut GapLengths) -> Option<__m512i> {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let (from, controls) = (self.data.as_ptr().add(self.at), self.controls());
            lengths.set(*controls);
            let (step, stride) = if STREAM { (lengths.len, 1) } else { (lengths.len + 1, lengths.len + 1) };
            let (one, two, three) = (*controls.add(stride), *controls.add(2 * stride), *controls.add(3 * stride));
            if (one ^ lengths.control) | (two ^ lengths.control) | (three ^ lengths.control) != 0 {
                return None;
            }
            self.at += 4 * step;
            Some(_mm512_shuffle_epi8(four_groups(from.add(usize::from(!STREAM)), step), lengths.shuffle))
        }
    }

    /// Whether `data` has the bytes that `alike` reads.
    #[allow(clippy::indexing_slicing)]
    #[inline(always)]
    fn has_four_alike(&self) -> bool {
        if self.at + GROUP > self.data.len() {
            return false;
        }
        // SAFETY: the control byte can be read.
        let len = usize::from(LENGTHS[usize::from(unsafe { *self.controls() })]);
        self.at + 3 * (len + usize::from(!STREAM)) + GROUP <= self.data.len()
    }

    /// Feeds sixteen keys to `sink`. Returns true if `sink` stops.
    ///
    /// # Safety
    /// The machine must have AVX-512.
    #[inline(always)]
    unsafe fn feed(&mut self, gaps: __m512i, sink: &mut impl WideSink) -> bool {
        self.gap += 16;
        // SAFETY: guaranteed by the caller.
        unsafe {
            let keys = self.keys(gaps);
            sink.upto_sixteen(keys, 16)
        }
    }

    /// Feeds the groups that are completely in `data`, sixteen gaps at a time. Returns true if `sink` has stopped.
    ///
    /// # Safety
    /// The machine must have AVX-512.
    #[inline(always)]
    unsafe fn whole(&mut self, gaps: usize, sink: &mut impl WideSink) -> bool {
        // SAFETY: guaranteed by the caller; the bytes of a group are read only if `data` has them.
        unsafe {
            let mut lengths = GapLengths::new();
            while self.gap + 16 <= gaps && self.at + 4 * GROUP <= self.data.len() {
                let unpacked = match self.alike(&mut lengths) {
                    Some(unpacked) => unpacked,
                    None => self.mixed(gaps),
                };
                if self.feed(unpacked, sink) {
                    return true;
                }
            }
            // At the end of `data`, short groups may still be complete.
            while self.gap + 16 <= gaps && self.has_four_alike() {
                let Some(unpacked) = self.alike(&mut lengths) else { return false };
                if self.feed(unpacked, sink) {
                    return true;
                }
            }
            false
        }
    }
}

/// Feeds every key to `sink`, from `start` on.
///
/// # Safety
/// The machine must have AVX-512.
#[allow(clippy::cast_possible_truncation, clippy::indexing_slicing)]
#[inline(always)]
pub(super) unsafe fn feed_wide<const STREAM: bool>(
    body: &[u8],
    gaps: usize,
    start: Start,
    sink: &mut impl WideSink,
) -> Result<()> {
    let mut controls = [0; CONTROLS + 4];
    if STREAM {
        let count = gaps.div_ceil(4);
        let (Some(to), Some(from)) = (controls.get_mut(..count), body.get(..count)) else { return Err(CUT) };
        to.copy_from_slice(from);
        if let Some(last) = to.last_mut().filter(|_| !gaps.is_multiple_of(4)) {
            *last &= first_lanes(2 * (gaps % 4)) as u8;
        }
    }
    // SAFETY: guaranteed by the caller.
    unsafe {
        let before = _mm512_set1_epi32(start.key as i32);
        let mut groups =
            Groups::<STREAM> { controls: &controls, data: body, gap: start.gap, at: start.at, group: start.at, before };
        if groups.whole(gaps, sink) {
            return Ok(());
        }
        let left = body.get(groups.at..).unwrap_or_default();
        let mut copy = [0; 9 * GROUP];
        // If the loop ended at the end of the body, fewer than four groups of the greatest length are left. If it ended
        // at the last gaps, at most four groups are left.
        let Some(to) = copy.get_mut(..left.len()).filter(|to| to.len() <= 4 * GROUP) else { return Err(LEFT_OVER) };
        to.copy_from_slice(left);
        let (partial, mut last) = (gaps % 4, None);
        if !STREAM && partial > 0 {
            // The control byte of a partial last group is moved before its gaps, as in the other groups.
            let control = *left.last().ok_or(CUT)? & first_lanes(2 * partial) as u8;
            let len = usize::from(LENGTHS[usize::from(control)]) - (4 - partial);
            let at = left.len().checked_sub(1 + len).ok_or(CUT)?;
            copy.copy_within(at..at + len, at + 1);
            copy[at] = control;
            last = Some(at);
        }
        let padded = if partial > 0 { left.len() + 4 - partial } else { left.len() };
        let mut rest = Groups::<STREAM> { data: &copy, at: 0, ..groups };
        while rest.gap < gaps {
            if rest.at > padded {
                return Err(CUT);
            }
            let count = (gaps - rest.gap).min(16);
            let unpacked = rest.mixed(gaps);
            let keys = rest.keys(unpacked);
            rest.gap += 16;
            if sink.upto_sixteen(keys, count) {
                return Ok(());
            }
        }
        if last.is_some_and(|at| at != rest.group) {
            return Err(CUT);
        }
        match rest.at.cmp(&padded) {
            core::cmp::Ordering::Less => Err(LEFT_OVER),
            core::cmp::Ordering::Equal => Ok(()),
            core::cmp::Ordering::Greater => Err(CUT),
        }
    }
}

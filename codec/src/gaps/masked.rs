//! The AVX-512 kernels of Masked VByte over `u32` keys: sixteen bytes at a time, whatever gaps they hold; and which
//! kernel runs at which level.
//!
//! The bytes' top bits say where gaps end and how long they are. Every byte is spread to a lane, the lanes at gaps'
//! ends take the bytes before them in, and a compress brings those lanes together. Where the next sixteen bytes start
//! never depends on what is in these, which is what makes it fast. No other codec belongs here.
#![allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)]

mod ends;
mod gather;

use core::arch::x86_64::*;
use core::mem::MaybeUninit;

use crate::avx512::{keys_of_gaps, prefix_sums, sums_of_pairs};
use crate::error::{CUT, ENDS_BELOW, LEFT_OVER, LONG};
use crate::gaps::bytes;
use crate::gaps::sinks::Sum;
use crate::{Block, Buffer, Found, Level, MAX_BLOCK, Result};

/// What one chunk of bytes leaves for the next.
struct Bytes<'a> {
    body: &'a [u8],
    at: usize,
    /// The last chunk, a byte a lane.
    before: __m512i,
    /// Its top bits.
    more: u32,
}

/// The gaps that end in one chunk.
struct Ends {
    /// In each lane of `mask` a gap; in the others nothing sensible.
    gaps: __m512i,
    mask: u16,
}

impl<'a> Bytes<'a> {
    /// # Safety
    /// AVX-512.
    #[inline(always)]
    unsafe fn new(body: &'a [u8]) -> Bytes<'a> {
        // SAFETY: the caller's.
        Bytes { body, at: 0, before: unsafe { _mm512_setzero_si512() }, more: 0 }
    }

    /// The next 16 bytes, or fewer at the end; `None` after it.
    ///
    /// # Safety
    /// AVX-512.
    #[inline(always)]
    unsafe fn next(&mut self) -> Result<Option<Ends>> {
        let left = self.body.len() - self.at;
        if left == 0 {
            return if self.more & 0x8000 == 0 { Ok(None) } else { Err(CUT) };
        }
        // SAFETY: the caller's; the mask keeps the load inside the body.
        unsafe {
            let from = self.body.as_ptr().add(self.at).cast();
            let (valid, bytes) = if left >= 16 {
                (0xFFFF, _mm_loadu_si128(from))
            } else {
                let valid = (1u16 << left) - 1;
                (valid, _mm_maskz_loadu_epi8(valid, from.cast()))
            };
            self.at += left.min(16);
            let more = u32::from(_mm_movepi8_mask(bytes));
            let mask = !(more as u16) & valid;
            // A body that ends within a gap: what is missing counts as the gap's end, so it is looked for here.
            if left < 16 && more >> (left - 1) & 1 == 1 {
                return Err(CUT);
            }
            let low = _mm512_cvtepu8_epi32(_mm_and_si128(bytes, _mm_set1_epi8(0x7F)));
            // Bit i: whether byte i, and the byte 1, 2, ... before it, belong to one gap.
            let run = more << 16 | self.more;
            let one = run << 1;
            let (mut gaps, before) = (low, self.before);
            self.before = low;
            self.more = more;
            let joined = (one >> 16) as u16;
            if joined != 0 {
                let two = one & run << 2;
                let three = two & run << 3;
                gaps = take_in::<15>(gaps, low, before, joined);
                if two >> 16 != 0 {
                    gaps = take_in::<14>(gaps, low, before, (two >> 16) as u16);
                }
                if three >> 16 != 0 {
                    let four = three & run << 4;
                    let five = four & run << 5;
                    gaps = take_in::<13>(gaps, low, before, (three >> 16) as u16);
                    // The fifth byte has four bits left, and there is no sixth.
                    let fifth = (four >> 16) as u16;
                    if five >> 16 != 0 || _mm512_mask_cmpgt_epu32_mask(fifth, low, _mm512_set1_epi32(15)) != 0 {
                        return Err(LONG);
                    }
                    gaps = take_in::<12>(gaps, low, before, fifth);
                }
            }
            Ok(Some(Ends { gaps, mask }))
        }
    }
}

/// In the lanes of `mask`, puts the byte `16 - SHIFT` before under the bits so far.
///
/// # Safety
/// AVX-512.
#[inline(always)]
unsafe fn take_in<const SHIFT: i32>(gaps: __m512i, low: __m512i, before: __m512i, mask: u16) -> __m512i {
    // SAFETY: the caller's.
    unsafe {
        let byte = _mm512_alignr_epi32::<SHIFT>(low, before);
        _mm512_mask_or_epi32(gaps, mask, _mm512_slli_epi32::<7>(gaps), byte)
    }
}

/// Gap `j` at position `j + 1`, and room for what a last store of 16 brings along. Position 0 is a step of nothing.
type Gaps = MaybeUninit<[u32; MAX_BLOCK + 16]>;

/// Every gap of the body into `to`.
///
/// # Safety
/// AVX-512.
#[inline(always)]
unsafe fn spread(body: &[u8], gaps: usize, to: &mut Gaps) -> Result<()> {
    let to = to.as_mut_ptr().cast::<u32>();
    let mut count = 0;
    // SAFETY: the caller's; `count` is at most 255 before each store of 16.
    unsafe {
        to.write(u32::MAX);
        let mut bytes = Bytes::new(body);
        while let Some(ends) = bytes.next()? {
            let together = _mm512_maskz_compress_epi32(ends.mask, ends.gaps);
            _mm512_storeu_si512(to.add(1 + count).cast(), together);
            count += ends.mask.count_ones() as usize;
            if count > gaps {
                return Err(LEFT_OVER);
            }
        }
    }
    if count == gaps { Ok(()) } else { Err(CUT) }
}

/// # Safety
/// AVX-512; a count of 1 to 256.
#[inline(always)]
unsafe fn decode_bytes(block: &Block<u32>, body: &[u8], out: &mut Buffer<u32>) -> Result<()> {
    let count = usize::from(block.count);
    if body.len() > 2 * count {
        // SAFETY: the caller's.
        if let Some(done) = unsafe { ends::decode(block, body, out) } {
            return done;
        }
    }
    let mut gaps = Gaps::uninit();
    let out = out.as_mut_ptr();
    // SAFETY: the caller's; `count` is at most 256 and the positions up to it have been written, those up to the next
    // multiple of 16 by the last store or zeroed here.
    unsafe {
        spread(body, count - 1, &mut gaps)?;
        let gaps = gaps.as_mut_ptr().cast::<u32>();
        _mm512_storeu_si512(gaps.add(count).cast(), _mm512_setzero_si512());
        let mut before = _mm512_set1_epi32(block.first as i32);
        for at in (0..count).step_by(16) {
            let (keys, last) = keys_of_gaps(_mm512_loadu_si512(gaps.add(at).cast()), before);
            _mm512_storeu_si512(out.add(at).cast(), keys);
            before = last;
        }
    }
    Ok(())
}

/// # Safety
/// AVX-512; a count of 1 to 256.
#[inline(always)]
unsafe fn sum_bytes(block: &Block<u32>, body: &[u8]) -> Result<u128> {
    let count = usize::from(block.count);
    let mut gaps = Gaps::uninit();
    // SAFETY: as for `decode_bytes`.
    unsafe {
        spread(body, count - 1, &mut gaps)?;
        let gaps = gaps.as_mut_ptr().cast::<u32>();
        _mm512_storeu_si512(gaps.add(count).cast(), _mm512_setzero_si512());
        let mut before = _mm512_set1_epi32(block.first as i32);
        let mut sums = _mm512_setzero_si512();
        for at in (0..count).step_by(16) {
            let (mut keys, last) = keys_of_gaps(_mm512_loadu_si512(gaps.add(at).cast()), before);
            before = last;
            if count - at < 16 {
                keys = _mm512_maskz_mov_epi32((1 << (count - at)) - 1, keys);
            }
            sums = _mm512_add_epi64(sums, sums_of_pairs(keys));
        }
        Ok(u128::from(_mm512_reduce_add_epi64(sums) as u64))
    }
}

/// # Safety
/// AVX-512.
#[inline(always)]
unsafe fn search_bytes(block: &Block<u32>, body: &[u8], sought: u32) -> Result<Found> {
    let (mut index, mut left) = (1, sought.wrapping_sub(block.first));
    // SAFETY: the caller's.
    unsafe {
        let mut bytes = Bytes::new(body);
        while let Some(Ends { gaps, mask }) = bytes.next()? {
            let steps = _mm512_maskz_add_epi32(mask, gaps, _mm512_set1_epi32(1));
            let sum = _mm512_reduce_add_epi32(steps) as u32;
            if sum < left {
                left -= sum;
                index += mask.count_ones() as usize;
                continue;
            }
            let sums = prefix_sums(steps);
            let target = _mm512_set1_epi32(left as i32);
            let below = _mm512_mask_cmplt_epu32_mask(mask, sums, target);
            let exact = _mm512_mask_cmpeq_epi32_mask(mask, sums, target) != 0;
            let index = index + below.count_ones() as usize;
            return if index < usize::from(block.count) { Ok(Found { index, exact }) } else { Err(ENDS_BELOW) };
        }
    }
    Err(ENDS_BELOW)
}

/// # Safety
/// AVX-512.
#[inline(always)]
unsafe fn select_bytes(block: &Block<u32>, body: &[u8], index: usize) -> Result<u32> {
    let (mut left, mut key) = (index as u32, block.first);
    // SAFETY: the caller's.
    unsafe {
        let mut bytes = Bytes::new(body);
        while let Some(Ends { gaps, mask }) = bytes.next()? {
            // Only the first `left` ends count.
            let mask = if mask.count_ones() > left { _pdep_u32((1 << left) - 1, mask.into()) as u16 } else { mask };
            let steps = _mm512_maskz_add_epi32(mask, gaps, _mm512_set1_epi32(1));
            key = key.wrapping_add(_mm512_reduce_add_epi32(steps) as u32);
            left -= mask.count_ones();
            if left == 0 {
                return Ok(key);
            }
        }
    }
    Err(CUT)
}

mod avx512 {
    use super::*;

    compiled_for! { Avx512,
        pub(super) unsafe fn decode(block: &Block<u32>, body: &[u8], out: &mut Buffer<u32>) -> Result<()> {
            // SAFETY: the caller's.
            unsafe { decode_bytes(block, body, out) }
        }

        pub(super) unsafe fn sum(block: &Block<u32>, body: &[u8]) -> Result<u128> {
            // SAFETY: the caller's.
            unsafe { sum_bytes(block, body) }
        }

        pub(super) unsafe fn search(block: &Block<u32>, body: &[u8], sought: u32) -> Result<Found> {
            // SAFETY: the caller's.
            unsafe { search_bytes(block, body, sought) }
        }

        pub(super) unsafe fn select(block: &Block<u32>, body: &[u8], index: usize) -> Result<u32> {
            // SAFETY: the caller's.
            unsafe { select_bytes(block, body, index) }
        }
    }
}

mod vbmi {
    use super::*;

    compiled_for! { Vbmi,
        pub(super) unsafe fn decode(block: &Block<u32>, body: &[u8], out: &mut Buffer<u32>) -> Option<Result<()>> {
            let mut sink = gather::Keys::new(block.first, out);
            // SAFETY: the caller's.
            unsafe { gather::feed(body, usize::from(block.count) - 1, block.first, &mut sink) }
        }

        pub(super) unsafe fn sum(block: &Block<u32>, body: &[u8]) -> Option<Result<u128>> {
            let mut sink = Sum::new(block.first);
            // SAFETY: the caller's.
            let fed = unsafe { gather::feed(body, usize::from(block.count) - 1, block.first, &mut sink) };
            fed.map(|fed| fed.map(|()| sink.total()))
        }
    }
}

/// Runs the kernel of a level, that of AVX-512 where another refuses; `None` below AVX-512.
macro_rules! at_level {
    ($level:expr, $name:ident ( $($arg:expr),* )) => {{
        if $level == Level::Vbmi {
            // SAFETY: the level is one that this machine has.
            let done = unsafe { vbmi::$name($($arg),*) };
            if done.is_some() {
                return done;
            }
        }
        // SAFETY: as above.
        ($level >= Level::Avx512).then(|| unsafe { avx512::$name($($arg),*) })
    }};
}

/// The functions that the codec calls; `None` below AVX-512.
pub(super) fn decode(level: Level, block: &Block<u32>, body: &[u8], out: &mut Buffer<u32>) -> Option<Result<()>> {
    assert!((1..=MAX_BLOCK).contains(&usize::from(block.count)));
    at_level!(level, decode(block, body, out))
}

/// Where `sought` belongs; above the first key. To be compiled inside a function of the level.
///
/// # Safety
/// The machine has the level, which is not below AVX-512.
#[inline(always)]
pub(super) unsafe fn search(level: Level, block: &Block<u32>, body: &[u8], sought: u32) -> Result<Found> {
    // SAFETY: the caller's.
    unsafe {
        match level {
            Level::Vbmi if body.len() == usize::from(block.count) - 1 => bytes::search::<false>(block, body, sought),
            _ => avx512::search(block, body, sought),
        }
    }
}

/// The key at `index`, at least 1.
pub(super) fn select(level: Level, block: &Block<u32>, body: &[u8], index: usize) -> Option<Result<u32>> {
    // SAFETY: the level is one that this machine has.
    (level >= Level::Avx512).then(|| unsafe { avx512::select(block, body, index) })
}

/// The sum of all keys.
pub(super) fn sum(level: Level, block: &Block<u32>, body: &[u8]) -> Option<Result<u128>> {
    assert!((1..=MAX_BLOCK).contains(&usize::from(block.count)));
    at_level!(level, sum(block, body))
}

//! The AVX-512 kernels of Masked VByte for `u32` keys, which process sixteen bytes at a time, however many gaps these
//! have; and the selection of a kernel by the level.
//!
//! The top bits of the bytes say where gaps end and how long they are. Every byte is moved to a lane of its own. The
//! lane of each gap's last byte is combined with the bytes before it, and a compress collects those lanes. The position
//! of the next sixteen bytes never depends on the content of these, which makes it fast.

mod ends;
mod gather;

use core::arch::x86_64::*;
use core::mem::MaybeUninit;

use crate::avx512::{keys_of_gaps, prefix_sums, sums_of_pairs};
use crate::error::{CUT, ENDS_BELOW, LEFT_OVER, LONG};
use crate::gaps::bytes;
use crate::gaps::sinks::Sum;
use crate::{Block, Buffer, Found, Level, MAX_BLOCK, Result};

/// The state between two chunks of bytes.
struct Bytes<'a> {
    body: &'a [u8],
    at: usize,
    /// The last chunk, one byte in each lane.
    before: __m512i,
    /// The top bits of the last chunk.
    more: u32,
}

/// The gaps that end in one chunk.
struct Ends {
    /// A gap in each lane of `mask`. The other lanes have no meaning.
    gaps: __m512i,
    mask: u16,
}

impl<'a> Bytes<'a> {
    /// # Safety
    /// The machine must have AVX-512.
    #[inline(always)]
    unsafe fn new(body: &'a [u8]) -> Bytes<'a> {
        // SAFETY: guaranteed by the caller.
        Bytes { body, at: 0, before: unsafe { _mm512_setzero_si512() }, more: 0 }
    }

    /// Reads the next 16 bytes, or the fewer bytes before the end. Returns `None` at the end.
    ///
    /// # Safety
    /// The machine must have AVX-512.
    #[allow(clippy::cast_possible_truncation)]
    #[inline(always)]
    unsafe fn next(&mut self) -> Result<Option<Ends>> {
        let left = self.body.len() - self.at;
        if left == 0 {
            return if self.more & 0x8000 == 0 { Ok(None) } else { Err(CUT) };
        }
        // SAFETY: guaranteed by the caller; the mask keeps the load inside the body.
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
            // The body ends within a gap. The mask would count the missing bytes as the end of the gap, so this is
            // checked here.
            if left < 16 && more >> (left - 1) & 1 == 1 {
                return Err(CUT);
            }
            let low = _mm512_cvtepu8_epi32(_mm_and_si128(bytes, _mm_set1_epi8(0x7F)));
            // Bit i of `one`, `two`, ...: whether byte i and the 1, 2, ... bytes before it belong to one gap.
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
                    // The fifth byte may have only four bits, and there is no sixth byte.
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

/// In the lanes of `mask`, shifts the gap up and adds the byte that is `16 - SHIFT` bytes earlier as its lowest bits.
///
/// # Safety
/// The machine must have AVX-512.
#[inline(always)]
unsafe fn take_in<const SHIFT: i32>(gaps: __m512i, low: __m512i, before: __m512i, mask: u16) -> __m512i {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let byte = _mm512_alignr_epi32::<SHIFT>(low, before);
        _mm512_mask_or_epi32(gaps, mask, _mm512_slli_epi32::<7>(gaps), byte)
    }
}

/// Gap `j` is at position `j + 1`. There is space for a last store of 16. Position 0 has the gap -1, a distance of
/// zero.
type Gaps = MaybeUninit<[u32; MAX_BLOCK + 16]>;

/// Writes all gaps of the body to `to`.
///
/// # Safety
/// The machine must have AVX-512.
#[inline(always)]
unsafe fn unpack(body: &[u8], gaps: usize, to: &mut Gaps) -> Result<()> {
    let to = to.as_mut_ptr().cast::<u32>();
    let mut count = 0;
    // SAFETY: guaranteed by the caller; `count` is at most 255 before each store of 16.
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
/// The machine must have AVX-512. The block has 1 to 256 keys.
#[inline(always)]
unsafe fn decode_bytes(block: &Block<u32>, body: &[u8], out: &mut Buffer<u32>) -> Result<()> {
    let count = usize::from(block.count);
    if body.len() > 2 * count {
        // SAFETY: guaranteed by the caller.
        if let Some(done) = unsafe { ends::decode(block, body, out) } {
            return done;
        }
    }
    let mut gaps = Gaps::uninit();
    let out = out.as_mut_ptr();
    // SAFETY: guaranteed by the caller; `count` is at most 256. The positions below it have been written, and the 16
    // from it on are set to zero here.
    unsafe {
        unpack(body, count - 1, &mut gaps)?;
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
/// The machine must have AVX-512. The block has 1 to 256 keys.
#[inline(always)]
unsafe fn sum_bytes(block: &Block<u32>, body: &[u8]) -> Result<u128> {
    let count = usize::from(block.count);
    let mut gaps = Gaps::uninit();
    // SAFETY: the same as for `decode_bytes`.
    unsafe {
        unpack(body, count - 1, &mut gaps)?;
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
/// The machine must have AVX-512.
#[inline(always)]
unsafe fn search_bytes(block: &Block<u32>, body: &[u8], sought: u32) -> Result<Found> {
    let (mut index, mut left) = (1, sought.wrapping_sub(block.first));
    // SAFETY: guaranteed by the caller.
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
/// The machine must have AVX-512.
#[allow(clippy::cast_possible_truncation)]
#[inline(always)]
unsafe fn select_bytes(block: &Block<u32>, body: &[u8], index: usize) -> Result<u32> {
    let (mut left, mut key) = (index as u32, block.first);
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut bytes = Bytes::new(body);
        while let Some(Ends { gaps, mask }) = bytes.next()? {
            // Only the first `left` gaps count.
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
            // SAFETY: guaranteed by the caller.
            unsafe { decode_bytes(block, body, out) }
        }

        pub(super) unsafe fn sum(block: &Block<u32>, body: &[u8]) -> Result<u128> {
            // SAFETY: guaranteed by the caller.
            unsafe { sum_bytes(block, body) }
        }

        pub(super) unsafe fn search(block: &Block<u32>, body: &[u8], sought: u32) -> Result<Found> {
            // SAFETY: guaranteed by the caller.
            unsafe { search_bytes(block, body, sought) }
        }

        pub(super) unsafe fn select(block: &Block<u32>, body: &[u8], index: usize) -> Result<u32> {
            // SAFETY: guaranteed by the caller.
            unsafe { select_bytes(block, body, index) }
        }
    }
}

mod vbmi {
    use super::*;

    compiled_for! { Vbmi,
        pub(super) unsafe fn decode(block: &Block<u32>, body: &[u8], out: &mut Buffer<u32>) -> Option<Result<()>> {
            let mut sink = gather::Keys::new(block.first, out);
            // SAFETY: guaranteed by the caller.
            let fed = unsafe { gather::feed(body, usize::from(block.count) - 1, block.first, &mut sink) };
            sink.finish();
            fed
        }

        pub(super) unsafe fn sum(block: &Block<u32>, body: &[u8]) -> Option<Result<u128>> {
            let mut sink = Sum::new(block.first);
            // SAFETY: guaranteed by the caller.
            let fed = unsafe { gather::feed(body, usize::from(block.count) - 1, block.first, &mut sink) };
            fed.map(|fed| fed.map(|()| sink.total()))
        }
    }
}

/// Runs the kernel of a level. If the kernel of VBMI refuses the block, the one of AVX-512 runs. `None` below AVX-512.
macro_rules! at_level {
    ($level:expr, $name:ident ( $($arg:expr),* )) => {{
        if $level == Level::Vbmi {
            // SAFETY: this machine has the level.
            let done = unsafe { vbmi::$name($($arg),*) };
            if done.is_some() {
                return done;
            }
        }
        // SAFETY: the same as above.
        ($level >= Level::Avx512).then(|| unsafe { avx512::$name($($arg),*) })
    }};
}

/// Decodes all keys. `None` below AVX-512.
pub(super) fn decode(level: Level, block: &Block<u32>, body: &[u8], out: &mut Buffer<u32>) -> Option<Result<()>> {
    assert!((1..=MAX_BLOCK).contains(&usize::from(block.count)));
    at_level!(level, decode(block, body, out))
}

/// Searches for `sought`, which is greater than the first key. The caller must be compiled for the level.
///
/// # Safety
/// The machine must have the level, which is AVX-512 or higher.
#[inline(always)]
pub(super) unsafe fn search(level: Level, block: &Block<u32>, body: &[u8], sought: u32) -> Result<Found> {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match level {
            Level::Vbmi if body.len() == usize::from(block.count) - 1 => bytes::search::<false>(block, body, sought),
            _ => avx512::search(block, body, sought),
        }
    }
}

/// The key at `index`, which is at least 1.
pub(super) fn select(level: Level, block: &Block<u32>, body: &[u8], index: usize) -> Option<Result<u32>> {
    // SAFETY: this machine has the level.
    (level >= Level::Avx512).then(|| unsafe { avx512::select(block, body, index) })
}

/// The sum of all keys.
pub(super) fn sum(level: Level, block: &Block<u32>, body: &[u8]) -> Option<Result<u128>> {
    assert!((1..=MAX_BLOCK).contains(&usize::from(block.count)));
    at_level!(level, sum(block, body))
}

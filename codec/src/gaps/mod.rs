//! The common part of the codecs that store gaps in whole bytes (VByte, VarInt-GB, StreamVByte): they iterate over the
//! keys, and change the gaps around one key in place.
//!
//! A gap is the distance of a key from the key before it, less one, because keys are strictly increasing. Gap `j` is
//! between key `j` and key `j + 1`. The formats define how a gap is written.

#[cfg(target_arch = "x86_64")]
mod bytes;
#[cfg(target_arch = "x86_64")]
mod masked;
#[cfg(target_arch = "x86_64")]
mod quads;
#[cfg(target_arch = "x86_64")]
mod sinks;

use crate::error::{ENDS_BELOW, LEFT_OVER, LONGER};
use crate::scheme::{Scheme, lengthened};
use crate::{Block, Buffer, Edit, Error, Found, Int, Level, Result};

/// The gaps between `values`, which must be increasing.
#[inline(always)]
pub(crate) fn gaps<T: Int>(values: &[T]) -> impl Iterator<Item = u64> + Clone {
    let later = values.get(1..).unwrap_or_default();
    values.iter().zip(later).map(|(a, b)| b.widen().wrapping_sub(a.widen()).wrapping_sub(1))
}

/// The position of a gap: its number, and a byte offset. The format defines the meaning of the offset.
#[derive(Clone, Copy)]
pub(crate) struct GapPosition {
    pub(crate) gap: usize,
    pub(crate) at: usize,
}

/// Reads gaps one after the other.
pub(crate) trait Walk {
    /// The position of the gap that `step` reads next.
    fn place(&self) -> GapPosition;
    /// Reads the next gap. Returns an error if the bytes end or are not a gap.
    fn step(&mut self) -> Result<u64>;
    /// True if every byte of the body has been read.
    fn at_end(&self) -> bool;
}

/// A format of gaps in whole bytes.
pub(crate) trait GapFormat<T: Int> {
    type Walk<'a>: Walk + Copy;

    /// An iterator over the `gaps` gaps of `body`.
    fn walk(body: &[u8], gaps: usize) -> Self::Walk<'_>;

    /// The position after the last of the `gaps` gaps in `bytes[..used]`.
    fn end(bytes: &[u8], used: usize, gaps: usize) -> Result<GapPosition>;

    /// The number of bytes of these `count` gaps.
    fn gaps_len(gaps: impl Iterator<Item = u64>, count: usize) -> usize;

    /// The number of bytes of `gap` after `gaps` others.
    fn append_len(gap: u64, gaps: usize) -> usize;

    /// Writes these `count` gaps to `out`, which has exactly their length.
    fn write_gaps(gaps: impl Iterator<Item = u64>, count: usize, out: &mut [u8]);

    /// Replaces the `removed` gaps from `place` on by `added`, in a block with `gaps` gaps in `bytes[..used]`. Returns
    /// the new number of bytes. Changes nothing if the result does not fit.
    fn splice(
        bytes: &mut [u8],
        used: usize,
        gaps: usize,
        place: GapPosition,
        removed: usize,
        added: &[u64],
    ) -> Result<usize>;

    /// Checks that `body`, which decodes to `keys`, has each gap in as few bytes as possible, and zeros where there is
    /// no gap.
    fn is_exact(body: &[u8], keys: &[T]) -> bool;

    /// The vector kernels for the format, if there are any.
    const KERNELS: Option<Kernels>;
}

/// The formats that have vector kernels.
#[derive(Clone, Copy)]
pub enum Kernels {
    /// Masked VByte.
    Masked,
    /// VarInt-GB.
    Grouped,
    /// StreamVByte.
    Streamed,
}

/// A search for a key.
type Search<T> = fn(&Block<T>, &[u8], T) -> Result<Found>;

/// The vector kernels of a key type. They return `None` if there is no kernel for this format or level.
pub trait GapKernels: Sized {
    /// Decodes all keys.
    fn gaps_decode(
        _: Kernels,
        _: Level,
        _block: &Block<Self>,
        _body: &[u8],
        _out: &mut Buffer<Self>,
    ) -> Option<Result<()>> {
        None
    }

    /// Searches for `key`, which is greater than the first key and not greater than the last one. Calls `walk` if there
    /// is no kernel. The call of `walk` or of the kernel is the last operation, so that no registers have to be saved
    /// for later.
    #[inline(always)]
    fn gaps_search(
        _: Kernels,
        _: Level,
        block: &Block<Self>,
        body: &[u8],
        key: Self,
        walk: Search<Self>,
    ) -> Result<Found> {
        walk(block, body, key)
    }

    /// The key at `index`, at least 1.
    fn gaps_select(_: Kernels, _: Level, _block: &Block<Self>, _body: &[u8], _index: usize) -> Option<Result<Self>> {
        None
    }

    /// The sum of all keys.
    fn gaps_sum(_: Kernels, _: Level, _block: &Block<Self>, _body: &[u8]) -> Option<Result<u128>> {
        None
    }
}

#[cfg(target_arch = "x86_64")]
impl GapKernels for u32 {
    fn gaps_decode(
        kernels: Kernels,
        level: Level,
        block: &Block<u32>,
        body: &[u8],
        out: &mut Buffer<u32>,
    ) -> Option<Result<()>> {
        match kernels {
            Kernels::Masked => masked::decode(level, block, body, out),
            Kernels::Grouped => quads::decode::<false>(level, block, body, out),
            Kernels::Streamed => quads::decode::<true>(level, block, body, out),
        }
    }

    #[inline(always)]
    fn gaps_search(
        kernels: Kernels,
        level: Level,
        block: &Block<u32>,
        body: &[u8],
        key: u32,
        walk: Search<u32>,
    ) -> Result<Found> {
        // SAFETY: a `Level` is always one that this machine has. The levels without a kernel are matched by another
        // arm.
        unsafe {
            match (kernels, level) {
                (Kernels::Masked, Level::Vbmi | Level::Avx512) => masked::search(level, block, body, key),
                (_, Level::Scalar) | (Kernels::Masked, _) => walk(block, body, key),
                (Kernels::Grouped, _) => quads::search::<false>(level, block, body, key),
                (Kernels::Streamed, _) => quads::search::<true>(level, block, body, key),
            }
        }
    }

    fn gaps_select(
        kernels: Kernels,
        level: Level,
        block: &Block<u32>,
        body: &[u8],
        index: usize,
    ) -> Option<Result<u32>> {
        match kernels {
            Kernels::Masked => masked::select(level, block, body, index),
            Kernels::Grouped => quads::select::<false>(level, block, body, index),
            Kernels::Streamed => quads::select::<true>(level, block, body, index),
        }
    }

    fn gaps_sum(kernels: Kernels, level: Level, block: &Block<u32>, body: &[u8]) -> Option<Result<u128>> {
        match kernels {
            Kernels::Masked => masked::sum(level, block, body),
            Kernels::Grouped => quads::sum::<false>(level, block, body),
            Kernels::Streamed => quads::sum::<true>(level, block, body),
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
impl GapKernels for u32 {}

impl GapKernels for u64 {}

/// The key after `key`, with `gap` between them.
#[inline(always)]
fn next(key: u64, gap: u64) -> u64 {
    key.wrapping_add(gap).wrapping_add(1)
}

/// `b - a - 1`, the gap between two keys.
#[inline(always)]
fn between(a: u64, b: u64) -> u64 {
    b.wrapping_sub(a).wrapping_sub(1)
}

fn set<T: Int>(block: &mut Block<T>, count: usize, used: usize) -> Result<()> {
    block.count = u16::try_from(count).map_err(|_| Error::Full)?;
    block.extent = u16::try_from(used).map_err(|_| Error::Full)?;
    Ok(())
}

#[inline(always)]
fn walk_of<'a, T: Int, F: GapFormat<T>>(block: &Block<T>, body: &'a [u8]) -> F::Walk<'a> {
    F::walk(body, usize::from(block.count) - 1)
}

/// Searches for `sought`, gap by gap.
#[inline]
fn walk_to<T: Int, F: GapFormat<T>>(block: &Block<T>, body: &[u8], sought: T) -> Result<Found> {
    let mut walk = walk_of::<T, F>(block, body);
    let (mut key, sought) = (block.first.widen(), sought.widen());
    for index in 1..usize::from(block.count) {
        key = next(key, walk.step()?);
        if key >= sought {
            return Ok(Found { index, exact: key == sought });
        }
    }
    Err(ENDS_BELOW)
}

/// The codec of a format.
pub(crate) struct Gapped<F>(core::marker::PhantomData<F>);

impl<T: Int, F: GapFormat<T>> Scheme<T> for Gapped<F> {
    fn size(block: &Block<T>) -> Result<usize> {
        Ok(usize::from(block.extent))
    }

    fn encoded_len(values: &[T]) -> usize {
        F::gaps_len(gaps(values), values.len().saturating_sub(1))
    }

    fn write(_: Level, values: &[T], out: &mut [u8]) -> u16 {
        F::write_gaps(gaps(values), values.len().saturating_sub(1), out);
        u16::try_from(out.len()).unwrap_or(u16::MAX)
    }

    #[inline]
    fn decode(level: Level, block: &Block<T>, body: &[u8], out: &mut Buffer<T>) -> Result<()> {
        if let Some(kernels) = F::KERNELS
            && let Some(done) = T::gaps_decode(kernels, level, block, body, out)
        {
            return done;
        }
        let mut walk = walk_of::<T, F>(block, body);
        let mut key = block.first.widen();
        let (first, rest) = out.split_first_mut().ok_or(Error::OutOfRange)?;
        *first = block.first;
        for to in rest.iter_mut().take(usize::from(block.count) - 1) {
            key = next(key, walk.step()?);
            *to = T::narrow(key);
        }
        if walk.at_end() { Ok(()) } else { Err(LEFT_OVER) }
    }

    #[inline]
    fn select(level: Level, block: &Block<T>, body: &[u8], index: usize) -> Result<T> {
        if let Some(kernels) = F::KERNELS
            && let Some(done) = T::gaps_select(kernels, level, block, body, index)
        {
            return done;
        }
        let mut walk = walk_of::<T, F>(block, body);
        let mut key = block.first.widen();
        for _ in 0..index {
            key = next(key, walk.step()?);
        }
        Ok(T::narrow(key))
    }

    #[inline(always)]
    fn lower_bound(level: Level, block: &Block<T>, body: &[u8], sought: T) -> Result<Found> {
        match F::KERNELS {
            Some(kernels) => T::gaps_search(kernels, level, block, body, sought, walk_to::<T, F>),
            None => walk_to::<T, F>(block, body, sought),
        }
    }

    #[inline]
    fn sum(level: Level, block: &Block<T>, body: &[u8]) -> Result<u128> {
        if let Some(kernels) = F::KERNELS
            && let Some(done) = T::gaps_sum(kernels, level, block, body)
        {
            return done;
        }
        let mut walk = walk_of::<T, F>(block, body);
        let mut key = block.first;
        let mut sum = u128::from(key.widen());
        for _ in 1..block.count {
            key = T::narrow(next(key.widen(), walk.step()?));
            sum += u128::from(key.widen());
        }
        if walk.at_end() { Ok(sum) } else { Err(LEFT_OVER) }
    }

    #[inline(always)]
    fn appended(block: &Block<T>, key: T) -> Block<T> {
        let gap = between(block.last.widen(), key.widen());
        lengthened(block, key, F::append_len(gap, usize::from(block.count) - 1))
    }

    fn append(block: &mut Block<T>, bytes: &mut [u8], key: T) -> Result<()> {
        let (count, used) = (usize::from(block.count), usize::from(block.extent));
        let place = F::end(bytes, used, count - 1)?;
        let used = F::splice(bytes, used, count - 1, place, 0, &[between(block.last.widen(), key.widen())])?;
        block.last = key;
        set(block, count + 1, used)
    }

    fn is_exact(_: &Block<T>, body: &[u8], keys: &[T]) -> Result<bool> {
        Ok(F::is_exact(body, keys))
    }

    fn insert(block: &mut Block<T>, bytes: &mut [u8], key: T) -> Result<Edit> {
        let (count, used) = (usize::from(block.count), usize::from(block.extent));
        let body = bytes.get(..used).ok_or(LONGER)?;
        let mut walk = walk_of::<T, F>(block, body);
        let (mut before, sought) = (block.first.widen(), key.widen());
        if sought <= before {
            if sought == before {
                return Ok(Edit::Unchanged(0));
            }
            let place = walk.place();
            let used = F::splice(bytes, used, count - 1, place, 0, &[between(sought, before)])?;
            block.first = key;
            set(block, count + 1, used)?;
            return Ok(Edit::Done(0));
        }
        for index in 1..count {
            let place = walk.place();
            let here = next(before, walk.step()?);
            if here >= sought {
                if here == sought {
                    return Ok(Edit::Unchanged(index));
                }
                let added = [between(before, sought), between(sought, here)];
                let used = F::splice(bytes, used, count - 1, place, 1, &added)?;
                set(block, count + 1, used)?;
                return Ok(Edit::Done(index));
            }
            before = here;
        }
        Err(ENDS_BELOW)
    }

    fn remove_at(block: &mut Block<T>, bytes: &mut [u8], index: usize) -> Result<()> {
        let (count, used) = (usize::from(block.count), usize::from(block.extent));
        let body = bytes.get(..used).ok_or(LONGER)?;
        let mut walk = walk_of::<T, F>(block, body);
        let mut before = block.first.widen();
        for _ in 1..index {
            before = next(before, walk.step()?);
        }
        let place = walk.place();
        let gap = walk.step()?;
        if index == 0 {
            let used = F::splice(bytes, used, count - 1, place, 1, &[])?;
            block.first = T::narrow(next(before, gap));
            return set(block, count - 1, used);
        }
        if index + 1 == count {
            let used = F::splice(bytes, used, count - 1, place, 1, &[])?;
            block.last = T::narrow(before);
            return set(block, count - 1, used);
        }
        let joined = T::narrow(next(gap, walk.step()?)).widen();
        let used = F::splice(bytes, used, count - 1, place, 2, &[joined])?;
        set(block, count - 1, used)
    }
}

//! The timed loops of `duramen-bench codecs`. Each returns operations a second. `measure.rs` decides which of them run
//! and uses the results.
//!
//! All loops get the codec from a variable whose value the compiler does not know, as in the engine. The references do
//! the same work on the plain keys: a copy of each array of 256, and `slice::partition_point` in it.

use std::hint::black_box;

use crate::clock::thread_seconds;
use duramen_codec::{Block, Buffer, Codec, Int, MAX_BLOCK};

use super::workload::{Blocks, Probe};

/// The minimum time of a measurement.
const MIN_SECONDS: f64 = 0.002;

/// Enough bytes for any block of a codec.
pub(super) const ROOM: usize = MAX_BLOCK * 10;

/// Operations a second of `work`, which does `ops` operations. It repeats `work` often enough for the minimum time,
/// which shorter trials determine, and reads the clock only before and after.
fn rate(ops: usize, mut work: impl FnMut()) -> f64 {
    let mut times = 1;
    loop {
        let start = thread_seconds();
        (0..times).for_each(|_| work());
        let seconds = thread_seconds() - start;
        if seconds >= MIN_SECONDS {
            return (ops * times) as f64 / seconds;
        }
        times *= 2;
    }
}

/// Copies every array of 256 keys.
pub(super) fn memcpy<T: Int>(keys: &[T]) -> f64 {
    let mut out: Buffer<T> = [T::default(); MAX_BLOCK];
    rate(keys.len(), || {
        for array in keys.chunks_exact(MAX_BLOCK) {
            out.copy_from_slice(black_box(array));
            black_box(&mut out);
        }
    })
}

/// Searches the array of 256 keys that each probe is in.
pub(super) fn partition<T: Int>(keys: &[T], probes: &[Probe<T>]) -> f64 {
    rate(probes.len(), || {
        for probe in probes {
            let array = &keys[probe.place / MAX_BLOCK * MAX_BLOCK..][..MAX_BLOCK];
            black_box(array.partition_point(|&key| key < probe.key));
        }
    })
}

pub(super) fn decode<T: Int>(codec: Codec, blocks: &Blocks<T>, n: usize) -> f64 {
    let mut out: Buffer<T> = [T::default(); MAX_BLOCK];
    rate(n, || {
        for (block, bytes) in blocks.iter() {
            black_box(codec.decode(block, bytes, &mut out).expect("a sound block").len());
            black_box(&mut out);
        }
    })
}

pub(super) fn sum<T: Int>(codec: Codec, blocks: &Blocks<T>, n: usize) -> f64 {
    rate(n, || {
        for (block, bytes) in blocks.iter() {
            black_box(codec.sum(block, bytes).expect("a sound block"));
        }
    })
}

/// The block of each place and the index in it are already known.
pub(super) fn select<T: Int>(codec: Codec, blocks: &Blocks<T>, places: &[(usize, usize)]) -> f64 {
    rate(places.len(), || {
        for &(block, index) in places {
            let (block, bytes) = blocks.get(block);
            black_box(codec.select(block, bytes, index).expect("inside"));
        }
    })
}

/// Searches the same 256 keys as `partition`. For a codec with two blocks for 256 keys, the choice of the block is
/// timed too.
pub(super) fn search<T: Int>(codec: Codec, blocks: &Blocks<T>, probes: &[Probe<T>]) -> f64 {
    rate(probes.len(), || {
        for probe in probes {
            let (block, bytes) = blocks.get(blocks.of(probe));
            black_box(codec.lower_bound(block, bytes, probe.key).expect("a sound block"));
        }
    })
}

/// A way of adding a key to a block.
pub(super) type Add<T> = fn(Codec, &mut Block<T>, &mut [u8], T);

/// Adds the keys to empty blocks, `blocks.size` keys to each.
pub(super) fn build<T: Int>(codec: Codec, blocks: &Blocks<T>, keys: &[T], add: Add<T>) -> f64 {
    let mut bytes = [0; ROOM];
    rate(keys.len(), || {
        for keys in keys.chunks_exact(blocks.size) {
            let mut block = Block::default();
            for &key in keys {
                add(codec, &mut block, &mut bytes, key);
            }
            black_box((&block, &mut bytes));
        }
    })
}

#[inline]
pub(super) fn insert<T: Int>(codec: Codec, block: &mut Block<T>, bytes: &mut [u8], key: T) {
    black_box(codec.insert(block, bytes, key).expect("there is room"));
}

/// Inserts a key by decoding the block, moving keys and encoding it again, even if the codec can insert in place.
pub(super) fn naive_insert<T: Int>(codec: Codec, block: &mut Block<T>, bytes: &mut [u8], key: T) {
    let mut out: Buffer<T> = [T::default(); MAX_BLOCK];
    let count = codec.decode(block, bytes, &mut out).expect("a sound block").len();
    let at = out[..count].partition_point(|&other| other < key);
    out.copy_within(at..count, at + 1);
    out[at] = key;
    *block = codec.encode(&out[..=count], bytes).expect("there is room");
}

#[inline]
pub(super) fn append<T: Int>(codec: Codec, block: &mut Block<T>, bytes: &mut [u8], key: T) {
    codec.append(block, bytes, key).expect("there is room");
}

//! The timed loops of `duramen-bench codecs`, and the medians of their rounds. Nothing is printed here.
//!
//! All loops take the codec from a variable that the compiler cannot see through, as the engine would. The references
//! are the same work on the plain keys: a copy of each array of 256, and `slice::partition_point` in it. Within a round
//! every loop of every codec runs once, the references in between, so that a slow moment meets all alike.

use std::hint::black_box;

use crate::clock::thread_seconds;
use crate::random::Random;
use crate::stats::median;
use duramen_codec::{Block, Buffer, Codec, Int, MAX_BLOCK};
use serde::Serialize;

use super::Args;
use super::workload::{Blocks, Probe, keys, probes, shuffled};

/// The figures of one codec at one bit width; `..._ns` are nanoseconds a key (of `select` and `search`: an operation).
#[derive(Serialize)]
pub(super) struct Row {
    pub(super) codec: &'static str,
    pub(super) bits: u32,
    pub(super) keys: usize,
    /// Bytes of the blocks, descriptors not counted.
    pub(super) bytes_per_key: f64,
    /// The keys' sum and count, as the blocks give them.
    pub(super) sum: u128,
    pub(super) count: usize,
    pub(super) decode_ns: f64,
    pub(super) sum_ns: f64,
    pub(super) select_ns: f64,
    pub(super) search_ns: f64,
    pub(super) insert_ns: f64,
    pub(super) naive_insert_ns: f64,
    pub(super) append_ns: f64,
    pub(super) bits_per_int: f64,
    pub(super) decode_gints: f64,
    pub(super) decode_to_memcpy: f64,
    pub(super) sum_gints: f64,
    pub(super) select_mops: f64,
    pub(super) select_to_partition: f64,
    pub(super) search_mops: f64,
    pub(super) search_to_partition: f64,
    pub(super) insert_mops: f64,
    pub(super) naive_insert_mops: f64,
    pub(super) append_mops: f64,
    pub(super) memcpy_gints: f64,
    pub(super) partition_mops: f64,
}

/// Probes of a round, and the least of it that is timed.
const PROBES: usize = 1 << 15;
const LEAST_SECONDS: f64 = 0.002;

/// Operations a second of `work`, which does `ops` of them; repeated until it is long enough to time.
fn rate(ops: usize, mut work: impl FnMut()) -> f64 {
    let (start, mut done) = (thread_seconds(), 0);
    loop {
        work();
        done += ops;
        let seconds = thread_seconds() - start;
        if seconds >= LEAST_SECONDS {
            return done as f64 / seconds;
        }
    }
}

fn memcpy<T: Int>(keys: &[T]) -> f64 {
    let mut out: Buffer<T> = [T::default(); MAX_BLOCK];
    rate(keys.len(), || {
        for array in keys.chunks_exact(MAX_BLOCK) {
            out.copy_from_slice(black_box(array));
            black_box(&mut out);
        }
    })
}

fn partition<T: Int>(keys: &[T], probes: &[Probe<T>]) -> f64 {
    rate(probes.len(), || {
        for probe in probes {
            let array = &keys[probe.place / MAX_BLOCK * MAX_BLOCK..][..MAX_BLOCK];
            black_box(array.partition_point(|&key| key < probe.key));
        }
    })
}

/// The block of a probe's place: with the place itself to select, with the key to search. Where a codec has two blocks
/// to an array of 256, the key decides between them, as a block index would.
fn block_of<T: Int>(blocks: &Blocks<T>, probe: &Probe<T>) -> usize {
    let first = probe.place / MAX_BLOCK * (MAX_BLOCK / blocks.size);
    let last = first + MAX_BLOCK / blocks.size - 1;
    (first..last).find(|&block| probe.key <= blocks.get(block).0.last).unwrap_or(last)
}

fn decode<T: Int>(codec: Codec, blocks: &Blocks<T>, n: usize) -> f64 {
    let mut out: Buffer<T> = [T::default(); MAX_BLOCK];
    rate(n, || {
        for (block, bytes) in blocks.iter() {
            black_box(codec.decode(block, bytes, &mut out).expect("a sound block").len());
            black_box(&mut out);
        }
    })
}

fn sum<T: Int>(codec: Codec, blocks: &Blocks<T>, n: usize) -> f64 {
    rate(n, || {
        for (block, bytes) in blocks.iter() {
            black_box(codec.sum(block, bytes).expect("a sound block"));
        }
    })
}

fn select<T: Int>(codec: Codec, blocks: &Blocks<T>, places: &[(usize, usize)]) -> f64 {
    rate(places.len(), || {
        for &(block, index) in places {
            let (block, bytes) = blocks.get(block);
            black_box(codec.select(block, bytes, index).expect("inside"));
        }
    })
}

fn search<T: Int>(codec: Codec, blocks: &Blocks<T>, probes: &[(usize, T)]) -> f64 {
    rate(probes.len(), || {
        for &(index, key) in probes {
            let (block, bytes) = blocks.get(index);
            black_box(codec.lower_bound(block, bytes, key).expect("a sound block"));
        }
    })
}

/// Bytes for any block of a codec.
const ROOM: usize = MAX_BLOCK * 10;

fn build<T: Int>(blocks: &Blocks<T>, keys: &[T], mut add: impl FnMut(&mut Block<T>, &mut [u8], T)) -> f64 {
    let mut bytes = [0; ROOM];
    rate(keys.len(), || {
        for keys in keys.chunks_exact(blocks.size) {
            let mut block = Block::default();
            for &key in keys {
                add(&mut block, &mut bytes, key);
            }
            black_box((&block, &mut bytes));
        }
    })
}

/// Insertion by decoding, moving up and encoding again, whatever the codec could do in place.
fn naive_insert<T: Int>(codec: Codec, block: &mut Block<T>, bytes: &mut [u8], key: T) {
    let mut out: Buffer<T> = [T::default(); MAX_BLOCK];
    let count = codec.decode(block, bytes, &mut out).expect("a sound block").len();
    let at = out[..count].partition_point(|&other| other < key);
    out.copy_within(at..count, at + 1);
    out[at] = key;
    *block = codec.encode(&out[..=count], bytes).expect("there is room");
}

/// One codec's rounds.
#[derive(Default)]
struct Rounds([Vec<f64>; 7]);

/// Measures every codec of `args` at one bit width.
pub(super) fn all<T: Int>(args: &Args, bits: u32) -> Vec<Row> {
    let mut random = Random::new(args.seed.wrapping_mul(1000).wrapping_add(bits.into()));
    let keys = keys::<T>(args.n, bits, &mut random);
    let probes = probes(&keys, PROBES, &mut random);
    // Insertion is slow: a part of the keys will do.
    let some = &keys[..keys.len().min(64 * MAX_BLOCK)];
    let blocks: Vec<_> = args.codecs.iter().map(|&codec| Blocks::new(codec, &keys)).collect();
    let orders = [MAX_BLOCK, MAX_BLOCK / 2].map(|size| shuffled(some, size, &mut random));
    let (mut copies, mut partitions) = (Vec::new(), Vec::new());
    let mut rounds: Vec<Rounds> = blocks.iter().map(|_| Rounds::default()).collect();
    for _ in 0..args.rounds {
        copies.push(memcpy(&keys));
        partitions.push(partition(&keys, &probes));
        for (blocks, Rounds(rounds)) in blocks.iter().zip(&mut rounds) {
            let codec = black_box(blocks.codec);
            let order = &orders[usize::from(blocks.size < MAX_BLOCK)];
            let sought: Vec<_> = probes.iter().map(|probe| (block_of(blocks, probe), probe.key)).collect();
            rounds[0].push(decode(codec, blocks, keys.len()));
            rounds[1].push(sum(codec, blocks, keys.len()));
            let size = blocks.size;
            let places: Vec<_> = probes.iter().map(|probe| (probe.place / size, probe.place % size)).collect();
            rounds[2].push(select(codec, blocks, &places));
            rounds[3].push(search(codec, blocks, &sought));
            rounds[4].push(build(blocks, order, |block, bytes, key| {
                black_box(codec.insert(block, bytes, key).expect("there is room"));
            }));
            rounds[5].push(build(blocks, order, |block, bytes, key| naive_insert(codec, block, bytes, key)));
            rounds[6].push(build(blocks, some, |block, bytes, key| {
                codec.append(block, bytes, key).expect("there is room");
            }));
        }
    }
    let (copy, partition) = (median(copies), median(partitions));
    let row = |(blocks, Rounds(rounds)): (&Blocks<T>, &mut Rounds)| {
        let [decode, sum, select, search, insert, naive, append] =
            rounds.each_mut().map(|rounds| median(std::mem::take(rounds)));
        Row {
            codec: blocks.codec.name(),
            bits,
            keys: keys.len(),
            bytes_per_key: blocks.bits_per_int() / 8.0,
            sum: blocks.sum(),
            count: blocks.count(),
            decode_ns: 1e9 / decode,
            sum_ns: 1e9 / sum,
            select_ns: 1e9 / select,
            search_ns: 1e9 / search,
            insert_ns: 1e9 / insert,
            naive_insert_ns: 1e9 / naive,
            append_ns: 1e9 / append,
            bits_per_int: blocks.bits_per_int(),
            decode_gints: decode / 1e9,
            decode_to_memcpy: decode / copy,
            sum_gints: sum / 1e9,
            select_mops: select / 1e6,
            select_to_partition: select / partition,
            search_mops: search / 1e6,
            search_to_partition: search / partition,
            insert_mops: insert / 1e6,
            naive_insert_mops: naive / 1e6,
            append_mops: append / 1e6,
            memcpy_gints: copy / 1e9,
            partition_mops: partition / 1e6,
        }
    };
    blocks.iter().zip(&mut rounds).map(row).collect()
}

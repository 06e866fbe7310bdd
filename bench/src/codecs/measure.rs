//! What `duramen-bench codecs` measures, and the medians of its rounds. Nothing is printed here.
//!
//! Within a round every loop of every codec runs once, the references beside each codec's, and a ratio is that of one
//! codec's median to that of the references beside it: a slow moment meets both.

use std::hint::black_box;

use crate::random::Random;
use crate::stats::median;
use duramen_codec::{Int, MAX_BLOCK};
use serde::Serialize;

use super::workload::{Blocks, Probe, keys, probes, shuffled};
use super::{Args, loops, verify};

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
    /// The references, timed beside this codec's loops.
    pub(super) memcpy_gints: f64,
    pub(super) partition_mops: f64,
}

/// Probes of a round.
const PROBES: usize = 1 << 15;

/// What one codec's loops take.
struct Work<'a, T> {
    blocks: Blocks<T>,
    keys: &'a [T],
    probes: &'a [Probe<T>],
    /// The block and the index in it of every probe's place.
    places: Vec<(usize, usize)>,
    /// The keys of builds in order. Insertion is slow: a part of all will do.
    some: &'a [T],
    /// The same, every block's in random order.
    shuffled: Vec<T>,
}

/// What the loops of one round give, in the order of `Work::round`.
type Rates = [f64; 9];

impl<T: Int> Work<'_, T> {
    fn round(&self) -> Rates {
        let (blocks, n) = (&self.blocks, self.keys.len());
        let codec = black_box(blocks.codec);
        [
            loops::memcpy(self.keys),
            loops::decode(codec, blocks, n),
            loops::sum(codec, blocks, n),
            loops::partition(self.keys, self.probes),
            loops::search(codec, blocks, self.probes),
            loops::select(codec, blocks, &self.places),
            loops::build(codec, blocks, &self.shuffled, loops::insert),
            loops::build(codec, blocks, &self.shuffled, loops::naive_insert),
            loops::build(codec, blocks, self.some, loops::append),
        ]
    }

    fn row(&self, bits: u32, rounds: &[Rates]) -> Row {
        let [memcpy, decode, sum, partition, search, select, insert, naive, append] = medians(rounds);
        let blocks = &self.blocks;
        Row {
            codec: blocks.codec.name(),
            bits,
            keys: self.keys.len(),
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
            decode_to_memcpy: decode / memcpy,
            sum_gints: sum / 1e9,
            select_mops: select / 1e6,
            select_to_partition: select / partition,
            search_mops: search / 1e6,
            search_to_partition: search / partition,
            insert_mops: insert / 1e6,
            naive_insert_mops: naive / 1e6,
            append_mops: append / 1e6,
            memcpy_gints: memcpy / 1e9,
            partition_mops: partition / 1e6,
        }
    }
}

fn medians(rounds: &[Rates]) -> Rates {
    std::array::from_fn(|i| median(rounds.iter().map(|rates| rates[i]).collect()))
}

/// Checks and measures every codec of `args` at one bit width. Errors: an operation that does not agree with the keys.
pub(super) fn all<T: Int>(args: &Args, bits: u32) -> crate::Result<Vec<Row>> {
    let mut random = Random::new(args.seed.wrapping_mul(1000).wrapping_add(bits.into()));
    let keys = keys::<T>(args.n, bits, &mut random);
    let probes = probes(&keys, PROBES, &mut random);
    let some = &keys[..keys.len().min(64 * MAX_BLOCK)];
    let orders = [MAX_BLOCK, MAX_BLOCK / 2].map(|size| shuffled(some, size, &mut random));
    let mut works = Vec::with_capacity(args.codecs.len());
    for &codec in &args.codecs {
        let blocks = Blocks::new(codec, &keys);
        let shuffled = orders[usize::from(blocks.size < MAX_BLOCK)].clone();
        verify::all(&blocks, &keys, &probes, &shuffled)?;
        let places = probes.iter().map(|probe| (probe.place / blocks.size, probe.place % blocks.size)).collect();
        works.push(Work { blocks, keys: &keys, probes: &probes, places, some, shuffled });
    }
    let mut rounds = vec![Vec::with_capacity(args.rounds); works.len()];
    for _ in 0..args.rounds {
        for (work, rounds) in works.iter().zip(&mut rounds) {
            rounds.push(work.round());
        }
    }
    Ok(works.iter().zip(&rounds).map(|(work, rounds)| work.row(bits, rounds)).collect())
}

//! The measurements of `duramen-bench codecs`, and the medians of its rounds. Nothing is printed here.
//!
//! In a round every loop of every codec runs once, and the references run beside each codec. A ratio divides the median
//! of a codec by the median of the references beside it, so a slow moment affects both.

use std::hint::black_box;

use crate::random::Random;
use crate::stats::median;
use duramen_codec::{Int, MAX_BLOCK};
use serde::Serialize;

use super::workload::{Blocks, Probe, keys, probes, shuffled};
use super::{Args, loops, verify};

/// The results of one codec at one bit width. `..._ns` are nanoseconds for each key, for `select` and `search` for each
/// operation.
#[derive(Serialize)]
pub(super) struct Row {
    pub(super) codec: &'static str,
    pub(super) bits: u32,
    pub(super) keys: usize,
    /// Bytes of the blocks, without descriptors.
    pub(super) bytes_per_key: f64,
    /// The sum and the number of keys, from the blocks.
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
    /// The references, timed beside the loops of this codec.
    pub(super) memcpy_gints: f64,
    pub(super) partition_mops: f64,
}

/// The number of probes of a round.
const PROBES: usize = 1 << 15;

/// The input of the loops of one codec.
struct Work<'a, T> {
    blocks: Blocks<T>,
    keys: &'a [T],
    probes: &'a [Probe<T>],
    /// The block and the index in it of the place of every probe.
    places: Vec<(usize, usize)>,
    /// The keys of builds in order. Because insertion is slow, these are only some of the keys.
    some: &'a [T],
    /// The same keys, those of each block in random order.
    shuffled: Vec<T>,
}

/// The results of the loops of one round, in the order of `Work::round`.
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

/// Checks and measures every codec of `args` at one bit width. An error if an operation returns a wrong result.
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

//! Runs the operations that `loops.rs` times, without a clock, and compares every result with the plain keys, so that
//! no figure is that of a wrong answer.

use duramen_codec::{Block, Buffer, Codec, Int, MAX_BLOCK};

use super::loops::{self, Add, ROOM};
use super::workload::{Blocks, Probe};

/// Checks decoding, sums, selects and searches of `blocks`, which contain `keys`, and builds of the first keys: by
/// inserts from `shuffled`, and by appends in order.
pub(super) fn all<T: Int>(blocks: &Blocks<T>, keys: &[T], probes: &[Probe<T>], shuffled: &[T]) -> crate::Result<()> {
    whole_blocks(blocks, keys)?;
    places(blocks, keys, probes)?;
    let some = &keys[..shuffled.len()];
    builds(blocks, some, shuffled, loops::insert)?;
    builds(blocks, some, shuffled, loops::naive_insert)?;
    builds(blocks, some, some, loops::append)
}

fn same<V: PartialEq + std::fmt::Debug>(codec: Codec, what: &str, got: V, wanted: V) -> crate::Result<()> {
    if got == wanted { Ok(()) } else { Err(format!("{codec}: {what} gives {got:?}, not {wanted:?}").into()) }
}

fn whole_blocks<T: Int>(blocks: &Blocks<T>, keys: &[T]) -> crate::Result<()> {
    let mut out: Buffer<T> = [T::default(); MAX_BLOCK];
    let mut seen = 0;
    for ((block, bytes), keys) in blocks.iter().zip(keys.chunks_exact(blocks.size)) {
        same(blocks.codec, "decode", &*blocks.codec.decode(block, bytes, &mut out)?, keys)?;
        let sum = keys.iter().map(|key| u128::from(key.widen())).sum();
        same(blocks.codec, "sum", blocks.codec.sum(block, bytes)?, sum)?;
        seen += keys.len();
    }
    same(blocks.codec, "the number of keys", seen, keys.len())
}

fn places<T: Int>(blocks: &Blocks<T>, keys: &[T], probes: &[Probe<T>]) -> crate::Result<()> {
    let (codec, size) = (blocks.codec, blocks.size);
    for probe in probes {
        let (block, bytes) = blocks.get(probe.place / size);
        same(codec, "select", codec.select(block, bytes, probe.place % size)?, keys[probe.place])?;
        let start = probe.place / MAX_BLOCK * MAX_BLOCK;
        let array = &keys[start..][..MAX_BLOCK];
        let index = array.partition_point(|&key| key < probe.key);
        let at = blocks.of(probe);
        let (block, bytes) = blocks.get(at);
        let found = codec.lower_bound(block, bytes, probe.key)?;
        let wanted = (start + index, array.get(index) == Some(&probe.key));
        same(codec, "lower_bound", (at * size + found.index, found.exact), wanted)?;
    }
    Ok(())
}

fn builds<T: Int>(blocks: &Blocks<T>, keys: &[T], order: &[T], add: Add<T>) -> crate::Result<()> {
    let (mut bytes, mut out) = ([0; ROOM], [T::default(); MAX_BLOCK]);
    for (keys, order) in keys.chunks_exact(blocks.size).zip(order.chunks_exact(blocks.size)) {
        let mut block = Block::default();
        order.iter().for_each(|&key| add(blocks.codec, &mut block, &mut bytes, key));
        same(blocks.codec, "a build", &*blocks.codec.decode(&block, &bytes, &mut out)?, keys)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codecs::workload::{keys, probes, shuffled};
    use crate::random::Random;

    #[test]
    fn blocks_of_other_keys_are_refused() {
        let mut random = Random::new(5);
        let keys = keys::<u32>(512, 8, &mut random);
        let probes = probes(&keys, 100, &mut random);
        let mut others = keys.clone();
        others[300] += u32::from(others[301] > others[300] + 1);
        others[299] -= u32::from(others == keys && others[298] < others[299] - 1);
        assert_ne!(keys, others);
        for codec in Codec::ALL {
            let blocks = Blocks::new(codec, &keys);
            let order = shuffled(&keys, blocks.size, &mut random);
            all(&blocks, &keys, &probes, &order).expect("the same keys");
            assert!(all(&blocks, &others, &probes, &order).is_err(), "{codec}");
        }
    }
}

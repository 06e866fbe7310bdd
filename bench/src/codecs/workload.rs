//! The keys, blocks and probes of `duramen-bench codecs`. Nothing is timed here.

use crate::random::Random;
use duramen_codec::{Block, Codec, Int, MAX_BLOCK};

/// Arrays of 256 keys with gaps uniform in `[0, 2^bits)`, one after the other.
pub(super) fn keys<T: Int>(n: usize, bits: u32, random: &mut Random) -> Vec<T> {
    let mut keys = Vec::with_capacity(n);
    for _ in 0..n / MAX_BLOCK {
        let mut key = random.next() >> (64 - bits);
        for _ in 0..MAX_BLOCK {
            keys.push(T::narrow(key));
            key += (random.next() >> (64 - bits)) + 1;
        }
    }
    keys
}

/// The blocks of one codec that contain the keys. Their bytes are consecutive.
pub(super) struct Blocks<T> {
    pub(super) codec: Codec,
    /// The number of keys of a block: 256 or 128.
    pub(super) size: usize,
    entries: Vec<(Block<T>, usize)>,
    bytes: Vec<u8>,
}

impl<T: Int> Blocks<T> {
    pub(super) fn new(codec: Codec, keys: &[T]) -> Blocks<T> {
        let size = codec.max_count();
        let mut blocks = Blocks { codec, size, entries: Vec::new(), bytes: Vec::new() };
        for keys in keys.chunks_exact(size) {
            let at = blocks.bytes.len();
            blocks.bytes.resize(at + codec.encoded_len(keys), 0);
            let block = codec.encode(keys, &mut blocks.bytes[at..]).expect("room for exactly this block");
            blocks.entries.push((block, at));
        }
        blocks
    }

    /// Bits for each key in the blocks, without descriptors.
    pub(super) fn bits_per_int(&self) -> f64 {
        self.bytes.len() as f64 * 8.0 / (self.entries.len() * self.size) as f64
    }

    /// The sum of all keys, block by block.
    pub(super) fn sum(&self) -> u128 {
        self.iter().map(|(block, bytes)| self.codec.sum(block, bytes).expect("a sound block")).sum()
    }

    /// The number of keys in the blocks.
    pub(super) fn count(&self) -> usize {
        self.entries.iter().map(|(block, _)| usize::from(block.count)).sum()
    }

    /// The block of the key of a probe. If a codec has two blocks for an array of 256, the key decides between them, as
    /// in a block index.
    #[inline(always)]
    pub(super) fn of(&self, probe: &Probe<T>) -> usize {
        let array = probe.place / MAX_BLOCK;
        if self.size == MAX_BLOCK {
            return array;
        }
        2 * array + usize::from(probe.key > self.entries[2 * array].0.last)
    }

    /// A block and the bytes from its first one on.
    #[inline(always)]
    pub(super) fn get(&self, index: usize) -> (&Block<T>, &[u8]) {
        let (block, at) = &self.entries[index];
        (block, &self.bytes[*at..])
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Block<T>, &[u8])> {
        self.entries.iter().map(|(block, at)| (block, &self.bytes[*at..]))
    }
}

/// A random place in the keys, and a random key within the range of its array of 256.
#[derive(Clone, Copy)]
pub(super) struct Probe<T> {
    pub(super) place: usize,
    pub(super) key: T,
}

pub(super) fn probes<T: Int>(keys: &[T], count: usize, random: &mut Random) -> Vec<Probe<T>> {
    let probe = |_| {
        let place = random.below(keys.len());
        let array = &keys[place / MAX_BLOCK * MAX_BLOCK..][..MAX_BLOCK];
        let (first, last) = (array[0].widen(), array[MAX_BLOCK - 1].widen());
        let key = first + random.next() % (last - first + 1);
        Probe { place, key: T::narrow(key) }
    };
    (0..count).map(probe).collect()
}

/// The keys, each group of `size` keys in random order.
pub(super) fn shuffled<T: Int>(keys: &[T], size: usize, random: &mut Random) -> Vec<T> {
    let mut keys = keys.to_vec();
    keys.chunks_exact_mut(size).for_each(|block| random.shuffle(block));
    keys
}

//! An array that grows without moving its elements: its chunks double in size, and each is allocated at the first
//! access to one of its elements. Reading takes no lock. The array never shrinks.

use std::sync::OnceLock;

const FIRST_BITS: u32 = 10;
/// Chunk k has `1024 << k` elements; together they hold every 32-bit index.
const CHUNKS: usize = 33 - FIRST_BITS as usize;

/// The array.
pub(super) struct GrowableArray<T> {
    chunks: [OnceLock<Box<[T]>>; CHUNKS],
    make: fn(usize) -> Box<[T]>,
}

#[inline(always)]
#[allow(clippy::cast_possible_truncation)] // below 2^33, and usize has 64 bits wherever it can matter
fn locate(index: u32) -> (usize, usize) {
    let at = u64::from(index) + (1 << FIRST_BITS);
    let bits = at.ilog2();
    ((bits - FIRST_BITS) as usize, (at ^ (1 << bits)) as usize)
}

impl<T> GrowableArray<T> {
    /// An empty array; `make` makes a chunk of the given number of elements.
    pub(super) fn new(make: fn(usize) -> Box<[T]>) -> GrowableArray<T> {
        GrowableArray { chunks: [const { OnceLock::new() }; CHUNKS], make }
    }

    /// The element at `index`, if its chunk has been made.
    #[inline(always)]
    pub(super) fn get(&self, index: u32) -> Option<&T> {
        let (chunk, at) = locate(index);
        self.chunks.get(chunk)?.get()?.get(at)
    }

    /// The element at `index`, whose chunk is made if need be.
    pub(super) fn grow(&self, index: u32) -> Option<&T> {
        let (chunk, at) = locate(index);
        self.chunks.get(chunk)?.get_or_init(|| (self.make)(1 << (chunk + FIRST_BITS as usize))).get(at)
    }

    /// Bytes that its chunks take.
    pub(super) fn bytes(&self) -> usize {
        self.chunks.iter().filter_map(OnceLock::get).map(|chunk| size_of_val::<[T]>(chunk)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn chunks_follow_one_another_without_gap_or_overlap() {
        let mut expected = (0, 0);
        for index in 0..1 << 16 {
            assert_eq!(locate(index), expected);
            expected.1 += 1;
            if expected.1 == 1 << (expected.0 + FIRST_BITS as usize) {
                expected = (expected.0 + 1, 0);
            }
        }
    }

    #[test]
    fn elements_stay_where_they_are() {
        let array: GrowableArray<u8> = GrowableArray::new(|len| vec![7; len].into_boxed_slice());
        assert!(array.get(5000).is_none());
        let before = array.grow(5000).map(std::ptr::from_ref);
        assert!(array.get(0).is_none(), "only the chunk asked for");
        array.grow(1 << 20);
        assert_eq!(array.get(5000).map(std::ptr::from_ref), before);
        assert_eq!(array.get(5000), Some(&7));
    }

    proptest! {
        #[test]
        fn every_index_has_a_chunk(index: u32) {
            let (chunk, at) = locate(index);
            prop_assert!(chunk < CHUNKS && at < 1 << (chunk + FIRST_BITS as usize));
        }
    }
}

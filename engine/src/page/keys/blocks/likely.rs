//! Predicts where a key's bytes are in a leaf of blocks without records, without reading the leaf, so that they can be
//! prefetched. If the prediction is wrong, a search waits as it would without it, and a few lines were prefetched in
//! vain.

use super::index::is_packed;
use super::rule::BlockRule;
use crate::base::limits::PAGE_HEADER;
use std::ops::Range;

/// The bytes of the header, of two fences of 4 bytes and of the field with the number of blocks.
const FRONT: usize = PAGE_HEADER + 10;

/// Returns the range of the front and the index of a full page of 4-byte keys, and the range of the bytes around a key.
/// `part` returns how far the key is from the page's first key to its last, in 65536ths. Returns `None` if the lengths
/// of blocks differ much, or if a search does not read a block line by line.
#[inline(always)]
pub(super) fn parts(
    rule: BlockRule,
    page_size: usize,
    part: impl FnOnce() -> Option<usize>,
) -> Option<[Range<usize>; 2]> {
    let codec = rule.codec();
    if !codec.reads_keys_alone() {
        return None;
    }
    // `one_in`: an entry of the index takes 12 bytes for a block of 1,032 or 520 bytes, and 13 bytes for a block of
    // about 310 or 160 bytes. `reach`: how far from the predicted place the bytes of a key may be. In an experiment
    // with 4,000 random keys each key was within 64 keys of its predicted place, mostly within 32.
    let (one_in, reach) = if is_packed(codec) {
        // Keys of about 9 bits, and one line for the rows that a field spans.
        (24, 64 * 9 / 8 + 64)
    } else {
        (86, 40 * 4)
    };
    // The blocks begin after the index, and the keys are spread evenly over them.
    let index = FRONT + page_size / if rule.is_short() { one_in / 2 } else { one_in };
    let at = index + ((part()?.min(1 << 16) * page_size.saturating_sub(index)) >> 16);
    Some([0..index, at.saturating_sub(reach)..at + reach])
}

#[cfg(test)]
mod tests {
    use super::*;
    use duramen_codec::Codec;

    #[test]
    fn keys_lie_evenly_behind_the_index() {
        let parts = |part| parts(BlockRule::long(Codec::Plain), 16384, || Some(part)).unwrap();
        let ([front, first], [_, last]) = (parts(0), parts(1 << 16));
        assert!(front.start == 0 && (FRONT + 12 * 15..FRONT + 12 * 16).contains(&front.end));
        assert!(first.contains(&front.end) && last.contains(&16383));
        assert!(super::parts(BlockRule::long(Codec::Bp128), 16384, || Some(0)).is_none());
    }
}

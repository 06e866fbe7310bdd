//! Where in a leaf of blocks without records a key's bytes most likely are, told without a look at the leaf: for asking for them
//! early. A guess and nothing else: where it is wrong a search waits as without it, and has asked for some lines in vain.

use super::rule::BlockRule;
use crate::base::limits::PAGE_HEADER;
use duramen_codec::Codec;
use std::ops::Range;

/// Bytes of the header, of two fences of 4 bytes and of the field that counts the blocks.
const FRONT: usize = PAGE_HEADER + 10;

/// The front of a full page of 4-byte keys with its index, and the bytes around a key that is so many 65536ths of the way
/// from the page's first to its last, as `part` says. `None` where blocks are not about as long as each other, or are not looked into one line
/// after the other.
#[inline(always)]
pub(super) fn parts(
    rule: BlockRule,
    page_size: usize,
    part: impl FnOnce() -> Option<usize>,
) -> Option<[Range<usize>; 2]> {
    // Of the bytes that a block takes its entry in the index has 12 of 1,032 or 520, or 13 of about 310 or 160. And how far from
    // where it would be a key's bytes have to be looked for.
    let (one_in, reach) = match rule.codec() {
        // Of 4,000 keys drawn at random each is within 64 of its place, mostly within 32.
        Codec::Plain => (86, 40 * 4),
        // As far in keys, of about 9 bits, and a line for the rows that a field lies across.
        Codec::For | Codec::SimdFor => (24, 64 * 9 / 8 + 64),
        Codec::VByte | Codec::MaskedVByte | Codec::VarIntGb | Codec::StreamVByte | Codec::Bp128 => return None,
    };
    // Keys lie evenly behind the index.
    let index = FRONT + page_size / if rule.is_short() { one_in / 2 } else { one_in };
    let at = index + ((part()?.min(1 << 16) * page_size.saturating_sub(index)) >> 16);
    Some([0..index, at.saturating_sub(reach)..at + reach])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_lie_evenly_behind_the_index() {
        let parts = |part| parts(BlockRule::long(Codec::Plain), 16384, || Some(part)).unwrap();
        let ([front, first], [_, last]) = (parts(0), parts(1 << 16));
        assert!(front.start == 0 && (FRONT + 12 * 15..FRONT + 12 * 16).contains(&front.end));
        assert!(first.contains(&front.end) && last.contains(&16383));
        assert!(super::parts(BlockRule::long(Codec::Bp128), 16384, || Some(0)).is_none());
    }
}

//! Where in a leaf of blocks without records a key's bytes most likely are, told without a look at the leaf: for asking for them
//! early. A guess and nothing else: where it is wrong a search waits as without it, and has asked for some lines in vain.

use super::rule::BlockRule;
use duramen_codec::Codec;
use std::ops::Range;

/// Bytes of the header, of two fences of 4 bytes and of the field that counts the blocks.
const FRONT: usize = 46;

/// How the blocks of a full page of 4-byte keys lie in it: evenly behind their index.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spread {
    page_size: usize,
    /// Bytes up to the first block.
    index: usize,
    /// How far from where it would be a key's bytes have to be looked for.
    reach: usize,
}

impl Spread {
    /// That of a codec whose blocks are about as long as each other and are looked into one line after the other; `None` for
    /// others.
    #[inline(always)]
    pub(crate) fn of(rule: BlockRule, page_size: usize) -> Option<Spread> {
        // Of the bytes that a block takes its entry in the index has 12 of 1,032 or 520, or 13 of about 310 or 160.
        let one_in = |long, short| page_size / if rule.is_short() { short } else { long };
        match rule.codec() {
            // Of 4,000 keys drawn at random each is within 64 of its place, mostly within 32.
            Codec::Plain => Some(Spread { page_size, index: FRONT + one_in(86, 43), reach: 40 * 4 }),
            // As far in keys, of about 9 bits, and a line for the rows that a field lies across.
            Codec::For | Codec::SimdFor => {
                Some(Spread { page_size, index: FRONT + one_in(24, 12), reach: 64 * 9 / 8 + 64 })
            }
            _ => None,
        }
    }

    /// The front of the page with its index, and the bytes around a key that is so many 65536ths of the way from the page's first
    /// to its last.
    #[inline(always)]
    pub(crate) fn parts(self, part: usize) -> [Range<usize>; 2] {
        let at = self.index + ((part.min(1 << 16) * self.page_size.saturating_sub(self.index)) >> 16);
        [0..self.index, at.saturating_sub(self.reach)..at + self.reach]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_lie_evenly_behind_the_index() {
        let parts =
            |part| Spread::of(BlockRule::long(Codec::Plain), 16384).map_or([0..0, 0..0], |spread| spread.parts(part));
        let ([front, first], [_, last]) = (parts(0), parts(1 << 16));
        assert!(front.start == 0 && (46 + 12 * 15..46 + 12 * 16).contains(&front.end));
        assert!(first.contains(&front.end) && last.contains(&16383));
        assert!(Spread::of(BlockRule::long(Codec::Bp128), 16384).is_none());
    }
}

//! The rule for the blocks of a list: their codec, and the most keys of a block.

use crate::page::keys::table::Parameter;
use duramen_codec::{Codec, MAX_BLOCK};

/// The codec of a list's blocks and the most keys of a block: the codec's greatest number, or half of [`MAX_BLOCK`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockRule {
    codec: Codec,
    short: bool,
}

impl BlockRule {
    /// The codec of blocks if no other is requested: among the codecs that are smaller than plain keys, the one with
    /// the quickest random inserts, lookups and sums.
    pub const DEFAULT_CODEC: Codec = Codec::SimdFor;

    /// The most keys of a short block.
    pub const SHORT: usize = MAX_BLOCK / 2;

    /// Returns the rule for blocks of the codec's greatest length.
    pub const fn long(codec: Codec) -> BlockRule {
        BlockRule { codec, short: false }
    }

    /// Returns the rule for blocks of up to [`BlockRule::SHORT`] keys; `None` if the codec's blocks cannot be longer.
    pub const fn short(codec: Codec) -> Option<BlockRule> {
        if codec.max_count() > BlockRule::SHORT { Some(BlockRule { codec, short: true }) } else { None }
    }

    /// The long blocks of every codec, and the short ones of the codecs that allow longer ones, each with its bytes in
    /// a tag.
    #[allow(clippy::indexing_slicing)] // evaluated by the compiler, which rejects an index out of bounds
    const ALL: [(BlockRule, [u8; 2]); 2 * Codec::ALL.len() - 1] = {
        let mut all = [(BlockRule::long(Codec::Plain), [0; 2]); 2 * Codec::ALL.len() - 1];
        let (mut codec, mut next) = (0, 0);
        while codec < Codec::ALL.len() {
            let long = BlockRule::long(Codec::ALL[codec]);
            all[next] = (long, long.bytes_in_tag());
            next += 1;
            if let Some(short) = BlockRule::short(Codec::ALL[codec]) {
                all[next] = (short, short.bytes_in_tag());
                next += 1;
            }
            codec += 1;
        }
        assert!(next == all.len());
        all
    };

    const fn bytes_in_tag(self) -> [u8; 2] {
        let short = if self.short { SHORT } else { 0 };
        match self.codec {
            Codec::MaskedVByte => [Codec::VByte as u8, short | MASKED],
            codec => [codec as u8, short],
        }
    }

    /// Returns the codec.
    #[inline(always)]
    pub const fn codec(self) -> Codec {
        self.codec
    }

    /// Returns true if blocks are shorter than the codec allows.
    #[inline(always)]
    pub const fn is_short(self) -> bool {
        self.short
    }

    /// Returns the most keys of a block.
    #[inline(always)]
    pub const fn most(self) -> usize {
        if self.short { BlockRule::SHORT } else { self.codec.max_count() }
    }
}

/// A bit of the variant in a tag: the blocks are short.
const SHORT: u8 = 1;
/// A bit of the variant in a tag: the vector kernels of Masked VByte read the blocks.
const MASKED: u8 = 2;

impl Parameter for BlockRule {
    const ALL: &'static [(BlockRule, [u8; 2])] = &BlockRule::ALL;

    fn bytes(self) -> [u8; 2] {
        self.bytes_in_tag()
    }

    #[inline(always)]
    fn of([codec, variant]: [u8; 2]) -> Option<BlockRule> {
        let codec = match (Codec::from_tag(codec)?, variant & MASKED != 0) {
            (Codec::VByte, true) => Codec::MaskedVByte,
            (Codec::MaskedVByte, _) | (_, true) => return None,
            (codec, false) => codec,
        };
        let rule = if variant & SHORT != 0 { BlockRule::short(codec) } else { Some(BlockRule::long(codec)) };
        rule.filter(|_| variant & !(SHORT | MASKED) == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_as_long_as_the_codec_takes_or_short() {
        assert_eq!((BlockRule::long(Codec::For).most(), BlockRule::long(Codec::Bp128).most()), (256, 128));
        assert_eq!(BlockRule::short(Codec::For).map(BlockRule::most), Some(128));
        assert_eq!(BlockRule::short(Codec::Bp128), None);
    }
}

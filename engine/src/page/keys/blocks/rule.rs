//! How the blocks of a list are made: their codec, and how many keys one may come to. What a codec does with them must never
//! be known here.

use duramen_codec::{Codec, MAX_BLOCK};

/// The codec of a list's blocks and the most keys of one: as many as the codec takes, or half of [`MAX_BLOCK`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockRule {
    codec: Codec,
    short: bool,
}

impl BlockRule {
    /// Keys of a short block.
    pub const SHORT: usize = MAX_BLOCK / 2;

    /// Blocks as long as the codec takes them.
    pub const fn long(codec: Codec) -> BlockRule {
        BlockRule { codec, short: false }
    }

    /// Blocks of up to [`BlockRule::SHORT`] keys; `None` where the codec takes no longer ones anyway.
    pub const fn short(codec: Codec) -> Option<BlockRule> {
        if codec.max_count() > BlockRule::SHORT { Some(BlockRule { codec, short: true }) } else { None }
    }

    /// The codec.
    #[inline(always)]
    pub const fn codec(self) -> Codec {
        self.codec
    }

    /// True where blocks are shorter than the codec takes them.
    #[inline(always)]
    pub const fn is_short(self) -> bool {
        self.short
    }

    /// The most keys of a block.
    #[inline(always)]
    pub const fn most(self) -> usize {
        if self.short { BlockRule::SHORT } else { self.codec.max_count() }
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

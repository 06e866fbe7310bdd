//! The layouts of a run: the codecs of blocks, and the key lists of whole keys for comparison.

use clap::ValueEnum;
use duramen::TableOptions;
use duramen::db::types::KeyLayout;
use duramen_codec::Codec;
use std::fmt;
use std::str::FromStr;

/// The maximum number of keys of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BlockSize {
    /// 128.
    #[value(name = "128")]
    Keys128,
    /// 256, or the maximum of the codec.
    #[value(name = "256")]
    Keys256,
}

impl BlockSize {
    const SHORT: usize = 128;
}

/// The layout of the keys of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// In the longest blocks of this codec.
    Blocks(Codec),
    /// In blocks of up to 128 keys, for a codec with longer blocks.
    ShortBlocks(Codec),
    /// Whole keys.
    Keys(KeyLayout),
}

impl Layout {
    /// Every codec.
    pub fn codecs() -> [Layout; 8] {
        Codec::ALL.map(Layout::Blocks)
    }

    /// The maximum number of keys of a block; 0 for whole keys.
    pub(super) fn block(self) -> usize {
        match self {
            Layout::Blocks(codec) => codec.max_count(),
            Layout::ShortBlocks(_) => BlockSize::SHORT,
            Layout::Keys(_) => 0,
        }
    }

    /// This layout in blocks of each of these sizes, without repetition.
    pub(super) fn in_blocks_of(self, sizes: &[BlockSize]) -> Vec<Layout> {
        let mut layouts: Vec<Layout> = sizes
            .iter()
            .map(|size| match (self, size) {
                (Layout::Blocks(codec), BlockSize::Keys128) if codec.max_count() > BlockSize::SHORT => {
                    Layout::ShortBlocks(codec)
                }
                _ => self,
            })
            .collect();
        layouts.dedup();
        layouts
    }

    /// The name, without the length of blocks.
    pub(super) fn name(self) -> String {
        match self {
            Layout::Blocks(codec) | Layout::ShortBlocks(codec) => codec.to_string(),
            Layout::Keys(keys) => keys.to_string(),
        }
    }

    pub(super) fn options(self) -> TableOptions {
        match self {
            Layout::Blocks(codec) => TableOptions { codec: Some(codec), ..TableOptions::default() },
            Layout::ShortBlocks(codec) => {
                TableOptions { keys: Some(KeyLayout::ShortBlocks), codec: Some(codec), ..TableOptions::default() }
            }
            Layout::Keys(keys) => TableOptions { keys: Some(keys), ..TableOptions::default() },
        }
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Layout::Blocks(_) | Layout::Keys(_) => f.pad(&self.name()),
            Layout::ShortBlocks(_) => f.pad(&format!("{}:{}", self.name(), BlockSize::SHORT)),
        }
    }
}

impl FromStr for Layout {
    type Err = String;

    fn from_str(name: &str) -> Result<Layout, String> {
        if let Ok(codec) = name.parse() {
            return Ok(Layout::Blocks(codec));
        }
        match name.parse() {
            // `plain` is the name of a codec, so here it is not the key list with that name.
            Ok(keys @ (KeyLayout::Fixed | KeyLayout::Head)) => Ok(Layout::Keys(keys)),
            _ => Err(format!("{name:?} is not a codec, and neither fixed nor head")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_codecs_and_two_key_lists() {
        for name in ["plain", "vbyte", "bp128", "simd-for", "fixed", "head"] {
            assert_eq!(name.parse::<Layout>().expect("a layout").to_string(), name);
        }
        assert!("db2".parse::<Layout>().is_err() && "".parse::<Layout>().is_err());
    }

    #[test]
    fn blocks_have_each_size_that_the_codec_takes() {
        let both = [BlockSize::Keys256, BlockSize::Keys128];
        let named = |layout: &str| {
            let layouts = layout.parse::<Layout>().expect("a layout").in_blocks_of(&both);
            layouts.into_iter().map(|layout| (layout.to_string(), layout.block())).collect::<Vec<_>>()
        };
        assert_eq!(named("for"), [("for".to_owned(), 256), ("for:128".to_owned(), 128)]);
        assert_eq!(named("bp128"), [("bp128".to_owned(), 128)]);
        assert_eq!(named("head"), [("head".to_owned(), 0)]);
    }
}

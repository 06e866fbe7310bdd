//! The layouts of a run: the codecs of blocks, and the key lists of whole keys to set them beside. The engine says
//! which there are.

use duramen::TableOptions;
use duramen::db::types::KeyLayout;
use duramen_codec::Codec;
use std::fmt;
use std::str::FromStr;

/// How a table keeps its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// In blocks of this codec.
    Blocks(Codec),
    /// Each for itself.
    Keys(KeyLayout),
}

impl Layout {
    /// Every codec.
    pub fn codecs() -> [Layout; 8] {
        Codec::ALL.map(Layout::Blocks)
    }

    /// Keys of a block; of whole keys none.
    pub(super) fn block(self) -> usize {
        match self {
            Layout::Blocks(codec) => codec.max_count(),
            Layout::Keys(_) => 0,
        }
    }

    pub(super) fn options(self) -> TableOptions {
        match self {
            Layout::Blocks(codec) => TableOptions { codec: Some(codec), ..TableOptions::default() },
            Layout::Keys(keys) => TableOptions { keys: Some(keys), ..TableOptions::default() },
        }
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Layout::Blocks(codec) => codec.fmt(f),
            Layout::Keys(keys) => keys.fmt(f),
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
            // Plain is a codec, and blocks are what the codecs are for.
            Ok(keys @ (KeyLayout::Fixed | KeyLayout::Head)) => Ok(Layout::Keys(keys)),
            _ => Err(format!("{name:?} is no codec, and neither fixed nor head")),
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
}

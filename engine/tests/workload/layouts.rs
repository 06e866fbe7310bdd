//! The key layouts: those that hold keys of any length, and the blocks of integers.

use duramen::Codec;
use duramen::db::types::{KeyLayout, TableOptions};

/// All but `fixed` and the blocks, whose keys have one length.
pub(crate) fn for_keys_of_any_length() -> Vec<KeyLayout> {
    let of_one_length = [KeyLayout::Fixed, KeyLayout::Blocks, KeyLayout::ShortBlocks];
    KeyLayout::ALL.into_iter().filter(|layout| !of_one_length.contains(layout)).collect()
}

/// Blocks of every codec, those that may be shorter than the codec takes them also short.
pub(crate) fn of_blocks() -> Vec<TableOptions> {
    let of = |keys, codec| TableOptions { keys: Some(keys), codec: Some(codec), ..TableOptions::default() };
    let long = Codec::ALL.map(|codec| of(KeyLayout::Blocks, codec));
    let short = Codec::ALL.into_iter().filter(|codec| codec.max_count() > 128);
    long.into_iter().chain(short.map(|codec| of(KeyLayout::ShortBlocks, codec))).collect()
}

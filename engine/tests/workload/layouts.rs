//! The key layouts that hold keys of any length: the tests go through all of them. What is done with them is the
//! tests' affair.

use duramen::db::types::KeyLayout;

/// All but `fixed` and `blocks`, whose keys have one length.
pub(crate) fn for_keys_of_any_length() -> Vec<KeyLayout> {
    let of_one_length = [KeyLayout::Fixed, KeyLayout::Blocks];
    KeyLayout::ALL.into_iter().filter(|layout| !of_one_length.contains(layout)).collect()
}

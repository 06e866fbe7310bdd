//! Keys that have prefixes: byte strings and text.

use super::value::Key;

/// A [`Key`] whose encoding is its own bytes, so that what begins with a prefix lies in one range.
pub trait PrefixKey: Key {}

impl PrefixKey for &str {}
impl PrefixKey for String {}
impl PrefixKey for &[u8] {}
impl PrefixKey for Vec<u8> {}

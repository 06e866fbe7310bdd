//! Encodes the bounds of key ranges.

use crate::base::bytes;
use crate::db::types::{Key, Value};
use std::cell::Cell;
use std::ops::{Bound, RangeBounds};
use std::thread::LocalKey;

/// An encoded key range.
pub(crate) type EncodedRange = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// Encodes a range of keys.
pub(crate) fn encode<'k, K: Key>(range: &impl RangeBounds<K::Ref<'k>>) -> EncodedRange {
    let encode = |key: &K::Ref<'k>| {
        let mut bytes = Vec::new();
        K::encode(key, &mut bytes);
        bytes
    };
    (range.start_bound().map(encode), range.end_bound().map(encode))
}

/// Copies a range of borrowed keys.
pub(crate) fn borrowed<'k>(range: &impl RangeBounds<&'k [u8]>) -> EncodedRange {
    (range.start_bound().map(|key| key.to_vec()), range.end_bound().map(|key| key.to_vec()))
}

/// The range of all keys that begin with `prefix`.
pub(crate) fn prefix(prefix: &[u8]) -> EncodedRange {
    let upper = bytes::after_prefix(prefix).map_or(Bound::Unbounded, Bound::Excluded);
    (Bound::Included(prefix.to_vec()), upper)
}

/// Calls `f` with the encoding of a key, in a buffer that the next call reuses.
#[inline]
pub(crate) fn with_key<K: Key, R>(key: &K::Ref<'_>, f: impl FnOnce(&[u8]) -> R) -> R {
    thread_local!(static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) });
    with_encoding::<K, R>(&BUFFER, key, f)
}

/// Calls `f` with the encoding of a value, in a buffer that the next call reuses.
#[inline]
pub(crate) fn with_value<V: Value, R>(value: &V::Ref<'_>, f: impl FnOnce(&[u8]) -> R) -> R {
    thread_local!(static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) });
    with_encoding::<V, R>(&BUFFER, value, f)
}

#[inline]
fn with_encoding<V: Value, R>(
    buffers: &'static LocalKey<Cell<Vec<u8>>>,
    value: &V::Ref<'_>,
    f: impl FnOnce(&[u8]) -> R,
) -> R {
    // A type with only one value, such as `()`, has no bytes.
    if V::fixed_width() == Some(0) && size_of::<V::Ref<'_>>() == 0 {
        return f(&[]);
    }
    let mut buffer = buffers.take();
    buffer.clear();
    V::encode(value, &mut buffer);
    let result = f(&buffer);
    buffers.set(buffer);
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_prefix_range_contains_exactly_the_keys_with_the_prefix(start: Vec<u8>, key: Vec<u8>, rest: Vec<u8>) {
            let range = prefix(&start);
            let with: Vec<u8> = start.iter().chain(&rest).copied().collect();
            prop_assert!(range.contains(&with));
            prop_assert_eq!(range.contains(&key), key.starts_with(&start));
            let edge = [start.as_slice(), &[0xff; 3]].concat();
            prop_assert!(prefix(&start).contains(&edge));
        }
    }
}

//! The keys for the random tests. There is a shape for each path through the code.

use proptest::prelude::*;

/// Any bytes; prefixes of each other; the empty key; long shared prefixes; longer than a page; close together.
pub(super) fn any_key() -> BoxedStrategy<Vec<u8>> {
    prop_oneof![
        4 => prop::collection::vec(any::<u8>(), 0..12),
        4 => prop::collection::vec(prop::sample::select(vec![0u8, 1, 0xFF]), 0..40),
        6 => (0u32..400).prop_map(|n| format!("{n:08}").into_bytes()),
        3 => (0usize..60, 0u8..4).prop_map(|(len, last)| [vec![b'a'; len], vec![last]].concat()),
        3 => (0u32..60).prop_map(|n| [vec![b'p'; 18], n.to_be_bytes().to_vec()].concat()),
        2 => (20usize..90, 0u16..30).prop_map(|(len, n)| [vec![b's'; len], n.to_be_bytes().to_vec()].concat()),
        2 => (0usize..3000, 0u8..8).prop_map(|(len, n)| [vec![b'l'; len], vec![n; 3]].concat()),
        2 => (0u16..40).prop_map(|n| [vec![b'm'; 2500], n.to_be_bytes().to_vec()].concat()),
        1 => (0u16..40).prop_map(|n| [vec![0xFF; 1700], n.to_be_bytes().to_vec()].concat()),
    ]
    .boxed()
}

/// Keys of 16 bytes, with shared beginnings.
pub(super) fn fixed_key() -> BoxedStrategy<Vec<u8>> {
    prop_oneof![
        any::<[u8; 16]>().prop_map(|key| key.to_vec()),
        (0u32..500).prop_map(|n| [vec![7; 12], n.to_be_bytes().to_vec()].concat()),
    ]
    .boxed()
}

/// Integers of `len` bytes: close together, far apart, at both ends of their range.
pub(super) fn integer_key(len: usize) -> BoxedStrategy<Vec<u8>> {
    let number = prop_oneof![
        6 => 0u64..2000,
        3 => (0u64..60).prop_map(|n| n * 1009),
        2 => (0u64..3, 0u64..90).prop_map(|(high, low)| (high << 20) + low * 17),
        1 => any::<u64>(),
        1 => (0u64..200).prop_map(|n| u64::MAX - n),
    ];
    number.prop_map(move |number| number.to_be_bytes()[8 - len..].to_vec()).boxed()
}

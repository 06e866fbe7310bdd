//! Property tests of the whole layer: every key list x record list x page size against a sorted Vec.
mod hostile;
mod inner;
mod layout;
mod model;
mod ops;
mod out_of_line;
mod split;

use super::*;
use crate::base::{Lsn, PageId, TableId, limits};
use proptest::prelude::*;

/// An entry as the tests keep it: key, record, large.
type Owned = (Vec<u8>, Vec<u8>, bool);

/// The layout of a test page.
#[derive(Clone, Copy, Debug)]
struct Shape {
    size: usize,
    keys: KeyListKind,
    records: RecordListKind,
    /// The length of fixed-length keys.
    key_len: usize,
    /// The length of fixed-size records.
    record_len: usize,
}

fn shape() -> impl Strategy<Value = Shape> {
    let kinds = KeyListKind::ALL.into_iter().filter(|kind| !kind.keys_are_out_of_line()).collect::<Vec<_>>();
    let keys = proptest::sample::select(kinds);
    let records = prop_oneof![Just(RecordListKind::None), Just(RecordListKind::Fixed), Just(RecordListKind::Variable)];
    (8usize..=16, keys, records, prop_oneof![Just(4usize), Just(8), 1usize..20], 0usize..12).prop_map(
        |(shift, keys, records, key_len, record_len)| {
            let key_len = keys.key_len().unwrap_or(key_len);
            Shape { size: 1 << shift, keys, records, key_len, record_len }
        },
    )
}

/// Keys that share prefixes, are prefixes of each other, have zero bytes and bytes >= 0x80, or are empty.
fn free_key(longest: usize) -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![4 => Just(0u8), 4 => Just(b'a'), 2 => Just(0x80u8), 2 => Just(0xFFu8), 4 => any::<u8>()];
    (prop_oneof![8 => 0usize..10, 2 => 0usize..=longest], proptest::collection::vec(byte, 33))
        .prop_map(move |(len, bytes)| (0..len.min(longest)).map(|i| bytes[i % 33]).collect())
}

fn key(shape: Shape) -> BoxedStrategy<Vec<u8>> {
    if shape.keys.key_len().is_some() {
        integer(shape.key_len).boxed()
    } else if shape.keys.has_one_length() {
        let byte = prop_oneof![Just(0u8), Just(0xFF), any::<u8>()];
        proptest::collection::vec(byte, shape.key_len).boxed()
    } else {
        free_key(limits::max_inline_key(shape.size)).boxed()
    }
}

/// Integers close together and far apart, at both ends of their range.
fn integer(len: usize) -> impl Strategy<Value = Vec<u8>> {
    let number = prop_oneof![
        6 => 0u64..600,
        2 => (0u64..40).prop_map(|n| n * 1000),
        2 => (0u64..3, 0u64..90).prop_map(|(high, low)| (high << 20) + low * 17),
        1 => any::<u64>(),
        1 => (0u64..200).prop_map(|n| u64::MAX - n),
    ];
    number.prop_map(move |number| number.to_be_bytes()[8 - len..].to_vec())
}

fn record(shape: Shape) -> BoxedStrategy<(Vec<u8>, bool)> {
    match shape.records {
        RecordListKind::None => Just((Vec::new(), false)).boxed(),
        RecordListKind::Fixed => {
            proptest::collection::vec(any::<u8>(), shape.record_len).prop_map(|bytes| (bytes, false)).boxed()
        }
        RecordListKind::Variable => prop_oneof![
            8 => proptest::collection::vec(any::<u8>(), 0..12).prop_map(|bytes| (bytes, false)),
            1 => proptest::collection::vec(any::<u8>(), 0..shape.size / 8).prop_map(|bytes| (bytes, false)),
            1 => proptest::collection::vec(any::<u8>(), limits::LARGE_RECORD).prop_map(|bytes| (bytes, true)),
        ]
        .boxed(),
    }
}

fn entry(shape: Shape) -> impl Strategy<Value = Owned> {
    (key(shape), record(shape)).prop_map(|(key, (record, large))| (key, record, large))
}

/// Returns true if the entry is small enough that two halves of a page can always hold it.
fn within_limits(shape: Shape, entry: &Owned) -> bool {
    entry.0.len() + entry.1.len() <= limits::max_entry(shape.size)
}

fn spec<'a>(shape: Shape, lower: &'a [u8], upper: Option<&'a [u8]>) -> PageSpec<'a> {
    PageSpec {
        id: PageId(7),
        table: TableId(3),
        kind: PageKind::Leaf,
        level: 0,
        keys: shape.keys,
        records: shape.records,
        lower,
        upper,
        right: PageId(9),
    }
}

fn format(shape: Shape, packed: Vec<u8>) -> Vec<u8> {
    let mut page = vec![0xEE; shape.size];
    assert!(apply(&mut page, &PageOp::Format { packed: packed.into() }, Lsn(1)).unwrap());
    page
}

fn empty(shape: Shape, lower: &[u8], upper: Option<&[u8]>) -> Vec<u8> {
    format(shape, PageBuilder::new(shape.size, &spec(shape, lower, upper)).finish())
}

fn as_record(entry: &Owned) -> Record<'_> {
    Record { bytes: &entry.1, large: entry.2 }
}

fn entries(page: Page<'_>) -> Vec<Owned> {
    let mut key = Vec::new();
    (0..page.count())
        .map(|slot| {
            page.key_into(slot, &mut key);
            assert_eq!(page.key_len(slot), key.len());
            let record = page.record(slot);
            (key.clone(), record.bytes.to_vec(), record.large)
        })
        .collect()
}

/// Checks that the page is sound and holds exactly these entries.
fn assert_holds(page: &[u8], model: &[Owned]) {
    let page = Page::check(page, PageId(7)).unwrap();
    assert_eq!(entries(page), model);
    assert_eq!(page.used() + page.free(), page.bytes().len());
}

/// Returns the entries sorted, without equal keys, all within `[lower, upper)`.
fn sorted(mut entries: Vec<Owned>, lower: &[u8], upper: Option<&[u8]>) -> Vec<Owned> {
    entries.retain(|(key, ..)| key.as_slice() >= lower && upper.is_none_or(|upper| key.as_slice() < upper));
    entries.sort();
    entries.dedup_by(|a, b| a.0 == b.0);
    entries
}

/// Two fences with keys between them, or no upper fence; often with a common prefix.
fn fences(shape: Shape) -> impl Strategy<Value = (Vec<u8>, Option<Vec<u8>>)> {
    let longest = limits::max_inline_key(shape.size);
    let apart = (free_key(longest), proptest::option::of(free_key(longest)));
    let near = (free_key(longest - 1), any::<u8>()).prop_map(|(lower, last)| {
        let mut upper = lower.clone();
        upper.push(last);
        (lower, Some(upper))
    });
    prop_oneof![2 => Just((Vec::new(), None)), 3 => apart, 1 => near].prop_map(|(a, b)| match b {
        Some(b) if b < a => (b, Some(a)),
        Some(b) if b == a => (Vec::new(), None),
        b => (a, b),
    })
}

//! Page operations: their encoding, and the operations that a page refuses.

use super::*;
use std::borrow::Cow;

/// The parts of an operation.
#[derive(Clone, Debug)]
pub(super) struct OwnedOp {
    kind: u8,
    numbers: [u16; 2],
    wide: [u32; 2],
    first: Vec<u8>,
    second: Option<Vec<u8>>,
    large: bool,
}

impl OwnedOp {
    pub(super) fn op(&self) -> PageOp<'_> {
        let [from, to] = self.numbers;
        let second = self.second.as_deref();
        let record = Record { bytes: second.unwrap_or_default(), large: self.large };
        match self.kind {
            0 => PageOp::Format { packed: Cow::Borrowed(&self.first) },
            1 => PageOp::Insert { slot: from, key: &self.first, record },
            2 => PageOp::Replace { slot: from, record },
            3 => PageOp::Remove { from, to },
            4 => PageOp::Keep { from, to, lower: &self.first, upper: second, right: PageId(self.wide[0]) },
            5 => PageOp::SetRight { right: PageId(self.wide[0]) },
            6 => PageOp::SetBits { from: self.wide[0], count: self.wide[1] },
            7 => {
                let entry = |slot| NewEntry { slot, key: &self.first, record };
                PageOp::InsertRun { entries: vec![entry(from.min(to)); usize::from(from % 3)].into() }
            }
            8 => {
                let delta = i64::from(self.wide[0].cast_signed()) << (self.wide[1] % 33);
                PageOp::AddToRecord { slot: from, offset: to, delta }
            }
            _ => PageOp::ClearBits { from: self.wide[0], count: self.wide[1] },
        }
    }
}

pub(super) fn any_op() -> impl Strategy<Value = OwnedOp> {
    let number = || prop_oneof![4 => 0u16..6, 1 => any::<u16>()];
    let wide = || prop_oneof![4 => 0u32..600, 1 => any::<u32>()];
    let bytes = || prop_oneof![3 => free_key(40), 1 => proptest::collection::vec(any::<u8>(), 0..300)];
    let parts =
        (0u8..10, [number(), number()], [wide(), wide()], bytes(), proptest::option::of(bytes()), any::<bool>());
    parts.prop_map(|(kind, numbers, wide, first, second, large)| OwnedOp { kind, numbers, wide, first, second, large })
}

proptest! {
    #[test]
    fn operations_come_back_from_their_bytes(ops in proptest::collection::vec(any_op(), 0..8), tail: Vec<u8>) {
        let mut bytes = Vec::new();
        for op in &ops {
            op.op().encode(&mut bytes);
        }
        let end = bytes.len();
        bytes.extend_from_slice(&tail);
        let mut input = bytes.as_slice();
        for op in &ops {
            prop_assert_eq!(PageOp::decode(&mut input).unwrap(), op.op());
        }
        prop_assert_eq!(input.len(), bytes.len() - end);
    }

    #[test]
    fn any_bytes_decode_to_an_operation_or_an_error(bytes: Vec<u8>) {
        let mut input = bytes.as_slice();
        while !input.is_empty() && PageOp::decode(&mut input).is_ok() {}
    }
}

const SHAPE: Shape =
    Shape { size: 512, keys: KeyListKind::Head, records: RecordListKind::Variable, key_len: 0, record_len: 0 };

/// Checks that the operation is refused as corrupt and leaves the page unchanged.
fn refused(page: &mut [u8], op: PageOp<'_>, words: &str) {
    let before = page.to_vec();
    let error = apply(page, &op, Lsn(99)).unwrap_err().to_string();
    assert!(error.contains(words), "{error:?} should say {words:?}");
    assert_eq!(page, before);
}

#[test]
fn operations_that_do_not_fit_the_page_are_refused() {
    let record = Record::inline(b"r");
    let mut page = empty(SHAPE, b"ab", Some(b"ac"));
    assert!(apply(&mut page, &PageOp::Insert { slot: 0, key: b"abc", record }, Lsn(2)).unwrap());
    let long = vec![b'a'; limits::max_inline_key(512) + 2];
    refused(&mut page, PageOp::Insert { slot: 2, key: b"abd", record }, "slot 2 of a page with 1 entries");
    refused(&mut page, PageOp::Insert { slot: 1, key: b"xbd", record }, "without the page's prefix");
    refused(&mut page, PageOp::Insert { slot: 1, key: &long, record }, "bytes");
    refused(&mut page, PageOp::Insert { slot: 1, key: b"abd", record: Record { large: true, ..record } }, "large");
    refused(&mut page, PageOp::Replace { slot: 1, record }, "slot 1 of a page with 1 entries");
    refused(&mut page, PageOp::Remove { from: 1, to: 0 }, "slots 1 to 0");
    refused(&mut page, PageOp::Remove { from: 0, to: 2 }, "slots 0 to 2");
    refused(&mut page, PageOp::SetBits { from: 0, count: 1 }, "not an allocation map");
    refused(&mut page, PageOp::Format { packed: vec![1, 2, 3].into() }, "packed");
    let keep = |lower, upper| PageOp::Keep { from: 0, to: 1, lower, upper, right: PageId(0) };
    refused(&mut page, keep(b"abd", None), "outside the new fences");
    refused(&mut page, keep(b"ab", Some(b"abc")), "outside the new fences");
    refused(&mut page, keep(&long, None), "slots 0 to 1");
}

/// A leaf with these records under the keys "a0", "a1" and so on.
fn leaf_of(records: RecordListKind, all: &[Record<'_>]) -> Vec<u8> {
    let mut page = empty(Shape { records, ..SHAPE }, b"", None);
    for (slot, record) in (0u16..).zip(all) {
        let key = format!("a{slot}");
        assert!(apply(&mut page, &PageOp::Insert { slot, key: key.as_bytes(), record: *record }, Lsn(2)).unwrap());
    }
    page
}

#[test]
fn an_addition_has_the_bytes_of_the_format() {
    for (delta, bytes) in [
        (1, &[10, 2, 8, 2][..]),
        (-3, &[10, 2, 8, 5]),
        (i64::MIN, &[10, 2, 8, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1]),
    ] {
        let mut out = Vec::new();
        PageOp::AddToRecord { slot: 2, offset: 8, delta }.encode(&mut out);
        assert_eq!(out, bytes, "{delta}");
    }
}

#[test]
fn an_addition_changes_one_number_of_one_record() {
    let number = |number: u64| [&[7; 4][..], &number.to_le_bytes(), &[9; 3]].concat();
    let sums =
        [(0, 5, 5), (1000, -1, 999), (u64::MAX - 1, 5, u64::MAX), (3, -4, 0), (u64::MAX, i64::MIN, u64::MAX >> 1)];
    for records in [RecordListKind::Fixed, RecordListKind::Variable] {
        for (old, delta, new) in sums {
            let all = [number(1), number(old), number(2)];
            let mut page = leaf_of(records, &all.each_ref().map(|record| Record::inline(record)));
            assert!(apply(&mut page, &PageOp::AddToRecord { slot: 1, offset: 4, delta }, Lsn(9)).unwrap());
            let view = Page::check(&page, PageId(7)).unwrap();
            let found: Vec<&[u8]> = (0..3).map(|slot| view.record(slot).bytes).collect();
            assert_eq!(found, [number(1), number(new), number(2)], "{old} + {delta}");
            assert_eq!(view.lsn(), Lsn(9));
        }
    }
}

#[test]
fn an_addition_is_refused_where_the_page_has_no_number() {
    let add = |slot, offset| PageOp::AddToRecord { slot, offset, delta: 1 };
    let large = Record { bytes: &[1; limits::LARGE_RECORD], large: true };
    let mut page = leaf_of(RecordListKind::Variable, &[Record::inline(&[3; 9]), large, Record::default()]);
    assert!(apply(&mut page, &add(0, 1), Lsn(3)).unwrap());
    refused(&mut page, add(0, 2), "no number at byte 2");
    refused(&mut page, add(0, u16::MAX), "no number at byte 65535");
    refused(&mut page, add(1, 0), "no number at byte 0");
    refused(&mut page, add(2, 0), "no number at byte 0");
    refused(&mut page, add(3, 0), "slot 3 of a page with 3 entries");
    refused(&mut leaf_of(RecordListKind::Fixed, &[Record::inline(&[3; 7])]), add(0, 0), "no number at byte 0");
    refused(&mut leaf_of(RecordListKind::None, &[Record::default()]), add(0, 0), "no number at byte 0");
    refused(&mut format(SHAPE, map_page(512, PageId(7))), add(0, 0), "a page without entries");
}

#[test]
fn run_pages_have_no_entries_to_change() {
    let mut page = format(SHAPE, run_page(PageId(7), TableId(1), PageId(8), &[1; 400]));
    refused(&mut page, PageOp::Insert { slot: 0, key: b"", record: Record::default() }, "a page without entries");
    refused(&mut page, PageOp::Remove { from: 0, to: 0 }, "a page without entries");
    assert_eq!(Page::check(&page, PageId(7)).unwrap().payload(), [1; 400]);
}

#[test]
fn fixed_lists_take_entries_of_one_length_only() {
    let shape = Shape { keys: KeyListKind::Fixed, records: RecordListKind::Fixed, ..SHAPE };
    let mut page = empty(shape, b"", None);
    let record = Record::inline(b"22");
    assert!(apply(&mut page, &PageOp::Insert { slot: 0, key: b"four", record }, Lsn(2)).unwrap());
    refused(&mut page, PageOp::Insert { slot: 1, key: b"fives", record }, "key of 5 bytes");
    refused(&mut page, PageOp::Insert { slot: 1, key: b"nine", record: Record::inline(b"1") }, "record of 1 bytes");
    assert!(apply(&mut page, &PageOp::Remove { from: 0, to: 1 }, Lsn(3)).unwrap());
    assert!(apply(&mut page, &PageOp::Insert { slot: 0, key: b"fives", record: Record::inline(b"") }, Lsn(4)).unwrap());
}

#[test]
fn bits_are_set_and_cleared_within_the_map_alone() {
    let mut page = format(SHAPE, map_page(512, PageId(7)));
    assert!(apply(&mut page, &PageOp::SetBits { from: 3, count: 14 }, Lsn(2)).unwrap());
    assert!(apply(&mut page, &PageOp::ClearBits { from: 9, count: 1 }, Lsn(3)).unwrap());
    assert!(apply(&mut page, &PageOp::SetBits { from: map_bits(512) - 1, count: 1 }, Lsn(4)).unwrap());
    refused(
        &mut page,
        PageOp::SetBits { from: map_bits(512) - 1, count: 2 },
        "not an allocation map, or too short for bits",
    );
    refused(&mut page, PageOp::SetBits { from: u32::MAX, count: 2 }, "not an allocation map, or too short for bits");
    let map = Page::check(&page, PageId(7)).unwrap();
    let set: Vec<u32> = (0..map_bits(512)).filter(|&bit| map.bit(bit)).collect();
    assert_eq!(set, [3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 14, 15, 16, map_bits(512) - 1]);
    assert_eq!([0, 3, 8, 10].map(|from| map.first_clear(from)), [Some(0), Some(9), Some(9), Some(17)]);
    assert_eq!(map.first_clear(map_bits(512) - 1), None);
    assert!(!map.bit(map_bits(512)));
}

#[test]
fn after_a_removal_the_first_child_gets_the_empty_suffix() {
    for keys in [KeyListKind::Head, KeyListKind::Fixed] {
        let shape = Shape { keys, records: RecordListKind::Fixed, ..SHAPE };
        let spec = PageSpec { kind: PageKind::Inner, level: 1, ..spec(shape, b"k00", Some(b"k99")) };
        let mut builder = PageBuilder::new(512, &spec);
        for (i, key) in [&b"k00"[..], b"k11", b"k22", b"k33"].iter().enumerate() {
            assert!(builder.push(key, Record::inline(&(i as u32 + 1).to_le_bytes())));
        }
        let mut page = format(shape, builder.finish());
        refused(&mut page, PageOp::Insert { slot: 0, key: b"k01", record: Record::inline(&[9; 4]) }, "slot 0");
        assert!(apply(&mut page, &PageOp::Remove { from: 0, to: 2 }, Lsn(8)).unwrap());
        let view = Page::check(&page, PageId(7)).unwrap();
        assert_eq!((view.count(), view.child(0), view.child(1)), (2, PageId(3), PageId(4)));
        assert_eq!([b"k00", b"k32", b"k33", b"k98"].map(|key| view.child_for(key)), [0, 0, 1, 1]);
        let mut key = Vec::new();
        view.key_into(1, &mut key);
        assert_eq!((key.as_slice(), view.key_len(0)), (&b"k33"[..], view.prefix().len()));
    }
}

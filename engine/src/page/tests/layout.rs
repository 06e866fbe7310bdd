//! The worked examples of `docs/layouts/`, byte for byte.

use super::*;
use crate::page::BlockRule;

const SHAPE: Shape =
    Shape { size: 512, keys: KeyListKind::Head, records: RecordListKind::None, key_len: 0, record_len: 0 };

const WORDS: [&[u8]; 5] = [b"compile", b"complete", b"complex", b"compliant", b"compose"];

/// Returns the fields of key list and record list of a page of those entries.
fn lists(shape: Shape, fences: [&[u8]; 2], entries: &[(&[u8], &[u8])]) -> (usize, Vec<u8>, Vec<u8>) {
    let mut builder = PageBuilder::new(shape.size, &spec(shape, fences[0], Some(fences[1])));
    for (key, record) in entries {
        assert!(builder.push(key, Record::inline(record)));
    }
    let page = format(shape, builder.finish());
    let page = Page::check(&page, PageId(7)).unwrap();
    (page.keys_at(), page.key_bytes().to_vec(), page.record_bytes().to_vec())
}

#[test]
fn head_is_as_documented() {
    let words = WORDS.map(|word| (word, &b""[..]));
    let (at, keys, _) = lists(SHAPE, [b"compile", b"compute"], &words);
    let heads = *b"\0elietel\0xelnail\0eso";
    let expected = [&heads[..], &[0, 0, 1, 0, 2, 0, 3, 0, 5, 0], b"\x03\x04\x03\x05t\x03"].concat();
    assert_eq!((at, keys), (48, expected));
}

#[test]
fn plain_is_as_documented() {
    let words = WORDS.map(|word| (word, &b""[..]));
    let shape = Shape { keys: KeyListKind::Plain, ..SHAPE };
    let (at, keys, _) = lists(shape, [b"compile", b"compute"], &words);
    let heap = b"\x07ile\x08lete\x07lex\x09liant\x07ose";
    let expected = [b"pmoc".repeat(5).as_slice(), &[0, 0, 4, 0, 9, 0, 13, 0, 19, 0], heap].concat();
    assert_eq!((at, keys), (52, expected));
}

#[test]
fn fixed_is_as_documented() {
    let shape = Shape { keys: KeyListKind::Fixed, records: RecordListKind::Fixed, ..SHAPE };
    let numbers = [3u32, 258, 70000, 1 << 31].map(u32::to_be_bytes);
    let entries = [&b"aa"[..], b"bb", b"cc", b"dd"];
    let entries: Vec<(&[u8], &[u8])> = numbers.iter().map(|number| &number[..]).zip(entries).collect();
    let (_, keys, records) = lists(shape, [b"", b"\xFF"], &entries);
    assert_eq!(keys, [&[4, 0][..], numbers.as_flattened()].concat());
    assert_eq!(records, b"ddccbbaa\x02\0");
}

/// The keys of the paper's example.
const PAPER: [&[u8]; 6] = [b"abcd", b"abefg", b"abexyz", b"abfe", b"bacd", b"bcdmn"];
/// The prefix deltas of [`PAPER`].
const DELTAS: &[u8] = b"\x00\x04abcd\x02\x03efg\x03\x03xyz\x02\x02fe\x00\x04bacd\x01\x04cdmn";

#[test]
fn prefix_deltas_are_as_documented() {
    let words = PAPER.map(|word| (word, &b""[..]));
    let shape = Shape { keys: KeyListKind::MyIsam, ..SHAPE };
    assert_eq!(lists(shape, [b"a", b"c"], &words).1, DELTAS);
    let shape = Shape { keys: KeyListKind::WiredTiger(Instantiation::RollForward), ..SHAPE };
    let directory = b"\x01\0dcba\0\0\0\0";
    assert_eq!(lists(shape, [b"a", b"c"], &words).1, [directory, DELTAS].concat());
    let shape = Shape { keys: KeyListKind::WiredTiger(Instantiation::BestGroup), ..SHAPE };
    assert_eq!(lists(shape, [b"a", b"c"], &words).1, [DELTAS, BEST].concat());
    let shape = Shape { keys: KeyListKind::WiredTiger(Instantiation::Both), ..SHAPE };
    assert_eq!(lists(shape, [b"a", b"c"], &words).1, [directory, DELTAS, BEST].concat());
}

/// The footer of the best prefix group of [`DELTAS`]: abefg completes abexyz, abfe and bacd.
const BEST: &[u8] = b"abefg\x0B\0\x10\0\x14\0\x05\0\x01\0\x03";

#[test]
fn the_best_prefix_group_is_updated_by_changes_and_dropped_for_records() {
    let keys = KeyListKind::WiredTiger(Instantiation::BestGroup);
    let shape = Shape { size: 256, keys, records: RecordListKind::Variable, ..SHAPE };
    let mut page = empty(shape, b"a", Some(b"c"));
    let footer = |page: &[u8]| {
        let page = Page::check(page, PageId(7)).unwrap();
        // The test later removes one entry.
        page.key_bytes()[if page.count() == 6 { DELTAS.len() } else { DELTAS.len() - 4 }..].to_vec()
    };
    for (slot, key) in (0..).zip(PAPER) {
        assert!(apply(&mut page, &PageOp::Insert { slot, key, record: Record::default() }, Lsn(2)).unwrap());
    }
    assert_eq!(footer(&page), BEST);
    for (slot, key) in (0..).zip(PAPER) {
        assert_eq!(Page::new(&page).search(key), Ok(slot));
    }
    for (key, slot) in [("abeg", 2), ("abexz", 3), ("abff", 4), ("abz", 4), ("b", 4), ("bacd0", 5), ("bb", 5)] {
        assert_eq!(Page::new(&page).search(key.as_bytes()), Err(slot), "{key}");
    }
    // A record takes the room of the footer except one byte. When it is removed, the footer uses the room again.
    let free = Page::new(&page).free();
    let record = vec![7; free + BEST.len() - 2];
    assert!(apply(&mut page, &PageOp::Replace { slot: 0, record: Record::inline(&record) }, Lsn(3)).unwrap());
    assert_eq!((footer(&page), Page::new(&page).free()), (vec![0], 0));
    let longer = vec![7; record.len() + 1];
    assert!(!apply(&mut page, &PageOp::Replace { slot: 0, record: Record::inline(&longer) }, Lsn(3)).unwrap());
    assert!(apply(&mut page, &PageOp::Remove { from: 3, to: 4 }, Lsn(4)).unwrap());
    assert_eq!(footer(&page), [0], "a removal never makes the list longer than it was");
    assert!(apply(&mut page, &PageOp::Replace { slot: 0, record: Record::default() }, Lsn(5)).unwrap());
    let abfe = PageOp::Insert { slot: 3, key: PAPER[3], record: Record::default() };
    assert!(apply(&mut page, &abfe, Lsn(6)).unwrap());
    assert_eq!(footer(&page), BEST);
    assert!(apply(&mut page, &PageOp::Remove { from: 0, to: 6 }, Lsn(7)).unwrap());
    assert_eq!(Page::check(&page, PageId(7)).unwrap().key_bytes(), b"");
}

#[test]
fn a_best_prefix_group_that_contradicts_its_entries_is_damage() {
    let words = PAPER.map(|word| (word, &b""[..]));
    let shape = Shape { keys: KeyListKind::WiredTiger(Instantiation::BestGroup), ..SHAPE };
    let mut builder = PageBuilder::new(shape.size, &spec(shape, b"a", Some(b"c")));
    for (key, record) in words {
        assert!(builder.push(key, Record::inline(record)));
    }
    let page = format(shape, builder.finish());
    let footer = Page::check(&page, PageId(7)).unwrap().keys_at() + DELTAS.len();
    for (at, value) in [(0, b'b'), (5, 12), (11, 4), (13, 0), (13, 2), (15, 2), (15, 4), (15, 255)] {
        let mut damaged = page.clone();
        damaged[footer + at] = value;
        assert!(Page::check(&damaged, PageId(7)).is_err(), "{value} at {at}");
        let mut out = Vec::new();
        for (slot, key) in PAPER.iter().enumerate() {
            Page::new(&damaged).key_into(slot, &mut out);
            assert!(Page::new(&damaged).search(key).unwrap_or_else(|slot| slot) <= 6);
        }
    }
}

#[test]
fn an_insert_or_removal_encodes_one_neighbour_again() {
    let shape = Shape { keys: KeyListKind::MyIsam, ..SHAPE };
    let mut page = empty(shape, b"a", Some(b"c"));
    for (slot, key) in [(0, PAPER[0]), (1, PAPER[1]), (2, PAPER[3]), (3, PAPER[4])] {
        assert!(apply(&mut page, &PageOp::Insert { slot, key, record: Record::default() }, Lsn(2)).unwrap());
    }
    let deltas = |page: &[u8]| Page::check(page, PageId(7)).unwrap().key_bytes().to_vec();
    assert_eq!(deltas(&page), b"\x00\x04abcd\x02\x03efg\x02\x02fe\x00\x04bacd");
    let abexyz = PageOp::Insert { slot: 2, key: PAPER[2], record: Record::default() };
    assert!(apply(&mut page, &abexyz, Lsn(3)).unwrap());
    let bcdmn = PageOp::Insert { slot: 5, key: PAPER[5], record: Record::default() };
    assert!(apply(&mut page, &bcdmn, Lsn(4)).unwrap());
    assert_eq!(deltas(&page), DELTAS);
    assert!(apply(&mut page, &PageOp::Remove { from: 1, to: 2 }, Lsn(5)).unwrap());
    assert_eq!(deltas(&page), b"\x00\x04abcd\x02\x04exyz\x02\x02fe\x00\x04bacd\x01\x04cdmn");
    assert!(apply(&mut page, &PageOp::Remove { from: 0, to: 2 }, Lsn(6)).unwrap());
    assert_eq!(deltas(&page), b"\x00\x04abfe\x00\x04bacd\x01\x04cdmn");
}

/// The first slots of the groups of a WiredTiger list.
fn group_slots(page: &[u8]) -> Vec<u16> {
    let list = Page::check(page, PageId(7)).unwrap().key_bytes();
    let groups = usize::from(u16::from_le_bytes([list[0], list[1]]));
    (0..groups).map(|group| u16::from_le_bytes([list[2 + 8 * group + 4], list[2 + 8 * group + 5]])).collect()
}

#[test]
fn wiredtiger_groups_are_laid_out_by_tens_and_cut_at_twenty_where_there_is_room() {
    let shape = Shape { keys: KeyListKind::WiredTiger(Instantiation::RollForward), ..SHAPE };
    let key = |i: u16| format!("key{i:03}").into_bytes();
    let mut builder = PageBuilder::new(512, &spec(shape, b"", None));
    for i in 0..24 {
        assert!(builder.push(&key(10 * i), Record::default()));
    }
    let mut page = format(shape, builder.finish());
    assert_eq!(group_slots(&page), [0, 10, 20]);
    for i in 1..10 {
        assert!(
            apply(&mut page, &PageOp::Insert { slot: 2 + i, key: &key(20 + i), record: Record::default() }, Lsn(2))
                .unwrap()
        );
        assert_eq!(group_slots(&page), [0, 10 + i, 20 + i]);
    }
    assert!(apply(&mut page, &PageOp::Insert { slot: 5, key: b"key0225", record: Record::default() }, Lsn(3)).unwrap());
    assert_eq!(group_slots(&page), [0, 10, 20, 30]);
    // The first entry of a group is removed, and the next entry takes its place.
    assert!(apply(&mut page, &PageOp::Remove { from: 10, to: 11 }, Lsn(4)).unwrap());
    assert_eq!(group_slots(&page), [0, 10, 19, 29]);
    // A whole group and the front of the next are removed.
    assert!(apply(&mut page, &PageOp::Remove { from: 9, to: 21 }, Lsn(5)).unwrap());
    assert_eq!(group_slots(&page), [0, 9, 17]);
}

#[test]
fn variable_records_are_as_documented() {
    let shape = Shape { size: 1024, records: RecordListKind::Variable, ..SHAPE };
    let entries: [(&[u8], &[u8]); 3] = [(b"compile", b"one"), (b"complex", b""), (b"compose", b"three")];
    let (.., records) = lists(shape, [b"compile", b"compute"], &entries);
    // With granule 2 there is one unused slot below the three, then the heap with the first record at its upper border.
    assert_eq!(records, b"\x0Athree\x00\x06one\0\0\x0B\0\x05\0\x04\0");
}

#[test]
fn the_shortest_divider_is_as_documented() {
    let keys: [&[u8]; 6] = [b"compile", b"complete", b"complex", b"compliant", b"compose", b"data"];
    let mut builder = PageBuilder::new(512, &spec(SHAPE, b"", None));
    for key in keys {
        assert!(builder.push(key, Record::default()));
    }
    let page = format(SHAPE, builder.finish());
    let divider = |rule| choose_split(Page::new(&page), None, rule).unwrap().separator;
    assert_eq!(divider(SeparatorRule::Full), b"compliant");
    assert_eq!(divider(SeparatorRule::Tail { radius: 500 }), b"d");
    assert_eq!(divider(SeparatorRule::Tail { radius: 300 }), b"compo");
}

#[test]
fn blocks_are_as_documented() {
    let numbers = [500u32, 501, 574, 1000, 1001].map(u32::to_be_bytes);
    let entries: Vec<(&[u8], &[u8])> = numbers.iter().map(|number| (&number[..], &b""[..])).collect();
    let list = |codec| {
        lists(Shape { keys: KeyListKind::Blocks32(BlockRule::long(codec)), ..SHAPE }, [b"", b"\xFF"], &entries).1
    };
    let index = b"\x01\0\xF4\x01\0\0\xE9\x03\0\0\0\0\0\0";
    assert_eq!(list(duramen_codec::Codec::VByte), [&index[..], b"\x00\x48\xA9\x03\x00"].concat());
    let (low, high) = ([0, 1, 0x4A, 0xF4, 0xF5], [0, 0, 0, 1, 1]);
    let block = [&low[..], &[0; 11], &high, &[0; 11]].concat();
    assert_eq!(list(duramen_codec::Codec::SimdFor), [&index[..], &[9], &block].concat());
}

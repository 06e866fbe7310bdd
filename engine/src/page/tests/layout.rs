//! The worked examples of `docs/layouts/`, byte for byte.

use super::*;

const SHAPE: Shape =
    Shape { size: 512, keys: KeyListKind::Head, records: RecordListKind::None, key_len: 0, record_len: 0 };

const WORDS: [&[u8]; 5] = [b"compile", b"complete", b"complex", b"compliant", b"compose"];

/// The fields of key list and record list of a page of those entries.
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
    assert_eq!((at, keys), (46, expected));
}

#[test]
fn plain_is_as_documented() {
    let words = WORDS.map(|word| (word, &b""[..]));
    let shape = Shape { keys: KeyListKind::Plain, ..SHAPE };
    let (at, keys, _) = lists(shape, [b"compile", b"compute"], &words);
    let heap = b"\x07ile\x08lete\x07lex\x09liant\x07ose";
    let expected = [b"pmoc".repeat(5).as_slice(), &[0, 0, 4, 0, 9, 0, 13, 0, 19, 0], heap].concat();
    assert_eq!((at, keys), (50, expected));
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

#[test]
fn variable_records_are_as_documented() {
    let shape = Shape { size: 1024, records: RecordListKind::Variable, ..SHAPE };
    let entries: [(&[u8], &[u8]); 3] = [(b"compile", b"one"), (b"complex", b""), (b"compose", b"three")];
    let (.., records) = lists(shape, [b"compile", b"compute"], &entries);
    // Granule 2: one unused slot below the three, then the heap, the first record at its upper border.
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

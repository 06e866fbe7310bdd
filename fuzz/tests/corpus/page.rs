//! Replays the corpus of the page's fuzz targets, as it is and with random damage of fixed seeds.

use crate::{put, seeds};
use duramen::Codec;
use duramen::base::{PageId, TableId};
use duramen::page::{
    BlockRule, KeyListKind, KeyPlace, NewEntry, Page, PageBuilder, PageKind, PageOp, PageSpec, Record, RecordListKind,
    heap_number, heap_page_builder, map_page, out_of_line_image, run_page, unpack,
};
use duramen_fuzz::page::{apply_op, check_page};

/// A xorshift generator: the same damage in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 as usize % end.max(1)
    }

    /// One to four bytes changed, half of the time in the front, where damage does most.
    fn damage(&mut self, data: &mut [u8]) {
        for _ in 0..=self.below(4) {
            let end = if self.below(2) == 0 { data.len() } else { data.len().min(48) };
            let at = self.below(end);
            data[at] = match self.below(3) {
                0 => data[at] ^ 1 << self.below(8),
                1 => [0, 0xFF, 0x80, 1][self.below(4)],
                _ => self.below(256) as u8,
            };
        }
    }
}

#[test]
fn sound_pages_pass_and_damaged_ones_never_panic() {
    let mut random = Random(0x9E37_79B9);
    let (mut passed, mut refused) = (0, 0);
    for page in seeds("page/check_page") {
        assert!(check_page(&page), "the corpus is of sound pages");
        for cut in 0..page.len() {
            assert!(!check_page(&page[..cut]) || cut.is_power_of_two());
        }
        for _ in 0..400 {
            let mut damaged = page.clone();
            random.damage(&mut damaged);
            *if check_page(&damaged) { &mut passed } else { &mut refused } += 1;
        }
    }
    assert!(passed > 100 && refused > 100, "{passed} passed, {refused} refused: the damage tests both");
}

#[test]
fn operations_on_sound_and_damaged_pages_never_panic() {
    let mut random = Random(0x1234_5678);
    for case in seeds("page/apply_op") {
        assert!(apply_op(&case) >= 4, "the corpus applies its operations");
        for _ in 0..200 {
            let mut damaged = case.clone();
            random.damage(&mut damaged);
            apply_op(&damaged);
        }
    }
}

/// The entry of a key of the corpus in a list whose keys are out of line. `next` is the key after it.
fn out_of_line_entry(keys: KeyListKind, before: &str, text: &str, next: Option<&str>) -> Vec<u8> {
    let place = KeyPlace { page: PageId(70 + u32::from(text.as_bytes()[3])), number: 3 };
    out_of_line_image(keys, before.as_bytes(), text.as_bytes(), next.map(str::as_bytes), place)
}

/// A heap page.
fn heap_page() -> Vec<u8> {
    let mut builder = heap_page_builder(512, PageId(5), TableId(2));
    for i in 0..9u16 {
        assert!(builder.push(&heap_number(i), Record::inline(format!("key{i}5{i}").as_bytes())));
    }
    builder.finish()
}

/// A key of the corpus: "key199" itself or, in a list of integers, 199; "key2" stands for 200.
fn key(keys: KeyListKind, text: &str) -> Vec<u8> {
    let Some(len) = keys.key_len() else { return text.as_bytes().to_vec() };
    let number: u64 = format!("{:0<3}", text.trim_start_matches("key")).parse().unwrap();
    number.to_be_bytes()[8 - len..].to_vec()
}

fn page(kind: PageKind, keys: KeyListKind, records: RecordListKind) -> Vec<u8> {
    let inner = kind == PageKind::Inner;
    let records = if inner { RecordListKind::Fixed } else { records };
    let fences = ["key000", "key999"].map(|text| key(keys, text));
    let spec = PageSpec {
        id: PageId(5),
        table: TableId(2),
        kind,
        level: u8::from(inner),
        keys,
        records,
        lower: &fences[0],
        upper: Some(&fences[1]),
        right: PageId(if inner { 0 } else { 6 }),
    };
    let mut builder = PageBuilder::new(512, &spec);
    for i in 0..9u8 {
        let text = |i: u8| format!("key{i}5{i}");
        let key = match keys.keys_are_out_of_line() {
            true => out_of_line_entry(keys, &text(i.saturating_sub(1))[..if i == 0 { 3 } else { 6 }], &text(i), None),
            false => key(keys, &text(i)),
        };
        let record = match records {
            RecordListKind::None => Record::default(),
            RecordListKind::Fixed => Record::inline(&[7, 0, 0, 1]),
            RecordListKind::Variable if i == 3 => Record { bytes: &[9; 12], large: true },
            RecordListKind::Variable => Record::inline(&key[..usize::from(i % 5)]),
        };
        assert!(builder.push(&key, record));
    }
    builder.finish()
}

/// The name of a case: `leaf-wiredtiger-both-none`.
fn named(page: &str, keys: KeyListKind, records: &str) -> String {
    let keys = format!("{keys:?}").replace('(', "-").replace(')', "");
    format!("{page}-{keys}{records}").to_lowercase()
}

/// Writes the corpus anew after a change of the format: `cargo test -p duramen-fuzz -- --ignored`.
#[test]
#[ignore = "changes the corpus"]
fn write_pages() {
    let mut pages = vec![("run".to_owned(), run_page(PageId(5), TableId(2), PageId(6), b"a run's payload"))];
    pages.push(("map".to_owned(), map_page(512, PageId(5))));
    pages.push(("heap".to_owned(), heap_page()));
    // Of PkB's lists, which differ in the length of a part alone, the usual ones and the longest.
    let few = |keys: &KeyListKind| !matches!(keys, KeyListKind::Pkb(part) | KeyListKind::PkbHeap(part) if ![2, 5, 8].contains(part));
    for keys in KeyListKind::ALL.into_iter().filter(|keys| keys.key_len().is_none() && few(keys)) {
        for records in [RecordListKind::None, RecordListKind::Fixed, RecordListKind::Variable] {
            pages.push((named("leaf", keys, &format!("-{records:?}")), page(PageKind::Leaf, keys, records)));
        }
        if !keys.keys_are_out_of_line() {
            pages.push((named("inner", keys, ""), page(PageKind::Inner, keys, RecordListKind::Fixed)));
        }
    }
    for rule in
        Codec::ALL.into_iter().flat_map(|codec| [Some(BlockRule::long(codec)), BlockRule::short(codec)]).flatten()
    {
        let name = format!("leaf-{}{}", rule.codec(), if rule.is_short() { "-short" } else { "" });
        for (keys, records) in [
            (KeyListKind::Blocks32(rule), RecordListKind::None),
            (KeyListKind::Blocks64(rule), RecordListKind::Fixed),
            (KeyListKind::Blocks32(rule), RecordListKind::Variable),
        ] {
            let bits = 8 * keys.key_len().unwrap();
            pages.push((format!("{name}-{bits}-{records:?}").to_lowercase(), page(PageKind::Leaf, keys, records)));
        }
    }
    for (name, packed) in pages {
        let mut page = vec![0; 512];
        unpack(&packed, &mut page).unwrap();
        put("page/check_page", &name, &page);
        let mut case = vec![1];
        case.extend((packed.len() as u16).to_le_bytes());
        case.extend(&packed);
        let kind = Page::new(&page).keys();
        let keys = ["key199", "key25", "key7", "key699"].map(|text| match kind.keys_are_out_of_line() {
            true => out_of_line_entry(kind, "key1", text, Some("key9")),
            false => key(kind, text),
        });
        for op in operations(Page::new(&page), &packed, &keys) {
            op.encode(&mut case);
        }
        put("page/apply_op", &name, &case);
    }
}

fn operations<'a>(page: Page<'a>, packed: &'a [u8], keys: &'a [Vec<u8>; 4]) -> Vec<PageOp<'a>> {
    let format = || PageOp::Format { packed: packed.into() };
    if page.kind() == PageKind::Map {
        let bits = [PageOp::SetBits { from: 9, count: 70 }, PageOp::ClearBits { from: 20, count: 3 }];
        return bits.into_iter().chain([format(), PageOp::SetBits { from: 2047, count: 1 }]).collect();
    }
    let right = PageOp::SetRight { right: PageId(8) };
    if page.kind() == PageKind::Run {
        return vec![right.clone(), format(), right, format()];
    }
    let record = page.record(0);
    if page.kind() == PageKind::Heap {
        return vec![
            PageOp::Remove { from: 2, to: 3 },
            PageOp::Insert { slot: 2, key: &[0, 2], record },
            PageOp::AddToRecord { slot: 0, offset: 0, delta: 1 },
            PageOp::Remove { from: 0, to: 9 },
            PageOp::Insert { slot: 0, key: &[0, 0], record },
            format(),
            PageOp::Insert { slot: 9, key: &[0, 9], record },
        ];
    }
    vec![
        PageOp::Insert { slot: 2, key: &keys[0], record },
        PageOp::Replace { slot: 4, record: page.record(2) },
        PageOp::Replace { slot: 5, record: Record::inline(&[0xFF; 9]) },
        PageOp::AddToRecord { slot: 5, offset: 1, delta: -3 },
        PageOp::AddToRecord { slot: 5, offset: 1, delta: i64::MAX },
        PageOp::Remove { from: 6, to: 7 },
        PageOp::Remove { from: 0, to: 2 },
        PageOp::Keep { from: 1, to: 5, lower: &keys[1], upper: Some(&keys[2]), right: PageId(9) },
        right,
        PageOp::Insert { slot: 4, key: &keys[3], record },
        PageOp::InsertRun { entries: [2, 5].map(|slot| NewEntry { slot, key: &keys[0], record }).to_vec().into() },
        format(),
    ]
}

//! Tests leaves that keep their keys out of line against a sorted list of keys. After inserts, removals and cuts each
//! part still matches its key, and a search reads at most one key. Also tests the heap pages with the keys.

use super::*;
use crate::base::bytes;

const SIZE: usize = 1024;

#[test]
fn the_paper_s_keys_are_as_documented() {
    let kind = KeyListKind::PkbHeap(2);
    let keys: [&[u8]; 6] = [b"abcd", b"abefg", b"abexyz", b"abfe", b"bacd", b"bcdmn"];
    let mut builder = PageBuilder::new(SIZE, &PageSpec { records: RecordListKind::None, ..spec(kind, b"", None) });
    let mut before = &b""[..];
    for (number, key) in (0..).zip(keys) {
        let place = KeyPlace { page: PageId(9), number };
        assert!(builder.push(&out_of_line_image(kind, before, key, None, place), Record::default()));
        before = key;
    }
    let packed = builder.finish();
    let list = b"\0\0\0\0\
        \0\0ab\x09\0\0\0\0\0\x02\0ef\x09\0\0\0\x01\0\x03\0xy\x09\0\0\0\x02\0\
        \x02\0fe\x09\0\0\0\x03\0\0\0ba\x09\0\0\0\x04\0\x01\0cd\x09\0\0\0\x05\0";
    assert_eq!(packed[limits::PAGE_HEADER..], list[..]);
}

fn spec<'a>(keys: KeyListKind, lower: &'a [u8], upper: Option<&'a [u8]>) -> PageSpec<'a> {
    let (id, table, right) = (PageId(5), TableId(2), PageId::NONE);
    PageSpec { id, table, kind: PageKind::Leaf, level: 0, keys, records: RecordListKind::Variable, lower, upper, right }
}

#[derive(Clone, Debug)]
enum Step {
    Insert(Vec<u8>),
    Remove(usize, usize),
    /// Cuts the leaf there and continues with the left half or the right one.
    Cut(usize, bool),
}

fn any_key() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![3 => Just(0u8), 3 => Just(b'a'), 2 => Just(b'b'), 1 => any::<u8>()];
    proptest::collection::vec(byte, 0..12)
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => any_key().prop_map(Step::Insert),
        2 => (0usize..40, 1usize..4).prop_map(|(from, count)| Step::Remove(from, count)),
        1 => (0usize..40, any::<bool>()).prop_map(|(at, left)| Step::Cut(at, left)),
    ]
}

struct Leaf {
    kind: KeyListKind,
    page: Vec<u8>,
    lower: Vec<u8>,
    upper: Option<Vec<u8>>,
    keys: Vec<(Vec<u8>, KeyPlace)>,
    lsn: u64,
}

impl Leaf {
    fn new(kind: KeyListKind) -> Leaf {
        let mut page = vec![0; SIZE];
        unpack(&PageBuilder::new(SIZE, &spec(kind, b"", None)).finish(), &mut page).unwrap();
        Leaf { kind, page, lower: Vec::new(), upper: None, keys: Vec::new(), lsn: 0 }
    }

    fn before(&self, slot: usize) -> &[u8] {
        slot.checked_sub(1).map_or(&self.lower, |left| &self.keys[left].0)
    }

    fn apply(&mut self, op: &PageOp<'_>) -> bool {
        self.lsn += 1;
        apply(&mut self.page, op, Lsn(self.lsn)).unwrap()
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Insert(key) => {
                let within = key >= self.lower && self.upper.as_ref().is_none_or(|upper| key < *upper);
                let found = self.keys.binary_search_by(|(there, _)| there.cmp(&key));
                let (true, Err(slot)) = (within, found) else { return };
                let place = KeyPlace { page: PageId(7 + self.lsn as u32 / 5), number: self.lsn as u16 };
                let next = self.keys.get(slot).map(|(next, _)| next.as_slice());
                let image = out_of_line_image(self.kind, self.before(slot), &key, next, place);
                let record = Record::inline(&key);
                if self.apply(&PageOp::Insert { slot: slot as u16, key: &image, record }) {
                    self.keys.insert(slot, (key, place));
                }
            }
            Step::Remove(from, count) if from < self.keys.len() => {
                let to = (from + count).min(self.keys.len());
                assert!(self.apply(&PageOp::Remove { from: from as u16, to: to as u16 }));
                self.keys.drain(from..to);
            }
            Step::Cut(at, left) if at > 0 && at < self.keys.len() => {
                let separator =
                    self.keys[at].0[..bytes::common_prefix(&self.keys[at - 1].0, &self.keys[at].0) + 1].to_vec();
                if left {
                    let (lower, to) = (self.lower.clone(), at as u16);
                    let upper = Some(separator.as_slice());
                    assert!(self.apply(&PageOp::Keep { from: 0, to, lower: &lower, upper, right: PageId::NONE }));
                    self.keys.truncate(at);
                    self.upper = Some(separator);
                } else {
                    let mut builder = PageBuilder::new(SIZE, &spec(self.kind, &separator, self.upper.as_deref()));
                    assert!(builder.push_entries(Page::new(&self.page), at..self.keys.len(), None));
                    assert!(self.apply(&PageOp::Format { packed: builder.finish().into() }));
                    self.keys.drain(..at);
                    self.lower = separator;
                }
            }
            Step::Remove(..) | Step::Cut(..) => {}
        }
    }

    fn check(&self, probe: &[u8]) {
        let page = Page::check(&self.page, PageId(5)).unwrap();
        assert_eq!(page.count(), self.keys.len());
        for (slot, (key, place)) in self.keys.iter().enumerate() {
            assert_eq!((page.key_place(slot), page.record(slot).bytes), (Some(*place), key.as_slice()));
            assert!(page.part_is(slot, self.before(slot), key), "slot {slot}");
        }
        let probe = (probe >= self.lower.as_slice()).then_some(probe);
        for probe in self.keys.iter().map(|(key, _)| key.as_slice()).chain(probe) {
            let mut reads = 0;
            let found = page.search_out_of_line(&self.lower, probe, |slot| {
                reads += 1;
                Ok::<_, ()>(&self.keys[slot].0)
            });
            assert_eq!(found, Ok(Some(self.keys.binary_search_by(|(key, _)| key.as_slice().cmp(probe)))));
            assert!(reads <= 1);
        }
        let named = |open: PageId| self.keys.iter().any(|(_, place)| place.page == open);
        assert!(page.open_heap_page().is_none_or(named));
    }
}

proptest! {
    #[test]
    fn every_part_agrees_with_its_key_after_changes(
        part in 1u8..=KeyListKind::LONGEST_PART,
        steps in proptest::collection::vec((step(), any_key()), 0..60),
    ) {
        let mut leaf = Leaf::new(KeyListKind::PkbHeap(part));
        for (step, probe) in steps {
            leaf.step(step);
            leaf.check(&probe);
        }
    }

    #[test]
    fn a_heap_page_gives_its_keys_the_lowest_numbers(removals in proptest::collection::vec(any::<prop::sample::Index>(), 0..9)) {
        let mut page = vec![0; SIZE];
        unpack(&heap_page_builder(SIZE, PageId(5), TableId(2)).finish(), &mut page).unwrap();
        let mut held = std::collections::BTreeMap::new();
        let fill = |page: &mut Vec<u8>, held: &mut std::collections::BTreeMap<u16, Vec<u8>>, turn: usize| {
            let (slot, number) = Page::new(page).free_number().unwrap();
            assert_eq!(Some(number), (0..).find(|number| !held.contains_key(number)));
            let key = format!("key {turn} of number {number}").into_bytes();
            let op = PageOp::Insert { slot: slot as u16, key: &heap_number(number), record: Record::inline(&key) };
            let done = apply(page, &op, Lsn(1)).unwrap();
            if done {
                held.insert(number, key);
            }
            done
        };
        while fill(&mut page, &mut held, 0) {}
        assert!(held.len() > 20);
        for (turn, removal) in removals.iter().enumerate() {
            let number = *held.keys().nth(removal.index(held.len())).unwrap();
            let (slot, key) = Page::new(&page).heap_key(number).unwrap();
            assert_eq!(key, held[&number]);
            let (from, to) = (slot as u16, slot as u16 + 1);
            assert!(apply(&mut page, &PageOp::Remove { from, to }, Lsn(2)).unwrap());
            held.remove(&number);
            assert_eq!(Page::new(&page).heap_key(number), None);
            if turn % 3 == 2 {
                fill(&mut page, &mut held, turn);
            }
        }
        let page = Page::check(&page, PageId(5)).unwrap();
        for (number, key) in &held {
            assert_eq!(page.heap_key(*number).map(|(_, key)| key), Some(key.as_slice()));
        }
    }
}

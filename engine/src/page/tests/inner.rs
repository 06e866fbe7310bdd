//! Tests inner pages against a sorted Vec: inserts and removes separators, short ones and others.

use super::*;

/// Separators of realistic lengths, and others.
fn separator() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        6 => proptest::collection::vec(prop_oneof![4 => b'0'..=b'9', 1 => Just(0u8)], 1..5),
        1 => free_key(12),
    ]
}

#[derive(Clone, Debug)]
enum Step {
    Insert(Vec<u8>),
    Remove(prop::sample::Index, usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => separator().prop_map(Step::Insert),
        1 => (any::<prop::sample::Index>(), 1usize..4).prop_map(|(at, count)| Step::Remove(at, count)),
    ]
}

/// Separators and children; the first pair is slot 0.
type Model = Vec<(Vec<u8>, u32)>;

fn child(id: u32) -> [u8; 4] {
    id.to_le_bytes()
}

fn built(size: usize, keys: KeyListKind, model: &Model) -> Option<Vec<u8>> {
    let shape = Shape { size, keys, records: RecordListKind::Fixed, key_len: 0, record_len: 4 };
    let spec = PageSpec { kind: PageKind::Inner, level: 1, right: PageId::NONE, ..spec(shape, b"", None) };
    let mut builder = PageBuilder::new(size, &spec);
    let all = model.iter().all(|(key, id)| builder.push(key, Record::inline(&child(*id))));
    let used = builder.used();
    all.then(|| {
        let packed = builder.finish();
        assert_eq!(packed.len(), used, "the packed page has the reported length");
        format(shape, packed)
    })
}

fn assert_leads(page: &[u8], model: &Model, probe: &[u8]) {
    let page = Page::check(page, PageId(7)).unwrap();
    let mut key = Vec::new();
    assert_eq!(page.count(), model.len());
    for (slot, (expected, id)) in model.iter().enumerate().skip(1) {
        page.key_into(slot, &mut key);
        assert_eq!((&key, page.key_len(slot), page.child(slot)), (expected, expected.len(), PageId(*id)));
        assert_eq!(page.search(expected), Ok(slot));
    }
    let place = model[1..].partition_point(|(key, _)| key.as_slice() <= probe);
    assert_eq!(page.child_for(probe), place, "the child of {probe:?}");
}

fn is_short(separator: &[u8]) -> bool {
    separator.len() <= 4 && separator.last() != Some(&0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn inserted_and_removed_separators_lead_to_their_children(
        shift in 8usize..14,
        keys in proptest::sample::select(vec![KeyListKind::Head, KeyListKind::Plain]),
        steps in proptest::collection::vec(step(), 0..120),
        probe in separator(),
    ) {
        let mut model: Model = vec![(Vec::new(), 1000)];
        let mut page = built(1 << shift, keys, &model).unwrap();
        for (step, id) in steps.into_iter().zip(1u32..) {
            match step {
                Step::Insert(key) if !key.is_empty() => {
                    let Err(at) = model[1..].binary_search_by(|(there, _)| there.cmp(&key)) else { continue };
                    let (before, slot) = (page.clone(), at + 1);
                    let bytes = child(id);
                    let record = Record::inline(&bytes);
                    let would = would_insert(Page::new(&page), slot, &key, record).unwrap();
                    let op = PageOp::Insert { slot: slot as u16, key: &key, record };
                    prop_assert_eq!(apply(&mut page, &op, Lsn(2)).unwrap(), would);
                    if would {
                        model.insert(slot, (key, id));
                    } else {
                        prop_assert_eq!(&page, &before);
                    }
                }
                Step::Remove(at, count) if model.len() > 1 => {
                    let from = 1 + at.index(model.len() - 1);
                    let to = (from + count).min(model.len());
                    let op = PageOp::Remove { from: from as u16, to: to as u16 };
                    prop_assert!(apply(&mut page, &op, Lsn(3)).unwrap());
                    model.drain(from..to);
                }
                _ => {}
            }
            assert_leads(&page, &model, &probe);
        }
        // A page that is built again takes no more room, and has no slots if the separators allow it.
        let anew = built(1 << shift, keys, &model).unwrap();
        assert_leads(&anew, &model, &probe);
        let (anew, there) = (Page::new(&anew), Page::new(&page));
        prop_assert!(anew.used() <= there.used());
        let dense = keys == KeyListKind::Head && model.iter().all(|(key, _)| is_short(key));
        prop_assert_eq!(anew.used() == anew.front() + anew.record_list_bytes() + 4 * model.len(), dense);
    }
}

#[test]
fn short_separators_take_four_bytes_until_a_longer_one_is_inserted() {
    let model: Model =
        [&b""[..], b"0172", b"11", b"113"].iter().zip(1u32..).map(|(key, id)| (key.to_vec(), id)).collect();
    let mut page = built(512, KeyListKind::Head, &model).unwrap();
    let list = |page: &[u8]| Page::new(page).key_bytes().to_vec();
    assert_eq!(list(&page), b"\0\0\0\0\x32\x37\x31\x30\0\0\x31\x31\0\x33\x31\x31");
    let child = child(9);
    let op = PageOp::Insert { slot: 1, key: b"01\0", record: Record::inline(&child) };
    assert!(apply(&mut page, &op, Lsn(2)).unwrap());
    let heads = b"\0\0\0\0\0\0\x31\x30\x32\x37\x31\x30\0\0\x31\x31\0\x33\x31\x31";
    let (slots, heap) = (b"\0\0\x04\0\x01\0\x02\0\x03\0", b"\0\x04\x02\x03\x03");
    assert_eq!(list(&page), [&heads[..], slots, heap].concat());
}

#[test]
fn merged_dense_pages_stay_dense_if_all_suffixes_are_short() {
    let model = |all: &[(&[u8], u32)]| -> Model { all.iter().map(|(key, id)| (key.to_vec(), *id)).collect() };
    let left = model(&[(b"", 1), (b"12", 2), (b"3", 3)]);
    for (right, dense) in [
        (model(&[(b"", 10), (b"51", 11), (b"7", 12)]), true),
        (model(&[(b"", 10), (b"512345", 11), (b"7", 12)]), false),
        (model(&[(b"", 10), (b"51\0", 11), (b"7", 12)]), false),
    ] {
        let [a, b] = [&left, &right].map(|model| built(512, KeyListKind::Head, model).unwrap());
        let shape =
            Shape { size: 512, keys: KeyListKind::Head, records: RecordListKind::Fixed, key_len: 0, record_len: 4 };
        let spec = PageSpec { kind: PageKind::Inner, level: 1, right: PageId::NONE, ..spec(shape, b"", None) };
        let mut builder = PageBuilder::new(512, &spec);
        assert!(builder.push_entries(Page::new(&a), 0..3, None));
        assert!(builder.push_entries(Page::new(&b), 0..3, Some(b"4")));
        let page = format(shape, builder.finish());
        let mut both = [left.clone(), right].concat();
        both[3].0 = b"4".to_vec();
        for probe in [&b"0"[..], b"12", b"2", b"4", b"51", b"512", b"6", b"8"] {
            assert_leads(&page, &both, probe);
        }
        assert_eq!(Page::new(&page).key_bytes().len() == 4 * both.len(), dense);
    }
}

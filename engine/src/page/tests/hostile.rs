//! Hostile bytes: random ones, and sound pages with some bytes changed. No function panics, whether a page passes its
//! check or not. A page that passes gives answers within its bounds.

use super::ops::any_op;
use super::*;

/// Calls every accessor.
fn read_all(page: Page<'_>, probe: &[u8]) {
    let mut out = Vec::new();
    page.upper_fence_into(&mut out);
    page.packed_into(&mut out);
    let mut copy = vec![0xAA; page.bytes().len()];
    page.copy_into(&mut copy);
    let at = page.search(probe).unwrap_or_else(|at| at);
    assert!(at <= page.count());
    let _ = (page.child_for(probe), page.below_upper(probe), page.first_clear(3), page.payload(), page.bit(8));
    for slot in (0..page.count().min(300)).chain([page.count(), usize::from(u16::MAX)]) {
        page.key_into(slot, &mut out);
        let _ = (
            page.record(slot),
            page.child(slot),
            page.entry_bytes(slot),
            page.key_len(slot),
            page.first_longer(slot, 9),
        );
    }
    let mut window = KeyWindow::default();
    for slot in (0..page.count().min(300)).chain((0..page.count().min(300)).rev()) {
        let end = window.fetch(page, slot);
        let _ = (window.get(slot), window.get(end));
    }
    for rule in [SeparatorRule::Full, SeparatorRule::TAIL] {
        let _ = choose_split(page, None, rule);
        let _ = choose_split(page, Some((at, probe, 5)), rule);
    }
}

fn hostile_page() -> impl Strategy<Value = Vec<u8>> {
    let small = |mut shape: Shape| {
        shape.size = shape.size.min(1024);
        shape
    };
    let tree = shape().prop_map(small).prop_flat_map(|shape| {
        (fences(shape), proptest::collection::vec(entry(shape), 0..60), any::<bool>()).prop_map(
            move |((lower, upper), all, inner)| {
                let mut spec = spec(shape, &lower, upper.as_deref());
                if inner {
                    spec = PageSpec { kind: PageKind::Inner, level: 1, records: RecordListKind::Fixed, ..spec };
                }
                let mut builder = PageBuilder::new(shape.size, &spec);
                for entry in sorted(all, &lower, upper.as_deref()) {
                    let child = Record::inline(&[1, 2, 3, 4]);
                    builder.push(&entry.0, if inner { child } else { as_record(&entry) });
                }
                format(shape, builder.finish())
            },
        )
    });
    let special =
        prop_oneof![Just(run_page(PageId(7), TableId(2), PageId(8), &[5; 100])), Just(map_page(256, PageId(7))),]
            .prop_map(|packed| {
                let mut page = vec![0; 256];
                unpack(&packed, &mut page).unwrap();
                page
            });
    let damage = proptest::collection::vec((any::<prop::sample::Index>(), 0usize..64, any::<u8>()), 0..4);
    let damaged = (prop_oneof![8 => tree, 1 => special], damage).prop_map(|(mut page, damage)| {
        for (at, field, value) in damage {
            // Damage to the header has the most effects.
            let at = if field < limits::PAGE_HEADER { field } else { at.index(page.len()) };
            page[at] = value;
        }
        page
    });
    let random = (0usize..700).prop_flat_map(|len| proptest::collection::vec(any::<u8>(), len));
    prop_oneof![10 => damaged, 1 => random]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn no_bytes_and_no_operation_panic(
        page in hostile_page(),
        ops in proptest::collection::vec(any_op(), 0..6),
        probe in free_key(40),
    ) {
        let mut page = page;
        let _ = Page::check(&page, PageId(7));
        read_all(Page::new(&page), &probe);
        for op in ops {
            let before = page.clone();
            match apply(&mut page, &op.op(), Lsn(12)) {
                Ok(true) => prop_assert_eq!(Page::new(&page).lsn(), Lsn(12)),
                Ok(false) | Err(_) => prop_assert!(page == before, "a refused operation changed the page"),
            }
            read_all(Page::new(&page), &probe);
        }
    }

    #[test]
    fn a_page_with_a_changed_byte_passes_the_check_only_if_it_is_valid(page in hostile_page()) {
        if let Ok(page) = Page::check(&page, PageId(7)) {
            let mut packed = Vec::new();
            page.packed_into(&mut packed);
            let mut back = vec![1; page.bytes().len()];
            unpack(&packed, &mut back).unwrap();
            prop_assert_eq!(back, page.bytes(), "a page that passes the check has no bytes beside its parts");
            let all = entries(page);
            if page.is_leaf() && all.iter().all(|entry| entry.0.len() <= limits::max_inline_key(page.bytes().len())) {
                for (slot, entry) in all.iter().enumerate() {
                    prop_assert_eq!(page.search(&entry.0), Ok(slot));
                }
            }
        }
    }
}

#[test]
fn an_entry_outside_of_its_heap_is_refused_before_the_page_changes() {
    let shape =
        Shape { size: 512, keys: KeyListKind::Head, records: RecordListKind::Variable, key_len: 0, record_len: 0 };
    let mut builder = PageBuilder::new(shape.size, &spec(shape, b"", None));
    for key in [b"ash", b"elm", b"oak"] {
        assert!(builder.push(key, Record::inline(b"tree")));
    }
    let page = format(shape, builder.finish());
    let keys = Page::new(&page).keys_at();
    let (offset, distance) = (keys + 4 * 3 + 2, page.len() - 2 * 2);
    let operations: [PageOp<'_>; 3] = [
        PageOp::Remove { from: 1, to: 2 },
        PageOp::Remove { from: 2, to: 3 },
        PageOp::Replace { slot: 1, record: Record::inline(b"") },
    ];
    // Far outside of both heaps.
    for (field, number, refused) in [(offset, 400u16, [true, false, false]), (distance, 400, [true, false, true])] {
        let mut damaged = page.clone();
        damaged[field..field + 2].copy_from_slice(&number.to_le_bytes());
        for (op, refused) in operations.iter().zip(refused) {
            let mut changed = damaged.clone();
            let done = apply(&mut changed, op, Lsn(12));
            assert_eq!(matches!(done, Err(crate::base::Error::Corrupt { .. })), refused, "{op:?}: {done:?}");
            assert!(!refused || changed == damaged, "{op:?}");
        }
    }
}

#[test]
fn a_page_of_an_unknown_key_list_is_not_changed() {
    let shape = Shape { size: 512, keys: KeyListKind::USUAL, records: RecordListKind::None, key_len: 0, record_len: 0 };
    let mut page = empty(shape, b"", None);
    for tag in [[0, 0, 0], [u8::MAX; 3], [2, 0, 1]] {
        page[28..31].copy_from_slice(&tag);
        let before = page.clone();
        let done = apply(&mut page, &PageOp::Insert { slot: 0, key: b"oak", record: Record::inline(b"") }, Lsn(12));
        assert!(done.is_err_and(|error| error.to_string().contains("is unknown")) && page == before, "{tag:?}");
    }
}

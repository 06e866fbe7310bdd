//! Tests with damaged pages: whatever bytes a page has, and wherever its links lead, every call returns a result or an
//! error. No call panics, loops, or takes a latch twice.

use super::keys::any_key;
use super::*;
use crate::base::{Error, PageId, limits};
use crate::page::Page;
use crate::tree::{KeyRange, LeafCopy, LeafTarget, PageRead, PageWrite};
use proptest::prelude::*;

fn grown(list: KeyListKind, keys: &[Vec<u8>]) -> (VecStore, Tree) {
    let store = VecStore::new(256);
    let tree = new_tree(&store, layout(list, RecordListKind::Variable, SeparatorRule::TAIL));
    for key in keys {
        put(&tree, &store, key, &key[..key.len().min(9)]);
    }
    (store, tree)
}

/// Calls every function that reads, and ignores the results.
fn read_all(tree: &Tree, store: &VecStore, keys: &[Vec<u8>]) {
    let mut leaf = LeafCopy::new();
    for key in keys {
        let _ = tree.get(store, key, |_, record| record.map(|r| r.bytes.len()));
        let _ = leaf.load(tree, store, LeafTarget::Before(key));
        let _ = leaf.load(tree, store, LeafTarget::Covering(key));
    }
    for forward in [true, false] {
        let mut cursor = TreeCursor::new(*tree, store);
        let _ = if forward { cursor.seek_first() } else { cursor.seek_last() };
        while let Ok(Some(_)) = if forward { cursor.next_entry() } else { cursor.prev_entry() } {}
    }
    let _ = tree.verify(store, &mut |_| ());
    let _ = count_subtree(tree, store, tree.root);
}

/// Calls every function that writes.
fn write_all(tree: &Tree, store: &VecStore, keys: &[Vec<u8>]) {
    for (at, key) in keys.iter().enumerate() {
        let _ = match at % 3 {
            0 => tree.put(store, key, Record::inline(&[7; 20]), |_| Ok(())),
            _ => tree.remove(store, key, |_| Ok(())),
        };
    }
    if let [from, .., to] = keys {
        let from = std::ops::Bound::Included(from.min(to).as_slice());
        let _ = tree.remove_range(store, &KeyRange::of(from, std::ops::Bound::Excluded(to.as_slice())), |_| Ok(()));
    }
    let _ = tree.free_subtree(store, tree.root, |freed| freed >= 5, |records| Ok(records.len()));
}

proptest! {
    #![proptest_config(super::model::cases())]

    #[test]
    fn damaged_pages_give_errors_only(
        list in prop::sample::select(free_lists()),
        keys in prop::collection::vec(any_key(), 1..150),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u8>()), 1..12),
    ) {
        let (store, tree) = grown(list, &keys);
        let pages: Vec<PageId> = store.allocated().into_iter().collect();
        for (page, at, byte) in damage {
            // The front is damaged more often: headers, fences and heads refer to other places.
            let at = if byte % 2 == 0 { at.index(60) } else { at.index(256) };
            store.overwrite(*page.get(&pages), |page| page[at] = byte);
        }
        read_all(&tree, &store, &keys);
        write_all(&tree, &store, &keys);
        read_all(&tree, &store, &keys);
    }

    #[test]
    fn swapped_pages_give_errors_only(
        keys in prop::collection::vec(any_key(), 20..150),
        swaps in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..4),
    ) {
        let (store, tree) = grown(KeyListKind::Head, &keys);
        let pages: Vec<PageId> = store.allocated().into_iter().collect();
        for (from, to) in swaps {
            let (from, to) = (*from.get(&pages), *to.get(&pages));
            let bytes = store.read(from).unwrap().to_vec();
            // The page id is right, so only the pages around it show that it is the wrong page.
            store.overwrite(to, |page| {
                page.copy_from_slice(&bytes);
                page[8..12].copy_from_slice(&to.0.to_le_bytes());
            });
        }
        read_all(&tree, &store, &keys);
        write_all(&tree, &store, &keys);
    }
}

fn three_levels() -> (VecStore, Tree, Vec<Vec<u8>>) {
    let keys: Vec<Vec<u8>> = (0..600u32).map(|n| format!("{n:06}").into_bytes()).collect();
    let (store, tree) = grown(KeyListKind::Head, &keys);
    assert!(crate::page::Page::new(&store.read(tree.root).unwrap()).level() >= 2);
    (store, tree, keys)
}

fn corrupt_get(tree: &Tree, store: &VecStore, key: &[u8]) -> bool {
    matches!(tree.get(store, key, |_, _| ()), Err(Error::Corrupt { .. }))
}

#[test]
fn a_page_that_leads_back_up_is_an_error() {
    let (store, tree, keys) = three_levels();
    let child = crate::page::Page::new(&store.read(tree.root).unwrap()).child(0);
    for target in [child, tree.root, PageId::NONE, PageId(30_000)] {
        // The first child id of an inner page ends two bytes before the end of the page, where the record size is.
        store.overwrite(child, |page| page[250..254].copy_from_slice(&target.0.to_le_bytes()));
        assert!(corrupt_get(&tree, &store, &keys[0]), "{target}");
        let stats = tree.verify(&store, &mut |_| ()).unwrap();
        assert!(!stats.problems.is_empty(), "{target}");
    }
}

#[test]
fn another_tables_page_is_an_error() {
    let (store, tree, keys) = three_levels();
    let child = crate::page::Page::new(&store.read(tree.root).unwrap()).child(0);
    store.overwrite(child, |page| page[12] = 8);
    assert!(corrupt_get(&tree, &store, &keys[0]));
}

#[test]
fn a_corrupt_leaf_costs_only_its_range() {
    let (store, tree, keys) = three_levels();
    let (id, count) = tree.leaf_for(&store, &keys[300], |leaf| (leaf.id(), leaf.count())).unwrap();
    let mut lost = LeafCopy::new();
    lost.load(&tree, &store, LeafTarget::Covering(&keys[300])).unwrap();
    store.overwrite(id, |page| page.fill(0xEE));
    let stats = tree.verify(&store, &mut |_| ()).unwrap();
    assert_eq!(stats.entries() as usize + count, keys.len());
    let [problem] = stats.problems.as_slice() else { panic!("{:?}", stats.problems) };
    assert_eq!((problem.page, problem.lower.as_slice()), (id, lost.lower()));
    assert_eq!(problem.upper.as_deref(), lost.upper());
    for key in &keys {
        let within = lost.lower() <= key.as_slice() && lost.upper().is_none_or(|upper| key.as_slice() < upper);
        assert_eq!(corrupt_get(&tree, &store, key), within);
    }
}

#[test]
fn a_corrupt_neighbour_does_not_prevent_a_removal() {
    let (store, tree, keys) = three_levels();
    let leaf = |key: &[u8]| tree.leaf_for(&store, key, |leaf| leaf.id());
    let broken = leaf(&keys[300]).unwrap();
    store.overwrite(broken, |page| page.fill(0xEE));
    let mut lost = 0;
    for key in &keys {
        match tree.remove(&store, key, |_| Ok(())) {
            Ok(removed) => assert!(removed),
            Err(error) => {
                assert!(matches!(error, Error::Corrupt { page, .. } if page == broken), "{error}");
                lost += 1;
            }
        }
    }
    assert!((1..40).contains(&lost), "{lost}");
    assert_eq!(tree.verify(&store, &mut |_| ()).unwrap().entries(), 0);
}

#[test]
fn a_run_that_is_not_the_keys_is_an_error() {
    let store = VecStore::new(512);
    let tree = new_tree(&store, layout(KeyListKind::Head, RecordListKind::None, SeparatorRule::TAIL));
    let key = vec![b'x'; 3000];
    put(&tree, &store, &key, b"");
    let run = *store.allocated().last().unwrap();
    store.overwrite(run, |page| page[100] ^= 1);
    assert!(corrupt_get(&tree, &store, &key));
    assert_eq!(tree.verify(&store, &mut |_| ()).unwrap().problems.len(), 1);
    let leaf = store.latch(run).unwrap();
    drop(leaf);
    store.overwrite(run, |page| page.fill(0));
    assert!(corrupt_get(&tree, &store, &key));
}

#[test]
fn a_leaf_whose_split_needs_a_corrupt_run_cannot_be_split() {
    let store = VecStore::new(512);
    let tree = new_tree(&store, layout(KeyListKind::Head, RecordListKind::None, SeparatorRule::TAIL));
    let key = |last: u8| [vec![b'x'; 600], vec![last]].concat();
    put(&tree, &store, &key(1), b"");
    let run = *store.allocated().last().unwrap();
    put(&tree, &store, &key(2), b"");
    assert!(tree.can_split_leaf(&store, tree.root, b"").unwrap());
    store.overwrite(run, |page| page[100] ^= 1);
    assert!(matches!(tree.can_split_leaf(&store, tree.root, b""), Err(Error::Corrupt { .. })));
    let alone = |byte: u8| [vec![byte], vec![b'x'; 600]].concat();
    let tree = new_tree(&store, layout(KeyListKind::Head, RecordListKind::None, SeparatorRule::TAIL));
    assert!([b'a', b'b'].iter().all(|byte| !put(&tree, &store, &alone(*byte), b"")));
    let run = *store.allocated().last().unwrap();
    store.overwrite(run, |page| page[100] ^= 1);
    assert!(tree.can_split_leaf(&store, tree.root, b"").unwrap());
}

/// A leaf of a key heap where the place of one key is that of another key, which has the same bytes from the beginning
/// of the part on.
fn twice() -> (VecStore, Tree) {
    heap_with(22, 32)
}

/// A leaf of a key heap with the keys 0 to 99, where the place of the key `to` is that of `from`.
fn heap_with(from: usize, to: usize) -> (VecStore, Tree) {
    let store = VecStore::new(4096);
    let tree = new_tree(&store, layout(KeyListKind::PkbHeap(2), RecordListKind::None, SeparatorRule::TAIL));
    for n in 0..100u32 {
        put(&tree, &store, format!("{n:06}").as_bytes(), b"");
    }
    store.overwrite(tree.root, |page| {
        // Entries of 2 + 2 + 6 bytes after the header and the open page.
        let place = |slot: usize| limits::PAGE_HEADER + 4 + slot * 10 + 4;
        page.copy_within(place(from)..place(from + 1) - 4, place(to));
    });
    Page::check(&store.read(tree.root).unwrap(), tree.root).unwrap();
    (store, tree)
}

#[test]
fn keys_of_a_heap_that_are_out_of_order_end_a_cursor() {
    let (store, tree) = twice();
    let mut entries = 0;
    for forward in [true, false] {
        let mut cursor = TreeCursor::new(tree, &store);
        (if forward { cursor.seek_first() } else { cursor.seek_last() }).unwrap();
        loop {
            match if forward { cursor.next_entry() } else { cursor.prev_entry() } {
                Ok(Some(_)) => entries += 1,
                Ok(None) => panic!("a cursor passed keys that are out of order"),
                Err(error) => break assert!(matches!(error, Error::Corrupt { .. }), "{error}"),
            }
            assert!(entries < 200);
        }
    }
    assert!(!tree.verify(&store, &mut |_| ()).unwrap().problems.is_empty());
}

#[test]
fn a_leaf_with_one_key_twice_is_not_freed() {
    let (store, tree) = twice();
    let before = store.allocated();
    let freed = tree.free_subtree(&store, tree.root, |freed| freed >= 64, |records| Ok(records.len()));
    assert!(matches!(freed, Err(Error::Corrupt { .. })), "{freed:?}");
    assert_eq!(store.allocated(), before);
}

#[test]
fn a_key_with_the_place_of_another_key_is_damaged_and_not_missing() {
    let (store, tree) = heap_with(22, 23);
    assert!(corrupt_get(&tree, &store, b"000023"));
    assert!(!corrupt_get(&tree, &store, b"000021"));
}

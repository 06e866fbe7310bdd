//! Tests of shape and cost: how full pages are, the result of a merge, how few pages a range delete changes, which
//! operations are refused.

use super::*;
use crate::base::{Error, limits};
use crate::page::Codec;
use crate::page::{BlockRule, Page};
use crate::tree::{KeyRange, PageRead, Removal};
use std::ops::Bound;

fn number(n: u32) -> Vec<u8> {
    format!("{n:08}").into_bytes()
}

/// The numbers 0 to n - 1, each once, in no particular order.
fn shuffled(n: u32) -> impl Iterator<Item = u32> {
    (0..n).map(move |i| (u64::from(i) * 2_654_435_761 % u64::from(n)) as u32)
}

fn head_layout() -> TreeLayout {
    layout(KeyListKind::Head, RecordListKind::Fixed, SeparatorRule::TAIL)
}

fn filled_as(layout: TreeLayout, page_size: usize, keys: impl Iterator<Item = u32>) -> (VecStore, Tree) {
    let store = VecStore::new(page_size);
    let tree = new_tree(&store, layout);
    for n in keys {
        assert!(!put(&tree, &store, &number(n), &n.to_le_bytes()));
    }
    (store, tree)
}

fn filled(page_size: usize, keys: impl Iterator<Item = u32>) -> (VecStore, Tree) {
    filled_as(head_layout(), page_size, keys)
}

fn fill_of_leaves(store: &VecStore, tree: &Tree) -> f64 {
    let leaves = tree.verify(store, &mut |_| ()).unwrap().levels[0];
    leaves.used_bytes as f64 / (leaves.pages as f64 * store.page_size() as f64)
}

/// The number of keys in the longest block of all leaves.
fn longest_block(store: &VecStore) -> usize {
    let longest = |id| {
        let page = store.read(id).unwrap();
        Page::new(&page).longest_block()
    };
    store.allocated().into_iter().filter_map(longest).max().unwrap_or(0)
}

#[test]
fn sorted_input_fills_leaves_and_random_input_fills_them_well() {
    let plain = TreeLayout { leaf: KeyListKind::Plain, ..head_layout() };
    let (store, tree) = filled_as(plain, 4096, 0..30_000);
    assert!(fill_of_leaves(&store, &tree) > 0.95, "{}", fill_of_leaves(&store, &tree));
    // The rightmost leaf has no upper fence and therefore no prefix. When it is split, it gets one and shrinks.
    let (store, tree) = filled(4096, 0..30_000);
    assert!(fill_of_leaves(&store, &tree) > 0.7, "{}", fill_of_leaves(&store, &tree));
    let (store, tree) = filled(4096, shuffled(30_001));
    assert!(fill_of_leaves(&store, &tree) > 0.6, "{}", fill_of_leaves(&store, &tree));
}

#[test]
fn removing_most_entries_gives_most_pages_back() {
    let (store, tree) = filled(4096, shuffled(30_001));
    let before = store.allocated().len();
    for n in shuffled(30_001).filter(|n| n % 10 != 0) {
        assert!(remove(&tree, &store, &number(n)));
    }
    check(&tree, &store, &[]);
    let after = store.allocated().len();
    // A tenth of the entries is left, in pages that are at least a quarter full.
    assert!(after * 2 < before, "{after} of {before} pages");
    assert!(fill_of_leaves(&store, &tree) > 0.25, "{}", fill_of_leaves(&store, &tree));
}

#[test]
fn a_range_delete_changes_only_the_edges() {
    let (store, tree) = filled(512, shuffled(40_009));
    let operations = store.operations();
    let mut edges = 0;
    let before = |removal: Removal<'_>| {
        edges += u32::from(matches!(removal, Removal::Entry { .. }));
        Ok(())
    };
    let (from, to) = (number(1000), number(39_000));
    let removed =
        tree.remove_range(&store, &KeyRange { lower: from.clone(), upper: Some(to.clone()) }, before).unwrap();
    check(&tree, &store, &removed.detached);
    let whole: u64 = removed.detached.iter().map(|s| count_subtree(&tree, &store, s.root).unwrap().entries).sum();
    assert_eq!(whole + u64::from(edges), 38_000);
    assert_eq!(entries(&tree, &store).len(), 2009);
    assert!(edges < 100, "{edges} entries removed one by one");
    assert!(removed.detached.len() < 12, "{} subtrees", removed.detached.len());
    let operations = store.operations() - operations;
    assert!(operations < 150, "{operations} operations");
}

#[test]
fn freeing_keeps_near_its_budget() {
    let (store, tree) = filled(512, shuffled(20_011));
    let removed = tree.remove_range(&store, &KeyRange::default(), |_| Ok(())).unwrap();
    let [subtree] = removed.detached.as_slice() else { panic!("{removed:?}") };
    loop {
        let progress =
            tree.free_subtree(&store, subtree.root, |freed| freed >= 10, |records| Ok(records.len())).unwrap();
        assert!(progress.freed <= 10 + usize::from(subtree.level) + 1, "{progress:?}");
        if progress.done {
            break;
        }
    }
    assert_eq!(store.allocated().len(), 1);
}

#[test]
fn an_entry_that_does_not_fit_is_refused_and_changes_nothing() {
    let (store, tree) = filled(512, 0..10);
    let operations = store.operations();
    let long = vec![1; limits::MAX_KEY + 1];
    let refused = tree.put(&store, &long, Record::default(), |_| Ok(()));
    assert!(matches!(refused, Err(Error::KeyTooLong { .. })), "{refused:?}");
    let wide = vec![1; limits::max_entry(512)];
    let refused = tree.put(&store, b"key", Record::inline(&wide), |_| Ok(()));
    assert!(matches!(refused, Err(Error::ValueTooLong { .. })), "{refused:?}");
    assert_eq!(store.operations(), operations);
    put(&tree, &store, &vec![1; limits::MAX_KEY], b"good");
    check(&tree, &store, &[]);
}

#[test]
fn an_error_from_the_callback_leaves_everything_as_it_was() {
    let (store, tree) = filled(512, 0..500);
    let operations = store.operations();
    let stop = || Error::ReadOnly;
    assert!(tree.put(&store, &number(3), Record::inline(b"abcd"), |_| Err(stop())).is_err());
    assert!(tree.remove(&store, &number(3), |_| Err(stop())).is_err());
    let (from, to) = (number(3), number(5));
    let range = (Bound::Included(from.as_slice()), Bound::Excluded(to.as_slice()));
    assert!(tree.remove_range(&store, &KeyRange::of(range.0, range.1), |_| Err(stop())).is_err());
    assert_eq!(store.operations(), operations);
    check(&tree, &store, &[]);
}

#[test]
fn statistics_say_where_the_bytes_are() {
    let (store, tree) = filled(4096, 0..5000);
    let stats = tree.verify(&store, &mut |_| ()).unwrap();
    let leaves = stats.levels[0];
    assert_eq!((stats.entries(), leaves.raw_key_bytes), (5000, 5000 * 8));
    let lists = leaves.key_list_bytes + leaves.record_list_bytes;
    assert_eq!(leaves.front_bytes + lists, leaves.used_bytes);
    assert!(leaves.record_list_bytes >= 5000 * 4 && leaves.front_bytes >= leaves.pages * limits::PAGE_HEADER as u64);
    assert_eq!(stats.levels[1].entries, leaves.pages);
}

#[test]
fn statistics_separate_keys_from_the_overhead_of_lists() {
    for list in free_lists() {
        let store = VecStore::new(4096);
        let tree = new_tree(&store, layout(list, RecordListKind::None, SeparatorRule::TAIL));
        for n in 0..3000u32 {
            put(&tree, &store, format!("a/common/{:03}/{n:05}", n / 100).as_bytes(), b"");
        }
        let leaves = tree.verify(&store, &mut |_| ()).unwrap().levels[0];
        let added = leaves.key_list_bytes - leaves.kept_key_bytes;
        assert!(added >= 2 * leaves.entries && added <= 16 * leaves.entries, "{list:?}: {added}");
        let whole = leaves.kept_key_bytes == leaves.raw_key_bytes;
        assert_eq!(whole, list == KeyListKind::Plain, "{list:?}: only a plain list keeps whole keys");
    }
}

#[test]
fn a_removal_that_enlarges_a_block_past_its_page_splits_the_page() {
    let bp128 = layout(KeyListKind::Blocks32(BlockRule::long(Codec::Bp128)), RecordListKind::None, SeparatorRule::Full);
    let store = VecStore::new(512);
    let tree = new_tree(&store, bp128);
    let mut model = Model::new();
    // Consecutive keys take no bits, so pages contain only their block index.
    for n in 0..20_000u32 {
        put(&tree, &store, &n.to_be_bytes(), b"");
        model.insert(n.to_be_bytes().to_vec(), Vec::new());
    }
    let leaves = |tree: &Tree| tree.verify(&store, &mut |_| ()).unwrap().levels[0].pages;
    let before = leaves(&tree);
    for n in (50..20_000u32).step_by(64) {
        assert!(remove(&tree, &store, &n.to_be_bytes()));
        model.remove(n.to_be_bytes().as_slice());
    }
    assert!(leaves(&tree) > before, "{before} leaves did not become more");
    assert_eq!(entries(&tree, &store), model);
    check(&tree, &store, &[]);
    store.check_replay();
}

#[test]
fn keys_in_order_fill_pages_of_blocks() {
    for kind in KeyListKind::ALL.into_iter().filter(|kind| kind.key_len() == Some(4)) {
        let blocks = layout(kind, RecordListKind::None, SeparatorRule::Full);
        let store = VecStore::new(4096);
        let tree = new_tree(&store, blocks);
        for n in 0..150_000u32 {
            assert!(!put(&tree, &store, &(n * 3 + n % 3).to_be_bytes(), b""));
        }
        check(&tree, &store, &[]);
        assert!(fill_of_leaves(&store, &tree) > 0.9, "{kind:?}: {}", fill_of_leaves(&store, &tree));
        let KeyListKind::Blocks32(rule) = kind else { panic!("{kind:?} has keys of 4 bytes") };
        assert_eq!(longest_block(&store), rule.most(), "{kind:?}");
    }
}

/// The shortest separator is always that of the first cut, which takes one entry off.
#[test]
fn a_longer_record_needs_few_splits_however_wide_the_rule_looks_for_separators() {
    let widest = SeparatorRule::Tail { radius: SeparatorRule::WIDEST };
    let store = VecStore::new(65_536);
    let tree = new_tree(&store, layout(KeyListKind::MyIsam, RecordListKind::Variable, widest));
    let key = |len: usize| vec![b'x'; len];
    (0..9000).for_each(|len| assert!(!put(&tree, &store, &key(len), b"")));
    assert_eq!(store.allocated().len(), 1, "all keys are in the root");
    assert!(put(&tree, &store, &key(8999), &[7; 10_000]));
    assert!(store.allocated().len() < 8, "{} pages", store.allocated().len());
    check(&tree, &store, &[]);
}

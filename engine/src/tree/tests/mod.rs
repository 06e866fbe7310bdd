//! Tests of the whole layer on a `Vec` of pages: random operations against a model, and one file for each promise that
//! needs its own tests.

mod bulk_load;
mod cursor;
mod hostile;
mod keys;
mod missing;
mod model;
mod shape;
mod threads;
mod vec_store;

use super::{DetachedSubtree, Tree, TreeLayout, Visit};
use crate::base::TableId;
use crate::page::{KeyListKind, Record, RecordListKind, SeparatorRule};
use cursor::{TreeCursor, count_subtree};
use std::collections::{BTreeMap, BTreeSet};
use vec_store::VecStore;

/// The expected content of a tree.
type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// A layout for the tests. Its inner pages have a key list that suits them and has keys of any length.
fn layout(leaf: KeyListKind, records: RecordListKind, separators: SeparatorRule) -> TreeLayout {
    let (inner, separators) = if leaf.key_len().is_some() {
        // Separators of integer keys are whole keys in a list of fixed-length keys.
        (KeyListKind::Fixed, SeparatorRule::Full)
    } else if leaf.suits_inner_pages() && !leaf.has_one_length() {
        (leaf, separators)
    } else {
        (KeyListKind::Head, separators)
    };
    TreeLayout { leaf, inner, records, separators }
}

/// The key lists for keys of any length.
fn free_lists() -> Vec<KeyListKind> {
    KeyListKind::ALL.into_iter().filter(|list| *list != KeyListKind::Fixed && list.key_len().is_none()).collect()
}

fn new_tree(store: &VecStore, layout: TreeLayout) -> Tree {
    Tree::create(store, TableId(7), layout).unwrap()
}

fn put(tree: &Tree, store: &VecStore, key: &[u8], value: &[u8]) -> bool {
    tree.put(store, key, Record::inline(value), |_| Ok(())).unwrap()
}

fn remove(tree: &Tree, store: &VecStore, key: &[u8]) -> bool {
    tree.remove(store, key, |_| Ok(())).unwrap()
}

/// All entries, forward.
fn entries(tree: &Tree, store: &VecStore) -> Model {
    collect(TreeCursor::new(*tree, store))
}

/// All entries after the cursor.
fn collect(mut cursor: TreeCursor<'_, VecStore>) -> Model {
    let mut all = Model::new();
    let mut last: Option<Vec<u8>> = None;
    while let Some((key, record)) = cursor.next_entry().unwrap() {
        assert!(last.is_none_or(|last| last.as_slice() < key), "keys out of order");
        last = Some(key.to_vec());
        all.insert(key.to_vec(), record.bytes.to_vec());
    }
    all
}

/// Verifies the tree, and that the allocated pages of the store are exactly its pages and those of the `detached`
/// subtrees.
fn check(tree: &Tree, store: &VecStore, detached: &[DetachedSubtree]) {
    let mut reached = BTreeSet::new();
    let mut heap = BTreeMap::new();
    let mut visit = |visit: Visit<'_>| match visit {
        Visit::Page(id) => assert!(reached.insert(id), "page {id} is reached twice"),
        Visit::Large { .. } => {}
        Visit::Heap { page, keys, of } => {
            let (known, _) = heap.entry(page).or_insert((0, of));
            *known += keys;
        }
    };
    let stats = tree.verify(store, &mut visit).unwrap();
    assert_eq!(stats.problems, []);
    for subtree in detached {
        assert_eq!(tree.verify_subtree(store, subtree, &mut visit).unwrap().problems, []);
    }
    for (page, (known, of)) in heap {
        assert!(reached.insert(page), "heap page {page} is reached as another");
        assert_eq!(known, of, "keys of heap page {page}");
    }
    assert_eq!(store.allocated(), reached, "allocated and reachable pages");
}

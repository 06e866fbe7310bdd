//! Keys that are stored outside of their pages, in pages that are not in memory: a reader holds no latch while it reads
//! them from the device, and a search ends even if no page stays in memory.

use super::threads::{Interrupted, LatchStore, PAGE_SIZE};
use super::*;
use crate::base::{PageId, Result, bytes, limits};
use crate::page::Page;
use crate::tree::search::LeafTarget;
use crate::tree::{PageRead, PageWrite};
use std::cell::{Cell, Ref};

/// Makes a key from a number.
type MakeKey = fn(u32) -> Vec<u8>;

/// Reads a tree. The number belongs to its last key.
type ReadLast = dyn Fn(&Tree, &Interrupted<'_>, u32);

/// Long keys. The parts of them that a page keeps are equal.
fn long(n: u32) -> Vec<u8> {
    [vec![b'k'; 3 * PAGE_SIZE], n.to_be_bytes().to_vec()].concat()
}

fn short(n: u32) -> Vec<u8> {
    format!("k{n:05}").into_bytes()
}

/// A tree with the entries 0, 2, 4 and so on.
fn tree<S: PageWrite>(store: &S, leaf: KeyListKind, key: MakeKey, entries: u32) -> Tree {
    let layout = layout(leaf, RecordListKind::Variable, SeparatorRule::TAIL);
    let tree = Tree::create(store, TableId(7), layout).unwrap();
    for n in 0..entries {
        tree.put(store, &key(2 * n), Record::inline(b"old"), |_| Ok(())).unwrap();
    }
    tree
}

/// The first page outside of `page` that the key of `slot` needs.
fn page_of_key(page: Page<'_>, slot: usize) -> PageId {
    page.key_place(slot).map_or_else(
        || {
            let mut image = Vec::new();
            page.key_into(slot, &mut image);
            PageId(bytes::get_u32(&image, limits::long_key_head(PAGE_SIZE)))
        },
        |place| place.page,
    )
}

/// Reads with `read` while the page of a key of the root is not in memory. Meanwhile the writer changes the root or a
/// page below it: `read` must see the change.
fn reads_without_a_latch(
    tree: &Tree,
    store: &LatchStore,
    slot: usize,
    changed: &[u8],
    read: &dyn Fn(&Interrupted<'_>),
) {
    let missing = page_of_key(Page::new(&store.read(tree.root).unwrap()), slot);
    let change = || {
        assert!(store.is_free(tree.root), "the root is latched while page {missing} is read from the device");
        tree.put(store, changed, Record::inline(b"new"), |_| Ok(())).unwrap();
    };
    let reader = Interrupted { store, missing, change: Cell::new(Some(&change)) };
    read(&reader);
    assert!(reader.change.take().is_none(), "page {missing} was not read as a missing page");
}

fn record_of<S: PageRead>(tree: &Tree, store: &S, key: &[u8]) -> Option<Vec<u8>> {
    tree.get(store, key, |_, record| record.map(|record| record.bytes.to_vec())).unwrap()
}

/// The lists whose leaves need other pages for these keys.
fn subjects() -> Vec<(KeyListKind, MakeKey)> {
    let heap = KeyListKind::ALL.into_iter().filter(|list| list.keys_are_out_of_line());
    let heap = heap.flat_map(|list| [(list, short as MakeKey), (list, long)]);
    heap.chain([(KeyListKind::Head, long as MakeKey)]).collect()
}

#[test]
fn a_get_waits_for_the_page_of_a_key_without_a_latch() {
    for (list, key) in subjects() {
        let store = LatchStore::new(64);
        let tree = tree(&store, list, key, 1);
        reads_without_a_latch(&tree, &store, 0, &key(0), &|reader| {
            assert_eq!(record_of(&tree, reader, &key(0)).as_deref(), Some(b"new".as_slice()), "{list:?}");
        });
    }
}

#[test]
fn a_cursor_waits_for_the_page_of_a_key_without_a_latch() {
    for (list, key) in subjects() {
        for forward in [true, false] {
            let store = LatchStore::new(64);
            let tree = tree(&store, list, key, 2);
            reads_without_a_latch(&tree, &store, 0, &key(1), &|reader| {
                let mut cursor = TreeCursor::new(tree, reader);
                if !forward {
                    cursor.seek_last().unwrap();
                }
                let mut found = Vec::new();
                while let Some((key, _)) = if forward { cursor.next_entry() } else { cursor.prev_entry() }.unwrap() {
                    found.push(key.to_vec());
                }
                found.sort();
                assert_eq!(found, [key(0), key(1), key(2)], "{list:?}");
            });
        }
    }
}

#[test]
fn a_salvage_waits_for_the_page_of_a_key_without_a_latch() {
    for (list, key) in subjects() {
        let store = LatchStore::new(64);
        let tree = tree(&store, list, key, 2);
        reads_without_a_latch(&tree, &store, 0, &key(1), &|reader| {
            let mut found = Vec::new();
            tree.leaf_entries(reader, &key(0), |key, _| found.push(key.unwrap().to_vec())).unwrap();
            assert_eq!(found, [key(0), key(1), key(2)], "{list:?}");
        });
    }
}

/// A tree of two levels whose separators are long keys.
fn tall(store: &LatchStore) -> (Tree, u32) {
    let tree = tree(store, KeyListKind::Head, long, 0);
    for n in 0.. {
        tree.put(store, &long(2 * n), Record::inline(b"old"), |_| Ok(())).unwrap();
        let root = store.read(tree.root).unwrap();
        if Page::new(&root).is_inner() && Page::new(&root).count() == 3 {
            return (tree, n);
        }
    }
    unreachable!("the root splits");
}

#[test]
fn a_descent_waits_for_the_page_of_a_separator_without_a_latch() {
    let reads: [&ReadLast; 4] = [
        &|tree, reader, last| assert_eq!(record_of(tree, reader, &long(2 * last)).as_deref(), Some(b"new".as_slice())),
        &|tree, reader, last| {
            let mut cursor = TreeCursor::new(*tree, reader);
            cursor.seek_last().unwrap();
            assert_eq!(
                cursor.prev_entry().unwrap().map(|(key, record)| (key, record.bytes)),
                Some((&*long(2 * last), b"new".as_slice()))
            );
        },
        &|tree, reader, last| assert!(matches!(tree.reach(reader, &long(2 * last)), (None, Ok(())))),
        &|tree, reader, _| assert_eq!(tree.dividers(reader).unwrap().len(), 2),
    ];
    for read in reads {
        let store = LatchStore::new(256);
        let (tree, last) = tall(&store);
        // A search among three children compares the separator of the last one.
        reads_without_a_latch(&tree, &store, 2, &long(2 * last), &|reader| read(&tree, reader, last));
    }
}

/// A store in which a page is in memory only while it is latched.
struct Forgetful<'a>(&'a VecStore);

impl PageRead for Forgetful<'_> {
    type Ref<'a>
        = Ref<'a, [u8]>
    where
        Self: 'a;

    fn page_size(&self) -> usize {
        PAGE_SIZE
    }

    fn read(&self, id: PageId) -> Result<Ref<'_, [u8]>> {
        self.0.read(id)
    }

    fn frees(&self) -> u64 {
        self.0.frees()
    }

    fn fetch(&self, _: PageId) -> Option<Ref<'_, [u8]>> {
        None
    }
}

#[test]
fn a_search_ends_if_no_page_stays_in_memory() {
    for (list, key) in subjects() {
        let store = VecStore::new(PAGE_SIZE);
        let tree = tree(&store, list, key, 60);
        let forgetful = Forgetful(&store);
        let mut keys = Vec::new();
        let mut cursor = TreeCursor::new(tree, &forgetful);
        while let Some((key, _)) = cursor.next_entry().unwrap() {
            keys.push(key.to_vec());
        }
        assert_eq!(keys, (0..60).map(|n| key(2 * n)).collect::<Vec<_>>(), "{list:?}");
        for n in 0..120 {
            assert_eq!(record_of(&tree, &forgetful, &key(n)).is_some(), n % 2 == 0, "{list:?}, key {n}");
            assert_eq!(tree.reach(&forgetful, &key(n)).0, tree.reach(&store, &key(n)).0, "{list:?}, key {n}");
        }
        assert_eq!(tree.dividers(&forgetful).unwrap(), tree.dividers(&store).unwrap(), "{list:?}");
        let entries = tree.leaf_at(&store, LeafTarget::Last, |leaf| leaf.count()).unwrap();
        let mut read = 0;
        tree.leaf_entries(&forgetful, &key(119), |key, _| read += usize::from(key.is_ok())).unwrap();
        assert_eq!(read, entries, "{list:?}");
    }
}

//! Tests with readers beside the writer: a store with real latches, a writer that splits, merges, detaches and frees
//! all the time, and readers that must find every entry that always exists, by search and by cursor in both directions.
//! At random a page is not in memory; then a reader must have no latch while it reads the page.

use super::*;
use crate::base::{Error, Lsn, PageId, Result};
use crate::page::{NewEntry, Page, PageOp, apply, insert_run};
use crate::tree::search::LeafTarget;
use crate::tree::{KeyRange, PageRead, PageWrite};
use parking_lot::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

pub(super) const PAGE_SIZE: usize = 256;

pub(super) struct LatchStore {
    pages: Vec<RwLock<Vec<u8>>>,
    free: Mutex<Vec<PageId>>,
    /// Freed pages that keep their content until the writer calls [`LatchStore::release`].
    freed: Mutex<Vec<PageId>>,
    frees: AtomicU64,
    lsn: AtomicU64,
}

pub(super) struct Shared<'a>(RwLockReadGuard<'a, Vec<u8>>);

thread_local! {
    /// The shared latches that this thread holds.
    static HELD: Cell<usize> = const { Cell::new(0) };
    /// The thread is a reader, and the page that it wanted last was not in memory.
    static MISSED: Cell<bool> = const { Cell::new(false) };
    /// The state of the random numbers of a reader. 0: the thread is no reader, and finds all pages in memory.
    static RANDOM: Cell<u32> = const { Cell::new(0) };
    /// The pages that a reader has loaded last: they are in memory.
    static LOADED: RefCell<VecDeque<PageId>> = const { RefCell::new(VecDeque::new()) };
}

impl Drop for Shared<'_> {
    fn drop(&mut self) {
        HELD.set(HELD.get() - 1);
    }
}
pub(super) struct Exclusive<'a>(RwLockWriteGuard<'a, Vec<u8>>);

impl Deref for Shared<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl Deref for Exclusive<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

/// Notes that a page is in memory for this thread: for longer than a path and the keys of a leaf are needed.
fn load(id: PageId) {
    LOADED.with_borrow_mut(|loaded| {
        if !loaded.contains(&id) {
            loaded.push_back(id);
        }
        loaded.len() > 64 && loaded.pop_front().is_some()
    });
}

impl LatchStore {
    pub(super) fn new(pages: u32) -> LatchStore {
        LatchStore {
            pages: (0..pages).map(|_| RwLock::new(vec![0; PAGE_SIZE])).collect(),
            free: Mutex::new((1..pages).rev().map(PageId).collect()),
            freed: Mutex::default(),
            frees: AtomicU64::new(0),
            lsn: AtomicU64::new(0),
        }
    }

    /// True if no thread holds the latch of this page.
    pub(super) fn is_free(&self, id: PageId) -> bool {
        self.pages[id.0 as usize].try_write().is_some()
    }

    /// Lets freed pages be used again, as at the end of a batch.
    fn release(&self) {
        let freed = std::mem::take(&mut *self.freed.lock());
        self.frees.fetch_add(1, Ordering::AcqRel);
        for id in freed {
            // A reader that still reads this page finds that it is not a page of the tree.
            self.pages[id.0 as usize].write().fill(0xEE);
            self.free.lock().push(id);
        }
    }
}

impl PageRead for LatchStore {
    type Ref<'a> = Shared<'a>;

    fn page_size(&self) -> usize {
        PAGE_SIZE
    }

    fn read(&self, id: PageId) -> Result<Shared<'_>> {
        if MISSED.take() {
            assert_eq!(HELD.get(), 0, "page {id} is read from the device while a latch is held");
            // Long enough for the writer to change the parent.
            std::thread::sleep(Duration::from_micros(100));
        }
        let page = self.pages.get(id.0 as usize).ok_or_else(|| Error::corrupt(id, "no such page"))?;
        load(id);
        // In the middle of latch coupling, so that other threads run at the critical moment.
        std::thread::yield_now();
        HELD.set(HELD.get() + 1);
        Ok(Shared(page.read()))
    }

    fn frees(&self) -> u64 {
        self.frees.load(Ordering::Acquire)
    }

    fn fetch(&self, id: PageId) -> Option<Shared<'_>> {
        RANDOM.set(RANDOM.get().wrapping_mul(1_664_525).wrapping_add(u32::from(RANDOM.get() > 0) * 1_013_904_223));
        let is_missing = RANDOM.get() >> 30 == 1 && LOADED.with_borrow(|loaded| !loaded.contains(&id));
        MISSED.set(is_missing);
        if !is_missing {
            return self.read(id).ok();
        }
        load(id);
        None
    }
}

impl PageWrite for LatchStore {
    type Mut<'a> = Exclusive<'a>;

    fn latch(&self, id: PageId) -> Result<Exclusive<'_>> {
        let page = self.pages.get(id.0 as usize).ok_or_else(|| Error::corrupt(id, "no such page"))?;
        Ok(Exclusive(page.write()))
    }

    fn create(&self) -> Result<(PageId, Exclusive<'_>)> {
        let id = self.free.lock().pop().ok_or(Error::TooManyPages { pages: self.pages.len() as u64 })?;
        Ok((id, self.latch(id)?))
    }

    fn apply(&self, page: &mut Exclusive<'_>, op: &PageOp<'_>) -> Result<bool> {
        apply(&mut page.0, op, Lsn(self.lsn.fetch_add(1, Ordering::Relaxed)))
    }

    fn insert_run(&self, page: &mut Exclusive<'_>, entries: &[NewEntry<'_>]) -> Result<usize> {
        insert_run(&mut page.0, entries, Lsn(self.lsn.fetch_add(1, Ordering::Relaxed)))
    }

    fn free(&self, id: PageId) -> Result<()> {
        self.freed.lock().push(id);
        self.frees.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }
}

/// Keys that are never removed: inline keys, and long keys that differ only in their runs.
fn steady(n: u32) -> Vec<u8> {
    if n.is_multiple_of(9) {
        [vec![b'k'; 300], n.to_be_bytes().to_vec()].concat()
    } else {
        format!("k{n:05}").into_bytes()
    }
}

/// Keys between them that are put and removed.
fn passing(n: u32) -> Vec<u8> {
    [steady(n / 3), vec![b'-'; (n % 40) as usize], n.to_be_bytes().to_vec()].concat()
}

fn write(tree: &Tree, store: &LatchStore, rounds: u32) {
    for round in 0..rounds {
        for n in 0..300 {
            let n = (n * 7 + round * 31) % 900;
            tree.put(store, &passing(n), Record::inline(&[round as u8; 6]), |_| Ok(())).unwrap();
        }
        store.release();
        for n in 0..200 {
            let n = (n * 11 + round * 17) % 900;
            tree.remove(store, &passing(n), |_| Ok(())).unwrap();
        }
        store.release();
        // Only passing keys are between two steady keys. The keys `r...` are a separate range to detach.
        for n in 0..400u32 {
            tree.put(store, format!("r{n:04}").as_bytes(), Record::default(), |_| Ok(())).unwrap();
        }
        let removed =
            tree.remove_range(store, &KeyRange { lower: b"r0010".to_vec(), upper: None }, |_| Ok(())).unwrap();
        for subtree in removed.detached {
            while !tree.free_subtree(store, subtree.root, |freed| freed >= 4, |records| Ok(records.len())).unwrap().done
            {
            }
        }
        store.release();
    }
}

fn read(tree: &Tree, store: &LatchStore, keys: &[Vec<u8>], stop: &AtomicBool) {
    RANDOM.set(1);
    while !stop.load(Ordering::Relaxed) {
        for key in keys {
            assert!(tree.get(store, key, |_, record| record.is_some()).unwrap(), "{} is lost", key.escape_ascii());
        }
        for forward in [true, false] {
            let mut cursor = TreeCursor::new(*tree, store);
            if !forward {
                cursor.seek_last().unwrap();
            }
            let mut left: BTreeSet<&[u8]> = keys.iter().map(Vec::as_slice).collect();
            let mut last: Option<Vec<u8>> = None;
            while let Some((key, _)) = if forward { cursor.next_entry() } else { cursor.prev_entry() }.unwrap() {
                assert!(
                    last.is_none_or(|last| (last.as_slice() < key) == forward),
                    "a cursor moved in the wrong direction"
                );
                last = Some(key.to_vec());
                left.remove(key);
            }
            assert!(left.is_empty(), "{} entries were missed by a cursor", left.len());
        }
    }
}

#[test]
fn readers_find_all_entries_that_always_exist() {
    let store = LatchStore::new(8192);
    let layout = layout(KeyListKind::Head, RecordListKind::Variable, SeparatorRule::TAIL);
    let tree = Tree::create(&store, TableId(7), layout).unwrap();
    let keys: Vec<Vec<u8>> = (0..300).map(steady).collect();
    for key in &keys {
        tree.put(&store, key, Record::inline(b"steady"), |_| Ok(())).unwrap();
    }
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let readers = [(); 2].map(|()| scope.spawn(|| read(&tree, &store, &keys, &stop)));
        write(&tree, &store, 200);
        stop.store(true, Ordering::Relaxed);
        readers.into_iter().for_each(|reader| reader.join().unwrap());
    });
    let stats = tree.verify(&store, &mut |_| ()).unwrap();
    assert_eq!(stats.problems, []);
}

/// A reader's view of a store in which one page is not in memory. While that page is read for the first time, `change`
/// changes the tree.
pub(super) struct Interrupted<'a> {
    pub(super) store: &'a LatchStore,
    pub(super) missing: PageId,
    pub(super) change: Cell<Option<&'a dyn Fn()>>,
}

impl PageRead for Interrupted<'_> {
    type Ref<'a>
        = Shared<'a>
    where
        Self: 'a;

    fn page_size(&self) -> usize {
        PAGE_SIZE
    }

    fn read(&self, id: PageId) -> Result<Shared<'_>> {
        if id == self.missing
            && let Some(change) = self.change.take()
        {
            change();
        }
        self.store.read(id)
    }

    fn frees(&self) -> u64 {
        self.store.frees()
    }

    fn fetch(&self, id: PageId) -> Option<Shared<'_>> {
        let change = self.change.take();
        self.change.set(change);
        if id == self.missing && change.is_some() { None } else { self.store.read(id).ok() }
    }
}

/// The last child of an inner page.
fn last_child(store: &LatchStore, id: PageId) -> PageId {
    let page = store.read(id).unwrap();
    let page = Page::new(&page);
    page.child(page.count() - 1)
}

#[test]
fn a_parent_that_is_freed_while_its_child_is_read_is_not_used_again() {
    let store = LatchStore::new(1024);
    let layout = layout(KeyListKind::Head, RecordListKind::Variable, SeparatorRule::TAIL);
    let tree = Tree::create(&store, TableId(7), layout).unwrap();
    let key = |n: u32| format!("k{n:05}").into_bytes();
    let put = |n: u32| tree.put(&store, &key(n), Record::inline(b"record"), |_| Ok(())).unwrap();
    let is_tall = || Page::new(&store.read(tree.root).unwrap()).level() == 2;
    let mut keys = 0;
    let (parent, leaf) = loop {
        put(keys);
        keys += 1;
        if is_tall() {
            let parent = last_child(&store, tree.root);
            if Page::new(&store.read(parent).unwrap()).count() > 3 {
                break (parent, last_child(&store, parent));
            }
        }
    };
    let end = Cell::new(keys);
    let change = || {
        for n in (0..keys).take_while(|_| !store.freed.lock().contains(&parent)) {
            tree.remove(&store, &key(n), |_| Ok(())).unwrap();
        }
        assert!(store.freed.lock().contains(&parent), "the parent of the last leaf was not merged away");
        let has_split = || !Page::new(&store.read(leaf).unwrap()).right().is_none();
        while !has_split() {
            put(end.get());
            end.set(end.get() + 1);
        }
    };
    let reader = Interrupted { store: &store, missing: leaf, change: Cell::new(Some(&change)) };
    let last = tree.leaf_at(&reader, LeafTarget::Last, |page| {
        let mut key = Vec::new();
        page.key_into(page.count() - 1, &mut key);
        key
    });
    assert!(reader.change.take().is_none(), "the leaf was not read as a missing page");
    assert_eq!(last.unwrap(), key(end.get() - 1), "it is not the last leaf");
}

//! Tests with readers beside the writer: a store with real latches, a writer that splits, merges, detaches and frees
//! all the time, and readers that must find every entry that always exists, by search and by cursor in both directions.
//! At random a page is not in memory; then a reader must have no latch while it reads the page.

use super::*;
use crate::base::{Error, Lsn, PageId, Result};
use crate::page::{NewEntry, PageOp, apply, insert_run};
use crate::tree::{KeyRange, PageRead, PageWrite};
use parking_lot::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::cell::Cell;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

const PAGE_SIZE: usize = 256;

struct LatchStore {
    pages: Vec<RwLock<Vec<u8>>>,
    free: Mutex<Vec<PageId>>,
    lsn: AtomicU64,
}

struct Shared<'a>(RwLockReadGuard<'a, Vec<u8>>);

thread_local! {
    /// The shared latches that this thread holds.
    static HELD: Cell<usize> = const { Cell::new(0) };
    /// The thread is a reader, and the page that it wanted last was not in memory.
    static MISSED: Cell<bool> = const { Cell::new(false) };
    /// The state of the random numbers of a reader. 0: the thread is no reader, and finds all pages in memory.
    static RANDOM: Cell<u32> = const { Cell::new(0) };
}

impl Drop for Shared<'_> {
    fn drop(&mut self) {
        HELD.set(HELD.get() - 1);
    }
}
struct Exclusive<'a>(RwLockWriteGuard<'a, Vec<u8>>);

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

impl LatchStore {
    fn new(pages: u32) -> LatchStore {
        LatchStore {
            pages: (0..pages).map(|_| RwLock::new(vec![0; PAGE_SIZE])).collect(),
            free: Mutex::new((1..pages).rev().map(PageId).collect()),
            lsn: AtomicU64::new(0),
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
        // In the middle of latch coupling, so that other threads run at the critical moment.
        std::thread::yield_now();
        HELD.set(HELD.get() + 1);
        Ok(Shared(page.read()))
    }

    fn fetch(&self, id: PageId) -> Option<Shared<'_>> {
        RANDOM.set(RANDOM.get().wrapping_mul(1_664_525).wrapping_add(u32::from(RANDOM.get() > 0) * 1_013_904_223));
        MISSED.set(RANDOM.get() >> 30 == 1);
        if MISSED.get() { None } else { self.read(id).ok() }
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
        // A reader that still reads this page finds that it is not a page of the tree.
        self.latch(id)?.0.fill(0xEE);
        self.free.lock().push(id);
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
        for n in 0..200 {
            let n = (n * 11 + round * 17) % 900;
            tree.remove(store, &passing(n), |_| Ok(())).unwrap();
        }
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

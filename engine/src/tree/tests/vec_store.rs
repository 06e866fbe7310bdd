//! A store of pages in memory, for tests. It is stricter than a real store: a latch taken twice, the use of a freed
//! page, and a page that is invalid after a change all fail. It records every operation, so that a test can replay
//! them.

use crate::base::{Error, Lsn, PageId, Result};
use crate::page::{NewEntry, Page, PageOp, apply, insert_run, unpack};
use crate::tree::{PageRead, PageWrite};
use std::cell::{Cell, Ref, RefCell, RefMut};
use std::collections::BTreeSet;
use std::ops::Deref;

/// The most pages. Page 0 is never allocated.
const CAPACITY: usize = 1 << 15;

pub(super) struct VecStore {
    page_size: usize,
    pages: Vec<RefCell<Vec<u8>>>,
    next: Cell<usize>,
    free: RefCell<BTreeSet<PageId>>,
    log: RefCell<Vec<(PageId, Vec<u8>)>>,
    frees: Cell<u64>,
}

/// A page under its exclusive latch.
pub(super) struct Latched<'a> {
    id: PageId,
    page: RefMut<'a, Vec<u8>>,
}

impl Deref for Latched<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.page
    }
}

impl VecStore {
    pub(super) fn new(page_size: usize) -> VecStore {
        VecStore {
            page_size,
            pages: (0..CAPACITY).map(|_| RefCell::default()).collect(),
            next: Cell::new(1),
            free: RefCell::default(),
            log: RefCell::default(),
            frees: Cell::default(),
        }
    }

    fn cell(&self, id: PageId) -> Result<&RefCell<Vec<u8>>> {
        let taken = (1..self.next.get()).contains(&(id.0 as usize)) && !self.free.borrow().contains(&id);
        self.pages.get(id.0 as usize).filter(|_| taken).ok_or_else(|| Error::corrupt(id, "it is not allocated"))
    }

    /// The ids of all allocated pages.
    pub(super) fn allocated(&self) -> BTreeSet<PageId> {
        let free = self.free.borrow();
        (1..self.next.get()).map(|id| PageId(id as u32)).filter(|id| !free.contains(id)).collect()
    }

    /// Allocates a page without an operation, as a bulk load does.
    pub(super) fn allocate(&self) -> PageId {
        let id = self.free.borrow_mut().pop_first().unwrap_or_else(|| {
            self.next.set(self.next.get() + 1);
            PageId(self.next.get() as u32 - 1)
        });
        *self.pages[id.0 as usize].borrow_mut() = vec![0; self.page_size];
        id
    }

    /// Writes a page without an operation, as a bulk load does.
    pub(super) fn write_unlogged(&self, id: PageId, packed: &[u8]) {
        self.overwrite(id, |page| unpack(packed, page).unwrap());
        Page::check(&self.read(id).unwrap(), id).unwrap();
    }

    /// Overwrites a page without an operation, as a bad device does.
    pub(super) fn overwrite(&self, id: PageId, f: impl FnOnce(&mut [u8])) {
        f(&mut self.pages[id.0 as usize].borrow_mut());
    }

    /// The number of operations so far.
    pub(super) fn operations(&self) -> usize {
        self.log.borrow().len()
    }

    /// Replays all operations on zeroed pages and compares the allocated ones byte for byte.
    pub(super) fn check_replay(&self) {
        let mut pages = vec![vec![0; self.page_size]; self.next.get()];
        for (at, (id, bytes)) in self.log.borrow().iter().enumerate() {
            let op = PageOp::decode(&mut bytes.as_slice()).unwrap();
            assert!(apply(&mut pages[id.0 as usize], &op, Lsn(at as u64 + 1)).unwrap());
        }
        for id in self.allocated() {
            assert!(pages[id.0 as usize] == *self.pages[id.0 as usize].borrow(), "page {id} differs after redo");
        }
    }
}

impl PageRead for VecStore {
    type Ref<'a> = Ref<'a, [u8]>;

    fn page_size(&self) -> usize {
        self.page_size
    }

    fn read(&self, id: PageId) -> Result<Ref<'_, [u8]>> {
        Ok(Ref::map(self.cell(id)?.borrow(), Vec::as_slice))
    }

    fn frees(&self) -> u64 {
        self.frees.get()
    }
}

impl PageWrite for VecStore {
    type Mut<'a> = Latched<'a>;

    fn latch(&self, id: PageId) -> Result<Latched<'_>> {
        Ok(Latched { id, page: self.cell(id)?.borrow_mut() })
    }

    fn create(&self) -> Result<(PageId, Latched<'_>)> {
        let id = self.allocate();
        self.overwrite(id, |page| page.fill(0xA5));
        Ok((id, self.latch(id)?))
    }

    fn apply(&self, page: &mut Latched<'_>, op: &PageOp<'_>) -> Result<bool> {
        let mut log = self.log.borrow_mut();
        let done = apply(&mut page.page, op, Lsn(log.len() as u64 + 1))?;
        if done {
            let mut bytes = Vec::new();
            op.encode(&mut bytes);
            log.push((page.id, bytes));
            if matches!(op, PageOp::Format { .. } | PageOp::Keep { .. }) {
                Page::check(&page.page, page.id)?;
            }
        }
        Ok(done)
    }

    fn insert_run(&self, page: &mut Latched<'_>, entries: &[NewEntry<'_>]) -> Result<usize> {
        let mut log = self.log.borrow_mut();
        let done = insert_run(&mut page.page, entries, Lsn(log.len() as u64 + 1))?;
        if done > 0 {
            let mut bytes = Vec::new();
            PageOp::InsertRun { entries: entries[..done].into() }.encode(&mut bytes);
            log.push((page.id, bytes));
        }
        Ok(done)
    }

    fn free(&self, id: PageId) -> Result<()> {
        self.cell(id)?.borrow_mut().fill(0x5A);
        assert!(self.free.borrow_mut().insert(id));
        self.frees.set(self.frees.get() + 1);
        Ok(())
    }
}

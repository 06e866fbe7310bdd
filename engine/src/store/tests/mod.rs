//! Items shared by the tests of the page stores and the buffer pool: a device that fails, a log, sample pages.

pub(super) mod model;
mod pool;
mod pool_threads;
mod pool_writers;
pub(super) mod slots;

use crate::base::bytes::put_u64;
use crate::base::watermark::Watermark;
use crate::base::{Error, Lsn, PageId, Result, TableId};
use crate::io::{Disk, MemoryDisk, WriteKind};
use crate::page::{run_capacity, run_page, unpack};
use crate::store::superblock::tests::meta;
use crate::store::{Meta, PageStore, StoreKind};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};

pub(super) const PAGE_SIZE: usize = 4096;

/// A sound page of the `table` store; see [`sample_of`].
pub(super) fn sample(id: u32, lsn: u64, seed: u64) -> Vec<u8> {
    sample_of(PAGE_SIZE, id, lsn, seed)
}

/// The table of sample pages.
pub(super) const SAMPLE_TABLE: TableId = TableId(7);

/// A sound page whose length and content follow from `seed`.
pub(super) fn sample_of(page_size: usize, id: u32, lsn: u64, seed: u64) -> Vec<u8> {
    let len = (seed.wrapping_mul(0x9e37_79b9) % (run_capacity(page_size) as u64 + 1)) as usize;
    let payload: Vec<u8> = (0..len as u64).map(|at| (seed.wrapping_mul(31) ^ at) as u8 | 1).collect();
    let mut page = vec![0; page_size];
    unpack(&run_page(PageId(id), SAMPLE_TABLE, PageId::NONE, &payload), &mut page).unwrap();
    put_u64(&mut page, 0, lsn);
    page
}

/// Bytes of a page in the tests of a store.
pub(super) fn page_size(kind: StoreKind) -> usize {
    PAGE_SIZE - kind.trailer()
}

/// The superblock of the tests of a store.
pub(super) fn meta_of(kind: StoreKind) -> Meta {
    Meta { page_size: page_size(kind), ..meta() }
}

/// A disk whose next but `n`th write fails, before or after a part of it has reached the device, and whose next writes
/// can be held up.
#[derive(Debug)]
pub(super) struct Failing {
    disk: Arc<dyn Disk>,
    /// Writes that still succeed; negative: all do.
    left: AtomicI64,
    /// Bytes of the write that fails that reach the device.
    reaches: AtomicUsize,
    /// The device is not full, but broken.
    is_broken: AtomicBool,
    /// The device has room for a file of this length.
    room: AtomicU64,
    /// Each of the next writes waits at one of these.
    barriers: Mutex<VecDeque<Arc<Barrier>>>,
    syncs: AtomicUsize,
}

impl Failing {
    /// So many of the next writes wait at a barrier each, until the test comes to it, too.
    pub(super) fn hold<const WRITES: usize>(&self) -> [Arc<Barrier>; WRITES] {
        let barriers = std::array::from_fn(|_| Arc::new(Barrier::new(2)));
        self.barriers.lock().extend(barriers.iter().cloned());
        barriers
    }

    /// Returns once no more than this number of the writes that are to be held up have not begun.
    pub(super) fn await_held(&self, left: usize) {
        while self.barriers.lock().len() > left {
            std::thread::yield_now();
        }
    }

    /// From now on the device has room for a file of this length.
    pub(super) fn set_room(&self, len: u64) {
        self.room.store(len, Ordering::SeqCst);
    }

    /// The next write fails because the device is broken.
    pub(super) fn break_next(&self, reaches: bool) {
        self.break_next_after(all_or_none(reaches));
    }

    /// The same, after this number of its bytes have reached the device.
    pub(super) fn break_next_after(&self, bytes: usize) {
        self.is_broken.store(true, Ordering::SeqCst);
        self.arm(0, bytes);
    }

    /// How many syncs there were.
    pub(super) fn syncs(&self) -> usize {
        self.syncs.load(Ordering::SeqCst)
    }

    fn arm(&self, left: i64, reaches: usize) {
        self.reaches.store(reaches, Ordering::SeqCst);
        self.left.store(left, Ordering::SeqCst);
    }
}

/// Bytes of a write that fails before or after it has reached the device.
fn all_or_none(reaches: bool) -> usize {
    if reaches { usize::MAX } else { 0 }
}

impl Disk for Failing {
    fn size(&self) -> Result<u64> {
        self.disk.size()
    }
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.disk.read_at(offset, buf)
    }
    fn write_as(&self, kind: WriteKind, offset: u64, buf: &[u8]) -> Result<()> {
        let barrier = self.barriers.lock().pop_front();
        barrier.map(|barrier| barrier.wait());
        if self.left.load(Ordering::SeqCst) >= 0 && self.left.fetch_sub(1, Ordering::SeqCst) == 0 {
            let reaches = self.reaches.load(Ordering::SeqCst).min(buf.len());
            if reaches > 0 {
                self.disk.write_as(kind, offset, &buf[..reaches])?;
            }
            return Err(match self.is_broken.load(Ordering::SeqCst) {
                true => {
                    Error::Io { action: "cannot write", path: "db".into(), source: std::io::Error::other("broken") }
                }
                false => Error::Full { path: "db".into() },
            });
        }
        self.disk.write_as(kind, offset, buf)
    }
    fn sync(&self) -> Result<()> {
        self.syncs.fetch_add(1, Ordering::SeqCst);
        self.disk.sync()
    }
    fn trim(&self, offset: u64, len: u64) -> Result<()> {
        self.disk.trim(offset, len)
    }
    fn resize(&self, len: u64) -> Result<()> {
        self.disk.resize(len)
    }
    fn reserve_range(&self, range: Range<u64>) -> Result<()> {
        match range.end > self.room.load(Ordering::SeqCst) {
            true => Err(Error::Full { path: "db".into() }),
            false => self.disk.reserve_range(range),
        }
    }
    fn allocated(&self) -> Result<u64> {
        self.disk.allocated()
    }
}

pub(super) fn disk() -> Arc<Failing> {
    let (disk, barriers) = (Arc::new(MemoryDisk::new()), Mutex::default());
    let (reaches, is_broken, syncs) = (AtomicUsize::new(0), AtomicBool::new(false), AtomicUsize::new(0));
    Arc::new(Failing { disk, left: AtomicI64::new(-1), reaches, is_broken, room: u64::MAX.into(), barriers, syncs })
}

fn create(kind: StoreKind, disk: &Arc<Failing>) -> Arc<dyn PageStore> {
    crate::store::create(kind, disk.clone(), Path::new("db"), meta_of(kind)).unwrap()
}

/// Tests once with each page store. The compiler reports a store that is missing here. `not_shadow` are tests that
/// count writes, or that expect an error of the first write that fails: the `shadow` store gives its reserve up and
/// writes again. `of_types` are tests whose parameter is the type of the store; all others get its kind.
macro_rules! on_each_store {
    (of_types: $($test:ident)*) => {
        on_each_store! { {} {} {$($test)*} }
    };
    ($($test:ident)* ; not_shadow: $($counting:ident)*) => {
        on_each_store! { {$($test)* $($counting)*} {$($test)*} {} }
    };
    ($all:tt $not_counting:tt $of_types:tt) => {
        on_each_store! {
            on_the_table_store = Table, crate::store::table::TableStore, $all $of_types;
            on_the_shadow_store = Shadow, crate::store::shadow::ShadowStore, $not_counting $of_types;
            on_the_slot_store = Slots, crate::store::tests::slots::SlotStore, $all $of_types;
        }
    };
    ($($module:ident = $kind:ident, $store:ty, {$($test:ident)*} {$($of_type:ident)*};)*) => {
        $(mod $module {
            $(#[test] fn $test() { super::$test(crate::store::StoreKind::$kind); })*
            $(#[test] fn $of_type() { super::$of_type::<$store>(); })*
        })*
        const _: fn(crate::store::StoreKind) = |kind| match kind {
            $(crate::store::StoreKind::$kind => {})*
        };
    };
}
use on_each_store;

/// A log without a log: it goes where the test says.
#[derive(Default)]
struct Log {
    durable: AtomicU64,
    appended: AtomicU64,
    syncs: AtomicU64,
    fails: AtomicBool,
    /// If it is not 0: after this number of questions for the durable LSN, another thread syncs the log.
    other_sync_after: AtomicU64,
}

impl Watermark for Log {
    fn durable(&self) -> Lsn {
        let durable = Lsn(self.durable.load(Ordering::SeqCst));
        let less = |left: u64| left.checked_sub(1);
        if self.other_sync_after.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less) == Ok(1) {
            self.durable.store(self.appended().0, Ordering::SeqCst);
        }
        durable
    }
    fn appended(&self) -> Lsn {
        Lsn(self.appended.load(Ordering::SeqCst))
    }
    fn make_durable(&self, lsn: Lsn) -> Result<bool> {
        assert!(lsn <= self.appended());
        if self.fails.load(Ordering::SeqCst) {
            return Err(Error::Poisoned { cause: "the log cannot be synced".into() });
        }
        self.syncs.fetch_add(1, Ordering::SeqCst);
        self.durable.fetch_max(lsn.0, Ordering::SeqCst);
        Ok(true)
    }
}

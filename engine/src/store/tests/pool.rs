//! The pool on one thread: misses, eviction, the write-ahead rule, flushing, freeing, damage.

use super::*;
use crate::page::{KeyListKind, Page, PageBuilder, PageKind, PageSpec, Record, RecordListKind};
use crate::store::{Backing, Pool, WriteGuard};

on_each_store! {
    more_pages_than_frames_are_read_and_come_back
    a_page_of_the_batch_being_applied_never_reaches_the_device
    pages_with_a_durable_log_are_evicted_without_a_sync
    pages_with_a_durable_log_are_evicted_when_the_log_cannot_be_synced
    a_search_waits_for_a_clean_frame_in_use_when_the_log_cannot_be_synced
    clean_pages_go_before_changed_ones
    a_flush_writes_the_pages_changed_before_it_and_no_others
    a_damaged_page_is_named_and_the_others_are_read
    with_resident_inner_pages_leaves_are_evicted_first
    a_pinned_page_stays
    a_created_page_replaces_an_older_one_of_its_id
    a_discarded_page_is_gone_and_its_frame_is_reused
    prefetching_reads_nothing_in
    memory_is_bound_by_the_frames
    an_id_that_no_page_has_costs_no_memory;
    not_shadow:
    a_thread_that_finds_no_free_frame_writes_a_few_pages
    a_failed_write_leaves_the_page_changed
    a_search_waits_for_a_clean_frame_in_use_after_a_failed_write
}

pub(super) struct Bench {
    pub(super) disk: Arc<Failing>,
    pub(super) store: Arc<dyn PageStore>,
    pub(super) log: Arc<Log>,
    pub(super) pool: Pool,
}

pub(super) fn bench(kind: StoreKind, frames: usize) -> Bench {
    let disk = disk();
    let store = create(kind, &disk);
    let log = Arc::new(Log::default());
    let pool = Pool::new(frames, Backing { store: store.clone(), watermark: log.clone() });
    Bench { disk, store, log, pool }
}

pub(super) fn put(mut guard: WriteGuard<'_>, lsn: u64, seed: u64) {
    let page = sample_of(guard.len(), guard.id().0, lsn, seed);
    guard.copy_from_slice(&page);
    guard.mark_dirty(Lsn(lsn));
}

impl Bench {
    /// A sound page of this store.
    pub(super) fn sample(&self, id: u32, lsn: u64, seed: u64) -> Vec<u8> {
        sample_of(self.pool.page_size(), id, lsn, seed)
    }

    pub(super) fn append(&self, to: u64) {
        self.log.appended.store(to, Ordering::SeqCst);
    }

    /// Pages `ids`, in the store and not in memory.
    pub(super) fn stored(&self, ids: std::ops::Range<u32>) {
        for id in ids {
            self.store.write(PageId(id), &self.sample(id, 0, u64::from(id))).unwrap();
        }
    }

    pub(super) fn in_store(&self, ids: std::ops::Range<u32>) -> Vec<Vec<u8>> {
        let read = |id| {
            let mut page = vec![0; self.pool.page_size()];
            assert!(self.store.read(PageId(id), &mut page).unwrap().is_some());
            page
        };
        ids.map(read).collect()
    }

    pub(super) fn reads_as(&self, id: u32, lsn: u64, seed: u64) {
        assert_eq!(&*self.pool.read(PageId(id)).unwrap(), self.sample(id, lsn, seed), "page {id}");
    }
}

fn more_pages_than_frames_are_read_and_come_back(kind: StoreKind) {
    let bench = bench(kind, 8);
    bench.append(1000);
    bench.stored(0..100);
    for id in (0..100).chain(0..100) {
        bench.reads_as(id, 0, u64::from(id));
    }
    for id in 0..100 {
        put(bench.pool.latch(PageId(id)).unwrap(), 500 + u64::from(id), 7);
    }
    for id in 0..100 {
        bench.reads_as(id, 500 + u64::from(id), 7);
    }
    let stats = bench.pool.stats();
    assert_eq!(stats.resident, 8);
    assert!(stats.misses >= 200 && stats.evictions >= 192 && stats.writes >= 92, "{stats:?}");
}

fn a_page_of_the_batch_being_applied_never_reaches_the_device(kind: StoreKind) {
    let bench = bench(kind, 4);
    bench.stored(0..10);
    bench.append(100);
    for id in 0..4 {
        put(bench.pool.latch(PageId(id)).unwrap(), 100 + u64::from(id), 1);
    }
    let before = bench.in_store(0..4);
    assert!(matches!(bench.pool.read(PageId(9)), Err(Error::CacheFull { frames: 4 })));
    assert_eq!(bench.pool.refill_step().unwrap(), 0);
    assert_eq!(bench.pool.flush_step(Lsn::MAX).unwrap(), 4);
    assert_eq!(bench.in_store(0..4), before);
    bench.append(102);
    bench.reads_as(9, 0, 9);
    assert!(bench.log.durable() == Lsn(102), "the log went first");
    assert_ne!(bench.in_store(0..2), before[..2], "one of the two pages of the finished batch");
    assert_eq!(bench.in_store(2..4), before[2..]);
}

fn pages_with_a_durable_log_are_evicted_without_a_sync(kind: StoreKind) {
    let bench = bench(kind, 8);
    bench.stored(0..40);
    bench.append(1000);
    bench.log.durable.store(1000, Ordering::SeqCst);
    for id in 0..40 {
        put(bench.pool.latch(PageId(id)).unwrap(), 1 + u64::from(id), 3);
    }
    assert_eq!(bench.log.syncs.load(Ordering::SeqCst), 0);
    assert!(bench.pool.stats().writes >= 32);
}

fn pages_with_a_durable_log_are_evicted_when_the_log_cannot_be_synced(kind: StoreKind) {
    let bench = bench(kind, 128);
    bench.stored(0..200);
    bench.append(1000);
    bench.log.durable.store(500, Ordering::SeqCst);
    for id in 0..128 {
        let lsn = if id == 100 { 400 } else { 600 + u64::from(id) };
        put(bench.pool.latch(PageId(id)).unwrap(), lsn, 3);
    }
    bench.log.fails.store(true, Ordering::SeqCst);
    for id in (150..200).chain([100]) {
        let (lsn, seed) = if id == 100 { (400, 3) } else { (0, u64::from(id)) };
        bench.reads_as(id, lsn, seed);
    }
}

fn a_search_waits_for_a_clean_frame_in_use_when_the_log_cannot_be_synced(kind: StoreKind) {
    waits_for_a_clean_frame_in_use(kind, 0, |bench| bench.log.fails.store(true, Ordering::SeqCst));
}

fn a_search_waits_for_a_clean_frame_in_use_after_a_failed_write(kind: StoreKind) {
    waits_for_a_clean_frame_in_use(kind, 1000, |bench| bench.disk.arm(0, 0));
}

/// Only one page is clean, and it is in use until a search has looked at all frames. `fail` lets the first attempt to
/// write another one fail.
fn waits_for_a_clean_frame_in_use(kind: StoreKind, durable: u64, fail: impl Fn(&Bench)) {
    let attempt = |_| {
        let bench = bench(kind, 4);
        bench.stored(0..10);
        bench.append(1000);
        bench.log.durable.store(durable, Ordering::SeqCst);
        let in_use = bench.pool.read(PageId(0)).unwrap();
        for id in 1..4 {
            put(bench.pool.latch(PageId(id)).unwrap(), 500 + u64::from(id), 3);
        }
        fail(&bench);
        let begun = bench.pool.hand();
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| bench.pool.read(PageId(9)).map(drop));
            // Waits until the reader has looked at all frames more than once.
            while bench.pool.hand() - begun <= 5 * 4 && !reader.is_finished() {
                std::thread::yield_now();
            }
            drop(in_use);
            reader.join().unwrap().is_ok()
        })
    };
    // The search waits only for a short time, and this thread may release the page too late. So there are several
    // attempts.
    assert!((0..50).any(attempt));
}

fn clean_pages_go_before_changed_ones(kind: StoreKind) {
    let bench = bench(kind, 32);
    bench.stored(0..100);
    bench.append(1000);
    for id in 0..8 {
        put(bench.pool.latch(PageId(id)).unwrap(), 1 + u64::from(id), 3);
    }
    for id in 8..100 {
        bench.reads_as(id, 0, u64::from(id));
    }
    assert_eq!(bench.pool.stats().writes, 0);
}

fn a_thread_that_finds_no_free_frame_writes_a_few_pages(kind: StoreKind) {
    let bench = bench(kind, 512);
    bench.stored(0..540);
    bench.append(1000);
    bench.log.durable.store(1000, Ordering::SeqCst);
    for id in 0..512 {
        put(bench.pool.latch(PageId(id)).unwrap(), 1 + u64::from(id), 3);
    }
    for (id, writes) in (512..529).zip([8; 8].into_iter().chain([16; 8]).chain([24])) {
        bench.reads_as(id, 0, u64::from(id));
        assert_eq!(bench.pool.stats().writes, writes, "page {id}");
    }
    (529..536).for_each(|id| bench.reads_as(id, 0, u64::from(id)));
    // If that write fails, one page is evicted, as in a small cache. No change is lost.
    bench.disk.arm(0, 0);
    bench.reads_as(536, 0, 536);
    assert_eq!((bench.pool.stats().writes, bench.pool.dirty_pages()), (25, 512 - 25));
    for id in 0..512 {
        bench.reads_as(id, 1 + u64::from(id), 3);
    }
    assert_eq!(bench.log.syncs.load(Ordering::SeqCst), 0);
}

fn a_flush_writes_the_pages_changed_before_it_and_no_others(kind: StoreKind) {
    let bench = bench(kind, 64);
    bench.stored(0..40);
    bench.append(1000);
    for id in 0..40 {
        put(bench.pool.latch(PageId(id)).unwrap(), 10 + u64::from(id), 3);
    }
    // Changed again later: its first change counts.
    put(bench.pool.latch(PageId(5)).unwrap(), 900, 8);
    bench.pool.flush_before(Lsn(30)).unwrap();
    assert_eq!(bench.pool.stats().writes, 20);
    let mut page = vec![0; bench.pool.page_size()];
    for id in 0..40 {
        assert!(bench.store.read(PageId(id), &mut page).unwrap().is_some());
        let expected = match id {
            5 => bench.sample(5, 900, 8),
            0..20 => bench.sample(id, 10 + u64::from(id), 3),
            _ => bench.sample(id, 0, u64::from(id)),
        };
        assert_eq!(page, expected, "page {id}");
    }
    bench.pool.flush_before(Lsn(30)).unwrap();
    assert_eq!(bench.pool.stats().writes, 20, "they are clean now");
}

fn a_failed_write_leaves_the_page_changed(kind: StoreKind) {
    let bench = bench(kind, 8);
    bench.stored(0..30);
    bench.append(1000);
    for id in 0..8 {
        put(bench.pool.latch(PageId(id)).unwrap(), 1 + u64::from(id), 3);
    }
    bench.disk.arm(0, 0);
    assert!(matches!(bench.pool.flush_before(Lsn::MAX), Err(Error::Full { .. })));
    bench.disk.arm(0, 0);
    assert!(matches!(bench.pool.read(PageId(20)), Err(Error::Full { .. })));
    for id in 0..8 {
        bench.reads_as(id, 1 + u64::from(id), 3);
    }
    bench.pool.flush_before(Lsn::MAX).unwrap();
    assert_eq!(bench.pool.stats().writes, 8);
    for id in (20..30).chain(0..8) {
        let expected = if id < 8 { (1 + u64::from(id), 3) } else { (0, u64::from(id)) };
        bench.reads_as(id, expected.0, expected.1);
    }
}

fn a_damaged_page_is_named_and_the_others_are_read(kind: StoreKind) {
    let bench = bench(kind, 4);
    bench.stored(0..10);
    let mut file = vec![0; bench.disk.size().unwrap() as usize];
    bench.disk.read_at(0, &mut file).unwrap();
    let page = &bench.sample(3, 0, 3)[..48];
    let at = file.windows(48).position(|bytes| bytes == page).unwrap() as u64 + 40;
    let mut byte = [0];
    bench.disk.read_at(at, &mut byte).unwrap();
    bench.disk.write_at(at, &[byte[0] ^ 4]).unwrap();
    for _ in 0..20 {
        assert!(matches!(bench.pool.read(PageId(3)), Err(Error::Corrupt { page: PageId(3), .. })));
    }
    assert!(matches!(bench.pool.read(PageId(77)), Err(Error::Corrupt { page: PageId(77), .. })));
    assert!(matches!(bench.pool.read(PageId(u32::MAX)), Err(Error::Corrupt { .. })));
    for id in (0..10).filter(|&id| id != 3) {
        bench.reads_as(id, 0, u64::from(id));
    }
    bench.disk.write_at(at, &byte).unwrap();
    bench.reads_as(3, 0, 3);
}

/// A sound inner page of one child.
pub(super) fn inner(page_size: usize, id: u32) -> Vec<u8> {
    let mut builder = PageBuilder::new(
        page_size,
        &PageSpec {
            id: PageId(id),
            table: TableId(7),
            kind: PageKind::Inner,
            level: 1,
            keys: KeyListKind::Head,
            records: RecordListKind::Fixed,
            lower: b"",
            upper: None,
            right: PageId::NONE,
        },
    );
    assert!(builder.push(b"", Record::inline(&[1, 0, 0, 0])));
    let mut page = vec![0; page_size];
    unpack(&builder.finish(), &mut page).unwrap();
    page
}

fn with_resident_inner_pages_leaves_are_evicted_first(kind: StoreKind) {
    for keeps in [true, false] {
        let mut bench = bench(kind, 8);
        bench.pool = bench.pool.keeping_inner(keeps);
        for id in 0..12 {
            bench.store.write(PageId(id), &inner(bench.pool.page_size(), id)).unwrap();
        }
        bench.stored(12..60);
        (0..5).for_each(|id| drop(bench.pool.read(PageId(id)).unwrap()));
        for id in 12..60 {
            bench.reads_as(id, 0, u64::from(id));
        }
        let stayed = (0..5).filter(|&id| bench.pool.is_resident(PageId(id))).count();
        assert_eq!(stayed, if keeps { 5 } else { 0 });
        // More of them than there are frames: they give way to one another, and to leaves.
        for id in (0..12).chain(12..20).chain(0..12) {
            assert_eq!(Page::new(&bench.pool.read(PageId(id)).unwrap()).id(), PageId(id));
        }
    }
}

fn a_pinned_page_stays(kind: StoreKind) {
    let bench = bench(kind, 4);
    bench.stored(0..20);
    let pins: Vec<_> = (0..3).map(|id| bench.pool.pin(PageId(id)).unwrap()).collect();
    for id in 3..20 {
        bench.reads_as(id, 0, u64::from(id));
    }
    let misses = bench.pool.stats().misses;
    for id in 0..3 {
        bench.reads_as(id, 0, u64::from(id));
    }
    assert_eq!(bench.pool.stats().misses, misses);
    let last = bench.pool.pin(PageId(3)).unwrap();
    assert!(matches!(bench.pool.read(PageId(9)), Err(Error::CacheFull { .. })));
    drop((pins, last));
    bench.reads_as(9, 0, 9);
}

fn a_created_page_replaces_an_older_one_of_its_id(kind: StoreKind) {
    let bench = bench(kind, 4);
    bench.stored(0..2);
    bench.append(1000);
    put(bench.pool.latch(PageId(0)).unwrap(), 5, 9);
    for id in [0, 1, 2] {
        let guard = bench.pool.create(PageId(id)).unwrap();
        assert!(guard.iter().all(|&byte| byte == 0), "page {id}");
        put(guard, 50 + u64::from(id), 4);
    }
    for id in [0, 1, 2] {
        bench.reads_as(id, 50 + u64::from(id), 4);
    }
    bench.pool.flush_before(Lsn(50)).unwrap();
    assert_eq!(bench.pool.stats().writes, 0, "the older version needs no writing");
}

fn a_discarded_page_is_gone_and_its_frame_is_reused(kind: StoreKind) {
    let bench = bench(kind, 4);
    bench.stored(0..10);
    bench.append(1000);
    for id in 0..4 {
        put(bench.pool.latch(PageId(id)).unwrap(), 5, 9);
        bench.pool.forget(PageId(id));
        bench.store.drop_page(PageId(id)).unwrap();
    }
    bench.pool.forget(PageId(8));
    assert_eq!(bench.pool.stats().resident, 0);
    bench.pool.flush_before(Lsn::MAX).unwrap();
    assert_eq!(bench.pool.stats().writes, 0);
    assert!(matches!(bench.pool.read(PageId(0)), Err(Error::Corrupt { page: PageId(0), .. })));
    for id in 4..8 {
        bench.reads_as(id, 0, u64::from(id));
    }
    assert_eq!(bench.pool.stats().evictions, 0);
}

fn prefetching_reads_nothing_in(kind: StoreKind) {
    let bench = bench(kind, 4);
    bench.stored(0..4);
    bench.pool.prefetch(PageId(2));
    assert_eq!(bench.pool.stats().misses, 0);
    bench.reads_as(2, 0, 2);
    bench.pool.prefetch(PageId(2));
    assert!(bench.pool.ahead(&[], PageId(3)).is_none());
    drop(bench.pool.read(PageId(2)).unwrap());
    let page = bench.pool.fetch_parts(PageId(2), [0..100, 4000..1 << 20]).unwrap();
    bench.pool.ahead(&page, PageId(2)).unwrap().like(&page);
    assert_eq!(bench.pool.stats().misses, 1);
}

#[test]
fn without_a_store_the_pool_keeps_all_pages() {
    let pool = Pool::in_memory(256);
    assert!(matches!(pool.read(PageId(3)), Err(Error::Corrupt { .. })));
    for id in 0..5000u32 {
        let mut guard = pool.create(PageId(id)).unwrap();
        guard[..4].copy_from_slice(&id.to_le_bytes());
        guard.mark_dirty(Lsn(u64::from(id)));
    }
    for id in 0..5000u32 {
        assert_eq!(pool.read(PageId(id)).unwrap()[..4], id.to_le_bytes());
    }
    pool.forget(PageId(7));
    assert!(pool.read(PageId(7)).is_err());
    pool.flush_before(Lsn::MAX).unwrap();
    assert_eq!((pool.refill_step().unwrap(), pool.stats().resident, pool.stats().writes), (0, 4999, 0));
    assert!(pool.create(PageId(7)).unwrap().iter().all(|&byte| byte == 0));
    let stats = pool.stats();
    for id in [5000, u32::MAX - 1, u32::MAX] {
        assert!(matches!(pool.latch(PageId(id)), Err(Error::Corrupt { page, .. }) if page.0 == id));
    }
    assert_eq!((pool.stats(), stats.resident), (stats, 5000));
}

fn memory_is_bound_by_the_frames(kind: StoreKind) {
    let bench = bench(kind, 16);
    bench.stored(0..2000);
    for id in 0..2000 {
        bench.reads_as(id, 0, u64::from(id));
    }
    let bytes = bench.pool.stats().bytes;
    // A frame has 64 bytes beside its page; slabs are found 1024 at a time, the translation has at most 8 bytes a page.
    assert!(bytes <= 16 * (PAGE_SIZE as u64 + 64) + 1024 * 32 + 2 * 2048 * 8, "{bytes}");
}

fn an_id_that_no_page_has_costs_no_memory(kind: StoreKind) {
    let bench = bench(kind, 8);
    bench.stored(0..4);
    bench.reads_as(3, 0, 3);
    let before = bench.pool.stats().bytes;
    for id in [4, 1 << 20, u32::MAX - 1, u32::MAX] {
        assert!(matches!(bench.pool.read(PageId(id)), Err(Error::Corrupt { page, .. }) if page.0 == id));
        assert!(matches!(bench.pool.latch(PageId(id)), Err(Error::Corrupt { .. })));
    }
    assert_eq!(bench.pool.stats().bytes, before);
}

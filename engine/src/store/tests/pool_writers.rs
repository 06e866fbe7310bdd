//! The writers of a pool, and the thread that syncs the log for them.

use super::pool::{bench, inner, put};
use super::*;
use crate::store::Pool;
use std::time::Duration;

on_each_store! {
    the_writers_sync_the_log_after_a_turn_when_too_few_pages_can_be_written
    a_writer_sees_that_another_thread_has_synced_the_log
    the_writers_leave_nothing_to_write_for_eviction
    the_writers_sync_the_log_after_a_turn_when_the_free_list_is_full
    the_writers_sleep_until_few_frames_are_free_and_pages_are_dirty
    a_writer_is_woken_if_a_thread_finds_too_few_frames_itself
    a_writer_sleeps_if_no_frame_can_be_added
    a_thread_syncs_the_log_for_the_writers;
    not_shadow:
}

/// Ends the background threads of a pool, also after a panic.
struct EndDemand<'p>(&'p Pool);

impl Drop for EndDemand<'_> {
    fn drop(&mut self) {
        self.0.end_demand();
    }
}

fn the_writers_sync_the_log_after_a_turn_when_too_few_pages_can_be_written(kind: StoreKind) {
    let bench = bench(kind, 64);
    bench.stored(0..64);
    bench.append(1000);
    bench.log.durable.store(500, Ordering::SeqCst);
    (0..4).for_each(|id| bench.reads_as(id, 0, u64::from(id)));
    for id in 4..64 {
        put(bench.pool.latch(PageId(id)).unwrap(), 600, 3);
    }
    let step = || (bench.pool.refill_step().unwrap(), bench.log.syncs.load(Ordering::SeqCst));
    assert_eq!(step(), (4, 1), "the log is synced after a turn, although some frames were added");
    assert_eq!(step(), (4, 1), "half of the list was missing");
}

fn a_writer_sees_that_another_thread_has_synced_the_log(kind: StoreKind) {
    let bench = bench(kind, 64);
    bench.stored(0..64);
    bench.append(1000);
    bench.log.durable.store(500, Ordering::SeqCst);
    for id in 0..64 {
        put(bench.pool.latch(PageId(id)).unwrap(), 600, 3);
    }
    // After the writer has searched for pages whose log is durable.
    bench.log.other_sync_after.store(2, Ordering::SeqCst);
    assert!(bench.pool.refill_step().unwrap() > 0);
    assert_eq!(bench.log.syncs.load(Ordering::SeqCst), 0);
}

fn the_writers_leave_nothing_to_write_for_eviction(kind: StoreKind) {
    let bench = bench(kind, 64);
    bench.stored(0..200);
    bench.append(1000);
    for id in 0..64 {
        put(bench.pool.latch(PageId(id)).unwrap(), 1 + u64::from(id), 3);
    }
    assert_eq!(bench.log.syncs.load(Ordering::SeqCst), 0);
    // An eighth of the frames, whose log is made durable first.
    assert_eq!((bench.pool.refill_step().unwrap(), bench.pool.stats().writes), (8, 8));
    assert_eq!((bench.pool.refill_step().unwrap(), bench.pool.stats().writes), (0, 8), "the free list is full");
    assert_eq!((bench.log.syncs.load(Ordering::SeqCst), bench.pool.stats().resident), (1, 64));
    // A page of the free list can still be used and changed. It then stays.
    let free_pages: Vec<u32> =
        (0..64).filter(|id| bench.in_store(*id..*id + 1) == [bench.sample(*id, 1 + u64::from(*id), 3)]).collect();
    assert_eq!(free_pages.len(), 8);
    bench.reads_as(free_pages[0], 1 + u64::from(free_pages[0]), 3);
    put(bench.pool.latch(PageId(free_pages[1])).unwrap(), 900, 4);
    for id in 64..70 {
        bench.reads_as(id, 0, u64::from(id));
    }
    assert_eq!(bench.pool.stats().writes, 8, "readers have not written");
    assert!(free_pages[..2].iter().all(|id| bench.pool.is_resident(PageId(*id))));
    assert!(free_pages[2..].iter().all(|id| !bench.pool.is_resident(PageId(*id))));
    assert_eq!(bench.pool.refill_step().unwrap(), 8);
    for id in 70..200 {
        bench.pool.refill_step().unwrap();
        bench.reads_as(id, 0, u64::from(id));
    }
    bench.reads_as(free_pages[1], 900, 4);
    for id in (0..64).filter(|id| *id != free_pages[1]) {
        bench.reads_as(id, 1 + u64::from(id), 3);
    }
}

fn the_writers_sync_the_log_after_a_turn_when_the_free_list_is_full(kind: StoreKind) {
    let bench = bench(kind, 64);
    bench.stored(0..64);
    (0..64).for_each(|id| bench.reads_as(id, 0, u64::from(id)));
    bench.append(1000);
    let step = || (bench.pool.refill_step().unwrap(), bench.log.syncs.load(Ordering::SeqCst));
    assert_eq!(step(), (8, 0), "the first turn of the hand only clears the reference bits");
    assert_eq!(step(), (0, 1));
    bench.append(2000);
    assert_eq!(step(), (0, 1), "the hand has not moved");
}

fn the_writers_sleep_until_few_frames_are_free_and_pages_are_dirty(kind: StoreKind) {
    let bench = bench(kind, 64);
    bench.stored(0..300);
    let taken = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let _end = EndDemand(&bench.pool);
        scope.spawn(|| {
            while bench.pool.await_demand() {
                while bench.pool.refill_step().unwrap() > 0 {}
                taken.fetch_add(1, Ordering::SeqCst);
            }
        });
        // First there are frames that have never been used, and then all pages are clean.
        (0..1000).for_each(|id| bench.reads_as(id % 299, 0, u64::from(id % 299)));
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!(taken.load(Ordering::SeqCst), 0);
        bench.append(2);
        put(bench.pool.latch(PageId(299)).unwrap(), 1, 3);
        bench.pool.note_changed_pages();
        wait_until(|| taken.load(Ordering::SeqCst) > 0);
        let mut id = 0;
        wait_until(|| {
            put(bench.pool.latch(PageId(299)).unwrap(), 1, 3);
            (0..10).for_each(|_| {
                bench.reads_as(id % 299, 0, u64::from(id % 299));
                id += 1;
            });
            taken.load(Ordering::SeqCst) > 3
        });
    });
}

/// No page is dirty.
fn a_writer_is_woken_if_a_thread_finds_too_few_frames_itself(kind: StoreKind) {
    let bench = bench(kind, 2048);
    bench.stored(0..2049);
    let is_woken = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _end = EndDemand(&bench.pool);
        scope.spawn(|| is_woken.store(bench.pool.await_demand(), Ordering::SeqCst));
        // All pages were used lately, so the thread finds no frame among those that it looks at.
        (0..2048).for_each(|id| bench.reads_as(id, 0, u64::from(id)));
        std::thread::sleep(Duration::from_millis(5));
        assert!(!is_woken.load(Ordering::SeqCst));
        bench.reads_as(2048, 0, 2048);
        wait_until(|| is_woken.load(Ordering::SeqCst));
    });
}

/// All pages are inner pages that stay in the cache, or nearly all are in use.
fn a_writer_sleeps_if_no_frame_can_be_added(kind: StoreKind) {
    for keeps_inner in [false, true] {
        let mut bench = bench(kind, 1024);
        bench.pool = bench.pool.keeping_inner(keeps_inner);
        for id in 0..1100 {
            bench.store.write(PageId(id), &inner(bench.pool.page_size(), id)).unwrap();
        }
        let pinned = if keeps_inner { 0 } else { 1020 };
        let pins: Vec<_> = (0..pinned).map(|id| bench.pool.pin(PageId(id)).unwrap()).collect();
        let steps = AtomicU64::new(0);
        std::thread::scope(|scope| {
            let _end = EndDemand(&bench.pool);
            scope.spawn(|| {
                while bench.pool.await_demand() {
                    while bench.pool.refill_step().unwrap() > 0 {}
                    steps.fetch_add(1, Ordering::SeqCst);
                }
            });
            (pinned..1090).for_each(|id| drop(bench.pool.read(PageId(id)).unwrap()));
            wait_until(|| steps.load(Ordering::SeqCst) > 0);
            std::thread::sleep(Duration::from_millis(5));
            let at_end = steps.load(Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(50));
            assert!(steps.load(Ordering::SeqCst) <= at_end + 1, "{kind:?}, inner pages stay: {keeps_inner}");
        });
        drop(pins);
    }
}

/// Waits up to ten seconds.
fn wait_until(mut is_done: impl FnMut() -> bool) {
    let is_done = (0..10_000).any(|_| {
        std::thread::sleep(Duration::from_millis(1));
        is_done()
    });
    assert!(is_done, "it takes too long");
}

/// The thread waits at `gate` before it syncs.
fn a_thread_syncs_the_log_for_the_writers(kind: StoreKind) {
    let bench = bench(kind, 64);
    bench.stored(0..100);
    let (asked, gate) = (AtomicU64::new(0), Mutex::new(()));
    let state = || (asked.load(Ordering::SeqCst), bench.log.syncs.load(Ordering::SeqCst));
    let (waiting, beside, after) = std::thread::scope(|scope| {
        let closed = gate.lock();
        let _end = EndDemand(&bench.pool);
        scope.spawn(|| {
            while bench.pool.await_log_sync() {
                asked.fetch_add(1, Ordering::SeqCst);
                drop(gate.lock());
                bench.pool.sync_log_ahead().unwrap();
            }
        });
        let mut ids = (0..100).cycle();
        let mut use_pages = |count: usize| {
            for id in ids.by_ref().take(count) {
                bench.reads_as(id, 0, u64::from(id));
                bench.pool.refill_step().unwrap();
            }
        };
        // Until the thread waits, there is nobody to ask.
        (0..10_000).take_while(|_| state().0 == 0).for_each(|_| {
            use_pages(10);
            std::thread::sleep(Duration::from_millis(1));
        });
        bench.append(1000);
        let waiting = state();
        use_pages(1000);
        let beside = state();
        drop(closed);
        let is_durable = || bench.log.durable() == Lsn(1000);
        (0..10_000).take_while(|_| !is_durable()).for_each(|_| std::thread::sleep(Duration::from_millis(1)));
        (waiting, beside, is_durable())
    });
    assert_eq!(waiting.0, 1, "the thread was asked for a sync");
    assert_eq!(beside, waiting, "the writers do not sync the log themselves, and do not wait for it");
    assert!(after, "the thread has synced the log");
}

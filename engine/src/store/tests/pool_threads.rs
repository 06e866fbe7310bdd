//! The pool under several threads with a handful of frames.

use super::*;
use crate::store::{Backing, Pool};
use std::sync::atomic::AtomicBool;

const PAGES: u32 = 40;

/// A page that counts: its payload is one number.
fn counter(page_size: usize, id: u32, lsn: u64, count: u64) -> Vec<u8> {
    let mut page = vec![0; page_size];
    unpack(&run_page(PageId(id), TableId(7), PageId::NONE, &count.to_le_bytes()), &mut page).unwrap();
    put_u64(&mut page, 0, lsn);
    page
}

on_each_store! {
    no_change_is_lost_between_writers_readers_refills_and_checkpoints
    a_flush_before_an_lsn_is_complete_beside_background_writers
    a_page_wanted_by_many_is_read_once
    a_freed_page_never_comes_back_from_a_flush_that_was_under_way
    a_flush_waits_for_the_batch_that_is_being_applied
    a_flush_does_not_wait_for_writes_that_begin_after_it
    a_page_can_be_used_while_it_is_written_to_be_evicted
    a_miss_waits_for_a_slow_write_of_all_pages;
    not_shadow:
    a_flush_waits_for_the_pages_that_another_thread_is_writing
}

struct Bench {
    disk: Arc<Failing>,
    store: Arc<dyn PageStore>,
    log: Arc<Log>,
    pool: Pool,
    lsn: AtomicU64,
}

fn bench(kind: StoreKind, frames: usize) -> Bench {
    let disk = disk();
    let store = create(kind, &disk);
    for id in 0..PAGES {
        store.write(PageId(id), &counter(page_size(kind), id, 0, 0)).unwrap();
    }
    let log = Arc::new(Log::default());
    log.appended.store(1 << 60, Ordering::SeqCst);
    let pool = Pool::new(frames, Backing { store: store.clone(), watermark: log.clone() });
    Bench { disk, store, log, pool, lsn: AtomicU64::new(1) }
}

fn payload(page: &[u8]) -> u64 {
    let payload = crate::page::Page::new(page).payload();
    payload.first_chunk().map_or(0, |count| u64::from_le_bytes(*count))
}

impl Bench {
    fn increment(&self, id: u32) {
        let mut guard = self.pool.latch(PageId(id)).unwrap();
        let lsn = self.lsn.fetch_add(1, Ordering::SeqCst);
        let count = payload(&guard) + 1;
        let page = counter(guard.len(), id, lsn, count);
        guard.copy_from_slice(&page);
        guard.mark_dirty(Lsn(lsn));
    }

    /// The value in the store.
    fn stored(&self, id: u32) -> u64 {
        let mut page = vec![0; self.pool.page_size()];
        assert!(self.store.read(PageId(id), &mut page).unwrap().is_some());
        payload(&page)
    }
}

fn no_change_is_lost_between_writers_readers_refills_and_checkpoints(kind: StoreKind) {
    let bench = bench(kind, 6);
    let stop = AtomicBool::new(false);
    let (threads, rounds) = (3u32, 3000u32);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..threads)
            .map(|thread| {
                let bench = &bench;
                scope.spawn(move || {
                    for round in 0..rounds {
                        let id = round.wrapping_mul(2_654_435_761).wrapping_add(thread * 17) % PAGES;
                        bench.increment(id);
                        let page = bench.pool.read(PageId((id + 1) % PAGES)).unwrap();
                        assert_eq!(crate::base::bytes::get_u32(&page, 8), (id + 1) % PAGES);
                    }
                })
            })
            .collect();
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Ordering::SeqCst) {
                    bench.pool.refill_step().unwrap();
                    std::thread::yield_now();
                }
            });
        }
        scope.spawn(|| {
            while !stop.load(Ordering::SeqCst) {
                let before = Lsn(bench.lsn.load(Ordering::SeqCst));
                bench.pool.flush_before(before).unwrap();
                let token = bench.store.begin_checkpoint();
                bench.store.finish(token, meta_of(kind)).unwrap();
                std::thread::yield_now();
            }
        });
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        stop.store(true, Ordering::SeqCst);
    });
    bench.pool.flush_before(Lsn::MAX).unwrap();
    let (mut in_pool, mut in_store) = (0, 0);
    let mut page = vec![0; bench.pool.page_size()];
    for id in 0..PAGES {
        in_pool += payload(&bench.pool.read(PageId(id)).unwrap());
        assert!(bench.store.read(PageId(id), &mut page).unwrap().is_some());
        in_store += payload(&page);
    }
    let expected = u64::from(threads * rounds);
    assert_eq!((in_pool, in_store), (expected, expected));
    assert!(bench.log.durable() > Lsn::ZERO);
}

fn a_flush_before_an_lsn_is_complete_beside_background_writers(kind: StoreKind) {
    let bench = bench(kind, 32);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::SeqCst) {
                bench.log.make_durable(bench.log.appended()).unwrap();
                bench.pool.refill_step().unwrap();
                // So that the free list is not full.
                for id in 20..PAGES {
                    drop(bench.pool.read(PageId(id)).unwrap());
                }
            }
        });
        for round in 1..=200 {
            for id in 0..20 {
                bench.increment(id);
            }
            bench.pool.flush_before(Lsn::MAX).unwrap();
            for id in 0..20 {
                assert_eq!(bench.stored(id), round, "page {id}");
            }
        }
        stop.store(true, Ordering::SeqCst);
    });
}

fn a_page_wanted_by_many_is_read_once(kind: StoreKind) {
    let bench = bench(kind, 8);
    let threads = 6;
    let barrier = Barrier::new(threads);
    for round in 0..200u32 {
        let id = round % PAGES;
        bench.pool.forget(PageId(id));
        let before = bench.pool.stats().misses;
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    barrier.wait();
                    assert_eq!(payload(&bench.pool.read(PageId(id)).unwrap()), 0);
                });
            }
        });
        assert_eq!(bench.pool.stats().misses, before + 1);
    }
}

fn a_freed_page_never_comes_back_from_a_flush_that_was_under_way(kind: StoreKind) {
    let bench = bench(kind, 16);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::SeqCst) {
                bench.pool.flush_before(Lsn::MAX).unwrap();
            }
        });
        for round in 0..4000 {
            let id = 1000 + round % 3;
            let mut guard = bench.pool.create(PageId(id)).unwrap();
            let lsn = bench.lsn.fetch_add(1, Ordering::SeqCst);
            let page = counter(guard.len(), id, lsn, 1);
            guard.copy_from_slice(&page);
            guard.mark_dirty(Lsn(lsn));
            drop(guard);
            if round % 2 == 0 {
                std::thread::yield_now();
            }
            bench.pool.forget(PageId(id));
            bench.store.drop_page(PageId(id)).unwrap();
            assert!(!bench.store.exists(PageId(id)));
        }
        stop.store(true, Ordering::SeqCst);
    });
    assert_eq!(bench.store.stats().pages, u64::from(PAGES));
}

fn a_flush_waits_for_the_batch_that_is_being_applied(kind: StoreKind) {
    let bench = bench(kind, 16);
    bench.log.appended.store(1, Ordering::SeqCst);
    bench.increment(0);
    bench.increment(1);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(20));
            assert_eq!(bench.pool.stats().writes, 0);
            bench.log.appended.store(100, Ordering::SeqCst);
        });
        bench.pool.flush_before(Lsn(50)).unwrap();
    });
    assert_eq!((bench.pool.stats().writes, bench.log.durable()), (2, Lsn(100)));
}

/// Whether the other thread's write succeeds or fails: after the flush, the store has the page.
fn a_flush_waits_for_the_pages_that_another_thread_is_writing(kind: StoreKind) {
    for fails in [false, true] {
        let bench = bench(kind, 8);
        (0..8).for_each(|id| drop(bench.pool.read(PageId(id)).unwrap()));
        bench.log.make_durable(bench.log.appended()).unwrap();
        bench.increment(0);
        let flushed = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let [held] = bench.disk.hold();
            let writer = scope.spawn(|| bench.pool.refill_step());
            bench.disk.await_held(0);
            assert_eq!(bench.pool.dirty_pages(), 1, "the store does not have its image");
            let flush = scope.spawn(|| {
                bench.pool.flush_before(Lsn(10)).unwrap();
                flushed.store(true, Ordering::SeqCst);
            });
            std::thread::sleep(std::time::Duration::from_millis(20));
            assert!(!flushed.load(Ordering::SeqCst));
            assert_eq!(bench.stored(0), 0);
            bench.disk.arm(if fails { 0 } else { -1 }, 0);
            held.wait();
            flush.join().unwrap();
            assert_eq!(bench.stored(0), 1);
            assert_eq!(writer.join().unwrap().is_err(), fails);
        });
        assert_eq!(bench.pool.dirty_pages(), 0);
    }
}

fn a_flush_does_not_wait_for_writes_that_begin_after_it(kind: StoreKind) {
    let bench = bench(kind, 8);
    (0..8).for_each(|id| drop(bench.pool.read(PageId(id)).unwrap()));
    bench.log.make_durable(bench.log.appended()).unwrap();
    bench.increment(0);
    bench.lsn.store(50, Ordering::SeqCst);
    (1..8).for_each(|id| bench.increment(id));
    // So that only the flush writes page 0.
    let _pin = bench.pool.pin(PageId(0)).unwrap();
    let [first, of_flush, later] = bench.disk.hold();
    std::thread::scope(|scope| {
        let writer = || bench.pool.refill_step().unwrap();
        scope.spawn(writer);
        bench.disk.await_held(2);
        let flush = scope.spawn(|| bench.pool.flush_before(Lsn(10)).unwrap());
        bench.disk.await_held(1);
        scope.spawn(writer);
        bench.disk.await_held(0);
        of_flush.wait();
        first.wait();
        flush.join().unwrap();
        assert_eq!(bench.stored(0), 1);
        later.wait();
    });
}

#[test]
fn in_memory_pages_come_and_go_under_several_threads() {
    let pool = Pool::in_memory(PAGE_SIZE);
    let ids = 6u32;
    std::thread::scope(|scope| {
        for thread in 0..3u32 {
            let pool = &pool;
            scope.spawn(move || {
                for round in 0..4000u32 {
                    let id = round.wrapping_mul(2_654_435_761).wrapping_add(thread * 17) % ids;
                    match (round / 7 + thread) % 3 {
                        0 => {
                            let mut guard = pool.create(PageId(id)).unwrap();
                            assert!(guard.iter().all(|&byte| byte == 0));
                            put_u64(&mut guard, 0, u64::from(id));
                        }
                        1 => pool.forget(PageId(id)),
                        _ => {
                            // Created, and then written, under one latch: a reader sees both or no page.
                            if let Ok(page) = pool.read(PageId(id)) {
                                assert_eq!(crate::base::bytes::get_u64(&page, 0), u64::from(id));
                            }
                        }
                    }
                }
            });
        }
    });
    let there = (0..ids).filter(|id| pool.is_resident(PageId(*id))).count();
    assert_eq!(pool.stats().resident, there as u64);
    (0..ids).for_each(|id| pool.forget(PageId(id)));
    assert_eq!(pool.stats().resident, 0);
}

fn a_page_can_be_used_while_it_is_written_to_be_evicted(kind: StoreKind) {
    for changes in [false, true] {
        let bench = bench(kind, 8);
        (0..8).for_each(|id| bench.increment(id));
        bench.log.make_durable(bench.log.appended()).unwrap();
        let [held] = bench.disk.hold();
        std::thread::scope(|scope| {
            let miss = scope.spawn(|| payload(&bench.pool.read(PageId(8)).unwrap()));
            bench.disk.await_held(0);
            for id in 0..8 {
                assert_eq!(payload(&bench.pool.read(PageId(id)).unwrap()), 1);
                if changes {
                    bench.increment(id);
                }
            }
            assert_eq!(bench.pool.dirty_pages(), 8 + u64::from(changes), "the image that is written counts, too");
            held.wait();
            assert_eq!(miss.join().unwrap(), 0);
        });
        bench.pool.flush_before(Lsn::MAX).unwrap();
        (0..8).for_each(|id| assert_eq!(bench.stored(id), 1 + u64::from(changes)));
    }
}

/// The device takes longer than all rounds of a search together.
fn a_miss_waits_for_a_slow_write_of_all_pages(kind: StoreKind) {
    let bench = bench(kind, 4);
    (0..4).for_each(|id| bench.increment(id));
    let [held] = bench.disk.hold();
    std::thread::scope(|scope| {
        let flush = scope.spawn(|| bench.pool.flush_before(Lsn::MAX));
        bench.disk.await_held(0);
        let miss = scope.spawn(|| bench.pool.read(PageId(8)).map(|page| payload(&page)));
        std::thread::sleep(std::time::Duration::from_millis(600));
        assert!(!miss.is_finished(), "all frames are being written");
        held.wait();
        assert_eq!(miss.join().unwrap().unwrap(), 0);
        flush.join().unwrap().unwrap();
    });
}

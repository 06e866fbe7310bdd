//! Promise: a read beside any change returns the content of its snapshot, and never an error.
//!
//! Threads that read in every way run beside threads that change in every way, on tiny pages with tiny caches. Each
//! commit records the content of all tables after it, and each snapshot knows its commit. So every answer is compared
//! with the only right one.
//!
//! `DURAMEN_READERS_SECONDS` is the duration of the test, 20 by default, and `DURAMEN_READERS_SEED` the first seed. A
//! failure prints its seed. Threads interleave differently each time, so it may take some rounds to reproduce a
//! failure.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation
)]

mod beside;
#[path = "workload/keys.rs"]
mod keys;
#[path = "workload/layouts.rs"]
mod layouts;
#[path = "workload/policies.rs"]
mod policies;
#[path = "workload/stores.rs"]
mod stores;

use beside::changes::{maintain, transaction};
use beside::reads::Seen;
use beside::world::{History, World};
use duramen::io::{FileVolume, MemoryVolume, Volume};
use duramen::{Builder, Database, Durability, Result};
use duramen_sim::{HookedVolume, Hooks};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use stores::STORES;

/// How long one database is worked on.
const ROUND: Duration = Duration::from_secs(5);
/// A thread that does not end by then waits for something that never comes.
const PATIENCE: Duration = Duration::from_secs(120);
const NAME: &str = "t.duramen";
const WRITERS: u64 = 2;
const READERS: u64 = 3;
/// Snapshots that a reader keeps open.
const HELD: usize = 3;

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Prints the seed if the test fails.
struct PrintSeedOnPanic(u64);

impl Drop for PrintSeedOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("it failed with DURAMEN_READERS_SEED={}", self.0);
        }
    }
}

/// Counts a thread that runs; if it fails, the others end as well.
struct Running<'r> {
    running: &'r AtomicUsize,
    over: &'r AtomicBool,
}

impl<'r> Running<'r> {
    fn new(running: &'r AtomicUsize, over: &'r AtomicBool) -> Running<'r> {
        running.fetch_add(1, Ordering::AcqRel);
        Running { running, over }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.over.store(true, Ordering::Release);
        }
        self.running.fetch_sub(1, Ordering::AcqRel);
    }
}

fn options(rng: &mut fastrand::Rng) -> Builder {
    let durability = if rng.bool() { Durability::Commit } else { Durability::None };
    Database::builder()
        .cache(rng.choice([0, 1 << 20]).unwrap())
        .checkpoint_bytes(64 << 10)
        .resident_inner(rng.bool())
        .durability(durability)
        .flush_interval(Duration::from_millis(5))
}

fn read(db: &Database, history: &History, rng: &mut fastrand::Rng, over: &AtomicBool) -> Result<()> {
    let mut held = VecDeque::new();
    while !over.load(Ordering::Acquire) {
        let seen = Seen::of(db, history)?;
        for _ in 0..rng.u8(1..6) {
            seen.look(rng)?;
        }
        if rng.u8(0..6) == 0 {
            held.push_back(seen);
        }
        if let Some(seen) = rng.choice(held.iter()) {
            seen.look(rng)?;
        }
        if held.len() > HELD || rng.u8(0..12) == 0 {
            held.pop_front();
        }
    }
    Ok(())
}

/// Syncs that take their time: what is committed is applied for a while, and not to be seen yet.
#[derive(Debug, Default)]
struct SlowSyncs(AtomicUsize);

impl Hooks for SlowSyncs {
    fn before_sync(&self, _: Option<&str>) -> Result<()> {
        if self.0.fetch_add(1, Ordering::Relaxed).is_multiple_of(4) {
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}

/// The work of a thread until the end of the round.
type Work = dyn Fn(&Database, &History, &mut fastrand::Rng, &AtomicBool) -> Result<()> + Sync;

fn write(db: &Database, history: &History, rng: &mut fastrand::Rng, over: &AtomicBool) -> Result<()> {
    while !over.load(Ordering::Acquire) {
        transaction(db, history, rng)?;
    }
    Ok(())
}

fn keep(db: &Database, _: &History, rng: &mut fastrand::Rng, over: &AtomicBool) -> Result<()> {
    while !over.load(Ordering::Acquire) {
        maintain(db, rng)?;
        std::thread::sleep(Duration::from_millis(rng.u64(0..30)));
    }
    Ok(())
}

/// Lets all run on one database until `end`.
fn round(seed: u64, db: &Database, history: &History, end: Instant) {
    let (over, running) = (AtomicBool::new(false), AtomicUsize::new(0));
    let (over, running) = (&over, &running);
    let rng = |thread: u64| fastrand::Rng::with_seed(seed.wrapping_mul(100).wrapping_add(thread));
    std::thread::scope(|scope| {
        let spawn = |thread: u64, work: &'static Work| {
            let counted = Running::new(running, over);
            scope.spawn(move || {
                let _counted = counted;
                work(db, history, &mut rng(thread), over).unwrap();
            });
        };
        (0..WRITERS).for_each(|thread| spawn(thread, &write));
        (0..READERS).for_each(|thread| spawn(10 + thread, &read));
        spawn(20, &keep);
        while Instant::now() < end && !over.load(Ordering::Acquire) {
            std::thread::sleep(Duration::from_millis(20));
        }
        over.store(true, Ordering::Release);
        let asked = Instant::now();
        while running.load(Ordering::Acquire) > 0 {
            if asked.elapsed() > PATIENCE {
                eprintln!("with DURAMEN_READERS_SEED={seed} a thread waits for ever");
                std::process::abort();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    });
}

/// The database is sound, and shows the last commit.
fn check(db: &Database, history: &History) -> Result<()> {
    let report = db.verify(|_| ())?;
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    Seen::of(db, history)?.look_at_all()
}

#[test]
fn reads_concurrent_with_every_change_return_their_snapshot() -> Result<()> {
    let start = Instant::now();
    let total = Duration::from_secs(number("DURAMEN_READERS_SECONDS", 20));
    let first = number("DURAMEN_READERS_SEED", 1);
    for seed in first.. {
        let left = total.saturating_sub(start.elapsed());
        if left.is_zero() {
            break;
        }
        let _seed_printer = PrintSeedOnPanic(seed);
        let (mut rng, history) = (fastrand::Rng::with_seed(seed), History::default());
        history.add(0, World::default());
        let end = Instant::now() + ROUND.min(left);
        let options = options(&mut rng);
        let folder = tempfile::tempdir().unwrap();
        let volume: Option<Arc<dyn Volume>> = match seed % 6 {
            0 => Some(Arc::new(FileVolume::open(folder.path()).unwrap())),
            2 | 4 => Some(Arc::new(MemoryVolume::new())),
            _ => None,
        };
        match volume {
            None => {
                let db = options.page_size(rng.choice([256, 512, 1024]).unwrap()).in_memory()?;
                work_on(seed, &db, &history, &mut rng, end)?;
            }
            Some(volume) => {
                let volume = Arc::new(HookedVolume::new(volume, Arc::new(SlowSyncs::default())));
                let store = STORES[(seed / 2) as usize % STORES.len()];
                let page_size = rng.choice([4096, 8192]).unwrap();
                let db = options.store(store).page_size(page_size).create_on(volume.clone(), NAME)?;
                work_on(seed, &db, &history, &mut rng, end)?;
                db.close()?;
                check(&Database::builder().open_on(volume, NAME)?, &history)?;
            }
        }
        println!("seed {seed}: {} commits", history.latest().0);
    }
    Ok(())
}

/// Lets all run, and checks what they have left.
fn work_on(seed: u64, db: &Database, history: &History, rng: &mut fastrand::Rng, end: Instant) -> Result<()> {
    // Every snapshot says which commit it is of.
    while history.latest().0 == 0 {
        transaction(db, history, rng)?;
    }
    round(seed, db, history, end);
    check(db, history)
}

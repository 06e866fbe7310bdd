//! Populates a database, overwrites it at random, and measures.

use super::data::{Keys, Rewritten, fill};
use super::{Args, DiskKind, Flush, Log};
use crate::Result;
use crate::numbers::index;
use crate::random::Random;
use crate::size;
use duramen::db::LogShape;
use duramen::db::types::{KeyLayout, TableOptions};
use duramen::io::{FileVolume, MemoryVolume, OpenMode, Volume};
use duramen::{Builder, Database, Durability};
use duramen_sim::{DriveCounts, DriveVolume};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const NAME: &str = "writes.duramen";
const TABLE: &str = "records";
/// Bytes of a key.
const KEY: usize = 8;
/// The number of records in a commit while populating.
const COMMIT: usize = 1000;
/// The number of reads, and the number of scans, each of `SCANNED` records.
const READS: usize = 20_000;
const SCANS: usize = 2_000;
pub(super) const SCANNED: usize = 100;
/// The number of overwrites for each leaf before the measured workload begins.
const SPREAD: usize = 40;
/// The number of bytes that are copied at a time: a block of a file in memory.
const PART: usize = 4096;
/// The duration of a sync if several threads commit, so that it covers several commits.
const SYNC: Duration = Duration::from_micros(200);

/// The effects of some operations on the drive.
pub(super) struct Work {
    pub(super) operations: usize,
    pub(super) seconds: f64,
    pub(super) counts: DriveCounts,
}

/// The results of a measurement.
pub(super) struct Measured {
    pub(super) overwrites: Work,
    /// Bytes of the keys and values that were overwritten.
    pub(super) user_bytes: u64,
    pub(super) reads: Work,
    pub(super) scans: Work,
    pub(super) leaves: u64,
    pub(super) frames: u64,
    pub(super) evictions: u64,
    /// The log syncs that were needed only because dirty pages had to be written.
    pub(super) forced_log_syncs: u64,
    /// Bytes of delta blocks for each byte of pages.
    pub(super) beta: f64,
    /// The bytes that the file takes on the drive, and its length.
    pub(super) stored_bytes: u64,
    pub(super) file_bytes: u64,
}

/// Runs the whole workload.
pub(super) fn measure(args: &Args) -> Result<Measured> {
    let folder = match args.disk {
        DiskKind::Metered => None,
        DiskKind::File => Some(match &args.dir {
            Some(dir) => tempfile::tempdir_in(dir)?,
            None => tempfile::tempdir_in(".")?,
        }),
    };
    let below: Arc<dyn Volume> = match &folder {
        None => Arc::new(MemoryVolume::new()),
        Some(folder) => Arc::new(FileVolume::for_file(&folder.path().join(NAME))?.0),
    };
    let keys = Keys::new(args.records, args.seed);
    let drive = drive(args, below);
    populate(args, &keys, &drive)?;
    overwrite_on(args, &keys, drive)
}

/// Returns a drive with the options of a run. It does not count yet.
fn drive(args: &Args, below: Arc<dyn Volume>) -> Arc<DriveVolume> {
    let gathers = args.threads > 1 && args.flush == Flush::Commit;
    let sync_time = if gathers { SYNC } else { Duration::ZERO };
    let drive = DriveVolume::new(below).with_atomic_blocks().with_sync_time(sync_time);
    drive.set_counting(false);
    Arc::new(drive)
}

/// Runs the workload on the database that is on the drive, and measures it.
fn overwrite_on(args: &Args, keys: &Keys, drive: Arc<DriveVolume>) -> Result<Measured> {
    let db = builder(args).open_on(drive.clone(), NAME)?;
    Bench { args, keys, drive, db }.measure()
}

/// A populated database, for several runs that each change a copy of it.
pub(super) struct Populated {
    keys: Keys,
    volume: MemoryVolume,
}

impl Populated {
    /// Populates a database in memory.
    pub(super) fn new(args: &Args) -> Result<Populated> {
        let keys = Keys::new(args.records, args.seed);
        let volume = MemoryVolume::new();
        populate(args, &keys, &drive(&Args { threads: 1, ..args.clone() }, Arc::new(volume.clone())))?;
        Ok(Populated { keys, volume })
    }

    /// Runs the workload on a copy and measures it. The records, the page size, the store and the delta blocks in
    /// `args` must be those of the populated database.
    pub(super) fn measure(&self, args: &Args) -> Result<Measured> {
        let copy = MemoryVolume::new();
        for name in self.volume.list("")? {
            let (from, to) = (self.volume.open(&name, OpenMode::Read)?, copy.open(&name, OpenMode::CreateNew)?);
            to.resize(from.size()?)?;
            let mut part = vec![0; PART];
            for offset in (0..from.size()?).step_by(PART) {
                let len = index(from.size()? - offset).min(PART);
                from.read_at(offset, &mut part[..len])?;
                // Blocks of zeros are not written, so that holes stay holes.
                if part[..len].iter().any(|byte| *byte != 0) {
                    to.write_at(offset, &part[..len])?;
                }
            }
        }
        overwrite_on(args, &self.keys, drive(args, Arc::new(copy)))
    }
}

fn builder(args: &Args) -> Builder {
    let builder = match args.flush {
        Flush::Commit => Database::builder().durability(Durability::Commit),
        Flush::Interval(time) => Database::builder().durability(Durability::Interval).flush_interval(time),
        Flush::None => Database::builder().durability(Durability::None),
    };
    let shape = match args.log {
        Log::Packed => LogShape::Packed,
        Log::Sparse => LogShape::Sparse,
    };
    let builder = builder.persist_table(args.persist_table);
    builder
        .log_shape(shape)
        .resident_inner(true)
        .cache(size::length(args.cache))
        .page_size(size::length(args.page_size))
}

/// Creates and populates the database.
fn populate(args: &Args, keys: &Keys, drive: &Arc<DriveVolume>) -> Result<()> {
    insert(args, keys, drive.clone())?;
    let db = builder(args).durability(Durability::None).open_on(drive.clone(), NAME)?;
    let bench = Bench { args, keys, drive: drive.clone(), db };
    bench.spread()?;
    Ok(bench.db.close()?)
}

/// Inserts all records in random order. The cache holds them all, because only the shape of the tree matters.
fn insert(args: &Args, keys: &Keys, volume: Arc<dyn Volume>) -> Result<()> {
    let cache = 4 * keys.len() * (args.record_size as usize + 16) + (64 << 20);
    let db = builder(args)
        .store(args.store)
        .delta(args.delta)
        .durability(Durability::None)
        .cache(cache)
        .create_on(volume, NAME)?;
    let width = args.record_size as usize - KEY;
    let tx = db.begin_write()?;
    let options = TableOptions { keys: Some(KeyLayout::Fixed), ..TableOptions::default() };
    let values = if args.varied { "bytes".to_owned() } else { format!("[u8;{width}]") };
    drop(tx.create_untyped(TABLE, "u64", &values, options)?);
    tx.commit()?;
    let mut random = Random::new(args.seed ^ 1);
    let mut value = Vec::new();
    for some in keys.shuffled(&mut random).chunks(COMMIT) {
        let tx = db.begin_write()?;
        let mut table = tx.open_untyped(TABLE)?;
        for key in some {
            value.resize(len_of_value(args, &mut random), 0);
            fill(&mut value, &mut random);
            table.put(&key.to_be_bytes(), &value)?;
        }
        drop(table);
        tx.commit()?;
    }
    Ok(db.close()?)
}

/// The length of the next value.
fn len_of_value(args: &Args, random: &mut Random) -> usize {
    let width = args.record_size as usize - KEY;
    if args.varied { width - random.below(width / 2 + 1) } else { width }
}

struct Bench<'a> {
    args: &'a Args,
    keys: &'a Keys,
    drive: Arc<DriveVolume>,
    db: Database,
}

impl Bench<'_> {
    fn leaves(&self) -> Result<u64> {
        Ok(self.db.table_stats(TABLE)?.levels.first().map_or(0, |level| level.pages))
    }

    /// Overwrites records at random, records with higher keys more often. All leaves have just been written whole. With
    /// a uniform distribution all leaves would be written whole again at about the same time, and the result would
    /// depend on when the measurement begins.
    fn spread(&self) -> Result<()> {
        let count = SPREAD * index(self.leaves()?);
        self.overwrite(count, 7, |random, keys| random.below(keys).max(random.below(keys)))
    }

    fn measure(self) -> Result<Measured> {
        let leaves = self.leaves()?;
        let mut rewritten = Rewritten::new(self.keys.len(), index(leaves));
        let mut random = Random::new(self.args.seed ^ 2);
        let mut cycle = 1;
        while rewritten.note(random.below(self.keys.len())) {
            cycle += 1;
        }
        self.overwrite(cycle, 3, Random::below)?;
        self.drive.set_counting(true);
        let evicted = self.db.stats().evictions;
        let before = self.db.metrics().since_open;
        let overwrites = self.work(2 * cycle, || {
            self.overwrite(2 * cycle, 4, Random::below)?;
            Ok(self.db.checkpoint()?)
        })?;
        let (stats, metrics) = (self.db.stats(), self.db.metrics());
        let (stored_bytes, file_bytes) = (self.drive.stored_bytes(NAME)?, stats.file_bytes);
        let reads = self.work(READS, || self.read())?;
        let scans = self.work(SCANS, || self.scan())?;
        let (frames, evictions) = (stats.cache_pages, stats.evictions - evicted);
        let measured = Measured {
            overwrites,
            user_bytes: metrics.since_open.user_bytes - before.user_bytes,
            reads,
            scans,
            leaves,
            frames,
            evictions,
            forced_log_syncs: metrics.since_open.forced_log_syncs - before.forced_log_syncs,
            beta: metrics.beta(),
            stored_bytes,
            file_bytes,
        };
        self.db.close()?;
        Ok(measured)
    }

    fn work(&self, operations: usize, work: impl FnOnce() -> Result<()>) -> Result<Work> {
        let (before, started) = (self.drive.counts(), Instant::now());
        work()?;
        Ok(Work { operations, seconds: started.elapsed().as_secs_f64(), counts: self.drive.counts().since(&before) })
    }

    /// Performs `count` operations in all threads. Each thread has its own random numbers.
    fn in_threads(&self, count: usize, salt: u64, operation: impl Fn(&mut Random) -> Result<()> + Sync) -> Result<()> {
        let left = AtomicUsize::new(count);
        let less = |left: usize| left.checked_sub(1);
        std::thread::scope(|scope| {
            let run = |thread: u32| {
                let mut random = Random::new(self.args.seed ^ salt << 32 ^ u64::from(thread) << 48);
                while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok() {
                    operation(&mut random)?;
                }
                Ok(())
            };
            let threads: Vec<_> = (0..self.args.threads).map(|thread| scope.spawn(move || run(thread))).collect();
            threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a thread has panicked")?)
        })
    }

    /// Overwrites records, one in each commit. `choose` returns the index of the key, below the given number of
    /// keys.
    fn overwrite(&self, count: usize, salt: u64, choose: impl Fn(&mut Random, usize) -> usize + Sync) -> Result<()> {
        self.in_threads(count, salt, |random| {
            let mut value = vec![0; len_of_value(self.args, random)];
            let key = self.keys.get(choose(random, self.keys.len()));
            fill(&mut value, random);
            let tx = self.db.begin_write()?;
            tx.open_untyped(TABLE)?.put(&key.to_be_bytes(), &value)?;
            Ok(tx.commit()?)
        })
    }

    fn read(&self) -> Result<()> {
        let table = self.db.begin_read()?.open_untyped(TABLE)?;
        self.in_threads(READS, 5, |random| {
            let key = self.keys.get(random.below(self.keys.len()));
            table.get(&key.to_be_bytes())?.map(|_| ()).ok_or_else(|| format!("key {key} is missing").into())
        })
    }

    fn scan(&self) -> Result<()> {
        let table = self.db.begin_read()?.open_untyped(TABLE)?;
        self.in_threads(SCANS, 6, |random| {
            let first = random.below(self.keys.len() - SCANNED);
            let (mut entries, mut found) = (table.range(&self.keys.get(first).to_be_bytes()[..]..), 0);
            while found < SCANNED && entries.next_with(|_, _| ())?.is_some() {
                found += 1;
            }
            if found == SCANNED { Ok(()) } else { Err(format!("a scan ends after {found} records").into()) }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::writes::tests::args;

    fn bytes(volume: &MemoryVolume) -> Vec<u8> {
        let disk = volume.open(NAME, OpenMode::Read).unwrap_or_else(|error| panic!("{error}"));
        let mut bytes = vec![0; disk.size().unwrap_or_default() as usize];
        disk.read_at(0, &mut bytes).unwrap_or_else(|error| panic!("{error}"));
        bytes
    }

    #[test]
    fn a_run_changes_a_copy_that_has_all_records() {
        let args = args(&["--records", "2000", "--store", "shadow"]);
        let populated = Populated::new(&args).unwrap_or_else(|error| panic!("{error}"));
        let before = bytes(&populated.volume);
        let measured = populated.measure(&args).unwrap_or_else(|error| panic!("{error}"));
        assert!(measured.overwrites.operations > 500 && measured.leaves > 30, "{}", measured.leaves);
        assert!(before == bytes(&populated.volume), "the populated database has changed");
    }
}

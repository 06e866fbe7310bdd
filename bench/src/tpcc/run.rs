//! Loads a database, runs transactions, and measures both.

use super::data::Population;
use super::demand::Demand;
use super::load::Loader;
use super::schema::{GROUPS, Scale, Storage, Table};
use super::terminals::{Times, Work};
use super::transactions::Shop;
use super::{Args, DiskKind, consistency};
use crate::Result;
use crate::clock::thread_seconds;
use crate::numbers::{index, whole};
use crate::size;
use duramen::Database;
use duramen::db::{CompressionTotals, Strategy, TableAnalysis};
use duramen::io::{FileVolume, MemoryVolume, Volume};
use duramen_sim::DriveVolume;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

const NAME: &str = "tpcc.duramen";
/// The cache is the data divided by this: 2 GB of 90 GB in the paper.
const CACHE_DIVISOR: u64 = 45;

/// The time and the calls of a part of the run.
#[derive(Clone, Copy)]
pub(super) struct Phase {
    pub(super) wall_seconds: f64,
    pub(super) demand: Demand,
    pub(super) compression: CompressionTotals,
}

/// A table with its indexes.
pub(super) struct Size {
    pub(super) name: &'static str,
    pub(super) is_compressed: bool,
    pub(super) pages: u64,
    /// Bytes that it would have without compression: those of an entry in a database of one warehouse, times the
    /// entries.
    pub(super) uncompressed: u64,
    /// Bytes of the places of its pages.
    pub(super) stored: u64,
}

/// The results of a run.
pub(super) struct Measured {
    pub(super) load: Phase,
    pub(super) work: Phase,
    pub(super) times: Vec<Times>,
    pub(super) sizes: Vec<Size>,
    pub(super) cache: u64,
}

/// Sizes in a database of one warehouse without compression, from which those of larger ones are computed.
struct OneWarehouse {
    /// Bytes of an entry of each table.
    entry_bytes: HashMap<Table, f64>,
    compressed: HashSet<Table>,
}

/// Runs the whole benchmark.
pub(super) fn measure(args: &Args) -> Result<Measured> {
    let storage = args.storage();
    let population = Population { seed: args.seed, scale: args.scale() };
    eprintln!("loading one warehouse as a sample");
    let sample = OneWarehouse::of(args, &storage, population)?;
    let cache =
        args.cache.map_or_else(|| sample.bytes(args.warehouses, &population.scale) / CACHE_DIVISOR, |cache| cache.0);
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
    let drive = DriveVolume::new(below);
    let drive = Arc::new(if args.device.model().compresses { drive } else { drive.without_compression() });
    let builder = Database::builder().page_size(size::length(args.page_size)).cache(index(cache));
    let builder = builder.compression_threads(args.processors as usize);
    let db = builder.create_on(drive.clone(), NAME)?;
    let loader =
        Loader { population, warehouses: args.warehouses, storage: &storage, compressed: sample.compressed.clone() };
    let serial = AtomicU64::new(0);
    let load = phase(&db, &drive, &serial, || {
        // One thread loads.
        let began = thread_seconds();
        loader.load(&db, |table| eprintln!("loading {table}"))?;
        serial.store(whole((thread_seconds() - began) * 1e9), Ordering::Relaxed);
        Ok(())
    })?;
    db.close()?;

    let db = builder.open_on(drive.clone(), NAME)?;
    let shop = Shop {
        db,
        encoding: args.rows,
        scale: population.scale,
        warehouses: args.warehouses,
        // The metered disk does not wait, so only the writer would be waited for, and the pages evicted meanwhile.
        reads_before: args.disk == DiskKind::File,
        writers: AtomicU64::new(0),
        serial: AtomicU64::new(0),
    };
    work(args, &shop, &drive, args.warmup, 1)?;
    let mut times = Vec::new();
    let measured = phase(&shop.db, &drive, &shop.serial, || {
        times = work(args, &shop, &drive, args.seconds, 2)?;
        Ok(())
    })?;
    eprintln!("checking the consistency conditions");
    consistency::check(&shop)?;
    let sizes = sizes(&shop, &sample)?;
    shop.db.close()?;
    Ok(Measured { load, work: measured, times, sizes, cache })
}

/// Runs transactions for some seconds of the clock, which is virtual on a metered disk.
fn work(args: &Args, shop: &Shop, drive: &DriveVolume, seconds: u32, salt: u64) -> Result<Vec<Times>> {
    let work = Work {
        shop,
        mix: args.mix,
        connections: args.connections,
        terminals: args.terminals,
        seed: args.seed ^ salt << 48,
    };
    let (before, started) = (Demand::now(drive, &shop.serial), Instant::now());
    let machine = args.machine();
    work.run(|| {
        let elapsed = match args.disk {
            DiskKind::Metered => Demand::now(drive, &shop.serial).since(&before).seconds(&machine),
            DiskKind::File => started.elapsed().as_secs_f64(),
        };
        elapsed >= f64::from(seconds)
    })
}

fn phase(db: &Database, drive: &DriveVolume, serial: &AtomicU64, work: impl FnOnce() -> Result<()>) -> Result<Phase> {
    let (before, compression) = (Demand::now(drive, serial), db.metrics().compression);
    let started = Instant::now();
    work()?;
    Ok(Phase {
        wall_seconds: started.elapsed().as_secs_f64(),
        demand: Demand::now(drive, serial).since(&before),
        compression: db.metrics().compression.since(&compression),
    })
}

impl OneWarehouse {
    fn of(args: &Args, storage: &Storage, population: Population) -> Result<OneWarehouse> {
        let uncompressed = Storage { strategy: Strategy::None, ..*storage };
        let loader = Loader { population, warehouses: 1, storage: &uncompressed, compressed: HashSet::new() };
        let builder = Database::builder().page_size(size::length(args.page_size));
        let db = builder.create_on(Arc::new(MemoryVolume::new()), NAME)?;
        loader.load(&db, |_| ())?;
        let analyses = db.analyze(&storage.plan(), |_| ())?;
        let mut sample = OneWarehouse { entry_bytes: HashMap::new(), compressed: HashSet::new() };
        for table in Table::ALL {
            let analysis = of_table(&analyses, table)?;
            let stats = db.table_stats(table.name())?;
            sample.entry_bytes.insert(table, stats.stored_bytes as f64 / stats.entries().max(1) as f64);
            if analysis.reason.compresses() {
                sample.compressed.insert(table);
            }
        }
        Ok(sample)
    }

    /// Bytes of a database without compression.
    fn bytes(&self, warehouses: u32, scale: &Scale) -> u64 {
        let of = |(table, bytes): (&Table, &f64)| {
            let warehouses = if *table == Table::Item { 1 } else { warehouses };
            bytes * table.entries(scale) as f64 * f64::from(warehouses)
        };
        whole(self.entry_bytes.iter().map(of).sum())
    }
}

fn of_table(analyses: &[TableAnalysis], table: Table) -> Result<&TableAnalysis> {
    let found = analyses.iter().find(|analysis| analysis.table == table.name());
    found.ok_or_else(|| format!("table {} was not analyzed", table.name()).into())
}

/// The sizes of all tables with their indexes.
fn sizes(shop: &Shop, sample: &OneWarehouse) -> Result<Vec<Size>> {
    shop.db.checkpoint()?;
    GROUPS
        .iter()
        .map(|group| {
            let is_compressed = group.tables.iter().any(|table| sample.compressed.contains(table));
            let mut size = Size { name: group.name, is_compressed, pages: 0, uncompressed: 0, stored: 0 };
            for &table in group.tables {
                let stats = shop.db.table_stats(table.name())?;
                let entry_bytes = sample.entry_bytes.get(&table).copied().unwrap_or(0.0);
                size.pages += stats.levels.iter().map(|level| level.pages).sum::<u64>();
                size.stored += stats.stored_bytes;
                size.uncompressed += whole(entry_bytes * stats.entries() as f64);
            }
            Ok(size)
        })
        .collect()
}

impl Measured {
    /// The share of the uncompressed database that compression saves.
    pub(super) fn saved(&self) -> f64 {
        saved(self.sizes.iter().map(|size| size.stored).sum(), self.sizes.iter().map(|size| size.uncompressed).sum())
    }
}

/// The share of bytes that is saved.
pub(super) fn saved(stored: u64, uncompressed: u64) -> f64 {
    if uncompressed == 0 { 0.0 } else { 1.0 - stored as f64 / uncompressed as f64 }
}

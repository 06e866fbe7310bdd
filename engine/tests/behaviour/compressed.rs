//! Promise: compressed tables are the same tables, whatever their key lists and codecs, the page store, the delta
//! blocks, the compression and the target, and also after a kill; and compression saves space. Power cuts are in
//! `crash` and `store_crash`.

use crate::workload::files;
use crate::workload::kinds::{FilledTable, contents, kinds};
use duramen::db::{Compression, CompressionPlan, DeltaBlocks, Overflow, StoreKind, Strategy, Target};
use duramen::io::MemoryVolume;
use duramen::{Builder, Database, Durability, Result, TableDef};
use proptest::prelude::{ProptestConfig, any, proptest};
use proptest::sample::select;
use proptest::strategy::Strategy as _;
use std::sync::Arc;

const NAME: &str = "t.duramen";

fn options() -> Builder {
    Database::builder().cache(1 << 20).background(false)
}

/// How a database is made, and how its tables are compressed.
#[derive(Clone, Debug)]
struct Shape {
    store: StoreKind,
    page_size: usize,
    delta: DeltaBlocks,
    plan: CompressionPlan,
    threads: usize,
}

fn shapes() -> impl proptest::strategy::Strategy<Value = Shape> {
    let methods = vec![Compression::Lz4, Compression::Zstd(1), Compression::Zstd(9), Compression::Zlib(6)];
    let deltas =
        vec![DeltaBlocks::OFF, DeltaBlocks::default(), DeltaBlocks { threshold: 1500, segment: 64, blocks: 4 }];
    let targets = select(vec![Target::Fit, Target::Bytes(2048), Target::Bytes(4096)]);
    let stores = select(vec![StoreKind::Table, StoreKind::Shadow]);
    let overflow = select(vec![Overflow::Spill, Overflow::Split]);
    let parts = (stores, 13u32..=15, select(deltas), select(methods), targets, overflow, 1usize..=4);
    parts.prop_map(|(store, shift, delta, method, target, overflow, threads)| {
        let plan = CompressionPlan::new(Strategy::All, method).target(target).overflow(overflow);
        Shape { store, page_size: 1 << shift, delta, plan, threads }
    })
}

/// The files of a database as they are now: those that a kill leaves.
fn copy(volume: &MemoryVolume) -> Result<Arc<MemoryVolume>> {
    let copied = MemoryVolume::new();
    files::copy(volume, &copied, NAME)?;
    Ok(Arc::new(copied))
}

fn check(volume: &Arc<MemoryVolume>, kinds: &[FilledTable], plan: &CompressionPlan) -> Result<()> {
    let db = options().open_on(volume.clone(), NAME)?;
    assert_eq!(db.verify(|_| ())?.findings, []);
    let found = contents(&db)?;
    assert_eq!(found.len(), kinds.len());
    for (info, entries) in &found {
        let kind = kinds.iter().find(|kind| kind.name == info.name).unwrap();
        assert!(*entries == kind.entries, "table {}", info.name);
        assert_eq!((info.compression, info.target), (plan.compression(), plan.page_target()), "table {}", info.name);
    }
    db.close()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10, max_shrink_iters: 20, ..ProptestConfig::default() })]

    #[test]
    fn compressed_tables_of_every_kind_are_the_same(shape in shapes(), seed in any::<u64>(), step in 1usize..4) {
        let mut rng = fastrand::Rng::with_seed(seed);
        let kinds: Vec<FilledTable> = kinds(150, &mut rng).into_iter().step_by(step).collect();
        let volume = Arc::new(MemoryVolume::new());
        let builder = options().store(shape.store).page_size(shape.page_size).delta(shape.delta);
        let builder = builder.compression_threads(shape.threads);
        let db = builder.create_on(volume.clone(), NAME).unwrap();
        kinds.iter().try_for_each(|kind| kind.put(&db, &mut rng)).unwrap();
        db.compact_with(&shape.plan, |_| ()).unwrap();
        // Small changes after a checkpoint, for deltas beside compressed pages, and for redo after a kill.
        db.checkpoint().unwrap();
        for kind in &kinds {
            let mut tx = db.begin_write().unwrap();
            tx.set_durability(Durability::Commit);
            let mut table = tx.open_untyped(&kind.name).unwrap();
            for (key, value) in kind.entries.iter().filter(|_| rng.u8(0..4) == 0) {
                table.remove(key).unwrap();
                table.put(key, value).unwrap();
            }
            drop(table);
            tx.commit().unwrap();
            if rng.bool() {
                db.checkpoint().unwrap();
                while db.maintain().unwrap() {}
            }
        }
        let killed = copy(&volume).unwrap();
        db.close().unwrap();
        check(&volume, &kinds, &shape.plan).unwrap();
        check(&killed, &kinds, &shape.plan).unwrap();
        check(&killed, &kinds, &shape.plan).unwrap();
    }
}

/// A compressed table takes the blocks that its pages need, and a recovery does not change that.
#[test]
fn compression_saves_space_in_each_store_and_recovery_keeps_it() -> Result<()> {
    const TREES: TableDef<u64, &[u8]> = TableDef::new("trees");
    for (store, most) in [(StoreKind::Table, 0.72), (StoreKind::Shadow, 0.82)] {
        let mut allocated = Vec::new();
        for compression in [Compression::None, Compression::Lz4] {
            let folder = tempfile::tempdir().unwrap();
            let db = options().store(store).page_size(16384).create(folder.path().join(NAME))?;
            let tx = db.begin_write()?;
            let mut table = tx.open_table(TREES.compression(compression))?;
            for key in 0..20_000u64 {
                // Half zeros, half random.
                let mut value = [0; 120];
                fastrand::Rng::with_seed(key).fill(&mut value[60..]);
                table.put(key, value.as_slice())?;
            }
            drop(table);
            tx.commit()?;
            let live = db.stats().live_bytes;
            db.checkpoint()?;
            let before = db.metrics().compression;
            assert_eq!(before.compressed > 0, compression != Compression::None);
            db.close()?;
            let db = options().open(folder.path().join(NAME))?;
            allocated.push(db.stats().allocated_bytes);
            let stats = db.stats();
            assert!(stats.live_bytes >= live / 2, "{stats:?}");
            let table = db.begin_read()?.open_table(TREES)?;
            assert_eq!(table.len(), 20_000);
            let mut expected = [0; 120];
            fastrand::Rng::with_seed(7).fill(&mut expected[60..]);
            assert_eq!(table.get(7)?.map(|found| found.value().to_vec()), Some(expected.to_vec()));
        }
        let [plain, compressed] = allocated[..] else { panic!("{allocated:?}") };
        assert!((compressed as f64) < plain as f64 * most, "{store:?}: {allocated:?}");
    }
    Ok(())
}

/// The first image of a page is compressed. A later one is recompressed.
#[test]
fn the_metrics_count_recompressed_pages_apart_from_new_ones() -> Result<()> {
    const TABLE: TableDef<u64, &[u8]> = TableDef::new("t");
    for store in [StoreKind::Table, StoreKind::Shadow] {
        let builder = Database::builder().background(false).store(store).delta(DeltaBlocks::OFF).page_size(16384);
        let db = builder.create_on(Arc::new(MemoryVolume::new()), NAME)?;
        let put = |keys: std::ops::Range<u64>, value: u8| -> Result<_> {
            let before = db.metrics().compression;
            let tx = db.begin_write()?;
            let mut table = tx.open_table(TABLE.compression(Compression::Lz4))?;
            keys.into_iter().try_for_each(|key| table.put(key, [value; 100].as_slice()).map(drop))?;
            drop(table);
            tx.commit()?;
            db.checkpoint()?;
            Ok(db.metrics().compression.since(&before))
        };
        let new = put(0..20_000, 1)?;
        assert!(new.compressed > 100 && new.missed == 0 && new.recompressed == 0, "{store:?}: {new:?}");
        let changed = put(7..8, 2)?;
        assert_eq!((changed.compressed, changed.recompressed), (1, 1), "{store:?}");
        let more = put(20_000..40_000, 1)?;
        assert!(more.compressed > 100 && (1..10).contains(&more.recompressed), "{store:?}: {more:?}");
    }
    Ok(())
}

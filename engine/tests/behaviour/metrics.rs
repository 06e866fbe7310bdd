//! Promise: `Database::metrics` counts the bytes of users and every written block as a drive below the database counts
//! them. A close or a crash does not lose the totals of a database's life.

use duramen::db::types::KeyLayout;
use duramen::db::{DEFAULT_FILL, LogShape, StoreKind, WriteTotals};
use duramen::io::{MemoryVolume, WriteKind};
use duramen::{Builder, Database, Durability, Result, TableDef, TableOptions};
use duramen_sim::{Death, DeathKind, DriveVolume, FailingVolume};
use std::sync::Arc;

const TABLE: TableDef<u64, &[u8]> = TableDef::new("t");
const NAME: &str = "t.duramen";

fn options(store: StoreKind, shape: LogShape) -> Builder {
    Database::builder().page_size(4096).cache(64 * 4096).background(false).store(store).log_shape(shape)
}

/// Puts this many records of 108 bytes, key included, at places that look random; each a commit.
fn overwrite(db: &Database, commits: u64, durability: Durability) -> Result<()> {
    for commit in 0..commits {
        let mut tx = db.begin_write()?;
        tx.set_durability(durability);
        tx.open_table(TABLE)?.put(commit * 7919 % 5000, &[commit as u8 | 1; 100][..])?;
        tx.commit()?;
    }
    Ok(())
}

/// The totals agree with all that the drive has counted since it was empty.
fn agree(db: &Database, drive: &DriveVolume, what: &str) {
    let (life, counts) = (db.metrics().life, drive.counts());
    for kind in WriteKind::ALL {
        let (ours, its) = (life.written(kind), counts.written(kind));
        assert_eq!(ours.bytes, its.logical_bytes, "{what}: bytes of {}", kind.name());
        if kind != WriteKind::Log {
            assert_eq!(ours.calls, its.calls, "{what}: calls of {}", kind.name());
        }
    }
    assert_eq!(life.all_written().bytes, counts.all_written().logical_bytes, "{what}");
    assert_eq!((life.data_syncs + life.log_syncs, life.log_syncs), (counts.syncs, counts.log_syncs), "{what}: syncs");
}

#[test]
fn the_totals_equal_the_counts_of_a_drive_also_after_reopening() -> Result<()> {
    for store in [StoreKind::Table, StoreKind::Shadow] {
        for shape in [LogShape::Packed, LogShape::Sparse] {
            let drive = Arc::new(DriveVolume::new(Arc::new(MemoryVolume::new())));
            let what = format!("{} {shape:?}", store.name());
            let mut user_bytes = 0;
            for round in 0..3 {
                let db = options(store, shape).open_or_create_on(drive.clone(), NAME)?;
                agree(&db, &drive, &format!("{what}, round {round}, opened"));
                overwrite(&db, 3000, Durability::None)?;
                overwrite(&db, 100, Durability::Commit)?;
                agree(&db, &drive, &format!("{what}, round {round}, written"));
                db.checkpoint()?;
                agree(&db, &drive, &format!("{what}, round {round}, after a checkpoint"));
                let metrics = db.metrics();
                user_bytes += 3100 * 108;
                assert_eq!((metrics.since_open.user_bytes, metrics.life.user_bytes), (3100 * 108, user_bytes));
                let written = |kind| metrics.since_open.written(kind).bytes > 0;
                assert!(written(WriteKind::Log) && written(WriteKind::Superblock), "{what}");
                assert!(written(WriteKind::Page) || written(WriteKind::Delta), "{what}");
                assert!(!written(WriteKind::Delta) || store == StoreKind::Shadow, "{what}");
                assert_eq!(metrics.since_open.written(WriteKind::Table).bytes > 0, store == StoreKind::Table);
                db.close()?;
            }
            let db = options(store, shape).open_on(drive.clone(), NAME)?;
            agree(&db, &drive, &what);
            assert_eq!((db.metrics().since_open.user_bytes, db.metrics().life.user_bytes), (0, user_bytes));
        }
    }
    Ok(())
}

#[test]
fn a_crash_loses_no_counts_before_the_last_checkpoint() -> Result<()> {
    for store in [StoreKind::Table, StoreKind::Shadow] {
        let volume = FailingVolume::new(1);
        let db = options(store, LogShape::Packed).create_on(Arc::new(volume.clone()), NAME)?;
        overwrite(&db, 2000, Durability::None)?;
        db.checkpoint()?;
        let saved = db.metrics().life;
        // After its superblock the checkpoint has made the old segment of the log a spare file: a block and a sync.
        let spare = |kind| if kind == WriteKind::Log { 4096 } else { 0 };
        overwrite(&db, 500, Durability::Commit)?;
        assert_eq!(db.metrics().life.user_bytes, 2500 * 108);
        let killed = volume.outlive(Death { event: volume.events(), kind: DeathKind::Killed(1) });
        let drive = Arc::new(DriveVolume::new(Arc::new(killed)));
        let db = options(store, LogShape::Packed).open_on(drive.clone(), NAME)?;
        let (metrics, counts) = (db.metrics(), drive.counts());
        assert_eq!((saved.user_bytes, metrics.life.user_bytes), (2000 * 108, 2000 * 108));
        for kind in WriteKind::ALL {
            // Recovery has written pages again, and the log has gone on in a new segment.
            let (before, since) = (saved.written(kind).bytes - spare(kind), metrics.since_open.written(kind).bytes);
            assert_eq!(metrics.life.written(kind).bytes, before + since, "{} {}", store.name(), kind.name());
            assert_eq!(since, counts.written(kind).logical_bytes, "{} {}", store.name(), kind.name());
        }
        let syncs = |totals: WriteTotals| totals.data_syncs + totals.log_syncs;
        assert_eq!(syncs(metrics.life), syncs(saved) - 1 + counts.syncs);
    }
    Ok(())
}

#[test]
fn evictions_that_sync_the_log_are_counted() -> Result<()> {
    let drive = Arc::new(DriveVolume::new(Arc::new(MemoryVolume::new())));
    let db = options(StoreKind::Table, LogShape::Packed).create_on(drive.clone(), NAME)?;
    let before = drive.counts();
    overwrite(&db, 5000, Durability::None)?;
    let forced = db.metrics().since_open.forced_log_syncs;
    let log_syncs = drive.counts().since(&before).log_syncs;
    assert!(forced > 10, "{forced}: the table does not fit in the cache");
    assert_eq!(forced, log_syncs, "nobody else syncs the log");
    overwrite(&db, 500, Durability::Commit)?;
    assert_eq!(db.metrics().since_open.forced_log_syncs, forced, "the log is durable at each commit");
    Ok(())
}

#[test]
fn user_bytes_are_the_keys_and_values_that_commits_put_and_delete() -> Result<()> {
    let bytes_of = |db: &Database| db.metrics().since_open.user_bytes;
    let db = options(StoreKind::Table, LogShape::Packed).create_on(Arc::new(MemoryVolume::new()), NAME)?;
    assert_eq!(bytes_of(&db), 0);
    let tx = db.begin_write()?;
    let mut table = tx.open_table(TABLE)?;
    table.put(1, &[1; 50][..])?;
    table.put(1, &[1; 30][..])?;
    table.put(2, &[1; 10][..])?;
    drop(table);
    assert_eq!(bytes_of(&db), 0, "nothing is committed");
    tx.commit()?;
    let mut sum = 8 + 30 + 8 + 10;
    assert_eq!(bytes_of(&db), sum, "the last of what a commit puts");
    let tx = db.begin_write()?;
    tx.open_table(TABLE)?.put(3, &[1; 1000][..])?;
    drop(tx);
    assert_eq!(bytes_of(&db), sum, "an aborted transaction has put nothing");

    let tx = db.begin_write()?;
    tx.open_untyped("t")?.delete(&2u64.to_be_bytes())?;
    tx.open_untyped("t")?.remove_range(&[4u8; 8][..]..&[5; 8][..]);
    tx.open_table(TABLE)?.put(9, &vec![7; 100_000][..])?;
    tx.commit()?;
    sum += 8 + 16 + 8 + 100_000;
    assert_eq!(bytes_of(&db), sum, "a deletion, the ends of a range, a large value");

    let tx = db.begin_write()?;
    let options = TableOptions { keys: Some(KeyLayout::Plain), ..TableOptions::default() };
    let mut bulk = tx.bulk_load("bulk", "u64", "bytes", options, DEFAULT_FILL)?;
    for key in 0..1000u64 {
        bulk.push(&key.to_be_bytes(), &[3; 20])?;
    }
    bulk.push(&[0xff; 8], &vec![3; 50_000])?;
    bulk.finish()?;
    assert_eq!(bytes_of(&db), sum);
    tx.commit()?;
    sum += 1000 * 28 + 8 + 50_000;
    assert_eq!(bytes_of(&db), sum, "a bulk load");
    let tx = db.begin_write()?;
    let mut table = tx.open_table(TABLE)?;
    (10_000..30_000).try_for_each(|key| table.put(key, &[5; 40][..]))?;
    drop(table);
    tx.commit()?;
    assert_eq!(bytes_of(&db), sum + 20_000 * 48, "a commit of several pieces");
    Ok(())
}

#[test]
fn memory_has_no_totals() -> Result<()> {
    let db = Database::in_memory()?;
    overwrite(&db, 10, Durability::Commit)?;
    assert_eq!(db.metrics().life, WriteTotals::default());
    assert_eq!(db.metrics().since_open.total_amplification(), None);
    Ok(())
}

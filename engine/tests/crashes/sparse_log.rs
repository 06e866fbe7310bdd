//! Promise: a sparse log writes no block twice, so a drive that compresses stores little more than the commits. It
//! needs no space that was not reserved, however large a commit is.

use duramen::db::LogShape;
use duramen::io::{MemoryVolume, Volume, WriteKind};
use duramen::{Builder, Database, Durability, Error, Result, TableDef};
use duramen_sim::{DriveVolume, FailingVolume};
use std::sync::Arc;

const TABLE: TableDef<u64, &[u8]> = TableDef::new("t");
const NAME: &str = "t.duramen";
const RECORD: usize = 128;

fn options(shape: LogShape) -> Builder {
    Database::builder().page_size(4096).cache(0).background(false).log_shape(shape)
}

/// Physical bytes of the log for a user byte. Values are half zeros, half random; each commit overwrites one record.
fn log_of_a_user_byte(shape: LogShape) -> Result<f64> {
    let drive = Arc::new(DriveVolume::new(Arc::new(MemoryVolume::new())));
    let db = options(shape).create_on(drive.clone(), NAME)?;
    let mut rng = fastrand::Rng::with_seed(1);
    let mut value = [0; RECORD - 8];
    let mut write = |keys: &mut dyn Iterator<Item = u64>| {
        let tx = db.begin_write()?;
        let mut table = tx.open_table(TABLE)?;
        for key in keys {
            rng.fill(&mut value[RECORD / 2 - 4..]);
            table.put(key, &value[..])?;
        }
        drop(table);
        tx.commit()
    };
    write(&mut (0..2000))?;
    let before = drive.counts();
    let commits = 1000;
    for commit in 0..commits {
        write(&mut std::iter::once(commit * 7919 % 2000))?;
    }
    let log = drive.counts().since(&before).written(WriteKind::Log);
    Ok(log.physical_bytes as f64 / (commits as usize * RECORD) as f64)
}

#[test]
fn commits_flushed_one_by_one_take_little_more_than_their_bytes() -> Result<()> {
    let (packed, sparse) = (log_of_a_user_byte(LogShape::Packed)?, log_of_a_user_byte(LogShape::Sparse)?);
    println!("physical bytes of the log for a user byte: packed {packed:.3}, sparse {sparse:.3}");
    assert!(sparse <= 1.5, "{sparse}");
    assert!(packed / sparse >= 5.0, "{packed} / {sparse}");
    Ok(())
}

#[test]
fn a_full_device_refuses_commits_of_any_size_before_they_have_changed_anything() -> Result<()> {
    for space in (0..=40).map(|step| 600_000 + step * 40_000) {
        let volume = FailingVolume::new(1);
        let db = options(LogShape::Sparse).create_on(Arc::new(volume.clone()), NAME)?;
        let put = |keys: std::ops::Range<u64>, byte: u8, durability| {
            let mut tx = db.begin_write()?;
            tx.set_durability(durability);
            let mut table = tx.open_table(TABLE)?;
            for key in keys {
                table.put(key.wrapping_mul(0x9E37_79B9_7F4A_7C15), &[byte; 60][..])?;
            }
            drop(table);
            tx.commit()
        };
        for from in (0..4000).step_by(500) {
            put(from..from + 500, 1, Durability::None)?;
        }
        db.checkpoint()?;
        volume.limit_space(Some(space));
        // Small ones, each flushed alone, and one that is applied in many pieces.
        let mut done = 1;
        for commit in 0..30 {
            match put(commit..commit + 1, 2, Durability::Commit) {
                Err(Error::Full { .. }) => break,
                other => other?,
            }
        }
        match put(0..4000, 3, Durability::Commit) {
            Err(Error::Full { .. }) => {}
            other => {
                other?;
                done = 3;
            }
        }
        assert_eq!(db.verify(|_| ())?.findings, [], "space {space}");
        volume.limit_space(None);
        put(0..1, 4, Durability::Commit)?;
        let table = db.begin_read()?.open_table(TABLE)?;
        let least = table
            .iter()
            .map(|entry| entry.map(|(_, value)| value.value()[0]))
            .min_by_key(|byte| *byte.as_ref().unwrap_or(&0));
        assert_eq!(least.transpose()?, Some(done), "space {space}");
        drop(table);
        db.close()?;
        assert!(volume.list("t.duramen-log.")?.is_empty());
    }
    Ok(())
}

//! Promise: between two checkpoints the log is in several segments, later segments are written to the files of earlier
//! ones, and all files of the log together take little more than `Builder::checkpoint_bytes`.

use duramen::io::{MemoryVolume, OpenMode, Volume};
use duramen::{Database, Durability, Result, TableDef};
use duramen_sim::{HookedVolume, Hooks};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const NAME: &str = "t.duramen";
const TABLE: TableDef<u32, &[u8]> = TableDef::new("t");
const CHECKPOINT_BYTES: u64 = 8 << 20;

/// Counts the files of the log that get another name.
#[derive(Debug, Default)]
struct Renames(AtomicU64);

impl Hooks for Renames {
    fn before_rename(&self, from: &str, _: &str) -> Result<()> {
        self.0.fetch_add(u64::from(from.starts_with("t.duramen-log.")), Ordering::Relaxed);
        Ok(())
    }
}

/// The bytes of all files of the log, and how many of them are in use.
fn log_files(volume: &MemoryVolume) -> Result<(u64, usize)> {
    let (mut bytes, mut used) = (0, 0);
    for name in volume.list("t.duramen-log.")? {
        let file = volume.open(&name, OpenMode::Read)?;
        let mut shape = [0];
        file.read_at(36, &mut shape)?;
        bytes += file.size()?;
        used += usize::from(shape[0] != 2);
    }
    Ok((bytes, used))
}

#[test]
fn segments_are_used_again_and_the_log_takes_little_more_than_between_two_checkpoints() -> Result<()> {
    let (volume, renames) = (MemoryVolume::new(), Arc::new(Renames::default()));
    let hooked = Arc::new(HookedVolume::new(Arc::new(volume.clone()), renames.clone()));
    let options = Database::builder().cache(1 << 20).checkpoint_bytes(CHECKPOINT_BYTES).background(false);
    let db = options.create_on(hooked, NAME)?;
    let (mut most_bytes, mut most_used) = (0, 0);
    for number in 0..40_000u32 {
        let mut tx = db.begin_write()?;
        tx.set_durability(Durability::None);
        tx.open_table(TABLE)?.put(number % 1000, &[number as u8; 1000][..])?;
        tx.commit()?;
        if number % 20 == 0 {
            while db.maintain()? {}
            let (bytes, used) = log_files(&volume)?;
            (most_bytes, most_used) = (most_bytes.max(bytes), most_used.max(used));
        }
    }
    let again = renames.0.load(Ordering::Relaxed);
    assert!((4..=6).contains(&most_used), "{most_used} segments");
    assert!(most_bytes < CHECKPOINT_BYTES * 3 / 2, "{most_bytes} bytes");
    assert!(again >= 8, "{again} segments were used again");
    db.close()?;
    assert_eq!(volume.list("")?, [NAME]);
    Ok(())
}

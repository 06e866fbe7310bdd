//! Promise: between two checkpoints the log is in several segments, later segments are written to the files of earlier
//! ones, and all files of the log together take little more than `Builder::checkpoint_bytes`.

use crate::workload::stores::STORES;
use duramen::db::StoreKind;
use duramen::io::{MemoryVolume, OpenMode, Volume};
use duramen::{Builder, Database, Durability, Result, TableDef};
use duramen_sim::{Cut, CutChoice, FailingVolume, Fault, HookedVolume, Hooks, Trigger};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak, mpsc};
use std::time::Duration;

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

/// Makes a commit in another thread during each renaming and each sync of the folder by the maintenance. With
/// `beside_file_syncs` also during each sync of a file.
#[derive(Debug, Default)]
struct CommitsBeside {
    db: OnceLock<Weak<Database>>,
    beside_file_syncs: bool,
    maintaining: AtomicBool,
    renamings: AtomicU64,
    syncs: AtomicU64,
}

impl CommitsBeside {
    fn commit(&self, during: &str, counter: &AtomicU64) {
        let Some(db) = self.db.get().and_then(Weak::upgrade) else { return };
        if !self.maintaining.load(Ordering::Relaxed) {
            return;
        }
        let (done, is_done) = mpsc::channel();
        std::thread::spawn(move || done.send(put(&db, 1, &[1])));
        let committed = is_done.recv_timeout(Duration::from_secs(60));
        committed.unwrap_or_else(|_| panic!("a commit waits during {during}")).unwrap();
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

impl Hooks for CommitsBeside {
    fn before_rename(&self, from: &str, _: &str) -> Result<()> {
        self.commit(&format!("the renaming of {from}"), &self.renamings);
        Ok(())
    }

    fn before_sync(&self, name: Option<&str>) -> Result<()> {
        if self.beside_file_syncs || name.is_none() {
            self.commit(&format!("the sync of {}", name.unwrap_or("the folder")), &self.syncs);
        }
        Ok(())
    }
}

fn put(db: &Database, key: u32, value: &[u8]) -> Result<()> {
    let mut tx = db.begin_write()?;
    tx.set_durability(Durability::None);
    tx.open_table(TABLE)?.put(key, value)?;
    tx.commit()
}

/// Writes until the maintenance has begun several segments, with a cache of this size. Returns how many commits were
/// made beside renamings and beside syncs.
fn commits_beside_maintenance(store: StoreKind, cache: usize, beside_file_syncs: bool) -> Result<(u64, u64)> {
    let hooks = Arc::new(CommitsBeside { beside_file_syncs, ..CommitsBeside::default() });
    let hooked = Arc::new(HookedVolume::new(Arc::new(MemoryVolume::new()), hooks.clone()));
    let options = Database::builder().store(store).cache(cache);
    let db = Arc::new(options.checkpoint_bytes(CHECKPOINT_BYTES).background(false).create_on(hooked, NAME)?);
    hooks.db.set(Arc::downgrade(&db)).expect("it is set once");
    for number in 0..30_000u32 {
        put(&db, number % 1000, &[number as u8; 1000])?;
        if number % 20 == 0 {
            hooks.maintaining.store(true, Ordering::Relaxed);
            while db.maintain()? {}
            hooks.maintaining.store(false, Ordering::Relaxed);
        }
    }
    Ok((hooks.renamings.load(Ordering::Relaxed), hooks.syncs.load(Ordering::Relaxed)))
}

#[test]
fn commits_do_not_wait_for_the_file_of_the_next_segment() -> Result<()> {
    for store in STORES {
        let (renamings, syncs) = commits_beside_maintenance(store, 1 << 20, false)?;
        assert!(renamings >= 8 && syncs >= 8, "{renamings} renamings, {syncs} syncs of the folder");
    }
    Ok(())
}

/// The cache has room for all pages, because a commit that evicts a dirty page may have to wait for a sync of the log.
#[test]
fn commits_do_not_wait_for_the_syncs_of_the_maintenance() -> Result<()> {
    for store in STORES {
        let (renamings, syncs) = commits_beside_maintenance(store, 64 << 20, true)?;
        assert!(renamings >= 8 && syncs >= 50, "{renamings} renamings, {syncs} syncs");
    }
    Ok(())
}

/// Commits ten entries more, and returns how many there are.
fn put_ten(db: &Database, entries: &mut u32) -> Result<u32> {
    for _ in 0..10 {
        let tx = db.begin_write()?;
        tx.open_table(TABLE)?.put(*entries, &[1; 1000][..])?;
        tx.commit()?;
        *entries += 1;
    }
    Ok(*entries)
}

/// Creates a database and commits ten entries, and ten more after each checkpoint. Returns the database and the number
/// of entries.
fn after_checkpoints(options: &Builder, volume: &FailingVolume, checkpoints: usize) -> Result<(Database, u32)> {
    let (db, mut entries) = (options.create_on(Arc::new(volume.clone()), NAME)?, 0);
    put_ten(&db, &mut entries)?;
    for _ in 0..checkpoints {
        db.checkpoint()?;
        put_ten(&db, &mut entries)?;
    }
    assert_eq!(
        volume.list("t.duramen-log.")?.len(),
        1 + checkpoints,
        "a segment, and a spare file for each checkpoint"
    );
    Ok((db, entries))
}

/// The number of entries that a recovery finds if the power fails now.
fn entries_after_a_cut(options: &Builder, volume: &FailingVolume) -> Result<u64> {
    let after = volume.crash(Cut { event: volume.events(), choice: CutChoice::DropUnsynced });
    Ok(options.open_on(Arc::new(after), NAME)?.begin_read()?.open_table(TABLE)?.len())
}

/// While no segment can be begun, the log continues in the old one: commits and checkpoints succeed, and a power cut
/// costs nothing. Afterwards the log continues in another segment.
#[test]
fn a_log_that_cannot_begin_a_segment_continues_in_the_old_one() -> Result<()> {
    // The file of the next segment, or all files of the log, a spare one included.
    for (checkpoints, refused) in [(0, "t.duramen-log.000002"), (1, "t.duramen-log.")] {
        let volume = FailingVolume::new(1);
        let options = Database::builder().cache(0).background(false);
        let (db, mut entries) = after_checkpoints(&options, &volume, checkpoints)?;
        let before = volume.list("t.duramen-log.")?;

        volume.inject(Fault::Refuse, Trigger::always().on(refused));
        for _ in 0..3 {
            let acknowledged = put_ten(&db, &mut entries)?;
            db.checkpoint()?;
            assert_eq!(entries_after_a_cut(&options, &volume)?, u64::from(acknowledged), "{refused}");
        }
        assert!(volume.struck(Fault::Refuse) > 0, "{refused}");
        assert_eq!(volume.list("t.duramen-log.")?, before, "{refused}");

        volume.inject(Fault::Refuse, Trigger::never());
        let acknowledged = put_ten(&db, &mut entries)?;
        db.checkpoint()?;
        assert_ne!(volume.list("t.duramen-log.")?, before, "{refused}");
        db.close()?;
        assert_eq!(volume.list("")?, [NAME], "{refused}");
        let db = options.open_on(Arc::new(volume), NAME)?;
        assert_eq!(db.begin_read()?.open_table(TABLE)?.len(), u64::from(acknowledged), "{refused}");
    }
    Ok(())
}

/// A spare file that cannot be used does not keep the log in its segment.
#[test]
fn a_spare_file_that_cannot_be_used_is_given_up() -> Result<()> {
    const SPARE: &str = "t.duramen-log.000001";
    let spare = |trigger: Trigger| trigger.on(SPARE);
    // The calls that fail: all of them; the first one, which opens the file; its renaming; each read. A file that
    // cannot be read is not known to be of this log, so it stays.
    let cases = [
        (Fault::Refuse, spare(Trigger::always()), true),
        (Fault::Refuse, spare(Trigger::once()), false),
        (Fault::Refuse, spare(Trigger::once().after(1)), false),
        (Fault::FailRead, spare(Trigger::always()), true),
    ];
    for (fault, trigger, stays) in cases {
        let (volume, case) = (FailingVolume::new(1), format!("{fault:?}: {trigger:?}"));
        let options = Database::builder().cache(0).background(false);
        let (db, mut entries) = after_checkpoints(&options, &volume, 1)?;
        volume.inject(fault, trigger);
        for segment in 3..7 {
            let acknowledged = put_ten(&db, &mut entries)?;
            db.checkpoint()?;
            let names = volume.list("t.duramen-log.")?;
            assert_eq!(names.contains(&SPARE.to_owned()), stays, "{case}");
            assert_eq!(names.last(), Some(&format!("t.duramen-log.{segment:06}")), "{case}");
            assert_eq!(names.len(), 2 + usize::from(stays), "{case}: {names:?}");
            assert_eq!(entries_after_a_cut(&options, &volume)?, u64::from(acknowledged), "{case}");
        }
        assert!(volume.struck(fault) > 0, "{case}");
        volume.inject(fault, Trigger::never());
        db.close()?;
        assert_eq!(volume.list("")?, [NAME], "{case}");
        let db = options.open_on(Arc::new(volume), NAME)?;
        assert_eq!(db.begin_read()?.open_table(TABLE)?.len(), u64::from(entries), "{case}");
    }
    Ok(())
}

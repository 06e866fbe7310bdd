//! Promise: a database on a block device keeps the promises of one in a file. A device with other content is refused,
//! and a full device gives a typed error. The device of the simulator loses power at any event; a loop device of the
//! system is used if there is one.

use crate::workload::files::bytes_of;
use crate::workload::session::{Mark, NAME, Session, kill, number};
use crate::workload::stores::STORES;
use crate::workload::{DELTAS, Workload, contents, options, page_size_of};
use duramen::db::StoreKind;
use duramen::io::{DeviceDisk, Disk, Locked, OpenMode, Volume};
use duramen::{Database, Durability, Error, Result, TableDef};
use duramen_sim::model::Model;
use duramen_sim::{Cut, CutChoice, FailingVolume};
use std::path::PathBuf;
use std::sync::Arc;

const MIB: u64 = 1 << 20;
const STEPS: usize = 70;
const TABLE: TableDef<u64, &[u8]> = TableDef::new("t");

/// A folder whose file [`NAME`] is a block device.
#[derive(Debug, Clone)]
struct DeviceVolume(FailingVolume);

/// Makes the file `name` a device of so many MiB that was used for something else before.
pub(crate) fn make_device(volume: &FailingVolume, name: &str, mib: u64) -> Result<()> {
    let device = volume.open(name, OpenMode::CreateNew)?;
    device.resize(mib * MIB)?;
    for at in (MIB..(mib - 1) * MIB).step_by(16 << 10) {
        device.write_at(at, &[0xA5; 700])?;
    }
    device.sync()?;
    volume.sync()
}

impl DeviceVolume {
    fn new(seed: u64, mib: u64) -> Result<DeviceVolume> {
        let volume = FailingVolume::new(seed);
        make_device(&volume, NAME, mib)?;
        Ok(DeviceVolume(volume.crash(Cut { event: volume.events(), choice: CutChoice::KeepAll })))
    }

    fn disk(&self, name: &str, disk: Arc<dyn Disk>) -> Result<Arc<dyn Disk>> {
        Ok(if name == NAME { Arc::new(DeviceDisk::open(disk, &self.path(name))?) } else { disk })
    }
}

impl Volume for DeviceVolume {
    fn open(&self, name: &str, mode: OpenMode) -> Result<Arc<dyn Disk>> {
        self.disk(name, self.0.open(name, mode)?)
    }

    fn remove(&self, name: &str) -> Result<()> {
        assert_ne!(name, NAME, "a device cannot be removed");
        self.0.remove(name)
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        assert_ne!(to, NAME, "a device cannot be replaced");
        self.0.rename(from, to)
    }

    fn replace(&self, from: &str, to: &str) -> Result<()> {
        assert_ne!(to, NAME, "a device cannot be replaced");
        self.0.replace(from, to)
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>> {
        self.0.list(prefix)
    }

    fn sync(&self) -> Result<()> {
        self.0.sync()
    }

    fn lock(&self, name: &str, exclusive: bool) -> Result<Locked> {
        let Locked { disk, guard } = self.0.lock(name, exclusive)?;
        Ok(Locked { disk: self.disk(name, disk)?, guard })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path(name)
    }
}

/// Opens what a cut or a death has left and compares it with the model. Returns the database and its commits; `None` if
/// the device may be empty and is.
fn recover(
    volume: &FailingVolume,
    model: &Model,
    bounds: Option<(u64, u64)>,
) -> Result<Option<(Database, u64)>, String> {
    let volume = Arc::new(DeviceVolume(volume.clone()));
    let db = match options().open_on(volume, NAME) {
        Err(Error::NotADatabase { .. }) if bounds.is_none() => return Ok(None),
        opened => opened.map_err(|error| format!("it does not open: {error}"))?,
    };
    let (least, most) = bounds.unwrap_or_default();
    let found = db.begin_read().and_then(|tx| contents(&tx)).map_err(|error| error.to_string())?;
    let commits = model.check(least, most, &found).map_err(|mismatch| mismatch.to_string())?;
    let report = db.verify(|_| ()).map_err(|error| error.to_string())?;
    match report.findings.first() {
        None => Ok(Some((db, commits))),
        Some(finding) => Err(format!("{finding:?}")),
    }
}

/// A workload that has run on a device, and its model.
fn history(store: StoreKind, seed: u64) -> Result<(FailingVolume, Model)> {
    let DeviceVolume(volume) = DeviceVolume::new(seed, 24)?;
    let delta = DELTAS[usize::try_from(seed).unwrap_or(0) % DELTAS.len()];
    let builder = options().page_size(page_size_of(store, delta)).store(store).delta(delta);
    let mut model = Model::new();
    let db = builder.create_on(Arc::new(DeviceVolume(volume.clone())), NAME)?;
    let mut session = Session::new(db, &volume, &mut model);
    session.run(&mut Workload::new(seed), STEPS)?;
    session.close();
    // The next process goes on where this one has cut the file off.
    let db = options().open_on(Arc::new(DeviceVolume(volume.clone())), NAME)?;
    let mut session = Session::new(db, &volume, &mut model);
    session.run(&mut Workload::later(seed, 1), STEPS)?;
    session.close();
    Ok((volume, model))
}

#[test]
fn acknowledged_commits_survive_every_cut() -> Result<()> {
    let wanted = number("DURAMEN_CRASH_STATES", 2400);
    for (seed, store) in (1..).zip(STORES.into_iter().flat_map(|store| [store; 2])) {
        let (volume, model) = history(store, seed)?;
        let cuts = volume.cuts(1);
        for &cut in cuts.iter().step_by((4 * cuts.len()).div_ceil(wanted.max(1))) {
            let words = || format!("{store:?}, seed {seed}, {cut:?}, a {}", volume.describe(cut.event));
            let state = volume.crash(cut);
            let bounds = Mark::before(&volume, cut.event).map(Mark::after_power_cut);
            match recover(&state, &model, bounds).unwrap_or_else(|why| panic!("{}: {why}", words())) {
                Some((db, _)) => kill(&state, db),
                None => drop(options().store(store).create_on(Arc::new(DeviceVolume(state)), NAME)?),
            }
        }
    }
    Ok(())
}

#[test]
fn recovered_commits_survive_a_later_power_cut() -> Result<()> {
    let wanted = number("DURAMEN_CRASH_STATES", 2400) / 3;
    for (seed, store) in (1..).zip(STORES.into_iter().flat_map(|store| [store; 2])) {
        let (volume, model) = history(store, seed)?;
        let deaths = volume.deaths(seed);
        for &death in deaths.iter().step_by((8 * deaths.len()).div_ceil(wanted.max(1))) {
            let words = || format!("{store:?}, seed {seed}, {death:?}, a {}", volume.describe(death.event));
            let state = volume.outlive(death);
            let bounds = Mark::before(&volume, death.event).map(Mark::after_death);
            let recovered = recover(&state, &model, bounds).unwrap_or_else(|why| panic!("{}: {why}", words()));
            let Some((db, commits)) = recovered else { continue };
            kill(&state, db);
            for choice in [CutChoice::DropUnsynced, CutChoice::Random(seed)] {
                let cut = state.crash(Cut { event: state.events(), choice });
                let bounds = Some((commits, commits));
                let again =
                    recover(&cut, &model, bounds).unwrap_or_else(|why| panic!("{}, {choice:?}: {why}", words()));
                again.into_iter().for_each(|(db, _)| kill(&cut, db));
            }
        }
    }
    Ok(())
}

#[test]
fn bytes_that_were_not_written_are_zeros_after_every_cut() -> Result<()> {
    let volume = DeviceVolume::new(9, 12)?;
    let disk = volume.open(NAME, OpenMode::Write)?;
    disk.complete()?;
    for step in 0..8 {
        disk.write_at(step * MIB + 12_345, &[1; 700])?;
        if step % 3 == 0 {
            disk.sync()?;
        }
    }
    for cut in volume.0.cuts(4) {
        let state = DeviceVolume(volume.0.crash(cut));
        let bytes = match bytes_of(&state, NAME) {
            // It was not complete.
            Err(Error::NotADatabase { .. }) => continue,
            bytes => bytes?,
        };
        assert!(bytes.iter().all(|byte| *byte <= 1), "{cut:?}, a {}", volume.0.describe(cut.event));
    }
    Ok(())
}

#[test]
fn a_creation_that_is_not_finished_leaves_an_empty_device() -> Result<()> {
    for store in STORES {
        let DeviceVolume(volume) = DeviceVolume::new(7, 12)?;
        let fill = || -> Result<()> {
            let new = options().store(store).begin_create_on(Arc::new(DeviceVolume(volume.clone())), NAME)?;
            let tx = new.database().begin_write()?;
            (0..200).try_for_each(|key| tx.open_table(TABLE)?.put(key, [7; 500].as_slice()))?;
            tx.commit()?;
            new.finish()?;
            volume.mark(1);
            Ok(())
        };
        fill()?;
        let (mut empty, mut whole) = (0, 0);
        for cut in volume.cuts(1) {
            let state = Arc::new(DeviceVolume(volume.crash(cut)));
            match options().open_on(state.clone(), NAME) {
                Ok(db) => {
                    assert_eq!(db.begin_read()?.open_table(TABLE)?.len(), 200, "{cut:?}");
                    whole += 1;
                }
                Err(Error::NotADatabase { .. }) if volume.last_mark_before(cut.event).is_none() => {
                    drop(options().store(store).create_on(state, NAME)?);
                    empty += 1;
                }
                Err(other) => panic!("{store:?}, {cut:?}: {other}"),
            }
        }
        assert!(empty > 50 && whole > 5, "{empty} {whole}");
        // One that is given up leaves an empty device, too.
        let device = Arc::new(DeviceVolume::new(8, 12)?);
        drop(options().store(store).begin_create_on(device.clone(), NAME)?);
        assert!(matches!(options().open_on(device.clone(), NAME), Err(Error::NotADatabase { .. })));
        drop(options().store(store).open_or_create_on(device.clone(), NAME)?);
        let again = options().create_on(device.clone(), NAME).map(drop);
        assert!(matches!(again, Err(Error::Exists { .. })), "{again:?}");
        // There is no space for a second database on it.
        let converted = options().store(store).page_size(8192).convert_on(device, NAME, |_| ()).map(drop);
        assert!(matches!(converted, Err(Error::Option { option: "database to convert", .. })), "{converted:?}");
    }
    Ok(())
}

#[test]
fn a_full_device_refuses_whole_commits_and_takes_removals() -> Result<()> {
    for store in STORES {
        let volume = DeviceVolume::new(9, 8)?;
        let db = options().store(store).create_on(Arc::new(volume.clone()), NAME)?;
        let put = |db: &Database, key: u64| -> Result<()> {
            let mut tx = db.begin_write()?;
            tx.set_durability(Durability::None);
            // Scattered, so that leaves split everywhere.
            tx.open_table(TABLE)?.put(key.wrapping_mul(0x9E37_79B9_7F4A_7C15), vec![7; 700].as_slice())?;
            tx.commit()
        };
        let mut keys = 0;
        let full = loop {
            match put(&db, keys) {
                Ok(()) => keys += 1,
                Err(error) => break error,
            }
        };
        assert!(matches!(full, Error::Full { .. }), "{store:?}: {full}");
        // The slots of a page take 24 KiB and the delta blocks.
        assert!(keys > if store == StoreKind::Table { 4000 } else { 900 }, "{store:?}: {keys}");
        let all = |db: &Database| db.begin_read()?.open_table(TABLE).map(|table| table.len());
        assert_eq!(all(&db)?, keys);
        let tx = db.begin_write()?;
        tx.open_table(TABLE)?.remove_range(..u64::MAX / 2);
        tx.commit()?;
        while db.maintain()? {}
        db.checkpoint()?;
        let left = all(&db)?;
        (0..100).try_for_each(|key| put(&db, keys + key))?;
        kill(&volume.0, db);
        volume.0.power_off_at(None);
        let db = options().open_on(Arc::new(volume.clone()), NAME)?;
        assert_eq!(all(&db)?, left + 100);
        assert!(db.verify(|_| ())?.findings.is_empty());
        db.close()?;
        let (db, damage) = options().open_damaged_on(Arc::new(volume), NAME)?;
        assert!(all(&db)? == left + 100 && damage.is_empty(), "{damage:?}");
    }
    Ok(())
}

/// Devices of the system.
#[cfg(target_os = "linux")]
mod system {
    use super::*;
    use duramen_sim::LoopDevice;
    use std::os::unix::fs::{MetadataExt, symlink};
    use std::path::Path;

    #[test]
    fn a_loop_device_is_a_file_with_its_log_beside_the_link() -> Result<()> {
        for store in STORES {
            let folder = tempfile::tempdir().unwrap();
            let at = |name: &str| folder.path().join(name);
            let backing = std::fs::File::create(at("backing")).unwrap();
            backing.set_len(128 * MIB).unwrap();
            let device = match LoopDevice::of(&at("backing")) {
                Ok(device) => device,
                Err(why) => {
                    println!("SKIPPED: this test needs a loop device: {why}");
                    return Ok(());
                }
            };
            let direct = Database::create(device.path()).map(drop);
            assert!(matches!(direct, Err(Error::Option { option: "path", .. })), "{direct:?}");
            std::fs::create_dir(at("db")).unwrap();
            let path = at("db/forest");
            symlink(device.path(), &path).unwrap();
            use_it(store, &path, &at("backing"), &device)?;
        }
        Ok(())
    }

    fn use_it(store: StoreKind, path: &Path, backing: &Path, device: &LoopDevice) -> Result<()> {
        let options = options().store(store).cache(1 << 20);
        std::fs::write(device.path(), b"other data").unwrap();
        let foreign = options.create(path).map(drop);
        assert!(matches!(foreign, Err(Error::NotADatabase { .. })), "{foreign:?}");
        std::fs::write(device.path(), [0; 10]).unwrap();
        let db = options.create(path)?;
        let put = |db: &Database, keys: std::ops::Range<u64>, byte: u8| -> Result<()> {
            let tx = db.begin_write()?;
            let mut table = tx.open_table(TABLE)?;
            keys.into_iter().try_for_each(|key| table.put(key, [byte; 900].as_slice()))?;
            drop(table);
            tx.commit()
        };
        put(&db, 0..5000, 1)?;
        db.checkpoint()?;
        put(&db, 100..200, 2)?;
        // Another name of the same device, from which a second database would be opened, or which could be mounted.
        let other = path.with_file_name("other");
        std::os::unix::fs::symlink(device.path(), &other).unwrap();
        assert!(matches!(options.open(&other), Err(Error::Locked { .. })));
        let logs = || {
            let names = std::fs::read_dir(path.parent().unwrap()).unwrap().map(|entry| entry.unwrap().file_name());
            names.filter(|name| name.to_string_lossy().starts_with("forest-log.")).count()
        };
        assert!(logs() > 0);
        let before = std::fs::metadata(backing).unwrap().blocks();
        let tx = db.begin_write()?;
        assert!(tx.drop_table("t")?);
        tx.commit()?;
        while db.maintain()? {}
        db.checkpoint()?;
        put(&db, 0..500, 3)?;
        db.close()?;
        assert_eq!(logs(), 0);
        assert!(!path.metadata().unwrap().is_file() && path.symlink_metadata().unwrap().is_symlink());
        if store == StoreKind::Shadow {
            let after = std::fs::metadata(backing).unwrap().blocks();
            assert!(after < before / 2, "blocks that nobody needs are discarded: {before} {after}");
        }
        let db = options.open_read_only(path)?;
        let tx = db.begin_read()?;
        let table = tx.open_table(TABLE)?;
        assert_eq!((table.len(), table.get(499)?.map(|value| value.value()[0])), (500, Some(3)));
        assert!(matches!(options.open(path), Err(Error::Locked { .. })));
        Ok(())
    }
}

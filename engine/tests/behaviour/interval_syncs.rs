//! Promise: commits with `Durability::Interval` are synced after the interval, whatever else the database does.

use duramen::io::{MemoryVolume, Volume};
use duramen::{Builder, Database, Durability, Result, TableDef};
use duramen_sim::{HookedVolume, Hooks};
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::time::Duration;

const NAME: &str = "t.duramen";
const T: TableDef<u64, &[u8]> = TableDef::new("t");

/// Counts syncs of the log, and can hold those of the database file.
#[derive(Debug, Default)]
struct Device {
    state: Mutex<DeviceState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct DeviceState {
    log_syncs: u64,
    /// Syncs of the database file wait.
    is_slow: bool,
    waiting: usize,
}

impl Device {
    fn log_syncs(&self) -> u64 {
        self.state.lock().log_syncs
    }

    /// Waits until `condition` holds. Returns false after a minute.
    fn wait_for(&self, condition: impl FnMut(&DeviceState) -> bool) -> bool {
        self.wait_at_most(Duration::from_secs(60), condition)
    }

    fn wait_at_most(&self, time: Duration, mut condition: impl FnMut(&DeviceState) -> bool) -> bool {
        let mut state = self.state.lock();
        !self.changed.wait_while_for(&mut state, |state| !condition(state), time).timed_out()
    }

    fn set_slow(&self, is_slow: bool) {
        self.state.lock().is_slow = is_slow;
        self.changed.notify_all();
    }
}

impl Hooks for Device {
    fn before_sync(&self, name: Option<&str>) -> Result<()> {
        let mut state = self.state.lock();
        match name {
            Some(NAME) => {
                state.waiting += 1;
                self.changed.notify_all();
                self.changed.wait_while(&mut state, |state| state.is_slow);
                state.waiting -= 1;
            }
            Some(_) => state.log_syncs += 1,
            None => {}
        }
        self.changed.notify_all();
        Ok(())
    }
}

fn volume(device: &Arc<Device>) -> Arc<dyn Volume> {
    Arc::new(HookedVolume::new(Arc::new(MemoryVolume::new()), device.clone()))
}

fn options() -> Builder {
    Database::builder().durability(Durability::Interval).flush_interval(Duration::from_millis(2))
}

fn put(db: &Database, key: u64) -> Result<()> {
    let tx = db.begin_write()?;
    tx.open_table(T)?.put(key, &[7u8; 2000][..])?;
    tx.commit()
}

#[test]
fn a_slow_checkpoint_does_not_delay_interval_syncs() -> Result<()> {
    let device = Arc::new(Device::default());
    let db = options().checkpoint_bytes(1 << 20).create_on(volume(&device), NAME)?;
    device.set_slow(true);
    // The background thread begins a checkpoint. Commits wait for it only at twice the bytes.
    let mut keys = 0..;
    while keys.start < 500 || !device.wait_at_most(Duration::from_millis(20), |state| state.waiting > 0) {
        keys.by_ref().take(10).try_for_each(|key| put(&db, key))?;
        if keys.start >= 900 {
            device.set_slow(false);
            panic!("no checkpoint begins");
        }
    }
    let synced = keys.take(3).try_for_each(|key| {
        let before = device.log_syncs();
        put(&db, key).map_err(|error| error.to_string())?;
        if device.wait_for(|state| state.log_syncs > before) { Ok(()) } else { Err(format!("{key} waits")) }
    });
    device.set_slow(false);
    assert_eq!(synced, Ok(()));
    db.close()
}

#[test]
fn maintain_syncs_the_log_without_a_background_thread() -> Result<()> {
    let device = Arc::new(Device::default());
    let db = options().background(false).create_on(volume(&device), NAME)?;
    db.checkpoint()?;
    let before = device.log_syncs();
    put(&db, 1)?;
    assert_eq!(device.log_syncs(), before);
    while db.maintain()? {}
    assert!(device.log_syncs() > before);
    db.close()
}

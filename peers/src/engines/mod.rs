//! The stores that can be measured, each as a contestant.

mod fjall;
mod linked;
mod lmdb;
mod redb;
mod sqlite;

pub(crate) use fjall::Fjall;
pub(crate) use lmdb::Lmdb;
pub(crate) use redb::Redb;
pub(crate) use sqlite::Sqlite;

use duramen_bench::Result;
use std::sync::Mutex;
use std::time::{Duration, Instant};

pub(crate) type RocksDb = linked::Linked<linked::OfRocksDb>;
pub(crate) type WiredTiger = linked::Linked<linked::OfWiredTiger>;

/// How often a commit goes to the device with `Durability::Interval`: what Duramen does by default.
const INTERVAL: Duration = Duration::from_millis(100);

/// Syncs at intervals, for stores that have none.
struct Sometimes(Mutex<Instant>);

impl Default for Sometimes {
    fn default() -> Sometimes {
        Sometimes(Mutex::new(Instant::now()))
    }
}

impl Sometimes {
    /// Whether the last sync was so long ago that the caller must sync now.
    fn is_due(&self) -> Result<bool> {
        let mut last = self.0.lock().map_err(|_| "a thread panicked")?;
        let due = last.elapsed() >= INTERVAL;
        if due {
            *last = Instant::now();
        }
        Ok(due)
    }
}

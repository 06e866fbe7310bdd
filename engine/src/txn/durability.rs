//! [`Durability`]: waits for the device, and makes commits visible.

use super::engine::Engine;
use crate::base::watermark::Watermark;
use crate::base::{Lsn, Result};
use std::sync::atomic::Ordering;

/// Decides what must be on the device before a commit returns.
///
/// ```
/// use duramen::{Database, Durability, TableDef};
/// const HITS: TableDef<&str, u64> = TableDef::new("hits");
///
/// let db = Database::builder().durability(Durability::Interval).in_memory()?;
/// let mut tx = db.begin_write()?;
/// tx.set_durability(Durability::Commit); // this one must not be lost
/// tx.open_table(HITS)?.put("front page", 1)?;
/// tx.commit()?;
/// assert_eq!(db.begin_read()?.open_table(HITS)?.len(), 1);
/// # Ok::<(), duramen::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Durability {
    /// The commit is on the device: a power cut cannot undo it. Commits that wait at the same time share one sync.
    #[default]
    Commit,
    /// The operating system has the commit. A background thread syncs it after an interval. A crash of the process
    /// loses nothing. A power cut can lose at most the commits of the last interval and of the time that two syncs
    /// take, and only complete commits from the end. Without [`Builder::background`](crate::Builder::background),
    /// [`Database::maintain`](crate::Database::maintain) syncs them.
    Interval,
    /// Like [`Durability::Interval`], but only checkpoints and later durable commits sync it.
    None,
}

impl Engine {
    /// The end of the last batch. The caller must hold the writer's lock.
    pub(crate) fn last_end(&self) -> Lsn {
        *self.apply.lock()
    }

    /// Notes that a commit waits for a sync, now or after an interval. The caller must still hold the writer's lock. A
    /// later commit that becomes visible makes this one visible too, so it must know that this one waits.
    pub(crate) fn note_sync_request(&self, end: Lsn, durability: Durability) {
        let asked = match durability {
            Durability::Commit => &self.sync_requested,
            Durability::Interval => &self.interval_end,
            Durability::None => return,
        };
        asked.fetch_max(end.0, Ordering::AcqRel);
    }

    /// Waits until the commit that ends at `end`, and all commits noted before it, are as durable as asked. Then makes
    /// it visible.
    pub(crate) fn settle(&self, end: Lsn, durability: Durability) -> Result<()> {
        if let Some(log) = self.log.get() {
            let target = match durability {
                Durability::Commit => end,
                Durability::Interval | Durability::None => Lsn(self.sync_requested.load(Ordering::Acquire)),
            };
            if log.durable() < target {
                log.make_durable(target).inspect_err(|cause| self.poison(cause))?;
            }
        }
        self.snapshots.publish(end);
        Ok(())
    }

    /// Makes commits with [`Durability::Interval`] durable.
    pub(crate) fn sync_interval_commits(&self) -> Result<()> {
        let Some(log) = self.log.get() else { return Ok(()) };
        if log.durable().0 < self.interval_end.load(Ordering::Acquire) {
            log.make_durable(log.appended()).inspect_err(|cause| self.poison(cause))?;
        }
        Ok(())
    }
}

//! When a commit counts as done: [`Durability`], waiting for the device, and making commits visible.

use super::engine::Engine;
use crate::base::watermark::Watermark;
use crate::base::{Lsn, Result};
use std::sync::atomic::Ordering;

/// When a commit counts as done.
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
    /// When it is on the device: a power cut cannot take it back. Commits that wait at the same time share a sync.
    #[default]
    Commit,
    /// When the operating system has it; synced in the background every interval. A crash of the process loses
    /// nothing, a power cut at most the last interval, and always whole commits from the end.
    Interval,
    /// Like [`Durability::Interval`], but synced only by checkpoints and by later commits that ask for more.
    None,
}

impl Engine {
    /// The end of the last batch; the caller holds the writer's lock.
    pub(crate) fn last_end(&self) -> Lsn {
        *self.apply.lock()
    }

    /// Says that a commit waits for the device, or is to be there after an interval; to be called before the writer's lock
    /// is given up, so that no later commit, whose publishing makes this one visible as well, overtakes it.
    pub(crate) fn note_awaited(&self, end: Lsn, durability: Durability) {
        let asked = match durability {
            Durability::Commit => &self.awaited,
            Durability::Interval => &self.lazy,
            Durability::None => return,
        };
        asked.fetch_max(end.0, Ordering::AcqRel);
    }

    /// Waits until a commit that ends at `end`, and all commits noted before it, is as durable as asked, then makes it
    /// visible.
    pub(crate) fn settle(&self, end: Lsn, durability: Durability) -> Result<()> {
        if let Some(log) = self.log.get() {
            let target = match durability {
                Durability::Commit => end,
                Durability::Interval | Durability::None => Lsn(self.awaited.load(Ordering::Acquire)),
            };
            if log.durable() < target {
                log.make_durable(target).inspect_err(|cause| self.poison(cause))?;
            }
        }
        self.snapshots.publish(end);
        Ok(())
    }

    /// Makes durable what was to be so after an interval.
    pub(crate) fn sync_lazy(&self) -> Result<()> {
        let Some(log) = self.log.get() else { return Ok(()) };
        if log.durable().0 < self.lazy.load(Ordering::Acquire) {
            log.make_durable(log.appended()).inspect_err(|cause| self.poison(cause))?;
        }
        Ok(())
    }
}

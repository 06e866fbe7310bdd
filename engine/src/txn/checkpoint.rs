//! Checkpoints: after one, recovery starts from its redo point and the log before it is gone.
//!
//! Fuzzy: commits go on meanwhile. Only two short cuts need the apply lock: starting a new log segment, and freezing
//! the page table between two batches.

use super::engine::Engine;
use crate::base::watermark::Watermark;
use crate::base::{Lsn, Result};
use crate::store::Meta;
use std::sync::atomic::Ordering;

impl Engine {
    /// Takes a checkpoint. `fill` completes the superblock's other fields.
    pub(crate) fn checkpoint(&self, fill: impl FnOnce(&mut Meta)) -> Result<()> {
        let Some(store) = &self.store else { return Ok(()) };
        let _one_at_a_time = self.checkpointing.lock();
        self.check_poison()?;
        let log = self.log()?;
        // Most of the log becomes durable before the apply lock is taken, so that commits hardly wait for it.
        log.make_durable(log.appended()).inspect_err(|cause| self.poison(cause))?;
        let redo = {
            let _between_batches = self.apply.lock();
            log.rotate().inspect_err(|cause| self.poison(cause))?
        };
        self.pool.flush_before(redo)?;
        let (frozen, table) = {
            let _between_batches = self.apply.lock();
            (store.freeze(), log.appended())
        };
        log.make_durable(table).inspect_err(|cause| self.poison(cause))?;
        let redo = redo.min(Lsn(self.unfinished.load(Ordering::Acquire)));
        let mut meta = store.meta();
        (meta.redo, meta.table, meta.last) = (redo, table, table);
        meta.high_water = self.ids.lock().high();
        meta.epoch = log.epoch();
        fill(&mut meta);
        store.finish(frozen, meta)?;
        self.last_redo.store(redo.0, Ordering::Release);
        log.remove_before(redo)
    }

    /// Log bytes that recovery would have to read.
    pub(crate) fn log_bytes(&self) -> u64 {
        let redo = Lsn(self.last_redo.load(Ordering::Acquire));
        self.log.get().map_or(0, |log| log.appended().0.saturating_sub(redo.0))
    }
}

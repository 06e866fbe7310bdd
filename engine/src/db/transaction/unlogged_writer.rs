//! Writes pages outside the log. Those of compressed tables are written in another thread, while the transaction
//! prepares the next ones.
//!
//! Bulk loads and large values are written in this way, in batches of 1 MiB. They are synced before the log gets the
//! batch that has their places and makes them reachable.

use super::write::WriteTransaction;
use crate::base::{PageId, Result};
use crate::db::shared::Shared;
use crate::store::PlaceBytes;
use parking_lot::Mutex;
use std::sync::Arc;
use std::thread::JoinHandle;

/// Packed pages, each with its id.
pub(crate) type PackedPages = Vec<(PageId, Vec<u8>)>;

/// Pages and their places.
type WriterResult = Result<(PackedPages, Vec<Option<PlaceBytes>>)>;

/// The pages of a transaction that are being written by a thread; none or one batch. The transaction must wait for it
/// before it ends, because the thread must not write pages that are free.
#[derive(Default)]
pub(crate) struct UnloggedWriter(Mutex<Option<JoinHandle<WriterResult>>>);

impl WriteTransaction {
    /// Waits for the batch before, and writes pages that the transaction has allocated. If `in_thread` is true, they
    /// are still being written when this returns.
    pub(crate) fn write_pages(&self, pages: PackedPages, in_thread: bool) -> Result<()> {
        // Another thread may write pages for this transaction too. The lock makes it wait. So it cannot replace a batch
        // before that batch was awaited.
        let mut writing = self.unlogged_writer.0.lock();
        self.await_batch(&mut writing)?;
        if pages.is_empty() {
            return Ok(());
        }
        if !in_thread {
            return self.note_written(write(&self.shared, pages));
        }
        let (shared, batch) = (self.shared.shared(), Arc::new(Mutex::new(pages)));
        let pages = batch.clone();
        let work = move || write(&shared, std::mem::take(&mut *batch.lock()));
        match std::thread::Builder::new().name("duramen-pages".into()).spawn(work) {
            Ok(thread) => *writing = Some(thread),
            // The system cannot start a thread.
            Err(_) => return self.note_written(write(&self.shared, std::mem::take(&mut *pages.lock()))),
        }
        Ok(())
    }

    /// Waits for the batch that is being written, if there is one.
    pub(crate) fn await_pages(&self) -> Result<()> {
        self.await_batch(&mut self.unlogged_writer.0.lock())
    }

    fn await_batch(&self, writing: &mut Option<JoinHandle<WriterResult>>) -> Result<()> {
        let Some(thread) = writing.take() else { return Ok(()) };
        if let Err(error) = self.shared.check_process() {
            // The thread runs in the parent process only.
            std::mem::forget(thread);
            return Err(error);
        }
        match thread.join() {
            Ok(written) => self.note_written(written),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }

    /// Forgets the thread that writes a batch: it runs in the parent of this process only.
    pub(super) fn forget_thread(&mut self) {
        std::mem::forget(self.unlogged_writer.0.get_mut().take());
    }

    fn note_written(&self, written: WriterResult) -> Result<()> {
        let (pages, places) = written?;
        let mut adopted = self.adopted.lock();
        for ((id, _), place) in pages.iter().zip(places) {
            // Pages are written soon after they are allocated, so the page is near the end of the list.
            if let Some(adopted) = adopted.iter_mut().rev().find(|(page, _)| page == id) {
                adopted.1 = place;
            }
        }
        Ok(())
    }
}

fn write(shared: &Shared, mut pages: PackedPages) -> WriterResult {
    let places = shared.engine.write_unlogged(&mut pages)?;
    Ok((pages, places))
}

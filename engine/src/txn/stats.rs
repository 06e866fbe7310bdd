//! Statistics of a database: its use of memory and of the file.

use super::engine::Engine;
use super::redo_work::RedoAmount;
use crate::base::Error;
use crate::store::{DeltaBlocks, StoreKind};
use std::time::Duration;

/// Statistics of a database, which `Database::stats` returns.
///
/// ```
/// # const TREES: duramen::TableDef<&str, u64> = duramen::TableDef::new("trees");
/// # let db = duramen::Database::in_memory()?;
/// # let tx = db.begin_write()?;
/// # for (name, years) in [("elm", 400), ("oak", 700), ("yew", 3000)] { tx.open_table(TREES)?.put(name, years)?; }
/// # tx.commit()?;
/// let stats = db.stats();
/// assert_eq!((stats.page_size, stats.file_bytes, stats.snapshots), (8192, 0, 0));
/// println!("{} pages of {} bytes, {} of them free", stats.pages, stats.page_size, stats.free_pages);
/// # Ok::<(), duramen::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct DatabaseStats {
    /// The page store of the file; `None` in memory.
    pub store: Option<StoreKind>,
    /// How the store writes small changes of pages. `None` in memory and for page stores other than
    /// [`StoreKind::Shadow`].
    pub delta: Option<DeltaBlocks>,
    /// Bytes of a page, including the bytes that the store keeps after each page.
    pub page_size: usize,
    /// Length of the file; 0 in memory.
    pub file_bytes: u64,
    /// Bytes of the file on the device. Fewer than its length if the file has holes, more if space is reserved after
    /// its end.
    pub allocated_bytes: u64,
    /// Bytes of page images in the file.
    pub live_bytes: u64,
    /// Free bytes in the file.
    pub free_bytes: u64,
    /// Bytes of the log that a recovery would read now: those since the redo point, with the padding of a sparse log.
    /// [`Builder::checkpoint_bytes`](crate::Builder::checkpoint_bytes) bounds them.
    pub log_bytes: u64,
    /// Distinct pages that a recovery would read now: those that the log changes since the redo point.
    /// [`Builder::checkpoint_pages`](crate::Builder::checkpoint_pages) bounds them.
    pub redo_pages: u64,
    /// The work of the recovery when the database was opened; `None` if the database had been closed properly.
    pub recovery: Option<Recovery>,
    /// Pages in the file, or in memory.
    pub pages: u64,
    /// Free page ids.
    pub free_pages: u64,
    /// Pages that fit in the cache.
    pub cache_pages: u64,
    /// Pages in the cache now.
    pub resident_pages: u64,
    /// Bytes of the cache, including its tables.
    pub cache_bytes: u64,
    /// Pages read since the database was opened.
    pub reads: u64,
    /// Pages written since the database was opened.
    pub writes: u64,
    /// Pages evicted from the cache since the database was opened.
    pub evictions: u64,
    /// Open snapshots.
    pub snapshots: usize,
    /// The number of before-images of changes since the oldest snapshot, and of the last commits.
    pub versions: usize,
    /// Bytes of memory that these before-images use. `Builder::version_memory` limits the part that snapshots need.
    pub version_bytes: usize,
    /// Detached subtrees that are not yet freed.
    pub detached: usize,
}

/// The work of a recovery, as part of [`DatabaseStats`].
///
/// ```
/// # const TREES: duramen::TableDef<&str, u64> = duramen::TableDef::new("trees");
/// use duramen::{Database, db::FILE_MAGIC, io::{MemoryVolume, OpenMode, Volume}};
/// use std::sync::Arc;
///
/// let volume = Arc::new(MemoryVolume::new());
/// let db = Database::builder().create_on(volume.clone(), "forest")?;
/// let tx = db.begin_write()?;
/// tx.open_table(TREES)?.put("oak", 700)?;
/// tx.commit()?;
/// // A copy of the files as they are if the process is killed here.
/// let killed = MemoryVolume::new();
/// for name in volume.list("forest")? {
///     let disk = volume.open(&name, OpenMode::Read)?;
///     let mut bytes = vec![0; disk.size()? as usize];
///     disk.read_at(0, &mut bytes)?;
///     killed.open(&name, OpenMode::CreateNew)?.write_at(0, &bytes)?;
/// }
/// let recovery = Database::builder().open_on(Arc::new(killed), "forest")?.stats().recovery.unwrap();
/// assert!(recovery.log_bytes < 10_000 && recovery.pages < 10);
/// # Ok::<(), duramen::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Recovery {
    /// Bytes of the log that the recovery has read, including the padding of a sparse log.
    pub log_bytes: u64,
    /// Distinct pages that the recovery has read or created.
    pub pages: u64,
    /// Page operations of the log that the recovery has applied.
    pub applied: u64,
    /// Page operations of the log that the recovery did not apply, because the page in the file already contained them,
    /// or because a later operation frees the page.
    pub skipped: u64,
    /// The duration of the recovery, without the checkpoint after it.
    pub time: Duration,
}

impl Engine {
    /// Returns statistics of memory and file space.
    pub(crate) fn stats(&self) -> DatabaseStats {
        let pool = self.pool.stats();
        let store = self.store.as_ref().map(|store| store.stats()).unwrap_or_default();
        let kind = self.store.as_ref().map(|store| store.file().kind());
        let held = self.versions.held_back();
        let RedoAmount { bytes: log_bytes, pages: redo_pages } = self.recovery_work();
        DatabaseStats {
            store: kind,
            delta: store.delta,
            page_size: self.full_page_size(),
            file_bytes: store.file_bytes,
            allocated_bytes: self.store.as_ref().map_or(0, |store| store.file().allocated()),
            live_bytes: store.live_bytes,
            free_bytes: store.free_bytes,
            log_bytes,
            redo_pages,
            recovery: self.recovery,
            pages: if self.is_logged() { store.pages } else { pool.resident },
            free_pages: self.ids.lock().free_count(),
            cache_pages: self.pool.capacity() as u64,
            resident_pages: pool.resident,
            cache_bytes: pool.bytes,
            reads: pool.misses,
            writes: pool.writes,
            evictions: pool.evictions,
            snapshots: self.snapshots.count(),
            versions: held.events,
            version_bytes: held.bytes + held.run_bytes,
            detached: self.detached.len(),
        }
    }

    /// Returns the damage because of which the store does not know its free places, if there is any.
    pub(crate) fn store_damage(&self) -> Option<Error> {
        self.store.as_ref().and_then(|store| store.damage())
    }

    /// Returns the number of the damaged superblock, if one is damaged.
    pub(crate) fn damaged_superblock(&self) -> Option<usize> {
        self.store.as_ref().and_then(|store| store.file().damaged_superblock())
    }
}

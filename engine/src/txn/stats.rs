//! Statistics of a database: how it uses memory and the file; and what its store says of the file.

use super::engine::Engine;
use crate::base::Error;
use crate::store::{DeltaBlocks, StoreKind};

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
    /// How the file keeps its pages; `None` in memory.
    pub store: Option<StoreKind>,
    /// How small changes of pages are written; `None` in memory, and for other page stores than
    /// [`StoreKind::Shadow`].
    pub delta: Option<DeltaBlocks>,
    /// Bytes of a page, with what the store keeps behind it.
    pub page_size: usize,
    /// Length of the file; 0 in memory.
    pub file_bytes: u64,
    /// Bytes of the file on the device: fewer than its length if it has holes, more if space is reserved behind its end.
    pub allocated_bytes: u64,
    /// Bytes of page images in the file.
    pub live_bytes: u64,
    /// Free bytes in the file.
    pub free_bytes: u64,
    /// Bytes of the log that a recovery would read.
    pub log_bytes: u64,
    /// Pages in the file, or in memory.
    pub pages: u64,
    /// Free page ids.
    pub free_pages: u64,
    /// Pages that fit in the cache.
    pub cache_pages: u64,
    /// Pages in the cache now.
    pub resident_pages: u64,
    /// Bytes of the cache, with its tables.
    pub cache_bytes: u64,
    /// Pages read since the database was opened.
    pub reads: u64,
    /// Pages written since the database was opened.
    pub writes: u64,
    /// Pages evicted from the cache since the database was opened.
    pub evictions: u64,
    /// Open snapshots.
    pub snapshots: usize,
    /// Before-images of the changes since the oldest snapshot, and of the last commits.
    pub versions: usize,
    /// Bytes of memory of these before-images. `Builder::version_memory` limits the part that snapshots need.
    pub version_bytes: usize,
    /// Detached subtrees that are not yet freed.
    pub detached: usize,
}

impl Engine {
    /// Statistics of memory and file space.
    pub(crate) fn stats(&self) -> DatabaseStats {
        let pool = self.pool.stats();
        let store = self.store.as_ref().map(|store| store.stats()).unwrap_or_default();
        let kind = self.store.as_ref().map(|store| store.file().kind());
        let held = self.versions.held_back();
        DatabaseStats {
            store: kind,
            delta: self.store.as_ref().and_then(|store| store.delta()),
            page_size: self.full_page_size(),
            file_bytes: store.file_bytes,
            allocated_bytes: self.store.as_ref().map_or(0, |store| store.file().allocated()),
            live_bytes: store.live_bytes,
            free_bytes: store.free_bytes,
            log_bytes: self.log_bytes(),
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
            detached: self.detached.lock().len(),
        }
    }

    /// Why the store does not know which places are free, if that is so.
    pub(crate) fn store_damage(&self) -> Option<Error> {
        self.store.as_ref().and_then(|store| store.damage())
    }

    /// The number of the superblock that is damaged, if one is.
    pub(crate) fn damaged_superblock(&self) -> Option<usize> {
        self.store.as_ref().and_then(|store| store.file().damaged_superblock())
    }
}

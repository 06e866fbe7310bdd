//! Statistics of a database: how it uses memory and the file.

use super::Database;

/// Statistics of a database; see [`Database::stats`].
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
    /// Bytes of a page.
    pub page_size: usize,
    /// Length of the file; 0 in memory.
    pub file_bytes: u64,
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
    /// Bytes of memory of these before-images. [`super::Builder::version_memory`] limits the part that snapshots need.
    pub version_bytes: usize,
    /// Detached subtrees that are not yet freed.
    pub detached: usize,
}

impl Database {
    /// Statistics of memory and file space.
    ///
    /// ```
    /// # const TREES: duramen::TableDef<&str, u64> = duramen::TableDef::new("trees");
    /// # let db = duramen::Database::in_memory()?;
    /// # let tx = db.begin_write()?;
    /// # for (name, years) in [("elm", 400), ("oak", 700), ("yew", 3000)] { tx.open_table(TREES)?.put(name, years)?; }
    /// # tx.commit()?;
    /// let reader = db.begin_read()?;
    /// assert_eq!(db.stats().snapshots, 1);
    /// drop(reader);
    /// assert_eq!(db.stats().snapshots, 0);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn stats(&self) -> DatabaseStats {
        let engine = &self.shared().engine;
        let pool = engine.pool.stats();
        let store = engine.store.as_ref().map(|store| store.stats()).unwrap_or_default();
        let held = engine.versions.held_back();
        DatabaseStats {
            page_size: engine.pool.page_size(),
            file_bytes: store.file_bytes,
            live_bytes: store.live_bytes,
            free_bytes: store.free_bytes,
            log_bytes: engine.log_bytes(),
            pages: if engine.is_logged() { store.pages } else { pool.resident },
            free_pages: engine.ids.lock().free_count(),
            cache_pages: engine.pool.capacity() as u64,
            resident_pages: pool.resident,
            cache_bytes: pool.bytes,
            reads: pool.misses,
            writes: pool.writes,
            evictions: pool.evictions,
            snapshots: engine.snapshots.count(),
            versions: held.events,
            version_bytes: held.bytes + held.run_bytes,
            detached: engine.detached.lock().len(),
        }
    }
}

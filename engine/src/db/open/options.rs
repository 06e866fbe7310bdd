//! [`Builder`]: the options of an open database. Each option has a default that fits most programs. No option changes
//! the meaning of the data.

use crate::base::{Error, Result, limits, processors};
use crate::db::maintenance::progress::Listener;
use crate::db::{Database, Phase, Progress};
use crate::log::LogShape;
use crate::store::{DeltaBlocks, StoreKind};
use crate::txn::Durability;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The default size of the cache, in bytes.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("forest.duramen");
/// use duramen::{Database, db::DEFAULT_CACHE};
///
/// let stats = Database::create(&path)?.stats();
/// assert_eq!(stats.cache_pages as usize * stats.page_size, DEFAULT_CACHE);
/// # Ok::<(), duramen::Error>(())
/// ```
pub const DEFAULT_CACHE: usize = 64 << 20;
/// The minimum number of pages in a cache, whatever its size in bytes.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("forest.duramen");
/// use duramen::{Database, db::MIN_CACHE_PAGES};
///
/// let db = Database::builder().cache(0).create(&path)?;
/// assert_eq!(db.stats().cache_pages as usize, MIN_CACHE_PAGES);
/// # Ok::<(), duramen::Error>(())
/// ```
pub const MIN_CACHE_PAGES: usize = 64;

/// The default of [`Builder::version_memory`], the limit of memory for old versions, in bytes.
///
/// ```
/// use duramen::{Database, db::DEFAULT_VERSION_MEMORY};
///
/// let db = Database::builder().version_memory(4 * DEFAULT_VERSION_MEMORY).in_memory()?;
/// assert!(db.stats().version_bytes < DEFAULT_VERSION_MEMORY);
/// # Ok::<(), duramen::Error>(())
/// ```
pub const DEFAULT_VERSION_MEMORY: usize = 256 << 20;

/// Options for creating or opening a database.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("small.duramen");
/// let db = duramen::Database::builder().page_size(16384).cache(8 << 20).create(&path)?;
/// assert_eq!((db.stats().page_size, db.stats().cache_pages), (16384, 512));
/// # Ok::<(), duramen::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Builder {
    pub(crate) page_size: Option<usize>,
    /// The page store of a new database.
    pub(crate) store: Option<StoreKind>,
    pub(crate) persist_table: bool,
    /// For [`StoreKind::Shadow`].
    pub(crate) delta: Option<DeltaBlocks>,
    pub(crate) cache: usize,
    pub(crate) resident_inner: bool,
    pub(crate) direct_io: bool,
    pub(crate) durability: Durability,
    pub(crate) flush_interval: Duration,
    pub(crate) log_shape: LogShape,
    pub(crate) checkpoint_bytes: u64,
    /// `None`: as many as the cache holds, but at least the default.
    pub(crate) checkpoint_pages: Option<u64>,
    pub(crate) version_memory: usize,
    pub(crate) background: bool,
    pub(crate) compression_threads: usize,
    pub(crate) writers: usize,
    pub(crate) max_payload: usize,
    pub(crate) superseded_bytes: Option<u64>,
    pub(in crate::db) on_recovery: Option<Listener>,
}

impl Default for Builder {
    fn default() -> Builder {
        Builder {
            page_size: None,
            store: None,
            persist_table: false,
            delta: None,
            cache: DEFAULT_CACHE,
            resident_inner: false,
            direct_io: false,
            durability: Durability::Commit,
            flush_interval: Duration::from_millis(100),
            log_shape: LogShape::default(),
            checkpoint_bytes: super::bounds::DEFAULT_CHECKPOINT_BYTES,
            checkpoint_pages: None,
            version_memory: DEFAULT_VERSION_MEMORY,
            background: true,
            compression_threads: default_compression_threads(),
            writers: 1,
            max_payload: crate::log::MAX_PAYLOAD,
            superseded_bytes: None,
            on_recovery: None,
        }
    }
}

impl Builder {
    /// The size of a page in bytes, a power of two: 4096 to 65536, in memory from 256. Default
    /// [`limits::DEFAULT_PAGE_SIZE`]. It is fixed when a database is created and ignored when one is opened.
    /// [`Builder::convert`] changes it.
    ///
    /// ```
    /// use duramen::{Database, Error};
    ///
    /// let db = Database::builder().page_size(32 << 10).in_memory()?;
    /// assert_eq!(db.stats().page_size, 32768);
    /// assert!(matches!(Database::builder().page_size(5000).in_memory(), Err(Error::Option { .. })));
    /// # Ok::<(), duramen::Error>(())
    /// ```
    #[must_use]
    pub fn page_size(mut self, bytes: usize) -> Builder {
        self.page_size = Some(bytes);
        self
    }

    /// The page store of the file. Default [`StoreKind::Table`]. It is fixed when a database is created and ignored
    /// when one is opened, and for a database in memory. [`Builder::convert`] changes it.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("forest.duramen");
    /// use duramen::{Database, db::StoreKind};
    ///
    /// let db = Database::builder().store(StoreKind::Shadow).create(&path)?;
    /// assert_eq!(db.stats().store, Some(StoreKind::Shadow));
    /// # Ok::<(), duramen::Error>(())
    /// ```
    #[must_use]
    pub fn store(mut self, store: StoreKind) -> Builder {
        self.store = Some(store);
        self
    }

    /// Whether the page store [`StoreKind::Table`] writes the changed part of its page table after each flush of pages,
    /// as conventional stores with page shadowing do. Default `false`: the page table is written at checkpoints only,
    /// because the log has all that a recovery needs. Use it to compare write amplification. A checkpoint then has less
    /// to write. Images and parts of the page table that are written then have blocks of 4 KiB of their own.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("forest.duramen");
    /// # const TREES: duramen::TableDef<u64, u64> = duramen::TableDef::new("trees");
    /// use duramen::{Database, io::WriteKind};
    ///
    /// let db = Database::builder().cache(0).background(false).persist_table(true).create(&path)?;
    /// let tx = db.begin_write()?;
    /// let mut trees = tx.open_table(TREES)?;
    /// (0..100_000).try_for_each(|tree| trees.put(tree, 0))?;
    /// drop(trees);
    /// tx.commit()?;
    /// assert!(db.metrics().since_open.written(WriteKind::Table).calls > 10, "before any checkpoint");
    /// # Ok::<(), duramen::Error>(())
    /// ```
    #[must_use]
    pub fn persist_table(mut self, persist: bool) -> Builder {
        self.persist_table = persist;
        self
    }

    /// How the page store [`StoreKind::Shadow`] writes small changes of a page. Default [`DeltaBlocks::default`]: one
    /// delta block. It is fixed when a database is created and ignored when one is opened, and for other stores.
    /// [`Builder::convert`] changes it.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("forest.duramen");
    /// use duramen::{Database, db::{DeltaBlocks, StoreKind}};
    ///
    /// let paper = DeltaBlocks { threshold: 2048, segment: 128, blocks: 1 };
    /// let db = Database::builder().store(StoreKind::Shadow).delta(paper).create(&path)?;
    /// assert_eq!(db.stats().delta, Some(paper));
    /// # Ok::<(), duramen::Error>(())
    /// ```
    #[must_use]
    pub fn delta(mut self, delta: DeltaBlocks) -> Builder {
        self.delta = Some(delta);
        self
    }

    /// The size of the cache in bytes, at least [`MIN_CACHE_PAGES`] pages. Default [`DEFAULT_CACHE`]. An in-memory
    /// database keeps all its pages. Beside the cache, the page table may take a thirty-second of its size, or 16 MiB,
    /// or a third of the page table.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("forest.duramen");
    /// let db = duramen::Database::builder().page_size(4096).cache(1 << 20).create(&path)?;
    /// assert_eq!(db.stats().cache_pages, 256);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    #[must_use]
    pub fn cache(mut self, bytes: usize) -> Builder {
        self.cache = bytes;
        self
    }

    /// Whether inner pages stay in the cache, and also leaves with keys in a key heap
    /// ([`crate::db::types::KeyLayout::PkbHeap`]). Such a page is then evicted only if no other page can be, and a
    /// lookup reads at most one page from the file: the leaf or the heap page. With the default, `false`, all pages
    /// that were not used for long can be evicted. Use it if the inner pages are a small part of the cache: other pages
    /// have less space then.
    ///
    /// ```
    /// # use duramen::{Database, TableDef};
    /// # const TREES: TableDef<u64, u64> = TableDef::new("trees");
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("forest.duramen");
    /// let db = Database::builder().page_size(4096).cache(1 << 20).resident_inner(true).create(&path)?;
    /// let tx = db.begin_write()?;
    /// # let mut trees = tx.open_table(TREES)?;
    /// # for tree in 0..100_000 { trees.put(tree, 0)?; }
    /// # drop(trees);
    /// tx.commit()?;
    /// # db.checkpoint()?;
    /// let before = db.stats().reads;
    /// for tree in [1, 50_000, 99_000] {
    ///     db.begin_read()?.open_table(TREES)?.get(tree)?;
    /// }
    /// assert!(db.stats().reads - before <= 3);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    #[must_use]
    pub fn resident_inner(mut self, resident: bool) -> Builder {
        self.resident_inner = resident;
        self
    }

    /// Whether pages are read and written with direct I/O, so that [`Builder::cache`] is the only cache of pages.
    /// Default `false`: the system keeps pages of the file in its file cache, too, as far as it has memory to spare.
    /// A page that is only in the file cache is read much faster than from the device. Use direct I/O, with a cache of
    /// most of the memory, if the program has the machine for itself: then no page is in memory twice. Buffers take
    /// about 10 MiB beside the cache. The log always goes through the file cache. A database in memory ignores this
    /// option. Only Linux has it.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("forest.duramen");
    /// use duramen::{Database, Error};
    ///
    /// Database::create(&path)?.close()?;
    /// match Database::builder().direct_io(true).cache(1 << 30).open(&path) {
    ///     Ok(db) => db.close()?,
    ///     Err(Error::Option { option: "direct_io", .. }) => println!("not in this file system"),
    ///     Err(other) => return Err(other),
    /// }
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// Opening fails with [`Error::Option`] if the system does not support it for this file.
    #[must_use]
    pub fn direct_io(mut self, direct: bool) -> Builder {
        self.direct_io = direct;
        self
    }

    /// The maximum number of bytes of a batch in the log. It is for tests, which then reach the limit with little data.
    #[doc(hidden)]
    #[must_use]
    pub fn batch_bytes(mut self, bytes: usize) -> Builder {
        self.max_payload = bytes;
        self
    }

    /// How many bytes of superseded pages may wait for a checkpoint, if that is more than an eighth of the live ones.
    /// It is for tests, which then reach the limit with little data.
    #[doc(hidden)]
    #[must_use]
    pub fn superseded_bytes(mut self, bytes: u64) -> Builder {
        self.superseded_bytes = Some(bytes);
        self
    }

    /// The default durability of commits. Default [`Durability::Commit`]. A transaction can set its own.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("forest.duramen");
    /// use duramen::{Database, Durability, TableDef};
    /// const TREES: TableDef<&str, u64> = TableDef::new("trees");
    ///
    /// let db = Database::builder().durability(Durability::Interval).create(&path)?;
    /// let tx = db.begin_write()?;
    /// tx.open_table(TREES)?.put("oak", 700)?;
    /// tx.commit()?; // does not wait for the device
    /// assert_eq!(db.begin_read()?.open_table(TREES)?.len(), 1);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Builder {
        self.durability = durability;
        self
    }

    /// The interval between syncs of the log for [`Durability::Interval`]. Default 100 ms.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("forest.duramen");
    /// use duramen::{Database, Durability};
    /// use std::time::Duration;
    ///
    /// let options = Database::builder().durability(Durability::Interval).flush_interval(Duration::from_millis(10));
    /// let db = options.create(&path)?; // a power cut loses about the last 10 ms
    /// assert_eq!(db.path(), path);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    #[must_use]
    pub fn flush_interval(mut self, interval: Duration) -> Builder {
        self.flush_interval = interval;
        self
    }

    /// The shape of the log while the database is open. Default [`LogShape::Packed`]. [`LogShape::Sparse`] writes less
    /// on a drive with built-in compression if each commit is flushed.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("forest.duramen");
    /// use duramen::{Database, db::LogShape};
    ///
    /// Database::create(&path)?.close()?;
    /// let db = Database::builder().log_shape(LogShape::Sparse).open(&path)?;
    /// assert_eq!(db.path(), path);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    #[must_use]
    pub fn log_shape(mut self, shape: LogShape) -> Builder {
        self.log_shape = shape;
        self
    }

    /// The limit of memory for old versions, in bytes. The entries that commits replace are kept for open snapshots,
    /// once for each key and each snapshot that needs it. Default [`DEFAULT_VERSION_MEMORY`]. Beyond the limit every
    /// commit fails with [`Error::HeldBack`], which names the oldest snapshot, before it has changed anything; reads
    /// continue. Commits succeed again when enough snapshots are dropped. A single commit may exceed the limit by the
    /// entries that it replaces.
    ///
    /// ```
    /// # use duramen::{Database, Error, TableDef};
    /// # const TREES: TableDef<u64, u64> = TableDef::new("trees");
    /// let db = Database::builder().version_memory(1 << 20).in_memory()?;
    /// let plant = |range: std::ops::Range<u64>| {
    ///     let tx = db.begin_write()?;
    ///     range.into_iter().try_for_each(|tree| tx.open_table(TREES)?.put(tree, 0))?;
    ///     tx.commit()
    /// };
    /// plant(0..20_000)?;
    /// let reader = db.begin_read()?;
    /// plant(0..20_000)?; // the reader needs the old value of each tree
    /// assert!(matches!(plant(0..1), Err(Error::HeldBack { .. })));
    /// drop(reader);
    /// plant(0..1)?;
    /// # Ok::<(), duramen::Error>(())
    /// ```
    #[must_use]
    pub fn version_memory(mut self, bytes: usize) -> Builder {
        self.version_memory = bytes;
        self
    }

    /// Whether background threads take checkpoints, sync the log at intervals, free dropped pages and write dirty
    /// pages. Default `true`. Without it, call [`Database::maintain`].
    ///
    /// ```
    /// let db = duramen::Database::builder().background(false).in_memory()?;
    /// while db.maintain()? {} // call it at intervals, otherwise nothing is freed
    /// assert_eq!(db.stats().detached, 0);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    #[must_use]
    pub fn background(mut self, background: bool) -> Builder {
        self.background = background;
        self
    }

    /// The maximum number of threads that compress the pages of one batch (of a bulk load, a compaction, a checkpoint
    /// or a background writer), including the thread that writes the batch. All batches that the database writes at the
    /// same time share the other threads, so at most `threads - 1` of these run at any time. A bulk load continues
    /// while its pages are compressed. Default: one thread for each processor, but at most 4. With 1 or 0, no other
    /// threads compress pages. A commit or a read that finds no free frame compresses up to eight pages itself.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("forest.duramen");
    /// use duramen::Database;
    ///
    /// let db = Database::builder().compression_threads(1).create(&path)?;
    /// # Ok::<(), duramen::Error>(())
    /// ```
    #[must_use]
    pub fn compression_threads(mut self, threads: usize) -> Builder {
        self.compression_threads = threads;
        self
    }

    /// Calls `progress` at intervals while [`Builder::open`] recovers a database that was not closed, and once when the
    /// recovery is complete. The default is to call nothing.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("forest.duramen");
    /// let options = duramen::Database::builder()
    ///     .on_recovery(|progress| eprintln!("recovering: {} of {} bytes of the log", progress.done, progress.of));
    /// let db = options.open_or_create(&path)?;
    /// # Ok::<(), duramen::Error>(())
    /// ```
    #[must_use]
    pub fn on_recovery(mut self, progress: impl Fn(Progress) + Send + Sync + 'static) -> Builder {
        self.on_recovery = Some(Listener(Arc::new(progress)));
        self
    }

    pub(super) fn note_recovery(&self, done: u64, of: u64) {
        if let Some(Listener(progress)) = &self.on_recovery {
            progress(Progress { phase: Phase::Recovering, done, of });
        }
    }

    /// The number of background threads that write dirty pages before their space in the cache is needed, so that
    /// neither a read nor a commit waits for such a write: 0 to 4. Default 1. They sleep while enough of the cache is
    /// free or unchanged. A separate thread syncs the log for the writers. Without [`Builder::background`] there are no
    /// such threads.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("forest.duramen");
    /// use duramen::{Database, Error};
    ///
    /// Database::builder().writers(2).create(&path)?.close()?;
    /// assert!(matches!(Database::builder().writers(5).open(&path), Err(Error::Option { .. })));
    /// # Ok::<(), duramen::Error>(())
    /// ```
    #[must_use]
    pub fn writers(mut self, threads: usize) -> Builder {
        self.writers = threads;
        self
    }

    /// Opens a database for reading and writing. Recovers it if it was not closed properly.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("forest.duramen");
    /// use duramen::{Database, Error};
    ///
    /// let db = Database::create(&path)?;
    /// assert!(matches!(Database::builder().open(&path), Err(Error::Locked { .. })), "it is already open");
    /// db.close()?;
    /// let db = Database::builder().cache(256 << 20).open(&path)?;
    /// assert_eq!(db.path(), path);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Locked`], [`Error::NotADatabase`], [`Error::FormatVersion`],
    /// [`Error::UnknownStore`], and errors of the recovery.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Database> {
        let (volume, name) = super::existing(path.as_ref())?;
        self.open_on(volume, &name)
    }

    /// Opens a database for reading only. Several processes can do so at the same time.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("forest.duramen");
    /// use duramen::{Database, Error};
    ///
    /// Database::create(&path)?.close()?;
    /// let db = Database::builder().cache(1 << 20).open_read_only(&path)?;
    /// assert!(db.begin_read()?.tables()?.is_empty());
    /// assert!(matches!(db.begin_write(), Err(Error::ReadOnly)));
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Builder::open`], and [`Error::NeedsRecovery`] if it was not closed properly.
    pub fn open_read_only(&self, path: impl AsRef<Path>) -> Result<Database> {
        let (volume, name) = super::existing(path.as_ref())?;
        self.open_read_only_on(volume, &name)
    }

    /// Creates a database in memory. It is lost when it is dropped.
    ///
    /// ```
    /// // Small pages are for databases in memory only.
    /// let db = duramen::Database::builder().page_size(1024).in_memory()?;
    /// assert_eq!(db.stats().file_bytes, 0);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Option`] for a page size that is not allowed.
    pub fn in_memory(&self) -> Result<Database> {
        super::in_memory(self)
    }

    pub(crate) fn checked_page_size(&self, in_memory: bool) -> Result<usize, Error> {
        let page_size = self.page_size.unwrap_or(limits::DEFAULT_PAGE_SIZE);
        limits::check_page_size(page_size, in_memory)?;
        Ok(page_size)
    }

    pub(crate) fn frames(&self, page_size: usize) -> usize {
        (self.cache / page_size).max(MIN_CACHE_PAGES)
    }
}

/// One for each processor, but at most 4.
fn default_compression_threads() -> usize {
    processors().min(4)
}

//! Opens a database, and recovers it if it was not closed.
//!
//! Opening reads both superblocks. Before it writes anything else, it writes the valid superblock again, unchanged, and
//! syncs it: the superblock that was read may be in the file cache only. After redo, the log continues in a new segment
//! with a new **epoch**, so that bytes of a torn tail never become valid again. Then a checkpoint moves the redo point,
//! and old segments are removed.

pub(super) mod bounds;
pub(super) mod create;
pub(super) mod creation;
pub(super) mod options;

use super::catalog::catalog_tree;
use super::shared::{IntervalSyncs, Shared, Worker};
use super::transaction::read::each_table;
use super::{Database, maintenance};
use crate::base::{Error, Lsn, PageId, Result};
use crate::io::{CountedVolume, FileVolume, LockGuard, Locked, Opener, Volume};
use crate::log::{self, Log, LogConfig, LogPosition, LogReader, LogShape};
use crate::store::{self, Backing, DatabaseFile, Meta, PageStore, Pool, StoreSetup};
use crate::txn::{
    CATALOG_ROOT, Engine, LogSlot, LogicalTransaction, PageIds, Redo, RedoResult, catalog_is_gone, ids_per_map,
    map_damaged,
};
use creation::FIRST_LSN;
use options::Builder;
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// The cache has this many times the memory that the page store may use beside it.
const CACHE_PER_STORE_MEMORY: usize = 32;

/// The folder and the name of a file that should be there.
pub(crate) fn existing(path: &Path) -> Result<(Arc<dyn Volume>, String)> {
    match FileVolume::for_file(path) {
        // If the folder does not exist, neither does the database.
        Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
            Err(Error::NotFound { path: path.to_owned() })
        }
        found => found.map(|(volume, name)| -> (Arc<dyn Volume>, String) { (Arc::new(volume), name) }),
    }
}

pub(crate) fn in_memory(options: &Builder) -> Result<Database> {
    options.check_bounds()?;
    let page_size = options.checked_page_size(true)?;
    let pool = Pool::in_memory(page_size);
    let mut ids = PageIds::new(page_size, 1);
    let root = ids.take()?;
    debug_assert_eq!(root, CATALOG_ROOT);
    let engine = Engine::new(pool, None, Arc::default(), ids, FIRST_LSN);
    engine.create_catalog(&catalog_tree())?;
    let shared = shared(options, engine, "(in memory)".into(), false, None);
    if options.background {
        maintenance::start(&shared, options.writers);
    }
    Ok(Database::new(shared))
}

impl Builder {
    /// [`Builder::open`] on any volume.
    ///
    /// ```
    /// # use duramen::{Database, TableDef, io::MemoryVolume};
    /// # use std::sync::Arc;
    /// # const TREES: TableDef<&str, u64> = TableDef::new("trees");
    /// let volume = Arc::new(MemoryVolume::new());
    /// let db = Database::builder().create_on(volume.clone(), "forest")?;
    /// let tx = db.begin_write()?;
    /// tx.open_table(TREES)?.put("oak", 700)?;
    /// tx.commit()?;
    /// drop(db);
    ///
    /// let db = Database::builder().open_on(volume, "forest")?;
    /// assert_eq!(db.begin_read()?.open_table(TREES)?.len(), 1);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Builder::open`].
    pub fn open_on(&self, volume: Arc<dyn Volume>, name: &str) -> Result<Database> {
        let opened = Opened::open(self, &volume, name, true)?;
        self.start(opened, volume, name).map(|(db, _)| db)
    }

    /// Makes an open file a database for writing, after a recovery if it needs one. If nothing can be written, the
    /// database is for reading, and the second result is the cause.
    pub(super) fn start(
        &self,
        mut opened: Opened,
        volume: Arc<dyn Volume>,
        name: &str,
    ) -> Result<(Database, Option<Error>)> {
        let volume = Arc::new(CountedVolume::new(volume, opened.store.file().write_counts()));
        let config = LogConfig { shape: self.log_shape, ..log_config(volume, name, opened.meta.database_id) };
        let meta = opened.meta;
        let LogPosition { epoch, .. } = next_epoch(&meta);
        let (redo, store_lsn) = (meta.last, meta.last);
        let position = Meta { clean: false, log_follows: false, epoch, redo, store_lsn, ..meta };
        let log_continues = meta.clean && log_continues(&config, opened.store.file(), &meta)?;
        if log_continues {
            opened.meta = position;
        }
        let began = Instant::now();
        let (log, mut redone) = if opened.meta.clean {
            match opened.create_log(config, name, position)? {
                Ok(log) => (Ok(log), RedoResult::at(meta.last)),
                Err(cause) => return Ok((opened.into_reader(self, Some(&cause)), Some(cause))),
            }
        } else {
            opened.store.damage().map_or(Ok(()), Err)?;
            let recovered = recover(config, &opened, &mut |done, of| self.note_recovery(done, of))?;
            if log_continues && recovered.0.is_ok() {
                // Only after the recovery: before it, the log that this superblock needs may have been in the file
                // cache only.
                opened.store.file().write_meta(position)?;
            }
            recovered
        };
        let stopped = match log {
            Ok(log) => {
                opened.slot.set(Arc::new(log));
                None
            }
            Err(cause) => Some(cause),
        };
        let reserved: BTreeSet<PageId> = redone.unfinished.iter().flat_map(LogicalTransaction::reserved).collect();
        let given = redone.high.max(reserved.last().map_or(1, |id| id.0.saturating_add(1)));
        // After the last allocation map with known pages all ids are free, whatever the high-water mark in the
        // superblock is.
        let known = opened.store.ids_end().max(given).div_ceil(ids_per_map(meta.page_size));
        let high = meta.high_water.min(known.saturating_mul(ids_per_map(meta.page_size))).max(given);
        let ids = PageIds::new(meta.page_size, high);
        let missing = opened.note_maps(&redone).or_else(|| opened.missing_map());
        let mut engine = Engine::new(opened.pool, Some(opened.store), opened.slot, ids, redone.end);
        if !opened.meta.clean {
            engine = engine.recovered(redone.recovery(began.elapsed()), std::mem::take(&mut redone.pages));
        }
        if let Some(cause) = &stopped {
            engine.poison(cause);
        }
        let log_bytes = redone.log_bytes;
        engine.add_pending_frees(redone.end, redone.freed.iter());
        engine.load_maps(high, &reserved, &redone.freed, missing.as_ref().map(|(_, cause)| cause))?;
        engine.finish_opening(&catalog_tree(), redone, !opened.meta.clean, is_new(&meta))?;
        if !opened.meta.clean {
            self.note_recovery(log_bytes, log_bytes);
        }
        load_policies(&engine);
        let shared = shared(self, engine, opened.path, false, Some(opened.lock));
        if self.background && shared.engine.check_poison().is_ok() {
            maintenance::start(&shared, self.writers);
        }
        Ok((Database::new(shared), stopped))
    }

    /// [`Builder::open_read_only`] on any volume.
    ///
    /// ```
    /// use duramen::{Database, Error, io::MemoryVolume};
    /// use std::sync::Arc;
    ///
    /// let volume = Arc::new(MemoryVolume::new());
    /// Database::builder().create_on(volume.clone(), "forest")?.close()?;
    /// let db = Database::builder().open_read_only_on(volume, "forest")?;
    /// assert!(matches!(db.begin_write(), Err(Error::ReadOnly)));
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Builder::open_read_only`].
    pub fn open_read_only_on(&self, volume: Arc<dyn Volume>, name: &str) -> Result<Database> {
        let opened = Opened::open(self, &volume, name, false)?;
        if opened.needs_recovery(volume, name)? {
            return Err(Error::NeedsRecovery { path: opened.path });
        }
        Ok(opened.into_reader(self, None))
    }
}

/// True if no checkpoint of the database has been taken yet.
fn is_new(meta: &Meta) -> bool {
    meta.redo == FIRST_LSN && meta.store_lsn == FIRST_LSN
}

/// The log of a database, for reading. For writing, the caller sets the shape.
pub(super) fn log_config(volume: Arc<dyn Volume>, name: &str, database: u128) -> LogConfig {
    LogConfig { volume, prefix: format!("{name}-log"), database, shape: LogShape::default() }
}

/// The start of the log of a closed database when it is opened for writing.
pub(super) fn next_epoch(meta: &Meta) -> LogPosition {
    LogPosition { lsn: meta.last, epoch: meta.epoch.saturating_add(1) }
}

/// The locked file of a database, before recovery.
pub(super) struct Opened {
    pub(super) path: PathBuf,
    pub(super) lock: Arc<dyn LockGuard>,
    pub(super) meta: Meta,
    pub(super) store: Arc<dyn PageStore>,
    slot: Arc<LogSlot>,
    pub(super) pool: Pool,
}

impl Opened {
    fn open(options: &Builder, volume: &Arc<dyn Volume>, name: &str, write: bool) -> Result<Opened> {
        options.check_bounds()?;
        let Locked { disk, guard } = volume.lock(name, write)?;
        let path = volume.path(name);
        let opened = store::open(disk, &path)?;
        Opened::of(options, path, guard.into(), opened)
    }

    pub(super) fn of(
        options: &Builder,
        path: PathBuf,
        lock: Arc<dyn LockGuard>,
        (store, meta): (Arc<dyn PageStore>, Meta),
    ) -> Result<Opened> {
        if options.direct_io {
            store.file().use_direct_io()?;
        }
        if let Some(compression) = store.compression() {
            compression.set_threads(options.compression_threads);
        }
        let frames = options.frames(meta.page_size);
        // A store that misses a part of its page table reads twice for a page.
        let memory = frames * meta.page_size / CACHE_PER_STORE_MEMORY;
        store.set_up(StoreSetup { persist_table: options.persist_table, memory });
        let slot = Arc::new(LogSlot::default());
        let backing = Backing { store: store.clone(), watermark: slot.clone() };
        let pool = Pool::new(frames, backing).keeping_inner(options.resident_inner);
        Ok(Opened { path, lock, meta, store, slot, pool })
    }

    /// True if the database was not closed. Reads no page of a database that needs a recovery: what the store finds
    /// before it knows the log may be wrong.
    ///
    /// # Errors
    /// [`Error::CorruptMeta`] if the database has lost its catalog.
    pub(in crate::db) fn needs_recovery(&self, volume: Arc<dyn Volume>, name: &str) -> Result<bool> {
        let config = log_config(volume, name, self.meta.database_id);
        if !self.meta.clean || log_continues(&config, self.store.file(), &self.meta)? {
            return Ok(true);
        }
        self.store.use_closed_state();
        match self.pool.exists(CATALOG_ROOT) || self.store.damage().is_some() {
            true => Ok(false),
            // There is no catalog if the creation was interrupted before it.
            false if is_new(&self.meta) => Ok(true),
            false => Err(catalog_is_gone()),
        }
    }

    /// Removes the log segments that an earlier process has left of a closed database, durably.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the name belongs to another file by now.
    pub(in crate::db) fn remove_log(&self, volume: Arc<dyn Volume>, name: &str) -> Result<()> {
        let config = log_config(volume, name, self.meta.database_id);
        let stale = self.stale(&config, name)?;
        if stale.is_empty() {
            return Ok(());
        }
        // The superblock that needs no log may be in the file cache only.
        self.store.file().make_superblock_durable(false)?;
        Log::remove_stale(&config, &stale)
    }

    /// The segments of earlier logs with the name of this closed database. They are listed before the lock is checked:
    /// if a program without a lock moves this file away, a later database with the same name has a log of its own,
    /// which is not among these segments.
    fn stale(&self, config: &LogConfig, name: &str) -> Result<Vec<u32>> {
        let stale = Log::stale(config)?;
        match self.lock.is_of(name)? {
            true => Ok(stale),
            false => Err(Error::NotFound { path: self.path.clone() }),
        }
    }

    /// Creates the log of a closed database, and writes `position`, where the log begins, to the superblock. If nothing
    /// can be written, the inner result is the cause, and the data can be read.
    fn create_log(&self, config: LogConfig, name: &str, position: Meta) -> Result<Result<Log>> {
        self.store.use_closed_state();
        let stale = self.stale(&config, name)?;
        if let Err(cause) = self.check_writable() {
            return Ok(Err(cause));
        }
        // Creating the log removes the segments of an earlier log, which the other superblock may still need. So the
        // superblocks are made durable first.
        let durable = self.store.file().make_superblock_durable(false);
        let log = match durable.and_then(|()| Log::create_after(config, position.epoch, position.redo, &stale)) {
            Err(cause @ Error::Full { .. }) => return Ok(Err(cause)),
            created => created?,
        };
        self.store.file().write_meta(position)?;
        Ok(Ok(log))
    }

    /// The ids of all possible allocation maps.
    fn possible_maps(&self) -> impl Iterator<Item = PageId> {
        (0..self.meta.high_water).step_by(ids_per_map(self.meta.page_size) as usize).map(PageId)
    }

    fn maps(&self) -> impl Iterator<Item = PageId> {
        self.possible_maps().filter(|map| self.pool.exists(*map))
    }

    /// Adds the number of allocation maps that the log has created to that of the last checkpoint. If redo found no
    /// content for a map that the log names, returns this map and the error.
    pub(super) fn note_maps(&mut self, redone: &RedoResult) -> Option<(PageId, Error)> {
        self.meta.maps = self.meta.maps.saturating_add(redone.new_maps);
        self.meta.high_water = self.meta.high_water.max(redone.high);
        redone.lost_map.map(|map| (map, map_damaged(map, "the log names it, and it has no content")))
    }

    /// Returns an error if the store has fewer allocation maps than before, with the first page that may be the missing
    /// map. If a page store does not know its pages, it cannot tell a page that it never had from a page that reads as
    /// zeros.
    fn missing_map(&self) -> Option<(PageId, Error)> {
        if self.maps().count() >= self.meta.maps as usize {
            return None;
        }
        let first = self.possible_maps().find(|map| !self.pool.exists(*map)).unwrap_or(PageId(0));
        Some((first, map_damaged(first, &format!("it has no content, and there were {} maps", self.meta.maps))))
    }

    /// Fails if it is unknown which places and pages are free. Then nothing must be written.
    fn check_writable(&self) -> Result<()> {
        self.store.damage().map_or(Ok(()), Err)?;
        self.damaged_maps()?.into_iter().next().map_or(Ok(()), |(_, damaged)| Err(damaged))
    }

    /// The damaged allocation maps and their errors.
    pub(super) fn damaged_maps(&self) -> Result<Vec<(PageId, Error)>> {
        let mut damaged: Vec<(PageId, Error)> = self.missing_map().into_iter().collect();
        for map in self.maps() {
            match self.pool.read(map) {
                Err(Error::Corrupt { page, what }) => damaged.push((page, map_damaged(page, &what))),
                read => drop(read?),
            }
        }
        Ok(damaged)
    }

    /// A database for reading only. `stopped` is the error for writers, if the database was opened for writing. Only
    /// `verify` uses the allocation maps, so a damaged map does not prevent reading.
    pub(super) fn into_reader(self, options: &Builder, stopped: Option<&Error>) -> Database {
        let maps: Vec<PageId> = self.maps().collect();
        let Opened { path, lock, meta, store, slot, pool } = self;
        let ids = PageIds::new(meta.page_size, meta.high_water.max(1));
        let engine = Engine::new(pool, Some(store), slot, ids, meta.last);
        maps.into_iter().for_each(|map| engine.map_created(map));
        if let Some(cause) = stopped {
            engine.poison(cause);
        }
        Database::new(shared(options, engine, path, stopped.is_none(), Some(lock)))
    }
}

/// Tells the store how the pages of each table are compressed.
fn load_policies(engine: &Engine) {
    let mut policies = Vec::new();
    match each_table(engine, Lsn::MAX, |_, entry| policies.push((entry.tree.table, entry.policy))) {
        Ok(()) => engine.replace_policies(policies),
        Err(error) => {
            tracing::warn!(%error, "the catalog is damaged: pages of some tables are written without compression");
        }
    }
}

fn shared(
    options: &Builder,
    engine: Engine,
    path: PathBuf,
    read_only: bool,
    lock: Option<Arc<dyn LockGuard>>,
) -> Arc<Shared> {
    engine.limit_payload(options.max_payload);
    let bounds = options.redo_bounds(engine.page_size());
    let engine = engine.bounded(bounds);
    let engine = match options.superseded_bytes {
        Some(bytes) => engine.with_most_superseded(bytes),
        None => engine,
    };
    engine.keep_spare_segments();
    Arc::new(Shared {
        engine,
        path,
        durability: options.durability,
        flush_interval: options.flush_interval,
        version_memory: options.version_memory,
        read_only,
        opener: Opener::this(),
        worker: Worker::default(),
        interval_syncs: IntervalSyncs::default(),
        compaction: Default::default(),
        kept_tables: Default::default(),
        _lock: lock,
    })
}

/// True if there is a log that begins where this closed database ends: a newer superblock was damaged or not completed,
/// and the log has the later commits. Segments of earlier logs do not count.
///
/// # Errors
/// That of [`check_log_belongs`].
fn log_continues(config: &LogConfig, file: &DatabaseFile, meta: &Meta) -> Result<bool> {
    let end = next_epoch(meta);
    let mut reader = match log::read(config.clone(), end, end.lsn) {
        Err(Error::MissingLog { .. }) => return Ok(false),
        read => match read? {
            Some(reader) => reader,
            None => return Ok(false),
        },
    };
    check_log_belongs(config, file, meta, &mut reader)?;
    Ok(true)
}

/// Fails if the log has a commit after the end of this closed database, but no superblock says that the log is needed.
/// `reader` begins at this end. The engine writes a superblock that says that the log is needed before it writes the
/// first commit. If the log has a commit but the file has no such superblock, there are three possible causes. The
/// superblock is damaged, or a recovery has overwritten the damaged superblock: then this returns no error. The device
/// has lost the write of the superblock. Or a user has replaced the file with an earlier copy: then the user must
/// decide whether to keep the later commits. Applying the log to the copy is not safe, because pages that were written
/// outside the log are missing from the copy.
pub(super) fn check_log_belongs(
    config: &LogConfig,
    file: &DatabaseFile,
    meta: &Meta,
    reader: &mut LogReader,
) -> Result<()> {
    if meta.log_follows || file.damaged_superblock().is_some() || reader.next()?.is_none() {
        return Ok(());
    }
    let (path, log) = (config.database_path(), config.volume.path(&config.prefix));
    let what = format!(
        "the log has commits that {} does not have: the file was replaced by an earlier copy, or the device has lost a \
         write. To use the copy without these commits, move {}.* to another folder",
        path.display(),
        log.display()
    );
    Err(Error::CorruptLog { lsn: meta.last, what })
}

/// Applies the log of a database that was not closed, and starts the next epoch of it. If there is no space for that,
/// the first result is the error, and the recovered data can be read. `progress` gets the bytes of the log that were
/// applied, and those that there are.
fn recover(
    config: LogConfig,
    opened: &Opened,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(Result<Log>, RedoResult)> {
    let Opened { pool, store, meta, .. } = opened;
    let from = LogPosition { lsn: meta.redo, epoch: meta.epoch };
    let mut ahead = log::read(config.clone(), from, meta.last)?.ok_or_else(|| config.missing())?;
    // A clean superblock does not have the commits of the log.
    store.file().make_superblock_durable(store.file().meta().clean)?;
    let freed = Redo::first_pass(&**store, meta.store_lsn, meta.high_water, &mut ahead)?;
    let (log_bytes, end) = (ahead.bytes(), ahead.end_state().lsn);
    let mut reader = log::read(config.clone(), from, meta.last)?.ok_or_else(|| config.missing())?;
    // The log is resumed before redo, which may evict pages: the end of the log may be in the file cache only.
    let resumed = match Log::resume(ahead) {
        Err(cause @ Error::Full { .. }) => Err(cause),
        resumed => Ok(resumed?),
    };
    // This must follow `resume`, which has read the end of the log a second time: the store writes the end to the file,
    // and cannot correct it later.
    store.note_log_end(end)?;
    let redo = Redo::new(pool, &**store, meta.store_lsn, meta.high_water).without(freed);
    let redone = redo.run(&mut reader, &mut |done| progress(done, log_bytes))?;
    if redone.end != end {
        // `resume` has checked the end that the first pass found, so a read of the second pass was wrong. Both
        // superblocks still refer to the old redo point, so the next recovery reads the same log again.
        let what = format!("the first read ended at LSN {end}, the second read ended here: the device is not reliable");
        return Err(Error::CorruptLog { lsn: redone.end, what });
    }
    tracing::info!(end = %redone.end, applied = redone.applied, skipped = redone.skipped, "recovered");
    Ok((resumed, redone))
}

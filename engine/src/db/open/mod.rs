//! Opens a database, and recovers it if it was not closed.

pub(super) mod create;
pub(super) mod options;

use super::catalog::catalog_tree;
use super::shared::{Shared, Worker};
use super::{Database, maintenance};
use crate::base::{Error, PageId, Result};
use crate::io::{CountedVolume, FileVolume, LockGuard, Locked, Volume};
use crate::log::{self, Log, LogConfig, LogPosition, LogShape};
use crate::store::{self, Backing, Meta, PageStore, Pool};
use crate::txn::{CATALOG_ROOT, Engine, LogSlot, LogicalTransaction, PageIds, Redo, Redone, ids_per_map, map_damaged};
use create::FIRST_LSN;
use options::Builder;
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The folder and the name of a file that should be there.
pub(crate) fn existing(path: &Path) -> Result<(Arc<dyn Volume>, String)> {
    match FileVolume::for_file(path) {
        // Without the folder there is no database in it.
        Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
            Err(Error::NotFound { path: path.to_owned() })
        }
        found => found.map(|(volume, name)| -> (Arc<dyn Volume>, String) { (Arc::new(volume), name) }),
    }
}

pub(crate) fn in_memory(options: &Builder) -> Result<Database> {
    let page_size = options.checked_page_size(true)?;
    let pool = Pool::in_memory(page_size);
    let mut ids = PageIds::new(page_size, 1);
    let root = ids.take()?;
    debug_assert_eq!(root, CATALOG_ROOT);
    let engine = Engine::new(pool, None, Arc::default(), ids, FIRST_LSN);
    engine.create_catalog(&catalog_tree())?;
    let shared = shared(options, engine, "(in memory)".into(), false, None);
    if options.background {
        maintenance::start(&shared);
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
    /// As [`Builder::open`].
    pub fn open_on(&self, volume: Arc<dyn Volume>, name: &str) -> Result<Database> {
        let opened = Opened::open(self, &volume, name, true)?;
        self.start(opened, volume, name).map(|(db, _)| db)
    }

    /// Makes an open file a database to write, and says why nothing can be written where that is so.
    pub(super) fn start(
        &self,
        mut opened: Opened,
        volume: Arc<dyn Volume>,
        name: &str,
    ) -> Result<(Database, Option<Error>)> {
        let volume = Arc::new(CountedVolume::new(volume, opened.store.file().write_counts()));
        let config = LogConfig { shape: self.log_shape, ..log_config(volume, name, &opened.meta) };
        let meta = opened.meta;
        let LogPosition { epoch, .. } = next_epoch(&meta);
        let position = Meta { clean: false, epoch, redo: meta.last, table: meta.last, ..meta };
        // A later superblock has been damaged, or was never finished: the log tells what came after this one.
        let goes_on = meta.clean && goes_on(&config, next_epoch(&meta))?;
        if goes_on {
            opened.meta = position;
        }
        let (log, redone) = if opened.meta.clean {
            // In this order: if this database's file is removed, a database that gets its name later has a log of its own,
            // which is not among these segments.
            let stale = Log::stale(&config)?;
            if !opened.lock.is_of(name)? {
                return Err(Error::NotFound { path: opened.path });
            }
            if let Err(cause) = opened.check_writable() {
                return Ok((opened.into_reader(self, Some(&cause)), Some(cause)));
            }
            // Creating the log removes what an earlier one has left, which the other superblock may still ask for.
            let log =
                match opened.store.file().secure().and_then(|()| Log::create_after(config, epoch, meta.last, &stale)) {
                    Err(cause @ Error::Full { .. }) => {
                        return Ok((opened.into_reader(self, Some(&cause)), Some(cause)));
                    }
                    created => created?,
                };
            opened.store.file().write_meta(position)?;
            (Ok(log), Redone::at(meta.last))
        } else {
            opened.store.damage().map_or(Ok(()), Err)?;
            let recovered = recover(config, &opened.pool, &*opened.store, &opened.meta)?;
            if goes_on && recovered.0.is_ok() {
                // Only here: the log, which it asks for, may have been in the system's cache alone.
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
        // Beyond the last map that anything is known of all ids are free, however many the superblock says there are.
        let known = opened.store.ids_end().max(given).div_ceil(ids_per_map(meta.page_size));
        let high = meta.high_water.min(known.saturating_mul(ids_per_map(meta.page_size))).max(given);
        let engine =
            Engine::new(opened.pool, Some(opened.store), opened.slot, PageIds::new(meta.page_size, high), redone.end);
        if let Some(cause) = &stopped {
            engine.poison(cause);
        }
        engine.withhold(redone.end, redone.freed.iter());
        engine.load_maps(high, &reserved, &redone.freed)?;
        engine.finish_opening(&catalog_tree(), redone, !opened.meta.clean)?;
        let shared = shared(self, engine, opened.path, false, Some(opened.lock));
        if self.background && shared.engine.check_poison().is_ok() {
            maintenance::start(&shared);
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
    /// As [`Builder::open_read_only`].
    pub fn open_read_only_on(&self, volume: Arc<dyn Volume>, name: &str) -> Result<Database> {
        let opened = Opened::open(self, &volume, name, false)?;
        let config = log_config(volume, name, &opened.meta);
        // A log that goes on from a clean superblock means that a later one is damaged.
        // Nor is there a catalog where the creation was cut off right before it.
        let unfinished = !opened.pool.exists(CATALOG_ROOT) && opened.store.damage().is_none();
        if !opened.meta.clean || unfinished || goes_on(&config, next_epoch(&opened.meta))? {
            return Err(Error::NeedsRecovery { path: opened.path });
        }
        Ok(opened.into_reader(self, None))
    }
}

/// The log of a database. The shape is for a log that is only read.
pub(super) fn log_config(volume: Arc<dyn Volume>, name: &str, meta: &Meta) -> LogConfig {
    LogConfig { volume, prefix: format!("{name}-log"), database: meta.database_id, shape: LogShape::default() }
}

/// Where the log of a clean database begins when it is opened to write.
pub(super) fn next_epoch(meta: &Meta) -> LogPosition {
    LogPosition { lsn: meta.last, epoch: meta.epoch.saturating_add(1) }
}

/// A database's file, locked, before anything has been done with it.
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
        let Locked { disk, guard } = volume.lock(name, write)?;
        let path = volume.path(name);
        let opened = store::open(disk, &path)?;
        Ok(Opened::of(options, path, guard.into(), opened))
    }

    pub(super) fn of(
        options: &Builder,
        path: PathBuf,
        lock: Arc<dyn LockGuard>,
        (store, meta): (Arc<dyn PageStore>, Meta),
    ) -> Opened {
        if options.persist_table {
            store.persist_table();
        }
        let slot = Arc::new(LogSlot::default());
        let backing = Backing { store: store.clone(), watermark: slot.clone() };
        let pool = Pool::new(options.frames(meta.page_size), backing).keeping_inner(options.resident_inner);
        Opened { path, lock, meta, store, slot, pool }
    }

    fn maps(&self) -> impl Iterator<Item = PageId> {
        let maps = (0..self.meta.high_water).step_by(ids_per_map(self.meta.page_size) as usize).map(PageId);
        maps.filter(|map| self.pool.exists(*map))
    }

    /// Fails where it is not known which places and pages are free: nothing must be written then.
    fn check_writable(&self) -> Result<()> {
        self.store.damage().map_or(Ok(()), Err)?;
        self.damaged_maps()?.into_iter().next().map_or(Ok(()), |(_, damaged)| Err(damaged))
    }

    /// The allocation maps that are damaged, and what is wrong with each.
    pub(super) fn damaged_maps(&self) -> Result<Vec<(PageId, Error)>> {
        let mut damaged = Vec::new();
        for map in self.maps() {
            match self.pool.read(map) {
                Err(Error::Corrupt { page, what }) => damaged.push((page, map_damaged(page, &what))),
                read => drop(read?),
            }
        }
        Ok(damaged)
    }

    /// A database for reading alone. `stopped`: it was opened for writing, and this is why nobody can write. Of the
    /// allocation maps only the check has need, so a damaged one keeps nobody out.
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

fn shared(
    options: &Builder,
    engine: Engine,
    path: PathBuf,
    read_only: bool,
    lock: Option<Arc<dyn LockGuard>>,
) -> Arc<Shared> {
    engine.limit_payload(options.most_payload);
    Arc::new(Shared {
        engine,
        path,
        durability: options.durability,
        flush_interval: options.flush_interval,
        checkpoint_bytes: options.checkpoint_bytes,
        version_memory: options.version_memory,
        read_only,
        worker: Worker::default(),
        _lock: lock,
    })
}

/// True if there is a log that begins where this clean database ends; what an earlier one has left does not count.
fn goes_on(config: &LogConfig, end: LogPosition) -> Result<bool> {
    match log::read(config.clone(), end, end.lsn) {
        Err(Error::MissingLog { .. }) => Ok(false),
        read => Ok(read?.is_some()),
    }
}

/// There should be a log, and is none.
pub(super) fn missing_log(config: &LogConfig) -> Error {
    Error::MissingLog {
        path: config.volume.path(config.prefix.trim_end_matches("-log")),
        log: config.volume.path(&config.prefix),
    }
}

/// Redoes the log of a database that was not closed, and starts the next epoch of it. Where there is no room for that, the
/// error is in the place of the log: what was redone can be read.
fn recover(config: LogConfig, pool: &Pool, store: &dyn PageStore, meta: &Meta) -> Result<(Result<Log>, Redone)> {
    let from = LogPosition { lsn: meta.redo, epoch: meta.epoch };
    let mut ahead = log::read(config.clone(), from, meta.last)?.ok_or_else(|| missing_log(&config))?;
    store.file().secure()?;
    let freed = Redo::first_pass(store, meta.table, &mut ahead)?;
    let mut reader = log::read(config.clone(), from, meta.last)?.ok_or_else(|| missing_log(&config))?;
    // Before redo, which may evict pages: the end of the log may be in the system's cache alone.
    let resumed = match Log::resume(ahead) {
        Err(cause @ Error::Full { .. }) => Err(cause),
        resumed => Ok(resumed?),
    };
    let redone = Redo::new(pool, store, meta.table, meta.high_water).without(freed).run(&mut reader)?;
    tracing::info!(end = %redone.end, applied = redone.applied, skipped = redone.skipped, "recovered");
    Ok((resumed, redone))
}

//! Creates databases. The file is written and locked under a temporary name and renamed when it is complete, so that a
//! crash leaves no incomplete database.
//!
//! The lock is held from the creation of the file until the database is closed. A file is removed only under its lock, so no
//! other process can have opened it.

use super::Opened;
use super::options::Builder;
use crate::base::{Error, Lsn, Result};
use crate::db::Database;
use crate::io::{FileVolume, LockGuard, Locked, OpenMode, Volume};
use crate::store::{self, Meta, StoreOptions, WriteTotals};
use std::path::Path;
use std::sync::Arc;

/// The first LSN of a new database. LSN 0 means "never".
pub(super) const FIRST_LSN: Lsn = Lsn(1);

impl Builder {
    /// Creates a database in a new file. An empty file is replaced by the new one, which gets its permissions.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("forest.duramen");
    /// use duramen::Database;
    ///
    /// let options = Database::builder().page_size(16 << 10);
    /// options.create(&path)?.close()?;
    /// assert_eq!(Database::open(&path)?.stats().page_size, 16384);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Exists`] if the file exists and is not empty, [`Error::Locked`] if another process creates a database there.
    pub fn create(&self, path: impl AsRef<Path>) -> Result<Database> {
        let (volume, name) = FileVolume::for_file(path.as_ref())?;
        self.create_on(Arc::new(volume), &name)
    }

    /// [`Builder::create`] on any volume.
    ///
    /// ```
    /// use duramen::{Database, Error, io::MemoryVolume};
    /// use std::sync::Arc;
    ///
    /// let volume = Arc::new(MemoryVolume::new());
    /// let db = Database::builder().create_on(volume.clone(), "forest")?;
    /// drop(db);
    /// let again = Database::builder().create_on(volume, "forest");
    /// assert!(matches!(again, Err(Error::Exists { .. })));
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Builder::create`].
    pub fn create_on(&self, volume: Arc<dyn Volume>, name: &str) -> Result<Database> {
        let mut creation = Creation::begin(self, volume, name)?;
        creation.place()?;
        let db = creation.open(self)?;
        creation.done = true;
        Ok(db)
    }

    /// Opens a database for reading and writing. Creates it if there is no file, or an empty one.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("forest.duramen");
    /// # const TREES: duramen::TableDef<&str, u64> = duramen::TableDef::new("trees");
    /// let options = duramen::Database::builder().page_size(16 << 10);
    /// for years in [700, 701] {
    ///     let db = options.open_or_create(&path)?; // creates it, then opens it
    ///     let tx = db.begin_write()?;
    ///     tx.open_table(TREES)?.put("oak", years)?;
    ///     tx.commit()?;
    ///     db.close()?;
    /// }
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Builder::open`], except [`Error::NotFound`].
    pub fn open_or_create(&self, path: impl AsRef<Path>) -> Result<Database> {
        let (volume, name) = FileVolume::for_file(path.as_ref())?;
        self.open_or_create_on(Arc::new(volume), &name)
    }

    /// [`Builder::open_or_create`] on any volume.
    ///
    /// ```
    /// use duramen::{Database, io::MemoryVolume};
    /// use std::sync::Arc;
    ///
    /// let volume = Arc::new(MemoryVolume::new());
    /// Database::builder().open_or_create_on(volume.clone(), "forest")?.close()?;
    /// assert!(Database::builder().open_on(volume, "forest").is_ok());
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Builder::open_or_create`].
    pub fn open_or_create_on(&self, volume: Arc<dyn Volume>, name: &str) -> Result<Database> {
        loop {
            match self.open_on(volume.clone(), name) {
                Err(Error::NotFound { .. }) => {}
                Err(Error::NotADatabase { .. }) if len(&*volume, name)?.is_none_or(|len| len == 0) => {}
                opened => return opened,
            }
            match self.create_on(volume.clone(), name) {
                // Another process has created it meanwhile.
                Err(Error::Exists { .. }) => {}
                created => return created,
            }
        }
    }

    /// Begins to create a database whose file gets its name when [`NewDatabase::finish`] is called. If the `NewDatabase` is
    /// dropped before, or the process ends, there is no database. Use it if a half-filled database is useless.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("forest.duramen");
    /// # const TREES: duramen::TableDef<&str, u64> = duramen::TableDef::new("trees");
    /// use duramen::{Database, Error};
    ///
    /// let new = Database::builder().begin_create(&path)?;
    /// let tx = new.database().begin_write()?;
    /// tx.open_table(TREES)?.put("oak", 700)?;
    /// tx.commit()?;
    /// assert!(matches!(Database::open(&path), Err(Error::NotFound { .. })));
    /// new.finish()?;
    /// assert_eq!(Database::open(&path)?.begin_read()?.open_table(TREES)?.len(), 1);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Builder::create`].
    pub fn begin_create(&self, path: impl AsRef<Path>) -> Result<NewDatabase> {
        let (volume, name) = FileVolume::for_file(path.as_ref())?;
        self.begin_create_on(Arc::new(volume), &name)
    }

    /// [`Builder::begin_create`] on any volume.
    ///
    /// ```
    /// use duramen::{Database, io::MemoryVolume};
    /// use std::sync::Arc;
    ///
    /// let volume = Arc::new(MemoryVolume::new());
    /// let new = Database::builder().begin_create_on(volume.clone(), "forest")?;
    /// drop(new);
    /// assert!(Database::builder().open_on(volume, "forest").is_err());
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Builder::create`].
    pub fn begin_create_on(&self, volume: Arc<dyn Volume>, name: &str) -> Result<NewDatabase> {
        let creation = Creation::begin(self, volume, name)?;
        Ok(NewDatabase { db: creation.open(self)?, creation })
    }
}

/// A database that is being created; see [`Builder::begin_create`].
///
/// ```
/// use duramen::{Database, io::MemoryVolume};
/// use std::sync::Arc;
///
/// let volume = Arc::new(MemoryVolume::new());
/// let new = Database::builder().begin_create_on(volume.clone(), "forest")?;
/// new.finish()?;
/// assert!(Database::builder().open_on(volume, "forest").is_ok());
/// # Ok::<(), duramen::Error>(())
/// ```
#[derive(Debug)]
pub struct NewDatabase {
    // The order matters: the database is closed before its file is removed.
    db: Database,
    creation: Creation,
}

impl NewDatabase {
    /// The database. Fill it before [`NewDatabase::finish`].
    ///
    /// ```
    /// let volume = std::sync::Arc::new(duramen::io::MemoryVolume::new());
    /// let new = duramen::Database::builder().begin_create_on(volume, "forest")?;
    /// assert!(new.database().begin_read()?.tables()?.is_empty());
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn database(&self) -> &Database {
        &self.db
    }

    /// Closes the database and gives the file its name. Then the database is durable.
    ///
    /// ```
    /// let volume = std::sync::Arc::new(duramen::io::MemoryVolume::new());
    /// duramen::Database::builder().begin_create_on(volume.clone(), "forest")?.finish()?;
    /// let second = duramen::Database::builder().begin_create_on(volume, "forest");
    /// assert!(matches!(second, Err(duramen::Error::Exists { .. })));
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Exists`] if another file has got the name, [`Error::Locked`] if a clone of the database or a transaction is
    /// still open, and the errors of [`Database::close`]. After an error there is no new database.
    pub fn finish(self) -> Result<()> {
        let NewDatabase { db, mut creation } = self;
        db.close()?;
        if Arc::strong_count(&creation.lock) > 1 {
            return Err(Error::Locked { path: creation.volume.path(&creation.name) });
        }
        creation.place()?;
        creation.done = true;
        Ok(())
    }
}

/// The file of a database that is being created. Dropping it before it is complete removes the file.
#[derive(Debug)]
struct Creation {
    volume: Arc<dyn Volume>,
    /// The name of the database.
    name: String,
    /// The present name of the file.
    called: String,
    database_id: u128,
    lock: Arc<dyn LockGuard>,
    /// The empty file that it replaces.
    empty: Option<Locked>,
    /// Files that existed before and have names of its log.
    old: Vec<String>,
    done: bool,
}

impl Creation {
    /// Creates the file under a temporary name.
    fn begin(options: &Builder, volume: Arc<dyn Volume>, name: &str) -> Result<Creation> {
        let page_size = options.checked_page_size(false)? - options.store.trailer();
        let empty = empty_file(&*volume, name)?;
        remove_abandoned(&*volume, name)?;
        loop {
            let database_id = new_database_id();
            let called = unfinished_name(name, database_id);
            let made = volume.create_beside(&called, name).map_err(|error| match error {
                // An error names the path that the caller gave.
                Error::Io { action, source, .. } => Error::Io { action, path: volume.path(name), source },
                other => other,
            });
            drop(made?);
            let (disk, guard) = match volume.lock(&called, true) {
                Ok(Locked { disk, guard }) => (disk, guard),
                // Another creation may remove the file as abandoned before it is locked.
                Err(Error::Locked { .. } | Error::NotFound { .. }) => continue,
                Err(error) => {
                    let _ = volume.remove(&called);
                    return Err(error);
                }
            };
            let (name, lock, old) = (name.to_owned(), guard.into(), volume.list(&segments(name))?);
            let creation = Creation { volume, name, called, database_id, lock, empty, old, done: false };
            let meta = Meta {
                database_id,
                page_size,
                clean: true,
                epoch: 0,
                redo: FIRST_LSN,
                table: FIRST_LSN,
                last: FIRST_LSN,
                high_water: 1,
                life: WriteTotals::default(),
            };
            store::create(
                StoreOptions { kind: options.store, delta: options.delta },
                disk,
                &creation.volume.path(&creation.name),
                meta,
            )?;
            return Ok(creation);
        }
    }

    /// Gives the file its name, durably.
    fn place(&mut self) -> Result<()> {
        match &self.empty {
            Some(empty) if empty.guard.is_of(&self.name)? => {
                if empty.disk.size()? > 0 {
                    return Err(Error::Exists { path: self.volume.path(&self.name) });
                }
                self.volume.replace(&self.called, &self.name)?;
            }
            _ => self.volume.rename(&self.called, &self.name)?,
        }
        self.called.clone_from(&self.name);
        self.volume.sync()
    }

    /// Opens the file for writing.
    fn open(&self, options: &Builder) -> Result<Database> {
        let path = self.volume.path(&self.called);
        // Opened by its name, because errors contain the name.
        let opened = store::open(self.volume.open(&self.called, OpenMode::Write)?, &path)?;
        if opened.1.database_id != self.database_id {
            // A program without a lock has replaced the file.
            return Err(Error::Locked { path });
        }
        let opened = Opened::of(options, path, self.lock.clone(), opened);
        match options.start(opened, self.volume.clone(), &self.called)? {
            (db, None) => Ok(db),
            // A failed creation, most often without space, must not prevent another one.
            (_, Some(error)) => Err(error),
        }
    }

    /// Removes all files that were created. If a program without a lock has replaced the file, the new one stays.
    fn undo(&self) -> Result<()> {
        if !self.lock.is_of(&self.called)? {
            return Ok(());
        }
        remove_log(&*self.volume, &self.called, &self.old)?;
        if self.called == self.name && self.empty.is_some() {
            let disk = self.volume.open(&self.called, OpenMode::Write)?;
            disk.resize(0)?;
            disk.sync()?;
        } else {
            self.volume.remove(&self.called)?;
        }
        self.volume.sync()
    }
}

impl Drop for Creation {
    fn drop(&mut self) {
        if !self.done {
            // The caller returns the error that led here. The files that are left do no harm.
            let _ = self.undo();
        }
    }
}

/// The beginning of the names of the log segments of a database.
fn segments(name: &str) -> String {
    format!("{name}-log.")
}

/// Removes the log of a database, except the files in `keep`. The caller holds the lock of the database.
fn remove_log(volume: &dyn Volume, name: &str, keep: &[String]) -> Result<()> {
    let segments = volume.list(&segments(name))?;
    segments.iter().filter(|segment| !keep.contains(segment)).try_for_each(|segment| volume.remove(segment))
}

/// The length of a file; `None` if it does not exist.
fn len(volume: &dyn Volume, name: &str) -> Result<Option<u64>> {
    match volume.open(name, OpenMode::Read) {
        Err(Error::NotFound { .. }) => Ok(None),
        opened => opened?.size().map(Some),
    }
}

/// The empty file with this name, locked, so that no other process creates a database there; [`Error::Exists`] if it is not
/// empty. A file that is not empty is not locked, because another process may be opening it.
fn empty_file(volume: &dyn Volume, name: &str) -> Result<Option<Locked>> {
    let exists = || Error::Exists { path: volume.path(name) };
    match len(volume, name)? {
        None => return Ok(None),
        Some(0) => {}
        Some(_) => return Err(exists()),
    }
    match volume.lock(name, true) {
        Err(Error::NotFound { .. }) => Ok(None),
        Ok(locked) if locked.disk.size()? > 0 => Err(exists()),
        locked => locked.map(Some),
    }
}

/// The name of a database that is being created.
fn unfinished_name(name: &str, id: u128) -> String {
    format!("{name}.{id:032x}.new")
}

/// Removes the files of abandoned creations of this database. A creation that is not abandoned holds a lock.
fn remove_abandoned(volume: &dyn Volume, name: &str) -> Result<()> {
    for found in volume.list(&format!("{name}."))? {
        let id = found.get(name.len() + 1..).and_then(|rest| u128::from_str_radix(rest.get(..32)?, 16).ok());
        let Some(file) = id.map(|id| unfinished_name(name, id)).filter(|file| found.starts_with(file)) else {
            continue;
        };
        if found != file && !found.starts_with(&segments(&file)) {
            continue;
        }
        // The log is removed first, so that the file exists as long as a part of its log does, except after a power cut.
        match volume.lock(&file, true) {
            Ok(_held) => {
                remove_log(volume, &file, &[])?;
                volume.remove(&file)?;
            }
            Err(Error::NotFound { .. }) => remove_log(volume, &file, &[])?,
            Err(_) => {}
        }
    }
    Ok(())
}

/// A random id of 128 bits, from the time and the keys of the standard library's hasher, which come from the system's random
/// source.
fn new_database_id() -> u128 {
    use std::hash::{BuildHasher, RandomState};
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let half = || RandomState::new().hash_one((now.as_nanos(), std::process::id()));
    u128::from(half()) << 64 | u128::from(half())
}

//! Creates databases. The file is written and locked under a temporary name and renamed when it is complete, so that a
//! crash leaves no incomplete database.
//!
//! The lock is held from then until the database is closed. A file is removed only under its lock, so no other process
//! can have opened it.

use super::Opened;
use super::options::Builder;
use crate::base::{Error, Lsn, Result};
use crate::db::Database;
use crate::io::{FileVolume, LockGuard, Locked, OpenMode, Volume};
use crate::store::{self, Meta};
use std::path::Path;
use std::sync::Arc;

/// Where the LSNs of a new database begin: after "never".
pub(in crate::db) const FIRST_LSN: Lsn = Lsn(1);

impl Builder {
    /// Creates a database in a new file, or in an empty one, whose permissions it keeps (another file takes its name).
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
    /// [`Error::Exists`] if the file is there already and not empty, [`Error::Locked`] if somebody else makes a database
    /// of it.
    pub fn create(&self, path: impl AsRef<Path>) -> Result<Database> {
        let (volume, name) = FileVolume::for_file(path.as_ref())?;
        self.create_on(Arc::new(volume), &name)
    }

    /// [`Builder::create`] on any volume: the same on a file system and on a simulated device.
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

    /// Opens a database for reading and writing, or creates it where there is none, or an empty file.
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
    /// As [`Builder::open`], but for [`Error::NotFound`].
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
                // Somebody else was faster.
                Err(Error::Exists { .. }) => {}
                created => return created,
            }
        }
    }

    /// Begins to create a database that is there when it is finished, and not before: in the end its file gets its name.
    /// If it is dropped before, or the process dies, there is none. For databases that are of no use by half.
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
    /// The database, to be filled.
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

    /// Closes the database and gives it its name; it is durable when this returns.
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
    /// [`Error::Exists`] if something else has come to have the name, [`Error::Locked`] while clones of the database or
    /// transactions of it are left, and what closing meets; there is no new database then.
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

/// A file that shall be a database, and is removed when dropped before that is done.
#[derive(Debug)]
struct Creation {
    volume: Arc<dyn Volume>,
    /// What was asked for.
    name: String,
    /// What it is called.
    called: String,
    database_id: u128,
    lock: Arc<dyn LockGuard>,
    /// The empty file whose place it takes.
    empty: Option<Locked>,
    /// Files that are named like its log, and were there before.
    old: Vec<String>,
    done: bool,
}

impl Creation {
    /// Makes the file, under a name of its own.
    fn begin(options: &Builder, volume: Arc<dyn Volume>, name: &str) -> Result<Creation> {
        let page_size = options.checked_page_size(false)?;
        let empty = empty_file(&*volume, name)?;
        remove_abandoned(&*volume, name)?;
        loop {
            let database_id = new_database_id();
            let called = unfinished_name(name, database_id);
            let made = volume.create_beside(&called, name).map_err(|error| match error {
                // Of the name that was asked for something can be known.
                Error::Io { action, source, .. } => Error::Io { action, path: volume.path(name), source },
                other => other,
            });
            drop(made?);
            let (disk, guard) = match volume.lock(&called, true) {
                Ok(Locked { disk, guard }) => (disk, guard),
                // Another creation takes it for abandoned and removes it.
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
            };
            store::create(options.store, disk, &creation.volume.path(&creation.name), meta)?;
            return Ok(creation);
        }
    }

    /// Gives the file its name, for good.
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

    /// Opens it, to be written.
    fn open(&self, options: &Builder) -> Result<Database> {
        let path = self.volume.path(&self.called);
        // By its name, which errors then tell.
        let opened = store::open(self.volume.open(&self.called, OpenMode::Write)?, &path)?;
        if opened.1.database_id != self.database_id {
            // Somebody who asks for no lock has removed it, and there is another one.
            return Err(Error::Locked { path });
        }
        let opened = Opened::of(options, path, self.lock.clone(), opened);
        match options.start(opened, self.volume.clone(), &self.called)? {
            (db, None) => Ok(db),
            // What can hold nothing, most often for want of room, shall not stand in the way of another try.
            (_, Some(error)) => Err(error),
        }
    }

    /// Leaves things as they were. What was removed meanwhile by somebody who asks for no lock has another's place.
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
            // The failure that led here is the one to tell; what is left is in nobody's way.
            let _ = self.undo();
        }
    }
}

/// What the names of a database's log segments begin with.
fn segments(name: &str) -> String {
    format!("{name}-log.")
}

/// Removes the log of a database whose lock the caller holds, but not what is listed in `keep`.
fn remove_log(volume: &dyn Volume, name: &str, keep: &[String]) -> Result<()> {
    let segments = volume.list(&segments(name))?;
    segments.iter().filter(|segment| !keep.contains(segment)).try_for_each(|segment| volume.remove(segment))
}

/// The length of a file; `None` where there is none.
fn len(volume: &dyn Volume, name: &str) -> Result<Option<u64>> {
    match volume.open(name, OpenMode::Read) {
        Err(Error::NotFound { .. }) => Ok(None),
        opened => opened?.size().map(Some),
    }
}

/// The empty file that has the name, locked, so that nobody else makes a database of it; [`Error::Exists`] where it is not
/// empty. The lock of a database is not asked for, which others may want at this moment.
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

/// Removes what creations of this database have left that never came to their end. Those still at work hold a lock.
fn remove_abandoned(volume: &dyn Volume, name: &str) -> Result<()> {
    for found in volume.list(&format!("{name}."))? {
        let id = found.get(name.len() + 1..).and_then(|rest| u128::from_str_radix(rest.get(..32)?, 16).ok());
        let Some(file) = id.map(|id| unfinished_name(name, id)).filter(|file| found.starts_with(file)) else {
            continue;
        };
        if found != file && !found.starts_with(&segments(&file)) {
            continue;
        }
        // The log is removed first: the file is there as long as any of it is, but for a power cut.
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

/// An id that no other database has: 128 bits from the system's random source, by way of the standard library's hash
/// keys, and the time.
fn new_database_id() -> u128 {
    use std::hash::{BuildHasher, RandomState};
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let half = || RandomState::new().hash_one((now.as_nanos(), std::process::id()));
    u128::from(half()) << 64 | u128::from(half())
}

//! The files of a database that is being created. The file is written and locked under a temporary name and renamed
//! when it is complete, so that a crash leaves no incomplete database.
//!
//! The lock is held from the creation of the file until the database is closed. A file is removed only under its lock,
//! so no other process can have opened it.

use super::options::Builder;
use super::{Opened, log_config};
use crate::base::{Error, Lsn, Result};
use crate::db::Database;
use crate::io::{Disk, LockGuard, Locked, OpenMode, Volume};
use crate::log::Log;
use crate::store::{self, Meta, StoreOptions, WriteTotals};
use std::sync::Arc;

/// The first LSN of a new database. LSN 0 means "never".
pub(super) const FIRST_LSN: Lsn = Lsn(1);

/// The file of a database that is being created. Dropping it before it is complete removes the file.
#[derive(Debug)]
pub(in crate::db) struct Creation {
    volume: Arc<dyn Volume>,
    /// The name of the database.
    name: String,
    /// The current name of the file.
    current_name: String,
    database_id: u128,
    /// The locked file, opened by its first name.
    disk: Arc<dyn Disk>,
    lock: Arc<dyn LockGuard>,
    /// The empty file that it replaces.
    empty: Option<Locked>,
    /// The empty block device that the database is made in. It has its name from the beginning.
    device: Option<Arc<dyn Disk>>,
    done: bool,
}

impl Creation {
    /// Creates the file under a temporary name. There must be no database of that name.
    pub(super) fn begin(options: &Builder, volume: Arc<dyn Volume>, name: &str) -> Result<Creation> {
        options.check_bounds()?;
        options.checked_page_size(false)?;
        let empty = empty_file(&*volume, name)?;
        remove_abandoned(&*volume, name, None)?;
        Creation::make(options, volume, name, empty)
    }

    /// Creates the file, under a temporary name, beside the database that it will replace. `lock` is the exclusive lock
    /// of that database. The caller holds it until the replacement.
    pub(in crate::db) fn beside(
        options: &Builder,
        volume: Arc<dyn Volume>,
        name: &str,
        lock: &dyn LockGuard,
    ) -> Result<Creation> {
        options.checked_page_size(false)?;
        if volume.open(name, OpenMode::Read)?.capacity().is_some() {
            return Err(Error::Option {
                option: "database to convert",
                value: format!("{}", volume.path(name).display()),
                expected: "a file: a block device has no space for a second database; copy the entries to a new one"
                    .to_owned(),
            });
        }
        remove_abandoned(&*volume, name, Some(lock))?;
        Creation::make(options, volume, name, None)
    }

    /// An error of a full device, with the name of the database: the caller does not know the temporary name.
    pub(in crate::db) fn named(error: Error, volume: &dyn Volume, name: &str) -> Error {
        match error {
            Error::Full { .. } => Error::Full { path: volume.path(name) },
            other => other,
        }
    }

    fn make(options: &Builder, volume: Arc<dyn Volume>, name: &str, mut empty: Option<Locked>) -> Result<Creation> {
        let kind = options.store.unwrap_or_default();
        let page_size = options.checked_page_size(false)? - kind.trailer();
        loop {
            let database_id = new_database_id();
            let (current_name, Locked { disk, guard }) = match empty.take_if(|empty| empty.disk.capacity().is_some()) {
                Some(device) => (name.to_owned(), device),
                None => match new_file(&*volume, name, database_id)? {
                    Some(new) => new,
                    None => continue,
                },
            };
            let device = disk.capacity().map(|_| disk.clone());
            let (name, lock) = (name.to_owned(), guard.into());
            let locked = disk.clone();
            let creation =
                Creation { volume, name, current_name, database_id, disk: locked, lock, empty, device, done: false };
            let meta = Meta {
                database_id,
                page_size,
                clean: true,
                log_follows: false,
                epoch: 0,
                redo: FIRST_LSN,
                store_lsn: FIRST_LSN,
                last: FIRST_LSN,
                high_water: 1,
                maps: 0,
                life: WriteTotals::default(),
            };
            let options = StoreOptions { kind, delta: options.delta.unwrap_or_default() };
            store::create(options, disk, &creation.volume.path(&creation.name), meta)?;
            return Ok(creation);
        }
    }

    /// Gives the file its name, durably.
    pub(super) fn place(&mut self) -> Result<()> {
        if let Some(device) = &self.device {
            return device.complete();
        }
        match &self.empty {
            Some(empty) if empty.guard.is_of(&self.name)? => {
                if empty.disk.size()? > 0 {
                    return Err(Error::Exists { path: self.volume.path(&self.name) });
                }
                self.volume.replace(&self.current_name, &self.name)?;
            }
            _ => self.volume.rename(&self.current_name, &self.name)?,
        }
        self.current_name.clone_from(&self.name);
        self.volume.sync()
    }

    /// Replaces the database with that name, durably. `old` is its exclusive lock. Both databases must be closed, and
    /// the old one must have no log: the name belongs to one or the other database at any time, and a log must not be
    /// taken for that of the other.
    pub(in crate::db) fn replace(mut self, old: &dyn LockGuard) -> Result<()> {
        self.check_closed()?;
        // A program without a lock may have moved the old file away, and put another in its place.
        if !old.is_of(&self.name)? {
            return Err(Error::NotFound { path: self.volume.path(&self.name) });
        }
        if !self.lock.is_of(&self.current_name)? {
            return Err(Error::NotFound { path: self.volume.path(&self.current_name) });
        }
        if !self.volume.exchange(&self.current_name, &self.name)? {
            self.volume.replace(&self.current_name, &self.name)?;
            self.keep();
            return self.volume.sync();
        }
        // Another process may have given the name to another file since the check above. That file must not be removed.
        if !old.is_of(&self.current_name)? {
            self.volume.exchange(&self.current_name, &self.name)?;
            return Err(Error::NotFound { path: self.volume.path(&self.name) });
        }
        // An error from here on must not remove the new database.
        self.keep();
        self.volume.sync()?;
        self.volume.remove(&self.current_name)?;
        self.volume.sync()
    }

    /// The length of the file in bytes.
    pub(in crate::db) fn file_bytes(&self) -> Result<u64> {
        self.volume.open(&self.current_name, OpenMode::Read)?.size()
    }

    /// Keeps the file when this is dropped.
    pub(super) fn keep(&mut self) {
        self.done = true;
    }

    /// Fails if the database is still open.
    pub(super) fn check_closed(&self) -> Result<()> {
        if Arc::strong_count(&self.lock) > 1 {
            return Err(Error::Locked { path: self.volume.path(&self.name) });
        }
        Ok(())
    }

    /// Opens the file for writing.
    pub(in crate::db) fn open(&self, options: &Builder) -> Result<Database> {
        let path = self.volume.path(&self.current_name);
        let disk = match &self.device {
            Some(device) => device.clone(),
            // Errors contain the name that it has now.
            None => match self.disk.renamed(&path) {
                Some(disk) => disk,
                None => self.volume.open(&self.current_name, OpenMode::Write)?,
            },
        };
        let opened = store::open(disk, &path)?;
        if opened.1.database_id != self.database_id {
            // A program without a lock has replaced the file.
            return Err(Error::Locked { path });
        }
        let opened = Opened::of(options, path, self.lock.clone(), opened)?;
        match options.start(opened, self.volume.clone(), &self.current_name)? {
            (db, None) => Ok(db),
            // A failed creation, most often without space, must not prevent another one.
            (_, Some(error)) => Err(error),
        }
    }

    /// Removes all files that were created. If a program without a lock has replaced the file, the new one stays.
    fn undo(&self) -> Result<()> {
        let Creation { volume, name, current_name, .. } = self;
        Log::remove_own(&log_config(volume.clone(), current_name, self.database_id))?;
        if !self.lock.is_of(current_name)? {
            return Ok(());
        }
        if let Some(device) = &self.device {
            device.resize(0)?;
            device.sync()?;
        } else if current_name == name && self.empty.is_some() {
            // A file that was moved away does not get its name back. So the file that was opened is this one if the
            // name is still that of this file.
            let disk = volume.open(name, OpenMode::Write)?;
            if self.lock.is_of(name)? {
                disk.resize(0)?;
                disk.sync()?;
            }
        } else if current_name == name {
            // The name can pass to another file between a check and a removal. The temporary name contains the id of
            // this database, so no other program uses it.
            let temporary = unfinished_name(name, self.database_id);
            volume.rename(name, &temporary)?;
            match self.lock.is_of(&temporary)? {
                true => volume.remove(&temporary)?,
                false => volume.rename(&temporary, name)?,
            }
        } else {
            volume.remove(current_name)?;
        }
        volume.sync()
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

/// Creates and locks a file under a temporary name. `None` if another process has removed it meanwhile.
fn new_file(volume: &dyn Volume, name: &str, id: u128) -> Result<Option<(String, Locked)>> {
    let temporary = unfinished_name(name, id);
    let made = volume.create_beside(&temporary, name).map_err(|error| match error {
        // An error names the path that the caller gave.
        Error::Io { action, source, .. } => Error::Io { action, path: volume.path(name), source },
        other => other,
    });
    drop(made?);
    match volume.lock(&temporary, true) {
        Ok(locked) => Ok(Some((temporary, locked))),
        // Another creation may remove the file as abandoned before it is locked.
        Err(Error::Locked { .. } | Error::NotFound { .. }) => Ok(None),
        Err(error) => {
            let _ = volume.remove(&temporary);
            Err(error)
        }
    }
}

/// The beginning of the names of the log segments of a database.
fn segments(name: &str) -> String {
    format!("{name}-log.")
}

/// Removes the log of a database. The caller holds the lock of the database.
fn remove_log(volume: &dyn Volume, name: &str) -> Result<()> {
    volume.list(&segments(name))?.iter().try_for_each(|segment| volume.remove(segment))
}

/// The length of a file; `None` if it does not exist.
pub(super) fn len(volume: &dyn Volume, name: &str) -> Result<Option<u64>> {
    match volume.open(name, OpenMode::Read) {
        Err(Error::NotFound { .. }) => Ok(None),
        opened => opened?.size().map(Some),
    }
}

/// The empty file with this name, locked, so that no other process creates a database there. Returns [`Error::Exists`]
/// if it is not empty. A file that is not empty is not locked, because another process may be opening it.
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

/// Removes the files of abandoned creations of this database. A creation that is not abandoned holds a lock. `lock` is
/// the lock of the database itself, if it exists.
fn remove_abandoned(volume: &dyn Volume, name: &str, lock: Option<&dyn LockGuard>) -> Result<()> {
    for found in volume.list(&format!("{name}."))? {
        let id = found.get(name.len() + 1..).and_then(|rest| u128::from_str_radix(rest.get(..32)?, 16).ok());
        let Some(file) = id.map(|id| unfinished_name(name, id)).filter(|file| found.starts_with(file)) else {
            continue;
        };
        if found != file && !found.starts_with(&segments(&file)) {
            continue;
        }
        // After a power cut, a file that was renamed may have both names.
        if let Some(lock) = lock
            && lock.is_of(&file)?
        {
            volume.remove(&file)?;
            continue;
        }
        // The log is removed first, so that the file exists as long as a part of its log does, except after a power
        // cut.
        match volume.lock(&file, true) {
            Ok(_held) => {
                remove_log(volume, &file)?;
                volume.remove(&file)?;
            }
            Err(Error::NotFound { .. }) => remove_log(volume, &file)?,
            Err(_) => {}
        }
    }
    Ok(())
}

/// A random id of 128 bits, from the time and the keys of the standard library's hasher, which come from the system's
/// random source.
fn new_database_id() -> u128 {
    use std::hash::{BuildHasher, RandomState};
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let half = || RandomState::new().hash_one((now.as_nanos(), std::process::id()));
    u128::from(half()) << 64 | u128::from(half())
}

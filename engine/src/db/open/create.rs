//! Creates databases: the methods of [`Builder`], and [`NewDatabase`]. `creation` handles the files.

use super::creation::{Creation, len};
use super::options::Builder;
use crate::base::{Error, Result};
use crate::db::Database;
use crate::io::{FileVolume, Volume};
use std::path::Path;
use std::sync::Arc;

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
    /// [`Error::Exists`] if the file exists and is not empty, [`Error::Locked`] if another process creates a database
    /// there, [`Error::Full`] if the device is full. After [`Error::Full`] there is no database, and nothing that
    /// prevents another creation.
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
    /// The errors of [`Builder::create`].
    pub fn create_on(&self, volume: Arc<dyn Volume>, name: &str) -> Result<Database> {
        let create = || {
            let mut creation = Creation::begin(self, volume.clone(), name)?;
            creation.place()?;
            let db = creation.open(self)?;
            creation.keep();
            Ok(db)
        };
        create().map_err(|error| Creation::named(error, &*volume, name))
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
    /// The errors of [`Builder::open`], except [`Error::NotFound`].
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
    /// The errors of [`Builder::open_or_create`].
    pub fn open_or_create_on(&self, volume: Arc<dyn Volume>, name: &str) -> Result<Database> {
        loop {
            match self.open_on(volume.clone(), name) {
                Err(Error::NotFound { .. }) => {}
                Err(Error::NotADatabase { .. }) if len(&*volume, name)?.is_none_or(|len| len == 0) => {}
                opened => return opened,
            }
            match self.create_on(volume.clone(), name) {
                // Another process has just created it.
                Err(Error::Exists { .. }) => {}
                created => return created,
            }
        }
    }

    /// Begins to create a database whose file gets its name when [`NewDatabase::finish`] is called. If the
    /// `NewDatabase` is dropped before, or the process ends, there is no database. Use it if a half-filled database is
    /// useless.
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
    /// The errors of [`Builder::create`].
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
    /// The errors of [`Builder::create`].
    pub fn begin_create_on(&self, volume: Arc<dyn Volume>, name: &str) -> Result<NewDatabase> {
        let begin = || {
            let creation = Creation::begin(self, volume.clone(), name)?;
            Ok(NewDatabase { db: creation.open(self)?, creation })
        };
        begin().map_err(|error| Creation::named(error, &*volume, name))
    }
}

/// A database that is being created. [`Builder::begin_create`] returns it.
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
    /// [`Error::Exists`] if another file has got the name, [`Error::Locked`] if a clone of the database or a
    /// transaction is still open, and the errors of [`Database::close`]. After an error there is no new database.
    pub fn finish(self) -> Result<()> {
        let NewDatabase { db, mut creation } = self;
        db.close()?;
        creation.check_closed()?;
        creation.place()?;
        creation.keep();
        Ok(())
    }
}

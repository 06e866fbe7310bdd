//! [`Database`], the handle of an open database.

use super::open::options::Builder;
use super::shared::{Handle, Shared};
use super::transaction::read::ReadTransaction;
use super::transaction::write::WriteTransaction;
use crate::base::Result;
use crate::txn::{DatabaseStats, Metrics};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A database in a file (with a log beside it while it is open) or in memory. A clone is cheap. The database is closed
/// when the last clone and the last transaction are dropped.
///
/// ```
/// # fn main() -> duramen::Result<()> {
/// use duramen::{Database, TableDef};
/// const TREES: TableDef<&str, u64> = TableDef::new("trees");
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("forest.duramen");
///
/// let db = Database::create(&path)?;
/// let tx = db.begin_write()?;
/// tx.open_table(TREES)?.insert("oak", 700)?;
/// tx.commit()?;
///
/// let tx = db.begin_read()?;
/// let trees = tx.open_table(TREES)?;
/// assert_eq!(trees.get("oak")?.unwrap().value(), 700);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Database {
    shared: Arc<Handle>,
}

impl Database {
    pub(crate) fn new(shared: Arc<Shared>) -> Database {
        Database { shared: Handle::new(shared) }
    }

    /// Options for creating or opening.
    ///
    /// ```
    /// let db = duramen::Database::builder().page_size(4096).in_memory()?;
    /// assert_eq!(db.stats().page_size, 4096);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Creates a database in a new file, with default options.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("forest.duramen");
    /// use duramen::{Database, Error};
    ///
    /// let db = Database::create(&path)?;
    /// assert!(matches!(Database::create(&path), Err(Error::Exists { .. })));
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Builder::create`].
    pub fn create(path: impl AsRef<Path>) -> Result<Database> {
        Builder::default().create(path)
    }

    /// Opens a database, or creates it if it does not exist, with default options.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("forest.duramen");
    /// use duramen::Database;
    ///
    /// Database::open_or_create(&path)?.close()?; // creates it
    /// assert_eq!(Database::open_or_create(&path)?.path(), path);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Builder::open_or_create`].
    pub fn open_or_create(path: impl AsRef<Path>) -> Result<Database> {
        Builder::default().open_or_create(path)
    }

    /// Opens a database, with default options.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("forest.duramen");
    /// use duramen::{Database, Error};
    ///
    /// assert!(matches!(Database::open(&path), Err(Error::NotFound { .. })));
    /// Database::create(&path)?.close()?;
    /// let db = Database::open(&path)?;
    /// assert_eq!(db.path(), path);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Builder::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Database> {
        Builder::default().open(path)
    }

    /// Opens a database for reading only, with default options.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("forest.duramen");
    /// use duramen::{Database, Error};
    ///
    /// Database::create(&path)?.close()?;
    /// let db = Database::open_read_only(&path)?;
    /// let beside = Database::open_read_only(&path)?;
    /// assert!(db.begin_read().is_ok());
    /// assert!(matches!(db.begin_write(), Err(Error::ReadOnly)));
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Builder::open_read_only`].
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Database> {
        Builder::default().open_read_only(path)
    }

    /// A database in memory, with default options.
    ///
    /// ```
    /// use duramen::{Database, TableDef};
    /// const TREES: TableDef<&str, u64> = TableDef::new("trees");
    ///
    /// let db = Database::in_memory()?;
    /// let tx = db.begin_write()?;
    /// tx.open_table(TREES)?.put("oak", 700)?;
    /// tx.commit()?;
    /// assert_eq!(db.begin_read()?.open_table(TREES)?.len(), 1);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// None with default options.
    pub fn in_memory() -> Result<Database> {
        Builder::default().in_memory()
    }

    /// Begins a read transaction on a snapshot of all visible commits. It never waits.
    ///
    /// ```
    /// # use duramen::{Database, TableDef};
    /// # const TREES: TableDef<&str, u64> = TableDef::new("trees");
    /// let db = Database::in_memory()?;
    /// let tx = db.begin_write()?;
    /// tx.open_table(TREES)?.put("oak", 700)?;
    /// assert!(db.begin_read()?.tables()?.is_empty(), "nothing is committed yet");
    /// tx.commit()?;
    /// assert_eq!(db.begin_read()?.open_table(TREES)?.len(), 1);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// None at present.
    pub fn begin_read(&self) -> Result<ReadTransaction> {
        Ok(ReadTransaction::begin(self.shared.clone()))
    }

    /// Begins a writing transaction. It waits until the writing transaction before it has ended, by
    /// [`WriteTransaction::commit`] or by dropping it. A thread that already holds a writing transaction waits for
    /// ever. After [`std::mem::forget`] of a writing transaction, every thread does. See
    /// [`Database::begin_write_within`].
    ///
    /// ```
    /// # use duramen::{Database, TableDef};
    /// # const TREES: TableDef<&str, u64> = TableDef::new("trees");
    /// let db = Database::in_memory()?;
    /// let tx = db.begin_write()?;
    /// tx.open_table(TREES)?.put("oak", 700)?;
    /// tx.commit()?;
    ///
    /// let tx = db.begin_write()?;
    /// tx.open_table(TREES)?.put("elm", 400)?;
    /// drop(tx); // not committed: discarded
    /// assert_eq!(db.begin_read()?.open_table(TREES)?.len(), 1);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`crate::Error::ReadOnly`], [`crate::Error::Poisoned`], [`crate::Error::Forked`].
    pub fn begin_write(&self) -> Result<WriteTransaction> {
        WriteTransaction::begin(self.shared.clone())
    }

    /// Begins a writing transaction like [`Database::begin_write`], but waits at most for `timeout`. Returns `None` if
    /// the writing transaction before it has not ended by then. It may also return `None` because background work
    /// keeps other threads from writing, for a few milliseconds at a time.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let db = duramen::Database::in_memory()?;
    /// let tx = db.begin_write()?;
    /// assert!(db.begin_write_within(Duration::ZERO)?.is_none());
    /// drop(tx);
    /// assert!(db.begin_write_within(Duration::ZERO)?.is_some());
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Database::begin_write`].
    pub fn begin_write_within(&self, timeout: Duration) -> Result<Option<WriteTransaction>> {
        WriteTransaction::begin_within(self.shared.clone(), timeout)
    }

    /// Takes a checkpoint. After it, a recovery has nothing to do. If files of the log that are not needed cannot be
    /// removed, they stay until a later checkpoint or the close.
    ///
    /// ```
    /// # use duramen::{Database, TableDef};
    /// # const TREES: TableDef<&str, u64> = TableDef::new("trees");
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("forest.duramen");
    /// let db = Database::create(&path)?;
    /// let tx = db.begin_write()?;
    /// tx.open_table(TREES)?.put("oak", 700)?;
    /// tx.commit()?;
    /// let before = db.stats().log_bytes;
    /// db.checkpoint()?;
    /// assert!(db.stats().log_bytes < before);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`crate::Error::ReadOnly`], and errors of writing.
    pub fn checkpoint(&self) -> Result<()> {
        self.shared.check_writable()?;
        self.shared.engine.checkpoint_with_room()
    }

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
        self.shared.engine.stats()
    }

    /// The bytes written to the files of the database, by kind, the bytes of user data, and the sizes of the file. All
    /// zeros in memory.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("forest.duramen");
    /// # const TREES: duramen::TableDef<&str, u64> = duramen::TableDef::new("trees");
    /// let db = duramen::Database::create(&path)?;
    /// let tx = db.begin_write()?;
    /// tx.open_table(TREES)?.put("oak", 700)?;
    /// tx.commit()?;
    /// let metrics = db.metrics();
    /// assert_eq!(metrics.since_open.user_bytes, 3 + 8);
    /// println!("{:?} bytes written for each byte of user data", metrics.since_open.total_amplification());
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn metrics(&self) -> Metrics {
        self.shared.engine.metrics()
    }

    /// Does one round of background work. Returns false if there was none. Only needed without [`Builder::background`].
    /// It may wait until a writing transaction ends: do not call it in a thread that holds one.
    ///
    /// ```
    /// # use duramen::{Database, TableDef};
    /// # const TREES: TableDef<&str, u64> = TableDef::new("trees");
    /// let db = Database::builder().background(false).in_memory()?;
    /// let tx = db.begin_write()?;
    /// tx.open_table(TREES)?.put("oak", 700)?;
    /// tx.commit()?;
    /// let tx = db.begin_write()?;
    /// tx.drop_table("trees")?;
    /// tx.commit()?;
    /// assert_eq!(db.stats().detached, 1, "its pages are not yet freed");
    /// while db.maintain()? {}
    /// assert_eq!(db.stats().detached, 0);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// Errors of reading and writing.
    pub fn maintain(&self) -> Result<bool> {
        self.shared.check_writable()?;
        // The other work can fail, or wait for a transaction.
        self.shared.engine.sync_interval_commits()?;
        let wrote = self.shared.write_dirty_pages()?;
        Ok(self.shared.maintain(None)? || wrote)
    }

    /// Closes the database: writes everything to the file, shrinks the file as far as this is worth the writes, and
    /// removes the log. Dropping the last handle does the same, but cannot return an error; it only logs it.
    ///
    /// If there are other clones of this handle, transactions or iterators, this only drops the handle. The last of
    /// them closes the database.
    ///
    /// ```
    /// # fn main() -> duramen::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("forest.duramen");
    /// let db = duramen::Database::create(&path)?;
    /// db.close()?;
    /// assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "one file is left, and no log");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`crate::Error::Poisoned`] after an earlier failure, and errors of reading and writing. The log then stays, and
    /// the next opening recovers all commits.
    pub fn close(self) -> Result<()> {
        Arc::into_inner(self.shared).map_or(Ok(()), Handle::close)
    }

    /// The path of the database file.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("forest.duramen");
    /// let db = duramen::Database::create(&path)?;
    /// assert_eq!(db.path(), path);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn path(&self) -> &Path {
        &self.shared.path
    }

    pub(crate) fn shared(&self) -> &Arc<Handle> {
        &self.shared
    }
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Database").field("path", &self.shared.path).finish_non_exhaustive()
    }
}

//! [`Database`]: the handle that everything begins with.

use super::options::Builder;
use super::read::ReadTransaction;
use super::shared::{Handle, Shared};
use super::write::WriteTransaction;
use crate::base::Result;
use std::path::Path;
use std::sync::Arc;

/// A database: one file (and, while it is open, its log beside it), or memory. Cheap to clone; closed in order when
/// the last clone and the last transaction are dropped.
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
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Creates a database in a new file, with default options.
    ///
    /// # Errors
    /// As [`Builder::create`].
    pub fn create(path: impl AsRef<Path>) -> Result<Database> {
        Builder::default().create(path)
    }

    /// Opens a database, with default options.
    ///
    /// # Errors
    /// As [`Builder::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Database> {
        Builder::default().open(path)
    }

    /// Opens a database for reading only, with default options.
    ///
    /// # Errors
    /// As [`Builder::open_read_only`].
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Database> {
        Builder::default().open_read_only(path)
    }

    /// A database in memory, with default options.
    ///
    /// # Errors
    /// None with default options.
    pub fn in_memory() -> Result<Database> {
        Builder::default().in_memory()
    }

    /// Begins to read: a snapshot of what is committed now. Never waits.
    ///
    /// # Errors
    /// None so far.
    pub fn begin_read(&self) -> Result<ReadTransaction> {
        Ok(ReadTransaction::begin(self.shared.clone()))
    }

    /// Begins to write, once the writing transaction before has ended.
    ///
    /// # Errors
    /// [`crate::Error::ReadOnly`], [`crate::Error::Poisoned`].
    pub fn begin_write(&self) -> Result<WriteTransaction> {
        WriteTransaction::begin(self.shared.clone())
    }

    /// Takes a checkpoint now: after it, recovery has nothing to do.
    ///
    /// # Errors
    /// [`crate::Error::ReadOnly`], and what writing meets.
    pub fn checkpoint(&self) -> Result<()> {
        self.shared.check_writable()?;
        self.shared.checkpoint()
    }

    /// Does one round of background work; false when there was none. Only needed with [`Builder::background`] off.
    ///
    /// # Errors
    /// What reading and writing meet.
    pub fn maintain(&self) -> Result<bool> {
        self.shared.maintain()
    }

    /// The database's file.
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

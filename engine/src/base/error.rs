//! [`enum@Error`], the only error type. Each variant says what went wrong, where, and what to do about it.
//!
//! A message names neither a program nor an option of a program, because it must fit every program that uses the
//! engine.

use super::ids::{Lsn, PageId};
use std::fmt;
use std::path::{Path, PathBuf};

/// `Result` with the engine's [`enum@Error`].
///
/// ```
/// use duramen::{Database, Result, TableDef};
///
/// fn count(db: &Database) -> Result<u64> {
///     Ok(db.begin_read()?.open_table(TableDef::<&str, u64>::new("trees"))?.len())
/// }
/// assert!(count(&Database::in_memory()?).is_err(), "there is no such table");
/// # Ok::<(), duramen::Error>(())
/// ```
pub type Result<T, E = Error> = std::result::Result<T, E>;

macro_rules! stays_readable {
    () => {
        "committed data stays readable"
    };
}
const STAYS_READABLE: &str = stays_readable!();

// The end of the message of an error: the action that resolves it.
const FREE_SPACE: &str = concat!(
    ": free some space, commit less at a time, or raise the limit of the length of files if there is one; ",
    stays_readable!()
);
const CLOSE_OTHER: &str = ": close it in the other process, or drop the other handle, first";
const CREATE: &str = ": create it first";
const OPEN_OR_REMOVE: &str = ": open it, or remove it first";
const OTHER_VERSION: &str = ": use a version of Duramen that reads this format";
const NEWER_VERSION: &str = ": use a newer version of Duramen";
const BUILD_WITH: &str = ": build it with that feature";
const OPEN_TO_RECOVER: &str = ": open it for writing once";
const FIND_LOG: &str = ": put the log back beside it, restore a backup, or read the state of the last checkpoint with `Builder::open_damaged`";
const SALVAGE: &str = "; restore a backup, or read the rest of the table with `salvage`";
const OPEN_DAMAGED: &str = "; restore a backup, or read what is left with `Builder::open_damaged`";
const SMALLER_SUM: &str = ": sum a smaller range at a time";
const SMALLER_QUERY: &str = ": query a smaller range at a time, or set a larger `max_numbers`";
const SHORTER_KEY: &str = ": shorten it, or store a hash of it";
const SPLIT: &str = ": split it";
const SORT: &str = ": sort the entries and remove duplicates";
const DROP_OR_RENAME: &str = ": drop or rename it first";
const OWN_TYPES: &str = ": open it with its own types";
const READ_BYTES: &str = "; read the table as bytes to see them";
const OPEN_TO_WRITE: &str = ": open it for writing";
const REOPEN: &str = ": remove the cause, then close the database and open it again";
const OPEN_AFTER_FORK: &str = ": open it after the `fork`, in one process only";
const LARGER_CACHE: &str = ": open the database with a larger cache";
const DROP_READER: &str =
    ": drop that read transaction and try again, or open the database with a larger `version_memory`";
const LARGER_PAGES: &str = ": create it with a larger page size";
const NEW_NUMBERS: &str = ": copy its tables to a new database, which numbers them anew";

/// All errors of the engine. Bad input, a bad file and a bad device give an error and never a panic.
///
/// ```
/// use duramen::{Database, Error, TableDef};
/// const TREES: TableDef<&str, u64> = TableDef::new("trees");
///
/// let db = Database::in_memory()?;
/// let count = match db.begin_read()?.open_table(TREES) {
///     Ok(trees) => trees.len(),
///     Err(Error::NoTable { .. }) => 0, // none has been planted yet
///     Err(other) => return Err(other),
/// };
/// assert_eq!(count, 0);
/// # Ok::<(), duramen::Error>(())
/// ```
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused a read, write, sync or resize.
    #[error("{action} {path}: {source}", path = path.display())]
    Io {
        /// The operation that failed, such as "cannot read".
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The device has no space left. Committed data stays readable.
    #[error("no space left on the device of {path}{FREE_SPACE}", path = path.display())]
    Full {
        /// The file that could not grow.
        path: PathBuf,
    },
    /// Another process, or another handle in this process, has the database open.
    #[error("{path} is already open{CLOSE_OTHER}", path = path.display())]
    Locked {
        /// The database file.
        path: PathBuf,
    },
    /// The file to open does not exist.
    #[error("there is no database at {path}{CREATE}", path = path.display())]
    NotFound {
        /// The database file.
        path: PathBuf,
    },
    /// The file to create already exists.
    #[error("{path} already exists{OPEN_OR_REMOVE}", path = path.display())]
    Exists {
        /// The database file.
        path: PathBuf,
    },
    /// The file is not a Duramen database.
    #[error("{path} is not a Duramen database: {what}", path = path.display())]
    NotADatabase {
        /// The file.
        path: PathBuf,
        /// A description of the file that was found instead.
        what: String,
    },
    /// The file's format is of another version than this program's.
    #[error("{path} has format version {found}, and this version of Duramen reads version {supported}{OTHER_VERSION}", path = path.display())]
    FormatVersion {
        /// The file.
        path: PathBuf,
        /// The version in the file.
        found: u32,
        /// The version this program reads and writes.
        supported: u32,
    },
    /// The file's pages are in a page store that only a newer version of this program has.
    #[error("{path} uses page store number {found}, which this version of Duramen does not know{NEWER_VERSION}", path = path.display())]
    UnknownStore {
        /// The file.
        path: PathBuf,
        /// The number of the page store.
        found: u32,
    },
    /// The file has pages that only a build with this feature of the crate can read or write.
    #[error("Duramen was built without the feature {feature}{BUILD_WITH}")]
    NotBuilt {
        /// The feature.
        feature: &'static str,
    },
    /// A database that was not closed properly cannot be opened read-only, because it needs recovery.
    #[error("{path} was not closed properly and needs recovery{OPEN_TO_RECOVER}", path = path.display())]
    NeedsRecovery {
        /// The database file.
        path: PathBuf,
    },
    /// A database that was not closed properly has lost its redo log.
    #[error("{path} was not closed properly, and its log {missing}{FIND_LOG}", path = path.display(), missing = missing(log))]
    MissingLog {
        /// The database file.
        path: PathBuf,
        /// The missing log: the names of its files without their numbers.
        log: PathBuf,
    },
    /// A page is corrupt. Its key range is lost; the rest of the database stays readable.
    #[error("page {page} is corrupt: {what}{SALVAGE}")]
    Corrupt {
        /// The page.
        page: PageId,
        /// A description of the error.
        what: String,
    },
    /// The log has a damaged batch before its end.
    #[error("the log is corrupt at LSN {lsn}: {what}{OPEN_DAMAGED}")]
    CorruptLog {
        /// The LSN of the damaged batch.
        lsn: Lsn,
        /// A description of the error.
        what: String,
    },
    /// A structure that is neither a tree page nor the log is damaged: the superblock, the page table, a catalog entry.
    #[error("{what} is corrupt: {why}{OPEN_DAMAGED}")]
    CorruptMeta {
        /// The structure that is damaged.
        what: &'static str,
        /// A description of the error.
        why: String,
    },
    /// An option has a value that is not allowed.
    #[error("option {option} cannot be {value}: it must be {expected}")]
    Option {
        /// The option's name.
        option: &'static str,
        /// The value given.
        value: String,
        /// The values that are allowed.
        expected: String,
    },
    /// A sum has more than 128 bits.
    #[error("the sum of {what} has more than 128 bits{SMALLER_SUM}")]
    SumTooLarge {
        /// The column or the keys that were summed.
        what: &'static str,
    },
    /// A query has to keep more numbers in memory than its limit.
    #[error("the query has to keep more than {max} numbers{SMALLER_QUERY}")]
    TooManyNumbers {
        /// The limit: [`crate::query::Query::max_numbers`].
        max: u64,
    },
    /// A key is longer than the limit.
    #[error("the key has {len} bytes, and the limit is {max}{SHORTER_KEY}")]
    KeyTooLong {
        /// The key's length in bytes.
        len: usize,
        /// The longest allowed.
        max: usize,
    },
    /// A key does not have the fixed length of the keys of its table.
    #[error("the keys of this table have exactly {expected} bytes, and the given key has {len}")]
    KeyLength {
        /// The key's length in bytes.
        len: usize,
        /// The length of all keys of the table.
        expected: usize,
    },
    /// The keys of a bulk load are not in ascending order.
    #[error("entry {entry} of a bulk load has a key that is not greater than the key before it{SORT}")]
    Unsorted {
        /// The number of entries before it.
        entry: u64,
    },
    /// A value is longer than the limit.
    #[error("the value has {len} bytes, and the limit is {max}{SPLIT}")]
    ValueTooLong {
        /// The value's length in bytes.
        len: u64,
        /// The longest allowed.
        max: u64,
    },
    /// There is no table of that name.
    #[error("there is no table \"{table}\"")]
    NoTable {
        /// The name asked for.
        table: String,
    },
    /// A table of that name already exists.
    #[error("table \"{table}\" already exists{DROP_OR_RENAME}")]
    TableExists {
        /// The name asked for.
        table: String,
    },
    /// A table was opened with types that are not its own.
    #[error("table \"{table}\" has {part} of type {found}, not {asked}{OWN_TYPES}")]
    TableType {
        /// The table.
        table: String,
        /// "keys" or "values".
        part: &'static str,
        /// The type in the catalog.
        found: String,
        /// The type asked for.
        asked: String,
    },
    /// A text is not a value of its type.
    #[error("\"{text}\" is not {expected}: {why}")]
    Text {
        /// The text, truncated if it is long.
        text: String,
        /// The expected text, with the name of the type: "a value of type u32".
        expected: String,
        /// A description of the error in the text.
        why: String,
    },
    /// Stored bytes are not a value of the type of their table: a program wrote them with another type of the same
    /// name.
    #[error("the stored bytes are not a value of type {type_name}: {what}{READ_BYTES}")]
    Encoding {
        /// The type's name.
        type_name: String,
        /// A description of the error in the bytes.
        what: &'static str,
    },
    /// The bytes given for a key or a value are not an encoding of the type of the table.
    #[error("table \"{table}\" has {part} of type {type_name}, and the given bytes are not of that type: {what}")]
    NotEncoded {
        /// The table.
        table: String,
        /// "keys" or "values".
        part: &'static str,
        /// The type's name.
        type_name: String,
        /// A description of the error in the bytes.
        what: &'static str,
    },
    /// The state of a table does not allow the operation.
    #[error("table \"{table}\": {why}")]
    TableState {
        /// The table.
        table: String,
        /// The state that prevents the operation, and the action that resolves it.
        why: String,
    },
    /// The handle was opened read-only.
    #[error("the database is open read-only{OPEN_TO_WRITE}")]
    ReadOnly,
    /// The handle cannot write, because of a failure, or because it was opened where the file was damaged or the device
    /// had no space for a log. Commits acknowledged before are safe and readable.
    #[error("the database cannot be written: {cause}; {STAYS_READABLE}{REOPEN}")]
    Poisoned {
        /// The message of the first failure.
        cause: String,
    },
    /// The database or volume was opened by a parent process, before `fork` made this one. This process can neither
    /// write nor close it, and should not read from it.
    #[error("{path} was opened before `fork` made this process{OPEN_AFTER_FORK}", path = path.display())]
    Forked {
        /// The path of the database, file or folder that cannot be written.
        path: PathBuf,
    },
    /// The cache is too small for the operations that run at the same time.
    #[error("all {frames} pages of the cache are in use by running operations{LARGER_CACHE}")]
    CacheFull {
        /// The number of pages that fit in the cache.
        frames: usize,
    },
    /// Old versions for open snapshots take more memory than allowed. The commit has changed nothing, and reads
    /// continue.
    #[error(
        "old versions for open snapshots take {bytes} bytes ({changes} entries), and the limit is {limit}; the oldest snapshot, at LSN {snapshot}, has kept versions for {seconds} s{DROP_READER}"
    )]
    HeldBack {
        /// The number of old versions of entries.
        changes: usize,
        /// The memory that they take, in bytes.
        bytes: usize,
        /// The limit in bytes.
        limit: usize,
        /// The oldest open snapshot.
        snapshot: Lsn,
        /// The number of seconds for which it has kept old versions.
        seconds: u64,
    },
    /// All page ids are taken.
    #[error("the database has {pages} pages, the most that it can have{LARGER_PAGES}")]
    TooManyPages {
        /// The limit.
        pages: u64,
    },
    /// All numbers of tables and dictionaries are taken. A number is given once, also if its table is dropped.
    #[error("the database has given all its numbers to tables and dictionaries{NEW_NUMBERS}")]
    TooManyTables,
}

/// The description of a missing log. `log` is the names of its files without their numbers.
fn missing(log: &Path) -> String {
    format!(
        "is missing, as a whole or in part, or belongs to another database (its files are named {}.NUMBER)",
        log.display()
    )
}

impl fmt::Debug for Error {
    /// The same text as `Display`, because a `main` that returns [`Result`] prints the `Debug` form.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error {
    /// An [`Error::Corrupt`].
    ///
    /// ```
    /// use duramen::{Error, base::PageId};
    ///
    /// let error = Error::corrupt(PageId(7), "its checksum is wrong");
    /// assert!(error.to_string().starts_with("page 7 is corrupt: its checksum is wrong"));
    /// ```
    pub fn corrupt(page: PageId, what: impl Into<String>) -> Error {
        Error::Corrupt { page, what: what.into() }
    }

    /// True if the error may mean that one page cannot be read, because the page is corrupt, or because this device or
    /// this build cannot read it. A caller that does not need the page then continues. It is false if writing was
    /// stopped or the device is full.
    pub(crate) fn is_of_a_page(&self) -> bool {
        matches!(self, Error::Corrupt { .. } | Error::Io { .. } | Error::NotBuilt { .. })
    }

    /// Adds the name of the table to an error about damage.
    pub(crate) fn in_table(self, table: &str) -> Error {
        let named = |what: String| format!("table \"{}\": {what}", table.escape_debug());
        match self {
            Error::Corrupt { page, what } => Error::Corrupt { page, what: named(what) },
            Error::CorruptMeta { what, why } => Error::CorruptMeta { what, why: named(why) },
            other => other,
        }
    }

    /// The message without [`Error::advice`], and shorter for a damaged page, log or structure: for reports that list
    /// many errors.
    ///
    /// ```
    /// use duramen::{Error, base::PageId};
    ///
    /// let error = Error::corrupt(PageId(7), "its checksum is wrong");
    /// assert_eq!(error.without_advice(), "page 7: its checksum is wrong");
    /// ```
    pub fn without_advice(&self) -> String {
        match self {
            Error::Corrupt { page, what } if page.is_none() => what.clone(),
            Error::Corrupt { page, what } => format!("page {page}: {what}"),
            Error::CorruptMeta { what, why } => format!("{what}: {why}"),
            Error::CorruptLog { lsn, what } => format!("the log: at LSN {lsn}, {what}"),
            Error::MissingLog { log, .. } => format!("the log: it {}", missing(log)),
            other => other.statement(),
        }
    }

    /// The message without advice; for [`Error::Poisoned`] the message of its cause. A new [`Error::Poisoned`] contains
    /// it.
    pub(crate) fn first_cause(&self) -> String {
        match self {
            Error::Poisoned { cause } => cause.clone(),
            other => other.statement(),
        }
    }

    /// The message up to the advice.
    fn statement(&self) -> String {
        let mut message = self.to_string();
        message.truncate(message.len().saturating_sub(self.advice().len()));
        message
    }

    /// The end of the message that says what to do; empty if the message only says what is wrong.
    ///
    /// ```
    /// use duramen::Error;
    ///
    /// let error = Error::CacheFull { frames: 7 };
    /// assert_eq!(error.advice(), ": open the database with a larger cache");
    /// assert!(error.to_string().ends_with(error.advice()));
    /// ```
    pub fn advice(&self) -> &'static str {
        match self {
            Error::Full { .. } => FREE_SPACE,
            Error::Locked { .. } => CLOSE_OTHER,
            Error::NotFound { .. } => CREATE,
            Error::Exists { .. } => OPEN_OR_REMOVE,
            Error::FormatVersion { .. } => OTHER_VERSION,
            Error::UnknownStore { .. } => NEWER_VERSION,
            Error::NotBuilt { .. } => BUILD_WITH,
            Error::NeedsRecovery { .. } => OPEN_TO_RECOVER,
            Error::MissingLog { .. } => FIND_LOG,
            Error::Corrupt { .. } => SALVAGE,
            Error::CorruptLog { .. } | Error::CorruptMeta { .. } => OPEN_DAMAGED,
            Error::SumTooLarge { .. } => SMALLER_SUM,
            Error::TooManyNumbers { .. } => SMALLER_QUERY,
            Error::KeyTooLong { .. } => SHORTER_KEY,
            Error::ValueTooLong { .. } => SPLIT,
            Error::Unsorted { .. } => SORT,
            Error::TableExists { .. } => DROP_OR_RENAME,
            Error::TableType { .. } => OWN_TYPES,
            Error::Encoding { .. } => READ_BYTES,
            Error::ReadOnly => OPEN_TO_WRITE,
            Error::Poisoned { .. } => REOPEN,
            Error::Forked { .. } => OPEN_AFTER_FORK,
            Error::CacheFull { .. } => LARGER_CACHE,
            Error::HeldBack { .. } => DROP_READER,
            Error::TooManyPages { .. } => LARGER_PAGES,
            Error::TooManyTables => NEW_NUMBERS,
            Error::Io { .. }
            | Error::NotADatabase { .. }
            | Error::Option { .. }
            | Error::KeyLength { .. }
            | Error::NoTable { .. }
            | Error::Text { .. }
            | Error::NotEncoded { .. }
            | Error::TableState { .. } => "",
        }
    }

    /// The error of a sync. It is never [`Error::Full`]: a full device then has lost what was written, and freeing
    /// space does not bring it back.
    pub(crate) fn sync(action: &'static str, path: impl Into<PathBuf>, source: std::io::Error) -> Error {
        Error::Io { action, path: path.into(), source }
    }

    /// Wraps an error of the operating system. A full device gives [`Error::Full`], and so does a file that cannot be
    /// longer.
    ///
    /// ```
    /// use duramen::Error;
    /// use std::io::ErrorKind;
    ///
    /// let full = Error::io("cannot write", "forest.duramen", ErrorKind::StorageFull.into());
    /// assert!(matches!(full, Error::Full { .. }));
    /// ```
    pub fn io(action: &'static str, path: impl Into<PathBuf>, source: std::io::Error) -> Error {
        use std::io::ErrorKind;
        let path = path.into();
        match source.kind() {
            // To a database the greatest length of a file is the end of the device, too.
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => Error::Full { path },
            _ => Error::Io { action, path, source },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One error of each variant whose message ends with advice.
    fn advising() -> Vec<Error> {
        let (path, text) = (|| PathBuf::from("forest"), || "oak".to_owned());
        vec![
            Error::Full { path: path() },
            Error::Locked { path: path() },
            Error::NotFound { path: path() },
            Error::Exists { path: path() },
            Error::UnknownStore { path: path(), found: 7 },
            Error::NotBuilt { feature: "zstd" },
            Error::NeedsRecovery { path: path() },
            Error::SumTooLarge { what: "keys" },
            Error::TooManyNumbers { max: 7 },
            Error::KeyTooLong { len: 9, max: 8 },
            Error::ValueTooLong { len: 9, max: 8 },
            Error::Unsorted { entry: 7 },
            Error::TableExists { table: text() },
            Error::TableType { table: text(), part: "keys", found: text(), asked: text() },
            Error::Encoding { type_name: text(), what: "it is too short" },
            Error::ReadOnly,
            Error::Poisoned { cause: text() },
            Error::Forked { path: path() },
            Error::CacheFull { frames: 7 },
            Error::HeldBack { changes: 7, bytes: 9, limit: 8, snapshot: Lsn(7), seconds: 7 },
            Error::TooManyPages { pages: 7 },
            Error::TooManyTables,
        ]
    }

    #[test]
    fn advice_is_the_end_of_the_message_and_can_be_left_out() {
        for error in advising() {
            let (message, without) = (error.to_string(), error.without_advice());
            assert!(message.starts_with(&without) && without.len() < message.len(), "{message}: {without}");
        }
    }

    #[test]
    fn messages_of_damage_have_its_place_and_no_advice() {
        let damaged = [
            (Error::corrupt(PageId(7), "it rots"), "page 7: it rots"),
            (Error::corrupt(PageId::UNKNOWN, "it rots"), "page unknown: it rots"),
            (Error::corrupt(PageId::NONE, "it rots"), "it rots"),
            (Error::CorruptMeta { what: "the catalog", why: "it rots".into() }, "the catalog: it rots"),
            (Error::CorruptLog { lsn: Lsn(7), what: "it rots".into() }, "the log: at LSN 7, it rots"),
            (
                Error::MissingLog { path: "forest".into(), log: "forest-log".into() },
                "the log: it is missing, as a whole or in part, or belongs to another database (its files are named forest-log.NUMBER)",
            ),
        ];
        for (error, expected) in damaged {
            assert_eq!(error.without_advice(), expected);
            assert!(error.to_string().contains("restore a backup"), "{error}");
        }
    }
}

//! [`enum@Error`], the only error type. Each variant says what went wrong, where, and what to do about it.
//!
//! A message names no option of a program and no program: it must fit every program that uses the engine.

use super::ids::{Lsn, PageId};
use std::fmt;
use std::path::PathBuf;

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

/// Everything that can go wrong. Bad input, a bad file and a bad device each give one of these; none of them
/// panics.
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
        /// What was being done, as "cannot read".
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's own words.
        source: std::io::Error,
    },
    /// The device has no room left. What is committed stays readable; free some space, then go on.
    #[error("no space left on the device of {path}: free some space and try again; committed data stays readable", path = path.display())]
    Full {
        /// The file that could not grow.
        path: PathBuf,
    },
    /// Another process, or another handle in this process, has the database open.
    #[error("{path} is open elsewhere: close the other handle or process first", path = path.display())]
    Locked {
        /// The database file.
        path: PathBuf,
    },
    /// The file to open does not exist.
    #[error("there is no database at {path}: create it first", path = path.display())]
    NotFound {
        /// The database file.
        path: PathBuf,
    },
    /// The file to create exists already.
    #[error("{path} exists already: open it, or remove it first", path = path.display())]
    Exists {
        /// The database file.
        path: PathBuf,
    },
    /// The file is not a Duramen database.
    #[error("{path} is not a Duramen database: {what}", path = path.display())]
    NotADatabase {
        /// The file.
        path: PathBuf,
        /// What was found instead.
        what: String,
    },
    /// The file's format is of another version than this program's.
    #[error("{path} has format version {found}, this program reads version {supported}: use a Duramen that reads version {found}, or dump with that and restore with this", path = path.display())]
    FormatVersion {
        /// The file.
        path: PathBuf,
        /// The version in the file.
        found: u32,
        /// The version this program reads and writes.
        supported: u32,
    },
    /// A database that was not closed cleanly is opened read-only.
    #[error("{path} was not closed cleanly: open it for writing once, which recovers it", path = path.display())]
    NeedsRecovery {
        /// The database file.
        path: PathBuf,
    },
    /// A database that was not closed cleanly has lost its redo log.
    #[error("{path} was not closed cleanly and its log, {log}.000001 and on, is missing or belongs to another database: put the log back beside it, restore a backup, or save what the last checkpoint had with `duramen dump --skip-damaged`", path = path.display(), log = log.display())]
    MissingLog {
        /// The database file.
        path: PathBuf,
        /// The log that should be there: what the names of its files have before their numbers.
        log: PathBuf,
    },
    /// A page does not hold what it should. Its key range is lost; the rest of the database stays readable.
    #[error("page {page} is corrupt: {what}; restore a backup, or save the rest with `duramen dump --skip-damaged`")]
    Corrupt {
        /// The page.
        page: PageId,
        /// What is wrong with it.
        what: String,
    },
    /// The log has a damaged batch before its end.
    #[error(
        "the log is corrupt at LSN {lsn}: {what}; restore a backup, or save what was committed before with `duramen dump --skip-damaged`"
    )]
    CorruptLog {
        /// Where.
        lsn: Lsn,
        /// What is wrong.
        what: String,
    },
    /// Something other than a tree page or the log is damaged: the superblock, the page table, a catalog entry.
    #[error("{what} is corrupt: {why}; restore a backup, or save what is left with `duramen dump --skip-damaged`")]
    CorruptMeta {
        /// Which structure.
        what: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// An option has a value it cannot have.
    #[error("option {option} cannot be {value}: it must be {expected}")]
    Option {
        /// The option's name.
        option: &'static str,
        /// The value given.
        value: String,
        /// What would be accepted.
        expected: String,
    },
    /// A query says something that cannot be.
    #[error("the query cannot be run: at character {at}, {why}")]
    Query {
        /// Where in its text, in characters from 1.
        at: usize,
        /// What is wrong there and what would be right.
        why: String,
    },
    /// A sum has more bits than the 128 there are for it.
    #[error("the sum of {what} has more than 128 bits: sum a smaller range at a time")]
    SumTooLarge {
        /// What was summed.
        what: &'static str,
    },
    /// A query asks for so many numbers that they do not fit the memory that it may take.
    #[error("the query has to keep more than {most} numbers: ask for a smaller range at a time, or let it keep more")]
    TooManyNumbers {
        /// How many it may keep: [`crate::query::Query::most_numbers`].
        most: u64,
    },
    /// A key longer than the engine keeps.
    #[error("the key has {len} bytes, the longest allowed has {max}: shorten it, or store a hash of it")]
    KeyTooLong {
        /// The key's length in bytes.
        len: usize,
        /// The longest allowed.
        max: usize,
    },
    /// A key whose length is not the one its table was created for.
    #[error("the key has {len} bytes, the keys of this table have exactly {expected}")]
    KeyLength {
        /// The key's length in bytes.
        len: usize,
        /// The length that the table takes.
        expected: usize,
    },
    /// The keys of a bulk load are not in ascending order.
    #[error(
        "entry {entry} of a bulk load has a key that is not above the one before: sort the entries, drop duplicates"
    )]
    Unsorted {
        /// How many entries came before it.
        entry: u64,
    },
    /// A value longer than the engine keeps.
    #[error("the value has {len} bytes, the longest allowed has {max}: split it")]
    ValueTooLong {
        /// The value's length in bytes.
        len: u64,
        /// The longest allowed.
        max: u64,
    },
    /// No table of that name.
    #[error("there is no table \"{table}\"")]
    NoTable {
        /// The name asked for.
        table: String,
    },
    /// A table of that name is there already.
    #[error("there is a table \"{table}\" already: drop or rename it first")]
    TableExists {
        /// The name asked for.
        table: String,
    },
    /// The table holds other types than the ones it was opened with.
    #[error("table \"{table}\" has {part} of type {found}, not {asked}: open it with its own types")]
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
    /// A text that says no value of its type.
    #[error("\"{text}\" is not {expected}: {why}")]
    Text {
        /// The text, cut short if it is long.
        text: String,
        /// What it was taken for, with the type's name: "a value of type u32".
        expected: String,
        /// What the text should have been.
        why: String,
    },
    /// Stored bytes that are no value of their table's type: a program wrote them under another type of that name.
    #[error("the stored bytes are not a value of type {type_name}: {what}; read the table as bytes to see them")]
    Encoding {
        /// The type's name.
        type_name: String,
        /// What is wrong with the bytes.
        what: &'static str,
    },
    /// Bytes given for a key or a value that are no encoding of the table's type.
    #[error("table \"{table}\" has {part} of type {type_name}, and the bytes given are none: {what}")]
    NotEncoded {
        /// The table.
        table: String,
        /// "keys" or "values".
        part: &'static str,
        /// The type's name.
        type_name: String,
        /// What is wrong with the bytes.
        what: &'static str,
    },
    /// A table is used in a way that its state does not allow.
    #[error("table \"{table}\": {why}")]
    TableState {
        /// The table.
        table: String,
        /// What stands in the way, and what to do.
        why: String,
    },
    /// The handle was opened read-only.
    #[error("the database is open read-only: open it for writing")]
    ReadOnly,
    /// A failure, or what opening found, left the handle unable to write. What was acknowledged before is safe and
    /// readable.
    #[error(
        "all writing was stopped ({cause}): what is committed stays readable; once the cause is mended, close the database and open it again, which recovers it"
    )]
    Poisoned {
        /// The first failure, in words.
        cause: String,
    },
    /// The cache is too small for what is being done at once.
    #[error("the cache of {frames} pages is in use by running operations: open the database with a larger cache")]
    CacheFull {
        /// How many pages it holds.
        frames: usize,
    },
    /// Open snapshots hold back more memory than is allowed. Nothing has changed; reading goes on.
    #[error(
        "{changes} entries that commits have replaced are kept in {bytes} bytes of memory for open snapshots, of at most {limit}; the oldest, of LSN {snapshot}, has held them back for {seconds} s: drop its reader and write again, or open the database with a larger version_memory"
    )]
    HeldBack {
        /// How many replaced entries are kept.
        changes: usize,
        /// The memory that they take, in bytes.
        bytes: usize,
        /// How much they may take.
        limit: usize,
        /// The oldest open snapshot.
        snapshot: Lsn,
        /// Since when it has held anything back, in seconds.
        seconds: u64,
    },
    /// All page ids are taken.
    #[error("the database has reached its {pages} pages: create it with a larger page size")]
    TooManyPages {
        /// The limit.
        pages: u64,
    },
}

impl fmt::Debug for Error {
    /// The same words as `Display`: a `main` that returns [`Result`] tells them, with what to do.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error {
    /// A corrupt page, in words.
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

    /// What is wrong, without the advice what to do about it that `to_string` gives as well: for reports that tell many
    /// errors, and give their advice once.
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
            Error::MissingLog { log, .. } => {
                format!("the log: {}.000001 and on is missing or belongs to another database", log.display())
            }
            Error::FormatVersion { path, found, supported } => {
                format!("{} has format version {found}, this program reads version {supported}", path.display())
            }
            other => {
                let told = other.to_string();
                told.strip_suffix(other.advice()).map_or(told.clone(), str::to_owned)
            }
        }
    }

    /// The failure that this error is, or that it tells as its cause: what an [`Error::Poisoned`] is to name.
    pub(crate) fn first_cause(&self) -> String {
        match self {
            Error::Poisoned { cause } => cause.clone(),
            other => other.to_string(),
        }
    }

    /// The end of an error's words, where they say what to do about it.
    fn advice(&self) -> &'static str {
        match self {
            Error::Full { .. } => ": free some space and try again; committed data stays readable",
            Error::Locked { .. } => ": close the other handle or process first",
            Error::NotFound { .. } => ": create it first",
            Error::Exists { .. } => ": open it, or remove it first",
            Error::NeedsRecovery { .. } => ": open it for writing once, which recovers it",
            Error::SumTooLarge { .. } => ": sum a smaller range at a time",
            Error::TooManyNumbers { .. } => ": ask for a smaller range at a time, or let it keep more",
            Error::KeyTooLong { .. } => ": shorten it, or store a hash of it",
            Error::ValueTooLong { .. } => ": split it",
            Error::Unsorted { .. } => ": sort the entries, drop duplicates",
            Error::TableExists { .. } => ": drop or rename it first",
            Error::TableType { .. } => ": open it with its own types",
            Error::Encoding { .. } => "; read the table as bytes to see them",
            Error::ReadOnly => ": open it for writing",
            Error::Poisoned { .. } => {
                ": what is committed stays readable; once the cause is mended, close the database and open it again, which recovers it"
            }
            Error::CacheFull { .. } => ": open the database with a larger cache",
            Error::HeldBack { .. } => {
                ": drop its reader and write again, or open the database with a larger version_memory"
            }
            Error::TooManyPages { .. } => ": create it with a larger page size",
            _ => "",
        }
    }

    /// Wraps an error of the operating system; a full device becomes [`Error::Full`].
    ///
    /// ```
    /// use duramen::Error;
    /// use std::io::ErrorKind;
    ///
    /// let full = Error::io("cannot write", "forest.duramen", ErrorKind::StorageFull.into());
    /// assert!(matches!(full, Error::Full { .. }));
    /// ```
    pub fn io(action: &'static str, path: impl Into<PathBuf>, source: std::io::Error) -> Error {
        let path = path.into();
        match source.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => Error::Full { path },
            _ => Error::Io { action, path, source },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One of each that ends with advice.
    fn advising() -> Vec<Error> {
        let (path, text) = (|| PathBuf::from("forest"), || "oak".to_owned());
        vec![
            Error::Full { path: path() },
            Error::Locked { path: path() },
            Error::NotFound { path: path() },
            Error::Exists { path: path() },
            Error::NeedsRecovery { path: path() },
            Error::SumTooLarge { what: "keys" },
            Error::TooManyNumbers { most: 7 },
            Error::KeyTooLong { len: 9, max: 8 },
            Error::ValueTooLong { len: 9, max: 8 },
            Error::Unsorted { entry: 7 },
            Error::TableExists { table: text() },
            Error::TableType { table: text(), part: "keys", found: text(), asked: text() },
            Error::Encoding { type_name: text(), what: "it is too short" },
            Error::ReadOnly,
            Error::Poisoned { cause: text() },
            Error::CacheFull { frames: 7 },
            Error::HeldBack { changes: 7, bytes: 9, limit: 8, snapshot: Lsn(7), seconds: 7 },
            Error::TooManyPages { pages: 7 },
        ]
    }

    #[test]
    fn advice_is_the_end_of_the_words_and_can_be_left_out() {
        for error in advising() {
            let (told, without) = (error.to_string(), error.without_advice());
            assert!(told.starts_with(&without) && without.len() < told.len(), "{told}: {without}");
        }
    }

    #[test]
    fn damage_is_told_by_its_place_and_without_advice() {
        let damaged = [
            (Error::corrupt(PageId(7), "it rots"), "page 7: it rots"),
            (Error::corrupt(PageId::UNKNOWN, "it rots"), "page unknown: it rots"),
            (Error::corrupt(PageId::NONE, "it rots"), "it rots"),
            (Error::CorruptMeta { what: "the catalog", why: "it rots".into() }, "the catalog: it rots"),
            (Error::CorruptLog { lsn: Lsn(7), what: "it rots".into() }, "the log: at LSN 7, it rots"),
            (
                Error::MissingLog { path: "forest".into(), log: "forest-log".into() },
                "the log: forest-log.000001 and on is missing or belongs to another database",
            ),
        ];
        for (error, words) in damaged {
            assert_eq!(error.without_advice(), words);
            assert!(error.to_string().contains("--skip-damaged"), "{error}");
        }
    }
}

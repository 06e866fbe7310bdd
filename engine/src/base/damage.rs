//! [`Damage`]: what [`Builder::open_damaged`](crate::Builder::open_damaged) found damaged. This file has the
//! descriptions only; `db::rescue` finds the damage and works around it.

use super::error::Error;
use super::ids::PageId;
use std::fmt;

/// Damage to what all else in a database hangs on, as [`Builder::open_damaged`](crate::Builder::open_damaged) finds it.
///
/// Which keys of a table are lost is told by [`ReadOnlyUntypedTable::salvage`](crate::db::ReadOnlyUntypedTable::salvage);
/// this says why, and what cannot be told by keys: commits that are missing, and tables that have lost their names.
///
/// ```
/// # use duramen::{Database, TableDef};
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("forest.duramen");
/// # Database::create(&path)?.close()?;
/// # let mut bytes = std::fs::read(&path)?;
/// # bytes[..8192].fill(0); // both superblocks
/// # std::fs::write(&path, bytes)?;
/// use duramen::db::Damage;
///
/// let (db, damage) = Database::builder().open_damaged(&path)?;
/// for damage in &damage {
///     match damage {
///         Damage::Log { cause } => println!("later commits are lost: {cause}"),
///         Damage::TableFound { table, named: false } => println!("which table was {table}?"),
///         other => println!("{other}"),
///     }
/// }
/// assert!(matches!(damage[0], Damage::Superblocks { .. }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Damage {
    /// Neither superblock can be read: nothing says any more where the page table is, and which log is the database's.
    Superblocks {
        /// What is wrong with them.
        cause: Error,
    },
    /// One of the two superblocks is damaged, and may have been the newer one. Nothing is lost by it that is not told by
    /// another damage.
    Superblock {
        /// Which one, 0 or 1.
        slot: usize,
    },
    /// Nothing of the page table can be read: pages were looked for in the whole file.
    PageTable {
        /// What is wrong with it.
        cause: Error,
    },
    /// A part of the page table cannot be read: its pages were looked for in the whole file.
    PageTablePart {
        /// The first of its pages.
        first: PageId,
        /// The last of its pages.
        last: PageId,
    },
    /// An allocation map, which says what pages are free: nothing is lost by it.
    Map {
        /// Its page.
        page: PageId,
        /// What is wrong with it.
        cause: Error,
    },
    /// Pages were looked for in the whole file. Of a page whose newest state is damaged as well, an older one is read, with
    /// entries that were changed or removed since.
    OlderPages,
    /// The log cannot be read, or from some place on: what was committed after it is lost, of all tables.
    Log {
        /// What is wrong with it: mostly [`Error::CorruptLog`], which says where, or [`Error::MissingLog`].
        cause: Error,
    },
    /// There is a log, and no superblock that says where it begins: what only the log has is lost.
    LogUnread,
    /// The log that can be read ends in the middle of a large transaction, a part of which is seen.
    LogTorn,
    /// The catalog is damaged in a part.
    Catalog {
        /// What is wrong with it.
        cause: Error,
    },
    /// An older copy of the catalog was found: names of tables may be older ones.
    CatalogOlder,
    /// A table that is not in what can be read of the catalog was found by its pages. It may have been dropped, where
    /// [`Damage::OlderPages`] is told as well.
    TableFound {
        /// The name that it has now.
        table: String,
        /// Whether its name and its types come from an old copy of the catalog. Otherwise they are lost.
        named: bool,
    },
    /// Inner pages of a table's tree are damaged; what they led to was found by its leaves. Nothing is lost by it.
    InnerPages {
        /// The table.
        table: String,
    },
    /// Inner pages of a table's tree are damaged, and its leaves do not fit together: what they led to is lost.
    Leaves {
        /// The table.
        table: String,
        /// What does not fit.
        cause: Error,
    },
}

impl Damage {
    /// The table that it is about, if it is about one.
    ///
    /// ```
    /// use duramen::db::Damage;
    ///
    /// assert_eq!(Damage::InnerPages { table: "trees".to_owned() }.table(), Some("trees"));
    /// assert_eq!(Damage::LogTorn.table(), None);
    /// ```
    pub fn table(&self) -> Option<&str> {
        match self {
            Damage::TableFound { table, .. } | Damage::InnerPages { table } | Damage::Leaves { table, .. } => {
                Some(table)
            }
            _ => None,
        }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Damage::Superblocks { cause } => of(f, "the superblock", cause),
            Damage::Superblock { slot } => write!(f, "superblock {slot}: it has not its checksum"),
            Damage::PageTable { cause } => of(f, "the page table", cause),
            Damage::PageTablePart { first, last } => {
                write!(f, "the page table: its part for pages {first} to {last} has not its checksum")
            }
            Damage::Map { cause, .. } => of(f, "the allocation map", cause),
            Damage::OlderPages => f.write_str(
                "pages were looked for in the whole file: of those whose newest state is lost, an older one is read",
            ),
            Damage::Log { cause } => of(f, "the log", cause),
            Damage::LogUnread => {
                f.write_str("the log: it cannot be read without a superblock, and what only it has is lost")
            }
            Damage::LogTorn => {
                f.write_str("the log: it ends in the middle of a large transaction, a part of which is seen")
            }
            Damage::Catalog { cause } => of(f, "the catalog", cause),
            Damage::CatalogOlder => f.write_str("the catalog: an older copy of it was found"),
            Damage::TableFound { table, named } => {
                let how = if *named { "" } else { ", its name and types are lost" };
                write!(f, "the catalog: table \"{}\" was found by its pages{how}", table.escape_debug())
            }
            Damage::InnerPages { table } => {
                let table = table.escape_debug();
                write!(f, "table \"{table}\": inner pages are damaged, what they led to was found by its leaves")
            }
            Damage::Leaves { table, cause } => {
                let (table, cause) = (table.escape_debug(), cause.without_advice());
                write!(f, "table \"{table}\": inner pages are damaged, and its leaves do not fit together: {cause}")
            }
        }
    }
}

/// What is wrong with `part`, which is named once.
fn of(f: &mut fmt::Formatter<'_>, part: &str, cause: &Error) -> fmt::Result {
    let words = cause.without_advice();
    match words.strip_prefix(part) {
        Some(rest) if rest.starts_with(':') => f.write_str(&words),
        _ => write!(f, "{part}: {words}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Lsn;

    #[test]
    fn each_part_is_named_once_and_no_advice_is_given() {
        let lost = Damage::Log { cause: Error::CorruptLog { lsn: Lsn(7), what: "it rots".into() } };
        assert_eq!(lost.to_string(), "the log: at LSN 7, it rots");
        let refused = Error::io("cannot read", "forest", std::io::ErrorKind::PermissionDenied.into());
        let lost = Damage::Log { cause: refused };
        assert!(lost.to_string().starts_with("the log: cannot read forest: "), "{lost}");
        let lost = Damage::Catalog { cause: Error::corrupt(PageId(7), "it rots") };
        assert_eq!(lost.to_string(), "the catalog: page 7: it rots");
    }
}

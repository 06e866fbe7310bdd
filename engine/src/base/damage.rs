//! [`Damage`]: what [`Builder::open_damaged`](crate::Builder::open_damaged) found damaged. This file has the
//! descriptions only; `db::check::rescue` finds the damage and works around it.

use super::error::Error;
use super::ids::PageId;
use std::fmt;

/// Damage to the structures of a database, as [`Builder::open_damaged`](crate::Builder::open_damaged) finds it.
///
/// [`ReadOnlyUntypedTable::salvage`](crate::db::ReadOnlyUntypedTable::salvage) returns the keys of a table that are
/// lost. This type says why, and describes losses other than keys: commits that are missing, and tables without names.
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
    /// Neither superblock can be read, so the places of the page table and of the log are unknown.
    Superblocks {
        /// The error of reading them.
        cause: Error,
    },
    /// One of the two superblocks is damaged, and may have been the newer one. Losses by it are in other items.
    Superblock {
        /// The number of the superblock, 0 or 1.
        slot: usize,
    },
    /// The page table cannot be read. The whole file was searched for pages.
    PageTable {
        /// The error of reading it.
        cause: Error,
    },
    /// A part of the page table cannot be read. The whole file was searched for its pages.
    PageTablePart {
        /// The first of its pages.
        first: PageId,
        /// The last of its pages.
        last: PageId,
    },
    /// A part of the map of slots of the page store `shadow` cannot be read. Both slots of its pages are read. If the
    /// device has lost the last write of such a page, an older state of the page is read.
    SlotMapPart {
        /// The first of its pages.
        first: PageId,
        /// The last of its pages.
        last: PageId,
    },
    /// An allocation map, which marks free pages, is damaged. Nothing is lost by it.
    Map {
        /// Its page.
        page: PageId,
        /// The error of reading it.
        cause: Error,
    },
    /// The whole file was searched for pages. If the newest state of a page is damaged as well, an older state is read,
    /// with entries that were changed or removed later.
    OlderPages,
    /// The log cannot be read, or not to its end. Later commits are lost in all tables.
    Log {
        /// The error of reading it: usually [`Error::CorruptLog`], with the position, or [`Error::MissingLog`].
        cause: Error,
    },
    /// There is a log, but no superblock that says where it begins. Commits that are only in the log are lost.
    LogUnread,
    /// The readable part of the log ends in the middle of a large transaction. Some of its changes are visible.
    LogTorn,
    /// A part of the catalog is damaged.
    Catalog {
        /// The error of reading it.
        cause: Error,
    },
    /// An older copy of the catalog is used. Names of tables may be out of date.
    CatalogOlder,
    /// A table that is not in the readable part of the catalog was found by its pages in the file. If there is also a
    /// [`Damage::OlderPages`], the table may have been dropped.
    TableFound {
        /// The name that it was given.
        table: String,
        /// Whether its name and its types come from an old copy of the catalog. Otherwise they are lost.
        named: bool,
    },
    /// Inner pages of the tree of a table are damaged. Its leaves were found in the file; nothing is lost by it.
    InnerPages {
        /// The table.
        table: String,
    },
    /// Inner pages of the tree of a table are damaged, and its leaves do not fit together. The pages below are lost.
    Leaves {
        /// The table.
        table: String,
        /// A description of the mismatch.
        cause: Error,
    },
}

impl Damage {
    /// The damaged table, if the damage is in one table.
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
            Damage::Superblock { slot } => write!(f, "superblock {slot}: its checksum is wrong"),
            Damage::PageTable { cause } => of(f, "the page table", cause),
            Damage::PageTablePart { first, last } => {
                write!(f, "the page table: the checksum of its part for pages {first} to {last} is wrong")
            }
            Damage::SlotMapPart { first, last } => write!(
                f,
                "the map of slots: its part for pages {first} to {last} is damaged; lost writes of these pages are not found"
            ),
            Damage::Map { cause, .. } => of(f, "the allocation map", cause),
            Damage::OlderPages => f.write_str(
                "the whole file was searched for pages: if the newest state of a page is lost, an older one is read",
            ),
            Damage::Log { cause } => of(f, "the log", cause),
            Damage::LogUnread => {
                f.write_str("the log: it cannot be read without a superblock; commits that are only in it are lost")
            }
            Damage::LogTorn => {
                f.write_str("the log: it ends in the middle of a large transaction; some of its changes are visible")
            }
            Damage::Catalog { cause } => of(f, "the catalog", cause),
            Damage::CatalogOlder => f.write_str("the catalog: an older copy of it is used"),
            Damage::TableFound { table, named } => {
                let how = if *named { "" } else { "; its name and types are lost" };
                write!(f, "the catalog: table \"{}\" was found by its pages{how}", table.escape_debug())
            }
            Damage::InnerPages { table } => {
                let table = table.escape_debug();
                write!(f, "table \"{table}\": inner pages are damaged; its leaves were found in the file")
            }
            Damage::Leaves { table, cause } => {
                let (table, cause) = (table.escape_debug(), cause.without_advice());
                write!(f, "table \"{table}\": inner pages are damaged, and its leaves do not fit together: {cause}")
            }
        }
    }
}

/// Writes the cause after the name of the damaged part, unless the cause begins with that name.
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

//! The one table of page stores: the number, the name and the implementation of each. [`StoreKind`] is generated from
//! it. A new store needs a line here, and a folder of its own with a type that implements [`StoreFormat`] and the
//! traits that [`PageStore`] joins.

use super::file::DatabaseFile;
use super::options::DeltaBlocks;
use super::page_store::PageStore;
use super::rescue::{OpenUnknown, PageSource, RescuedStore, SuperblockChoice, UnknownFile};
use super::shadow::ShadowStore;
use super::table::TableStore;
#[cfg(test)]
use super::tests::slots::SlotStore;
use crate::base::{Damage, Error, Result};
use crate::io::Disk;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use std::sync::Arc;

/// How a page store begins in a file, and how it is found there.
pub(super) trait StoreFormat: PageStore + Sized + 'static {
    /// See [`StoreKind::trailer`].
    const TRAILER: usize = 0;

    /// See [`StoreKind::reuses_ids`].
    const REUSES_IDS: bool = true;

    /// See [`StoreKind::compresses`].
    fn compresses(_page_size: usize) -> bool {
        true
    }

    /// See [`StoreKind::best_fill`].
    fn best_fill(_page_size: usize, fill: f32) -> f32 {
        fill
    }

    /// Returns the store's own bytes in the superblocks of a new database.
    fn header_of_new(_delta: DeltaBlocks, _disk: &dyn Disk) -> Vec<u8> {
        Vec::new()
    }

    /// Opens the store in a file. Writes nothing.
    ///
    /// # Errors
    /// [`Error::CorruptMeta`](crate::Error::CorruptMeta) if the store cannot find its pages.
    fn open(file: DatabaseFile) -> Result<Self>;

    /// Opens a file that has a superblock, and whose other parts may be damaged. `damage` has the damage found so far.
    fn rescue(
        file: DatabaseFile,
        superblock: SuperblockChoice,
        source: PageSource,
        damage: Vec<Damage>,
    ) -> Result<RescuedStore>;

    /// Searches a [part](super::rescue::PIECE) of a file for a page of this store. If there is one, returns how the
    /// store opens such a file without a superblock.
    fn find(_disk: &dyn Disk, _part: Range<u64>) -> Option<OpenUnknown> {
        None
    }

    /// Opens a file that has neither a superblock nor a page of any store. Only the default store is asked to.
    ///
    /// # Errors
    /// The cause in `file` if the file is not a database of this store.
    fn rescue_without_pages(file: UnknownFile<'_>) -> Result<RescuedStore> {
        Err(file.cause)
    }
}

macro_rules! page_stores {
    ($(
        $(#[doc = $doc:literal])* $(#[cfg($cfg:meta)])?
        $kind:ident $(($default:ident))? = $number:expr, $name:literal, $summary:literal => $store:ty;
    )*) => {
        /// How the file of a database keeps its pages. It is chosen when the database is created, with
        /// [`Builder::store`](crate::Builder::store).
        ///
        /// ```
        /// # let folder = tempfile::tempdir().unwrap();
        /// # let path = folder.path().join("forest.duramen");
        /// use duramen::{Database, db::StoreKind};
        ///
        /// Database::builder().store(StoreKind::Shadow).create(&path)?.close()?;
        /// assert_eq!(Database::open(&path)?.stats().store, Some(StoreKind::Shadow));
        /// # Ok::<(), duramen::Error>(())
        /// ```
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        #[non_exhaustive]
        #[repr(u32)]
        pub enum StoreKind {
            $($(#[doc = $doc])* $(#[cfg($cfg)])? $(#[$default])? $kind = $number,)*
        }

        impl StoreKind {
            /// All page stores.
            pub const ALL: &'static [StoreKind] = &[$($(#[cfg($cfg)])? StoreKind::$kind,)*];

            /// Its name.
            ///
            /// ```
            /// assert_eq!(duramen::db::StoreKind::Shadow.name(), "shadow");
            /// ```
            pub fn name(self) -> &'static str {
                match self {
                    $($(#[cfg($cfg)])? StoreKind::$kind => $name,)*
                }
            }

            /// A line about it, for lists of the page stores.
            pub fn summary(self) -> &'static str {
                match self {
                    $($(#[cfg($cfg)])? StoreKind::$kind => $summary,)*
                }
            }

            /// Whether it can compress the pages of a database that is created with pages of `page_size` bytes. If it
            /// cannot, the creation of a table with compression fails.
            ///
            /// ```
            /// use duramen::db::StoreKind;
            ///
            /// assert!(!StoreKind::Shadow.compresses(4096) && StoreKind::Shadow.compresses(8192));
            /// ```
            pub fn compresses(self, page_size: usize) -> bool {
                match self {
                    $($(#[cfg($cfg)])? StoreKind::$kind => <$store>::compresses(page_size),)*
                }
            }

            /// Bytes that the store keeps after each page. A page has this many bytes fewer than the page size that
            /// was given when the database was created.
            #[doc(hidden)]
            pub fn trailer(self) -> usize {
                match self {
                    $($(#[cfg($cfg)])? StoreKind::$kind => <$store>::TRAILER,)*
                }
            }

            /// Whether the id of a dropped page may be used again at once. Otherwise it may be used once the redo point
            /// is beyond the record that has freed the page, and after
            /// [`StoreWrites::discard_page`](super::StoreWrites::discard_page).
            #[doc(hidden)]
            pub fn reuses_ids(self) -> bool {
                match self {
                    $($(#[cfg($cfg)])? StoreKind::$kind => <$store>::REUSES_IDS,)*
                }
            }

            /// The best fill for the pages of a bulk load, near `fill`, a part of 1.
            pub(crate) fn best_fill(self, page_size: usize, fill: f32) -> f32 {
                match self {
                    $($(#[cfg($cfg)])? StoreKind::$kind => <$store>::best_fill(page_size, fill),)*
                }
            }

            /// See [`StoreFormat::header_of_new`].
            pub(super) fn header_of_new(self, delta: DeltaBlocks, disk: &dyn Disk) -> Vec<u8> {
                match self {
                    $($(#[cfg($cfg)])? StoreKind::$kind => <$store>::header_of_new(delta, disk),)*
                }
            }

            /// See [`StoreFormat::open`].
            pub(super) fn open(self, file: DatabaseFile) -> Result<Arc<dyn PageStore>> {
                match self {
                    $($(#[cfg($cfg)])? StoreKind::$kind => Ok(Arc::new(<$store>::open(file)?)),)*
                }
            }

            /// See [`StoreFormat::rescue`].
            pub(super) fn rescue(
                self,
                file: DatabaseFile,
                superblock: SuperblockChoice,
                source: PageSource,
                damage: Vec<Damage>,
            ) -> Result<RescuedStore> {
                match self {
                    $($(#[cfg($cfg)])? StoreKind::$kind => <$store>::rescue(file, superblock, source, damage),)*
                }
            }

            /// See [`StoreFormat::find`].
            pub(super) fn find(self, disk: &dyn Disk, part: Range<u64>) -> Option<OpenUnknown> {
                match self {
                    $($(#[cfg($cfg)])? StoreKind::$kind => <$store>::find(disk, part),)*
                }
            }

            /// See [`StoreFormat::rescue_without_pages`].
            pub(super) fn rescue_without_pages(self, file: UnknownFile<'_>) -> Result<RescuedStore> {
                match self {
                    $($(#[cfg($cfg)])? StoreKind::$kind => <$store>::rescue_without_pages(file),)*
                }
            }
        }
    };
}

// A file without superblocks is searched for pages of the stores in this order.
page_stores! {
    /// Has two slots for each page, at a fixed position, and writes them in turn; small changes of a page go to delta
    /// blocks ([`DeltaBlocks`](crate::db::DeltaBlocks)). It is for drives that compress, and for file systems with
    /// holes.
    Shadow = 2, "shadow", "Two slots for each page, written in turn, and delta blocks: for drives that compress"
        => ShadowStore;
    /// Writes each page without its free middle to a new place, and keeps a table of the places. The default.
    Table (default) = 1, "table", "A new place for each version of a page, without its free middle, and a table of the places"
        => TableStore;
    /// One slot a page, for the tests of [`PageStore`].
    #[cfg(test)]
    Slots = u32::MAX, "slots", "One slot for each page" => SlotStore;
}

impl fmt::Display for StoreKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// ```
/// use duramen::db::StoreKind;
///
/// assert_eq!("shadow".parse::<StoreKind>()?, StoreKind::Shadow);
/// # Ok::<(), duramen::Error>(())
/// ```
impl FromStr for StoreKind {
    type Err = Error;

    fn from_str(text: &str) -> Result<StoreKind> {
        StoreKind::ALL.iter().copied().find(|kind| kind.name() == text).ok_or_else(|| {
            let names: Vec<_> = StoreKind::ALL.iter().map(|kind| kind.name()).collect();
            Error::Option { option: "store", value: format!("\"{text}\""), expected: names.join(" or ") }
        })
    }
}

impl StoreKind {
    /// Its number in the superblock.
    #[doc(hidden)]
    pub fn tag(self) -> u32 {
        self as u32
    }

    /// The store of that number.
    #[doc(hidden)]
    pub fn of_tag(tag: u32) -> Option<StoreKind> {
        StoreKind::ALL.iter().copied().find(|kind| kind.tag() == tag)
    }

    /// Searches a part of a file for the first page of any store.
    pub(super) fn find_any(disk: &dyn Disk, part: Range<u64>) -> Option<OpenUnknown> {
        StoreKind::ALL.iter().find_map(|kind| kind.find(disk, part.clone()))
    }
}

//! The buffer pool, the page stores below it, and the trait between them.
//!
//! This layer knows the id and the LSN of a page, and whether its bytes are sound. It asks `page` two more questions.
//! The pool asks whether a page refers to other pages, because it keeps such pages longer. If there is no superblock,
//! the rescue asks which page size an allocation map names. This layer does not know keys, trees, transactions or the
//! records of the log.
//!
//! * `pool`: [`Pool`] keeps pages in memory.
//! * `page_store`: [`PageStore`], the trait of all page stores. `place_bytes`: a place, as the log carries it.
//! * `kinds`: the table of all page stores, [`StoreKind`].
//! * `changed`: [`ChangedParts`], the parts of a page that have changed since its base.
//! * `table`: the store that maps page ids to places in the file and writes every image to a new place.
//! * `shadow`: the store that has two slots for each page, writes them in turn, and writes small changes to delta
//!   blocks. It has no page table.
//! * `compress`: compression of pages on their way to the file.
//! * `options`: the options of a store, which are set when a database is created.
//! * `file`, `superblock`, `syncs`, `totals`: the file of a database, with its superblocks, its syncs and the counts of
//!   its writes, whatever store is in it.

mod changed;
mod compress;
mod file;
mod kinds;
mod options;
mod page_store;
mod place_bytes;
mod pool;
mod rescue;
mod shadow;
pub mod superblock;
mod syncs;
mod table;
#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use tests::slots::DROPS_FAIL;
mod totals;

pub use changed::ChangedParts;
pub use compress::{
    Compression, CompressionTotals, DICTIONARY_COPIES, DictionaryId, DictionaryPlace, MAX_DICTIONARIES, Overflow,
    PageCompression, PagePolicy, Places, Target, Trial,
};
pub(crate) use compress::{CompressionDictionary, Dictionary, sealed_dictionary, train};
pub use file::DatabaseFile;
pub use kinds::StoreKind;
pub use options::{DeltaBlocks, StoreOptions};
pub use page_store::{
    Base, CheckpointToken, FoundImage, PageStore, PageWriter, StoreCheckpoints, StoreCompression, StoreReads,
    StoreRedo, StoreRoom, StoreSetup, StoreStats, StoreSurvey, StoreWrites,
};
pub use place_bytes::PlaceBytes;
pub use pool::frame::{Pin, ReadGuard, WriteGuard};
pub use pool::prefetch::FrameDistance;
pub use pool::{Backing, Pool, PoolStats};
pub use rescue::{PageSource, RescuedStore, SuperblockChoice, open_damaged};
pub use superblock::{ID_SLACK, Meta};
pub use totals::WriteTotals;

/// The functions that the fuzz targets call. Nothing else may use them.
pub mod fuzzing {
    pub use super::compress::fuzzing::{activate, add_dictionary, frame, open_frame, sealed, trained};
    pub use super::shadow::fuzzing::reseal;
    pub use super::table::fuzzing::{open_image, page_table};
}

use crate::base::{Error, PageId, Result};
use crate::io::Disk;
use std::path::Path;
use std::sync::Arc;

/// Makes an empty store of a kind in an empty file and returns once it is durable. `path` is for messages only.
pub fn create(
    options: impl Into<StoreOptions>,
    disk: Arc<dyn Disk>,
    path: &Path,
    meta: Meta,
) -> Result<Arc<dyn PageStore>> {
    of_file(DatabaseFile::create(options.into(), disk, path, meta)?)
}

/// Opens the store that is in a file. Nothing is written.
///
/// # Errors
/// Those of [`superblock::choose`]; [`Error::CorruptMeta`] where the store cannot find its pages.
pub fn open(disk: Arc<dyn Disk>, path: &Path) -> Result<(Arc<dyn PageStore>, Meta)> {
    let file = match DatabaseFile::open(disk.clone(), path) {
        Err(Error::NotADatabase { .. }) if rescue::begins_with_pages(&*disk)? => {
            let why = "both copies are overwritten".to_owned();
            return Err(Error::CorruptMeta { what: "the superblock", why });
        }
        opened => opened?,
    };
    let meta = file.meta();
    Ok((of_file(file)?, meta))
}

/// The store that the superblock names.
fn of_file(file: DatabaseFile) -> Result<Arc<dyn PageStore>> {
    file.kind().open(file)
}

/// The error with the page id that was asked for, if the bytes name another one.
fn name(id: PageId, error: Error) -> Error {
    match error {
        Error::Corrupt { what, .. } => Error::Corrupt { page: id, what },
        other => other,
    }
}

//! Where pages live: the buffer pool, the seam below it, and the page stores.
//!
//! Nothing here knows what a page means beyond its id, its LSN and whether its bytes are sound, but for two things that
//! `page` is asked: whether it is an inner page, by the pool that keeps those longer, and which page size an allocation map
//! tells, by the rescue where no superblock does. Keys, trees, the log's records and transactions must never appear.
//!
//! * `pool`: [`Pool`] keeps pages in memory.
//! * `seam`: [`PageStore`], what the pool and all above it know of a store.
//! * `changed`: [`Changed`], the parts of a page that a store need not write again.
//! * `table`: `TableStore` maps page ids to places in the file and writes every image to a new place.
//! * `file`, `superblock`, `syncs`: what every store's file has: superblocks that are the database's, and one way to sync.

mod changed;
mod file;
mod pool;
mod rescue;
mod seam;
pub mod superblock;
mod syncs;
mod table;
#[cfg(test)]
mod tests;

pub use changed::Changed;
pub use file::DatabaseFile;
pub use pool::frame::{Pin, ReadGuard, WriteGuard};
pub use pool::prefetch::Ahead;
pub use pool::{Backing, Pool, PoolStats};
pub use rescue::{Believed, RescuedStore, Trust, open_damaged};
pub use seam::{Base, FoundImage, Frozen, PageStore, PageWriter, PlaceBytes, StoreKind, StoreStats};
pub use superblock::{ID_SLACK, Meta};
#[doc(hidden)]
pub use table::fuzzing;

use crate::base::{Error, Result};
use crate::io::Disk;
use std::path::Path;
use std::sync::Arc;
use table::TableStore;

/// Makes an empty store of a kind in an empty file and returns once it is durable. `path` is for messages only.
pub fn create(kind: StoreKind, disk: Arc<dyn Disk>, path: &Path, meta: Meta) -> Result<Arc<dyn PageStore>> {
    of_file(DatabaseFile::create(kind, disk, path, meta)?)
}

/// Opens the store that is in a file. Nothing is written.
///
/// # Errors
/// Those of [`superblock::choose`]; [`Error::CorruptMeta`] where the store cannot find its pages.
pub fn open(disk: Arc<dyn Disk>, path: &Path) -> Result<(Arc<dyn PageStore>, Meta)> {
    let file = match DatabaseFile::open(disk.clone(), path) {
        Err(Error::NotADatabase { .. }) if table::begins_with_images(&*disk)? => {
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
    Ok(match file.kind() {
        StoreKind::Table => Arc::new(TableStore::open(file)?),
        #[cfg(test)]
        StoreKind::Slots => Arc::new(tests::slots::SlotStore::open(file)?),
    })
}

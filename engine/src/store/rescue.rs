//! Opens a file whose superblocks or whose store are damaged, to read the pages that can still be read.

use super::file::DatabaseFile;
use super::superblock::{self, CurrentSuperblock, FRONT, Meta};
use super::{PageStore, StoreKind};
use crate::base::{Damage, Error, Lsn, Result};
use crate::io::{Disk, read_readable_parts};
use std::path::Path;
use std::sync::Arc;

/// A store that was opened with [`open_damaged`].
pub struct RescuedStore {
    /// The store.
    pub store: Arc<dyn PageStore>,
    /// The superblock's values; without a superblock, values for a database that was closed in order.
    pub meta: Meta,
    /// The superblock that has these values.
    pub superblock: SuperblockChoice,
    /// Pages were found by their images alone. The newest image of a page may be lost, and an older one be found.
    pub guessed: bool,
    /// Every page id is smaller.
    pub ids_end: u32,
    /// No LSN in `meta`, or of a page that was found by its image, is greater.
    pub last: Lsn,
    /// The damage found.
    pub damage: Vec<Damage>,
}

/// The superblock that is used if a file is damaged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SuperblockChoice {
    /// The newer one of two.
    Newest,
    /// The only one: the other is damaged, and may have been newer.
    Only,
    /// None: both are damaged.
    None,
}

/// A file without a superblock.
pub(super) struct UnknownFile<'a> {
    /// The file.
    pub(super) disk: Arc<dyn Disk>,
    /// The path of the file, for messages.
    pub(super) path: &'a Path,
    /// Bytes of a page, if the file does not tell.
    pub(super) page_size: usize,
    /// Why there is no superblock.
    pub(super) cause: Error,
}

/// Opens the store in a file without a superblock.
pub(super) type OpenUnknown = Box<dyn FnOnce(UnknownFile<'_>) -> Result<RescuedStore>>;

/// Bytes that are read at once to find pages in a file. No image of the `table` store crosses a border of such a part.
pub(super) const PIECE: usize = 1 << 20;

/// Whether the store's own structures are used to find pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PageSource {
    /// The structures are used as far as they are sound.
    Structures,
    /// They may be old and are not used. The newest image of each page is taken.
    Images,
}

/// Opens a file for reading as far as it can be read. `page_size` is used if neither a superblock nor an allocation map
/// names one.
///
/// # Errors
/// [`Error::FormatVersion`], [`Error::UnknownStore`]; [`Error::NotADatabase`] where there is no superblock and no image
/// either; errors of the device.
pub fn open_damaged(disk: Arc<dyn Disk>, path: &Path, page_size: usize, source: PageSource) -> Result<RescuedStore> {
    let mut front = vec![0; usize::try_from(disk.size()?.min(FRONT as u64)).unwrap_or(0)];
    read_readable_parts(&*disk, 0, &mut front);
    let current = match current_superblock(&front, path)? {
        Ok(current) => current,
        Err(cause) => {
            let found = find_pages(&*disk, disk.size()?);
            let file = UnknownFile { disk, path, page_size, cause };
            return match found {
                Some(open) => open(file),
                None => StoreKind::default().rescue_without_pages(file),
            };
        }
    };
    let file = DatabaseFile::of(disk, path, current);
    let damage: Vec<_> = file.damaged_superblock().map(|slot| Damage::Superblock { slot }).into_iter().collect();
    let superblock = if damage.is_empty() { SuperblockChoice::Newest } else { SuperblockChoice::Only };
    file.kind().rescue(file, superblock, source, damage)
}

/// The valid superblock, or why there is none. A superblock of another version of this program is an error of the
/// whole.
fn current_superblock(front: &[u8], path: &Path) -> Result<Result<CurrentSuperblock>> {
    match superblock::choose(front, path) {
        Err(error @ (Error::CorruptMeta { .. } | Error::NotADatabase { .. })) => Ok(Err(error)),
        Err(error @ Error::FormatVersion { .. }) if !superblock::is_of_another_version(front) => Ok(Err(error)),
        current => current.map(Ok),
    }
}

/// Searches the first bytes of a file for a page of any store. Returns how the store of that page opens the file.
fn find_pages(disk: &dyn Disk, end: u64) -> Option<OpenUnknown> {
    let mut starts = (0..end).step_by(PIECE);
    starts.find_map(|start| StoreKind::find_any(disk, start..end.min(start + PIECE as u64)))
}

/// True if there are pages where those of a database begin: a database whose superblocks are damaged.
pub(super) fn begins_with_pages(disk: &dyn Disk) -> Result<bool> {
    Ok(find_pages(disk, disk.size()?.min(PIECE as u64)).is_some())
}

/// A file with pages in it is a database, even without superblocks.
pub(super) fn without_path(error: Error) -> Error {
    match error {
        Error::NotADatabase { what, .. } => Error::CorruptMeta { what: "the superblock", why: what },
        other => other,
    }
}

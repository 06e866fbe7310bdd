//! Writes images of pages: puts them together, takes places for them, and enters these in the page table. Nothing is
//! synced here.

use super::image::ImageBatch;
use super::page_table::PageEntry;
use super::place::{GRAIN, Location};
use super::{TableStore, load};
use crate::base::{Error, PageId, Result};
use crate::io::BLOCK;
use crate::store::ChangedParts;
use crate::store::page_store::{Base, PageWriter};
use std::sync::atomic;

/// Why images are written: whether log records name their places.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Purpose {
    /// An ordinary flush: redo rebuilds the page if the image is lost, so that nothing needs to know its place before
    /// the next checkpoint.
    Flush,
    /// A page written outside the log: a record of the log will name its place, which must last until a checkpoint.
    Unlogged,
}

impl TableStore {
    pub(super) fn image_writer(&self) -> ImageWriter<'_> {
        let images = self.batches.lock().pop().unwrap_or_default();
        ImageWriter { store: self, images }
    }

    /// Writes images to new places, side by side as far as possible, and enters these in the page table. Nothing is
    /// synced. On an error some pages of the batch may have moved to their new images, and the others have not.
    pub(super) fn write_batch(&self, batch: &mut ImageBatch, purpose: Purpose) -> Result<()> {
        let unit = if self.persists.load(atomic::Ordering::Relaxed) { BLOCK } else { GRAIN };
        let _dictionaries_stay = self.compression.begin_batch();
        batch.seal(&self.compression, self.file.page_size(), unit);
        let most = self.longest_image();
        let mut sizes = Vec::with_capacity(batch.len());
        for (id, grains) in batch.sizes() {
            if u64::from(grains) > most {
                return Err(too_long(id));
            }
            sizes.push(grains);
        }
        self.load_chunks_of(batch.sizes().map(|(id, _)| id))?;
        self.write_to_new_places(batch, &sizes)?;
        let (mut entered, mut recompressed) = (0, 0);
        let all_entered = batch.locations().zip(batch.tried()).try_for_each(|((id, location), was_tried)| {
            let had_image = self.enter(id, location, purpose)?;
            entered += 1;
            recompressed += u64::from(was_tried && had_image);
            Ok(())
        });
        if recompressed > 0 {
            self.compression.note_recompressed(recompressed);
        }
        if let Err(error) = all_entered {
            let mut space = self.space.lock();
            batch.locations().skip(entered).for_each(|(_, at)| space.allocator.release(at.place.extent()));
            return Err(error);
        }
        self.compression.note_to_be_split(batch.to_be_split());
        if purpose == Purpose::Flush && self.persists.load(atomic::Ordering::Relaxed) {
            self.write_chunks_of(batch.locations().map(|(id, _)| id));
        }
        Ok(())
    }

    /// Enters an image in the page table. The locks are taken and released for each image, so that reads and commits do
    /// not wait for a whole batch. True: the page had an image before.
    fn enter(&self, id: PageId, location: Location, purpose: Purpose) -> Result<bool> {
        self.supersede(id, Some(PageEntry { location, fresh: purpose == Purpose::Flush, checked: true }))
    }
}

pub(super) fn too_long(id: PageId) -> Error {
    Error::corrupt(id, load::longer_than_a_page("its image"))
}

/// Images that are being put together.
pub(super) struct ImageWriter<'s> {
    store: &'s TableStore,
    pub(super) images: ImageBatch,
}

impl PageWriter for ImageWriter<'_> {
    fn push(&mut self, id: PageId, page: &[u8], _changed: ChangedParts) -> Base {
        self.images.push(id, page);
        Base::Moves
    }

    fn write(mut self: Box<Self>) -> Result<()> {
        self.store.write_batch(&mut self.images, Purpose::Flush)
    }
}

impl Drop for ImageWriter<'_> {
    fn drop(&mut self) {
        let mut images = std::mem::take(&mut self.images);
        images.clear();
        self.store.batches.lock().push(images);
    }
}

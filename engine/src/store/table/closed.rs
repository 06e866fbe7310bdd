//! Closes the store with a free map, and checks that the free map and the page table agree.
//!
//! An opening that finds a free map reads it and checks only the checksums of the chunks. Otherwise it decodes all
//! chunks: it keeps 16 MiB of them, and for every chunk a bitmap of 32 bytes with the pages that have an image. The
//! store uses the bitmaps to find the pages of transactions that did not commit, and drops them at the first
//! checkpoint.

use super::checkpoint::MAX_TOGETHER;
use super::directory::{Directory, FreeMapPlace};
use super::encoding::corrupt;
use super::free_map;
use super::load::{Reading, TableSource, describe_damage, load_table};
use super::place::{FIRST_GRAIN, GRAIN, grains_of};
use super::space::Space;
use super::{PageTableState, TableParts, TableStore};
use crate::base::checksum::checksum;
use crate::base::{Error, Result};
use crate::io::WriteKind;
use crate::store::superblock::Meta;

impl PageTableState {
    /// True if the last durable checkpoint, with this directory, has what is in memory, and every grain in use is its.
    fn is_durable(&self, space: &Space, directory: &Directory) -> bool {
        let is_settled = !self.table.is_edited() && self.captured.is_empty();
        let waiting =
            space.freed_at_next_checkpoint.len() + space.freed_at_this_checkpoint.len() + space.reserved.len();
        let locations = (0..self.table.chunks()).filter_map(|index| self.table.chunk_location(index));
        let parts: u64 =
            locations.chain(self.table.groups().iter().copied().flatten()).map(|at| at.place.grains()).sum();
        let named = FIRST_GRAIN + directory.extent().grains + parts + self.table.live();
        let is_sound = !space.allocator.has_released_twice() && named == space.allocator.used();
        is_settled && waiting == 0 && directory.len > 0 && is_sound
    }
}

impl TableStore {
    /// Writes the free map, and both superblocks, which name it.
    pub(super) fn close(&self, meta: Meta) -> Result<()> {
        let mut update = self.file.begin_update()?;
        let mut directory = Directory::decode(update.store_header())?;
        if directory.map.is_none() {
            directory.map = self.write_free_map(&directory)?;
            if let Err(error) = update.write(meta, directory.encode()) {
                // It is unknown whether the device has it.
                self.space.lock().freed_at_next_checkpoint.extend(directory.map.map(|map| map.extent()));
                return Err(error);
            }
        } else {
            update.write(meta, directory.encode())?;
        }
        // Both superblocks: a closed database has no log, so damage to a single one must not make it unreadable.
        update.write(meta, directory.encode())
    }

    /// Writes the free map that belongs to this directory, and syncs it. `None` if it cannot be written, or if the page
    /// table has changed since: then the next opening reads all of the page table.
    fn write_free_map(&self, directory: &Directory) -> Result<Option<FreeMapPlace>> {
        if self.damage.is_some() || self.found_damage.lock().is_some() || self.rescued {
            return Ok(None);
        }
        let mut bytes = {
            let (state, space) = (self.state.lock(), self.space.lock());
            if !state.is_durable(&space, directory) {
                return Ok(None);
            }
            free_map::encode(&space.allocator, state.table.pages(), state.table.live())
        };
        let (len, crc) = (bytes.len() as u64, checksum(&bytes));
        bytes.resize(bytes.len().next_multiple_of(GRAIN), 0);
        let Some(extent) = self.allocate(grains_of(bytes.len())) else { return Ok(None) };
        let written = self.reach(extent).and_then(|()| {
            let firsts = (extent.first..).step_by(MAX_TOGETHER / GRAIN);
            self.write_runs(WriteKind::Table, firsts.zip(bytes.chunks(MAX_TOGETHER)))
        });
        let synced = match written {
            // The database can be closed without a free map.
            Err(Error::Io { .. } | Error::Full { .. }) => {
                self.release_unused(std::iter::once(extent));
                return Ok(None);
            }
            written => written.and_then(|()| self.file.sync()),
        };
        if let Err(error) = synced {
            self.release_unused(std::iter::once(extent));
            return Err(error);
        }
        Ok(Some(FreeMapPlace { first: extent.first, len, crc }))
    }

    /// Reads the whole durable page table again: no other part of the file may use a place that it names. If there is a
    /// free map, it must say the same.
    pub(super) fn check_places(&self) -> Result<()> {
        // A rescue has reported what is wrong. After a sync that failed it is unknown what is durable.
        let Some(update) = (!self.rescued).then(|| self.file.begin_update().ok()).flatten() else { return Ok(()) };
        let (disk, page_size) = (self.file.disk(), self.file.page_size());
        let (high_water, directory) = (update.meta().high_water, Directory::decode(update.store_header())?);
        let source = TableSource { disk, page_size, high_water, directory };
        let mut all = TableParts::new(page_size);
        all.state.table.keep(0);
        if let Some(lost) = load_table(&source, &mut all, Reading::All)?.damaged.first() {
            return Err(corrupt(describe_damage(lost)));
        }
        if directory.map.is_some() {
            let mut mapped = TableParts::new(page_size);
            load_table(&source, &mut mapped, Reading::Mapped)?;
            let of_table = |parts: &TableParts| (parts.state.table.pages(), parts.state.table.live());
            if !mapped.space.allocator.regions().eq(all.space.allocator.regions())
                || of_table(&mapped) != of_table(&all)
            {
                return Err(corrupt("its free map and its chunks differ".into()));
            }
        }
        Ok(())
    }
}

//! Syncs and checkpoints, and trims of the slots and delta blocks that are not needed after them.

use super::log_ends::RECOVERY_STEP;
use super::slot::SlotIndex;
use super::states::ImageState;
use super::store_header::StoreHeader;
use super::{ShadowState, ShadowStore};
use crate::base::{Error, PageId, Result};
use crate::store::page_store::CheckpointToken;
use crate::store::superblock::Meta;
use parking_lot::MutexGuard;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// Pages whose slots are trimmed while no image can be written.
const TRIM_PAGES: usize = 64;

/// If trims take long, a checkpoint trims when one page in this many has something to be trimmed.
const TRIM_DIVISOR: u64 = 8;

impl ShadowStore {
    /// Makes all written images durable. Then it marks the images that they replace as not needed.
    pub(super) fn sync_images(&self) -> Result<()> {
        self.sync_written(&self.syncing.lock())
    }

    fn sync_written(&self, _alone: &MutexGuard<'_, ()>) -> Result<()> {
        let synced = std::mem::take(&mut self.state.lock().unsynced);
        let done = self.file.sync();
        let mut guard = self.state.lock();
        let state = &mut *guard;
        if done.is_err() {
            state.unsynced.extend(synced);
            return done;
        }
        // Written again since the sync began.
        let written: HashSet<PageId> = state.unsynced.iter().copied().collect();
        for id in synced.into_iter().filter(|id| !written.contains(id)) {
            state.note_synced(id);
        }
        Ok(())
    }

    /// Makes the images of all protected pages durable, if one of them is among `ids`. Call it before these pages are
    /// overwritten. The caller holds the lock of the generation, so that no page becomes protected meanwhile.
    pub(super) fn settle(&self, mut ids: impl Iterator<Item = PageId>) -> Result<()> {
        let protected: Vec<PageId> = {
            let state = self.state.lock();
            if !ids.any(|id| state.protected.contains(&id)) {
                return Ok(());
            }
            state.protected.iter().copied().collect()
        };
        self.file.sync()?;
        let mut state = self.state.lock();
        for id in protected {
            // Otherwise another sync has ended before, and the page may have been written again since.
            if state.protected.contains(&id) {
                state.note_synced(id);
            }
        }
        Ok(())
    }

    /// Writes both superblocks of a checkpoint once all images are durable.
    pub(super) fn finish(&self, token: CheckpointToken, meta: Meta) -> Result<()> {
        let mut update = self.file.begin_update()?;
        token.check_newest(self.state.lock().checkpoints)?;
        let alone = self.syncing.lock();
        let generation = {
            // The lock waits for the writes of the old generation, so that the sync includes all of its images.
            let mut generation = self.generation.write();
            let unsound: Vec<PageId> = self.state.lock().unsound.keys().copied().collect();
            self.mend_unsound(unsound.into_iter())?;
            let mut guard = self.state.lock();
            let state = &mut *guard;
            check_failed_writes(state)?;
            let first = state.synced_generation.max(state.log_ends.generation());
            if *generation >= first.saturating_add(RECOVERY_STEP - 1) {
                let cause = "too many checkpoints have failed".into();
                return Err(Error::Poisoned { cause });
            }
            *generation += 1;
            state.protected.extend(&state.unsynced);
            *generation
        };
        self.sync_written(&alone)?;
        drop(alone);
        check_failed_writes(&self.state.lock())?;
        let count = self.state.lock().pages.count();
        let (policies, dictionaries) = (self.compression.policies(), self.compression.dictionary_places());
        let header =
            StoreHeader { generation, count, dictionaries, policies, ..StoreHeader::decode(update.store_header())? };
        let header = header.encode();
        update.write(meta, header.clone())?;
        update.write(meta, header)?;
        {
            let mut state = self.state.lock();
            state.synced_generation = generation;
            state.in_log = HashSet::new();
            state.placed = HashMap::new();
        }
        drop(update);
        self.empty_unreadable_pages();
        if self.must_trim() {
            self.trim_all();
        }
        Ok(())
    }

    /// Empties the areas of the pages that a recovery could not read. The device may be able to read them again later,
    /// and then their slots have an old state.
    fn empty_unreadable_pages(&self) {
        let unreadable = std::mem::take(&mut self.state.lock().unreadable);
        for id in unreadable {
            let _no_image_is_written = self.generation.write();
            if self.state.lock().pages.get(id).image() == ImageState::Present {
                continue;
            }
            if let Err(cause) = self.empty(self.geometry.area_of(id)) {
                tracing::warn!(%cause, page = %id, "an old image of a page that is lost stays");
            }
        }
    }

    /// True if slots and blocks that are not needed are to be trimmed after this checkpoint. If trims take long, as in
    /// files, they wait until one page in [`TRIM_DIVISOR`] has something to be trimmed. Many of these pages are written
    /// again before that, to the slot that would have been trimmed.
    fn must_trim(&self) -> bool {
        let was_full = self.room.lock().take_full();
        let mut state = self.state.lock();
        state.sort_trims();
        was_full
            || self.file.disk().trims_cheaply()
            || state.trims.len() as u64 * TRIM_DIVISOR >= state.pages.count().pages
    }

    /// Trims all slots and blocks that are not needed.
    pub(super) fn trim_all(&self) {
        self.state.lock().sort_trims();
        while self.trim_some() {}
    }

    /// Trims what some pages do not need; false when nothing is left.
    fn trim_some(&self) -> bool {
        let _no_image_is_written = self.generation.write();
        let mut ranges = Vec::new();
        let more = {
            let mut guard = self.state.lock();
            let state = &mut *guard;
            let first = state.trims.len().saturating_sub(TRIM_PAGES);
            let ids = state.trims.split_off(first);
            ids.into_iter().for_each(|id| self.add_unneeded_ranges(state, id, &mut ranges));
            first > 0
        };
        for range in merged(ranges) {
            self.trim(range);
        }
        more
    }

    /// Trims a part of the file. If that fails, its bytes stay as they are.
    pub(super) fn trim(&self, range: Range<u64>) {
        if let Err(error) = self.file.disk().trim(range.start, range.end - range.start) {
            tracing::warn!(%error, "the device did not trim");
        }
    }

    /// Adds the ranges of a page that are not needed to `ranges`, and notes that the page no longer waits for a trim.
    fn add_unneeded_ranges(&self, state: &mut ShadowState, id: PageId, ranges: &mut Vec<Range<u64>>) {
        let now = state.pages.get(id);
        if !now.waits_for_trim() {
            return;
        }
        let area = self.geometry.area_of(id);
        let blocks = now.valid_deltas().blocks(self.geometry.deltas());
        let slot_area = self.geometry.slot_area(id, now.slot_index(), blocks);
        // The blocks of the slot in front of a short image.
        let unused = self.geometry.unused(id, now);
        match (now.image(), now.slot_index()) {
            (ImageState::Present, SlotIndex::First) => ranges.extend([unused, slot_area.end..area.end]),
            (ImageState::Present, SlotIndex::Second) => ranges.extend([area.start..slot_area.start, unused]),
            _ => ranges.push(area),
        }
        state.pages.set(id, now.trimmed());
    }
}

/// An error if a failed write may have damaged an image that was not synced. The log has the changes of this image, so
/// the log is needed until the page is written again. Nor may there be a part of a delta: after the checkpoint its
/// generation would say that it was durable, and a recovery would take it for damage.
///
/// The page is still changed in memory, so the next checkpoint writes it whole.
fn check_failed_writes(state: &ShadowState) -> Result<()> {
    let may_be_damaged = |id: &&PageId| {
        let now = state.pages.get(**id);
        now.image() == ImageState::Present && (!now.is_synced() || state.failed_deltas.contains(*id))
    };
    match state.failed.iter().find(may_be_damaged) {
        Some(id) => Err(Error::Poisoned { cause: format!("the last write of page {id} has failed") }),
        None => Ok(()),
    }
}

/// Ranges in order, those that touch as one.
fn merged(ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    let mut merged: Vec<Range<u64>> = Vec::with_capacity(ranges.len());
    for range in ranges.into_iter().filter(|range| !range.is_empty()) {
        match merged.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => merged.push(range),
        }
    }
    merged
}

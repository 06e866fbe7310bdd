//! A window on the keys of one page, for cursors: lists that build each key from the one before are walked once, not once
//! a key. What a cursor is must never be known here.

use super::keys::{Index, IntKey, Place};
use super::view::Page;
use crate::base::bytes;
use duramen_codec::MAX_BLOCK;

/// How many keys a window holds; of blocks one block.
const WINDOW: usize = 16;

/// Some keys around the one that was last asked for: for a cursor that goes from slot to slot of one page, either way.
#[derive(Clone, Default, Debug)]
pub struct KeyWindow {
    place: Place,
    /// The slot of the first key.
    first: usize,
    /// Where the keys end in `bytes`.
    ends: Vec<usize>,
    bytes: Vec<u8>,
}

impl KeyWindow {
    /// Forgets the page that it was used with: the next one may be another, or have changed.
    pub fn clear(&mut self) {
        self.ends.clear();
        self.place.clear();
    }

    /// Replaces `out` by the key image of `slot`, as [`Page::key_into`] does, and is quick about neighbours.
    #[inline]
    pub fn key_into(&mut self, page: Page<'_>, slot: usize, out: &mut Vec<u8>) {
        let many = page.keys().is_walked() || page.keys().key_len().is_some();
        if !many || slot >= page.count() || (slot == 0 && page.is_inner()) {
            return page.key_into(slot, out);
        }
        if slot < self.first || slot >= self.first + self.ends.len() {
            self.fill(page, slot);
        }
        let index = slot.saturating_sub(self.first);
        let from = index.checked_sub(1).map_or(0, |before| self.ends.get(before).copied().unwrap_or(0));
        let to = self.ends.get(index).copied().unwrap_or(0);
        out.clear();
        out.extend_from_slice(page.prefix());
        out.extend_from_slice(bytes::slice(&self.bytes, from, to));
    }

    /// Takes in the block of `slot`: it is decoded once and then read as often as need be.
    fn fill_block<T: IntKey>(&mut self, index: &Index<'_, T>, slot: usize) {
        let at = index.block_of_slot(slot);
        let mut keys = [T::default(); MAX_BLOCK];
        self.first = index.start(at);
        self.ends.clear();
        self.bytes.clear();
        for &key in index.decode(at, &mut keys) {
            index.push_key(key, &mut self.bytes);
            self.ends.push(self.bytes.len());
        }
    }

    /// Takes in the keys up to `slot` where the window comes from behind, those from `slot` on otherwise.
    fn fill(&mut self, page: Page<'_>, slot: usize) {
        if let Some(index) = page.blocks::<u32>() {
            return self.fill_block(&index, slot);
        }
        if let Some(index) = page.blocks::<u64>() {
            return self.fill_block(&index, slot);
        }
        let backwards = !self.ends.is_empty() && slot < self.first;
        let from = if backwards { (slot + 1).saturating_sub(WINDOW) } else { slot };
        let to = (from + WINDOW).min(page.count());
        let list = page.key_list();
        list.seek(&mut self.place, from);
        self.first = from;
        self.ends.clear();
        self.bytes.clear();
        while self.place.slot() < to {
            if !list.advance(&mut self.place) {
                break;
            }
            self.bytes.extend_from_slice(self.place.key());
            self.ends.push(self.bytes.len());
        }
    }
}

//! A window of keys of one page, for cursors. Some lists build each key from the one before; the window builds several
//! keys of such a list in one walk.

use super::keys::{AdjacentKeys, WalkPosition};
use super::view::Page;

/// The number of keys in a window. In a list of blocks a window holds one block.
const WINDOW: usize = 16;

/// Some keys around the last requested key. For a cursor that moves from slot to slot of one page in either direction.
#[derive(Clone, Default, Debug)]
pub struct KeyWindow {
    place: WalkPosition,
    /// The slot of the first key.
    first: usize,
    keys: AdjacentKeys,
}

impl KeyWindow {
    /// Clears the window. Required before the window is used with another page or after the page has changed.
    pub fn clear(&mut self) {
        self.first = 0;
        self.keys.clear();
        self.place.clear();
    }

    /// Returns the allocated memory in bytes.
    pub fn room(&self) -> usize {
        self.keys.room() + self.place.room()
    }

    /// Replaces `out` by the key image of `slot`, as [`Page::key_into`] does. Quick for neighbours of the last key.
    #[inline]
    pub fn key_into(&mut self, page: Page<'_>, slot: usize, out: &mut Vec<u8>) {
        let many = page.keys().is_walked() || page.keys().key_len().is_some();
        if !many || slot >= page.count() || (slot == 0 && page.is_inner()) {
            return page.key_into(slot, out);
        }
        self.fetch(page, slot);
        out.clear();
        out.extend_from_slice(self.get(slot));
    }

    /// Loads the key image of a leaf's `slot` with some of its neighbours, unless the window has it. Returns the first
    /// slot after `slot` that [`KeyWindow::get`] does not have.
    #[inline]
    pub fn fetch(&mut self, page: Page<'_>, slot: usize) -> usize {
        if slot < self.first || slot >= self.first + self.keys.len() {
            self.fill(page, slot);
        }
        self.first + self.keys.len()
    }

    /// Returns the key image of a slot that has been fetched; empty for any other slot.
    #[inline]
    pub fn get(&self, slot: usize) -> &[u8] {
        slot.checked_sub(self.first).map_or(&[], |index| self.keys.get(index))
    }

    /// Appends a whole key that is not in the page. Slots count from 0 since the window was cleared. [`KeyWindow::get`]
    /// returns the key. The window must not be used with a page until it is cleared.
    pub fn push(&mut self, key: &[u8]) {
        self.keys.push(key);
    }

    /// Loads the keys up to `slot` if the window moves backwards, those from `slot` on otherwise.
    #[inline(never)]
    fn fill(&mut self, page: Page<'_>, slot: usize) {
        if slot >= page.count() {
            self.first = slot;
            return self.keys.clear();
        }
        let list = page.key_list();
        if let Some(blocks) = list.blocks() {
            // A block is decoded once and then read as often as needed.
            self.keys.clear();
            self.first = blocks.add_block_to(&mut self.keys, slot);
            return;
        }
        let backwards = self.keys.len() > 0 && slot < self.first;
        let from = if backwards { (slot + 1).saturating_sub(WINDOW) } else { slot };
        let to = (from + WINDOW).min(page.count());
        self.first = from;
        self.keys.clear();
        list.add_to(&mut self.keys, page.prefix(), &mut self.place, from, to);
    }
}

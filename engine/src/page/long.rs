//! Searches one page for a whole key of any length. The page keeps an image of a long key, which begins with the first
//! bytes of the key.

use super::view::Page;
use crate::base::{bytes, limits};
use std::cmp::Ordering;

impl Page<'_> {
    /// Searches for a whole key that is longer than [`limits::long_key_head`], as [`Page::search`] does for an image.
    /// `full_key` writes the whole key of a slot to its buffer.
    ///
    /// Images compare bytewise only up to their tail. Entries that share the head of `key` are in the order of their
    /// whole keys, not of their images, so a bytewise search among them may return any slot. All other entries are in
    /// the order of their bytes. Searches for the head and for the first key after all keys with that head therefore
    /// find where these entries begin and end.
    ///
    /// # Errors
    /// Those of `full_key`.
    pub fn search_long<E>(
        &self,
        key: &[u8],
        mut full_key: impl FnMut(usize, &mut Vec<u8>) -> Result<(), E>,
    ) -> Result<Result<usize, usize>, E> {
        let head = bytes::slice(key, 0, limits::long_key_head(self.bytes().len()));
        let first = usize::from(self.is_inner());
        let position = |key: &[u8]| self.search(key).unwrap_or_else(|slot| slot);
        let mut low = position(head).max(first);
        let mut found = Vec::new();
        self.key_into(low, &mut found);
        if !found.starts_with(head) {
            return Ok(Err(low));
        }
        let mut high = bytes::after_prefix(head).map_or(self.count(), |key| position(&key));
        while low < high {
            let middle = low.midpoint(high);
            full_key(middle, &mut found)?;
            match found.as_slice().cmp(key) {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return Ok(Ok(middle)),
                Ordering::Greater => high = middle,
            }
        }
        Ok(Err(low))
    }

    /// Returns false if the whole key `key` is certainly outside the page's range. Two keys that agree in the head of
    /// an image count as in order, because only the separators could decide.
    #[inline]
    pub fn may_cover(&self, key: &[u8]) -> bool {
        let page_size = self.bytes().len();
        if key.len() <= limits::long_key_head(page_size) {
            return self.covers(key);
        }
        let head = bytes::slice(key, 0, limits::long_key_head(page_size));
        let mut upper = Vec::new();
        let tie = |fence: &[u8]| fence.len() > limits::max_inline_key(page_size) && fence.starts_with(head);
        let below = !self.upper_fence_into(&mut upper) || key < upper.as_slice() || tie(&upper);
        below && (self.lower_fence() <= key || tie(self.lower_fence()))
    }
}

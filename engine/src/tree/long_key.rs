//! Long keys: this file converts a whole key to an image with a run, and an image to a whole key. Key lists store
//! images and do not know this. Only this file looks inside an image.
//!
//! An image is `first bytes of the key | first run page u32 | length of the key u32 | checksum of the key u32`. It is
//! one byte longer than the longest inline key. The run has the rest of the key, in a chain of pages of kind 3. An
//! entry or separator owns its run. A fence that was made from a separator owns nothing, and its run may have been
//! freed. So a fence is never resolved; the separators on the path to its page are.

use super::{PageRead, PageWrite, Tree};
use crate::base::{Error, PageId, Result, bytes, checksum, limits};
use crate::page::{KeyListKind, Page, PageKind, run_capacity, run_page};

/// True if a key of this length is kept as an image, or if bytes of this length are an image.
pub(super) fn is_long(len: usize, page_size: usize) -> bool {
    len > limits::max_inline_key(page_size)
}

/// The maximum number of pages in the run of a long key.
pub(super) fn max_run_pages(page_size: usize) -> usize {
    limits::MAX_KEY.div_ceil(run_capacity(page_size).max(1))
}

/// The page after `page` in a run; `None` at the end of a run, and for a page of no run.
pub(super) fn run_after(page: &[u8]) -> Option<PageId> {
    let page = Page::new(page);
    Some(page.right()).filter(|right| page.kind() == PageKind::Run && !right.is_none())
}

/// The image of a long key with a run that begins at page `first`.
pub(super) fn image(key: &[u8], first: PageId, page_size: usize) -> Vec<u8> {
    let mut image = bytes::slice(key, 0, limits::long_key_head(page_size)).to_vec();
    image.extend(first.0.to_le_bytes());
    image.extend(bytes::u32_of(key.len()).to_le_bytes());
    image.extend(checksum::checksum(key).to_le_bytes());
    image
}

/// The part of a long key that is in its run.
pub(super) fn rest(key: &[u8], page_size: usize) -> &[u8] {
    key.get(limits::long_key_head(page_size)..).unwrap_or_default()
}

impl Tree {
    /// Writes the whole key of `slot` of a leaf or inner page to `out`. The caller holds the latch of the page, so the
    /// run cannot be freed. Slot 0 of an inner page has no key: the result is some key that is not greater than the
    /// keys of its child.
    pub fn full_key<S: PageRead>(&self, store: &S, page: Page<'_>, slot: usize, out: &mut Vec<u8>) -> Result<()> {
        self.image_into(store, page, slot, out)?;
        self.resolve_image(store, page, out)
    }

    /// True if a page with this list holds a key of `len` bytes whole and can compare it with every other key.
    #[inline(always)]
    pub(super) fn is_whole_in(&self, list: KeyListKind, len: usize, page_size: usize) -> bool {
        self.resolver_of(list).is_none() && len <= limits::long_key_head(page_size)
    }

    /// Replaces the image of a key of `page` by the whole key.
    pub(super) fn resolve_image<S: PageRead>(&self, store: &S, page: Page<'_>, key: &mut Vec<u8>) -> Result<()> {
        if is_long(key.len(), store.page_size()) {
            let image = std::mem::take(key);
            self.resolve(store, page.id(), &image, key)?;
        }
        Ok(())
    }

    /// Writes the whole key of `image` to `out`. `owner` is the page with the image.
    pub(super) fn resolve<S: PageRead>(&self, store: &S, owner: PageId, image: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let page_size = store.page_size();
        let head = limits::long_key_head(page_size);
        let (mut next, len) = (PageId(bytes::get_u32(image, head)), bytes::get_u32(image, head + 4) as usize);
        if !is_long(len, page_size) || len > limits::MAX_KEY {
            return Err(Error::corrupt(owner, format!("a long key of {len} bytes")));
        }
        out.clear();
        out.extend_from_slice(bytes::slice(image, 0, head));
        while out.len() < len {
            let run = self.run_part(store, owner, next)?;
            let part = Page::new(&run).payload();
            if part.is_empty() || part.len() > len - out.len() {
                return Err(Error::corrupt(next, format!("{} bytes in a run of a long key", part.len())));
            }
            out.extend_from_slice(part);
            next = Page::new(&run).right();
        }
        if !next.is_none() || checksum::checksum(out) != bytes::get_u32(image, head + 8) {
            return Err(Error::corrupt(owner, "the run of a long key does not have the bytes of the key"));
        }
        Ok(())
    }

    fn run_part<'s, S: PageRead>(&self, store: &'s S, owner: PageId, id: PageId) -> Result<S::Ref<'s>> {
        // The caller holds the latch of the owner. A second latch of the same page would wait forever.
        if id.is_none() || id == owner {
            return Err(Error::corrupt(owner, format!("a long key's run leads to page {id}")));
        }
        let run = store.read(id)?;
        let page = Page::new(&run);
        if page.kind() != PageKind::Run || page.table() != self.table {
            return Err(Error::corrupt(id, "expected the run of a long key, found another page"));
        }
        Ok(run)
    }

    /// The form of `key` in pages: the key itself, or its image. Writes the run of a long key.
    pub(super) fn store_key<S: PageWrite>(&self, store: &S, key: &[u8]) -> Result<Vec<u8>> {
        let page_size = store.page_size();
        if !is_long(key.len(), page_size) {
            return Ok(key.to_vec());
        }
        let mut next = PageId::NONE;
        // From the end, so that each page gets the id of the next one.
        for part in rest(key, page_size).chunks(run_capacity(page_size)).rev() {
            let (id, mut page) = store.create()?;
            self.format_page(store, &mut page, run_page(id, self.table, next, part))?;
            next = id;
        }
        Ok(image(key, next, page_size))
    }

    /// The pages of the run that `image` owns; none for an inline key.
    pub(super) fn run_pages<S: PageRead>(&self, store: &S, owner: PageId, image: &[u8]) -> Result<Vec<PageId>> {
        let page_size = store.page_size();
        let mut pages = Vec::new();
        if !is_long(image.len(), page_size) {
            return Ok(pages);
        }
        let head = limits::long_key_head(page_size);
        let (mut next, len) = (PageId(bytes::get_u32(image, head)), bytes::get_u32(image, head + 4) as usize);
        let most = len.min(limits::MAX_KEY).div_ceil(run_capacity(page_size).max(1));
        while !next.is_none() {
            if pages.len() >= most {
                return Err(Error::corrupt(owner, "a long key's run does not end"));
            }
            pages.push(next);
            next = Page::new(&self.run_part(store, owner, next)?).right();
        }
        Ok(pages)
    }

    /// `Ok(slot)` of the entry with the whole key `key`, or `Err(slot)` of the first entry with a greater key.
    #[inline]
    pub(super) fn locate<S: PageRead>(&self, store: &S, page: Page<'_>, key: &[u8]) -> Result<Result<usize, usize>> {
        if let Some(heap) = self.resolver(page) {
            return heap.locate(store, page, key);
        }
        if key.len() <= limits::long_key_head(store.page_size()) {
            return Ok(page.search(key));
        }
        self.locate_long(store, page, key)
    }

    /// Not inlined, because its code would slow down each search for a short key.
    #[cold]
    fn locate_long<S: PageRead>(&self, store: &S, page: Page<'_>, key: &[u8]) -> Result<Result<usize, usize>> {
        page.search_long(key, |slot, out| self.full_key(store, page, slot, out))
    }
}

/// An image for a test whether a key of this size fits. It is never in an operation of the log.
pub(super) fn trial_image(key: &[u8], page_size: usize) -> Vec<u8> {
    if is_long(key.len(), page_size) { image(key, PageId(u32::MAX), page_size) } else { key.to_vec() }
}

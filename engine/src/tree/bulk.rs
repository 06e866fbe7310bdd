//! Bulk load: builds a tree bottom-up from sorted entries. Each page is written once, filled to a given part, and its
//! content is not logged. The caller makes the pages reachable by formatting the root with the returned content.

use super::edit::child_record;
use super::insert::check_entry;
use super::key_heap::too_long;
use super::long_key::{image, is_long, rest, trial_image};
use super::{Tree, TreeLayout};
use crate::base::{Error, PageId, Result, TableId, bytes};
use crate::page::{
    KeyListKind, KeyPlace, PageBuilder, Record, SeparatorRule, heap_number, heap_page_builder, out_of_line_image,
    run_capacity, run_page,
};
use std::collections::VecDeque;

/// The destination of the pages of a bulk load.
pub trait BulkSink {
    /// Allocates a page.
    fn allocate(&mut self) -> Result<PageId>;
    /// Writes the packed content of a page. Each allocated page is written once, in any order.
    fn write(&mut self, id: PageId, packed: &[u8]) -> Result<()>;
    /// Writes the pages that [`BulkSink::write`] has kept back. It is called once, after the last page except the root.
    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
    /// The part of its usual bytes to which the next leaf is filled, above 0 and up to 1. It may change after each
    /// write.
    fn leaf_part(&self) -> f32 {
        1.0
    }
}

/// The result of a bulk load.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BulkResult {
    /// The packed content of the root. A `Format` of the root with it makes the other pages reachable.
    pub root: Vec<u8>,
    /// The number of entries in the leaves.
    pub entries: u64,
    /// The number of pages written, with the runs of keys and without the root.
    pub pages: u64,
    /// The level of the root.
    pub level: u8,
}

/// Builds a tree from sorted entries.
#[derive(Debug)]
pub struct BulkLoader<K> {
    sink: K,
    page_size: usize,
    /// The tree. Its root id is not set: only `finish` gets it.
    tree: Tree,
    /// The number of bytes that a page is filled to.
    target: usize,
    levels: Vec<Level>,
    /// The page of the key heap under construction, if leaves keep their keys there.
    heap: Option<(PageId, PageBuilder)>,
    /// The lowest level that the loader builds. It is 1 if the leaves exist already.
    bottom: usize,
    last: Option<Vec<u8>>,
    entries: u64,
    pages: u64,
}

/// The page under construction at one level. Its entries wait until its upper fence is known, because the fences
/// determine the prefix that the page can cut off.
#[derive(Debug, Default)]
struct Level {
    /// The lower fence, as an image.
    lower: Vec<u8>,
    /// The page id, if the page before needed it for its right link.
    id: Option<PageId>,
    /// Keys and records. `start` is subtracted from the positions in `entries` to get positions in `bytes`.
    bytes: Vec<u8>,
    start: usize,
    entries: VecDeque<BulkEntry>,
    /// The bytes of all keys and of all records in `entries`, and a lower bound of their bytes in a key list.
    key_bytes: usize,
    record_bytes: usize,
    least_bytes: usize,
    /// The number of pages of this level that are written.
    written: u64,
}

#[derive(Clone, Debug)]
struct BulkEntry {
    /// The position of the key image. The record follows it.
    at: usize,
    key_len: usize,
    record_len: usize,
    /// A lower bound of the bytes in a key list, if another entry is before it.
    least: usize,
    large: bool,
    /// The whole key, if the leaf does not have it: a long key, or a key out of line.
    whole: Option<Box<[u8]>>,
}

impl Level {
    /// Adds an entry. `inner`: the pages of the level are inner pages.
    fn push(&mut self, keys: KeyListKind, inner: bool, key: &[u8], record: Record<'_>, whole: Option<Box<[u8]>>) {
        let before = self.entries.len().checked_sub(1).map_or(&[][..], |before| self.key(before));
        let least = keys.least_entry_bytes(key.len(), bytes::common_prefix(before, key), inner);
        let (at, key_len, record_len) = (self.start + self.bytes.len(), key.len(), record.bytes.len());
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(record.bytes);
        self.key_bytes += key_len;
        self.record_bytes += record_len;
        self.least_bytes += least;
        self.entries.push_back(BulkEntry { at, key_len, record_len, least, large: record.large, whole });
    }

    fn slice(&self, at: usize, len: usize) -> &[u8] {
        let at = at.saturating_sub(self.start);
        bytes::slice(&self.bytes, at, at + len)
    }

    fn key(&self, index: usize) -> &[u8] {
        self.entries.get(index).map_or(&[], |entry| self.slice(entry.at, entry.key_len))
    }

    /// The whole key in a leaf, the image in an inner page.
    fn whole(&self, index: usize) -> &[u8] {
        self.entries.get(index).and_then(|entry| entry.whole.as_deref()).unwrap_or(self.key(index))
    }

    fn record(&self, index: usize) -> Record<'_> {
        let Some(entry) = self.entries.get(index) else { return Record::default() };
        Record { bytes: self.slice(entry.at + entry.key_len, entry.record_len), large: entry.large }
    }

    /// A lower bound of the bytes that the entries take in a page. If it is greater than a page, the entries do not fit
    /// in one page.
    fn least_bytes(&self, keys: KeyListKind) -> usize {
        if keys.key_len().is_some() {
            // For a list of blocks, only the size of the block index is certain. A page cannot have more entries than
            // its 16-bit count allows.
            let index = self.entries.len() / 32;
            return if self.entries.len() > usize::from(u16::MAX) { usize::MAX } else { index + self.record_bytes };
        }
        let first = self.entries.front().map_or(0, |first| first.least);
        let mut least = self.least_bytes.saturating_sub(first);
        if keys.cuts_prefix() && !keys.is_walked() {
            let last = self.key(self.entries.len().saturating_sub(1));
            let prefix = bytes::common_prefix(&self.lower, last);
            least = least.max(self.key_bytes.saturating_sub(prefix * self.entries.len()));
        }
        least + self.record_bytes
    }

    /// Removes the first `count` entries. The page now begins at `lower`.
    fn advance(&mut self, count: usize, lower: Vec<u8>, id: Option<PageId>) {
        let end = self.start + self.bytes.len();
        let cut = self.entries.get(count).map_or(end, |entry| entry.at);
        self.bytes.drain(..cut - self.start);
        self.start = cut;
        for entry in self.entries.drain(..count.min(self.entries.len())) {
            self.key_bytes -= entry.key_len;
            self.record_bytes -= entry.record_len;
            self.least_bytes -= entry.least;
        }
        self.lower = lower;
        self.id = id;
        self.written += 1;
    }
}

/// The fewest entries of a page that is not the last one of its level. That number always fits. If inner pages had one
/// child each, a level would be as large as the level below it.
fn least(height: usize) -> usize {
    if height == 0 { 1 } else { 2 }
}

impl<K: BulkSink> BulkLoader<K> {
    /// A loader for a tree of `table` with this layout, in pages of `page_size` bytes. `fill` is the part of a page
    /// that is filled, from 0.1 to 1; other values are changed to the nearest of these.
    pub fn new(sink: K, page_size: usize, layout: TreeLayout, table: TableId, fill: f32) -> BulkLoader<K> {
        // The product is between 100 and 1000, so the cast loses only the fraction.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let thousandths = (fill.clamp(0.1, 1.0) * 1000.0) as usize;
        let tree = Tree { root: PageId::NONE, table, layout };
        let target = page_size * thousandths / 1000;
        let levels = vec![Level::default()];
        BulkLoader { sink, page_size, tree, target, levels, heap: None, bottom: 0, last: None, entries: 0, pages: 0 }
    }

    /// Appends an existing leaf. The loader must not get entries then. `lower` is the lower fence of the leaf or the
    /// image of its first key, and is empty for the leftmost leaf.
    pub(super) fn push_leaf(&mut self, lower: &[u8], leaf: PageId) -> Result<()> {
        self.bottom = 1;
        self.add(1, lower, Record::inline(&child_record(leaf)), None)
    }

    /// Appends an entry. Its key must be greater than the one before.
    ///
    /// # Errors
    /// `Error::Unsorted` if it is not; the errors of [`Tree::put`]; the errors of the sink.
    pub fn push(&mut self, key: &[u8], record: Record<'_>) -> Result<()> {
        check_entry(self.page_size, key, record)?;
        self.check_order(key)?;
        self.entries += 1;
        self.add_entry(key, record)?;
        let last = self.last.get_or_insert_default();
        last.clear();
        last.extend_from_slice(key);
        Ok(())
    }

    /// Fails if `key` is not greater than the key before.
    ///
    /// # Errors
    /// `Error::Unsorted`.
    pub fn check_order(&self, key: &[u8]) -> Result<()> {
        match &self.last {
            Some(last) if last.as_slice() >= key => Err(Error::Unsorted { entry: self.entries }),
            _ => Ok(()),
        }
    }

    fn add_entry(&mut self, key: &[u8], record: Record<'_>) -> Result<()> {
        let leaf = self.tree.layout.leaf;
        if self.tree.keys_are_out_of_line() {
            let stored = self.store_key(key)?;
            let place = self.put_in_heap(&stored)?;
            let image = out_of_line_image(leaf, self.last.as_deref().unwrap_or_default(), key, None, place);
            self.add(0, &image, record, Some(key.into()))
        } else if is_long(key.len(), self.page_size) {
            let stored = self.store_key(key)?;
            self.add(0, &stored, record, Some(key.into()))
        } else {
            self.add(0, key, record, None)
        }
    }

    /// Adds the image of a key to the heap page under construction, or to a new one if it is full.
    fn put_in_heap(&mut self, image: &[u8]) -> Result<KeyPlace> {
        loop {
            if let Some((id, builder)) = &mut self.heap {
                let place = u16::try_from(builder.count()).ok().map(|number| KeyPlace { page: *id, number });
                if let Some(place) = place
                    && builder.push(&heap_number(place.number), Record::inline(image))
                {
                    return Ok(place);
                }
                if builder.count() == 0 {
                    return Err(too_long(*id));
                }
            }
            self.write_heap_page()?;
            let id = self.sink.allocate()?;
            self.heap = Some((id, heap_page_builder(self.page_size, id, self.tree.table)));
        }
    }

    fn write_heap_page(&mut self) -> Result<()> {
        self.heap.take().map_or(Ok(()), |(id, builder)| self.write(id, &builder.finish()))
    }

    /// Like [`BulkLoader::push_leaf`], with a whole key.
    pub(super) fn push_leaf_from(&mut self, lower: &[u8], leaf: PageId) -> Result<()> {
        let lower = self.store_key(lower)?;
        self.push_leaf(&lower, leaf)
    }

    /// Writes the remaining pages. `root` is the page that the caller formats with the content of the root.
    pub fn finish(mut self, root: PageId) -> Result<BulkResult> {
        self.write_heap_page()?;
        let mut height = self.bottom;
        loop {
            let level = u8::try_from(height).map_err(|_| Error::corrupt(root, "a bulk load of too many levels"))?;
            while !self.is_one_page(height) {
                self.flush(height)?;
            }
            let Some(count) =
                self.levels.get(height).filter(|level| level.written > 0).map(|level| level.entries.len())
            else {
                let packed = self.build(height, self.len(height), None, root, PageId::NONE);
                let root = packed.ok_or_else(|| Error::corrupt(root, "the entries of a root do not fit in it"))?;
                self.sink.finish()?;
                return Ok(BulkResult { root, entries: self.entries, pages: self.pages, level });
            };
            self.write_page(height, count, false)?;
            height += 1;
        }
    }

    fn len(&self, height: usize) -> usize {
        self.levels.get(height).map_or(0, |level| level.entries.len())
    }

    fn is_one_page(&self, height: usize) -> bool {
        let Some(level) = self.levels.get(height) else { return true };
        self.fitting(height, None) == level.entries.len()
    }

    fn add(&mut self, height: usize, key: &[u8], record: Record<'_>, whole: Option<Box<[u8]>>) -> Result<()> {
        if self.levels.len() == height {
            // The leftmost page of a new level has an empty lower fence.
            self.levels.push(Level::default());
        }
        let layout = self.tree.layout;
        let keys = if height == 0 { layout.leaf } else { layout.inner };
        let Some(level) = self.levels.get_mut(height) else { return Ok(()) };
        level.push(keys, height > 0, key, record, whole);
        while self.levels.get(height).is_some_and(|level| level.least_bytes(keys) > self.page_size) {
            self.flush(height)?;
        }
        Ok(())
    }

    /// Writes one page of the entries at `height`. They must be more than fit in one page.
    fn flush(&mut self, height: usize) -> Result<()> {
        let last = self.len(height).saturating_sub(1);
        // The separator will not be greater than the last key, so the common prefix will not be shorter than with the
        // last key as the upper fence.
        let lowest = self.levels.get(height).map(|level| self.fence(level, last)).unwrap_or_default();
        let mut count = self.fitting(height, Some(&lowest)).clamp(least(height).min(last.max(1)), last.max(1));
        // With the separator at `count`, the common prefix may be longer, so more entries may fit.
        for _ in 0..4 {
            let more = self.refill(height, count).clamp(least(height).min(last.max(1)), last.max(1));
            if more <= count {
                break;
            }
            count = more;
        }
        count = self.shortest_separator(height, count);
        self.write_page(height, count, true)
    }

    /// The number of entries that fit, estimated from the bytes that `count` entries take under their own separator.
    fn refill(&self, height: usize, count: usize) -> usize {
        let Some(level) = self.levels.get(height) else { return count };
        let separator = self.separator(level, height, count);
        let trial = if is_long(separator.len(), self.page_size) { self.fence(level, count) } else { separator };
        let mut builder = self.builder(height, Some(&trial), PageId::NONE, PageId::NONE);
        let front = builder.used();
        let target = self.target_at(height);
        if !self.fill(&mut builder, level, count) || builder.used() <= front || target <= front {
            return count;
        }
        let guess = count * (target - front) / (builder.used() - front);
        let guess = guess.min(level.entries.len().saturating_sub(1));
        let trial = self.fence(level, guess);
        let mut builder = self.builder(height, Some(&trial), PageId::NONE, PageId::NONE);
        let fits = guess > count && self.fill(&mut builder, level, guess) && builder.used() <= target;
        if fits { guess } else { count }
    }

    /// The number of bytes to which a page is filled.
    fn target_at(&self, height: usize) -> usize {
        if height > 0 {
            return self.target;
        }
        let part = self.sink.leaf_part().clamp(0.1, 1.0);
        // The product is not greater than a page, so the cast loses only the fraction.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
        let target = (self.target as f32 * part) as usize;
        target
    }

    /// The image of an entry's key as a fence.
    fn fence(&self, level: &Level, index: usize) -> Vec<u8> {
        let whole = level.entries.get(index).and_then(|entry| entry.whole.as_deref());
        whole.map_or_else(|| level.key(index).to_vec(), |whole| trial_image(whole, self.page_size))
    }

    /// The number of entries that fit in one page, up to the target, under this upper fence. At least [`least`].
    fn fitting(&self, height: usize, upper: Option<&[u8]>) -> usize {
        let Some(level) = self.levels.get(height) else { return 0 };
        let target = self.target_at(height);
        let mut builder = self.builder(height, upper, PageId::NONE, PageId::NONE);
        for index in 0..level.entries.len() {
            if !builder.push(level.key(index), level.record(index)) {
                return index;
            }
            if builder.used() > target && index >= least(height) {
                return index;
            }
        }
        level.entries.len()
    }

    fn fill(&self, builder: &mut PageBuilder, level: &Level, count: usize) -> bool {
        (0..count).all(|index| builder.push(level.key(index), level.record(index)))
    }

    fn builder(&self, height: usize, upper: Option<&[u8]>, id: PageId, right: PageId) -> PageBuilder {
        let lower = self.levels.get(height).map_or(&[][..], |level| &level.lower);
        let level = u8::try_from(height).unwrap_or(u8::MAX);
        PageBuilder::new(self.page_size, &self.tree.spec(id, level, lower, upper, right))
    }

    /// The position, among those in the last sixteenth up to `count`, with the shortest separator.
    fn shortest_separator(&self, height: usize, count: usize) -> usize {
        let Some(level) = self.levels.get(height) else { return count };
        if self.tree.layout.separators == SeparatorRule::Full {
            return count;
        }
        let first = (count - count / 16).max(least(height)).min(count);
        let len = |cut: &usize| match height {
            0 => bytes::common_prefix(level.whole(cut - 1), level.whole(*cut)) + 1,
            _ => level.key(*cut).len(),
        };
        // The last one of the shortest.
        (first..=count).rev().min_by_key(len).unwrap_or(count)
    }

    /// The separator before entry `count`. In a leaf it is a whole key, in an inner page the image of the key that
    /// moves up.
    fn separator(&self, level: &Level, height: usize, count: usize) -> Vec<u8> {
        let mut separator = level.whole(count).to_vec();
        let long = is_long(separator.len(), self.page_size);
        if height == 0 && (long || self.tree.layout.separators != SeparatorRule::Full) {
            let common = bytes::common_prefix(level.whole(count.saturating_sub(1)), &separator);
            separator.truncate(common + 1);
        }
        separator
    }

    fn build(&self, height: usize, count: usize, upper: Option<&[u8]>, id: PageId, right: PageId) -> Option<Vec<u8>> {
        let level = self.levels.get(height)?;
        let mut builder = self.builder(height, upper, id, right);
        (self.fill(&mut builder, level, count) && builder.fits()).then(|| builder.finish())
    }

    /// Writes a page of the first `count` entries, or of fewer if the separator needs the space, and adds its entry to
    /// the level above. `more`: other entries follow.
    fn write_page(&mut self, height: usize, count: usize, more: bool) -> Result<()> {
        let id = match self.levels.get(height).and_then(|level| level.id) {
            Some(id) => id,
            None => self.sink.allocate()?,
        };
        let lower = self.levels.get(height).map(|level| level.lower.clone()).unwrap_or_default();
        let next = if more && height == 0 { Some(self.sink.allocate()?) } else { None };
        let right = next.unwrap_or(PageId::NONE);
        let mut written = None;
        for count in (least(height).min(count)..=count).rev() {
            let Some(level) = self.levels.get(height) else { break };
            let separator = more.then(|| self.separator(level, height, count));
            let trial = separator.as_deref().map(|key| self.trial(height, key));
            if self.build(height, count, trial.as_deref(), id, right).is_none() {
                continue;
            }
            let separator = match separator {
                Some(key) if height == 0 => Some(self.store_key(&key)?),
                other => other,
            };
            written = self.build(height, count, separator.as_deref(), id, right).map(|page| (page, count, separator));
            break;
        }
        let Some((packed, count, separator)) = written else {
            return Err(Error::corrupt(id, "one entry does not fit in a page"));
        };
        self.write(id, &packed)?;
        if let Some(level) = self.levels.get_mut(height) {
            level.advance(count, separator.unwrap_or_default(), next);
        }
        self.add(height + 1, &lower, Record::inline(&child_record(id)), None)
    }

    fn trial(&self, height: usize, key: &[u8]) -> Vec<u8> {
        if height == 0 { trial_image(key, self.page_size) } else { key.to_vec() }
    }

    fn write(&mut self, id: PageId, packed: &[u8]) -> Result<()> {
        self.pages += 1;
        self.sink.write(id, packed)
    }

    /// The form of `key` in pages. Writes the run of a long key.
    fn store_key(&mut self, key: &[u8]) -> Result<Vec<u8>> {
        if !is_long(key.len(), self.page_size) {
            return Ok(key.to_vec());
        }
        let mut next = PageId::NONE;
        for part in rest(key, self.page_size).chunks(run_capacity(self.page_size)).rev() {
            let id = self.sink.allocate()?;
            self.write(id, &run_page(id, self.tree.table, next, part))?;
            next = id;
        }
        Ok(image(key, next, self.page_size))
    }
}

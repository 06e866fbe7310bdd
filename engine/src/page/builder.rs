//! Builds the content of a new tree page, entry by entry. The caller ensures that entries are in order and within the
//! fences; `Page::check` verifies both.

use super::header::{self, NO_UPPER, PageKind};
use super::keys::{KeyListBuilder, KeyListKind, KeyWalk, granule};
use super::order::fence_prefix;
use super::records::{Record, RecordListBuilder, RecordListKind};
use super::view::Page;
use crate::base::limits::PAGE_HEADER;
use crate::base::{PageId, TableId, bytes};
use std::ops::Range;

/// The specification of a new page.
#[derive(Clone, Copy, Debug)]
pub struct PageSpec<'a> {
    /// The page's id.
    pub id: PageId,
    /// The table that the page belongs to.
    pub table: TableId,
    /// The kind: leaf or inner page.
    pub kind: PageKind,
    /// 0 for leaves, 1 for their parents.
    pub level: u8,
    /// The kind of the key list.
    pub keys: KeyListKind,
    /// The kind of the record list; inner pages have [`RecordListKind::Fixed`].
    pub records: RecordListKind,
    /// The lower fence: no key is below it. Empty for the leftmost page of a level.
    pub lower: &'a [u8],
    /// The upper fence: every key is below it. `None` for the rightmost page of a level.
    pub upper: Option<&'a [u8]>,
    /// The right sibling of a leaf.
    pub right: PageId,
}

/// Builds the packed content of a new page: for splits, merges, bulk loads and compaction.
pub struct PageBuilder {
    page_size: usize,
    /// Header and fences, with capacity for the whole page; `finish` fills in the list sizes.
    front: Vec<u8>,
    prefix: usize,
    inner: bool,
    kind: KeyListKind,
    keys: KeyListBuilder,
    records: RecordListBuilder,
    count: usize,
    key_bytes: usize,
    record_bytes: usize,
}

impl std::fmt::Debug for PageBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PageBuilder").field("count", &self.count).field("used", &self.used()).finish_non_exhaustive()
    }
}

impl PageBuilder {
    /// Begins an empty page with that specification, for pages of `page_size` bytes.
    pub fn new(page_size: usize, spec: &PageSpec<'_>) -> PageBuilder {
        let prefix = if spec.keys.cuts_prefix() { fence_prefix(spec.lower, spec.upper, page_size) } else { 0 };
        let upper_rest = spec.upper.map(|upper| upper.get(prefix..).unwrap_or_default());
        let mut front = Vec::with_capacity(page_size);
        front.resize(PAGE_HEADER, 0);
        bytes::put_u32(&mut front, header::ID, spec.id.0);
        bytes::put_u32(&mut front, header::TABLE, spec.table.0);
        header::set_right(&mut front, spec.right);
        bytes::put_u8(&mut front, header::KIND, spec.kind as u8);
        bytes::put_u8(&mut front, header::LEVEL, spec.level);
        bytes::put(&mut front, header::KEY_LIST, &spec.keys.tag());
        bytes::put_u8(&mut front, header::RECORD_LIST, spec.records as u8);
        bytes::put_u16(&mut front, header::LOWER, bytes::u16_of(spec.lower.len()));
        let rest_len = upper_rest.map_or(NO_UPPER, |rest| bytes::u16_of(rest.len()));
        bytes::put_u16(&mut front, header::UPPER_REST, rest_len);
        bytes::put_u16(&mut front, header::PREFIX, bytes::u16_of(prefix));
        front.extend_from_slice(spec.lower);
        front.extend_from_slice(upper_rest.unwrap_or_default());
        let granule = granule(page_size);
        let inner = spec.kind == PageKind::Inner;
        PageBuilder {
            page_size,
            front,
            prefix,
            inner,
            kind: spec.keys,
            keys: KeyListBuilder::new(spec.keys, granule, inner, page_size),
            records: RecordListBuilder::new(spec.records, granule, page_size),
            count: 0,
            key_bytes: 0,
            record_bytes: 0,
        }
    }

    /// Appends an entry that is greater than all before it and within the fences. An inner page keeps its first key as
    /// the bare prefix, whatever `key` is. Returns false and changes nothing if there is no room, or if the page's
    /// lists cannot hold the entry (a key without the page's prefix, a record of another size).
    pub fn push(&mut self, key: &[u8], record: Record<'_>) -> bool {
        let suffix = if self.inner && self.count == 0 {
            &[]
        } else {
            match key.split_at_checked(self.prefix) {
                Some((prefix, suffix)) if self.front.get(PAGE_HEADER..).is_some_and(|f| f.starts_with(prefix)) => {
                    suffix
                }
                _ => return false,
            }
        };
        self.push_suffix(suffix, record)
    }

    /// Appends entries of another page; if the lists allow it, without building their keys. `first` replaces the key of
    /// the first entry, because slot 0 of an inner page has no key of its own. Returns false if not all entries could
    /// be appended (see [`PageBuilder::push`]); some may have been appended.
    pub fn push_entries(&mut self, page: Page<'_>, entries: Range<usize>, first: Option<&[u8]>) -> bool {
        self.take_entries(page, entries, first) && self.fits()
    }

    fn take_entries(&mut self, page: Page<'_>, entries: Range<usize>, first: Option<&[u8]>) -> bool {
        let mut key = Vec::new();
        let Range { start, end } = entries;
        if start >= end {
            return true;
        }
        if page.keys().is_walked() {
            return self.push_walking(page, entries, first);
        }
        if page.keys().key_len().is_some() && page.keys() == self.kind {
            return self.push_all(page, start..end, 0);
        }
        let whole = first.is_none() && !self.inner && page.is_leaf();
        if whole && let Some(cut) = self.cut_from(page, start..end) {
            return self.push_all(page, start..end, cut);
        }
        page.key_into(start, &mut key);
        let child = page.child(start).0.to_le_bytes();
        if !self.push(first.unwrap_or(&key), Self::record(page, start, &child)) {
            return false;
        }
        let Some(cut) = self.cut_from(page, start + 1..end) else {
            return (start + 1..end).all(|slot| {
                page.key_into(slot, &mut key);
                self.push(&key, Self::record(page, slot, &page.child(slot).0.to_le_bytes()))
            });
        };
        self.push_all(page, start + 1..end, cut)
    }

    /// Does [`PageBuilder::push_entries`] for a list that builds each key from the one before. Only the end result is
    /// compared with the size of the page.
    fn push_walking(&mut self, page: Page<'_>, entries: Range<usize>, first: Option<&[u8]>) -> bool {
        let bare = usize::from(self.inner || first.is_some());
        let cut = self.cut_from(page, entries.start + bare..entries.end);
        let mut keys = KeyWalk::new(page.key_list(), entries.start, entries.end);
        let mut key = Vec::new();
        let all = entries.clone().all(|slot| {
            let Some(entry) = keys.step() else { return false };
            let child = page.child(slot).0.to_le_bytes();
            let record = Self::record(page, slot, &child);
            let begins = slot == entries.start && (self.inner || first.is_some());
            if let Some(cut) = cut.filter(|_| !begins) {
                let fits = entry.suffix.len() >= cut && self.records.bytes_with(record).is_some();
                let Some(bytes) = fits.then(|| self.keys.push_walked(&entry, cut)).flatten() else { return false };
                self.key_bytes = bytes;
                self.records.push(record);
                self.count += 1;
                return true;
            }
            key.clear();
            key.extend_from_slice(page.prefix());
            key.extend_from_slice(entry.suffix);
            self.push(first.filter(|_| slot == entries.start).unwrap_or(&key), record)
        });
        self.record_bytes = self.records.bytes();
        all && self.fits() && self.count <= usize::from(u16::MAX)
    }

    /// Does [`PageBuilder::push_entries`] between two lists that copy entries without a size check for each entry.
    /// Copies all of them or none.
    fn push_all(&mut self, page: Page<'_>, entries: Range<usize>, cut: usize) -> bool {
        let Some(key_bytes) = self.keys.take(&page.key_list(), entries.clone(), cut) else { return false };
        let without = matches!(self.records, RecordListBuilder::None) && page.records() == RecordListKind::None;
        for slot in if without { 0..0 } else { entries.clone() } {
            let child = page.child(slot).0.to_le_bytes();
            let record = Self::record(page, slot, &child);
            if self.records.bytes_with(record).is_none() {
                return false;
            }
            self.records.push(record);
        }
        self.count += entries.len();
        (self.key_bytes, self.record_bytes) = (key_bytes, self.records.bytes());
        self.fits() && self.count <= usize::from(u16::MAX)
    }

    /// Returns the record of an entry. `child` is the record of an inner page's entry, whatever record list a hostile
    /// page names.
    fn record<'r>(page: Page<'r>, slot: usize, child: &'r [u8]) -> Record<'r> {
        if page.is_inner() { Record::inline(child) } else { page.record(slot) }
    }

    /// Returns how many bytes the keys of those entries lose when they are copied; `None` if the lists differ or this
    /// page's prefix is shorter. Keys are in order, so it is enough to test the first and the last key for the prefix.
    fn cut_from(&self, page: Page<'_>, entries: Range<usize>) -> Option<usize> {
        let prefix = bytes::slice(&self.front, PAGE_HEADER, PAGE_HEADER + self.prefix);
        let mut key = Vec::new();
        let fits = entries.is_empty()
            || page.prefix() == prefix
            || [entries.start, entries.end - 1].into_iter().all(|slot| {
                page.key_into(slot, &mut key);
                key.starts_with(prefix)
            });
        let same = page.keys() == self.kind;
        self.prefix.checked_sub(page.prefix().len()).filter(|_| fits && same)
    }

    #[inline]
    fn push_suffix(&mut self, suffix: &[u8], record: Record<'_>) -> bool {
        let fits = self.room(self.keys.bytes_with(suffix), record);
        if fits {
            self.keys.push(suffix);
            self.key_bytes = self.keys.bytes_after(self.key_bytes);
            self.records.push(record);
        }
        fits
    }

    /// Counts a new entry and stores the new list sizes, if the entry fits. `key_bytes` is the size of the key list
    /// with it.
    #[inline]
    fn room(&mut self, key_bytes: Option<usize>, record: Record<'_>) -> bool {
        let lists = key_bytes.zip(self.records.bytes_with(record));
        let Some((key_bytes, record_bytes)) = lists else { return false };
        let used = self.front.len() + key_bytes + record_bytes;
        let fits = used <= self.page_size && self.count < usize::from(u16::MAX);
        if fits {
            self.count += 1;
            (self.key_bytes, self.record_bytes) = (key_bytes, record_bytes);
        }
        fits
    }

    /// Returns true if all appended entries fit in the page. False only if a list has taken more than it computed.
    pub fn fits(&self) -> bool {
        self.used() <= self.page_size
    }

    /// Returns the number of entries so far.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns the bytes in use so far, including the header.
    pub fn used(&self) -> usize {
        self.front.len() + self.key_bytes + self.record_bytes
    }

    /// Returns the packed page, with LSN zero: the content of a [`super::PageOp::Format`].
    pub fn finish(self) -> Vec<u8> {
        let mut out = self.front;
        let keys_at = out.len();
        self.keys.finish(self.page_size.saturating_sub(keys_at + self.record_bytes), &mut out);
        let records_at = out.len();
        self.records.finish(&mut out);
        let record_bytes = out.len() - records_at;
        header::set_lists(&mut out, self.count, records_at - keys_at, record_bytes);
        out
    }
}

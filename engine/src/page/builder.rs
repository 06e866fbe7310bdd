//! Builds the content of a new tree page, entry by entry. Whether entries are in order and within the fences is the
//! caller's to know: `Page::check` finds out.

use super::header::{self, NO_UPPER, PageKind};
use super::keys::{KeyListBuilder, KeyListKind, granule};
use super::order::fence_prefix;
use super::records::{Record, RecordListBuilder, RecordListKind};
use crate::base::limits::PAGE_HEADER;
use crate::base::{PageId, TableId, bytes};

/// What a new page is to be.
#[derive(Clone, Copy, Debug)]
pub struct PageSpec<'a> {
    /// Its id.
    pub id: PageId,
    /// The table that it belongs to.
    pub table: TableId,
    /// Leaf or inner page.
    pub kind: PageKind,
    /// 0 for leaves, 1 for their parents.
    pub level: u8,
    /// Its key list.
    pub keys: KeyListKind,
    /// Its record list; inner pages have [`RecordListKind::Fixed`].
    pub records: RecordListKind,
    /// No key is below it; empty for the leftmost page of a level.
    pub lower: &'a [u8],
    /// Every key is below it; `None` for the rightmost page of a level.
    pub upper: Option<&'a [u8]>,
    /// The right sibling of a leaf.
    pub right: PageId,
}

/// Builds the packed content of a new page: for splits, merges, bulk loads and compaction.
pub struct PageBuilder {
    page_size: usize,
    /// Header and fences; the list sizes are filled in at the end.
    front: Vec<u8>,
    prefix: usize,
    inner: bool,
    keys: KeyListBuilder,
    records: RecordListBuilder,
    count: usize,
    list_bytes: usize,
}

impl PageBuilder {
    /// An empty page of that specification, for pages of `page_size` bytes.
    pub fn new(page_size: usize, spec: &PageSpec<'_>) -> PageBuilder {
        let prefix = if spec.keys.cuts_prefix() { fence_prefix(spec.lower, spec.upper, page_size) } else { 0 };
        let upper_rest = spec.upper.map(|upper| upper.get(prefix..).unwrap_or_default());
        let mut front = vec![0; PAGE_HEADER];
        bytes::put_u32(&mut front, header::ID, spec.id.0);
        bytes::put_u32(&mut front, header::TABLE, spec.table.0);
        header::set_right(&mut front, spec.right);
        bytes::put_u8(&mut front, header::KIND, spec.kind as u8);
        bytes::put_u8(&mut front, header::LEVEL, spec.level);
        bytes::put_u8(&mut front, header::KEY_LIST, spec.keys as u8);
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
            keys: KeyListBuilder::new(spec.keys, granule, inner),
            records: RecordListBuilder::new(spec.records, granule),
            count: 0,
            list_bytes: 0,
        }
    }

    /// Appends an entry, greater than those before it and within the fences; the first one of an inner page is kept as
    /// the bare prefix, whatever its key. False, and nothing changed: there is no room, or the entry is none that the
    /// page's lists can hold (a key without the page's prefix, a record of another size).
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

    /// Appends an entry whose key is already without the page's prefix.
    #[inline]
    pub(super) fn push_suffix(&mut self, suffix: &[u8], record: Record<'_>) -> bool {
        let lists = self.keys.bytes_with(suffix).zip(self.records.bytes_with(record));
        let Some(list_bytes) = lists.map(|(keys, records)| keys + records) else { return false };
        // The largest count is one that the count field tells from an overflow.
        if self.front.len() + list_bytes > self.page_size || self.count >= usize::from(u16::MAX) {
            return false;
        }
        self.keys.push(suffix);
        self.records.push(record);
        self.count += 1;
        self.list_bytes = list_bytes;
        true
    }

    /// Entries so far.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Bytes in use so far, those of the header among them.
    pub fn used(&self) -> usize {
        self.front.len() + self.list_bytes
    }

    /// The packed page, its LSN zero: the content of a [`super::PageOp::Format`].
    pub fn finish(self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.front.len() + self.list_bytes);
        out.extend_from_slice(&self.front);
        let keys_at = out.len();
        self.keys.finish(&mut out);
        let records_at = out.len();
        self.records.finish(&mut out);
        let record_bytes = out.len() - records_at;
        header::set_lists(&mut out, self.count, records_at - keys_at, record_bytes);
        out
    }
}

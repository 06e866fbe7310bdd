//! The full check of a page's structure, which runs once when its bytes come from a device.

use super::header::{self, Header, PageKind};
use super::keys::{KeyListKind, KeyWalk};
use super::order::{compare_images, fence_prefix, may_precede};
use super::records::{self, RecordListKind};
use super::view::Page;
use crate::base::limits;
use crate::base::{Error, PageId, Result, bytes};
use std::cmp::Ordering;

/// The error says what is wrong.
type CheckResult = Result<(), String>;

/// Returns the error of a list that has too few bytes for `count` of its `parts`, such as slots.
pub(super) fn cannot_hold(bytes: usize, count: usize, parts: impl std::fmt::Display) -> String {
    format!("{bytes} bytes cannot hold {count} {parts}")
}

/// Checks that the bytes of unused slots are zero.
pub(super) fn check_unused(slots: &[&[u8]]) -> CheckResult {
    let is_zero = slots.iter().all(|slot| bytes::are_zero(slot));
    ensure(is_zero, || "an unused slot is not zero".into())
}

/// Checks that a list without entries has no bytes.
pub(super) fn check_without_entries(list: &[u8]) -> CheckResult {
    ensure(list.is_empty(), || format!("{} bytes without entries", list.len()))
}

/// Checks that `bytes` has the length of a page.
pub(super) fn check_len(bytes: &[u8]) -> CheckResult {
    ensure(limits::is_page_len(bytes.len()), || format!("a page of {} bytes", bytes.len()))
}

/// The kind of the key list that a page header names.
#[inline(always)]
pub(super) fn key_list_kind(header: Header<'_>) -> Result<KeyListKind, String> {
    let tag = header.key_list();
    KeyListKind::from_tag(tag).ok_or_else(|| format!("key list {tag:?} is unknown"))
}

fn ensure(holds: bool, what: impl FnOnce() -> String) -> CheckResult {
    if holds { Ok(()) } else { Err(what()) }
}

impl<'a> Page<'a> {
    /// Checks all invariants of a page: sizes, tags, fences, both lists, the order of the keys, zeros in unused bytes.
    /// Images of long keys with the same first bytes may be in any order.
    ///
    /// # Errors
    /// `Error::Corrupt` that says what is wrong. Any bytes are safe.
    pub fn check(bytes: &'a [u8], expect: PageId) -> Result<Page<'a>> {
        let page = Page::new(bytes);
        match page.check_all(expect) {
            Ok(()) => Ok(page),
            Err(what) => Err(Error::corrupt(expect, what)),
        }
    }

    /// Checks a page that an operation has changed, in builds with debug assertions. Other builds check nothing.
    ///
    /// # Errors
    /// As of [`Page::check`].
    pub(crate) fn check_changed(bytes: &[u8], expect: PageId) -> Result<()> {
        if cfg!(debug_assertions) {
            Page::check(bytes, expect)?;
        }
        Ok(())
    }

    fn check_all(&self, expect: PageId) -> CheckResult {
        let size = self.bytes().len();
        check_len(self.bytes())?;
        ensure(self.id() == expect, || format!("its header has the page id {}", self.id()))?;
        let kind = self.header().u8(header::KIND);
        match PageKind::from_tag(kind) {
            Some(PageKind::Leaf | PageKind::Inner) => self.check_tree_page(),
            Some(PageKind::Heap) => self.check_heap_page(),
            Some(PageKind::Run) => self.check_special(0),
            Some(PageKind::Map) => self.check_special(size / 2),
            None => Err(format!("kind {kind} is unknown")),
        }
    }

    /// Checks that a run or map has no fields of a tree page. A map has `record_bytes` bytes of bits, a run has none.
    fn check_special(&self, record_bytes: usize) -> CheckResult {
        let header = self.header();
        let numbers = [header::COUNT, header::LOWER, header::UPPER_REST, header::PREFIX];
        let tags = [header::LEVEL, header::RECORD_LIST];
        let unused = numbers.iter().all(|&at| header.u16(at) == 0) && tags.iter().all(|&at| header.u8(at) == 0);
        ensure(unused && header.key_list() == [0; 3], || "a run or map has fields of a tree page".into())?;
        let records = header.u16(header::RECORD_BYTES);
        ensure(records == record_bytes, || format!("{records} bytes of records instead of {record_bytes}"))?;
        let keys = header.u16(header::KEY_BYTES);
        ensure(self.kind() == PageKind::Run || keys == 0, || "a map with a payload".into())?;
        self.check_free()
    }

    /// Checks that the lists are within the page and that the bytes between them are zero.
    fn check_free(&self) -> CheckResult {
        let (size, header) = (self.bytes().len(), self.header());
        let front = self.keys_at() + header.u16(header::KEY_BYTES);
        let end = size.checked_sub(header.u16(header::RECORD_BYTES)).filter(|&end| front <= end);
        let Some(end) = end else { return Err(format!("its parts are larger than its {size} bytes")) };
        ensure(bytes::are_zero(bytes::slice(self.bytes(), front, end)), || "an unused byte is not zero".into())
    }

    fn check_tree_page(&self) -> CheckResult {
        let header = self.header();
        let records = header.u8(header::RECORD_LIST);
        let key_kind = key_list_kind(header)?;
        let Some(record_kind) = RecordListKind::from_tag(records) else {
            return Err(format!("record list {records} is unknown"));
        };
        ensure((self.level() > 0) == self.is_inner(), || format!("level {} does not fit its kind", self.level()))?;
        self.check_free()?;
        self.check_fences(key_kind)?;
        let (count, granule) = (self.count(), self.granule());
        self.key_list().check(key_kind, self.key_bytes(), count)?;
        records::check(record_kind, self.record_bytes(), count, granule)?;
        if self.is_inner() {
            ensure(count > 0, || "an inner page without children".into())?;
            let fixed = record_kind == RecordListKind::Fixed && self.record(0).bytes.len() == 4;
            ensure(fixed, || "an inner page whose records are not page ids".into())?;
            ensure((0..count).all(|slot| !self.child(slot).is_none()), || "a child without an id".into())?;
        }
        self.check_keys()
    }

    /// Checks a heap page: a tree page without fences, whose keys are numbers and whose records are whole keys.
    fn check_heap_page(&self) -> CheckResult {
        self.check_tree_page()?;
        let lists = self.keys() == KeyListKind::NUMBERS && self.records() == RecordListKind::Variable;
        ensure(lists, || "a heap page that is not made of numbers and keys".into())?;
        let bare = self.lower_fence().is_empty() && !self.has_upper_fence() && self.right().is_none();
        ensure(bare, || "a heap page with fences or a right link".into())?;
        for slot in 0..self.count() {
            ensure(self.key_len(slot) == 2, || format!("a key number of {} bytes", self.key_len(slot)))?;
            let key = self.record(slot);
            ensure(!key.large, || format!("key {slot} is a large record"))?;
            self.check_len(slot, key.bytes.len())?;
        }
        Ok(())
    }

    fn check_fences(&self, keys: KeyListKind) -> CheckResult {
        let (size, longest) = (self.bytes().len(), self.longest_key());
        let prefix = self.header().u16(header::PREFIX);
        let lower = self.lower_fence();
        ensure(prefix <= lower.len(), || format!("its prefix of {prefix} bytes exceeds its fence of {}", lower.len()))?;
        let mut upper = Vec::new();
        let upper = self.upper_fence_into(&mut upper).then_some(upper.as_slice());
        ensure(lower.len() <= longest && upper.is_none_or(|upper| upper.len() <= longest), || {
            "a fence is longer than any key".into()
        })?;
        let expected = if keys.cuts_prefix() { fence_prefix(lower, upper, size) } else { 0 };
        ensure(prefix == expected, || format!("a prefix of {prefix} bytes instead of {expected}"))?;
        ensure(upper.is_none_or(|upper| may_precede(lower, upper, size)), || "its fences are not in order".into())
    }

    /// Checks that the keys are in order and within the fences. An inner page's key 0 is the bare prefix and stands for
    /// its lower fence.
    fn check_keys(&self) -> CheckResult {
        let size = self.bytes().len();
        let list = self.key_list();
        let first = usize::from(self.is_inner());
        if self.is_inner() {
            let mut bare = Vec::new();
            list.append(0, &mut bare);
            ensure(bytes::are_zero(&bare) && self.keys().first_key_len_is_valid(bare.len()), || {
                "the first key of an inner page is not its bare prefix".into()
            })?;
        }
        if self.keys_are_out_of_line() {
            // The list has checked its parts. Only the tree can read the keys.
            return Ok(());
        }
        if list.checks_order() {
            // The list has checked the order.
        } else if self.keys().is_walked() {
            self.check_order_walking(first)?;
        } else {
            self.check_order(first)?;
        }
        if first == self.count() {
            return Ok(());
        }
        let mut key = Vec::new();
        self.key_into(first, &mut key);
        let above = match compare_images(self.lower_fence(), &key, size) {
            Some(Ordering::Equal) => self.is_leaf(),
            Some(Ordering::Less) | None => true,
            Some(Ordering::Greater) => false,
        };
        ensure(above, || format!("key {first} is below the lower fence"))?;
        self.key_into(self.count() - 1, &mut key);
        let mut upper = Vec::new();
        let below = !self.upper_fence_into(&mut upper) || may_precede(&key, &upper, size);
        ensure(below, || "its last key is not below its upper fence".into())
    }
}

impl Page<'_> {
    /// Checks that keys rise and do not exceed the longest length, from slot `first` on.
    fn check_order(&self, first: usize) -> CheckResult {
        let list = self.key_list();
        let (mut previous, mut key) = (Vec::new(), Vec::new());
        if let Some(slot) = self.first_longer(first, self.longest_key()) {
            self.check_len(slot, self.key_len(slot))?;
        }
        for slot in first..self.count() {
            // Images of long keys need not rise byte by byte. Such keys are compared whole.
            if slot > first && !list.is_above_previous(slot) {
                self.key_into(slot - 1, &mut previous);
                self.key_into(slot, &mut key);
                self.check_unknown(slot, &previous, &key)?;
            }
        }
        Ok(())
    }

    /// Does the same for a list that builds each key from the one before.
    fn check_order_walking(&self, first: usize) -> CheckResult {
        let mut keys = KeyWalk::new(self.key_list(), first, self.count());
        let (mut previous, mut key) = (Vec::new(), Vec::new());
        for slot in first..self.count() {
            let Some(entry) = keys.step() else { break };
            key.clear();
            key.extend_from_slice(self.prefix());
            key.extend_from_slice(entry.suffix);
            self.check_len(slot, key.len())?;
            if slot > first && previous >= key {
                self.check_unknown(slot, &previous, &key)?;
            }
            std::mem::swap(&mut previous, &mut key);
        }
        Ok(())
    }

    /// The most bytes of a key image in the page.
    fn longest_key(&self) -> usize {
        limits::max_inline_key(self.bytes().len()) + 1
    }

    fn check_len(&self, slot: usize, len: usize) -> CheckResult {
        ensure(len <= self.longest_key(), || format!("key {slot} is too long: {len} bytes"))
    }

    /// Accepts two keys that do not rise only if the page cannot decide their order.
    fn check_unknown(&self, slot: usize, previous: &[u8], key: &[u8]) -> CheckResult {
        let unknown = compare_images(previous, key, self.bytes().len()).is_none();
        ensure(unknown, || format!("key {slot} is not above the one before it"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::{map_page, run_page, unpack};

    #[test]
    fn runs_and_maps_pass_and_their_damage_is_named() {
        let mut page = vec![0xEE; 512];
        unpack(&run_page(PageId(9), crate::base::TableId(3), PageId(4), b"payload"), &mut page).unwrap();
        let run = Page::check(&page, PageId(9)).unwrap();
        assert_eq!((run.payload(), run.right(), run.kind()), (&b"payload"[..], PageId(4), PageKind::Run));
        assert!(Page::check(&page, PageId(8)).is_err());
        page[500] = 1;
        assert!(Page::check(&page, PageId(9)).err().unwrap().to_string().contains("unused byte is not zero"));

        unpack(&map_page(512, PageId(0)), &mut page).unwrap();
        let map = Page::check(&page, PageId(0)).unwrap();
        assert_eq!((map.bits().len(), map.first_clear(5), map.bit(5)), (256, Some(5), false));
        page[header::RECORD_BYTES] = 1;
        assert!(Page::check(&page, PageId(0)).is_err());
    }
}

//! Chooses where to cut a full page in two, and the separator between the halves (tail compression). The tree performs
//! the cut and manages the run of a long separator.

use super::block_cut;
use super::heap::shared_by;
use super::keys::{KeyList, KeyWalk, capacity, granule};
use super::records::RecordListKind;
use super::view::Page;
use crate::base::limits::{PAGE_HEADER, long_key_head, max_inline_key};
use crate::base::{Error, Result, bytes};
use std::ops::Range;

/// The bytes that a key list and a record list may take without entries: the two bytes of the length of a directory or
/// of a fixed record in each, and the footer of a list that keeps its best group.
const LENGTH_FIELDS: usize = 5;
/// The bytes of a slot in a key list and in a record list. Key lists with longer slots say so with
/// [`KeyListKind::spare`](super::keys::KeyListKind::spare).
const SLOT_BYTES: usize = 8;

/// An entry that one of the halves is to receive: its slot, the image of its key, the bytes of its record.
pub(super) type PendingEntry<'a> = (usize, &'a [u8], usize);

/// The rule that chooses separators.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SeparatorRule {
    /// Separators are whole keys; a page is cut in its middle.
    Full,
    /// The shortest separator within `radius` thousandths of the content, in bytes, on each side of the middle.
    Tail {
        /// The radius in thousandths; see [`SeparatorRule::TAIL`].
        radius: u16,
    },
}

impl SeparatorRule {
    /// The rule with the usual radius of a sixth: the middle third of the page.
    pub const TAIL: SeparatorRule = SeparatorRule::Tail { radius: SeparatorRule::RADIUS };
    /// The usual radius, in thousandths.
    pub const RADIUS: u16 = 167;
    /// The largest radius: the whole page.
    pub const WIDEST: u16 = 500;

    /// The rule for a split that makes room for no certain entry: a half has at most three quarters of the content. So
    /// a few splits make room for a longer record, however large the radius is.
    pub(crate) fn for_room(self) -> SeparatorRule {
        match self {
            SeparatorRule::Full => SeparatorRule::Full,
            SeparatorRule::Tail { radius } => SeparatorRule::Tail { radius: radius.min(250) },
        }
    }
}

/// The cut of a page, and the separator between its halves.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Split {
    /// The page's entries `[0, left_count)` stay left, the others go right. The pending entry does not count.
    pub left_count: usize,
    /// True: the pending entry goes left, after the entries that stay or between them. False: it goes right. `None`:
    /// there is none, or it may not fit in either half before that is divided again.
    pub pending_left: Option<bool>,
    /// The image of the separator: above every key on the left, not above any key on the right. For an inner page it is
    /// the key of the right half's first entry, which moves up.
    pub separator: Vec<u8>,
    /// The separator is the image of a long key. In a leaf this happens if the page cannot tell the two keys around the
    /// cut apart: the image is then a copy of the first right key's image, and the tree gives the separator a run of
    /// its own. An inner page's separator keeps its run. Also set if the leaf keeps its keys out of line: `separator`
    /// is then empty, and the tree makes it from the whole keys.
    pub long: bool,
    /// The leaf keeps its keys out of line, and its separators are whole keys. The tree shortens other separators that
    /// it makes from whole keys.
    pub whole: bool,
}

/// Chooses where to cut `page`, which is to receive `pending`. Both halves fit their pages under the new fences if no
/// entry exceeds `limits::max_entry`. Usually the half of the pending entry has room for it, too. It may have none if
/// the entries of the key list take many bytes beside their keys, and the pending entry and its neighbour are nearly
/// as long as `limits::max_entry`. Then the caller searches again and divides that half.
///
/// If the entry goes after the last entry of a level's rightmost page, the cut is as late as fits. An inner page keeps
/// at least one entry in each half, and the pending entry never moves up.
///
/// # Errors
/// `Error::Corrupt` if no cut fits, which never happens for a sound page.
pub fn choose_split(page: Page<'_>, pending: Option<PendingEntry<'_>>, rule: SeparatorRule) -> Result<Split> {
    if let Some(list) = page.key_list().blocks() {
        let split = block_cut::choose(page, list, pending, rule);
        return split.ok_or_else(|| Error::corrupt(page.id(), "its blocks cannot be divided between two pages"));
    }
    let cutter = SlottedCutter::new(page, pending, rule);
    let append = pending.is_some_and(|(slot, ..)| slot == page.count()) && !page.has_upper_fence();
    // First with room for capacities that are rounded up; if no such cut fits, as close as the entries allow.
    let choose = |cutter: &SlottedCutter<'_>| if append { cutter.last() } else { cutter.best(rule) };
    match choose(&cutter).or_else(|| choose(&cutter.clone().exact())) {
        Some(cut) => Ok(cutter.split(cut)),
        None => choose_split_without_pending(page, rule),
    }
}

/// Chooses where to cut a page when no cut leaves room for the pending entry, too.
///
/// `limits::max_entry` allows for 16 bytes beside the key and the record of an entry. An entry with a group of its own
/// (DB2) or with a long part (PkB) takes up to 20.
#[cold]
pub(super) fn choose_split_without_pending(page: Page<'_>, rule: SeparatorRule) -> Result<Split> {
    let cutter = SlottedCutter::new(page, None, rule).exact();
    match cutter.best(rule) {
        Some(cut) => Ok(cutter.split(cut)),
        None => Err(Error::corrupt(page.id(), "its entries cannot be divided between two pages")),
    }
}

/// An entry of the page, or the pending entry.
enum CutEntry<'a> {
    There(usize),
    Pending(&'a [u8]),
}

/// Evaluates cuts. A cut index counts the entries on its left, including the pending one.
#[derive(Clone)]
struct SlottedCutter<'a> {
    page: Page<'a>,
    list: KeyList<'a>,
    pending: Option<PendingEntry<'a>>,
    /// Separators are whole keys: because of the rule, or because the page is an inner one.
    whole: bool,
    /// The bytes on the left of each cut, from no entries to all entries.
    left: Vec<usize>,
    /// The bytes for header, old fence and length fields on the left and on the right.
    fronts: (usize, usize),
    /// The bytes of the slots that a half may have without using them.
    unused: Unused,
    /// The bytes that each half may need in addition: see [`KeyListKind::spare`](super::keys::KeyListKind::spare).
    spare: usize,
    /// The sizes of the page's entries if its list has no quick way to a single entry; empty otherwise.
    walked: Vec<Measure>,
}

/// The bytes of the unused slots of a half. Its lists have slots for a whole number of granules.
#[derive(Clone, Copy)]
enum Unused {
    /// As many as there can be, in bytes.
    Most(usize),
    /// As many as there are with the number of the half's entries.
    Exact { slot_bytes: usize, granule: usize },
}

impl Unused {
    fn bytes(self, entries: usize) -> usize {
        match self {
            Unused::Most(bytes) => bytes,
            Unused::Exact { slot_bytes, granule } => slot_bytes * (capacity(entries, granule) - entries),
        }
    }
}

/// The sizes of an entry that a walk over the list finds.
#[derive(Clone, Copy, Default)]
struct Measure {
    /// The bytes of the entry in the key list.
    bytes: usize,
    suffix_len: usize,
    /// The length of the prefix that the suffix shares with the one before.
    common: usize,
    /// The additional bytes of the entry if it is the first of its page.
    lead: usize,
}

impl Measure {
    fn all(page: Page<'_>) -> Vec<Measure> {
        if !page.keys().is_walked() {
            return Vec::new();
        }
        let mut all = Vec::with_capacity(page.count());
        let mut keys = KeyWalk::new(page.key_list(), 0, page.count());
        while let Some(entry) = keys.step() {
            let (bytes, lead, common) = (entry.bytes, entry.lead, entry.common);
            all.push(Measure { bytes, suffix_len: entry.suffix.len(), common, lead });
        }
        all
    }
}

impl<'a> SlottedCutter<'a> {
    fn new(page: Page<'a>, pending: Option<PendingEntry<'a>>, rule: SeparatorRule) -> SlottedCutter<'a> {
        let count = page.count();
        let pending = pending.map(|(slot, key, record)| (slot.min(count), key, record));
        let (list, records, walked) = (page.key_list(), page.record_list(), Measure::all(page));
        let mut left = Vec::with_capacity(count + 2);
        let mut sum = 0;
        left.push(0);
        let mut add = |bytes: usize| {
            sum += bytes;
            left.push(sum);
        };
        let suffix = |key: &'a [u8]| key.get(page.prefix().len()..).unwrap_or_default();
        // The half that receives the pending entry gets slots; the cut decides which half that is.
        let slotted = pending.is_some_and(|(_, key, _)| list.is_dense_without(suffix(key)));
        let size = |slot: usize| {
            let key = match walked.get(slot) {
                Some(entry) => entry.bytes,
                None if slotted => page.keys().entry_bytes(list.suffix_len(slot)),
                None => list.entry_bytes(slot),
            };
            key + records.entry_bytes(slot)
        };
        let before = pending.map_or(count, |(slot, ..)| slot);
        (0..before).for_each(|slot| add(size(slot)));
        if let Some((_, key, record)) = pending {
            add(page.keys().entry_bytes(suffix(key).len()) + page.records().entry_bytes(record));
        }
        (before..count).for_each(|slot| add(size(slot)));
        let front = PAGE_HEADER + LENGTH_FIELDS + page.keys().front();
        let fronts = (front + page.lower_fence().len(), front + page.upper_rest_len());
        let granule = granule(page.bytes().len());
        let spare = page.keys().spare(granule);
        SlottedCutter {
            page,
            list,
            pending,
            whole: page.is_inner() || rule == SeparatorRule::Full,
            left,
            fronts,
            unused: Unused::Most(SLOT_BYTES * (granule - 1)),
            spare,
            walked,
        }
    }

    /// The same cuts, for which only as much room is needed as the entries of each half take.
    fn exact(self) -> SlottedCutter<'a> {
        let records = if self.page.records() == RecordListKind::Variable { 2 } else { 0 };
        let slot_bytes = self.page.keys().slot_bytes() + records;
        let granule = granule(self.page.bytes().len());
        SlottedCutter { spare: 0, unused: Unused::Exact { slot_bytes, granule }, ..self }
    }

    fn suffix_len(&self, slot: usize) -> usize {
        self.walked.get(slot).map_or_else(|| self.list.suffix_len(slot), |entry| entry.suffix_len)
    }

    fn common_with_previous(&self, slot: usize) -> usize {
        self.walked.get(slot).map_or_else(|| self.list.common_with_previous(slot), |entry| entry.common)
    }

    fn lead(&self, slot: usize) -> usize {
        self.walked.get(slot).map_or(0, |entry| entry.lead)
    }

    fn entry(&self, index: usize) -> CutEntry<'a> {
        match self.pending {
            Some((slot, key, _)) if slot == index => CutEntry::Pending(key),
            Some((slot, ..)) if slot < index => CutEntry::There(index - 1),
            _ => CutEntry::There(index),
        }
    }

    fn total(&self) -> usize {
        self.left.last().copied().unwrap_or(0)
    }

    fn key_into(&self, index: usize, out: &mut Vec<u8>) {
        match self.entry(index) {
            CutEntry::There(slot) => self.page.key_into(slot, out),
            CutEntry::Pending(key) => {
                out.clear();
                out.extend_from_slice(key);
            }
        }
    }

    fn key_len(&self, index: usize) -> usize {
        match self.entry(index) {
            CutEntry::There(0) if self.page.is_inner() => self.page.prefix().len(),
            CutEntry::There(slot) => self.page.prefix().len() + self.suffix_len(slot),
            CutEntry::Pending(key) => key.len(),
        }
    }

    /// Returns the length of the separator of a cut.
    fn separator_len(&self, cut: usize) -> usize {
        if self.page.keys().keys_are_out_of_line() {
            return self.separator_len_out_of_line(cut);
        }
        if self.whole {
            return self.key_len(cut);
        }
        let common = match (self.entry(cut - 1), self.entry(cut)) {
            (CutEntry::There(_), CutEntry::There(slot)) => self.page.prefix().len() + self.common_with_previous(slot),
            _ => {
                let (mut left, mut right) = (Vec::new(), Vec::new());
                self.key_into(cut - 1, &mut left);
                self.key_into(cut, &mut right);
                bytes::common_prefix(&left, &right)
            }
        };
        let size = self.page.bytes().len();
        if common < long_key_head(size) {
            return common + 1;
        }
        let (left_len, right_len) = (self.key_len(cut - 1), self.key_len(cut));
        let long = left_len.max(right_len) > max_inline_key(size);
        if long { right_len } else { right_len.min(common + 1) }
    }

    /// Returns an upper bound of that length for a leaf that keeps its keys out of line. Such a leaf does not know the
    /// lengths of its keys.
    fn separator_len_out_of_line(&self, cut: usize) -> usize {
        let longest = max_inline_key(self.page.bytes().len()) + 1;
        if self.whole {
            return longest;
        }
        let common = match (self.entry(cut - 1), self.entry(cut)) {
            (_, CutEntry::Pending(image)) => shared_by(self.page.keys(), image).0,
            (CutEntry::Pending(image), _) => shared_by(self.page.keys(), image).1,
            (_, CutEntry::There(slot)) => self.common_with_previous(slot),
        };
        longest.min(common + 1)
    }

    /// Returns true if the page may be cut there: each side has an entry, and an inner page has a key there that can
    /// move up.
    fn allowed(&self, cut: usize) -> bool {
        !self.page.is_inner() || matches!(self.entry(cut), CutEntry::There(slot) if slot > 0)
    }

    fn fits(&self, cut: usize, separator_len: usize) -> bool {
        let size = self.page.bytes().len();
        let left = self.left.get(cut).copied().unwrap_or(0);
        let upper_rest = separator_len.saturating_sub(self.page.prefix().len());
        let right = (self.total() + self.gained(cut)).saturating_sub(left + self.moved(cut));
        let size = size.saturating_sub(self.spare);
        let unused = |entries: usize| self.unused.bytes(entries);
        let entries = self.left.len() - 1;
        self.fronts.0 + unused(cut) + upper_rest + left <= size
            && self.fronts.1 + unused(entries.saturating_sub(cut)) + separator_len + right <= size
    }

    /// Returns the bytes that the first entry on the right loses: an inner page's key moves up and leaves a bare
    /// prefix.
    fn moved(&self, cut: usize) -> usize {
        let keys = self.page.keys();
        match self.entry(cut) {
            CutEntry::There(slot) if self.page.is_inner() => {
                let taken = match self.walked.get(slot) {
                    Some(entry) => entry.bytes,
                    None => keys.entry_bytes(self.page.key_len(slot).saturating_sub(self.page.prefix().len())),
                };
                taken.saturating_sub(keys.entry_bytes(0))
            }
            _ => 0,
        }
    }

    /// Returns the bytes that the first key on the right gains if it was encoded against the key before. In an inner
    /// page it is the second key, because the first becomes bare. The pending entry is inserted after the other entries
    /// are laid out. If it will be the first on the right, the next entry is the first until then, and gains the bytes.
    fn gained(&self, cut: usize) -> usize {
        match self.entry(cut) {
            _ if self.walked.is_empty() => 0,
            CutEntry::There(slot) if self.page.is_inner() => self.lead(slot + 1),
            CutEntry::There(slot) => self.lead(slot),
            CutEntry::Pending(_) => {
                let pending =
                    self.left.get(cut + 1).zip(self.left.get(cut)).map_or(0, |(with, without)| with - without);
                self.pending.map_or(0, |(slot, ..)| self.lead(slot)).saturating_sub(pending)
            }
        }
    }

    fn cuts(&self) -> Range<usize> {
        1..self.left.len() - 1
    }

    /// Returns the last cut that fits.
    fn last(&self) -> Option<usize> {
        self.cuts().rev().find(|&cut| self.allowed(cut) && self.fits(cut, self.separator_len(cut)))
    }

    /// Returns twice the distance from the middle of a cut with `left` bytes on its left.
    fn distance(&self, left: usize) -> usize {
        (2 * left).abs_diff(self.total())
    }

    fn distance_of(&self, cut: usize) -> usize {
        self.distance(self.left.get(cut).copied().unwrap_or(0))
    }

    /// Returns the cuts among which the rule wants the shortest separator: those around the middle that leave at least
    /// one entry on each side.
    fn window(&self, rule: SeparatorRule) -> Range<usize> {
        let SeparatorRule::Tail { radius } = rule else { return 1..1 };
        let total = self.total();
        let inside = |left: usize| 1000 * self.distance(left) <= 2 * usize::from(radius) * total;
        let from = self.left.partition_point(|&left| 2 * left < total && !inside(left));
        let to = self.left.partition_point(|&left| 2 * left <= total || inside(left));
        let Range { start, end } = self.cuts();
        from.max(start)..to.min(end)
    }

    /// Returns the best cut that fits: within the window the cut with the shortest separator, otherwise the cut nearest
    /// to the middle.
    fn best(&self, rule: SeparatorRule) -> Option<usize> {
        let window = self.window(rule);
        let mut shortest = None;
        for cut in window.clone().filter(|&cut| self.allowed(cut)) {
            let distance = self.distance_of(cut);
            // A separator length is computed only if it can beat the best so far.
            if shortest.is_some_and(|(rank, _)| rank <= (1, distance)) {
                continue;
            }
            let len = self.separator_len(cut);
            let rank = (len, distance);
            if shortest.is_none_or(|(other, _)| rank < other) && self.fits(cut, len) {
                shortest = Some((rank, cut));
            }
        }
        shortest.map(|(_, cut)| cut).or_else(|| self.nearest(&window))
    }

    /// Returns the cut nearest to the middle that fits. Skips the window, where no cut fits.
    fn nearest(&self, window: &Range<usize>) -> Option<usize> {
        let (total, Range { start, end }) = (self.total(), self.cuts());
        let middle = self.left.partition_point(|left| 2 * left < total).clamp(start, end.max(start));
        // The cuts below `low` and those from `high` on are not tried yet.
        let (mut low, mut high) = (middle, middle);
        while low > start || high < end {
            let down = low > start && (high >= end || self.distance_of(low - 1) <= self.distance_of(high));
            let cut = if down { low - 1 } else { high };
            (low, high) = if down { (cut, high) } else { (low, cut + 1) };
            if !window.contains(&cut) && self.allowed(cut) && self.fits(cut, self.separator_len(cut)) {
                return Some(cut);
            }
        }
        None
    }

    fn split(&self, cut: usize) -> Split {
        let mut separator = Vec::new();
        let out_of_line = self.page.keys().keys_are_out_of_line();
        if !out_of_line {
            self.key_into(cut, &mut separator);
            separator.truncate(self.separator_len(cut));
        }
        let pending_left = self.pending.map(|(slot, ..)| slot < cut);
        let long = out_of_line || separator.len() > max_inline_key(self.page.bytes().len());
        let whole = out_of_line && self.whole;
        Split { left_count: cut - usize::from(pending_left == Some(true)), pending_left, separator, long, whole }
    }
}

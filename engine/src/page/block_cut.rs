//! Chooses where to cut a leaf of blocks in two. To find the middle, the bytes of a block are divided evenly among its
//! keys. For the cut itself they are counted exactly, because part of a block takes more or less than its share. A
//! border between two blocks near the middle is preferred, because it leaves all blocks unchanged.

use super::keys::{Blocks, granule};
use super::records::RecordListKind;
use super::separator::{PendingEntry, SeparatorRule, Split};
use super::view::Page;
use crate::base::bytes;
use crate::base::limits::PAGE_HEADER;

/// How far from the middle a cut is sought, in slots. No two entries together take more than half a page, so the next
/// cut or the one after it fits. The limit bounds the search in a damaged page.
const NEAR: usize = 16;

/// A cut: how many entries of the page stay left, and whether the pending entry goes after them.
#[derive(Clone, Copy, PartialEq, Eq)]
struct BlockCut {
    left: usize,
    pending_left: bool,
}

struct BlockCutter<'a> {
    page: Page<'a>,
    list: Blocks<'a>,
    pending: Option<PendingEntry<'a>>,
    rule: SeparatorRule,
    /// The bytes of the entries before each slot, and of all entries. Empty until the middle is needed.
    before: Vec<usize>,
    /// The same sums for the records alone; empty if there are no records.
    records: Vec<usize>,
}

/// Chooses a cut; see `separator::choose_split`. Returns `None` if no cut fits.
pub(super) fn choose(
    page: Page<'_>,
    list: Blocks<'_>,
    pending: Option<PendingEntry<'_>>,
    rule: SeparatorRule,
) -> Option<Split> {
    let pending = pending.map(|(slot, key, record)| (slot.min(page.count()), key, record));
    let mut cutter = BlockCutter { page, list, pending, rule, before: Vec::new(), records: Vec::new() };
    if page.records() != RecordListKind::None {
        let records = page.record_list();
        cutter.records = sums((0..page.count()).map(|slot| records.entry_bytes(slot)));
    }
    // Keys that arrive in order fill pages: the middle is then not needed.
    if let Some(cut) = cutter.behind().find(|cut| cutter.fits(*cut, true)) {
        return Some(cutter.split(cut));
    }
    let mut sizes = Vec::with_capacity(page.count());
    list.sizes(&mut sizes);
    cutter.before = sums(sizes.into_iter().enumerate().map(|(slot, size)| size + cutter.record(slot)));
    let cuts = cutter.candidates();
    // On a small page the pending entry at its largest may fit neither half. The page is then cut without it and cut
    // again later.
    let cut =
        cuts.iter().find(|cut| cutter.fits(**cut, true)).or_else(|| cuts.iter().find(|cut| cutter.fits(**cut, false)));
    cut.map(|cut| cutter.split(*cut))
}

/// Returns the prefix sums of `each`, beginning with 0.
fn sums(each: impl Iterator<Item = usize>) -> Vec<usize> {
    let so_far = each.scan(0, |sum, one| {
        *sum += one;
        Some(*sum)
    });
    std::iter::once(0).chain(so_far).collect()
}

impl BlockCutter<'_> {
    /// Returns the bytes of the records before a slot.
    fn records_before(&self, slot: usize) -> usize {
        self.records.get(slot.min(self.page.count())).copied().unwrap_or(0)
    }

    fn record(&self, slot: usize) -> usize {
        self.records_before(slot + 1).saturating_sub(self.records_before(slot))
    }

    /// Returns the cut after all entries and those 1, 2, 4 and so on entries earlier, the best first. There are such
    /// cuts only if the pending entry goes after the last entry of the rightmost leaf.
    fn behind(&self) -> impl Iterator<Item = BlockCut> {
        let count = self.page.count();
        let last = !self.page.has_upper_fence() && self.pending.is_some_and(|(slot, ..)| slot == count);
        let lefts = std::iter::once(count).chain((0..8).map_while(move |power| count.checked_sub(1 << power)));
        lefts.filter(move |_| last).map(|left| self.cut(left)).filter(|cut| self.divides(*cut))
    }

    fn before(&self, slot: usize) -> usize {
        self.before.get(slot).copied().unwrap_or(0)
    }

    fn cut(&self, left: usize) -> BlockCut {
        // If the pending entry is next to the cut, it goes left, unless the right half would then be empty.
        let pending_left = self.pending.is_some_and(|(slot, ..)| slot <= left && slot < self.page.count());
        BlockCut { left, pending_left }
    }

    /// Returns true if both halves have an entry.
    fn divides(&self, cut: BlockCut) -> bool {
        let count = self.page.count();
        let right = cut.left < count || self.pending.is_some_and(|(slot, ..)| !cut.pending_left && slot == count);
        right && (cut.left > 0 || cut.pending_left)
    }

    /// Returns the cuts after all entries, if those are allowed, and then those near the middle, the best first.
    fn candidates(&self) -> Vec<BlockCut> {
        let count = self.page.count();
        let total = self.before(count);
        let middle = self.before.partition_point(|bytes| 2 * bytes < total).min(count);
        let mut lefts = Vec::with_capacity(2 * NEAR + 4);
        let near = |slot: &usize| (2 * self.before(*slot)).abs_diff(total) * 8 <= total;
        let next = (middle..count).find(|slot| self.list.block_start(*slot) == *slot);
        lefts.extend([Some(self.list.block_start(middle)), next].into_iter().flatten().filter(near));
        for away in 0..=count.min(NEAR) {
            lefts.extend(middle.checked_sub(away));
            lefts.extend(Some(middle + away).filter(|left| away > 0 && *left <= count));
        }
        let near_the_middle = lefts.into_iter().map(|left| self.cut(left)).filter(|cut| self.divides(*cut));
        self.behind().chain(near_the_middle).collect()
    }

    /// Returns true if both halves fit their pages. `with_pending`: also with the pending entry at its largest.
    fn fits(&self, cut: BlockCut, with_pending: bool) -> bool {
        let (size, count) = (self.page.bytes().len(), self.page.count());
        let bytes = |from: usize, to: usize| {
            let records = self.records_before(to).saturating_sub(self.records_before(from));
            self.list.bytes_of(from..to) + records
        };
        let pending = match self.pending.filter(|_| with_pending) {
            Some((_, _, record)) => self.list.most_growth() + self.page.records().entry_bytes(record),
            None => 0,
        };
        let (left, right) = if cut.pending_left { (pending, 0) } else { (0, pending) };
        // Variable records may have unused slots; fixed records have a size field.
        let unused = match self.page.records() {
            RecordListKind::Variable => 2 * (granule(size) - 1),
            RecordListKind::Fixed => 2,
            RecordListKind::None => 0,
        };
        let front = PAGE_HEADER + unused + self.separator(cut).len();
        let left = front + self.page.lower_fence().len() + bytes(0, cut.left) + left;
        let right = front + self.page.upper_rest_len() + bytes(cut.left, count) + right;
        left <= size && right <= size
    }

    fn separator(&self, cut: BlockCut) -> Vec<u8> {
        let (mut left, mut right) = (Vec::new(), Vec::new());
        self.page.key_into(cut.left.wrapping_sub(1), &mut left);
        self.page.key_into(cut.left, &mut right);
        if let Some((_, key, _)) = self.pending.filter(|(slot, ..)| *slot == cut.left) {
            (if cut.pending_left { &mut left } else { &mut right }).clear();
            (if cut.pending_left { &mut left } else { &mut right }).extend_from_slice(key);
        }
        if self.rule != SeparatorRule::Full {
            right.truncate(bytes::common_prefix(&left, &right) + 1);
        }
        right
    }

    fn split(&self, cut: BlockCut) -> Split {
        Split {
            left_count: cut.left,
            pending_left: self.pending.map(|_| cut.pending_left),
            separator: self.separator(cut),
            long: false,
            whole: false,
        }
    }
}

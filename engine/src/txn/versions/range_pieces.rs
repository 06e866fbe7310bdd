//! Pieces of ranges that do not overlap, and the neighbours of a position among them. What a piece stands for must not be
//! in this file.

use crate::base::{Lsn, PageId};
use crate::tree::KeyRange;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

/// A position between or at keys.
#[derive(Clone, Copy, Debug)]
pub(crate) enum At<'k> {
    /// At this key.
    Key(&'k [u8]),
    /// Right before this key.
    Before(&'k [u8]),
    /// After all keys.
    End,
}

/// A border of ranges.
type Border = Arc<[u8]>;

/// A part of a range that was detached, without its lower border.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    /// The upper border; `None`: there is none.
    pub(crate) upper: Option<Border>,
    pub(crate) lsn: Lsn,
    pub(crate) root: PageId,
}

/// Pieces with their lower borders: the last that begins at a position or left of it, and the first right of it.
type Beside<'p> = [Option<(&'p Border, &'p Piece)>; 2];

/// Pieces, ordered by their borders.
#[derive(Default)]
pub(crate) struct Pieces {
    /// By their lower borders.
    pieces: BTreeMap<Border, Piece>,
    /// What they cover, or have covered, without borders between neighbours: so a range over many of them is added without a
    /// look at each.
    covered: BTreeMap<Border, Option<Border>>,
    bytes: usize,
}

impl Pieces {
    /// True if there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Bytes of memory that they take.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds what of a range is not covered.
    pub(crate) fn add(&mut self, lower: Border, range: Piece) {
        if range.upper.as_ref().is_some_and(|upper| *upper <= lower) {
            return;
        }
        let before = self.covered.range::<[u8], _>((Bound::Unbounded, Bound::Included(&*lower))).next_back();
        let before = before.filter(|(_, end)| reaches(end.as_ref(), &lower));
        // All from `start` to `at` is covered.
        let (mut start, mut at) = (lower.clone(), lower);
        if let Some((first, end)) = before.map(|(first, end)| (first.clone(), end.clone())) {
            let Some(end) = end.filter(|end| ends_behind(range.upper.as_ref(), end)) else { return };
            self.covered.remove(&first);
            (start, at) = (first, end);
        }
        let end = loop {
            looked_at_one();
            let next = self.covered.range::<[u8], _>((Bound::Included(&*at), Bound::Unbounded)).next();
            let next = next.filter(|(next, _)| reaches(range.upper.as_ref(), next));
            let Some((next, end)) = next.map(|(next, end)| (next.clone(), end.clone())) else {
                self.insert(at, range.clone());
                break range.upper;
            };
            if at < next {
                self.insert(at, Piece { upper: Some(next.clone()), ..range.clone() });
            }
            self.covered.remove(&next);
            match end {
                Some(end) if ends_behind(range.upper.as_ref(), &end) => at = end,
                end => break end,
            }
        };
        self.covered.insert(start, end);
    }

    fn insert(&mut self, lower: Border, piece: Piece) {
        self.bytes += piece.bytes(&lower);
        self.pieces.insert(lower, piece);
    }

    /// Takes the last piece out. What it covers stays covered.
    pub(crate) fn pop_last(&mut self) -> Option<(Border, Piece)> {
        let (lower, piece) = self.pieces.pop_last()?;
        self.bytes -= piece.bytes(&lower);
        Some((lower, piece))
    }

    /// All of them.
    #[cfg(test)]
    pub(crate) fn all(&self) -> impl Iterator<Item = (&Border, &Piece)> {
        self.pieces.iter()
    }

    /// What lies beside a position.
    pub(super) fn beside(&self, at: At<'_>) -> Beside<'_> {
        looked_at_one();
        let (left, right) = match at {
            At::Key(key) => (Bound::Included(key), Bound::Excluded(key)),
            At::Before(key) => (Bound::Excluded(key), Bound::Included(key)),
            At::End => return [self.pieces.last_key_value(), None],
        };
        let left = self.pieces.range::<[u8], _>((Bound::Unbounded, left)).next_back();
        [left, self.pieces.range::<[u8], _>((right, Bound::Unbounded)).next()]
    }
}

impl Piece {
    /// Bytes of memory, with those of what is covered.
    fn bytes(&self, lower: &[u8]) -> usize {
        2 * (size_of::<Piece>() + size_of::<Border>()) + lower.len() + self.upper.as_ref().map_or(0, |key| key.len())
    }
}

impl At<'_> {
    /// True if the position lies left of `upper`, being right of the lower border.
    pub(super) fn is_before(&self, upper: Option<&Border>) -> bool {
        upper.is_none_or(|upper| match *self {
            At::Key(key) => key < &**upper,
            At::Before(key) => key <= &**upper,
            At::End => false,
        })
    }
}

/// Cuts a range around a position so that it has nothing of what lies beside it.
pub(super) fn keep_clear_of(key_range: &mut KeyRange, [left, right]: Beside<'_>) {
    if let Some(upper) = left.and_then(|(_, piece)| piece.upper.as_deref())
        && *upper > *key_range.lower
    {
        key_range.lower = upper.to_vec();
    }
    if let Some((lower, _)) = right
        && key_range.is_above(lower)
    {
        key_range.upper = Some(lower.to_vec());
    }
}

/// True if what ends at `end` goes on at least to `border`.
fn reaches(end: Option<&Border>, border: &Border) -> bool {
    end.is_none_or(|end| end >= border)
}

/// True if what ends at `end` goes on behind `border`.
fn ends_behind(end: Option<&Border>, border: &Border) -> bool {
    end.is_none_or(|end| end > border)
}

/// Counts a look at a piece, a group or a part that is covered.
pub(super) fn looked_at_one() {
    #[cfg(test)]
    work::LOOKED_AT.set(work::LOOKED_AT.get() + 1);
}

/// Tests count what is looked at.
#[cfg(test)]
pub(crate) mod work {
    use std::cell::Cell;

    thread_local!(pub(crate) static LOOKED_AT: Cell<usize> = const { Cell::new(0) });
}

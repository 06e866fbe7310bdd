//! [`RangeMap`]: key ranges that do not overlap, each with the subtree that was detached there. It finds the neighbours
//! of a position.

use crate::base::{Lsn, PageId};
use crate::tree::KeyRange;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

/// A position at a key or between keys.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Position<'k> {
    /// At this key.
    Key(&'k [u8]),
    /// Right before this key.
    Before(&'k [u8]),
    /// After all keys.
    End,
}

/// A key at which a range begins or ends.
type BoundKey = Arc<[u8]>;

/// A part of a range that was detached, without its lower bound.
#[derive(Clone, Debug)]
pub(crate) struct RangePiece {
    /// The upper bound. `None`: the piece has no end.
    pub(crate) upper: Option<BoundKey>,
    pub(crate) lsn: Lsn,
    pub(crate) root: PageId,
}

/// The neighbours of a position, with their lower bounds: the last piece that begins at it or left of it, and the first
/// right of it.
type Neighbours<'p> = [Option<(&'p BoundKey, &'p RangePiece)>; 2];

/// A map of key ranges that do not overlap, ordered by their lower bounds.
#[derive(Default)]
pub(crate) struct RangeMap {
    /// The pieces, by their lower bounds.
    pieces: BTreeMap<BoundKey, RangePiece>,
    /// The ranges that the pieces cover or have covered, with adjacent ranges merged. So a range over many pieces is
    /// added without a search through each of them.
    covered: BTreeMap<BoundKey, Option<BoundKey>>,
    bytes: usize,
}

impl RangeMap {
    /// True if there are no pieces.
    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Bytes of memory that the pieces use.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds those parts of a range that are not covered.
    pub(crate) fn add(&mut self, lower: BoundKey, range: RangePiece) {
        if range.upper.as_ref().is_some_and(|upper| *upper <= lower) {
            return;
        }
        let before = self.covered.range::<[u8], _>((Bound::Unbounded, Bound::Included(&*lower))).next_back();
        let before = before.filter(|(_, end)| reaches(end.as_ref(), &lower));
        // The range from `start` to `at` is covered.
        let (mut start, mut at) = (lower.clone(), lower);
        if let Some((first, end)) = before.map(|(first, end)| (first.clone(), end.clone())) {
            let Some(end) = end.filter(|end| extends_beyond(range.upper.as_ref(), end)) else { return };
            self.covered.remove(&first);
            (start, at) = (first, end);
        }
        let end = loop {
            count_examined();
            let next = self.covered.range::<[u8], _>((Bound::Included(&*at), Bound::Unbounded)).next();
            let next = next.filter(|(next, _)| reaches(range.upper.as_ref(), next));
            let Some((next, end)) = next.map(|(next, end)| (next.clone(), end.clone())) else {
                self.insert(at, range.clone());
                break range.upper;
            };
            if at < next {
                self.insert(at, RangePiece { upper: Some(next.clone()), ..range.clone() });
            }
            self.covered.remove(&next);
            match end {
                Some(end) if extends_beyond(range.upper.as_ref(), &end) => at = end,
                end => break end,
            }
        };
        self.covered.insert(start, end);
    }

    fn insert(&mut self, lower: BoundKey, piece: RangePiece) {
        self.bytes += piece.bytes(&lower);
        self.pieces.insert(lower, piece);
    }

    /// Removes and returns the last piece. Its range stays covered.
    pub(crate) fn pop_last(&mut self) -> Option<(BoundKey, RangePiece)> {
        let (lower, piece) = self.pieces.pop_last()?;
        self.bytes -= piece.bytes(&lower);
        Some((lower, piece))
    }

    /// All pieces.
    #[cfg(test)]
    pub(crate) fn all(&self) -> impl Iterator<Item = (&BoundKey, &RangePiece)> {
        self.pieces.iter()
    }

    /// The neighbours of a position.
    pub(super) fn neighbours(&self, at: Position<'_>) -> Neighbours<'_> {
        count_examined();
        let (left, right) = match at {
            Position::Key(key) => (Bound::Included(key), Bound::Excluded(key)),
            Position::Before(key) => (Bound::Excluded(key), Bound::Included(key)),
            Position::End => return [self.pieces.last_key_value(), None],
        };
        let left = self.pieces.range::<[u8], _>((Bound::Unbounded, left)).next_back();
        [left, self.pieces.range::<[u8], _>((right, Bound::Unbounded)).next()]
    }
}

impl RangePiece {
    /// Bytes of memory of a piece, with its part of the covered ranges.
    fn bytes(&self, lower: &[u8]) -> usize {
        2 * (size_of::<RangePiece>() + size_of::<BoundKey>())
            + lower.len()
            + self.upper.as_ref().map_or(0, |key| key.len())
    }
}

impl Position<'_> {
    /// True if the position is left of `upper`. The caller knows that it is right of the lower bound.
    pub(super) fn is_before(&self, upper: Option<&BoundKey>) -> bool {
        upper.is_none_or(|upper| match *self {
            Position::Key(key) => key < &**upper,
            Position::Before(key) => key <= &**upper,
            Position::End => false,
        })
    }
}

/// Cuts a range around a position so that it does not overlap the neighbours of the position.
pub(super) fn cut_off_neighbours(key_range: &mut KeyRange, [left, right]: Neighbours<'_>) {
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

/// True if a range that ends at `end` reaches `bound`.
fn reaches(end: Option<&BoundKey>, bound: &BoundKey) -> bool {
    end.is_none_or(|end| end >= bound)
}

/// True if a range that ends at `end` extends beyond `bound`.
fn extends_beyond(end: Option<&BoundKey>, bound: &BoundKey) -> bool {
    end.is_none_or(|end| end > bound)
}

/// Counts the examination of a piece, a group or a covered range, for tests.
pub(super) fn count_examined() {
    #[cfg(test)]
    work::EXAMINED.set(work::EXAMINED.get() + 1);
}

/// A counter of examined items, for tests.
#[cfg(test)]
pub(crate) mod work {
    use std::cell::Cell;

    thread_local!(pub(crate) static EXAMINED: Cell<usize> = const { Cell::new(0) });
}

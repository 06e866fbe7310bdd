//! Pieces of key ranges that do not overlap, and search for the neighbours of a position.

use crate::base::{Lsn, PageId};
use crate::tree::KeyRange;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

/// A position at a key or between keys.
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
pub(crate) struct RangePiece {
    /// The upper border. `None`: the piece has no end.
    pub(crate) upper: Option<Border>,
    pub(crate) lsn: Lsn,
    pub(crate) root: PageId,
}

/// The neighbours of a position, with their lower borders: the last piece that begins at it or left of it, and the
/// first right of it.
type Beside<'p> = [Option<(&'p Border, &'p RangePiece)>; 2];

/// Pieces, ordered by their borders.
#[derive(Default)]
pub(crate) struct Pieces {
    /// The pieces, by their lower borders.
    pieces: BTreeMap<Border, RangePiece>,
    /// The ranges that the pieces cover or have covered, with adjacent ranges merged. So a range over many pieces is
    /// added without a search through each of them.
    covered: BTreeMap<Border, Option<Border>>,
    bytes: usize,
}

impl Pieces {
    /// True if there are no pieces.
    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Bytes of memory that the pieces use.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds those parts of a range that are not covered.
    pub(crate) fn add(&mut self, lower: Border, range: RangePiece) {
        if range.upper.as_ref().is_some_and(|upper| *upper <= lower) {
            return;
        }
        let before = self.covered.range::<[u8], _>((Bound::Unbounded, Bound::Included(&*lower))).next_back();
        let before = before.filter(|(_, end)| reaches(end.as_ref(), &lower));
        // The range from `start` to `at` is covered.
        let (mut start, mut at) = (lower.clone(), lower);
        if let Some((first, end)) = before.map(|(first, end)| (first.clone(), end.clone())) {
            let Some(end) = end.filter(|end| ends_behind(range.upper.as_ref(), end)) else { return };
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
                Some(end) if ends_behind(range.upper.as_ref(), &end) => at = end,
                end => break end,
            }
        };
        self.covered.insert(start, end);
    }

    fn insert(&mut self, lower: Border, piece: RangePiece) {
        self.bytes += piece.bytes(&lower);
        self.pieces.insert(lower, piece);
    }

    /// Removes and returns the last piece. Its range stays covered.
    pub(crate) fn pop_last(&mut self) -> Option<(Border, RangePiece)> {
        let (lower, piece) = self.pieces.pop_last()?;
        self.bytes -= piece.bytes(&lower);
        Some((lower, piece))
    }

    /// All pieces.
    #[cfg(test)]
    pub(crate) fn all(&self) -> impl Iterator<Item = (&Border, &RangePiece)> {
        self.pieces.iter()
    }

    /// The neighbours of a position.
    pub(super) fn beside(&self, at: At<'_>) -> Beside<'_> {
        count_examined();
        let (left, right) = match at {
            At::Key(key) => (Bound::Included(key), Bound::Excluded(key)),
            At::Before(key) => (Bound::Excluded(key), Bound::Included(key)),
            At::End => return [self.pieces.last_key_value(), None],
        };
        let left = self.pieces.range::<[u8], _>((Bound::Unbounded, left)).next_back();
        [left, self.pieces.range::<[u8], _>((right, Bound::Unbounded)).next()]
    }
}

impl RangePiece {
    /// Bytes of memory of a piece, with its part of the covered ranges.
    fn bytes(&self, lower: &[u8]) -> usize {
        2 * (size_of::<RangePiece>() + size_of::<Border>())
            + lower.len()
            + self.upper.as_ref().map_or(0, |key| key.len())
    }
}

impl At<'_> {
    /// True if the position is left of `upper`. The caller knows that it is right of the lower border.
    pub(super) fn is_before(&self, upper: Option<&Border>) -> bool {
        upper.is_none_or(|upper| match *self {
            At::Key(key) => key < &**upper,
            At::Before(key) => key <= &**upper,
            At::End => false,
        })
    }
}

/// Cuts a range around a position so that it does not overlap the neighbours of the position.
pub(super) fn cut_off_neighbours(key_range: &mut KeyRange, [left, right]: Beside<'_>) {
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

/// True if a range that ends at `end` reaches `border`.
fn reaches(end: Option<&Border>, border: &Border) -> bool {
    end.is_none_or(|end| end >= border)
}

/// True if a range that ends at `end` extends beyond `border`.
fn ends_behind(end: Option<&Border>, border: &Border) -> bool {
    end.is_none_or(|end| end > border)
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

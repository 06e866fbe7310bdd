//! What the writes of a table come to at commit: how many entries are added or removed, where each key goes, and the steps
//! that do it. Keys behind all others, such as keys that come in order, are examined together. How a step changes pages
//! must not be in this file.

use super::steps::{Step, Steps, UnlistedSteps};
use super::write_set::WriteSet;
use crate::base::Result;
use crate::tree::{KeyRange, LeafHint, Tree};
use crate::txn::engine::Engine;

/// With more writes than this to look for, the places in a database with a log are not kept: hardly any commit that has so many
/// goes into one batch.
const MANY: usize = 1 << 20;

/// What a table's writes do to the number of its entries, and where they do it.
pub(crate) struct EntryDelta {
    /// Entries added, or, if negative, taken away.
    pub(crate) entries: i64,
    /// The place of each of the first point writes, in the order of their keys, as long as its leaf is not freed or detached;
    /// none at all if the writes themselves detach something.
    places: Vec<LeafHint>,
    /// The place of all others: behind the last entry of a leaf, or [`LeafHint::NONE`].
    rest: LeafHint,
}

impl EntryDelta {
    /// So many entries are added, nobody knows where.
    pub(crate) fn added(entries: usize) -> EntryDelta {
        let entries = i64::try_from(entries).unwrap_or(i64::MAX);
        EntryDelta { entries, places: Vec::new(), rest: LeafHint::NONE }
    }
}

/// Adds what carries out a table's writes to `steps`.
pub(crate) fn push_steps<'a>(steps: &mut Steps<'a>, tree: &'a Tree, writes: &'a WriteSet, delta: &EntryDelta) {
    let clear = |range: &'a KeyRange| Step::Clear { tree, lower: &range.lower, upper: range.upper.as_deref() };
    steps.listed.extend(writes.cleared().iter().map(clear));
    let mut points = writes.points();
    let placed = delta.places.iter().zip(points.by_ref());
    steps.listed.extend(placed.map(|(place, write)| Step::of_write(tree, write, *place)));
    if delta.places.len() < writes.len() {
        steps.unlisted.push(UnlistedSteps { tree, writes: points, hint: delta.rest });
    }
}

impl Engine {
    /// How many entries a table's writes add or take away, and where; the caller holds the writer's lock.
    pub(crate) fn entry_delta(&self, tree: &Tree, writes: &WriteSet) -> Result<EntryDelta> {
        let pages = self.pages();
        let mut delta = EntryDelta::added(0);
        for range in writes.cleared() {
            delta.entries = delta.entries.saturating_sub_unsigned(super::count::entries(&pages, tree, range)?);
        }
        let has_cleared = !writes.cleared().is_empty();
        let behind = if has_cleared { None } else { self.find_behind(tree, writes)? };
        let (count, rest) = behind.unwrap_or((writes.len(), LeafHint::NONE));
        let has_places = !(has_cleared || self.is_logged() && count > MANY);
        if has_places {
            delta.rest = rest;
            delta.places.reserve(count);
        }
        let mut points = writes.points();
        tree.find_many(&pages, writes.points().take(count).map(|(key, _)| key), |place| {
            let Some((key, record)) = points.next() else { return };
            let existed = place.there && !(has_cleared && writes.is_cleared(key));
            delta.entries += i64::from(record.is_some()) - i64::from(existed);
            if has_places {
                delta.places.push(place);
            }
        })?;
        // The others are new entries.
        delta.entries = delta.entries.saturating_add_unsigned((writes.len() - count) as u64);
        Ok(delta)
    }

    /// How many of a table's writes are not behind the last entry of the leaf that the last of them goes to, and the place of those
    /// that are.
    fn find_behind(&self, tree: &Tree, writes: &WriteSet) -> Result<Option<(usize, LeafHint)>> {
        let Some(last) = writes.last_in_order() else { return Ok(None) };
        tree.find_behind(&self.pages(), last, |key| writes.rank_above(key))
    }
}

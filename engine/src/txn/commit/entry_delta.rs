//! Examines the writes of a table at commit: how many entries they add or remove, where each key belongs, and the steps
//! that carry them out. New keys after all others, such as ascending keys, are examined together.

use super::steps::{Step, Steps, StreamedSteps};
use super::write_set::WriteSet;
use crate::base::Result;
use crate::tree::{KeyRange, LeafHint, Tree};
use crate::txn::engine::Engine;

/// With more writes than this, a database with a log does not keep their places. That number of writes rarely fits
/// in one batch, and later batches cannot use the places.
const MANY: usize = 1 << 20;

/// The change of the number of entries of a table, and the places of its writes.
pub(crate) struct EntryDelta {
    /// The number of entries added or, if negative, removed.
    pub(crate) entries: i64,
    /// The places of the first point writes, in the order of their keys. A place is valid as long as its leaf is not
    /// freed or detached. Empty if the writes themselves may detach subtrees.
    places: Vec<LeafHint>,
    /// The place of all other writes: after the last entry of a leaf, or [`LeafHint::NONE`].
    rest: LeafHint,
}

impl EntryDelta {
    /// A number of added entries, without places.
    pub(crate) fn added(entries: usize) -> EntryDelta {
        let entries = i64::try_from(entries).unwrap_or(i64::MAX);
        EntryDelta { entries, places: Vec::new(), rest: LeafHint::NONE }
    }
}

/// Adds the steps of a table's writes to `steps`.
pub(crate) fn push_steps<'a>(steps: &mut Steps<'a>, tree: &'a Tree, writes: &'a WriteSet, delta: &EntryDelta) {
    let clear = |range: &'a KeyRange| Step::Clear { tree, lower: &range.lower, upper: range.upper.as_deref() };
    steps.collected.extend(writes.cleared().iter().map(clear));
    let mut points = writes.points();
    let placed = delta.places.iter().zip(points.by_ref());
    steps.collected.extend(placed.map(|(place, write)| Step::of_write(tree, write, *place)));
    if delta.places.len() < writes.len() {
        steps.streamed.push(StreamedSteps { tree, writes: points, hint: delta.rest });
    }
}

impl Engine {
    /// How many entries a table's writes add or remove, and their places. The caller must hold the writer's lock.
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
        // The remaining writes add new entries.
        delta.entries = delta.entries.saturating_add_unsigned((writes.len() - count) as u64);
        Ok(delta)
    }

    /// If the last writes of a table belong after the last entry of one leaf: the number of writes before those, and
    /// the place of those.
    fn find_behind(&self, tree: &Tree, writes: &WriteSet) -> Result<Option<(usize, LeafHint)>> {
        // A single write gains nothing: it costs the same to find its place with the others.
        let Some(last) = writes.last_in_order().filter(|_| writes.len() > 1) else { return Ok(None) };
        tree.find_behind(&self.pages(), last, |key| writes.rank_above(key))
    }
}

//! Ranges of keys that were detached from their trees, and the open snapshots for which they are kept.
//!
//! If several ranges contain a key, a snapshot needs the first one that was detached after the snapshot. Therefore
//! ranges are kept in groups. The group of an open snapshot has what was detached after it and before the next younger
//! snapshot, and for each key of a table only the first range. These ranges are pieces that do not overlap. A snapshot
//! searches its own group and then younger groups, and uses the first piece that contains the key. When a snapshot
//! closes, its group is merged into the group of the next older snapshot, whose pieces take precedence.
//!
//! The ranges of a batch are first in a group of their own, at the end of the previous batch, because a snapshot may
//! still begin there.

use super::kept_events::RemovedVersions;
use super::range_map::{Position, RangeMap, RangePiece, count_examined, cut_off_neighbours};
use super::snapshots::Snapshots;
use crate::base::{Lsn, PageId, TableId};
use crate::tree::KeyRange;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A subtree that was detached at `lsn`. Older snapshots read its key range in it.
#[derive(Clone, Debug)]
pub(crate) struct Detached {
    pub(crate) lsn: Lsn,
    pub(crate) root: PageId,
    pub(crate) lower: Vec<u8>,
    pub(crate) upper: Option<Vec<u8>>,
}

/// The detached subtree in which a snapshot finds a range of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    /// The root of the detached subtree.
    pub(crate) root: PageId,
    /// The keys for which this is so.
    pub(crate) key_range: KeyRange,
    /// Events at this LSN or later belong to the tree that replaced the subtree.
    pub(crate) until: Lsn,
}

/// The detached ranges of all tables, grouped by the snapshot that needs them.
#[derive(Default)]
pub(super) struct DetachedRanges {
    /// The groups of each table.
    tables: HashMap<TableId, BTreeMap<Lsn, RangeMap>>,
    /// The tables of each group.
    groups: BTreeMap<Lsn, Vec<TableId>>,
    /// Groups of batches that a future snapshot may not assign.
    unseen: BTreeSet<Lsn>,
    /// Groups of closed snapshots.
    closing: BTreeSet<Lsn>,
    bytes: usize,
}

impl DetachedRanges {
    /// True if there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    /// Bytes of memory that the ranges use.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds a range. Ranges must be added in the order in which they were detached.
    pub(crate) fn add(&mut self, table: TableId, range: Detached) {
        let group = Lsn(range.lsn.0.saturating_sub(1));
        let piece = RangePiece { upper: range.upper.map(Into::into), lsn: range.lsn, root: range.root };
        let pieces = self.group_of(table, group);
        let before = pieces.bytes();
        pieces.add(range.lower.into(), piece);
        let added = pieces.bytes() - before;
        self.bytes += added;
        self.unseen.insert(group);
    }

    fn group_of(&mut self, table: TableId, group: Lsn) -> &mut RangeMap {
        let DetachedRanges { tables, groups, .. } = self;
        tables.entry(table).or_default().entry(group).or_insert_with(|| {
            groups.entry(group).or_default().push(table);
            RangeMap::default()
        })
    }

    /// The detached subtree in which `snapshot` finds a position, if it was detached since.
    pub(crate) fn route(&self, table: TableId, at: Position<'_>, snapshot: Lsn) -> Option<Route> {
        let groups = self.tables.get(&table)?;
        let mut own = KeyRange::default();
        for (_, pieces) in groups.range(snapshot..) {
            match pieces.neighbours(at) {
                [Some((lower, piece)), _] if at.is_before(piece.upper.as_ref()) => {
                    let range = KeyRange::between(lower, piece.upper.as_deref());
                    return Some(Route { root: piece.root, key_range: range.within(&own), until: piece.lsn });
                }
                neighbours => cut_off_neighbours(&mut own, neighbours),
            }
        }
        None
    }

    /// Cuts a range around a position so that it does not overlap any range detached since `snapshot`. Only for
    /// positions for which [`DetachedRanges::route`] returns `None`.
    pub(crate) fn clear_range(&self, table: TableId, at: Position<'_>, snapshot: Lsn, key_range: &mut KeyRange) {
        let groups = self.tables.get(&table);
        for (_, pieces) in groups.into_iter().flat_map(|groups| groups.range(snapshot..)) {
            cut_off_neighbours(key_range, pieces.neighbours(at));
        }
    }

    /// Assigns up to `limit` ranges of batches that every new snapshot sees to the open snapshots that may need them,
    /// or removes them. `visible` is the LSN at which new snapshots begin. Returns how many it examined.
    pub(super) fn assign(
        &mut self,
        snapshots: &Snapshots,
        visible: Lsn,
        limit: usize,
        removed: &mut RemovedVersions,
    ) -> usize {
        let mut left = limit;
        while left > 0
            && let Some(group) = self.unseen.first().copied().filter(|group| *group < visible)
            && self.reassign(group, snapshots, &mut left, removed)
        {
            self.unseen.remove(&group);
            left = left.saturating_sub(1);
        }
        limit - left
    }

    /// Notes which groups belong to closed snapshots.
    pub(crate) fn close(&mut self, closed: &[Lsn]) {
        self.closing.extend(closed.iter().filter(|closed| self.groups.contains_key(closed)));
    }

    /// True if there are groups of closed snapshots to process.
    pub(super) fn is_closing(&self) -> bool {
        !self.closing.is_empty()
    }

    /// Reassigns or removes up to `limit` pieces of closed snapshots.
    pub(crate) fn remove_closed(&mut self, snapshots: &Snapshots, limit: usize, removed: &mut RemovedVersions) {
        let mut left = limit;
        while left > 0
            && let Some(group) = self.closing.first().copied()
            && self.reassign(group, snapshots, &mut left, removed)
        {
            self.closing.remove(&group);
            left = left.saturating_sub(1);
        }
    }

    /// Moves up to `left` pieces of a group to the newest open snapshot that may need them. Returns true if the whole
    /// group is processed or already belongs to that snapshot.
    fn reassign(&mut self, group: Lsn, snapshots: &Snapshots, left: &mut usize, removed: &mut RemovedVersions) -> bool {
        let newest = snapshots.newest_before(group.plus(1));
        if newest == Some(group) {
            return true;
        }
        while let Some(table) = self.groups.get_mut(&group).and_then(Vec::pop) {
            count_examined();
            let done = match newest {
                Some(newest) if *left > 0 => self.move_pieces(newest, group, table, left),
                None if *left > 0 => self.drop_group(group, table, removed),
                _ => false,
            };
            if !done {
                self.groups.entry(group).or_default().push(table);
                return false;
            }
            *left = left.saturating_sub(1);
        }
        self.groups.remove(&group);
        true
    }

    /// Removes the pieces of a table from a group that no snapshot needs.
    fn drop_group(&mut self, group: Lsn, table: TableId, removed: &mut RemovedVersions) -> bool {
        if let Some(groups) = self.tables.get_mut(&table) {
            if let Some(pieces) = groups.remove(&group) {
                self.bytes -= pieces.bytes();
                removed.detached.push(pieces);
            }
            if groups.is_empty() {
                self.tables.remove(&table);
            }
        }
        true
    }

    /// Moves pieces of a table to the group of `newest`. If there is a group between the two, it belongs to a closed
    /// snapshot and its pieces take precedence, so the pieces move there.
    fn move_pieces(&mut self, newest: Lsn, group: Lsn, table: TableId, left: &mut usize) -> bool {
        let Some(groups) = self.tables.get_mut(&table) else { return true };
        let Some(mut from) = groups.remove(&group) else { return true };
        let Some((_, to)) = groups.range_mut(newest..group).next_back() else {
            groups.insert(newest, from);
            self.groups.entry(newest).or_default().push(table);
            return true;
        };
        self.bytes -= from.bytes() + to.bytes();
        while *left > 0
            && let Some((lower, piece)) = from.pop_last()
        {
            *left -= 1;
            to.add(lower, piece);
        }
        self.bytes += from.bytes() + to.bytes();
        if !from.is_empty() {
            groups.insert(group, from);
            return false;
        }
        true
    }
}

#[cfg(test)]
mod tests;

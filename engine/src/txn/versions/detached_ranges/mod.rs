//! Ranges of keys that were detached from their trees, and which open snapshot each is kept for.
//!
//! Of all ranges that hold a key a snapshot asks for the first one after it. So they are kept in groups: the group of an open
//! snapshot has what was detached after it and before the next younger one, and of a table only the first range of each key.
//! These are pieces that do not overlap: a snapshot finds its own in the first group, from its own on, that has one at the key.
//! When a snapshot closes, its group goes to the next older one, whose pieces come first.
//!
//! A batch's ranges first make a group of their own, at the end of the batch before: a snapshot may yet begin there.

use super::kept_events::Gone;
use super::range_pieces::{At, Piece, Pieces, keep_clear_of, looked_at_one};
use super::snapshots::Snapshots;
use crate::base::{Lsn, PageId, TableId};
use crate::tree::KeyRange;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A subtree that was unlinked at `lsn`; older snapshots read its key range there.
#[derive(Clone, Debug)]
pub(crate) struct Detached {
    pub(crate) lsn: Lsn,
    pub(crate) root: PageId,
    pub(crate) lower: Vec<u8>,
    pub(crate) upper: Option<Vec<u8>>,
}

/// Where a snapshot finds the entries of a range of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    /// The root of the detached subtree.
    pub(crate) root: PageId,
    /// The keys for which this holds.
    pub(crate) key_range: KeyRange,
    /// Point events from here on happened to the tree that replaced it.
    pub(crate) until: Lsn,
}

/// The detached ranges of all tables, grouped by the snapshot that needs them.
#[derive(Default)]
pub(super) struct DetachedRanges {
    /// The groups of each table.
    tables: HashMap<TableId, BTreeMap<Lsn, Pieces>>,
    /// The tables of each group.
    groups: BTreeMap<Lsn, Vec<TableId>>,
    /// Groups of batches that a snapshot that is yet to begin may not see.
    unseen: BTreeSet<Lsn>,
    /// Groups of snapshots that have closed.
    closing: BTreeSet<Lsn>,
    bytes: usize,
}

impl DetachedRanges {
    /// True if there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    /// Bytes of memory that they take.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds a range; ranges come in the order in which they were detached.
    pub(crate) fn add(&mut self, table: TableId, range: Detached) {
        let group = Lsn(range.lsn.0.saturating_sub(1));
        let piece = Piece { upper: range.upper.map(Into::into), lsn: range.lsn, root: range.root };
        let pieces = self.group_of(table, group);
        let before = pieces.bytes();
        pieces.add(range.lower.into(), piece);
        let added = pieces.bytes() - before;
        self.bytes += added;
        self.unseen.insert(group);
    }

    fn group_of(&mut self, table: TableId, group: Lsn) -> &mut Pieces {
        let DetachedRanges { tables, groups, .. } = self;
        tables.entry(table).or_default().entry(group).or_insert_with(|| {
            groups.entry(group).or_default().push(table);
            Pieces::default()
        })
    }

    /// Where `snapshot` finds what is at a position, if that was detached since.
    pub(crate) fn route(&self, table: TableId, at: At<'_>, snapshot: Lsn) -> Option<Route> {
        let groups = self.tables.get(&table)?;
        let mut own = KeyRange::default();
        for (_, pieces) in groups.range(snapshot..) {
            match pieces.beside(at) {
                [Some((lower, piece)), _] if at.is_before(piece.upper.as_ref()) => {
                    let range = KeyRange { lower: lower.to_vec(), upper: piece.upper.as_deref().map(<[u8]>::to_vec) };
                    return Some(Route { root: piece.root, key_range: range.within(&own), until: piece.lsn });
                }
                beside => keep_clear_of(&mut own, beside),
            }
        }
        None
    }

    /// Cuts a range around a position so that it is clear of every range detached since `snapshot`; only for
    /// a position that [`DetachedRanges::route`] sends nowhere else.
    pub(crate) fn clear_range(&self, table: TableId, at: At<'_>, snapshot: Lsn, key_range: &mut KeyRange) {
        let groups = self.tables.get(&table);
        for (_, pieces) in groups.into_iter().flat_map(|groups| groups.range(snapshot..)) {
            keep_clear_of(key_range, pieces.beside(at));
        }
    }

    /// Finds out for whom the ranges are to be kept of batches that each new snapshot sees, `visible` being what it begins at: up to
    /// `most` of them. Says how many it looked at.
    pub(super) fn see(&mut self, snapshots: &Snapshots, visible: Lsn, most: usize, gone: &mut Gone) -> usize {
        let mut left = most;
        while left > 0
            && let Some(group) = self.unseen.first().copied().filter(|group| *group < visible)
            && self.hand_on(group, snapshots, &mut left, gone)
        {
            self.unseen.remove(&group);
            left = left.saturating_sub(1);
        }
        most - left
    }

    /// Takes note of snapshots that have closed.
    pub(crate) fn close(&mut self, closed: &[Lsn]) {
        self.closing.extend(closed.iter().filter(|closed| self.groups.contains_key(closed)));
    }

    /// True if something was kept for snapshots that have closed.
    pub(super) fn is_closing(&self) -> bool {
        !self.closing.is_empty()
    }

    /// Hands on, or forgets, up to `most` pieces that were kept for snapshots that have closed.
    pub(crate) fn forget(&mut self, snapshots: &Snapshots, most: usize, gone: &mut Gone) {
        let mut left = most;
        while left > 0
            && let Some(group) = self.closing.first().copied()
            && self.hand_on(group, snapshots, &mut left, gone)
        {
            self.closing.remove(&group);
            left = left.saturating_sub(1);
        }
    }

    /// Hands pieces of a group, `left` at the most, to the newest open snapshot that may ask for them. True: all of them, or that snapshot
    /// has them.
    fn hand_on(&mut self, group: Lsn, snapshots: &Snapshots, left: &mut usize, gone: &mut Gone) -> bool {
        let newest = snapshots.newest_before(group.plus(1));
        if newest == Some(group) {
            return true;
        }
        while let Some(table) = self.groups.get_mut(&group).and_then(Vec::pop) {
            looked_at_one();
            let done = match newest {
                Some(newest) if *left > 0 => self.hand_on_to(newest, group, table, left),
                None if *left > 0 => self.drop_group(group, table, gone),
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

    /// Forgets what a table has in a group that nobody can ask for.
    fn drop_group(&mut self, group: Lsn, table: TableId, gone: &mut Gone) -> bool {
        if let Some(groups) = self.tables.get_mut(&table) {
            if let Some(pieces) = groups.remove(&group) {
                self.bytes -= pieces.bytes();
                gone.detached.push(pieces);
            }
            if groups.is_empty() {
                self.tables.remove(&table);
            }
        }
        true
    }

    /// Hands pieces of a table on to the group of `newest`. A group between the two is one of a snapshot that has closed, whose
    /// pieces come before these: it takes them first.
    fn hand_on_to(&mut self, newest: Lsn, group: Lsn, table: TableId, left: &mut usize) -> bool {
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

//! The version store: before-images of what changed since the oldest open snapshot, beside the pages and never in
//! them.
//!
//! An event is filed *before* its page changes, so a reader that finds a leaf newer than its snapshot always finds
//! here what it must undo. Events are ordered by (table, key) and pruned in commit order. Nothing here touches a page.

use super::stretch::Stretch;
use crate::base::{Lsn, PageId, TableId};
use crate::page::Record;
use parking_lot::RwLock;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

/// A record as a leaf keeps it, owned: the bytes themselves, or the pointer to a run of pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OwnedRecord {
    pub(crate) bytes: Box<[u8]>,
    pub(crate) large: bool,
}

impl From<Record<'_>> for OwnedRecord {
    fn from(record: Record<'_>) -> OwnedRecord {
        OwnedRecord { bytes: record.bytes.into(), large: record.large }
    }
}

/// What a key had before an event: its record, or nothing.
pub(crate) type Before = Option<OwnedRecord>;

/// A subtree that was unlinked at `lsn`; older snapshots read its key range there.
#[derive(Clone, Debug)]
pub(crate) struct Detached {
    pub(crate) lsn: Lsn,
    pub(crate) root: PageId,
    pub(crate) lower: Vec<u8>,
    pub(crate) upper: Option<Vec<u8>>,
}

/// Where a snapshot finds the entries of a stretch of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    /// The root of the detached subtree.
    pub(crate) root: PageId,
    /// The keys for which this holds.
    pub(crate) stretch: Stretch,
    /// Point events from here on happened to the tree that replaced it.
    pub(crate) until: Lsn,
}

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

/// What happened to one key since the oldest snapshot, oldest event first. There is hardly ever more than one, so the
/// first needs no memory of its own.
struct Events {
    first: (Lsn, Before),
    later: Vec<(Lsn, Before)>,
}

impl Events {
    fn iter(&self) -> impl Iterator<Item = &(Lsn, Before)> {
        std::iter::once(&self.first).chain(&self.later)
    }

    /// Adds an event, unless there is one at that LSN.
    fn add(&mut self, lsn: Lsn, before: Before) -> bool {
        let last = self.later.last().unwrap_or(&self.first).0;
        if last != lsn {
            self.later.push((lsn, before));
        }
        last != lsn
    }

    /// Forgets the events up to `lsn`; true when none is left.
    fn forget(&mut self, lsn: Lsn) -> bool {
        self.later.retain(|(at, _)| *at > lsn);
        if self.first.0 > lsn {
            return false;
        }
        if self.later.is_empty() {
            return true;
        }
        self.first = self.later.remove(0);
        false
    }
}

#[derive(Default)]
struct TableVersions {
    points: BTreeMap<Arc<[u8]>, Events>,
    detached: Vec<Detached>,
}

#[derive(Default)]
struct Inner {
    tables: HashMap<TableId, TableVersions>,
    /// Keys of point events in commit order, so that pruning looks at nothing that stays.
    order: VecDeque<(Lsn, TableId, Arc<[u8]>)>,
}

/// See the module's words.
#[derive(Default)]
pub(crate) struct Versions {
    inner: RwLock<Inner>,
}

impl Versions {
    /// Files what `key` had before the change at `lsn`. A second change of the key at the same LSN keeps the first.
    pub(crate) fn add(&self, table: TableId, key: &[u8], lsn: Lsn, before: Before) {
        let key: Arc<[u8]> = key.into();
        let mut inner = self.inner.write();
        let added = match inner.tables.entry(table).or_default().points.entry(key.clone()) {
            Entry::Occupied(events) => events.into_mut().add(lsn, before),
            Entry::Vacant(place) => {
                place.insert(Events { first: (lsn, before), later: Vec::new() });
                true
            }
        };
        if added {
            inner.order.push_back((lsn, table, key));
        }
    }

    /// Files that a range of keys was detached.
    pub(crate) fn add_detached(&self, table: TableId, detached: Detached) {
        self.inner.write().tables.entry(table).or_default().detached.push(detached);
    }

    /// What `key` had at `snapshot`: `None` if no event since tells, so that the tree is right.
    pub(crate) fn point(&self, table: TableId, key: &[u8], snapshot: Lsn, until: Lsn) -> Option<Before> {
        let inner = self.inner.read();
        let events = inner.tables.get(&table)?.points.get(key)?;
        let (_, before) = events.iter().find(|(lsn, _)| *lsn > snapshot && *lsn < until)?;
        Some(before.clone())
    }

    /// Where `snapshot` finds what is at a position, if that was detached since.
    pub(crate) fn route(&self, table: TableId, at: At<'_>, snapshot: Lsn) -> Option<Route> {
        let inner = self.inner.read();
        let versions = inner.tables.get(&table)?;
        let since = || versions.detached.iter().filter(|d| d.lsn > snapshot);
        let detached = since().find(|d| at.within(&d.lower, d.upper.as_deref()))?;
        let Detached { root, lower, upper, lsn: until } = detached.clone();
        let mut route = Route { stretch: Stretch { lower, upper }, root, until };
        // A later event inside this stretch does not matter to the snapshot; an earlier one may begin inside it.
        for other in since().filter(|d| d.lsn < detached.lsn) {
            keep_clear_of(&mut route.stretch, at, other);
        }
        Some(route)
    }

    /// Cuts a stretch around a position so that it is clear of every range detached since `snapshot`; only for
    /// a position that [`Versions::route`] sends nowhere else.
    pub(crate) fn clear_stretch(&self, table: TableId, at: At<'_>, snapshot: Lsn, stretch: &mut Stretch) {
        let inner = self.inner.read();
        let Some(versions) = inner.tables.get(&table) else { return };
        for other in versions.detached.iter().filter(|d| d.lsn > snapshot) {
            keep_clear_of(stretch, at, other);
        }
    }

    /// The point events of `[from, to)` that `snapshot` must undo, first event of each key, in key order.
    pub(crate) fn points(
        &self,
        table: TableId,
        from: &[u8],
        to: Option<&[u8]>,
        snapshot: Lsn,
        until: Lsn,
    ) -> Vec<(Arc<[u8]>, Before)> {
        let inner = self.inner.read();
        let Some(versions) = inner.tables.get(&table) else { return Vec::new() };
        let upper = to.map_or(Bound::Unbounded, Bound::Excluded);
        if to.is_some_and(|to| to <= from) {
            return Vec::new();
        }
        let first_event = |(key, events): (&Arc<[u8]>, &Events)| {
            let event = events.iter().find(|(lsn, _)| *lsn > snapshot && *lsn < until)?;
            Some((key.clone(), event.1.clone()))
        };
        versions.points.range::<[u8], _>((Bound::Included(from), upper)).filter_map(first_event).collect()
    }

    /// Forgets the events that no snapshot from `oldest` on can ask for.
    pub(crate) fn prune(&self, oldest: Lsn) {
        let mut guard = self.inner.write();
        let inner = &mut *guard;
        while inner.order.front().is_some_and(|(lsn, ..)| *lsn <= oldest) {
            let Some((lsn, table, key)) = inner.order.pop_front() else { break };
            let Some(versions) = inner.tables.get_mut(&table) else { continue };
            if let Entry::Occupied(mut events) = versions.points.entry(key)
                && events.get_mut().forget(lsn)
            {
                events.remove();
            }
        }
        inner.tables.retain(|_, versions| {
            versions.detached.retain(|d| d.lsn > oldest);
            !versions.points.is_empty() || !versions.detached.is_empty()
        });
    }

    /// How many point events are kept.
    pub(crate) fn len(&self) -> usize {
        self.inner.read().order.len()
    }
}

impl At<'_> {
    /// True if the position lies in `[lower, upper)`.
    fn within(&self, lower: &[u8], upper: Option<&[u8]>) -> bool {
        match *self {
            At::Key(key) => lower <= key && upper.is_none_or(|upper| key < upper),
            At::Before(key) => lower < key && upper.is_none_or(|upper| key <= upper),
            At::End => upper.is_none(),
        }
    }

    /// True if the position lies before everything from `lower` on.
    fn is_left_of(&self, lower: &[u8]) -> bool {
        match *self {
            At::Key(key) => key < lower,
            At::Before(key) => key <= lower,
            At::End => false,
        }
    }
}

/// Cuts a stretch so that it has nothing of `other`, which does not hold the position.
fn keep_clear_of(stretch: &mut Stretch, at: At<'_>, other: &Detached) {
    if at.is_left_of(&other.lower) {
        if stretch.is_above(&other.lower) {
            stretch.upper = Some(other.lower.clone());
        }
    } else if let Some(upper) = &other.upper
        && *upper > stretch.lower
    {
        stretch.lower.clone_from(upper);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]
mod tests {
    use super::*;

    const TABLE: TableId = TableId(7);

    fn record(bytes: &[u8]) -> Before {
        Some(OwnedRecord { bytes: bytes.into(), large: false })
    }

    #[test]
    fn a_snapshot_sees_the_first_event_after_it() {
        let versions = Versions::default();
        versions.add(TABLE, b"k", Lsn(11), None);
        versions.add(TABLE, b"k", Lsn(21), record(b"one"));
        assert_eq!(versions.point(TABLE, b"k", Lsn(10), Lsn::MAX), Some(None));
        assert_eq!(versions.point(TABLE, b"k", Lsn(20), Lsn::MAX), Some(record(b"one")));
        assert_eq!(versions.point(TABLE, b"k", Lsn(30), Lsn::MAX), None);
        assert_eq!(versions.point(TABLE, b"other", Lsn(10), Lsn::MAX), None);
    }

    #[test]
    fn pruning_keeps_what_the_oldest_snapshot_needs() {
        let versions = Versions::default();
        versions.add(TABLE, b"a", Lsn(11), record(b"x"));
        versions.add(TABLE, b"a", Lsn(21), record(b"y"));
        versions.prune(Lsn(20));
        assert_eq!(versions.len(), 1);
        assert_eq!(versions.point(TABLE, b"a", Lsn(20), Lsn::MAX), Some(record(b"y")));
        versions.prune(Lsn(30));
        assert_eq!(versions.len(), 0);
        assert!(versions.inner.read().tables.is_empty());
    }

    #[test]
    fn detached_ranges_route_older_snapshots_only() {
        let versions = Versions::default();
        let (lower, upper) = (b"b".to_vec(), Some(b"h".to_vec()));
        versions.add_detached(TABLE, Detached { lsn: Lsn(50), root: PageId(9), lower, upper });
        let (lower, upper) = (b"f".to_vec(), None);
        versions.add_detached(TABLE, Detached { lsn: Lsn(70), root: PageId(8), lower, upper });
        let at = |at: At<'_>, snapshot| versions.route(TABLE, at, Lsn(snapshot)).map(|route| route.root.0);
        assert_eq!(at(At::Key(b"d"), 60), None);
        assert_eq!(at(At::Key(b"a"), 40), None);
        assert_eq!(at(At::Key(b"g"), 40), Some(9));
        assert_eq!(at(At::Key(b"h"), 40), Some(8));
        assert_eq!((at(At::Before(b"b"), 40), at(At::Before(b"h"), 40)), (None, Some(9)));
        assert_eq!((at(At::End, 40), at(At::End, 80)), (Some(8), None));
        let later = versions.route(TABLE, At::Key(b"h"), Lsn(40)).unwrap();
        assert_eq!((later.stretch.lower.as_slice(), later.until), (b"h".as_slice(), Lsn(70)));
        let mut stretch = Stretch { lower: Vec::new(), upper: None };
        versions.clear_stretch(TABLE, At::Key(b"a"), Lsn(40), &mut stretch);
        assert_eq!(stretch, Stretch { lower: Vec::new(), upper: Some(b"b".to_vec()) });
    }
}

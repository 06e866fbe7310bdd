//! The version store: before-images of what changed since the oldest open snapshot, beside the pages and never in
//! them.
//!
//! An event is filed *before* its page changes, so a reader that finds a leaf newer than its snapshot always finds
//! here what it must undo. Events are ordered by (table, key) and pruned in commit order. Nothing here touches a page.
//!
//! A batch's events first lie in runs (`version_run`), which cost next to nothing to file and to forget: mostly no
//! snapshot ever asks for them. Only those that one still may ask for at the next pruning are filed key by key.

use super::version_run::Run;
use crate::base::{Lsn, PageId, TableId};
use crate::page::Record;
use crate::tree::Stretch;
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

impl OwnedRecord {
    /// The record, borrowed.
    pub(crate) fn view(&self) -> Record<'_> {
        Record { bytes: &self.bytes, large: self.large }
    }
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
    /// Events later than all of those, in commit order.
    runs: Vec<Run>,
}

/// More runs than this are filed key by key: each look goes through all of them.
const MAX_RUNS: usize = 64;

impl Inner {
    fn add(&mut self, table: TableId, key: &[u8], lsn: Lsn, before: Option<Record<'_>>) {
        if let Some(run) = self.runs.last_mut().filter(|run| run.takes(table, lsn, key)) {
            run.push(key, before);
            return;
        }
        if self.runs.len() >= MAX_RUNS {
            self.settle(self.runs.len());
        }
        let mut run = Run::new(table, lsn);
        run.push(key, before);
        self.runs.push(run);
    }

    /// Files the events of the first so many runs key by key.
    fn settle(&mut self, runs: usize) {
        for run in self.runs.drain(..runs) {
            let (table, lsn) = (run.table(), run.lsn());
            let points = &mut self.tables.entry(table).or_default().points;
            for (key, before) in run.owned() {
                let added = match points.entry(key.clone()) {
                    Entry::Occupied(events) => events.into_mut().add(lsn, before),
                    Entry::Vacant(place) => {
                        place.insert(Events { first: (lsn, before), later: Vec::new() });
                        true
                    }
                };
                if added {
                    self.order.push_back((lsn, table, key));
                }
            }
        }
    }

    /// The runs that tell a snapshot of a table's events before `until`.
    fn runs_for(&self, table: TableId, snapshot: Lsn, until: Lsn) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(move |run| run.table() == table && run.lsn() > snapshot && run.lsn() < until)
    }
}

/// See the module's words.
#[derive(Default)]
pub(crate) struct Versions {
    inner: RwLock<Inner>,
}

impl Versions {
    /// Files what `key` had before the change at `lsn`. A second change of the key at the same LSN keeps the first.
    pub(crate) fn add(&self, table: TableId, key: &[u8], lsn: Lsn, before: Option<Record<'_>>) {
        self.inner.write().add(table, key, lsn, before);
    }

    /// Files that keys had nothing before the change at `lsn`.
    pub(crate) fn add_new<'k>(&self, table: TableId, lsn: Lsn, keys: impl Iterator<Item = &'k [u8]>) {
        let (mut inner, mut keys) = (self.inner.write(), keys);
        while let Some(key) = keys.next() {
            inner.add(table, key, lsn, None);
            // Mostly all that follow are for the same run.
            let Some(run) = inner.runs.last_mut() else { continue };
            for key in keys.by_ref() {
                if !run.takes(table, lsn, key) {
                    inner.add(table, key, lsn, None);
                    break;
                }
                run.push(key, None);
            }
        }
    }

    /// The same of keys of `width` bytes each, in order, one behind the other.
    pub(crate) fn add_new_alike(&self, table: TableId, lsn: Lsn, width: usize, keys: &[u8]) {
        let Some((first, others)) = keys.split_at_checked(width) else { return };
        let mut inner = self.inner.write();
        inner.add(table, first, lsn, None);
        // All that follow are above the first.
        if let Some(run) = inner.runs.last_mut() {
            run.push_new(width, others);
        }
    }

    /// Files that a range of keys was detached.
    pub(crate) fn add_detached(&self, table: TableId, detached: Detached) {
        self.inner.write().tables.entry(table).or_default().detached.push(detached);
    }

    /// What `key` had at `snapshot`: `None` if no event since tells, so that the tree is right.
    pub(crate) fn point(&self, table: TableId, key: &[u8], snapshot: Lsn, until: Lsn) -> Option<Before> {
        let inner = self.inner.read();
        let filed = || {
            let events = inner.tables.get(&table)?.points.get(key)?;
            events.iter().find(|(lsn, _)| *lsn > snapshot && *lsn < until).map(|(_, before)| before.clone())
        };
        let in_run = |run: &Run| Some(run.get(key)?.map(OwnedRecord::from));
        // What is filed key by key is older than what is in runs.
        filed().or_else(|| inner.runs_for(table, snapshot, until).find_map(in_run))
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
        let upper = to.map_or(Bound::Unbounded, Bound::Excluded);
        if to.is_some_and(|to| to <= from) {
            return Vec::new();
        }
        let first_event = |(key, events): (&Arc<[u8]>, &Events)| {
            let event = events.iter().find(|(lsn, _)| *lsn > snapshot && *lsn < until)?;
            Some((key.clone(), event.1.clone()))
        };
        let filed = inner.tables.get(&table).map(|versions| &versions.points);
        let filed = filed.into_iter().flat_map(|points| points.range::<[u8], _>((Bound::Included(from), upper)));
        let mut runs = inner.runs_for(table, snapshot, until).peekable();
        if runs.peek().is_none() {
            return filed.filter_map(first_event).collect();
        }
        let mut found: BTreeMap<Arc<[u8]>, Before> = filed.filter_map(first_event).collect();
        for (key, before) in runs.flat_map(|run| run.range(from, to)) {
            if !found.contains_key(key) {
                found.insert(key.into(), before.map(OwnedRecord::from));
            }
        }
        found.into_iter().collect()
    }

    /// Forgets the events that no snapshot from `oldest` on can ask for. Those of batches that new snapshots, which begin
    /// at `visible`, do not see yet stay in their runs: mostly they are forgotten before anybody asks.
    pub(crate) fn prune(&self, oldest: Lsn, visible: Lsn) {
        let mut guard = self.inner.write();
        let inner = &mut *guard;
        inner.runs.retain(|run| run.lsn() > oldest);
        let seen = inner.runs.iter().take_while(|run| run.lsn() <= visible).count();
        inner.settle(seen);
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
        let inner = self.inner.read();
        inner.order.len() + inner.runs.iter().map(Run::len).sum::<usize>()
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
        versions.add(TABLE, b"k", Lsn(21), Some(Record::inline(b"one")));
        assert_eq!(versions.point(TABLE, b"k", Lsn(10), Lsn::MAX), Some(None));
        assert_eq!(versions.point(TABLE, b"k", Lsn(20), Lsn::MAX), Some(record(b"one")));
        assert_eq!(versions.point(TABLE, b"k", Lsn(30), Lsn::MAX), None);
        assert_eq!(versions.point(TABLE, b"other", Lsn(10), Lsn::MAX), None);
    }

    #[test]
    fn events_are_found_alike_in_runs_and_key_by_key() {
        let versions = Versions::default();
        let file = |lsn, keys: &[&[u8]]| {
            keys.iter().for_each(|key| versions.add(TABLE, key, Lsn(lsn), Some(Record::inline(key))))
        };
        file(11, &[b"b", b"d", b"a"]);
        versions.add(TABLE, b"d", Lsn(11), Some(Record::inline(b"second at one LSN")));
        file(21, &[b"a", b"c"]);
        let range = |snapshot| {
            let points = versions.points(TABLE, b"a", Some(b"d"), Lsn(snapshot), Lsn::MAX);
            points.iter().map(|(key, before)| (key.to_vec(), before.clone())).collect::<Vec<_>>()
        };
        let at = |key: &[u8], snapshot| versions.point(TABLE, key, Lsn(snapshot), Lsn::MAX);
        let look = || (range(10), range(15), at(b"d", 10), at(b"b", 15), at(b"a", 15));
        let in_runs = look();
        assert_eq!((versions.len(), versions.inner.read().runs.len()), (6, 3));
        // Nothing can go yet, and nobody asks.
        versions.prune(Lsn(5), Lsn(5));
        assert_eq!((versions.len(), versions.inner.read().runs.len()), (6, 3));
        versions.prune(Lsn(5), Lsn(15));
        assert_eq!((versions.len(), versions.inner.read().runs.len()), (5, 1));
        assert_eq!(look(), in_runs);
        versions.prune(Lsn(5), Lsn(21));
        assert_eq!((versions.len(), versions.inner.read().runs.len()), (5, 0));
        assert_eq!(look(), in_runs);
        let keys = |range: Vec<(Vec<u8>, Before)>| range.into_iter().flat_map(|(key, _)| key).collect::<Vec<u8>>();
        assert_eq!((keys(in_runs.0), keys(in_runs.1)), (b"abc".to_vec(), b"ac".to_vec()));
        assert_eq!((in_runs.2, in_runs.3, in_runs.4), (Some(record(b"d")), None, Some(record(b"a"))));
    }

    #[test]
    fn nothing_and_an_empty_record_and_a_large_one_are_told_apart() {
        let versions = Versions::default();
        let large = Record { bytes: b"twelve bytes", large: true };
        let all = [(b"a", None), (b"b", Some(Record::inline(b""))), (b"c", Some(large)), (b"d", None)];
        all.iter().for_each(|(key, before)| versions.add(TABLE, *key, Lsn(11), *before));
        let expected = |before: Option<Record<'_>>| Some(before.map(OwnedRecord::from));
        for _ in 0..2 {
            for (key, before) in all {
                assert_eq!(versions.point(TABLE, key, Lsn(10), Lsn::MAX), expected(before));
            }
            assert_eq!(versions.point(TABLE, b"", Lsn(10), Lsn::MAX), None);
            assert_eq!(versions.points(TABLE, b"b", Some(b"d"), Lsn(10), Lsn::MAX).len(), 2);
            // The same once they are filed key by key.
            versions.prune(Lsn(5), Lsn(11));
        }
    }

    #[test]
    fn new_keys_are_told_alike_together_and_one_by_one() {
        let keys: Vec<[u8; 4]> = (0..40u32).map(|key| (3 * key).to_be_bytes()).collect();
        for (old, odd) in [(false, false), (true, false), (false, true), (true, true)] {
            let (together, single) = (Versions::default(), Versions::default());
            for versions in [&together, &single] {
                if old {
                    versions.add(TABLE, &[0, 0, 0], Lsn(11), Some(Record::inline(b"x")));
                }
            }
            together.add_new_alike(TABLE, Lsn(11), 4, &keys.concat());
            keys.iter().for_each(|key| single.add(TABLE, key, Lsn(11), None));
            for versions in [&together, &single] {
                if odd {
                    versions.add(TABLE, &[1], Lsn(11), None);
                    versions.add(TABLE, &[1, 2], Lsn(11), Some(Record::inline(b"y")));
                }
                versions.add_new_alike(TABLE, Lsn(21), 4, &[]);
            }
            for _ in 0..2 {
                assert_eq!(together.len(), single.len());
                for key in (0..130u32).map(u32::to_be_bytes).chain([[1, 2, 0, 0]]) {
                    for len in 0..=4 {
                        let look = |versions: &Versions| versions.point(TABLE, &key[..len], Lsn(10), Lsn::MAX);
                        assert_eq!(look(&together), look(&single));
                    }
                    let look = |versions: &Versions| versions.points(TABLE, &key, Some(&[1, 2]), Lsn(10), Lsn::MAX);
                    assert_eq!(look(&together), look(&single));
                }
                // The same once they are filed key by key.
                together.prune(Lsn(5), Lsn(11));
                single.prune(Lsn(5), Lsn(11));
            }
        }
    }

    #[test]
    fn pruning_keeps_what_the_oldest_snapshot_needs() {
        let versions = Versions::default();
        versions.add(TABLE, b"a", Lsn(11), Some(Record::inline(b"x")));
        versions.add(TABLE, b"a", Lsn(21), Some(Record::inline(b"y")));
        versions.prune(Lsn(20), Lsn(30));
        assert_eq!(versions.len(), 1);
        assert_eq!(versions.point(TABLE, b"a", Lsn(20), Lsn::MAX), Some(record(b"y")));
        versions.prune(Lsn(30), Lsn(30));
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

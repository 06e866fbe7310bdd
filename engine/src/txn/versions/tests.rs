//! Tests of the kept versions against a model of all snapshots.

use super::*;
use proptest::prelude::*;

const TABLE: TableId = TableId(7);

fn record(bytes: &[u8]) -> Before {
    Some(OwnedRecord { bytes: bytes.into(), large: false })
}

/// A registry with these open snapshots, in which new ones begin at `visible`.
fn registry(open: &[u64], visible: u64) -> Snapshots {
    let snapshots = Snapshots::default();
    for lsn in open {
        snapshots.publish(Lsn(*lsn));
        snapshots.open();
    }
    snapshots.publish(Lsn(visible));
    snapshots
}

impl Versions {
    fn prune_all(&self, snapshots: &Snapshots) -> Vec<OwnedRecord> {
        let mut larges = Vec::new();
        loop {
            let pruned = self.prune(snapshots, 2);
            larges.extend(pruned.removed.larges());
            if pruned.done {
                return larges;
            }
        }
    }

    fn len(&self) -> usize {
        self.held_back().events
    }
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
fn runs_and_single_key_events_give_the_same_result() {
    let versions = Versions::default();
    let file =
        |lsn, keys: &[&[u8]]| keys.iter().for_each(|key| versions.add(TABLE, key, Lsn(lsn), Some(Record::inline(key))));
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
    // Nothing can be removed yet, and no snapshot needs anything.
    versions.prune_all(&registry(&[5], 5));
    assert_eq!((versions.len(), versions.inner.read().runs.len()), (6, 3));
    versions.prune_all(&registry(&[10, 15], 15));
    assert_eq!((versions.len(), versions.inner.read().runs.len()), (5, 1));
    assert_eq!(look(), in_runs);
    versions.prune_all(&registry(&[10, 15], 21));
    assert_eq!((versions.len(), versions.inner.read().runs.len()), (5, 0));
    assert_eq!(look(), in_runs);
    let keys = |range: Vec<(Vec<u8>, Before)>| range.into_iter().flat_map(|(key, _)| key).collect::<Vec<u8>>();
    assert_eq!((keys(in_runs.0), keys(in_runs.1)), (b"abc".to_vec(), b"ac".to_vec()));
    assert_eq!((in_runs.2, in_runs.3, in_runs.4), (Some(record(b"d")), None, Some(record(b"a"))));
}

#[test]
fn missing_empty_and_large_before_images_are_distinguished() {
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
        // The same after the events moved out of the runs.
        versions.prune_all(&registry(&[5], 11));
    }
}

#[test]
fn new_keys_are_found_whether_added_together_or_one_by_one() {
    let keys: Vec<[u8; 4]> = (0..40u32).map(|key| (3 * key).to_be_bytes()).collect();
    for (old, odd) in [(false, false), (true, false), (false, true), (true, true)] {
        let (together, single) = (Versions::default(), Versions::default());
        for versions in [&together, &single] {
            if old {
                versions.add(TABLE, &[0, 0, 0], Lsn(11), Some(Record::inline(b"x")));
            }
        }
        together.add_new(TABLE, Lsn(11), keys.iter().map(<[u8; 4]>::as_slice));
        keys.iter().for_each(|key| single.add(TABLE, key, Lsn(11), None));
        for versions in [&together, &single] {
            if odd {
                versions.add(TABLE, &[1], Lsn(11), None);
                versions.add(TABLE, &[1, 2], Lsn(11), Some(Record::inline(b"y")));
            }
            versions.add_new(TABLE, Lsn(21), std::iter::empty());
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
            // The same after the events moved out of the runs.
            together.prune_all(&registry(&[5], 11));
            single.prune_all(&registry(&[5], 11));
        }
    }
}

#[test]
fn pruning_keeps_the_versions_that_the_oldest_snapshot_needs() {
    let (versions, snapshots) = (Versions::default(), registry(&[20], 30));
    versions.add(TABLE, b"a", Lsn(11), Some(Record::inline(b"x")));
    versions.add(TABLE, b"a", Lsn(21), Some(Record::inline(b"y")));
    versions.prune_all(&snapshots);
    assert_eq!((versions.len(), versions.is_holding()), (1, true));
    assert_eq!(versions.point(TABLE, b"a", Lsn(20), Lsn::MAX), Some(record(b"y")));
    snapshots.close(Lsn(20));
    versions.prune_all(&snapshots);
    assert_eq!((versions.len(), versions.held_back().bytes, versions.is_holding()), (0, 0, false));
}

#[test]
fn a_key_that_changes_often_keeps_one_event_for_each_snapshot() {
    let (versions, snapshots) = (Versions::default(), registry(&[5], 5));
    for lsn in (11..10_000).step_by(10) {
        versions.add(TABLE, b"k", Lsn(lsn), Some(Record::inline(&lsn.to_be_bytes())));
        snapshots.publish(Lsn(lsn + 9));
        if lsn == 5001 {
            snapshots.open();
        }
        versions.prune_all(&snapshots);
    }
    assert_eq!(versions.len(), 2);
    let at = |snapshot| versions.point(TABLE, b"k", Lsn(snapshot), Lsn::MAX).flatten().unwrap().bytes;
    assert_eq!((at(5), at(5010)), (11u64.to_be_bytes().into(), 5011u64.to_be_bytes().into()));
}

#[derive(Clone, Debug)]
enum Op {
    /// A batch that changes these keys, in this order.
    Batch(Vec<u8>),
    /// All batches except this number of the last ones become visible.
    Publish(usize),
    Open,
    Close(prop::sample::Index),
    Prune(usize),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => prop::collection::vec(0u8..12, 1..9).prop_map(Op::Batch),
        1 => prop::collection::vec(0u8..12, 60..90).prop_map(Op::Batch),
        4 => (0usize..4).prop_map(Op::Publish),
        3 => Just(Op::Open),
        3 => any::<prop::sample::Index>().prop_map(Op::Close),
        4 => (1usize..30).prop_map(Op::Prune),
    ]
}

/// The key, the LSN and the record of an event. The record is large and unique.
type Event = (u8, Lsn, OwnedRecord);

/// The event that a snapshot must find for a key.
fn wanted(events: &[Event], key: u8, snapshot: Lsn) -> Option<&Event> {
    events.iter().find(|(k, lsn, _)| *k == key && *lsn > snapshot)
}

proptest! {
    /// Compares with a list of all events that were ever added.
    #[test]
    fn every_open_snapshot_finds_its_events_and_others_are_removed_once(ops in prop::collection::vec(op(), 1..120)) {
        let (versions, snapshots) = (Versions::default(), Snapshots::new(Lsn(1)));
        let (mut events, mut removed, mut open) = (Vec::<Event>::new(), Vec::<OwnedRecord>::new(), vec![]);
        let mut end = 1;
        for op in ops.into_iter().chain([Op::Publish(0), Op::Prune(usize::MAX)]) {
            match op {
                Op::Batch(keys) => {
                    let lsn = Lsn(end + 1);
                    end += 10;
                    let mut changed = std::collections::BTreeSet::new();
                    for key in keys.into_iter().filter(|key| changed.insert(*key) || *key % 2 == 0) {
                        // A second change at one LSN has a record that is not large and that nobody sees.
                        let second = events.iter().any(|event| (event.0, event.1) == (key, lsn));
                        let record = OwnedRecord { bytes: events.len().to_be_bytes().into(), large: !second };
                        versions.add(TABLE, &[key], lsn, Some(record.view()));
                        if !second {
                            events.push((key, lsn, record));
                        }
                    }
                }
                Op::Publish(behind) => snapshots.publish(Lsn(end.saturating_sub(10 * behind as u64))),
                Op::Open => open.push(snapshots.open()),
                Op::Close(at) if !open.is_empty() => _ = snapshots.close(open.swap_remove(at.index(open.len()))),
                Op::Close(_) => {}
                Op::Prune(most) => removed.extend(versions.prune(&snapshots, most).removed.larges()),
            }
            let visible = snapshots.visible();
            let readers = || open.iter().copied().chain((visible.0..=end).step_by(10).map(Lsn));
            for (key, snapshot) in (0..12).flat_map(|key| readers().map(move |snapshot| (key, snapshot))) {
                let right = wanted(&events, key, snapshot).map(|event| Some(event.2.clone()));
                prop_assert_eq!(&versions.point(TABLE, &[key], snapshot, Lsn::MAX), &right);
                let all = versions.points(TABLE, &[key], Some(&[key + 1]), snapshot, Lsn::MAX);
                prop_assert_eq!(all.first().map(|found| &found.1), right.as_ref());
                prop_assert!(right.flatten().is_none_or(|record| !removed.contains(&record)));
            }
        }
        removed.extend(versions.prune_all(&snapshots));
        open.sort_unstable();
        open.dedup();
        let needed = |event: &Event| open.iter().any(|at| wanted(&events, event.0, *at) == Some(event));
        prop_assert_eq!(versions.len(), events.iter().filter(|event| needed(event)).count());
        while snapshots.count() > 0 {
            for at in &open {
                snapshots.close(*at);
            }
        }
        removed.extend(versions.prune_all(&snapshots));
        prop_assert_eq!((versions.len(), versions.held_back().bytes), (0, 0));
        removed.sort_unstable_by(|a, b| a.bytes.cmp(&b.bytes));
        let all = events.iter().map(|event| &event.2);
        prop_assert!(removed.iter().eq(all), "{} of {} events", removed.len(), events.len());
    }
}

//! Tests of the detached ranges: which snapshots need them, and the work of many ranges.

use super::*;
use crate::txn::versions::range_map::work::EXAMINED;
use proptest::prelude::*;

const TABLE: TableId = TableId(7);

/// Detached ranges and the snapshots that need them.
#[derive(Default)]
struct Scene {
    ranges: DetachedRanges,
    snapshots: Snapshots,
    end: u64,
}

impl Scene {
    /// A batch that detaches these ranges. Each range has a root of its own.
    fn batch(&mut self, ranges: impl IntoIterator<Item = (TableId, Vec<u8>, Option<Vec<u8>>, u32)>) {
        let lsn = Lsn(self.end + 1);
        self.end += 10;
        for (table, lower, upper, root) in ranges {
            self.ranges.add(table, Detached { lsn, root: PageId(root), lower, upper });
        }
    }

    fn publish(&self) {
        self.snapshots.publish(Lsn(self.end));
    }

    /// Detaches a range and makes this visible to new snapshots.
    fn detach(&mut self, lower: &[u8], upper: Option<&[u8]>) {
        let root = self.end as u32;
        self.batch([(TABLE, lower.to_vec(), upper.map(<[u8]>::to_vec), root)]);
        self.publish();
    }

    fn prune(&mut self, limit: usize) {
        let state = self.snapshots.take_state();
        let mut removed = RemovedVersions::default();
        self.ranges.close(&state.closed);
        let left = limit - self.ranges.assign(&self.snapshots, state.visible, limit, &mut removed);
        self.ranges.remove_closed(&self.snapshots, left, &mut removed);
    }

    fn prune_all(&mut self) {
        self.prune(2);
        let due = |ranges: &DetachedRanges, visible| ranges.unseen.first().is_some_and(|group| *group < visible);
        while due(&self.ranges, self.snapshots.visible()) || self.ranges.is_closing() {
            self.prune(2);
        }
    }

    /// The roots of all pieces, group by group.
    fn kept(&self) -> Vec<u32> {
        let all = self.ranges.tables.values().flat_map(BTreeMap::values).flat_map(RangeMap::all);
        all.map(|(_, piece)| piece.root.0).collect()
    }

    fn root(&self, key: &[u8], snapshot: Lsn) -> Option<u32> {
        self.ranges.route(TABLE, Position::Key(key), snapshot).map(|route| route.root.0)
    }
}

#[test]
fn a_range_detached_again_and_again_is_kept_once_for_each_snapshot() {
    let mut scene = Scene::default();
    let oldest = scene.snapshots.open();
    let again = |scene: &mut Scene, times, lower: &[u8], upper: &[u8]| {
        for _ in 0..times {
            scene.detach(lower, Some(upper));
            scene.prune_all();
        }
    };
    again(&mut scene, 1, b"b", b"h");
    again(&mut scene, 99, b"c", b"h");
    assert_eq!(scene.kept(), [0]);
    let newer = scene.snapshots.open();
    again(&mut scene, 99, b"d", b"f");
    again(&mut scene, 1, b"a", b"d");
    assert_eq!(scene.kept(), [0, 1990, 1000]);
    assert_eq!((scene.root(b"e", oldest), scene.root(b"e", newer)), (Some(0), Some(1000)));
    assert_eq!((scene.root(b"a", oldest), scene.root(b"a", newer)), (Some(1990), Some(1990)));
    scene.snapshots.close(newer);
    scene.prune_all();
    assert_eq!(scene.kept(), [1990, 0]);
    scene.snapshots.close(oldest);
    scene.prune_all();
    assert_eq!((scene.kept(), scene.ranges.bytes(), scene.ranges.is_empty()), (vec![], 0, true));
}

#[test]
fn detached_ranges_route_older_snapshots_only() {
    let mut ranges = DetachedRanges::default();
    let (lower, upper) = (b"b".to_vec(), Some(b"h".to_vec()));
    ranges.add(TABLE, Detached { lsn: Lsn(50), root: PageId(9), lower, upper });
    let (lower, upper) = (b"f".to_vec(), None);
    ranges.add(TABLE, Detached { lsn: Lsn(70), root: PageId(8), lower, upper });
    let at = |at: Position<'_>, snapshot| ranges.route(TABLE, at, Lsn(snapshot)).map(|route| route.root.0);
    assert_eq!(at(Position::Key(b"d"), 60), None);
    assert_eq!(at(Position::Key(b"a"), 40), None);
    assert_eq!(at(Position::Key(b"g"), 40), Some(9));
    assert_eq!(at(Position::Key(b"h"), 40), Some(8));
    assert_eq!((at(Position::Before(b"b"), 40), at(Position::Before(b"h"), 40)), (None, Some(9)));
    assert_eq!((at(Position::End, 40), at(Position::End, 80)), (Some(8), None));
    let later = ranges.route(TABLE, Position::Key(b"h"), Lsn(40)).unwrap();
    assert_eq!((later.key_range.lower.as_slice(), later.until), (b"h".as_slice(), Lsn(70)));
    let mut key_range = KeyRange { lower: Vec::new(), upper: None };
    ranges.clear_range(TABLE, Position::Key(b"a"), Lsn(40), &mut key_range);
    assert_eq!(key_range, KeyRange { lower: Vec::new(), upper: Some(b"b".to_vec()) });
}

/// How many items are examined when `count` ranges are detached, each in a commit of its own, while a held snapshot is
/// read repeatedly; and when that snapshot is closed.
fn work(count: u32, range: impl Fn(u32) -> (u32, u32)) -> usize {
    EXAMINED.set(0);
    let mut scene = Scene::default();
    let held = scene.snapshots.open();
    for turn in 0..count {
        let (lower, upper) = range(turn);
        scene.detach(&lower.to_be_bytes(), Some(&upper.to_be_bytes()));
        scene.prune(1024);
        let (key, mut key_range) = (lower.wrapping_mul(77).to_be_bytes(), KeyRange::default());
        if scene.ranges.route(TABLE, Position::Key(&key), held).is_none() {
            scene.ranges.clear_range(TABLE, Position::Key(&key), held, &mut key_range);
        }
        if turn % 64 == 0 {
            // A snapshot that is soon closed.
            scene.snapshots.open();
        } else if turn % 64 == 32 {
            let newest = scene.snapshots.newest_before(Lsn::MAX).unwrap();
            scene.snapshots.close(newest);
        }
    }
    scene.snapshots.close(held);
    scene.prune_all();
    assert!(scene.ranges.is_empty() || scene.snapshots.count() > 0);
    EXAMINED.get()
}

#[test]
fn detaching_a_range_takes_constant_time_with_an_open_snapshot() {
    let separate = |turn: u32| (turn.wrapping_mul(0x9e37_79b1), turn.wrapping_mul(0x9e37_79b1).saturating_add(3));
    let neighbours = |turn: u32| (turn * 10, turn * 10 + 10);
    let growing = |turn: u32| (0, turn + 1);
    let downwards = |turn: u32| (1_000_000 - turn, 1_000_000);
    let few_again = |turn: u32| (turn % 100, turn % 100 + 7);
    // In every second turn, a wide range over all others.
    let wide = |turn: u32| if turn.is_multiple_of(2) { (turn * 10, turn * 10 + 5) } else { (0, u32::MAX) };
    for range in [&separate as &dyn Fn(u32) -> (u32, u32), &neighbours, &growing, &downwards, &few_again, &wide] {
        let (once, twice) = (work(4000, range), work(8000, range));
        assert!(twice < once * 5 / 2, "{once} for 4000 ranges, {twice} for 8000");
        assert!(once < 4000 * 20, "{once} for 4000 ranges");
    }
}

#[derive(Clone, Debug)]
enum Op {
    /// A batch that detaches these ranges of keys. `KEYS` stands for the end.
    Batch(Vec<(u8, u8)>),
    /// All batches except this number of the last ones become visible.
    Publish(usize),
    Open,
    Close(prop::sample::Index),
    Prune(usize),
}

const KEYS: u8 = 12;

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => prop::collection::vec((0..KEYS, 0..=KEYS), 1..4).prop_map(Op::Batch),
        4 => (0usize..4).prop_map(Op::Publish),
        3 => Just(Op::Open),
        3 => any::<prop::sample::Index>().prop_map(Op::Close),
        4 => (1usize..6).prop_map(Op::Prune),
    ]
}

/// A list of all ranges that were ever detached.
#[derive(Default)]
struct Naive(Vec<Detached>);

impl Naive {
    /// The first range since `snapshot` that contains a position, without the parts that earlier ranges cover.
    fn route(&self, at: Position<'_>, snapshot: Lsn) -> Option<Route> {
        let since = || self.0.iter().filter(|range| range.lsn > snapshot);
        let found = since().find(|range| within(at, range))?;
        let mut key_range = KeyRange { lower: found.lower.clone(), upper: found.upper.clone() };
        since().filter(|range| range.lsn < found.lsn).for_each(|range| cut(&mut key_range, at, range));
        Some(Route { root: found.root, key_range, until: found.lsn })
    }

    fn clear(&self, at: Position<'_>, snapshot: Lsn) -> KeyRange {
        let mut key_range = KeyRange::default();
        self.0.iter().filter(|range| range.lsn > snapshot).for_each(|range| cut(&mut key_range, at, range));
        key_range
    }
}

fn within(at: Position<'_>, Detached { lower, upper, .. }: &Detached) -> bool {
    match at {
        Position::Key(key) => &**lower <= key && upper.as_deref().is_none_or(|upper| key < upper),
        Position::Before(key) => &**lower < key && upper.as_deref().is_none_or(|upper| key <= upper),
        Position::End => upper.is_none(),
    }
}

/// Cuts a range around a position so that it does not overlap a range that does not contain the position.
fn cut(key_range: &mut KeyRange, at: Position<'_>, range: &Detached) {
    let left = match at {
        Position::Key(key) => key < &*range.lower,
        Position::Before(key) => key <= &*range.lower,
        Position::End => false,
    };
    match &range.upper {
        _ if left && key_range.is_above(&range.lower) => key_range.upper = Some(range.lower.clone()),
        Some(upper) if !left && *upper > key_range.lower => key_range.lower.clone_from(upper),
        _ => {}
    }
}

proptest! {
    /// Compares with a list of all ranges.
    #[test]
    fn detached_ranges_agree_with_a_plain_list(ops in prop::collection::vec(op(), 1..100)) {
        let (mut scene, mut naive, mut open) = (Scene::default(), Naive::default(), vec![]);
        for op in ops.into_iter().chain([Op::Publish(0), Op::Prune(usize::MAX)]) {
            match op {
                Op::Batch(ranges) => {
                    let lsn = Lsn(scene.end + 1);
                    let mut batch = Vec::new();
                    for (lower, upper) in ranges {
                        let (from, to) = (lower, if upper == KEYS { u8::MAX } else { upper });
                        // A transaction detaches each key once.
                        if from >= to || batch.iter().any(|(lower, upper)| from < *upper && *lower < to) {
                            continue;
                        }
                        batch.push((from, to));
                        let upper = (to != u8::MAX).then(|| vec![to]);
                        naive.0.push(Detached { lsn, root: PageId(naive.0.len() as u32), lower: vec![from], upper });
                    }
                    let new = naive.0.iter().filter(|range| range.lsn == lsn);
                    scene.batch(new.map(|range| (TABLE, range.lower.clone(), range.upper.clone(), range.root.0)));
                }
                Op::Publish(behind) => {
                    scene.snapshots.publish(Lsn(scene.end.saturating_sub(10 * behind as u64)));
                }
                Op::Open => open.push(scene.snapshots.open()),
                Op::Close(at) if !open.is_empty() => _ = scene.snapshots.close(open.swap_remove(at.index(open.len()))),
                Op::Close(_) => {}
                Op::Prune(limit) => scene.prune(limit),
            }
            let yet = (scene.snapshots.visible().0..=scene.end).step_by(10).map(Lsn);
            for snapshot in open.iter().copied().chain(yet) {
                let keys: Vec<[u8; 1]> = (0..=KEYS).map(|key| [key]).collect();
                let positions =
                    keys.iter().flat_map(|key| [Position::Key(key), Position::Before(key)]).chain([Position::End]);
                for at in positions {
                    let wanted = naive.route(at, snapshot);
                    prop_assert_eq!(&scene.ranges.route(TABLE, at, snapshot), &wanted, "{:?} at {:?}", at, snapshot);
                    if wanted.is_none() {
                        let mut key_range = KeyRange::default();
                        scene.ranges.clear_range(TABLE, at, snapshot, &mut key_range);
                        prop_assert_eq!(key_range, naive.clear(at, snapshot), "{:?} at {:?}", at, snapshot);
                    }
                }
            }
        }
        scene.prune_all();
        let groups = scene.ranges.tables.values().flat_map(BTreeMap::keys);
        prop_assert!(groups.into_iter().all(|group| open.contains(group)), "a group without a snapshot");
        open.drain(..).for_each(|snapshot| _ = scene.snapshots.close(snapshot));
        scene.prune_all();
        prop_assert!(scene.ranges.is_empty() && scene.ranges.groups.is_empty() && scene.ranges.bytes() == 0);
    }
}

//! The possible effects of a simulated power cut on files and names.

use duramen::io::{Disk, OpenMode, Volume};
use duramen_sim::{Cut, CutChoice, DEVICE_BLOCK, FailingVolume, SECTOR};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::Arc;

const SEEDS: u64 = 200;

fn create(volume: &FailingVolume, name: &str) -> Arc<dyn Disk> {
    volume.open(name, OpenMode::CreateNew).unwrap()
}

/// A durable, durably named file of `bytes`.
fn durable(volume: &FailingVolume, name: &str, bytes: &[u8]) -> Arc<dyn Disk> {
    let disk = create(volume, name);
    disk.write_at(0, bytes).unwrap();
    disk.sync().unwrap();
    volume.sync().unwrap();
    disk
}

/// The content of a file; `None` where there is none.
fn content(volume: &FailingVolume, name: &str) -> Option<Vec<u8>> {
    let disk = volume.open(name, OpenMode::Read).ok()?;
    let mut bytes = vec![0; disk.size().unwrap() as usize];
    disk.read_at(0, &mut bytes).unwrap();
    Some(bytes)
}

/// The volume cut now, with nothing in flight.
fn now(volume: &FailingVolume, choice: CutChoice) -> FailingVolume {
    volume.crash(Cut { event: volume.events(), choice })
}

/// The volume cut while its last event was in flight.
fn in_last(volume: &FailingVolume, choice: CutChoice) -> FailingVolume {
    volume.crash(Cut { event: volume.events() - 1, choice })
}

#[derive(Debug, Clone)]
enum Op {
    /// At, length, the byte.
    Write(usize, usize, u8),
    Resize(usize),
    Trim(usize, usize),
    Sync,
}

fn op() -> impl Strategy<Value = Op> {
    let at = || 0usize..3 * DEVICE_BLOCK;
    prop_oneof![
        5 => (at(), 1usize..6000, 1u8..).prop_map(|(at, len, byte)| Op::Write(at, len, byte)),
        2 => at().prop_map(Op::Resize),
        1 => (at(), 0usize..6000).prop_map(|(at, len)| Op::Trim(at, len)),
        1 => Just(Op::Sync),
    ]
}

/// A moment of a file, as the test itself keeps it; `None` is a byte that may be anything.
type Moment = Vec<Option<u8>>;

fn step(moment: &Moment, op: &Op) -> Moment {
    let mut next = moment.clone();
    match op {
        Op::Write(at, len, byte) => {
            next.resize(next.len().max(at + len), Some(0));
            next[*at..at + len].fill(Some(*byte));
        }
        Op::Resize(len) => next.resize(*len, Some(0)),
        Op::Trim(at, len) => {
            let end = (at + len).min(next.len());
            next[(*at).min(end)..end].fill(None);
        }
        Op::Sync => {}
    }
    next
}

fn run(disk: &dyn Disk, op: &Op) {
    match op {
        Op::Write(at, len, byte) => disk.write_at(*at as u64, &vec![*byte; *len]).unwrap(),
        Op::Resize(len) => disk.resize(*len as u64).unwrap(),
        Op::Trim(at, len) => disk.trim(*at as u64, *len as u64).unwrap(),
        Op::Sync => disk.sync().unwrap(),
    }
}

/// Fails unless every byte of `found`, and its length, was so at one of `moments`; a torn write may also have grown
/// the file in part.
fn was_so(found: &[u8], moments: &[Moment], torn: bool, cut: &str) {
    let longest = moments.iter().map(Vec::len).max().unwrap();
    let was_length = moments.iter().any(|moment| moment.len() == found.len());
    assert!(was_length || (torn && found.len() < longest), "{cut}: length {}", found.len());
    for (at, &byte) in found.iter().enumerate() {
        let possible = moments.iter().any(|moment| match moment.get(at) {
            // Bytes after the end become zero when a later length takes them in.
            None => byte == 0,
            Some(None) => true,
            Some(Some(then)) => byte == *then,
        });
        assert!(possible, "{cut}: byte {byte} at {at}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_byte_after_a_power_cut_was_written_at_or_after_the_last_sync(ops in prop::collection::vec(op(), 1..16)) {
        let volume = FailingVolume::new(1);
        let disk = create(&volume, "f");
        volume.sync().unwrap();
        // The moments that a cut may bring back, by the number of events that had happened.
        let mut moments = vec![Moment::new()];
        let mut allowed = vec![(volume.events(), moments.clone())];
        for op in &ops {
            let before = volume.events();
            run(&*disk, op);
            let next = step(moments.last().unwrap(), op);
            if matches!(op, Op::Sync) {
                moments = vec![next];
            } else {
                moments.push(next);
                // The event in flight takes part.
                allowed.last_mut().unwrap().1 = moments.clone();
            }
            if volume.events() > before {
                allowed.push((volume.events(), moments.clone()));
            }
        }
        for cut in volume.cuts(3) {
            let Some((_, moments)) = allowed.iter().find(|(events, _)| *events == cut.event) else { continue };
            let found = content(&volume.crash(cut), "f").unwrap();
            let torn = matches!(cut.choice, CutChoice::Torn(_));
            was_so(&found, moments, torn, &format!("{cut:?} of {ops:?}"));
        }
        let kept = content(&now(&volume, CutChoice::KeepAll), "f");
        prop_assert!(kept == content(&volume, "f"));
    }
}

#[test]
fn synced_bytes_survive_every_power_cut() {
    let volume = FailingVolume::new(1);
    let disk = durable(&volume, "f", &[1; 20_000]);
    let synced = volume.events();
    disk.write_at(0, &[2; 20_000]).unwrap();
    disk.resize(30_000).unwrap();
    assert_eq!(content(&now(&volume, CutChoice::DropUnsynced), "f").unwrap(), [1; 20_000]);
    for cut in volume.cuts(20).into_iter().filter(|cut| cut.event >= synced) {
        let found = content(&volume.crash(cut), "f").unwrap();
        assert!([20_000, 30_000].contains(&found.len()), "{cut:?}");
        assert!(found[..20_000].iter().all(|byte| [1, 2].contains(byte)), "{cut:?}");
    }
    disk.sync().unwrap();
    let mut all = vec![2; 20_000];
    all.resize(30_000, 0);
    for choice in (0..SEEDS).map(CutChoice::Random).chain([CutChoice::DropUnsynced, CutChoice::KeepAll]) {
        assert_eq!(content(&now(&volume, choice), "f").unwrap(), all);
    }
}

#[test]
fn equal_seeds_give_equal_images() {
    let volume = FailingVolume::new(1);
    let disk = durable(&volume, "f", &[1; 100_000]);
    for i in 0..10u8 {
        disk.write_at(u64::from(i) * 9000, &[i + 2; 12_000]).unwrap();
    }
    let states = |choice: fn(u64) -> CutChoice| -> BTreeSet<_> {
        (0..20)
            .map(|seed| {
                let first = content(&in_last(&volume, choice(seed)), "f");
                assert_eq!(first, content(&in_last(&volume, choice(seed)), "f"), "seed {seed}");
                first
            })
            .collect()
    };
    assert!(states(CutChoice::Random).len() > 10);
    assert!(states(CutChoice::Torn).len() > 10);
}

#[test]
fn the_write_in_flight_tears_between_sectors_only() {
    let volume = FailingVolume::new(1);
    let disk = durable(&volume, "f", &[1; 40_960]);
    disk.write_at(700, &[2; 30_000]).unwrap();
    let mut torn_inside_a_block = false;
    for seed in 0..SEEDS {
        let found = content(&in_last(&volume, CutChoice::Torn(seed)), "f").unwrap();
        for (sector, bytes) in found.chunks(SECTOR).enumerate() {
            let written: Vec<bool> = (sector * SECTOR..).map(|at| (700..30_700).contains(&at)).take(SECTOR).collect();
            let old = bytes.iter().all(|&byte| byte == 1);
            let new = bytes.iter().zip(written).all(|(&byte, written)| byte == if written { 2 } else { 1 });
            assert!(old || new, "seed {seed}, sector {sector}");
        }
        torn_inside_a_block |= found[4096..].chunks_exact(DEVICE_BLOCK).any(|b| b.contains(&1) && b[0] == 2);
    }
    assert!(torn_inside_a_block);
}

#[test]
fn a_device_with_atomic_blocks_tears_none() {
    let volume = FailingVolume::new(1).with_atomic_blocks();
    let disk = durable(&volume, "f", &[1; 40_960]);
    disk.write_at(700, &[2; 30_000]).unwrap();
    assert!(
        disk.writes_blocks_whole()
            && !FailingVolume::new(1).open("f", OpenMode::CreateNew).unwrap().writes_blocks_whole()
    );
    let mut states = BTreeSet::new();
    for seed in 0..SEEDS {
        for cut in [in_last(&volume, CutChoice::Torn(seed)), now(&volume, CutChoice::Random(seed))] {
            assert!(cut.open("f", OpenMode::Read).unwrap().writes_blocks_whole());
            let found = content(&cut, "f").unwrap();
            let mut blocks = found.chunks(DEVICE_BLOCK).zip((0..).step_by(DEVICE_BLOCK));
            assert!(blocks.all(|(bytes, start)| {
                let written = |at: usize| (700..30_700).contains(&(start + at));
                let new = bytes.iter().enumerate().all(|(at, &byte)| byte == if written(at) { 2 } else { 1 });
                new || bytes.iter().all(|&byte| byte == 1)
            }));
            states.insert(found);
        }
    }
    assert!(states.len() > 5, "{} states", states.len());
}

#[test]
fn blocks_reach_the_device_in_any_order() {
    let volume = FailingVolume::new(1);
    let disk = durable(&volume, "f", &[0; 65_536]);
    disk.write_at(0, &[1; 4096]).unwrap();
    disk.write_at(40_960, &[2; 4096]).unwrap();
    let seen: BTreeSet<_> = (0..SEEDS)
        .map(|seed| {
            let found = content(&now(&volume, CutChoice::Random(seed)), "f").unwrap();
            (found[0], found[40_960])
        })
        .collect();
    assert_eq!(seen, BTreeSet::from([(0, 0), (1, 0), (0, 2), (1, 2)]));
}

#[test]
fn sectors_of_a_block_survive_independently_and_each_sector_whole() {
    let volume = FailingVolume::new(1);
    let disk = durable(&volume, "f", &[0; 4096]);
    disk.write_at(0, &[1; 100]).unwrap();
    disk.write_at(100, &[2; 100]).unwrap();
    disk.write_at(1024, &[3; 512]).unwrap();
    let seen: BTreeSet<_> = (0..2000)
        .map(|seed| {
            let found = content(&now(&volume, CutChoice::Random(seed)), "f").unwrap();
            (found[0], found[100], found[1024])
        })
        .collect();
    assert!(seen.contains(&(0, 0, 3)), "a later write to another sector came first");
    assert!(seen.contains(&(1, 0, 0)) && seen.contains(&(1, 2, 0)) && seen.contains(&(1, 2, 3)));
    assert!(seen.iter().all(|&(first, second, _)| (first, second) != (0, 2)), "{seen:?}");
}

#[test]
fn a_cut_while_a_sync_runs_leaves_any_part_of_it() {
    let volume = FailingVolume::new(1);
    let disk = durable(&volume, "f", &[0; 8192]);
    disk.write_at(0, &[1; 8192]).unwrap();
    disk.sync().unwrap();
    let seen: BTreeSet<_> = (0..SEEDS)
        .map(|seed| {
            let found = content(&in_last(&volume, CutChoice::Torn(seed)), "f").unwrap();
            found.chunks(SECTOR).filter(|sector| sector[0] == 1).count()
        })
        .collect();
    assert!(seen.contains(&0) && seen.contains(&16) && seen.len() > 5, "{seen:?}");
}

#[test]
fn a_truncated_file_never_shows_its_old_bytes_again() {
    let volume = FailingVolume::new(1);
    let disk = durable(&volume, "f", &[1; 40_000]);
    disk.resize(5000).unwrap();
    disk.resize(40_000).unwrap();
    let mut seen = BTreeSet::new();
    for seed in 0..SEEDS {
        let found = content(&now(&volume, CutChoice::Random(seed)), "f").unwrap();
        let ones = found.iter().filter(|&&byte| byte == 1).count();
        assert!([(40_000, 40_000), (5000, 5000), (40_000, 5000)].contains(&(found.len(), ones)));
        seen.insert((found.len(), ones));
    }
    assert_eq!(seen.len(), 3);
}

#[test]
fn a_synced_file_without_a_synced_name_may_be_missing() {
    let volume = FailingVolume::new(1);
    let disk = create(&volume, "f");
    disk.write_at(0, b"abc").unwrap();
    disk.sync().unwrap();
    assert_eq!(content(&now(&volume, CutChoice::DropUnsynced), "f"), None);
    assert_eq!(content(&now(&volume, CutChoice::KeepAll), "f").unwrap(), b"abc");
    let found = (0..SEEDS).filter(|&seed| content(&now(&volume, CutChoice::Random(seed)), "f").is_some()).count();
    assert!((1..SEEDS as usize).contains(&found));
    volume.sync().unwrap();
    assert_eq!(content(&now(&volume, CutChoice::DropUnsynced), "f").unwrap(), b"abc");
}

#[test]
fn a_synced_name_without_synced_content_may_be_empty() {
    let volume = FailingVolume::new(1);
    let disk = create(&volume, "f");
    disk.write_at(0, b"abc").unwrap();
    volume.sync().unwrap();
    assert_eq!(content(&now(&volume, CutChoice::DropUnsynced), "f").unwrap(), b"");
}

#[test]
fn a_rename_is_atomic() {
    let volume = FailingVolume::new(1);
    durable(&volume, "tmp", b"new");
    volume.rename("tmp", "f").unwrap();
    let seen: BTreeSet<_> = (0..SEEDS)
        .flat_map(|seed| [CutChoice::Random(seed), CutChoice::Torn(seed)])
        .map(|choice| {
            let after = in_last(&volume, choice);
            (content(&after, "f"), content(&after, "tmp"))
        })
        .collect();
    assert_eq!(seen, BTreeSet::from([(None, Some(b"new".to_vec())), (Some(b"new".to_vec()), None)]));
}

#[test]
fn changes_of_different_names_reorder_and_changes_of_one_name_do_not() {
    let volume = FailingVolume::new(1);
    durable(&volume, "log.1", b"1");
    create(&volume, "log.2");
    volume.remove("log.1").unwrap();
    create(&volume, "log.1");
    let seen: BTreeSet<_> = (0..SEEDS)
        .map(|seed| {
            let after = now(&volume, CutChoice::Random(seed));
            (content(&after, "log.1"), content(&after, "log.2").is_some())
        })
        .collect();
    let (old, gone, new) = (Some(b"1".to_vec()), None, Some(Vec::new()));
    let expected = [old, gone, new].into_iter().flat_map(|first| [(first.clone(), false), (first, true)]);
    assert_eq!(seen, expected.collect());
}

#[test]
fn a_removal_that_was_not_synced_may_be_undone() {
    let volume = FailingVolume::new(1);
    durable(&volume, "f", b"abc");
    volume.remove("f").unwrap();
    assert_eq!(content(&now(&volume, CutChoice::DropUnsynced), "f").unwrap(), b"abc");
    assert_eq!(content(&now(&volume, CutChoice::KeepAll), "f"), None);
    volume.sync().unwrap();
    assert_eq!(content(&now(&volume, CutChoice::DropUnsynced), "f"), None);
}

#[test]
fn a_cut_volume_is_durable_unlocked_and_can_be_cut_again() {
    let volume = FailingVolume::new(1);
    let disk = durable(&volume, "f", b"one");
    let _held = volume.lock("f", true).unwrap();
    disk.write_at(0, b"two").unwrap();
    let after = now(&volume, CutChoice::KeepAll);
    assert_eq!(after.events(), 0);
    drop(after.lock("f", true).unwrap());
    assert_eq!(content(&now(&after, CutChoice::DropUnsynced), "f").unwrap(), b"two");
    let disk = after.open("f", OpenMode::Write).unwrap();
    disk.write_at(0, b"six").unwrap();
    assert_eq!(content(&now(&after, CutChoice::DropUnsynced), "f").unwrap(), b"two");
    disk.sync().unwrap();
    assert_eq!(content(&now(&after, CutChoice::DropUnsynced), "f").unwrap(), b"six");
    assert_eq!(content(&volume, "f").unwrap(), b"two", "the first volume goes on by itself");
}

#[test]
fn cuts_are_enumerated_for_every_event_except_marks_and_name_the_last_mark() {
    let volume = FailingVolume::new(1);
    let disk = durable(&volume, "f", b"");
    let mut marks = Vec::new();
    for mark in 1..=3 {
        disk.write_at(0, &[1; 100]).unwrap();
        disk.sync().unwrap();
        volume.mark(mark);
        marks.push(volume.events() - 1);
    }
    let cut: BTreeSet<_> = volume.cuts(1).iter().map(|cut| cut.event).collect();
    let expected: BTreeSet<_> = (0..=volume.events()).filter(|event| !marks.contains(event)).collect();
    assert_eq!(cut, expected);
    assert_eq!(volume.last_mark_before(marks[0]), None);
    assert_eq!(volume.last_mark_before(marks[0] + 1), Some(1));
    assert_eq!(volume.last_mark_before(usize::MAX), Some(3));
    assert_eq!(volume.describe(marks[1]), "mark 2");
}

#[test]
fn bytes_synced_alone_survive_every_power_cut_and_others_need_not() {
    let volume = FailingVolume::new(9);
    let disk = durable(&volume, "f", &[1; 2 * DEVICE_BLOCK]);
    // An earlier version of the first block that no sync has made durable, and a second block that none will.
    disk.write_at(0, &[2; DEVICE_BLOCK]).unwrap();
    disk.write_at(DEVICE_BLOCK as u64, &[3; DEVICE_BLOCK]).unwrap();
    disk.write_at(0, &[4; DEVICE_BLOCK]).unwrap();
    let before = content(&now(&volume, CutChoice::DropUnsynced), "f").unwrap();
    assert!(before.iter().all(|&byte| byte == 1));
    disk.sync_bytes(0, &[4; DEVICE_BLOCK]).unwrap();
    let mut seen = BTreeSet::new();
    let choices = (0..SEEDS).flat_map(|seed| [CutChoice::Random(seed), CutChoice::Torn(seed)]);
    for choice in choices.chain([CutChoice::DropUnsynced, CutChoice::KeepAll]) {
        let after = content(&now(&volume, choice), "f").unwrap();
        assert!(after[..DEVICE_BLOCK].iter().all(|&byte| byte == 4), "{choice:?}");
        seen.extend(after[DEVICE_BLOCK..].iter().copied());
    }
    assert_eq!(seen, BTreeSet::from([1, 3]));
    let in_flight = (0..SEEDS).map(|seed| content(&in_last(&volume, CutChoice::Torn(seed)), "f").unwrap()[0]);
    assert_eq!(in_flight.collect::<BTreeSet<_>>(), BTreeSet::from([1, 2, 4]), "a sync in flight has done any part");
    // A write after it is pending again.
    disk.write_at(0, &[5; DEVICE_BLOCK]).unwrap();
    let later = (0..SEEDS).map(|seed| content(&now(&volume, CutChoice::Random(seed)), "f").unwrap()[0]);
    assert_eq!(later.collect::<BTreeSet<_>>(), BTreeSet::from([4, 5]));
}

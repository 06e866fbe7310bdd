//! Which batches are acknowledged and when, also after failures.

use super::*;
use std::sync::Barrier;

#[test]
fn a_commit_is_acknowledged_only_after_a_sync_that_began_after_its_append() {
    for shape in [LogShape::Packed, LogShape::Sparse] {
        let volume = TestVolume::default();
        volume.slow_sync();
        let log = Log::create(config(&volume, shape), 1, Lsn(0)).unwrap();
        const THREADS: u8 = 6;
        const EACH: usize = 40;
        let before = volume.syncs().len();
        let gate = Barrier::new(usize::from(THREADS));
        let commits = std::thread::scope(|scope| {
            let run = |thread: u8| {
                let (log, volume, gate) = (&log, &volume, &gate);
                move || {
                    gate.wait();
                    let commit = |round: usize| {
                        let len = round * 7;
                        let end = log.append(thread, &vec![thread; len]).unwrap();
                        let appended = volume.written(Lsn(end.0 - (BATCH_HEADER + len) as u64));
                        log.make_durable(end).unwrap();
                        assert!(log.durable() >= end);
                        (appended, volume.now())
                    };
                    (0..EACH).map(commit).collect::<Vec<_>>()
                }
            };
            let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(run(thread))).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        let syncs = volume.syncs();
        for (appended, acknowledged) in &commits {
            let covered = syncs.iter().any(|(begin, end)| begin > appended && end < acknowledged);
            assert!(covered, "appended at {appended}, acknowledged at {acknowledged}");
        }
        assert!(syncs.len() - before < commits.len(), "{} syncs for {} commits", syncs.len(), commits.len());
        assert!(syncs.windows(2).all(|pair| pair[0].1 < pair[1].0), "two syncs at once");
        assert_eq!(read_all(config(&volume, shape), at(Lsn(0), 1)).unwrap().len(), commits.len());
    }
}

#[test]
fn rotations_beside_commits_lose_nothing() {
    let volume = TestVolume::default();
    volume.slow_sync();
    let log = Log::create(packed(&volume), 1, Lsn(0)).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4u8 {
            let log = &log;
            scope.spawn(move || {
                for _ in 0..30 {
                    log.make_durable(log.append(thread, &[thread; 100]).unwrap()).unwrap();
                }
            });
        }
        scope.spawn(|| (0..10).for_each(|_| assert!(log.rotate().unwrap() <= log.durable())));
    });
    assert_eq!(volume.names().len(), 11);
    assert_eq!(log.durable(), log.next_lsn());
    assert_eq!(read_all(packed(&volume), at(Lsn(0), 1)).unwrap().len(), 120);
}

#[test]
fn a_switch_to_the_next_segment_syncs_nothing_and_the_next_sync_finishes_it() -> Result<()> {
    let volume = TestVolume::default();
    let log = Log::create(packed(&volume), 1, Lsn(0))?;
    assert_eq!(log.switch_segment()?, None, "no file is ready");
    log.make_durable(log.append(1, b"first")?)?;
    let end = log.append(1, b"second")?;
    log.prepare_segment()?;
    let before = volume.syncs().len();
    assert_eq!(log.switch_segment()?, Some(end));
    log.append(1, b"third")?;
    log.prepare_segment()?;
    let prepared = volume.syncs().len();
    assert_eq!(log.switch_segment()?, None, "the switch before is not finished");
    assert_eq!((prepared - before, volume.syncs().len() - prepared), (1, 0), "only the next file is synced");
    assert!(log.durable() < end);
    log.make_durable(end)?;
    assert_eq!(volume.syncs().len() - prepared, 2, "both segments");
    assert_eq!(log.durable(), log.next_lsn());
    log.finish_rotation(end)?;
    assert_eq!(volume.syncs().len() - prepared, 2);
    assert!(log.switch_segment()?.is_some());
    assert_eq!(read_all(packed(&volume), at(Lsn(0), 1))?, [&b"first"[..], b"second", b"third"]);
    Ok(())
}

#[test]
fn no_segment_begins_until_the_mark_of_the_previous_one_is_written() -> Result<()> {
    let volume = TestVolume::default();
    let log = Log::create(packed(&volume), 1, Lsn(0))?;
    let end = log.append(1, b"first")?;
    log.prepare_segment()?;
    assert_eq!(log.switch_segment()?, Some(end));
    log.prepare_segment()?;
    let beside = std::thread::scope(|scope| {
        let gate = volume.hold_marks();
        scope.spawn(|| log.finish_rotation(end).unwrap());
        let is_waiting = (0..10_000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(1));
            volume.marks() > 0
        });
        assert!(is_waiting, "the mark is not written");
        let beside = log.switch_segment();
        drop(gate);
        beside
    });
    assert_eq!(beside?, None);
    assert!(log.switch_segment()?.is_some());
    Ok(())
}

#[test]
fn after_a_failed_sync_nothing_later_is_acknowledged() {
    let volume = TestVolume::default();
    let log = Log::create(packed(&volume), 1, Lsn(0)).unwrap();
    let safe = log.append(1, b"safe").unwrap();
    log.make_durable(safe).unwrap();
    let lost = log.append(1, b"lost").unwrap();
    volume.fail_sync(true);
    assert!(matches!(log.make_durable(lost), Err(Error::Poisoned { cause }) if cause.contains("cannot sync")));
    volume.fail_sync(false);
    assert!(matches!(log.make_durable(lost), Err(Error::Poisoned { .. })));
    assert_eq!(log.durable(), safe);
    log.make_durable(safe).unwrap();
    assert!(log.append(1, b"more").is_err());
    assert!(log.rotate().is_err());
    assert!(log.remove_before(lost).is_err());
    assert!(log.remove_all().is_err());
    assert_eq!(volume.names(), [segment_name(1)]);
    assert!(log.is_poisoned().is_some_and(|cause| cause.contains("cannot sync")));
}

#[test]
fn all_waiting_threads_get_the_error_of_a_failed_sync() {
    let volume = TestVolume::default();
    volume.slow_sync();
    let log = Log::create(packed(&volume), 1, Lsn(0)).unwrap();
    volume.fail_sync(true);
    let gate = Barrier::new(5);
    std::thread::scope(|scope| {
        for _ in 0..5 {
            scope.spawn(|| {
                let appended = log.append(1, b"x");
                gate.wait();
                if let Ok(end) = appended {
                    assert!(matches!(log.make_durable(end), Err(Error::Poisoned { .. })));
                }
            });
        }
    });
    assert_eq!(log.durable(), Lsn(0));
}

#[test]
fn a_failed_write_poisons() {
    let volume = TestVolume::default();
    let log = Log::create(packed(&volume), 1, Lsn(0)).unwrap();
    let end = log.append(1, b"a").unwrap();
    volume.fail_write(true);
    assert!(matches!(log.append(1, b"b"), Err(Error::Io { .. })));
    volume.fail_write(false);
    assert_eq!(log.next_lsn(), end);
    assert!(matches!(log.append(1, b"b"), Err(Error::Poisoned { .. })));
}

#[test]
fn the_first_cause_of_poison_is_kept() {
    let log = Log::create(packed(&TestVolume::default()), 1, Lsn(0)).unwrap();
    assert_eq!(log.is_poisoned(), None);
    log.poison("first");
    log.poison("second");
    assert_eq!(log.is_poisoned().as_deref(), Some("first"));
}

#[test]
fn a_full_device_is_reported_before_anything_changes() {
    let volume = TestVolume::default();
    let log = Log::create(packed(&volume), 1, Lsn(0)).unwrap();
    volume.set_capacity(Some(100_000));
    log.reserve(50_000).unwrap();
    assert!(matches!(log.reserve(100_000), Err(Error::Full { .. })));
    let end = log.append(1, &[1; 40_000]).unwrap();
    // The new segment must also have space for the rest of the reservation.
    volume.set_capacity(Some(4096 + 9_000));
    assert!(matches!(log.rotate(), Err(Error::Full { .. })));
    assert_eq!(volume.names(), [segment_name(1), segment_name(2)], "the file stays ready");
    volume.set_capacity(Some(4096 + 10_000));
    assert_eq!(log.rotate().unwrap(), end);
    assert_eq!(volume.names(), [segment_name(1), segment_name(2)]);
    log.make_durable(log.append(1, &[2; 9_000]).unwrap()).unwrap();
    assert_eq!(read_all(packed(&volume), at(Lsn(0), 1)).unwrap(), [vec![1; 40_000], vec![2; 9_000]]);
}

#[test]
fn a_reservation_replaces_the_one_before() {
    let volume = TestVolume::default();
    let log = Log::create(packed(&volume), 1, Lsn(0)).unwrap();
    log.reserve(50_000).unwrap();
    volume.set_capacity(Some(4096 + 9_000));
    assert!(matches!(log.rotate(), Err(Error::Full { .. })));
    log.reserve(9_000).unwrap();
    log.rotate().unwrap();
}

#[test]
fn a_record_that_was_not_appended_cannot_be_made_durable() {
    let log = Log::create(packed(&TestVolume::default()), 1, Lsn(0)).unwrap();
    assert!(matches!(log.make_durable(Lsn(1)), Err(Error::Option { .. })));
}

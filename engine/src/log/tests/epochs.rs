//! Repeated recoveries: each continues in a new epoch, and the log can be read from any redo point.

use super::*;

fn resume(volume: &TestVolume, from: LogPosition) -> Log {
    Log::resume(read(packed(volume), from, from.lsn).unwrap().unwrap()).unwrap()
}

/// Removes the last `bytes` of segment `number`, and zeros after them, and flips the byte that is then the last: a torn
/// tail.
fn tear(volume: &TestVolume, number: u32, bytes: usize) {
    let mut torn = volume.bytes(&segment_name(number));
    let end = torn.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    torn.truncate(end - bytes);
    *torn.last_mut().unwrap() ^= 0xff;
    volume.set_bytes(&segment_name(number), torn);
}

#[test]
fn a_new_epoch_begins_where_the_torn_tail_does() {
    let volume = TestVolume::default();
    let log = Log::create(packed(&volume), 1, Lsn(0)).unwrap();
    log.append(1, b"kept").unwrap();
    let torn_at = log.next_lsn();
    log.append(1, b"torn").unwrap();
    tear(&volume, 1, 1);
    let log = resume(&volume, at(Lsn(0), 1));
    assert_eq!((log.next_lsn(), log.epoch(), log.durable()), (torn_at, 2, torn_at));
    log.append(1, b"new").unwrap();
    log.append(1, b"newer").unwrap();
    assert_eq!(read_all(packed(&volume), at(Lsn(0), 1)).unwrap(), [b"kept".as_slice(), b"new", b"newer"]);
    assert_eq!(read_all(packed(&volume), at(torn_at, 2)).unwrap(), [b"new".as_slice(), b"newer"]);
    log.remove_before(torn_at).unwrap();
    assert_eq!(volume.names(), [segment_name(2)]);
}

#[test]
fn batches_of_an_old_epoch_after_the_start_of_a_new_one_are_not_read() {
    let volume = TestVolume::default();
    let log = Log::create(packed(&volume), 1, Lsn(0)).unwrap();
    log.append(1, b"kept").unwrap();
    let torn_at = log.next_lsn();
    log.append(1, b"tail").unwrap();
    let whole = volume.bytes(&segment_name(1));
    tear(&volume, 1, 1);
    resume(&volume, at(Lsn(0), 1)).append(1, b"new").unwrap();
    volume.set_bytes(&segment_name(1), whole);
    assert_eq!(read_all(packed(&volume), at(Lsn(0), 1)).unwrap(), [b"kept".as_slice(), b"new"]);
    let mut reader = read(packed(&volume), at(torn_at, 1), Lsn::ZERO).unwrap().unwrap();
    let first = reader.next().unwrap().unwrap();
    assert_eq!((first.payload.as_slice(), reader.end_state().epoch), (b"new".as_slice(), 2));
}

#[test]
fn repeated_recoveries_without_a_checkpoint_read_the_same() {
    let volume = TestVolume::default();
    let mut log = Log::create(packed(&volume), 1, Lsn(0)).unwrap();
    let mut wanted = Vec::new();
    for round in 0..6u8 {
        for batch in 0..round % 3 {
            let payload = vec![round, batch];
            log.append(1, &payload).unwrap();
            wanted.push(payload);
        }
        if round == 4 {
            log.rotate().unwrap();
        }
        log.append(1, b"torn").unwrap();
        let last = volume.names().pop().unwrap();
        tear(&volume, last.rsplit('.').next().unwrap().parse().unwrap(), 3);
        log = resume(&volume, at(Lsn(0), 1));
        assert_eq!(log.epoch(), u32::from(round) + 2);
        assert_eq!(read_all(packed(&volume), at(Lsn(0), 1)).unwrap(), wanted, "round {round}");
    }
    let redo = log.rotate().unwrap();
    log.append(1, b"after").unwrap();
    assert_eq!(read_all(packed(&volume), at(redo, log.epoch())).unwrap(), [b"after"]);
    log.remove_before(redo).unwrap();
    assert_eq!(volume.names().len(), 1);
}

#[test]
fn recoveries_that_fail_before_a_batch_leave_two_empty_segments() {
    let volume = TestVolume::default();
    Log::create(packed(&volume), 1, Lsn(0)).unwrap().append(1, b"kept").unwrap();
    for last in 2..10 {
        resume(&volume, at(Lsn(0), 1));
        let left = [1].into_iter().chain(2.max(last - 1)..=last).map(segment_name).collect::<Vec<_>>();
        assert_eq!(volume.names(), left);
        assert_eq!(read_all(packed(&volume), at(Lsn(0), 1)).unwrap(), [b"kept"]);
    }
    let log = resume(&volume, at(Lsn(0), 1));
    log.append(1, b"new").unwrap();
    assert_eq!(read_all(packed(&volume), at(Lsn(0), 1)).unwrap(), [b"kept".as_slice(), b"new"]);
    log.remove_before(log.rotate().unwrap()).unwrap();
    assert_eq!(volume.names().len(), 1);
}

#[test]
fn replaced_segments_that_cannot_be_removed_stay_until_a_checkpoint() {
    let volume = TestVolume::default();
    Log::create(packed(&volume), 1, Lsn(0)).unwrap().append(1, b"kept").unwrap();
    (0..2).for_each(|_| drop(resume(&volume, at(Lsn(0), 1))));
    volume.fail_remove(true);
    let log = resume(&volume, at(Lsn(0), 1));
    volume.fail_remove(false);
    assert_eq!(volume.names().len(), 4);
    log.append(1, b"new").unwrap();
    assert_eq!(read_all(packed(&volume), at(Lsn(0), 1)).unwrap(), [b"kept".as_slice(), b"new"]);
    log.remove_before(log.rotate().unwrap()).unwrap();
    assert_eq!(volume.names().len(), 1);
}

#[test]
fn an_unfinished_segment_of_an_interrupted_recovery_is_skipped_and_removed() {
    let volume = TestVolume::default();
    Log::create(packed(&volume), 1, Lsn(0)).unwrap().append(1, b"a").unwrap();
    volume.set_bytes(&segment_name(2), vec![0; 4096]);
    let log = resume(&volume, at(Lsn(0), 1));
    log.append(1, b"b").unwrap();
    assert_eq!(volume.names(), [segment_name(1), segment_name(2), segment_name(3)]);
    assert_eq!(read_all(packed(&volume), at(Lsn(0), 1)).unwrap(), [b"a", b"b"]);
    log.remove_before(log.rotate().unwrap()).unwrap();
    assert_eq!(volume.names(), [segment_name(4)]);
}

#[test]
fn a_recovery_rewrites_log_records_that_may_not_be_durable() {
    for shape in [LogShape::Packed, LogShape::Sparse] {
        let volume = TestVolume::default();
        let log = Log::create(config(&volume, shape), 1, Lsn(0)).unwrap();
        let mut starts = Vec::new();
        for _ in 0..3 {
            starts.push(log.next_lsn());
            log.make_durable(log.append(1, b"durable").unwrap()).unwrap();
        }
        let unproven = log.next_lsn();
        log.append(1, b"unproven").unwrap();
        log.append(1, &vec![7; 3 << 20]).unwrap();
        volume.fail_sync(true);
        assert!(log.make_durable(log.next_lsn()).is_err());
        volume.fail_sync(false);
        let (before, whole) = (volume.now(), volume.bytes(&segment_name(1)));
        let log = Log::resume(read(config(&volume, shape), at(Lsn(0), 1), starts[2]).unwrap().unwrap()).unwrap();
        assert!(starts.iter().all(|start| volume.written(*start) < before), "these were known to be durable");
        let again = volume.written(unproven);
        assert!(again > before);
        let begun = volume.written_header();
        assert!(
            volume.syncs().iter().any(|(begin, end)| *begin > again && *end < begun),
            "synced before epoch 2 began"
        );
        assert_eq!(volume.bytes(&segment_name(1)), whole);
        assert_eq!(log.durable(), log.next_lsn());
    }
}

#[test]
fn a_segment_that_does_not_follow_from_the_batch_before_is_damage() {
    let volume = TestVolume::default();
    let log = Log::create(packed(&volume), 1, Lsn(0)).unwrap();
    log.append(1, b"one").unwrap();
    let other = volume.fork();
    log.append(1, b"two").unwrap();
    let second = log.rotate().unwrap();
    // It says that everything before it was durable.
    log.append(1, b"three").unwrap();
    // The lengths and so the positions are equal. Only the chained checksums differ.
    let changed = resume(&other, at(Lsn(0), 1));
    changed.append(1, b"TWO").unwrap();
    let mut bytes = other.bytes(&segment_name(1));
    bytes.extend_from_slice(&other.bytes(&segment_name(2))[4096..]);
    let foreign = volume.fork();
    foreign.set_bytes(&segment_name(1), bytes);
    let error = read_all(packed(&foreign), at(Lsn(0), 1)).unwrap_err();
    assert!(matches!(error, Error::CorruptLog { lsn, .. } if lsn.0 == second.0 - 39), "another epoch's batch");
    let twin = TestVolume::default();
    let log = Log::create(packed(&twin), 1, Lsn(0)).unwrap();
    log.append(1, b"one").unwrap();
    log.append(1, b"2nd").unwrap();
    twin.set_bytes(&segment_name(2), volume.bytes(&segment_name(2)));
    let error = read_all(packed(&twin), at(Lsn(0), 1)).unwrap_err();
    assert!(matches!(error, Error::CorruptLog { lsn, .. } if lsn == second));
}

#[test]
fn a_segment_that_starts_inside_a_batch_is_damage_and_the_batch_is_not_returned() {
    let volume = TestVolume::default();
    Log::create(packed(&volume), 1, Lsn(0)).unwrap().append(1, b"kept").unwrap();
    resume(&volume, at(Lsn(0), 1));
    let other = TestVolume::default();
    Log::create(packed(&other), 1, Lsn(0)).unwrap().append(1, b"longer than that").unwrap();
    volume.set_bytes(&segment_name(1), other.bytes(&segment_name(1)));
    let mut reader = read(packed(&volume), at(Lsn(0), 1), Lsn::ZERO).unwrap().unwrap();
    assert!(matches!(reader.next(), Err(Error::CorruptLog { .. })));
}

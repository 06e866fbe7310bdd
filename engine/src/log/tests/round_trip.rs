//! Appended batches are read back, across rotations, recoveries and removals.

use super::*;
use proptest::prelude::*;

#[test]
fn batches_are_read_back_with_their_positions() {
    for shape in [LogShape::Packed, LogShape::Sparse] {
        let volume = TestVolume::default();
        let log = Log::create(config(&volume, shape), 1, Lsn(500)).unwrap();
        let mut wanted = Vec::new();
        for (kind, len) in [(1, 10), (2, 0), (255, 9000), (3, 1)] {
            let payload = vec![kind; len];
            let start = log.next_lsn();
            let end = log.append(kind, &payload).unwrap();
            assert_eq!(end, start.plus(BATCH_HEADER + len));
            assert_eq!(Log::op_lsn(start, 7), start.plus(BATCH_HEADER + 7));
            wanted.push(Batch { start, end, kind, payload });
            log.make_durable(end).unwrap();
            assert_eq!(log.durable(), end);
        }
        // Each batch was flushed alone: a sparse log has begun the next block.
        let (packed, sparse) = (log.next_lsn().0 - 500, (1 + 1 + 3 + 1) * 4096);
        assert_eq!(log.written(), if shape == LogShape::Packed { packed } else { sparse });
        let mut reader = read(config(&volume, shape), at(Lsn(500), 1), log.durable()).unwrap().unwrap();
        for batch in wanted {
            assert_eq!(reader.next().unwrap(), Some(batch));
        }
        assert_eq!(reader.next().unwrap(), None);
        assert_eq!(reader.next().unwrap(), None);
        assert_eq!((reader.end_state().lsn, reader.end_state().epoch), (log.next_lsn(), 1));
    }
}

#[test]
fn a_sparse_flush_starts_a_new_device_block_and_a_packed_one_does_not() {
    for (shape, second) in [(LogShape::Packed, 4096 + 36 + 5), (LogShape::Sparse, 8192)] {
        let volume = TestVolume::default();
        let log = Log::create(config(&volume, shape), 1, Lsn(0)).unwrap();
        log.make_durable(log.append(1, b"first").unwrap()).unwrap();
        log.append(1, b"second").unwrap();
        log.append(1, b"third").unwrap();
        let bytes = volume.bytes(&segment_name(1));
        assert_eq!(&bytes[second + BATCH_HEADER..][..6], b"second");
        let third = second + 2 * BATCH_HEADER + 6;
        assert_eq!(&bytes[third..third + 5], b"third", "there is no flush between these two");
        let end = if shape == LogShape::Sparse { 3 * 4096 } else { third + 5 };
        assert_eq!(bytes.len(), end, "a sparse log is whole blocks");
        assert!(bytes[third + 5..].iter().all(|byte| *byte == 0));
        assert!(bytes[4096 + 36 + 5..second].iter().all(|byte| *byte == 0));
    }
}

#[test]
fn a_buffer_and_a_slice_append_the_same_bytes() {
    let (one, two) = (TestVolume::default(), TestVolume::default());
    let (slice, buffer) =
        (Log::create(packed(&one), 1, Lsn(0)).unwrap(), Log::create(packed(&two), 1, Lsn(0)).unwrap());
    let mut batch = BatchBuffer::new();
    for payload in [b"one".as_slice(), b"", b"three"] {
        batch.clear();
        batch.push(payload);
        assert_eq!(slice.append(4, payload).unwrap(), buffer.append_buffer(4, &mut batch).unwrap());
    }
    assert_eq!(one.bytes(&segment_name(1)), two.bytes(&segment_name(1)));
}

#[test]
fn rotation_keeps_positions_and_removal_takes_whole_segments() {
    let volume = TestVolume::default();
    let log = Log::create(packed(&volume), 1, Lsn(0)).unwrap();
    log.append(1, b"a").unwrap();
    let second = log.rotate().unwrap();
    assert_eq!((second, log.durable()), (log.next_lsn(), log.next_lsn()));
    log.append(1, b"b").unwrap();
    log.append(1, b"c").unwrap();
    let third = log.rotate().unwrap();
    let end = log.append(1, b"d").unwrap();
    assert_eq!(read_all(packed(&volume), at(Lsn(0), 1)).unwrap(), [b"a", b"b", b"c", b"d"]);
    log.remove_before(Lsn(third.0 - 1)).unwrap();
    assert_eq!(volume.names(), [segment_name(2), segment_name(3)], "the segment that contains the LSN stays");
    assert_eq!(read_all(packed(&volume), at(second, 1)).unwrap(), [b"b", b"c", b"d"]);
    log.remove_before(end).unwrap();
    assert_eq!(volume.names(), [segment_name(3)], "the current segment stays");
    log.remove_all().unwrap();
    assert!(volume.names().is_empty());
    assert!(log.append(1, b"late").is_err());
}

#[test]
fn a_new_log_replaces_every_stale_segment() {
    let volume = TestVolume::default();
    let old = Log::create(LogConfig { database: 7, ..packed(&volume) }, 1, Lsn(0)).unwrap();
    old.rotate().unwrap();
    volume.set_bytes("db-log.7", b"not a segment's name".to_vec());
    volume.set_bytes("db-log2.000001", b"another database".to_vec());
    let log = Log::create(packed(&volume), 1, Lsn(90)).unwrap();
    log.append(1, b"x").unwrap();
    assert_eq!(volume.names(), [segment_name(3), "db-log.7".into(), "db-log2.000001".into()]);
    assert_eq!(read_all(packed(&volume), at(Lsn(90), 1)).unwrap(), [b"x"]);
}

proptest! {
    #[test]
    fn any_history_reads_back_from_any_batch(
        steps in proptest::collection::vec((0u8..8, proptest::collection::vec(any::<u8>(), 0..6000)), 1..40),
        sparse: bool,
        pick: proptest::sample::Index,
    ) {
        let shape = if sparse { LogShape::Sparse } else { LogShape::Packed };
        let volume = TestVolume::default();
        let mut log = Log::create(config(&volume, shape), 1, Lsn(1)).unwrap();
        let mut model: Vec<(Lsn, Vec<u8>)> = Vec::new();
        for (step, payload) in steps {
            match step {
                0 => { log.rotate().unwrap(); }
                1 => drop(log.make_durable(log.next_lsn()).unwrap()),
                2 => {
                    let reader = read(config(&volume, shape), at(Lsn(1), 1), log.durable()).unwrap().unwrap();
                    log = Log::resume(reader).unwrap();
                }
                _ => {
                    model.push((log.next_lsn(), payload.clone()));
                    log.append(step, &payload).unwrap();
                }
            }
        }
        let first = if model.is_empty() { 0 } else { pick.index(model.len()) };
        let from = model.get(first).map_or(Lsn(1), |batch| batch.0);
        let found = read_all(config(&volume, shape), at(from, 1)).unwrap();
        let wanted: Vec<Vec<u8>> = model.into_iter().skip(first).map(|batch| batch.1).collect();
        prop_assert_eq!(found, wanted);
    }
}

//! A torn tail ends the log, damage is reported, and no wrong batch is ever read.

use super::*;
use crate::io::Volume;

const SHAPES: [LogShape; 2] = [LogShape::Packed, LogShape::Sparse];

/// Writes batches with payloads of these lengths, and flushes after the batches in `flush_after`.
fn written(shape: LogShape, lens: &[usize], flush_after: &[usize]) -> (TestVolume, Vec<Vec<u8>>, Vec<Lsn>) {
    let volume = TestVolume::default();
    let log = Log::create(config(&volume, shape), 1, Lsn(0)).unwrap();
    let (mut payloads, mut starts) = (Vec::new(), Vec::new());
    for (i, len) in lens.iter().enumerate() {
        let payload: Vec<u8> = (0..*len).map(|at| (at * 31 + i) as u8).collect();
        starts.push(log.next_lsn());
        let end = log.append(i as u8, &payload).unwrap();
        payloads.push(payload);
        if flush_after.contains(&i) {
            log.make_durable(end).unwrap();
        }
    }
    (volume, payloads, starts)
}

#[test]
fn a_log_cut_at_any_byte_gives_the_batches_before_the_cut() {
    for shape in SHAPES {
        let (volume, payloads, _) = written(shape, &[20, 0, 700, 33], &[1]);
        let whole = volume.bytes(&segment_name(1));
        let first = SEGMENT_HEADER as usize + 2 * BATCH_HEADER + 20;
        let third = if shape == LogShape::Sparse { first.next_multiple_of(4096) } else { first } + BATCH_HEADER + 700;
        let ends = [SEGMENT_HEADER as usize + BATCH_HEADER + 20, first, third, third + BATCH_HEADER + 33];
        let end = if shape == LogShape::Sparse { ends[3].next_multiple_of(4096) } else { ends[3] };
        assert_eq!(end, whole.len());
        for zeros in [false, true] {
            for cut in SEGMENT_HEADER as usize..=whole.len() {
                let mut torn = whole[..cut].to_vec();
                if zeros {
                    torn.resize(whole.len() + 100, 0);
                }
                volume.set_bytes(&segment_name(1), torn);
                let (found, end) = read_some(config(&volume, shape), at(Lsn(0), 1));
                end.unwrap();
                let mut whole_ones = ends.iter().filter(|end| **end <= cut).count();
                // Missing zeros at the end of a batch change nothing.
                while zeros && whole_ones < 4 && whole[cut..ends[whole_ones]].iter().all(|byte| *byte == 0) {
                    whole_ones += 1;
                }
                assert_eq!(found, payloads[..whole_ones], "cut at {cut}");
            }
        }
    }
}

#[test]
fn any_sectors_of_an_unsynced_tail_may_be_missing() {
    for shape in SHAPES {
        let (volume, payloads, _) = written(shape, &[100, 600, 900, 40, 1200], &[0]);
        let mut whole = volume.bytes(&segment_name(1));
        // Without the padding of a sparse log: it may be missing.
        whole.truncate(whole.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1));
        let synced = SEGMENT_HEADER as usize + BATCH_HEADER + 100;
        let sectors: Vec<usize> = (synced / 512..whole.len().div_ceil(512)).collect();
        let sectors = &sectors[sectors.len() - 6..];
        for missing in 0u32..1 << sectors.len() {
            let mut torn = whole.clone();
            for (bit, sector) in sectors.iter().enumerate() {
                if missing & (1 << bit) != 0 {
                    let to = ((sector + 1) * 512).min(torn.len());
                    torn[(sector * 512).max(synced)..to].fill(0);
                }
            }
            volume.set_bytes(&segment_name(1), torn);
            let (found, end) = read_some(config(&volume, shape), at(Lsn(0), 1));
            end.unwrap();
            assert!(!found.is_empty() && payloads.starts_with(&found), "missing {missing:b}");
            assert_eq!(found.len() == payloads.len(), missing == 0);
        }
    }
}

#[test]
fn a_flipped_byte_is_reported_or_ends_the_log_but_never_changes_a_batch() {
    for shape in SHAPES {
        // Batches 0 to 2 are durable and batch 3 knows it; batch 4 is a tail.
        let (volume, payloads, starts) = written(shape, &[20, 0, 300, 33, 50], &[2]);
        let whole = volume.bytes(&segment_name(1));
        let content = 56;
        let mut reported = 0;
        for at_byte in (0..content).chain(SEGMENT_HEADER as usize..whole.len()) {
            let mut damaged = whole.clone();
            damaged[at_byte] ^= 0x41;
            volume.set_bytes(&segment_name(1), damaged);
            let (found, end) = read_some(config(&volume, shape), at(Lsn(0), 1));
            assert!(payloads.starts_with(&found), "flipped byte {at_byte}");
            match end {
                Err(Error::CorruptLog { lsn, .. }) => {
                    reported += 1;
                    assert_eq!(starts.get(found.len()), Some(&lsn));
                }
                Err(other) => panic!("flipped byte {at_byte}: {other}"),
                Ok(()) => assert!(found.len() >= 3, "flipped byte {at_byte} lost an acknowledged batch"),
            }
        }
        assert_eq!(reported, content + 3 * BATCH_HEADER + 320);
    }
}

#[test]
fn a_log_that_ends_before_the_known_durable_lsn_is_damaged() {
    let (volume, _, starts) = written(LogShape::Packed, &[10, 10, 10], &[2]);
    let whole = volume.bytes(&segment_name(1));
    volume.set_bytes(&segment_name(1), whole[..whole.len() - 1].to_vec());
    let read_to = |durable| {
        let mut reader = read(packed(&volume), at(Lsn(0), 1), durable).unwrap().unwrap();
        assert!(reader.next().unwrap().is_some() && reader.next().unwrap().is_some());
        reader.next()
    };
    assert!(matches!(read_to(starts[2]), Ok(None)));
    assert!(matches!(read_to(starts[2].plus(46)), Err(Error::CorruptLog { lsn, .. }) if lsn == starts[2]));
    // The redo point itself is known to be durable.
    let behind = read(packed(&volume), at(starts[2].plus(46), 1), Lsn::ZERO);
    assert!(matches!(behind, Err(Error::CorruptLog { .. })));
    let between = read(packed(&volume), at(starts[1].plus(1), 1), Lsn::ZERO);
    assert!(matches!(between, Err(Error::CorruptLog { .. })));
}

#[test]
fn a_missing_log_and_a_damaged_one_have_different_errors() {
    let volume = TestVolume::default();
    assert!(read(packed(&volume), at(Lsn(0), 1), Lsn::ZERO).unwrap().is_none());
    let log = Log::create(packed(&volume), 3, Lsn(10)).unwrap();
    log.append(1, b"a").unwrap();
    let second = log.rotate().unwrap();
    log.append(1, b"b").unwrap();
    let third = log.rotate().unwrap();
    log.append(1, b"c").unwrap();
    let without = |gone: u32| {
        let fork = volume.fork();
        fork.remove(&segment_name(gone)).unwrap();
        fork
    };
    let other = LogConfig { database: 1, ..packed(&volume) };
    assert!(read(other, at(Lsn(10), 3), Lsn::ZERO).unwrap().is_none(), "another database's log is none");
    let missing = |volume: &TestVolume, from| {
        let error = read(packed(volume), from, Lsn::ZERO).unwrap_err();
        matches!(error, Error::MissingLog { path, log } if path.to_str() == Some("db") && log.to_str() == Some("db-log"))
    };
    assert!(missing(&volume, at(Lsn(9), 3)), "begins too late");
    assert!(missing(&volume, at(Lsn(10), 4)), "of an earlier epoch");
    assert!(missing(&without(1), at(Lsn(10), 3)));
    let (found, end) = read_some(packed(&without(2)), at(Lsn(10), 3));
    assert_eq!(found, [b"a"]);
    assert!(matches!(end, Err(Error::CorruptLog { lsn, .. }) if lsn == second));
    assert_eq!(read_all(packed(&without(1)), at(second, 3)).unwrap(), [b"b", b"c"]);
    assert_eq!(read_all(packed(&without(2)), at(third, 3)).unwrap(), [b"c"]);
}

#[test]
fn a_damaged_segment_header_is_reported_and_an_unfinished_one_is_ignored() {
    let volume = TestVolume::default();
    let log = Log::create(packed(&volume), 1, Lsn(0)).unwrap();
    log.append(1, b"a").unwrap();
    let before = volume.fork();
    log.rotate().unwrap();
    for unfinished in [vec![], vec![0; 4096], vec![0; 1 << 20], b"DURALOG\n".to_vec()] {
        let fork = before.fork();
        fork.set_bytes(&segment_name(2), unfinished.clone());
        assert_eq!(read_all(packed(&fork), at(Lsn(0), 1)).unwrap(), [b"a"]);
        // After the rotation, the first segment says that there is another one.
        let fork = volume.fork();
        fork.set_bytes(&segment_name(2), unfinished);
        let (found, end) = read_some(packed(&fork), at(Lsn(0), 1));
        assert!(found == [b"a"] && matches!(end, Err(Error::CorruptLog { .. })));
    }
    log.append(1, b"b").unwrap();
    for number in [1, 2] {
        let fork = volume.fork();
        let mut bytes = fork.bytes(&segment_name(number));
        bytes[45] ^= 1;
        fork.set_bytes(&segment_name(number), bytes);
        assert!(matches!(read_some(packed(&fork), at(Lsn(0), 1)).1, Err(Error::CorruptLog { .. })), "{number}");
    }
}

#[test]
fn a_segment_of_a_newer_format_has_its_own_error() {
    let volume = TestVolume::default();
    Log::create(packed(&volume), 1, Lsn(0)).unwrap();
    let mut bytes = volume.bytes(&segment_name(1));
    bytes[8] = 2;
    let sum = crate::base::checksum::checksum(&bytes[..52]);
    bytes[52..56].copy_from_slice(&sum.to_le_bytes());
    volume.set_bytes(&segment_name(1), bytes);
    let error = read(packed(&volume), at(Lsn(0), 1), Lsn::ZERO).unwrap_err();
    assert!(matches!(error, Error::FormatVersion { found: 2, supported: 1, .. }));
}

#[test]
fn recycled_bytes_after_the_end_are_not_read() {
    // Batches with the same lengths at the same offsets: of an earlier epoch, of another database, and after a
    // different batch.
    for shape in SHAPES {
        let old = |database, epoch, first: &[u8]| {
            let volume = TestVolume::default();
            let log = Log::create(LogConfig { database, ..config(&volume, shape) }, epoch, Lsn(0)).unwrap();
            for payload in [first, b"old", b"older"] {
                log.make_durable(log.append(1, payload).unwrap()).unwrap();
            }
            volume.bytes(&segment_name(1))
        };
        for (recycled, is_damage) in
            [(old(DATABASE, 1, b"new"), false), (old(9, 2, b"new"), false), (old(DATABASE, 2, b"NEW"), true)]
        {
            let volume = TestVolume::default();
            let log = Log::create(config(&volume, shape), 2, Lsn(0)).unwrap();
            log.make_durable(log.append(1, b"new").unwrap()).unwrap();
            let mut bytes = volume.bytes(&segment_name(1));
            bytes.extend_from_slice(&recycled[bytes.len()..]);
            volume.set_bytes(&segment_name(1), bytes);
            let (found, end) = read_some(config(&volume, shape), at(Lsn(0), 2));
            assert_eq!(found, [b"new"]);
            // A database uses each epoch only once, so the last case can only be damage.
            assert_eq!(end.is_err(), is_damage);
        }
    }
}

/// Reads return a wrong byte of the last batch, which no later batch shows to be durable: several times in a row, or as
/// long as the byte is in the file cache.
#[test]
fn a_recovery_does_not_cut_the_log_where_reads_were_wrong() {
    for shape in SHAPES {
        for reads in [Some(2), Some(3), None] {
            let (volume, payloads, starts) = written(shape, &[20, 300], &[0, 1]);
            let whole = volume.bytes(&segment_name(1));
            let last = whole.windows(8).position(|bytes| bytes == starts[1].0.to_le_bytes()).unwrap();
            let reader = read(config(&volume, shape), at(Lsn(0), 1), Lsn::ZERO).unwrap().unwrap();
            volume.spoil(&segment_name(1), last as u64 + 40..last as u64 + 41, reads);
            let resumed = Log::resume(reader).map(|log| log.next_lsn());
            assert!(
                matches!(resumed, Err(Error::CorruptLog { lsn, .. }) if lsn == starts[1]),
                "{reads:?}: {resumed:?}"
            );
            assert_eq!(volume.names(), [segment_name(1)], "{reads:?}");
            assert_eq!(read_all(config(&volume, shape), at(Lsn(0), 1)).unwrap(), payloads, "{reads:?}");
        }
    }
}

/// A log of three batches. The last one is in a segment that was begun, and not synced, after the second one. Only the
/// first one is durable. Returns the start of the second one, too.
fn with_segment_just_begun(shape: LogShape) -> (TestVolume, Log, Lsn) {
    let volume = TestVolume::default();
    let log = Log::create(config(&volume, shape), 1, Lsn(0)).unwrap();
    log.make_durable(log.append(1, b"first").unwrap()).unwrap();
    let second = log.next_lsn();
    log.append(1, &[2; 300]).unwrap();
    log.prepare_segment().unwrap();
    assert_eq!(log.switch_segment().unwrap(), Some(log.next_lsn()));
    log.append(1, b"third").unwrap();
    assert_eq!(log.durable(), second);
    (volume, log, second)
}

/// The offset of the batch that starts at `start` in the first segment.
fn offset_of(volume: &TestVolume, start: Lsn) -> usize {
    let bytes = volume.bytes(&segment_name(1));
    bytes[4096..].windows(8).position(|bytes| bytes == start.0.to_le_bytes()).unwrap() + 4096
}

#[test]
fn a_torn_tail_before_a_segment_that_was_just_begun_ends_the_log() -> Result<()> {
    for shape in SHAPES {
        let (volume, _, second) = with_segment_just_begun(shape);
        let at_second = offset_of(&volume, second);
        let whole = volume.bytes(&segment_name(1));
        volume.set_bytes(&segment_name(1), whole[..at_second + 100].to_vec());
        assert_eq!(read_all(config(&volume, shape), at(Lsn(0), 1))?, [b"first"]);
        let log = Log::resume(read(config(&volume, shape), at(Lsn(0), 1), Lsn::ZERO)?.expect("a log"))?;
        assert_eq!(log.next_lsn(), second);
        log.append(1, b"other")?;
        assert_eq!(read_all(config(&volume, shape), at(Lsn(0), 1))?, [b"first", b"other"]);
        log.make_durable(log.next_lsn())?;
        log.remove_before(second)?;
        assert_eq!(volume.names(), [segment_name(3)], "no segment of the lost end stays");
        assert_eq!(read_all(config(&volume, shape), at(second, 2))?, [b"other"]);
    }
    Ok(())
}

/// Each of these proves that the second batch was durable: the mark in the header of its segment, a batch that was
/// written later, and a segment that was begun later.
#[test]
fn damage_before_a_segment_is_found_if_anything_proves_that_the_end_was_durable() -> Result<()> {
    for shape in SHAPES {
        for proof in ["mark", "batch", "segment"] {
            let (volume, log, second) = with_segment_just_begun(shape);
            let unmarked = volume.bytes(&segment_name(1));
            log.finish_rotation(log.next_lsn())?;
            let next_unmarked = volume.bytes(&segment_name(2));
            match proof {
                "batch" => drop(log.append(1, b"fourth")?),
                "segment" => {
                    log.rotate()?;
                    volume.set_bytes(&segment_name(2), next_unmarked);
                }
                _ => {}
            }
            let at_second = offset_of(&volume, second);
            let mut damaged = if proof == "mark" { volume.bytes(&segment_name(1)) } else { unmarked };
            damaged[at_second + 100] ^= 1;
            volume.set_bytes(&segment_name(1), damaged);
            let (found, end) = read_some(config(&volume, shape), at(Lsn(0), 1));
            assert_eq!(found, [b"first"], "{proof}");
            assert!(matches!(end, Err(Error::CorruptLog { lsn, .. }) if lsn == second), "{proof}: {end:?}");
        }
    }
    Ok(())
}

/// Segment 2 of three is missing, or has a damaged header. The mark in segment 1 is lost, too: its write is not synced.
#[test]
fn a_missing_segment_with_batches_is_damage_and_one_without_batches_is_not() -> Result<()> {
    for shape in SHAPES {
        for missing_is_empty in [false, true] {
            let volume = TestVolume::default();
            let log = Log::create(config(&volume, shape), 1, Lsn(0))?;
            log.append(1, b"first")?;
            let unmarked = volume.bytes(&segment_name(1));
            let second = log.rotate()?;
            if !missing_is_empty {
                log.append(1, b"second")?;
            }
            log.rotate()?;
            volume.set_bytes(&segment_name(1), unmarked);
            let mut header = volume.bytes(&segment_name(2));
            header[40] ^= 1;
            header.resize(header.len().max(5000), 1);
            let damaged = volume.fork();
            damaged.set_bytes(&segment_name(2), header);
            volume.remove(&segment_name(2))?;
            for volume in [volume, damaged] {
                if missing_is_empty {
                    // Nothing is lost.
                    assert_eq!(read_all(config(&volume, shape), at(Lsn(0), 1))?, [b"first"]);
                    continue;
                }
                let (found, end) = read_some(config(&volume, shape), at(Lsn(0), 1));
                assert_eq!(found, [b"first"]);
                assert!(matches!(end, Err(Error::CorruptLog { lsn, .. }) if lsn == second), "{end:?}");
            }
        }
    }
    Ok(())
}

#[test]
fn a_lost_write_of_the_header_of_a_segment_is_found_if_a_later_batch_was_written_after_a_sync() -> Result<()> {
    for shape in SHAPES {
        let (volume, log, _) = with_segment_just_begun(shape);
        let start = log.next_lsn().0 - (BATCH_HEADER + b"third".len()) as u64;
        let unmarked = volume.bytes(&segment_name(1));
        let without_header = |volume: &TestVolume| {
            let fork = volume.fork();
            let empty = TestVolume::default();
            let log = Log::create(config(&empty, shape), 1, Lsn(0)).unwrap();
            log.prepare_segment().unwrap();
            let mut bytes = empty.bytes(&segment_name(2));
            bytes.extend_from_slice(&fork.bytes(&segment_name(2))[4096..]);
            fork.set_bytes(&segment_name(1), unmarked.clone());
            fork.set_bytes(&segment_name(2), bytes);
            read_some(config(&fork, shape), at(Lsn(0), 1))
        };
        let (found, end) = without_header(&volume);
        assert!(found.len() == 2 && end.is_ok(), "it was never synced: {end:?}");
        log.make_durable(log.next_lsn())?;
        let (found, end) = without_header(&volume);
        assert!(found.len() == 2 && end.is_ok(), "nothing proves the sync: {end:?}");
        log.append(1, b"fourth")?;
        let (found, end) = without_header(&volume);
        assert_eq!(found.len(), 2);
        assert!(matches!(end, Err(Error::CorruptLog { lsn, .. }) if lsn.0 == start), "{end:?}");
    }
    Ok(())
}

#[test]
fn a_recovery_does_not_cut_the_log_at_a_wrong_read_before_a_segment_that_was_just_begun() {
    for shape in SHAPES {
        for reads in [Some(2), Some(3), None] {
            let (volume, _, second) = with_segment_just_begun(shape);
            let at_second = offset_of(&volume, second) as u64;
            let reader = read(config(&volume, shape), at(Lsn(0), 1), Lsn::ZERO).unwrap().unwrap();
            volume.spoil(&segment_name(1), at_second + 40..at_second + 41, reads);
            let resumed = Log::resume(reader).map(|log| log.next_lsn());
            assert!(matches!(resumed, Err(Error::CorruptLog { lsn, .. }) if lsn == second), "{reads:?}: {resumed:?}");
            assert_eq!(volume.names(), [segment_name(1), segment_name(2)], "{reads:?}");
            assert_eq!(read_all(config(&volume, shape), at(Lsn(0), 1)).unwrap().len(), 3, "{reads:?}");
        }
    }
}

/// Both reads of a batch are wrong, and the bytes of the batches after it, which were read together with it.
#[test]
fn later_batches_are_searched_in_bytes_that_are_read_again() {
    let (volume, _, starts) = written(LogShape::Packed, &[20, 300, 50], &[0, 1, 2]);
    let second = SEGMENT_HEADER + BATCH_HEADER as u64 + 20;
    let mut reader = read(packed(&volume), at(Lsn(0), 1), Lsn::ZERO).unwrap().unwrap();
    volume.spoil(&segment_name(1), second..u64::MAX, Some(2));
    assert!(reader.next().unwrap().is_some());
    assert!(matches!(reader.next(), Err(Error::CorruptLog { lsn, .. }) if lsn == starts[1]));
}

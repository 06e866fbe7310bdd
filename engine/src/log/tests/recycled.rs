//! A segment that is used again: what an earlier segment has left in the file is neither read nor taken for damage, and
//! damage is found as in a new file.

use super::*;
use crate::io::{OpenMode, Volume};

const SHAPES: [LogShape; 2] = [LogShape::Packed, LogShape::Sparse];
const LENS: [usize; 6] = [20, 0, 700, 33, 5000, 64];

/// A log whose segment 4 has the file of segment 2. Both have batches of the same lengths, all durable.
struct Recycled {
    volume: TestVolume,
    shape: LogShape,
    /// Segment 4 before its first batch.
    before: Vec<u8>,
    redo: LogPosition,
    payloads: Vec<Vec<u8>>,
    /// The start of each batch of segment 4.
    starts: Vec<Lsn>,
}

/// Appends the batches of a segment, each durable.
fn fill(log: &Log, seed: u8, payloads: &mut Vec<Vec<u8>>) -> Vec<Lsn> {
    let mut starts = Vec::new();
    for (number, len) in LENS.into_iter().enumerate() {
        let payload = vec![seed ^ number as u8; len];
        starts.push(log.next_lsn());
        log.make_durable(log.append(1, &payload).unwrap()).unwrap();
        payloads.push(payload);
    }
    starts
}

impl Recycled {
    fn new(shape: LogShape) -> Recycled {
        let volume = TestVolume::default();
        let log = Log::create(config(&volume, shape), 1, Lsn(0)).unwrap();
        log.keep_spares(1 << 20);
        log.remove_before(log.rotate().unwrap()).unwrap();
        // A third file, so that the spare one is not used again at once.
        fill(&log, 0x40, &mut Vec::new());
        let redo = log.rotate().unwrap();
        log.remove_before(redo).unwrap();
        let redo = log.rotate().unwrap();
        log.remove_before(redo).unwrap();
        assert_eq!(volume.names().last(), Some(&segment_name(4)));
        let before = volume.bytes(&segment_name(4));
        assert!(before.len() > 4096 + LENS.iter().sum::<usize>(), "it has old content");
        let mut payloads = Vec::new();
        let starts = fill(&log, 0x80, &mut payloads);
        let redo = LogPosition { lsn: redo, epoch: log.epoch() };
        Recycled { volume, shape, before, redo, payloads, starts }
    }

    fn bytes(&self) -> Vec<u8> {
        self.volume.bytes(&segment_name(4))
    }

    /// The offset of each batch of segment 4.
    fn offsets(&self) -> Vec<usize> {
        let bytes = self.bytes();
        let batches = &bytes[4096..];
        let at = |start: &Lsn| 4096 + batches.windows(8).position(|found| found == start.0.to_le_bytes()).unwrap();
        self.starts.iter().map(at).collect()
    }

    /// Reads the log with these bytes in segment 4.
    fn read(&self, bytes: Vec<u8>) -> (Vec<Vec<u8>>, Result<()>) {
        self.volume.set_bytes(&segment_name(4), bytes);
        read_some(config(&self.volume, self.shape), self.redo)
    }
}

#[test]
fn a_segment_is_written_over_in_place() {
    for shape in SHAPES {
        let recycled = Recycled::new(shape);
        let (found, end) = recycled.read(recycled.bytes());
        end.unwrap();
        assert_eq!(found, recycled.payloads);
        assert_eq!(recycled.bytes().len(), recycled.before.len(), "the length has not changed");
    }
}

#[test]
fn old_batches_after_a_lost_write_end_the_log() {
    for shape in SHAPES {
        let recycled = Recycled::new(shape);
        let (new, offsets) = (recycled.bytes(), recycled.offsets());
        for (number, offset) in offsets.iter().enumerate() {
            // The device has lost everything from this batch on, so the old content is still there.
            for keep in [0, 8, BATCH_HEADER, BATCH_HEADER + 1] {
                let keep = (offset + keep).min(new.len());
                let mut bytes = recycled.before.clone();
                bytes[4096..keep].copy_from_slice(&new[4096..keep]);
                let (found, end) = recycled.read(bytes);
                end.unwrap();
                let whole = found.len() == number + 1 && LENS[number] < 2;
                assert!(found.len() == number || whole, "{} of {number}, {keep}", found.len());
                assert!(recycled.payloads.starts_with(&found));
            }
        }
    }
}

#[test]
fn damage_in_a_recycled_segment_is_found() {
    for shape in SHAPES {
        let recycled = Recycled::new(shape);
        let (whole, offsets) = (recycled.bytes(), recycled.offsets());
        // The batch before the last one was durable when the last one was written.
        for number in 0..offsets.len() - 1 {
            for at in [0, 9, 30, BATCH_HEADER + LENS[number] - 1] {
                let mut bytes = whole.clone();
                bytes[offsets[number] + at] ^= 0x10;
                let (found, end) = recycled.read(bytes);
                assert_eq!(found, recycled.payloads[..number]);
                let lsn = recycled.starts[number];
                assert!(matches!(end, Err(Error::CorruptLog { lsn: at, .. }) if at == lsn), "{number}: {end:?}");
            }
        }
        // The writes of two durable batches were lost, so those of segment 2 are still there. A later batch proves that
        // they were durable.
        let mut bytes = whole.clone();
        bytes[offsets[1]..offsets[3]].copy_from_slice(&recycled.before[offsets[1]..offsets[3]]);
        let (found, end) = recycled.read(bytes);
        assert_eq!(found, recycled.payloads[..1]);
        assert!(matches!(end, Err(Error::CorruptLog { .. })));
    }
}

#[test]
fn a_spare_file_under_any_name_is_no_segment_and_a_recovery_removes_it() -> Result<()> {
    let volume = TestVolume::default();
    let log = Log::create(packed(&volume), 1, Lsn(0))?;
    log.keep_spares(1 << 20);
    log.append(1, b"before")?;
    let redo = log.rotate()?;
    log.append(1, b"after")?;
    log.remove_before(redo)?;
    assert_eq!(volume.names(), [segment_name(1), segment_name(2)]);
    // The power failed before the header of the next segment was durable.
    volume.rename(&segment_name(1), &segment_name(3))?;
    assert_eq!(read_all(packed(&volume), at(redo, 1))?, [b"after"]);
    assert!(matches!(read(packed(&volume), at(Lsn(0), 1), Lsn::ZERO), Err(Error::MissingLog { .. })));
    let log = Log::resume(read(packed(&volume), at(redo, 1), redo)?.expect("a log"))?;
    assert_eq!(volume.names(), [segment_name(2), segment_name(4)]);
    log.remove_all()?;
    assert!(volume.names().is_empty());
    Ok(())
}

#[test]
fn spare_files_alone_are_no_log() -> Result<()> {
    let volume = TestVolume::default();
    let log = Log::create(packed(&volume), 1, Lsn(0))?;
    log.keep_spares(1 << 20);
    log.append(1, b"before")?;
    log.remove_before(log.rotate()?)?;
    volume.remove(&segment_name(2))?;
    assert_eq!(volume.names(), [segment_name(1)]);
    assert!(read(packed(&volume), at(Lsn(0), 1), Lsn::ZERO)?.is_none());
    Log::remove_own(&packed(&volume))?;
    assert!(volume.names().is_empty());
    Ok(())
}

#[test]
fn a_file_that_is_ready_for_the_next_segment_is_no_segment_and_does_not_outlive_the_log() -> Result<()> {
    for has_spare in [false, true] {
        let volume = TestVolume::default();
        let log = Log::create(packed(&volume), 1, Lsn(0))?;
        if has_spare {
            log.keep_spares(1 << 20);
            fill(&log, 0x40, &mut Vec::new());
            log.remove_before(log.rotate()?)?;
        }
        let (start, current) = (log.next_lsn(), if has_spare { 2 } else { 1 });
        (0..2).try_for_each(|_| log.prepare_segment())?;
        assert_eq!(volume.names(), [segment_name(current), segment_name(current + 1)]);
        let mut payloads = Vec::new();
        fill(&log, 0x80, &mut payloads);
        assert_eq!(read_all(packed(&volume), at(start, 1))?, payloads);
        log.remove_spares()?;
        assert_eq!(volume.names(), [segment_name(current)], "a full device gets its space back");
        log.prepare_segment()?;
        let names = volume.names();
        assert_eq!(names.len(), 2);
        log.rotate()?;
        assert_eq!(volume.names(), names);
        fill(&log, 0xc0, &mut payloads);
        assert_eq!(read_all(packed(&volume), at(start, 1))?, payloads);
        log.prepare_segment()?;
        log.remove_all()?;
        assert!(volume.names().is_empty());
    }
    Ok(())
}

#[test]
fn spare_files_are_bounded_in_bytes_and_number() -> Result<()> {
    let volume = TestVolume::default();
    let log = Log::create(packed(&volume), 1, Lsn(0))?;
    let spares = || volume.names().len() - 1;
    log.remove_before(log.rotate()?)?;
    assert_eq!(spares(), 0, "a new log keeps none");
    log.keep_spares(100_000);
    let mut redo = Lsn(0);
    for _ in 0..3 {
        log.append(1, &[7; 40_000])?;
        redo = log.rotate()?;
    }
    log.remove_before(redo)?;
    assert_eq!(spares(), 2);
    let bytes: usize = volume.names().iter().map(|name| volume.bytes(name).len()).sum();
    assert_eq!(bytes, 100_000 + 4096, "the second one is cut");
    log.remove_spares()?;
    assert_eq!(spares(), 0);
    log.keep_spares(1 << 30);
    for _ in 0..20 {
        redo = log.rotate()?;
    }
    log.remove_before(redo)?;
    assert_eq!(spares(), 8);
    log.remove_all()?;
    assert!(volume.names().is_empty());
    Ok(())
}

#[test]
fn spare_files_that_cannot_be_removed_are_used_or_removed_later() -> Result<()> {
    let volume = TestVolume::default();
    let log = Log::create(packed(&volume), 1, Lsn(0))?;
    log.keep_spares(1 << 20);
    let redo = (0..4).map(|_| log.rotate()).last().unwrap()?;
    log.remove_before(redo)?;
    log.prepare_segment()?;
    assert_eq!(volume.names().len(), 4, "a segment, the file of the next one, and two spare files");
    volume.fail_remove(true);
    assert!(matches!(log.remove_spares(), Err(Error::Io { .. })));
    volume.fail_remove(false);
    log.rotate()?;
    log.rotate()?;
    assert_eq!(volume.names().len(), 4, "two of these files are segments now");
    log.remove_spares()?;
    assert_eq!(volume.names().len(), 3, "the third one is removed");
    Ok(())
}

#[test]
fn a_prepared_file_whose_removal_fails_is_not_used_without_its_name() -> Result<()> {
    for is_removed in [false, true] {
        let volume = TestVolume::default();
        let log = Log::create(packed(&volume), 1, Lsn(0))?;
        log.make_durable(log.append(1, b"first")?)?;
        log.prepare_segment()?;
        let fail = |fail| if is_removed { volume.fail_remove_late(fail) } else { volume.fail_remove(fail) };
        fail(true);
        assert!(matches!(log.remove_spares(), Err(Error::Io { .. })));
        fail(false);
        log.rotate()?;
        log.make_durable(log.append(1, b"acknowledged")?)?;
        assert_eq!(read_all(packed(&volume), at(Lsn(0), 1))?, [b"first".as_slice(), b"acknowledged"]);
        assert_eq!(volume.names().len(), 2, "the file that is still there is used: {is_removed}");
    }
    Ok(())
}

#[test]
fn spare_files_become_few_when_the_log_becomes_short() -> Result<()> {
    let volume = TestVolume::default();
    let log = Log::create(packed(&volume), 1, Lsn(0))?;
    log.keep_spares(1 << 30);
    let checkpoint_after = |segments: usize, bytes: usize| -> Result<usize> {
        let mut redo = Lsn(0);
        for _ in 0..segments {
            log.append(1, &vec![7; bytes])?;
            redo = log.rotate()?;
        }
        log.remove_before(redo)?;
        Ok(volume.names().iter().map(|name| volume.bytes(name).len()).sum())
    };
    let long = checkpoint_after(4, 100_000)?;
    assert!(long > 400_000, "{long}");
    let mut bytes = long;
    for _ in 0..10 {
        let before = std::mem::replace(&mut bytes, checkpoint_after(1, 5000)?);
        assert!(bytes <= before, "{before}, then {bytes}");
    }
    assert!(bytes < 40_000, "{bytes}");
    // Two in turn are enough for a short log.
    assert_eq!(volume.names().len(), 2);
    Ok(())
}

#[test]
fn a_segment_of_another_process_is_not_used_again() -> Result<()> {
    let volume = TestVolume::default();
    Log::create(packed(&volume), 1, Lsn(0))?.append(1, b"old")?;
    let log = Log::resume(read(packed(&volume), at(Lsn(0), 1), Lsn(0))?.expect("a log"))?;
    log.keep_spares(1 << 20);
    log.remove_before(log.next_lsn())?;
    assert_eq!(volume.names(), [segment_name(2)], "its epoch is another one");
    Ok(())
}

#[test]
fn commits_that_are_synced_one_by_one_rarely_make_the_file_longer() -> Result<()> {
    for shape in SHAPES {
        let volume = TestVolume::default();
        let log = Log::create(config(&volume, shape), 1, Lsn(0))?;
        let file = volume.open(&segment_name(1), OpenMode::Read)?;
        // How many of these commits have changed the length.
        let append = |count: usize, sync: bool| -> Result<usize> {
            let mut changes = 0;
            for number in 0..count {
                let before = file.size()?;
                log.reserve(2 << 20)?;
                let end = log.append(1, &[number as u8; 300])?;
                if sync {
                    log.make_durable(end)?;
                }
                changes += usize::from(file.size()? != before);
            }
            Ok(changes)
        };
        let changes = append(1000, true)?;
        match shape {
            LogShape::Packed => assert!(changes < 15, "{changes} of 1000"),
            LogShape::Sparse => assert_eq!(changes, 1000, "it writes no block twice"),
        }
        // Commits that are not synced gain nothing from zeros, so none are written.
        append(6000, false)?;
        assert!(append(100, false)? > 7);
        assert_eq!(read_all(config(&volume, shape), at(Lsn(0), 1))?.len(), 7100);
    }
    Ok(())
}

#[test]
fn reserved_space_is_given_back_together_with_the_zeros() -> Result<()> {
    let volume = TestVolume::default();
    let log = Log::create(packed(&volume), 1, Lsn(0))?;
    log.reserve(1 << 20)?;
    let end = log.append(1, &[1; 9000])?;
    assert!(volume.bytes(&segment_name(1)).len() > 2 * 9000);
    log.give_back_reservation()?;
    assert_eq!(volume.bytes(&segment_name(1)).len() as u64, SEGMENT_HEADER + end.0);
    log.append(1, b"more")?;
    assert_eq!(read_all(packed(&volume), at(Lsn(0), 1))?, [vec![1; 9000], b"more".to_vec()]);
    Ok(())
}

#[test]
fn a_file_that_is_cut_after_its_end_is_read_to_that_end() -> Result<()> {
    let volume = TestVolume::default();
    let log = Log::create(packed(&volume), 1, Lsn(0))?;
    log.make_durable(log.append(1, &[1; 300_000])?)?;
    log.reserve(4 << 20)?;
    log.append(1, &[2; 300_000])?;
    let ahead = read(packed(&volume), at(Lsn(0), 1), Lsn(0))?.expect("a log");
    let mut behind = read(packed(&volume), at(Lsn(0), 1), Lsn(0))?.expect("a log");
    let before = volume.open(&segment_name(1), OpenMode::Read)?.size()?;
    Log::resume(ahead)?;
    assert!(volume.open(&segment_name(1), OpenMode::Read)?.size()? < before);
    let mut found = 0;
    while let Some(batch) = behind.next()? {
        found += batch.payload.len();
    }
    assert_eq!(found, 600_000);
    Ok(())
}

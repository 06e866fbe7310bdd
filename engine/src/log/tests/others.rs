//! A log never touches the segments of another log with the same prefix. There can be two such logs if the file of an
//! open database was moved away.

use super::*;

fn other(volume: &TestVolume) -> LogConfig {
    LogConfig { database: !DATABASE, ..packed(volume) }
}

#[test]
fn two_logs_of_one_prefix_take_different_segments() -> Result<()> {
    let volume = TestVolume::default();
    let ours = Log::create(packed(&volume), 1, Lsn(1))?;
    let theirs = Log::create_after(other(&volume), 1, Lsn(1), &[])?;
    for (log, payload) in [(&ours, b"oak"), (&theirs, b"elm"), (&ours, b"ash"), (&theirs, b"yew")] {
        log.append(1, payload)?;
        log.rotate()?;
    }
    assert_eq!(volume.list("db-log")?.len(), 6);
    assert_eq!(read_all(packed(&volume), at(Lsn(1), 1))?, [b"oak", b"ash"]);
    ours.remove_all()?;
    assert_eq!(read_all(other(&volume), at(Lsn(1), 1))?, [b"elm", b"yew"]);
    Ok(())
}

#[test]
fn a_segment_that_another_log_is_creating_stays() -> Result<()> {
    let volume = TestVolume::default();
    let ours = Log::create(packed(&volume), 1, Lsn(1))?;
    let second = ours.rotate()?;
    // The other database has removed them, and creates its own.
    for number in [1, 2] {
        volume.remove(&segment_name(number))?;
        volume.create_beside(&segment_name(number), "db")?;
    }
    ours.remove_before(second)?;
    ours.remove_all()?;
    assert_eq!(volume.list("db-log")?, [segment_name(1), segment_name(2)]);
    Ok(())
}

/// Our database was removed while it was open, with its log. Another one has its name, and a segment of the number that
/// ours has prepared.
#[test]
fn a_segment_of_another_log_is_not_removed_for_a_prepared_file() -> Result<()> {
    type Use = fn(&TestVolume, &Log) -> Result<()>;
    let spares: Use = |_, log| log.remove_spares();
    let all: Use = |_, log| log.remove_all();
    let rotation: Use = |volume, log| {
        volume.fail_write(true);
        assert!(log.rotate().is_err());
        volume.fail_write(false);
        Ok(())
    };
    for remove in [spares, all, rotation] {
        let volume = TestVolume::default();
        let ours = Log::create(packed(&volume), 1, Lsn(1))?;
        ours.prepare_segment()?;
        volume.remove(&segment_name(2))?;
        let theirs = Log::create_after(other(&volume), 1, Lsn(1), &[])?;
        theirs.make_durable(theirs.append(1, b"elm")?)?;
        assert_eq!(volume.names(), [segment_name(1), segment_name(2)]);
        remove(&volume, &ours)?;
        assert_eq!(read_all(other(&volume), at(Lsn(1), 1))?, [b"elm"]);
    }
    Ok(())
}

/// A prepared file goes with the log, whether it was created or was a spare file.
#[test]
fn a_prepared_file_is_removed() -> Result<()> {
    for spares in [0, 1 << 20] {
        let volume = TestVolume::default();
        let log = Log::create(packed(&volume), 1, Lsn(1))?;
        log.keep_spares(spares);
        log.append(1, b"oak")?;
        log.remove_before(log.rotate()?)?;
        log.prepare_segment()?;
        assert_eq!(volume.names(), [segment_name(2), segment_name(3)]);
        log.remove_spares()?;
        assert_eq!(volume.names(), [segment_name(2)]);
    }
    Ok(())
}

#[test]
fn a_segment_that_a_power_cut_left_without_a_header_goes_with_the_log() -> Result<()> {
    let volume = TestVolume::default();
    drop(Log::create(packed(&volume), 1, Lsn(1))?);
    volume.create_beside(&segment_name(2), "db")?;
    let log = Log::resume(read(packed(&volume), at(Lsn(1), 1), Lsn::ZERO)?.expect("a log"))?;
    assert_eq!(volume.list("db-log")?.len(), 3);
    log.remove_all()?;
    assert!(volume.list("db-log")?.is_empty());
    Ok(())
}

#[test]
fn a_spare_file_of_another_log_is_neither_used_nor_removed() -> Result<()> {
    let volume = TestVolume::default();
    let ours = Log::create(packed(&volume), 1, Lsn(1))?;
    ours.keep_spares(1 << 20);
    ours.append(1, b"oak")?;
    ours.remove_before(ours.rotate()?)?;
    assert_eq!(volume.names(), [segment_name(1), segment_name(2)]);
    // The other log has one of the same number.
    let elsewhere = TestVolume::default();
    let theirs = Log::create(other(&elsewhere), 1, Lsn(1))?;
    theirs.keep_spares(1 << 20);
    theirs.append(1, b"elm")?;
    theirs.remove_before(theirs.rotate()?)?;
    let spare = elsewhere.bytes(&segment_name(1));
    volume.set_bytes(&segment_name(1), spare.clone());
    let redo = ours.rotate()?;
    assert_eq!(volume.bytes(&segment_name(1)), spare);
    assert_eq!(volume.names(), [segment_name(1), segment_name(2), segment_name(3)]);
    ours.remove_before(redo)?;
    ours.remove_spares()?;
    ours.append(1, b"ash")?;
    assert_eq!(read_all(packed(&volume), at(redo, 1))?, [b"ash"]);
    ours.remove_all()?;
    Log::remove_own(&packed(&volume))?;
    assert_eq!(volume.names(), [segment_name(1)]);
    assert_eq!(volume.bytes(&segment_name(1)), spare);
    Ok(())
}

#[test]
fn a_segment_that_another_database_has_replaced_does_not_become_a_spare_file() -> Result<()> {
    let volume = TestVolume::default();
    let ours = Log::create(packed(&volume), 1, Lsn(1))?;
    ours.keep_spares(1 << 20);
    let redo = ours.rotate()?;
    // A copy of the database has the same id.
    let elsewhere = TestVolume::default();
    Log::create(packed(&elsewhere), 2, Lsn(1))?.append(1, b"elm")?;
    volume.set_bytes(&segment_name(1), elsewhere.bytes(&segment_name(1)));
    ours.remove_before(redo)?;
    assert_eq!(volume.names(), [segment_name(2)]);
    ours.rotate()?;
    assert_eq!(volume.names(), [segment_name(2), segment_name(3)]);
    Ok(())
}

/// Somebody can give a file any name.
#[test]
fn a_small_file_that_is_no_segment_is_neither_read_nor_removed() -> Result<()> {
    for content in [&b"k\tv\n"[..], &[b'x'; 3000]] {
        let volume = TestVolume::default();
        let other = segment_name(7);
        volume.set_bytes(&other, content.to_vec());
        let log = Log::create(packed(&volume), 1, Lsn(1))?;
        log.append(1, b"elm")?;
        log.make_durable(log.next_lsn())?;
        drop(log);
        let reader = read(packed(&volume), at(Lsn(1), 1), Lsn(1))?.expect("there is a log");
        let log = Log::resume(reader)?;
        log.append(1, b"ash")?;
        let redo = log.rotate()?;
        log.remove_before(redo)?;
        drop(log);
        Log::create(packed(&volume), 9, redo)?.remove_all()?;
        assert_eq!(volume.names(), std::slice::from_ref(&other));
        assert_eq!(volume.bytes(&other), content);
    }
    Ok(())
}

//! Tests the effect of each fault through the traits that the engine uses.

use duramen::Error;
use duramen::io::{Disk, OpenMode, Volume};
use duramen_sim::{Cut, CutChoice, DEVICE_BLOCK, FailingVolume, Fault, Trigger};
use std::sync::Arc;

fn durable(volume: &FailingVolume, name: &str, bytes: &[u8]) -> Arc<dyn Disk> {
    let disk = volume.open(name, OpenMode::CreateNew).unwrap();
    disk.write_at(0, bytes).unwrap();
    disk.sync().unwrap();
    volume.sync().unwrap();
    disk
}

fn content(volume: &FailingVolume, name: &str) -> Vec<u8> {
    let disk = volume.open(name, OpenMode::Read).unwrap();
    let mut bytes = vec![0; disk.size().unwrap() as usize];
    disk.read_at(0, &mut bytes).unwrap();
    bytes
}

fn after_cut(volume: &FailingVolume, name: &str) -> Vec<u8> {
    content(&volume.crash(Cut { event: volume.events(), choice: CutChoice::KeepAll }), name)
}

#[test]
fn a_failed_sync_loses_bytes_that_reads_still_return() {
    let outcomes = (0..100).map(|seed| {
        let volume = FailingVolume::new(seed);
        let disk = durable(&volume, "f", &[1; 4096]);
        disk.write_at(0, &[2; 4096]).unwrap();
        volume.inject(Fault::FailSync, Trigger::once());
        assert!(matches!(disk.sync(), Err(Error::Io { .. })));
        assert_eq!(content(&volume, "f"), [2; 4096]);
        // A second sync succeeds. It does not prove that the writes before the failed sync are durable.
        disk.write_at(4096, &[3; 10]).unwrap();
        disk.sync().unwrap();
        let found = after_cut(&volume, "f");
        assert_eq!(found[4096..], [3; 10]);
        found[..4096].contains(&1)
    });
    let lost = outcomes.filter(|&lost| lost).count();
    assert!((1..100).contains(&lost), "{lost}");
}

#[test]
fn syncs_fail_until_the_trigger_is_removed() {
    let volume = FailingVolume::new(1);
    let disk = durable(&volume, "db", b"x");
    let log = durable(&volume, "db-log", b"x");
    volume.inject(Fault::FailSync, Trigger::always().after(1).on("db-log"));
    log.sync().unwrap();
    for _ in 0..3 {
        assert!(log.sync().is_err());
        disk.sync().unwrap();
        volume.sync().unwrap();
    }
    volume.inject(Fault::FailSync, Trigger::never());
    log.sync().unwrap();
    volume.inject(Fault::FailSync, Trigger::once());
    assert!(volume.sync().is_err());
    volume.sync().unwrap();
}

#[test]
fn an_injected_fault_fails_one_read_or_write() {
    let volume = FailingVolume::new(1);
    let disk = durable(&volume, "f", b"abc");
    volume.inject(Fault::FailRead, Trigger::once().after(1));
    disk.read_at(0, &mut [0; 3]).unwrap();
    assert!(matches!(disk.read_at(0, &mut [0; 3]), Err(Error::Io { .. })));
    disk.read_at(0, &mut [0; 3]).unwrap();
    volume.inject(Fault::FailWrite, Trigger::once());
    assert!(matches!(disk.write_at(0, b"x"), Err(Error::Io { .. })));
    assert_eq!(content(&volume, "f"), b"abc");
}

#[test]
fn a_write_that_fails_late_has_written_half_of_its_bytes_or_all() {
    let volume = FailingVolume::new(1);
    let disk = durable(&volume, "f", b"abcd");
    let mut found = Vec::new();
    for _ in 0..2 {
        disk.write_at(0, b"abcd").unwrap();
        volume.inject(Fault::FailLate, Trigger::once());
        assert!(matches!(disk.write_at(0, b"wxyz"), Err(Error::Io { .. })));
        found.push(content(&volume, "f"));
        disk.sync().unwrap();
    }
    found.sort();
    assert_eq!(found, [b"wxcd", b"wxyz"]);
}

#[test]
fn a_call_that_is_refused_changes_nothing() {
    let volume = FailingVolume::new(1);
    let disk = durable(&volume, "f", b"abc");
    let calls: [&dyn Fn() -> duramen::Result<()>; 10] = [
        &|| volume.open("f", OpenMode::Write).map(drop),
        &|| volume.open("new", OpenMode::CreateNew).map(drop),
        &|| volume.rename("f", "new"),
        &|| volume.replace("f", "new"),
        &|| volume.exchange("f", "f").map(drop),
        &|| volume.remove("f"),
        &|| volume.list("").map(drop),
        &|| disk.trim(0, 3),
        &|| disk.resize(1),
        &|| disk.reserve(8192),
    ];
    for (number, call) in calls.iter().enumerate() {
        volume.inject(Fault::Refuse, Trigger::once());
        assert!(matches!(call(), Err(Error::Io { .. })), "call {number}");
        assert_eq!((content(&volume, "f"), volume.list("").unwrap().len()), (b"abc".to_vec(), 1), "call {number}");
    }
}

#[test]
fn a_call_that_is_refused_late_has_taken_effect() {
    let volume = FailingVolume::new(1);
    let late = |call: &dyn Fn() -> duramen::Result<()>| {
        volume.inject(Fault::RefuseLate, Trigger::once());
        assert!(matches!(call(), Err(Error::Io { .. })));
        volume.list("").unwrap()
    };
    let disk = durable(&volume, "f", b"abc");
    durable(&volume, "g", b"other");
    assert_eq!(late(&|| volume.open("new", OpenMode::CreateNew).map(drop)), ["f", "g", "new"]);
    assert_eq!(late(&|| volume.rename("f", "h")), ["g", "h", "new"]);
    assert_eq!(late(&|| volume.replace("h", "new")), ["g", "new"]);
    late(&|| volume.exchange("g", "new").map(drop));
    assert_eq!((content(&volume, "g"), content(&volume, "new")), (b"abc".to_vec(), b"other".to_vec()));
    late(&|| disk.resize(1));
    assert_eq!(content(&volume, "g"), b"a");
    assert_eq!(late(&|| volume.remove("g")), ["new"]);
}

#[test]
fn a_device_without_trims_keeps_every_byte() {
    for (volume, left) in [(FailingVolume::new(1).without_trims(), 1), (FailingVolume::new(1), 0)] {
        let disk = durable(&volume, "f", &[1; 8192]);
        disk.trim(0, 4096).unwrap();
        assert_eq!(content(&volume, "f")[0], left);
        // A later process has the same device.
        let crashed = volume.crash(Cut { event: volume.events(), choice: CutChoice::KeepAll });
        crashed.open("f", OpenMode::Write).unwrap().trim(4096, 4096).unwrap();
        assert_eq!(content(&crashed, "f")[4096], left);
    }
}

#[test]
fn a_device_without_reservations_keeps_no_space() {
    for (volume, kept) in [(FailingVolume::new(1).without_reservations(), false), (FailingVolume::new(1), true)] {
        let crashed = volume.crash(Cut { event: volume.events(), choice: CutChoice::KeepAll });
        for volume in [volume, crashed] {
            let disk = durable(&volume, "f", b"");
            volume.limit_space(Some(4096));
            disk.reserve(4096).unwrap();
            volume.limit_space(Some(0));
            assert_eq!(disk.write_at(0, &[1; 4096]).is_ok(), kept);
        }
    }
}

#[test]
fn a_lost_write_is_acknowledged_and_never_applied() {
    let volume = FailingVolume::new(1);
    let disk = durable(&volume, "f", b"abc");
    volume.inject(Fault::LoseWrite, Trigger::once());
    disk.write_at(0, b"x").unwrap();
    disk.sync().unwrap();
    assert_eq!(content(&volume, "f"), b"abc");
    disk.write_at(0, b"y").unwrap();
    assert_eq!(content(&volume, "f"), b"ybc");
}

#[test]
fn a_misdirected_write_lands_in_another_block() {
    for (seed, blocks) in (0..50).zip([1usize, 2, 3, 20].into_iter().cycle()) {
        let volume = FailingVolume::new(seed);
        let disk = durable(&volume, "f", &vec![1; blocks * DEVICE_BLOCK]);
        volume.inject(Fault::MisdirectWrite, Trigger::once());
        disk.write_at(100, &[2; 50]).unwrap();
        let found = content(&volume, "f");
        assert!(found[..DEVICE_BLOCK].iter().all(|&byte| byte == 1), "seed {seed}");
        let misdirected = found.iter().position(|&byte| byte == 2).unwrap();
        assert_eq!(misdirected % DEVICE_BLOCK, 100);
        assert!(blocks == 1 || found.len() == blocks * DEVICE_BLOCK);
    }
}

#[test]
fn a_full_device_writes_a_prefix_and_keeps_reserved_space() {
    let volume = FailingVolume::new(1);
    let disk = durable(&volume, "f", &[1; 4096]);
    volume.limit_space(Some(3 * 4096));
    disk.reserve(2 * 4096).unwrap();
    assert_eq!(disk.size().unwrap(), 4096);
    let full = disk.write_at(4096, &[2; 4 * 4096]);
    assert!(matches!(full, Err(Error::Full { path }) if path == volume.path("f")));
    assert_eq!(disk.size().unwrap(), 4 * 4096, "the size is not one reserved block and two free ones");
    disk.write_at(0, &[3; 4096]).unwrap();
    let other = volume.open("g", OpenMode::CreateNew).unwrap();
    assert!(matches!(other.write_at(0, b"x"), Err(Error::Full { .. })));
    assert!(matches!(other.reserve(1), Err(Error::Full { .. })));
    disk.trim(0, 4096).unwrap();
    other.write_at(0, b"x").unwrap();
    assert!(matches!(other.write_at(4096, b"x"), Err(Error::Full { .. })));
    volume.remove("f").unwrap();
    other.write_at(4096, b"x").unwrap();
    volume.limit_space(None);
    other.write_at(0, &[1; 100 * 4096]).unwrap();
}

#[test]
fn reserved_space_is_available_when_the_device_is_full() {
    let volume = FailingVolume::new(1);
    let disk = volume.open("f", OpenMode::CreateNew).unwrap();
    volume.limit_space(Some(8 * 4096));
    disk.reserve(8 * 4096).unwrap();
    assert_eq!(disk.allocated().unwrap(), 8 * 4096);
    disk.write_at(0, &[1; 8 * 4096]).unwrap();
    assert!(disk.write_at(8 * 4096, &[1]).is_err());
}

#[test]
fn each_block_of_a_trimmed_range_reads_as_zeros_or_as_it_was() {
    let volume = FailingVolume::new(1);
    let disk = durable(&volume, "f", &[1; 10 * DEVICE_BLOCK]);
    disk.trim(4000, 9 * DEVICE_BLOCK as u64 - 4000).unwrap();
    let found = content(&volume, "f");
    assert!(found[4000..9 * DEVICE_BLOCK].iter().all(|&byte| byte == 0));
    assert!(found[..4000].iter().chain(&found[9 * DEVICE_BLOCK..]).all(|&byte| byte == 1));
    assert_eq!(disk.allocated().unwrap(), 2 * DEVICE_BLOCK as u64);
    assert_eq!(after_cut(&volume, "f"), found);
    let cut = Cut { event: volume.events(), choice: CutChoice::Random(1) };
    let cut = content(&volume.crash(cut), "f");
    let blocks = cut.chunks(DEVICE_BLOCK).skip(1);
    let mut kinds: Vec<u8> =
        blocks.inspect(|block| assert!(block.iter().all(|&byte| byte == block[0]))).map(|b| b[0]).collect();
    kinds.sort_unstable();
    kinds.dedup();
    assert_eq!(kinds, [0, 1], "all blocks are in the same state");
}

#[test]
fn bit_rot_changes_durable_bytes_and_keeps_pending_writes() {
    let volume = FailingVolume::new(1);
    let disk = durable(&volume, "f", &[0; 8192]);
    disk.write_at(4096, &[1; 10]).unwrap();
    volume.flip_bits("f", 7, 0b101).unwrap();
    let dropped = content(&volume.crash(Cut { event: volume.events(), choice: CutChoice::DropUnsynced }), "f");
    assert_eq!((dropped[7], dropped[4096]), (5, 0));
    let kept = after_cut(&volume, "f");
    assert_eq!((kept[7], kept[4096]), (5, 1));
    assert_eq!(kept, content(&volume, "f"));
    volume.rot("f", 100..8192, 3).unwrap();
    let differing = content(&volume, "f").iter().zip(&kept).map(|(a, b)| (a ^ b).count_ones()).sum::<u32>();
    assert!([1, 3].contains(&differing), "three flips change 1 or 3 bits, because two may flip the same bit");
    assert!(matches!(volume.flip_bits("gone", 0, 1), Err(Error::NotFound { .. })));
}

#[test]
fn without_power_every_call_fails_and_adds_no_event() {
    let volume = FailingVolume::new(1);
    let disk = durable(&volume, "f", b"abc");
    disk.write_at(0, b"x").unwrap();
    volume.power_off_at(Some(volume.events() + 1));
    disk.write_at(1, b"y").unwrap();
    let events = volume.events();
    let refused = [
        disk.write_at(2, b"z"),
        disk.read_at(0, &mut [0]),
        disk.sync(),
        disk.resize(1),
        disk.trim(0, 1),
        disk.reserve(1),
        disk.size().map(drop),
        disk.allocated().map(drop),
        volume.sync(),
        volume.remove("f"),
        volume.rename("f", "g"),
        volume.list("").map(drop),
        volume.lock("f", true).map(drop),
        volume.open("f", OpenMode::Read).map(drop),
    ];
    for (call, result) in refused.into_iter().enumerate() {
        assert!(matches!(result, Err(Error::Io { .. })), "call {call}");
    }
    assert_eq!(volume.events(), events);
    assert_eq!(after_cut(&volume, "f"), b"xyc");
}

//! The files of a simulated machine after the death of a process on it, and after a later power cut.

use duramen::io::{Disk, OpenMode, Volume};
use duramen_sim::{Cut, CutChoice, Death, DeathKind, FailingVolume};
use std::collections::BTreeSet;
use std::sync::Arc;

fn create(volume: &FailingVolume, name: &str, bytes: &[u8]) -> Arc<dyn Disk> {
    let disk = volume.open(name, OpenMode::CreateNew).unwrap();
    disk.write_at(0, bytes).unwrap();
    disk.sync().unwrap();
    volume.sync().unwrap();
    disk
}

fn content(volume: &FailingVolume, name: &str) -> Option<Vec<u8>> {
    let disk = volume.open(name, OpenMode::Read).ok()?;
    let mut bytes = vec![0; disk.size().unwrap() as usize];
    disk.read_at(0, &mut bytes).unwrap();
    Some(bytes)
}

fn cut(volume: &FailingVolume, choice: CutChoice) -> FailingVolume {
    volume.crash(Cut { event: volume.events(), choice })
}

#[test]
fn written_bytes_survive_a_process_death_but_not_always_a_later_power_cut() {
    let volume = FailingVolume::new(1);
    let disk = create(&volume, "f", &[1; 9000]);
    let _held = volume.lock("f", true).unwrap();
    disk.write_at(4096, &[2; 4096]).unwrap();
    volume.rename("f", "g").unwrap();
    volume.open("new", OpenMode::CreateNew).unwrap();
    let later = volume.outlive(Death { event: volume.events(), kind: DeathKind::Killed(1) });
    assert_eq!(content(&later, "g"), content(&volume, "g"));
    assert_eq!(later.list("").unwrap(), ["g", "new"]);
    assert!(later.lock("g", true).is_ok(), "the lock died with its process");
    let lost = cut(&later, CutChoice::DropUnsynced);
    assert_eq!(content(&lost, "f").unwrap(), [1; 9000]);
    assert_eq!(lost.list("").unwrap(), ["f"]);
    later.open("g", OpenMode::Write).unwrap().sync().unwrap();
    later.sync().unwrap();
    let kept = cut(&later, CutChoice::DropUnsynced);
    assert_eq!(content(&kept, "g"), content(&volume, "g"));
    assert_eq!(kept.list("").unwrap(), ["g", "new"]);
}

#[test]
fn a_process_death_during_a_write_leaves_a_prefix_of_it() {
    let volume = FailingVolume::new(1);
    let disk = create(&volume, "f", &[1; 12_288]);
    let event = volume.events();
    disk.write_at(1000, &[2; 10_000]).unwrap();
    disk.write_at(0, &[3; 12_288]).unwrap();
    let mut seen = BTreeSet::new();
    for seed in 0..50 {
        let found = content(&volume.outlive(Death { event, kind: DeathKind::Killed(seed) }), "f").unwrap();
        let written = found.iter().filter(|byte| **byte == 2).count();
        assert!(found[1000..].iter().take(written).all(|byte| *byte == 2), "seed {seed}: {written} bytes in one piece");
        assert!(!found.contains(&3), "seed {seed}");
        seen.insert(written);
    }
    assert_eq!(seen, BTreeSet::from([0, 3096, 7192]));
}

#[test]
fn bytes_lost_by_a_failed_sync_are_readable_after_a_restart_but_not_durable_until_rewritten() {
    let volume = FailingVolume::new(1);
    let disk = create(&volume, "f", &[1; 4096]);
    disk.write_at(0, &[2; 4096]).unwrap();
    let event = volume.events();
    disk.sync().unwrap();
    let mut lost = 0;
    for seed in 0..50 {
        let later = volume.outlive(Death { event, kind: DeathKind::FailedSync(seed) });
        assert_eq!(content(&later, "f").unwrap(), [2; 4096], "seed {seed}");
        let again = later.open("f", OpenMode::Write).unwrap();
        again.sync().unwrap();
        let found = content(&cut(&later, CutChoice::KeepAll), "f").unwrap();
        lost += u32::from(found != [2; 4096]);
        // So it is for a process after the next.
        let last = later.outlive(Death { event: later.events(), kind: DeathKind::Killed(seed) });
        assert_eq!(content(&last, "f").unwrap(), [2; 4096], "seed {seed}");
        assert_eq!(content(&cut(&last, CutChoice::KeepAll), "f").unwrap(), found, "seed {seed}");
        let disk = last.open("f", OpenMode::Write).unwrap();
        disk.write_at(0, &[2; 4096]).unwrap();
        disk.sync().unwrap();
        assert_eq!(content(&cut(&last, CutChoice::DropUnsynced), "f").unwrap(), [2; 4096], "seed {seed}");
    }
    assert!((1..50).contains(&lost), "{lost}");
}

#[test]
fn deaths_are_enumerated_for_every_event_except_marks_and_for_every_file_sync() {
    let volume = FailingVolume::new(1);
    let disk = create(&volume, "f", b"x");
    volume.mark(1);
    disk.sync().unwrap();
    let deaths = volume.deaths(7);
    let killed: BTreeSet<_> =
        deaths.iter().filter(|death| death.kind == DeathKind::Killed(7)).map(|d| d.event).collect();
    let is_mark = |event: &usize| volume.describe(*event).starts_with("mark");
    assert_eq!(killed, (0..=volume.events()).filter(|event| !is_mark(event)).collect());
    let failed = deaths.iter().filter(|death| death.kind == DeathKind::FailedSync(7));
    assert!(failed.map(|death| volume.describe(death.event)).eq(["sync of file 0"; 2].map(str::to_owned)));
}

//! Replays the corpus of the log's fuzz targets, whole and in every cut and flip.

use crate::{put, seeds};
use duramen::base::{Lsn, watermark::Watermark};
use duramen::io::{MemoryVolume, OpenMode, Volume};
use duramen::log::{Log, LogConfig, LogShape};
use duramen_fuzz::log::{DATABASE, damage_log, read_log};
use std::sync::Arc;

#[test]
fn segments_of_the_corpus_cut_and_flipped_anywhere_are_safe_to_read() {
    let segments = seeds("read_log");
    assert!(segments.iter().filter(|segment| read_log(segment) >= 5).count() >= 2, "sound segments are among them");
    for mut segment in segments {
        let whole = read_log(&segment);
        let interesting = (0..64.min(segment.len())).chain(4096.min(segment.len())..segment.len());
        for at in interesting {
            assert!(read_log(&segment[..at]) <= whole, "cut at {at}");
            segment[at] ^= 0x80;
            read_log(&segment);
            segment[at] ^= 0x80;
        }
    }
}

#[test]
fn histories_of_the_corpus_never_give_a_wrong_batch() {
    let histories = seeds("damage_log");
    assert!(histories.iter().any(|history| damage_log(history) >= 3), "some lose only their tail");
    for mut history in histories {
        for at in 0..history.len() {
            damage_log(&history[..at]);
            for value in [0, 1, 0x7f, 241, 251, 254] {
                let before = std::mem::replace(&mut history[at], value);
                damage_log(&history);
                history[at] = before;
            }
        }
    }
}

proptest::proptest! {
    #[test]
    fn random_histories_never_give_a_wrong_batch(history: Vec<u8>, damage: Vec<u8>) {
        let mut data = history;
        data.push(255);
        data.extend(damage);
        damage_log(&data);
    }
}

/// Writes the corpus of `read_log` anew after a change of the format: `cargo test -p duramen-fuzz -- --ignored`.
#[test]
#[ignore = "changes the corpus"]
fn write_segments() {
    for (name, shape) in [("packed", LogShape::Packed), ("sparse", LogShape::Sparse)] {
        let volume = Arc::new(MemoryVolume::new());
        let config =
            LogConfig { volume: Arc::clone(&volume) as Arc<dyn Volume>, prefix: "l".into(), database: DATABASE, shape };
        let log = Log::create(config, 3, Lsn(70_000)).unwrap();
        for (kind, payload) in
            [b"one batch".as_slice(), b"", &[0xaa; 300], b"known to be durable", b"tail"].iter().enumerate()
        {
            let end = log.append(kind as u8, payload).unwrap();
            if kind % 2 == 0 {
                log.make_durable(end).unwrap();
            }
        }
        let disk = volume.open("l.000001", OpenMode::Read).unwrap();
        let mut segment = vec![0; disk.size().unwrap() as usize];
        disk.read_at(0, &mut segment).unwrap();
        put("read_log", name, &segment);
        segment[4096 + 36 + 2] ^= 1;
        put("read_log", &format!("{name}-damaged"), &segment);
    }
}

//! The redo log's decoders: segment headers, batches, and the code that distinguishes a torn tail from damage.

use duramen::base::Lsn;
use duramen::io::{Disk, MemoryVolume, OpenMode, Volume};
use duramen::log::{self, Batch, Log, LogConfig, LogPosition, LogReader, LogShape};
use std::sync::Arc;

/// The database id that the corpus was written with.
pub const DATABASE: u128 = 0xd0a3_e70f_10c5_0000_0000_0000_0000_0001;

/// Reads `data` as the only segment of a log, from the redo point that its own header names. Whatever it holds, the
/// batches must follow each other, and going on after them must read back the same. Returns how many there were.
pub fn read_log(data: &[u8]) -> usize {
    let volume = Arc::new(MemoryVolume::new());
    put(&volume, 1, data);
    let field =
        |at: usize| data.get(at..at + 8).and_then(|rest| rest.first_chunk()).map_or(0, |f| u64::from_le_bytes(*f));
    let from = LogPosition { lsn: Lsn(field(40)), epoch: (field(8) >> 32) as u32 };
    let config = config(&volume, LogShape::Packed);
    let Ok(Some(mut reader)) = log::read(config.clone(), from, Lsn::ZERO) else { return 0 };
    let (batches, whole) = drain(&mut reader, from.lsn);
    if whole && let Ok(log) = Log::resume(reader) {
        assert_eq!(log.next_lsn(), batches.last().map_or(from.lsn, |batch| batch.end));
        let mut again = log::read(config, from, Lsn::ZERO).expect("it was read before").expect("it was there before");
        assert_eq!(drain(&mut again, from.lsn).0, batches);
    }
    batches.len()
}

/// Takes `data` as a history (append, flush, rotate, begin a segment without a sync, recover) and the damage done to
/// its files afterwards. What is read must be the first of the batches appended, unchanged. Returns how many of them
/// were read.
pub fn damage_log(data: &[u8]) -> usize {
    let volume = Arc::new(MemoryVolume::new());
    let mut input = data.iter().copied();
    let mut next = || input.next();
    let Some(shape) = next() else { return 0 };
    let config = config(&volume, if shape & 1 == 0 { LogShape::Packed } else { LogShape::Sparse });
    let from = LogPosition { lsn: Lsn(1), epoch: 1 };
    let mut log = Log::create(config.clone(), from.epoch, from.lsn).expect("memory does not fail");
    let mut appended = Vec::new();
    while let Some(step) = next().filter(|step| *step != 255) {
        match step {
            250.. => {
                let reader = log::read(config.clone(), from, from.lsn).expect("undamaged").expect("present");
                log = Log::resume(reader).expect("undamaged");
            }
            240..245 => drop(log.rotate().expect("memory does not fail")),
            245.. => {
                log.prepare_segment().expect("memory does not fail");
                log.switch_segment().expect("memory does not fail");
            }
            len => {
                let (start, payload) = (log.next_lsn(), vec![step; usize::from(len) * 5]);
                let end = log.append(step, &payload).expect("memory does not fail");
                appended.push(Batch { start, end, kind: step, payload });
                if len & 1 == 1 {
                    duramen::base::watermark::Watermark::make_durable(&log, end).expect("memory does not fail");
                }
            }
        }
    }
    let names = volume.list("fuzz-log.").expect("memory does not fail");
    while let (Some(file), Some(high), Some(low), Some(mask)) = (next(), next(), next(), next()) {
        let disk = volume.open(&names[usize::from(file) % names.len()], OpenMode::Write).expect("listed");
        let at = u64::from(u16::from_be_bytes([high, low])) % disk.size().expect("memory does not fail");
        let mut byte = [0];
        disk.read_at(at, &mut byte).expect("inside");
        disk.write_at(at, &[byte[0] ^ mask]).expect("inside");
    }
    let Ok(Some(mut reader)) = log::read(config, from, Lsn::ZERO) else { return 0 };
    let found = drain(&mut reader, from.lsn).0;
    assert!(appended.starts_with(&found), "{} batches read are not the first of {}", found.len(), appended.len());
    found.len()
}

/// All batches of `reader`, each of which must start where the one before ended; and whether they ended without error.
fn drain(reader: &mut LogReader, from: Lsn) -> (Vec<Batch>, bool) {
    let (mut batches, mut at) = (Vec::new(), from);
    loop {
        match reader.next() {
            Ok(Some(batch)) => {
                assert_eq!(batch.start, at);
                at = batch.end;
                batches.push(batch);
            }
            Ok(None) => return (batches, true),
            Err(_) => return (batches, false),
        }
    }
}

fn config(volume: &Arc<MemoryVolume>, shape: LogShape) -> LogConfig {
    LogConfig { volume: Arc::clone(volume) as Arc<dyn Volume>, prefix: "fuzz-log".into(), database: DATABASE, shape }
}

fn put(volume: &MemoryVolume, number: u32, data: &[u8]) {
    let disk: Arc<dyn Disk> =
        volume.open(&format!("fuzz-log.{number:06}"), OpenMode::CreateNew).expect("memory does not fail");
    disk.write_at(0, data).expect("memory does not fail");
}

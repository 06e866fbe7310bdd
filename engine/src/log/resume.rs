//! Continues the log after a recovery: syncs everything that was read, then starts a new epoch at its end. The layers
//! above decide when the recovery is complete and old segments can be removed.

use super::LogConfig;
use super::reader::LogReader;
use super::segment::{self, SegmentHeader};
use super::writer::{Log, Older};
use crate::base::Result;
use crate::io::OpenMode;

/// Bytes copied at once.
const STEP: u64 = 1 << 20;

impl Log {
    /// Goes on after a recovery: reads what the reader has left, makes all that was read durable, and starts a segment
    /// of a new epoch where the valid log ends, durable on return. The old segments stay until
    /// [`Log::remove_before`] is told that the redo point has passed them. A crash at any moment leaves a log that
    /// reads the same from the old redo point, or from this log's start.
    pub fn resume(mut reader: LogReader) -> Result<Log> {
        while reader.next()?.is_some() {}
        secure(&reader)?;
        let (end, config) = (reader.end_state(), reader.config.clone());
        let header = SegmentHeader {
            epoch: reader.survey.next_epoch(reader.from.epoch),
            number: segment::number_after(&config, reader.survey.highest)?,
            shape: config.shape,
            start: end.lsn,
            chain: end.chain,
        };
        let ends = reader.plan.iter().skip(1).map(|next| next.start);
        let mut older: Vec<Older> =
            reader.plan.iter().zip(ends).map(|(header, end)| Older { number: header.number, end }).collect();
        let listed: Vec<u32> = older.iter().map(|older| older.number).collect();
        // What the reader had no use for goes with the last of what it read.
        let rest = reader.survey.ours.iter().map(|header| header.number).chain(reader.survey.cut);
        older.extend(rest.filter(|number| !listed.contains(number)).map(|number| Older { number, end: header.start }));
        give_back_reserve(&config, &reader.plan)?;
        Log::begin(config, header, older)
    }
}

/// Gives back what the last segment had reserved beyond its end, which nobody will append to any more: on a full device
/// that is where a new segment finds its room.
fn give_back_reserve(config: &LogConfig, plan: &[SegmentHeader]) -> Result<()> {
    let Some(last) = plan.last() else { return Ok(()) };
    let disk = config.volume.open(&segment::name(config, last.number), OpenMode::Write)?;
    disk.resize(disk.size()?)?;
    disk.sync()
}

/// Makes what was read durable, since the new epoch's existence will say that it was. A killed process leaves batches
/// in the system's cache only, so every segment is synced. A failed sync leaves batches there that the system holds for
/// written, so that no sync will write them again: those that are not known to be durable are written anew.
fn secure(reader: &LogReader) -> Result<()> {
    let open = |header: &SegmentHeader| {
        reader.config.volume.open(&segment::name(&reader.config, header.number), OpenMode::Write)
    };
    if let (Some(last), Some((mut at, end))) = (reader.plan.last(), reader.doubtful()) {
        let disk = open(last)?;
        let mut buffer = Vec::new();
        while at < end {
            let len = end.saturating_sub(at).min(STEP);
            buffer.resize(usize::try_from(len).unwrap_or(0), 0);
            disk.read_at(at, &mut buffer)?;
            disk.write_at(at, &buffer)?;
            at = at.saturating_add(len);
        }
    }
    for header in &reader.plan {
        open(header)?.sync()?;
    }
    reader.config.volume.sync()
}

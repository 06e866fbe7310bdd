//! Continues the log after a recovery: syncs everything that was read, then starts a new epoch at its end. The layers
//! above decide when the recovery is complete and old segments can be removed.

use super::DEVICE_BLOCK;
use super::reader::LogReader;
use super::segment::{self, SegmentHeader};
use super::tail::OldSegment;
use super::window::FileWindow;
use super::writer::Log;
use crate::base::{Error, Lsn, Result};
use crate::io::{Disk, OpenMode, WriteKind};
use std::sync::Arc;

/// Bytes copied at once.
const STEP: usize = 1 << 20;

impl Log {
    /// Continues after a recovery: reads the rest of the log, syncs everything that was read, and starts a segment of a
    /// new epoch at the end of the valid log. The segment is durable on return. The old segments that are a part of the
    /// log stay until [`Log::remove_before`] removes them. After a crash at any time the log reads the same from the
    /// old redo point, or from the start of this log. After [`Error::Full`] the end of `reader` is the end of the log,
    /// too.
    ///
    /// # Errors
    /// [`Error::CorruptLog`] if the log is longer than `reader` found it. Then nothing was changed.
    pub fn resume(mut reader: LogReader) -> Result<Log> {
        while reader.next()?.is_some() {}
        // What follows cuts the log at its end, so the end is read again first. After a failed write the file cache may
        // be the only place of batches that were read.
        let secured = secure(&reader);
        if matches!(secured, Ok(()) | Err(Error::Full { .. })) {
            reader.check_end_again(secured.is_ok())?;
        }
        secured?;
        let (end, config) = (reader.end_state(), reader.config.clone());
        let header = SegmentHeader {
            epoch: reader.files.next_epoch(reader.from.epoch),
            number: segment::number_after(&config, reader.files.highest)?,
            previous: 0,
            shape: config.shape,
            has_next: false,
            start: end.lsn,
            chain: end.chain,
        };
        let ends = reader.plan.iter().skip(1).map(|next| next.start);
        let mut old_segments: Vec<OldSegment> = reader
            .plan
            .iter()
            .zip(ends)
            .map(|(header, end)| OldSegment { number: header.number, end, len: 0, begun: None, cut: false })
            .collect();
        let listed: Vec<u32> = old_segments.iter().map(|segment| segment.number).collect();
        // The reader did not need the other segments. Those that another segment replaces are removed at once, the rest
        // together with the last segment that it read.
        let replaced = reader.files.replaced(reader.from);
        let (ours, cut) = (reader.files.ours.iter().map(|header| (header.number, false)), reader.files.cut.iter());
        let rest = ours.chain(cut.map(|number| (*number, true)));
        let rest = rest.filter(|(number, _)| !listed.contains(number));
        old_segments.extend(rest.map(|(number, cut)| OldSegment {
            number,
            end: if replaced.contains(&number) { Lsn::ZERO } else { header.start },
            len: 0,
            begun: None,
            cut,
        }));
        give_back_space(&reader)?;
        let log = Log::begin(config, header, old_segments)?;
        log.remove_replaced()?;
        Ok(log)
    }

    /// Removes the segments that the recovery has found replaced, after the segment of the new epoch is durable. A
    /// segment without batches may be in the file cache only. If it is the last one that was read, the new segment
    /// starts at the same LSN and replaces the same segments. So after several openings that fail before they append
    /// anything, only the segments of the last two are left.
    fn remove_replaced(&self) -> Result<()> {
        match self.remove_before(Lsn::ZERO) {
            Err(stopped @ Error::Poisoned { .. }) => Err(stopped),
            Err(cause) => {
                tracing::warn!(%cause, "unused segments of the log stay until the next checkpoint");
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }
}

/// Frees the space of the last segment after its end, and that of spare files. Nothing more is appended to this
/// segment, and on a full device the new segment needs the space. The batches that are cut off were never acknowledged.
fn give_back_space(reader: &LogReader) -> Result<()> {
    let LogReader { config, files, plan, .. } = reader;
    for number in &files.spare {
        config.volume.remove(&segment::name(config, *number))?;
    }
    let Some(last) = plan.last() else { return Ok(()) };
    let disk = config.volume.open(&segment::name(config, last.number), OpenMode::Write)?;
    disk.resize(disk.size()?.min(reader.offset().next_multiple_of(DEVICE_BLOCK)))?;
    disk.sync()
}

/// Makes durable everything that was read, because a segment of a new epoch proves that it is. After the death of a
/// process batches may be only in the file cache, so every segment is synced. After a failed sync the system takes
/// batches in the cache for written, and no later sync writes them: batches that are not known to be durable are
/// therefore written again.
fn secure(reader: &LogReader) -> Result<()> {
    for (index, header) in reader.plan.iter().enumerate() {
        let disk = reader.config.volume.open(&segment::name(&reader.config, header.number), OpenMode::Write)?;
        write_again(reader, index, &disk)?;
        disk.sync()?;
    }
    reader.config.volume.sync()
}

/// Writes those batches of a segment again that may not be durable, and its header if it may not be. For this the
/// batches are read from the file again. Each read is checked, because wrong bytes would overwrite a batch.
fn write_again(reader: &LogReader, index: usize, disk: &Arc<dyn Disk>) -> Result<()> {
    let Some(header) = reader.plan.get(index) else { return Ok(()) };
    let mut window = FileWindow::new(disk.clone())?;
    let (mut buffer, mut begin) = (Vec::new(), 0);
    let mut batches = reader.unsynced(index).peekable();
    if batches.peek().is_some_and(|(first, _)| first.start == header.start) {
        segment::write_header(&reader.config, &**disk, header)?;
    }
    while let Some((batch, end)) = batches.next() {
        if buffer.is_empty() {
            begin = batch.offset;
        }
        let len = usize::try_from(end.saturating_sub(batch.offset)).unwrap_or(usize::MAX);
        let bytes = window.get(batch.offset, len)?.unwrap_or_default();
        reader.check_again(&batch, bytes)?;
        buffer.extend_from_slice(bytes);
        if buffer.len() >= STEP || batches.peek().is_none() {
            disk.write_as(WriteKind::Log, begin, &buffer)?;
            buffer.clear();
        }
    }
    Ok(())
}

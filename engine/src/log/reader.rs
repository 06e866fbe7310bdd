//! [`LogReader`] reads the log batch by batch, up to the end of the valid batches.

use super::batch::{BATCH_HEADER, Batch, BatchHeader};
use super::files::LogFiles;
use super::segment::{self, SEGMENT_HEADER, SegmentHeader};
use super::window::FileWindow;
use super::{DEVICE_BLOCK, LogConfig, LogPosition, LogShape, damage};
use crate::base::{Error, Lsn, Result};
use crate::io::OpenMode;
use std::collections::VecDeque;
use std::path::Path;

/// Finds the log on the volume and returns a reader at `from`, the redo point; `None` if this database has no log.
/// `known_durable` is an LSN that the caller knows to be durable, at least `from`: a log that ends before it has lost
/// acknowledged batches.
///
/// # Errors
/// [`Error::MissingLog`] if there is a log of this database that does not contain `from`; [`Error::CorruptLog`] if it
/// should contain `from` but is damaged; [`Error::FormatVersion`].
pub fn read(config: LogConfig, from: LogPosition, known_durable: Lsn) -> Result<Option<LogReader>> {
    let Some(reader) = begin(config, from, known_durable)? else { return Ok(None) };
    match reader.damage {
        Some(error) => Err(error),
        None => Ok(Some(reader)),
    }
}

/// Like [`read`], for a damaged log: reading ends at the damage, which [`LogReader::take_damage`] returns.
///
/// # Errors
/// Those of [`read`] if nothing can be read at `from`.
pub fn read_damaged(config: LogConfig, from: LogPosition, known_durable: Lsn) -> Result<Option<LogReader>> {
    let reader = begin(config, from, known_durable)?;
    Ok(reader.map(|reader| LogReader { tolerant: true, ..reader }))
}

/// A reader at `from`. Its `damage` is set if the header of a later segment is damaged.
fn begin(config: LogConfig, from: LogPosition, known_durable: Lsn) -> Result<Option<LogReader>> {
    let files = LogFiles::read(&config)?;
    if files.ours.is_empty() && files.damaged.is_none() {
        return Ok(None);
    }
    let damage = files.damaged_last().map(|number| {
        let segment = config.volume.path(&segment::name(&config, number));
        Error::CorruptLog { lsn: from.lsn, what: damaged_header(&segment) }
    });
    let plan = files.plan(from);
    let Some(&first) = plan.first() else {
        return Err(match files.damaged {
            Some(number) => {
                let segment = config.volume.path(&segment::name(&config, number));
                Error::CorruptLog { lsn: from.lsn, what: damaged_header(&segment) }
            }
            None => config.missing(),
        });
    };
    let known_durable = known_durable.max(from.lsn);
    let mut reader = LogReader {
        window: open_window(&config, &first)?,
        seed: config.seed(),
        offset: SEGMENT_HEADER,
        bytes: 0,
        end: LogEnd { lsn: first.start, epoch: first.epoch, chain: first.chain },
        config,
        files,
        plan,
        index: 0,
        from,
        known_durable,
        unsynced: VecDeque::new(),
        finished: false,
        tolerant: false,
        damage,
    };
    reader.skip_to(from.lsn)?;
    reader.bytes = 0;
    Ok(Some(reader))
}

fn damaged_header(segment: &Path) -> String {
    format!("the header of {0} is damaged, or {0} is not a file of this database", segment.display())
}

fn open_window(config: &LogConfig, header: &SegmentHeader) -> Result<FileWindow> {
    FileWindow::new(config.volume.open(&segment::name(config, header.number), OpenMode::Read)?)
}

/// The position of a reader.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogEnd {
    /// The end of the last batch read.
    pub lsn: Lsn,
    /// The epoch of the segment it is in.
    pub epoch: u32,
    /// The checksum of the last batch, from which the next one continues.
    pub chain: u32,
}

/// A batch that may not be on the device.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnsyncedBatch {
    pub(super) start: Lsn,
    /// The index of its segment in the plan.
    pub(super) segment: usize,
    /// The offsets of its start and of its end in the file.
    pub(super) offset: u64,
    end: u64,
    /// The checksum of the batch before it.
    chain: u32,
}

/// Reads the batches of a log in order. [`read`] creates it.
#[derive(Debug)]
pub struct LogReader {
    pub(super) config: LogConfig,
    pub(super) files: LogFiles,
    /// The segments to read, in order. Each is read up to the start of the next.
    pub(super) plan: Vec<SegmentHeader>,
    index: usize,
    window: FileWindow,
    offset: u64,
    /// Bytes of the batches since `from`, and of the padding between them.
    bytes: u64,
    end: LogEnd,
    seed: u32,
    pub(super) from: LogPosition,
    known_durable: Lsn,
    /// The batches that neither a later batch nor a later epoch has shown to be durable.
    unsynced: VecDeque<UnsyncedBatch>,
    finished: bool,
    /// True if damage ends the log without an error.
    tolerant: bool,
    damage: Option<Error>,
}

impl LogReader {
    /// The next batch; `None` at the end of the valid log, where a torn tail may follow.
    ///
    /// # Errors
    /// [`Error::CorruptLog`] if acknowledged batches are damaged: the log ends here, and a later batch or
    /// `known_durable` proves that it was longer.
    #[allow(clippy::should_implement_trait, reason = "an iterator would go on after an error")]
    pub fn next(&mut self) -> Result<Option<Batch>> {
        match self.advance() {
            Err(error @ (Error::CorruptLog { .. } | Error::Io { .. })) if self.tolerant => {
                self.finished = true;
                self.damage = Some(error);
                Ok(None)
            }
            next => next,
        }
    }

    /// The damage at which a reader of [`read_damaged`] has ended.
    pub fn take_damage(&mut self) -> Option<Error> {
        self.damage.take()
    }

    fn advance(&mut self) -> Result<Option<Batch>> {
        while !self.finished {
            let limit = self.plan.get(self.index.saturating_add(1)).copied();
            if let Some(next) = limit.filter(|next| next.start == self.end.lsn) {
                self.enter(&next)?;
                continue;
            }
            match self.read_batch()? {
                Some(batch) if limit.is_some_and(|next| batch.end > next.start) => {
                    return Err(self.corrupt("a segment starts in the middle of a batch"));
                }
                Some(batch) => return Ok(Some(batch)),
                None => {
                    self.check_end(limit)?;
                    self.finished = true;
                }
            }
        }
        Ok(None)
    }

    /// The end of the last batch read. After [`LogReader::next`] has returned `None` it is the end of the valid log.
    pub fn end_state(&self) -> LogEnd {
        self.end
    }

    /// Bytes that it has read, from the position that it was opened at: those of batches, and of the padding between
    /// them.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The file offset of the end of the last batch read, in the current segment.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// The batches of segment `segment` of the plan that were read but may not be on the device. With each batch, the
    /// offset of the end of the padding between it and the next one.
    pub(super) fn unsynced(&self, segment: usize) -> impl Iterator<Item = (UnsyncedBatch, u64)> {
        let batches = move || self.unsynced.iter().filter(move |batch| batch.segment == segment);
        let last = batches().next_back().map(|batch| batch.end);
        let ends = batches().skip(1).map(|next| next.offset).chain(last);
        batches().copied().zip(ends)
    }

    /// Fails if `bytes`, which were read again, do not begin with the batch that was read before.
    pub(super) fn check_again(&self, batch: &UnsyncedBatch, bytes: &[u8]) -> Result<()> {
        let header = BatchHeader::decode(bytes, self.seed).filter(|header| header.start == batch.start);
        let payload = |header: &BatchHeader| {
            let end = BATCH_HEADER.saturating_add(header.length);
            bytes.get(BATCH_HEADER..end).is_some_and(|payload| header.proves(batch.chain, payload))
        };
        if header.as_ref().is_some_and(payload) {
            return Ok(());
        }
        let what = "recovery read a valid batch, and later another content: the device is not reliable".to_owned();
        Err(Error::CorruptLog { lsn: batch.start, what })
    }

    /// Reads up to `lsn`, which must be where a batch starts or the log ends.
    fn skip_to(&mut self, lsn: Lsn) -> Result<()> {
        while self.end.lsn < lsn {
            if self.next()?.is_none() {
                break;
            }
        }
        if self.end.lsn == lsn {
            return Ok(());
        }
        Err(self.corrupt(format!("no batch starts at the redo point {lsn}")))
    }

    /// Continues with the next segment, which starts where the current one ends.
    fn enter(&mut self, next: &SegmentHeader) -> Result<()> {
        if next.chain != self.end.chain {
            return Err(self.corrupt(format!("segment {} does not follow the batch before it", next.number)));
        }
        self.window = open_window(&self.config, next)?;
        if next.epoch != self.end.epoch {
            // A recovery syncs everything that it has read before it begins an epoch.
            self.unsynced.clear();
        }
        self.index = self.index.saturating_add(1);
        self.offset = SEGMENT_HEADER;
        self.end.epoch = next.epoch;
        Ok(())
    }

    /// Reads the batch at the current position, which in a sparse segment may be the next device block.
    fn read_batch(&mut self) -> Result<Option<Batch>> {
        if let Some(batch) = self.try_read_batch()? {
            return Ok(Some(batch));
        }
        // The log may end here. A recovery cuts the log at its end, so one wrong read must not decide where it ends.
        self.window.forget();
        self.try_read_batch()
    }

    fn try_read_batch(&mut self) -> Result<Option<Batch>> {
        if let Some(batch) = self.read_batch_at(self.offset)? {
            return Ok(Some(batch));
        }
        let sparse = self.plan.get(self.index).is_some_and(|segment| segment.shape == LogShape::Sparse);
        match self.offset.checked_next_multiple_of(DEVICE_BLOCK) {
            Some(block) if sparse && block != self.offset => self.read_batch_at(block),
            _ => Ok(None),
        }
    }

    fn read_batch_at(&mut self, offset: u64) -> Result<Option<Batch>> {
        let Some(front) = self.window.get(offset, BATCH_HEADER)? else { return Ok(None) };
        let header = BatchHeader::decode(front, self.seed)
            .filter(|header| header.start == self.end.lsn && header.epoch == self.end.epoch);
        let Some(header) = header else { return Ok(None) };
        let behind = offset.saturating_add(BATCH_HEADER as u64);
        let Some(payload) = self.window.get(behind, header.length)? else { return Ok(None) };
        if !header.proves(self.end.chain, payload) {
            return Ok(None);
        }
        let batch = Batch { start: header.start, end: header.end(), kind: header.kind, payload: payload.to_vec() };
        while self.unsynced.pop_front_if(|batch| batch.start < header.durable).is_some() {}
        let end = behind.saturating_add(header.length as u64);
        let (start, segment, chain) = (header.start, self.index, self.end.chain);
        self.unsynced.push_back(UnsyncedBatch { start, segment, offset, end, chain });
        self.bytes = self.bytes.saturating_add(end.saturating_sub(self.offset));
        self.offset = end;
        self.end.lsn = batch.end;
        self.end.chain = header.checksum;
        Ok(Some(batch))
    }

    /// Handles an invalid batch at the current position: a torn tail is the end, anything else is an error.
    fn check_end(&mut self, limit: Option<SegmentHeader>) -> Result<()> {
        let lsn = self.end.lsn;
        if let Some(next) = limit
            && self.proves_end(&next)
        {
            let what = format!("a batch is damaged, and the segment that begins at LSN {} follows", next.start);
            return Err(self.corrupt(what));
        }
        if lsn < self.known_durable {
            return Err(self
                .corrupt(format!("a batch is damaged or missing; the log was durable up to {}", self.known_durable)));
        }
        let Some(&segment) = self.plan.get(self.index) else { return Ok(()) };
        if segment.has_next {
            let name = segment::name(&self.config, segment.number);
            return Err(self.corrupt(format!("the segment after {name} is missing")));
        }
        if let Some(later) = self.later_batch(&segment, limit)? {
            return Err(self.corrupt(format!(
                "a durable batch is damaged: the batch at LSN {later} was written when it was durable"
            )));
        }
        if limit.is_none()
            && let Some(later) = self.later_batch_in_spare(&segment)?
        {
            let what = format!(
                "the header of a durable segment is missing: the batch at LSN {later} was written when it was durable"
            );
            return Err(self.corrupt(what));
        }
        // The batches of the segments after a torn tail were never acknowledged.
        self.plan.truncate(self.index.saturating_add(1));
        Ok(())
    }

    /// True if the segment `next`, which follows the current one in the plan, proves that all batches before it were
    /// durable. The last segment of the log does not prove this, if it was begun directly after the current one and the
    /// current one is not marked as durable: the power may have failed before either was.
    fn proves_end(&self, next: &SegmentHeader) -> bool {
        let Some(current) = self.plan.get(self.index) else { return true };
        let is_last = !next.has_next && self.plan.len() == self.index.saturating_add(2);
        let is_next = next.epoch == current.epoch && next.previous == current.number;
        current.has_next || !is_last || !is_next
    }

    /// Searches the current segment and the next one for a batch that was written after this position was durable.
    fn later_batch(&mut self, segment: &SegmentHeader, next: Option<SegmentHeader>) -> Result<Option<Lsn>> {
        let lsn = self.end.lsn;
        // The search must not use the bytes in which the batch here is invalid: the read may have been wrong.
        self.window.forget();
        let behind = self.offset.saturating_add(1);
        if let Some(later) = damage::find_later(&mut self.window, segment, self.seed, behind, lsn)? {
            return Ok(Some(later));
        }
        if let Some(next) = next {
            let mut window = open_window(&self.config, &next)?;
            return damage::find_later(&mut window, &next, self.seed, SEGMENT_HEADER, lsn);
        }
        Ok(None)
    }

    /// Searches the spare files for the segment that begins here and whose header is lost. Returns the start of a batch
    /// in it that was written after the segment was durable.
    fn later_batch_in_spare(&self, segment: &SegmentHeader) -> Result<Option<Lsn>> {
        let lsn = self.end.lsn;
        for &number in &self.files.spare {
            let lost = SegmentHeader { number, start: lsn, ..*segment };
            let mut window = match open_window(&self.config, &lost) {
                // A recovery removes the spare files.
                Err(Error::NotFound { .. }) => continue,
                opened => opened?,
            };
            let front = window.get(SEGMENT_HEADER, BATCH_HEADER)?.unwrap_or_default();
            let first = BatchHeader::decode(front, self.seed);
            if first.is_some_and(|first| first.start == lsn && first.epoch == segment.epoch)
                && let Some(later) = damage::find_later(&mut window, &lost, self.seed, SEGMENT_HEADER, lsn)?
            {
                return Ok(Some(later));
            }
        }
        Ok(None)
    }

    /// Opens the last segment again and reads it at the end of the log. Fails if there is a valid batch: then the
    /// earlier reads were wrong. With `from_device` the read bypasses the file cache, because the file cache keeps the
    /// bytes of a wrong read. The caller must have synced everything before the end if `from_device` is true.
    pub(super) fn check_end_again(&mut self, from_device: bool) -> Result<()> {
        let Some(last) = self.plan.get(self.index) else { return Ok(()) };
        let disk = self.config.volume.open(&segment::name(&self.config, last.number), OpenMode::Read)?;
        if from_device {
            disk.forget_cached(self.offset);
        }
        self.window = FileWindow::new(disk)?;
        let Some(batch) = self.try_read_batch()? else { return Ok(()) };
        let what = "the log ended here at the first read, but a second read found a batch: the device is not reliable";
        Err(Error::CorruptLog { lsn: batch.start, what: what.to_owned() })
    }

    fn corrupt(&self, what: impl Into<String>) -> Error {
        Error::CorruptLog { lsn: self.end.lsn, what: what.into() }
    }
}

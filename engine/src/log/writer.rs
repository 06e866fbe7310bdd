//! [`Log`]: append, reserve, rotate, remove. `reader` reads, `resume` continues after a recovery, `group_commit`
//! decides which thread syncs.
//!
//! Locks, in the order in which they are taken: the rotation, the role of the leader, the tail. The tail is locked for
//! one write, and never for a sync, with one exception: a rotation must not let a batch slip between the old segment
//! and the new one.

use super::batch::{BATCH_HEADER, BatchBuffer, MAX_PAYLOAD, Stamp};
use super::group_commit::GroupCommit;
use super::segment::{self, SEGMENT_HEADER, SegmentFile, SegmentHeader};
use super::{DEVICE_BLOCK, LogConfig, LogShape};
use crate::base::watermark::Watermark;
use crate::base::{Error, Lsn, Result, checksum::chained};
use crate::io::{Disk, WriteKind};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Space is reserved in steps of this many bytes, if the device has it.
const RESERVE_STEP: u64 = 1 << 20;

/// The log of an open database, at its end.
#[derive(Debug)]
pub struct Log {
    config: LogConfig,
    seed: u32,
    epoch: u32,
    appended: AtomicU64,
    /// Bytes written to segments, their padding included and their headers not.
    written: AtomicU64,
    group: GroupCommit,
    /// The maximum length of a payload.
    most_payload: AtomicUsize,
    /// The number of the next segment. Locked during a rotation.
    next_number: Mutex<u32>,
    tail: Mutex<Tail>,
}

/// The end of the current segment, and the segments before it.
#[derive(Debug)]
struct Tail {
    disk: Arc<dyn Disk>,
    header: SegmentHeader,
    /// The file offset of the next batch.
    offset: u64,
    /// The checksum of the last batch.
    chain: u32,
    /// Space is reserved up to this file offset: writes before it do not fail on a full device.
    reserved: u64,
    /// The file offset up to which the last caller of [`Log::reserve`] relies on the reservation.
    promised: u64,
    older: Vec<Older>,
    /// A buffer for a batch and the zeros after it, for a sparse log.
    blocks: Vec<u8>,
}

/// A segment that is not written any more.
#[derive(Clone, Copy, Debug)]
pub(super) struct Older {
    pub(super) number: u32,
    pub(super) end: Lsn,
    /// The recovery found it without a header.
    pub(super) cut: bool,
}

impl Log {
    /// Starts the log of a new, or cleanly closed, database at `start`: creates the first segment, durable on return,
    /// and removes all other segments of the prefix. `epoch` must be one that this database has not used.
    pub fn create(config: LogConfig, epoch: u32, start: Lsn) -> Result<Log> {
        let stale = Log::stale(&config)?;
        Log::create_after(config, epoch, start, &stale)
    }

    /// The numbers of all segments of this prefix.
    pub(crate) fn stale(config: &LogConfig) -> Result<Vec<u32>> {
        segment::numbers(config)
    }

    /// Removes the segments in `stale`, durably. The database must be closed: it needs none of them.
    pub(crate) fn remove_stale(config: &LogConfig, stale: &[u32]) -> Result<()> {
        for number in stale {
            config.volume.remove(&segment::name(config, *number))?;
        }
        config.volume.sync()
    }

    /// Removes the segments of this database. The removals are not durable yet. The database must not be open.
    pub(crate) fn remove_own(config: &LogConfig) -> Result<()> {
        for number in segment::numbers(config)? {
            if matches!(segment::inspect(config, number), Ok(SegmentFile::Ours(_))) {
                config.volume.remove(&segment::name(config, number))?;
            }
        }
        Ok(())
    }

    /// Like [`Log::create`], but removes only the segments in `stale`.
    pub(crate) fn create_after(config: LogConfig, epoch: u32, start: Lsn, stale: &[u32]) -> Result<Log> {
        let chain = chained(config.seed(), &epoch.to_le_bytes());
        let number = segment::number_after(&config, stale.last().copied().unwrap_or(0))?;
        let header = SegmentHeader { epoch, number, shape: config.shape, start, chain };
        let log = Log::begin(config, header, Vec::new())?;
        log.remove(stale)?;
        Ok(log)
    }

    /// Creates the first segment of an epoch.
    pub(super) fn begin(config: LogConfig, mut header: SegmentHeader, older: Vec<Older>) -> Result<Log> {
        let disk;
        (header.number, disk) = segment::create_empty(&config, header.number)?;
        if let Err(error) = segment::write_header(&config, &*disk, &header) {
            // A file without a header is not a segment. If the removal fails too, the file only takes a name.
            let _ = config.volume.remove(&segment::name(&config, header.number));
            return Err(error);
        }
        Ok(Log {
            seed: config.seed(),
            epoch: header.epoch,
            appended: AtomicU64::new(header.start.0),
            written: AtomicU64::new(0),
            group: GroupCommit::new(header.start),
            most_payload: AtomicUsize::new(MAX_PAYLOAD),
            next_number: Mutex::new(segment::number_after(&config, header.number)?),
            tail: Mutex::new(Tail::new(disk, header, 0, older)),
            config,
        })
    }

    /// The epoch of this log, for the redo point in the superblock.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// The start LSN of the next batch.
    pub fn next_lsn(&self) -> Lsn {
        Lsn(self.appended.load(Ordering::Acquire))
    }

    /// The LSN of the record at `offset_in_payload` in the payload of the batch that starts at `batch_start`.
    pub fn op_lsn(batch_start: Lsn, offset_in_payload: usize) -> Lsn {
        batch_start.plus(BATCH_HEADER).plus(offset_in_payload)
    }

    /// The maximum length of a payload: [`MAX_PAYLOAD`], or less after [`Log::limit_payload`].
    pub fn most_payload(&self) -> usize {
        self.most_payload.load(Ordering::Relaxed)
    }

    /// Limits payloads to `bytes`, and to [`MAX_PAYLOAD`].
    pub fn limit_payload(&self, bytes: usize) {
        self.most_payload.store(bytes.min(MAX_PAYLOAD), Ordering::Relaxed);
    }

    /// Bytes of all batches since the log was created or resumed, and of the padding between them: what a recovery would
    /// have to read of them.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    /// [`Log::append_buffer`] for a payload that is a slice; it is copied once.
    pub fn append(&self, kind: u8, payload: &[u8]) -> Result<Lsn> {
        let mut buffer = BatchBuffer::new();
        buffer.push(payload);
        self.append_buffer(kind, &mut buffer)
    }

    /// Appends a batch with one write and returns its end. It is durable only after [`Watermark::make_durable`]. The
    /// caller chooses `kind`.
    ///
    /// # Errors
    /// A failed write poisons the log. Only a recovery can find out whether the batch is in it.
    pub fn append_buffer(&self, kind: u8, buffer: &mut BatchBuffer) -> Result<Lsn> {
        let mut tail = self.tail.lock();
        self.group.check()?;
        let stamp = Stamp {
            seed: self.seed,
            epoch: self.epoch,
            kind,
            start: self.next_lsn(),
            durable: self.group.durable(),
            previous: tail.chain,
            most_payload: self.most_payload(),
        };
        let (bytes, chain) = buffer.seal(&stamp)?;
        if let Err(error) = tail.write(bytes) {
            self.group.poison(error.first_cause());
            return Err(error);
        }
        let end = stamp.start.plus(bytes.len());
        tail.offset = tail.offset.saturating_add(bytes.len() as u64);
        tail.chain = chain;
        self.written.fetch_add(bytes.len() as u64, Ordering::AcqRel);
        self.appended.store(end.0, Ordering::Release);
        Ok(end)
    }

    /// Reserves space, so that appending `bytes` (batch headers included) does not fail on a full device, if the file
    /// system supports it. The reservation holds until that many bytes have been appended, across flushes and
    /// rotations. There is one reservation, for one writer: a new one replaces it.
    ///
    /// # Errors
    /// [`Error::Full`]; nothing has changed then.
    pub fn reserve(&self, bytes: usize) -> Result<()> {
        self.group.check()?;
        self.tail.lock().reserve(bytes as u64)
    }

    /// Ends the reservation, so that later segments need no space for its rest.
    pub fn give_up_reservation(&self) {
        self.tail.lock().promised = 0;
    }

    /// Like [`Log::give_up_reservation`], and frees the space of the segment after its end.
    ///
    /// # Errors
    /// Errors of the device. Then only the space is not freed.
    pub fn give_back_reservation(&self) -> Result<()> {
        let mut tail = self.tail.lock();
        tail.promised = 0;
        tail.give_back()
    }

    /// Starts a new segment at the LSN of the next batch and returns that LSN. All bytes before it are then durable.
    /// Appends continue meanwhile, except during the short switch.
    ///
    /// # Errors
    /// [`Error::Full`] if there is no space for the new segment; nothing has then changed.
    pub fn rotate(&self) -> Result<Lsn> {
        let mut next_number = self.next_number.lock();
        // Syncs most of the log while other threads append. The second sync, during the switch, then has little to
        // write.
        self.make_durable(self.next_lsn())?;
        let (number, disk) = segment::create_empty(&self.config, *next_number)?;
        *next_number = segment::number_after(&self.config, number)?;
        let rotated = self.change_to(disk, number);
        if rotated.is_err() {
            // A file without a header is not a segment. If the removal fails too, the file only takes a name.
            let _ = self.config.volume.remove(&segment::name(&self.config, number));
        }
        rotated
    }

    fn change_to(&self, disk: Arc<dyn Disk>, number: u32) -> Result<Lsn> {
        let leader = self.group.lead()?;
        let mut tail = self.tail.lock();
        let start = self.next_lsn();
        let header = SegmentHeader { epoch: self.epoch, number, shape: self.config.shape, start, chain: tail.chain };
        let mut next = Tail::new(disk, header, 0, Vec::new());
        next.reserve(tail.promised.saturating_sub(tail.offset))?;
        let synced = if start > self.group.durable() { tail.disk.sync() } else { Ok(()) };
        // After the header may be on the device, the old segment must not grow beyond it.
        if let Err(error) = synced.and_then(|()| segment::write_header(&self.config, &*next.disk, &header)) {
            return Err(leader.fail(&error));
        }
        next.older = std::mem::take(&mut tail.older);
        next.older.push(Older { number: tail.header.number, end: start, cut: false });
        let mut old = std::mem::replace(&mut *tail, next);
        drop(tail);
        leader.succeed(start);
        // The old segment gets no more batches, so a failure here has no effect on the log.
        if let Err(cause) = old.give_back() {
            tracing::warn!(%cause, "a log segment keeps space that it does not need");
        }
        Ok(start)
    }

    /// Removes the segments that end at or before `lsn`, the redo point of a durable superblock, but never the current
    /// segment. The removals are durable on return.
    pub fn remove_before(&self, lsn: Lsn) -> Result<()> {
        self.group.check()?;
        let past: Vec<u32> =
            self.tail.lock().older.iter().filter(|older| older.end <= lsn).map(|older| older.number).collect();
        self.remove(&self.ours(&past))?;
        self.tail.lock().older.retain(|older| !past.contains(&older.number));
        Ok(())
    }

    /// Removes all segments, for a clean close. The superblock must already say that no log is needed. Nothing can be
    /// appended any more.
    pub fn remove_all(&self) -> Result<()> {
        self.group.check()?;
        self.poison("the log has been closed");
        self.remove(&self.ours(&segment::numbers(&self.config)?))
    }

    /// Removes segments durably. A failed sync of the folder stops the log, like a failed sync of a segment.
    fn remove(&self, numbers: &[u32]) -> Result<()> {
        if numbers.is_empty() {
            return Ok(());
        }
        for number in numbers {
            self.config.volume.remove(&segment::name(&self.config, *number))?;
        }
        self.config.volume.sync().inspect_err(|error| self.group.poison(error.to_string()))
    }

    /// Which of these segments belong to this log. If the database file was removed while it was open, a new database
    /// may have a log with the same names.
    fn ours(&self, numbers: &[u32]) -> Vec<u32> {
        let (known, cut): (Vec<u32>, Vec<u32>) = {
            let tail = self.tail.lock();
            let cut = tail.older.iter().filter(|older| older.cut).map(|older| older.number).collect();
            (tail.older.iter().map(|older| older.number).chain([tail.header.number]).collect(), cut)
        };
        let is_ours = |number: &u32| match segment::inspect(&self.config, *number) {
            Ok(SegmentFile::Ours(_)) => true,
            Ok(SegmentFile::Foreign) | Err(Error::NotFound { .. }) => false,
            // Another database may be creating a segment.
            Ok(SegmentFile::Cut) => cut.contains(number),
            Ok(SegmentFile::Damaged) | Err(_) => known.contains(number),
        };
        numbers.iter().copied().filter(is_ours).collect()
    }

    /// Stops the log: from now on nothing is appended, removed or acknowledged. The first cause is kept.
    pub fn poison(&self, cause: impl Into<String>) {
        self.group.poison(cause.into());
    }

    /// The cause for which the log was stopped, if it was.
    pub fn is_poisoned(&self) -> Option<String> {
        self.group.cause()
    }
}

impl Watermark for Log {
    fn durable(&self) -> Lsn {
        self.group.durable()
    }

    fn appended(&self) -> Lsn {
        self.next_lsn()
    }

    fn make_durable(&self, lsn: Lsn) -> Result<bool> {
        if lsn > self.next_lsn() {
            let expected = format!("at most {}, the end of the log", self.next_lsn());
            return Err(Error::Option { option: "lsn to make durable", value: lsn.to_string(), expected });
        }
        let Some(leader) = self.group.wait_or_lead(lsn)? else { return Ok(false) };
        let (disk, end) = {
            let mut tail = self.tail.lock();
            self.written.fetch_add(tail.end_flush(), Ordering::AcqRel);
            (Arc::clone(&tail.disk), self.next_lsn())
        };
        match disk.sync() {
            Ok(()) => {
                leader.succeed(end);
                Ok(true)
            }
            Err(error) => Err(leader.fail(&error)),
        }
    }
}

impl Tail {
    fn new(disk: Arc<dyn Disk>, header: SegmentHeader, reserved: u64, older: Vec<Older>) -> Tail {
        let chain = header.chain;
        let blocks = Vec::new();
        Tail { disk, header, offset: SEGMENT_HEADER, chain, reserved, promised: 0, older, blocks }
    }

    /// Writes a batch at the end. In a sparse log the rest of its last block is written, too.
    fn write(&mut self, batch: &[u8]) -> Result<()> {
        if self.header.shape == LogShape::Packed {
            return self.disk.write_as(WriteKind::Log, self.offset, batch);
        }
        let end = self.offset.saturating_add(batch.len() as u64);
        let rest = usize::try_from(end.next_multiple_of(DEVICE_BLOCK).saturating_sub(end)).unwrap_or(0);
        self.blocks.clear();
        self.blocks.extend_from_slice(batch);
        self.blocks.resize(batch.len().saturating_add(rest), 0);
        self.disk.write_as(WriteKind::Log, self.offset, &self.blocks)
    }

    /// Ends the bytes of the flush that begins: later batches belong to the next flush. A sparse log continues in the
    /// next block. It continues in the same block if the padding needs reserved space and the device has no other
    /// space. Returns the length of the padding.
    fn end_flush(&mut self) -> u64 {
        let next = self.offset.next_multiple_of(DEVICE_BLOCK);
        if self.header.shape == LogShape::Packed || next == self.offset {
            return 0;
        }
        if self.promised > self.offset {
            let left = self.promised.saturating_sub(self.offset);
            if self.reserve_up_to(next.saturating_add(left)).is_err() {
                return 0;
            }
            self.promised = next.saturating_add(left);
        }
        next.saturating_sub(std::mem::replace(&mut self.offset, next))
    }

    /// Frees the space after the end.
    fn give_back(&mut self) -> Result<()> {
        if self.reserved > self.offset {
            self.reserved = 0;
            self.disk.resize(self.disk.size()?)?;
        }
        Ok(())
    }

    fn reserve(&mut self, bytes: u64) -> Result<()> {
        let end = self.offset.saturating_add(bytes);
        self.reserve_up_to(end)?;
        self.promised = end;
        Ok(())
    }

    fn reserve_up_to(&mut self, end: u64) -> Result<()> {
        if end > self.reserved {
            let generous = end.checked_next_multiple_of(RESERVE_STEP).unwrap_or(end);
            self.reserved = match self.disk.reserve(generous) {
                Err(Error::Full { .. }) => self.disk.reserve(end).map(|()| end)?,
                other => other.map(|()| generous)?,
            };
        }
        Ok(())
    }
}

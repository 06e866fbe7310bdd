//! [`Log`]: append and reserve. `rotation` begins and removes segments, `reader` reads, `resume` continues after a
//! recovery, `group_commit` decides which thread syncs.
//!
//! Locks, in the order in which they are taken: the rotation, the role of the leader, the tail. The tail is locked for
//! one write, and never for a sync.

use super::LogConfig;
use super::batch::{BATCH_HEADER, BatchBuffer, HeaderFields, MAX_PAYLOAD};
use super::group_commit::{GroupCommit, Leader};
use super::rotation::Rotation;
use super::tail::Tail;
use crate::base::watermark::Watermark;
use crate::base::{Error, Lsn, Result};
use crate::io::Opener;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// Batches count as synced often if less than this many bytes of the log are not durable.
const OFTEN: u64 = 256 << 10;

/// The log of an open database, at its end.
#[derive(Debug)]
pub struct Log {
    pub(super) config: LogConfig,
    pub(super) opener: Opener,
    pub(super) seed: u32,
    pub(super) epoch: u32,
    pub(super) appended: AtomicU64,
    /// Bytes of batches, and of the padding between them.
    pub(super) written: AtomicU64,
    /// The value of `written` from which [`Log::segment_bytes`] counts.
    pub(super) begun_at: AtomicU64,
    /// True from the switch to a segment until the previous segment is ended: [`Log::end_segment`].
    pub(super) is_rotating: AtomicBool,
    pub(super) group: GroupCommit,
    /// The maximum length of a payload.
    pub(super) max_payload: AtomicUsize,
    /// The next segment, as far as it is prepared. Locked while segments are begun, used again and removed.
    pub(super) rotation: Mutex<Rotation>,
    pub(super) tail: Mutex<Tail>,
}

impl Log {
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
    pub fn max_payload(&self) -> usize {
        self.max_payload.load(Ordering::Relaxed)
    }

    /// Limits payloads to `bytes`, and to [`MAX_PAYLOAD`].
    pub fn limit_payload(&self, bytes: usize) {
        self.max_payload.store(bytes.min(MAX_PAYLOAD), Ordering::Relaxed);
    }

    /// Bytes of all batches since the log was created or resumed, and of the padding between them: what a recovery
    /// would have to read of them.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    /// Bytes of batches, and of the padding between them, since the current segment was begun, or since
    /// [`Log::postpone_rotation`].
    pub fn segment_bytes(&self) -> u64 {
        self.written().saturating_sub(self.begun_at.load(Ordering::Acquire))
    }

    /// Counts [`Log::segment_bytes`] from 0 again, so that the next segment is tried later, because it cannot be begun
    /// now.
    pub fn postpone_rotation(&self) {
        self.begun_at.store(self.written(), Ordering::Release);
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
        let fields = HeaderFields {
            seed: self.seed,
            epoch: self.epoch,
            kind,
            start: self.next_lsn(),
            durable: self.group.durable(),
            previous: tail.chain,
            max_payload: self.max_payload(),
        };
        let (bytes, chain) = buffer.seal(&fields)?;
        let are_synced_often = fields.start.0.saturating_sub(fields.durable.0) <= OFTEN;
        if let Err(error) = tail.write(bytes, are_synced_often) {
            self.group.poison(error.first_cause());
            return Err(error);
        }
        let end = fields.start.plus(bytes.len());
        tail.chain = chain;
        self.written.fetch_add(bytes.len() as u64, Ordering::AcqRel);
        self.appended.store(end.0, Ordering::Release);
        Ok(end)
    }

    /// Fails in a child process that was made by `fork`: the leader may be a thread of the parent, which never wakes a
    /// thread of the child.
    pub(super) fn check_process(&self) -> Result<()> {
        if self.opener.is_this() {
            return Ok(());
        }
        Err(Error::Forked { path: self.config.volume.path(&self.config.prefix) })
    }

    /// Makes all bytes durable that were appended before the call. After a switch to a segment, this syncs the previous
    /// segment, too.
    pub(super) fn sync_as(&self, leader: Leader<'_>) -> Result<()> {
        let (previous, disk, mut end) = {
            let mut tail = self.tail.lock();
            let previous = tail.previous.as_ref().map(|old| (Arc::clone(&old.disk), tail.header.start));
            (previous, Arc::clone(&tail.disk), self.end_flush(&mut tail))
        };
        if let Some((old, start)) = &previous {
            // A sync that began before the switch may have synced all of it.
            if self.group.durable() < *start {
                old.sync().map_err(|error| leader.fail(&error))?;
                leader.succeed(*start);
                leader.notify();
            }
            // No other segment is begun until this one is durable.
            end = self.end_flush(&mut self.tail.lock());
        }
        disk.sync().map_err(|error| leader.fail(&error))?;
        leader.succeed(end);
        if previous.is_some() {
            leader.notify();
            let ended = self.tail.lock().previous.take();
            // Before this thread gives up the role: after that, the old segment can become a spare file.
            ended.into_iter().for_each(|old| self.end_segment(*old));
            self.is_rotating.store(false, Ordering::Release);
        }
        Ok(())
    }

    /// Ends a flush. Returns the LSN up to which it will make the log durable.
    fn end_flush(&self, tail: &mut Tail) -> Lsn {
        self.written.fetch_add(tail.end_flush(), Ordering::AcqRel);
        self.next_lsn()
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
        let end = tail.offset;
        tail.give_back_after(end)
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
        self.check_process()?;
        let Some(leader) = self.group.wait_or_lead(lsn)? else { return Ok(false) };
        self.sync_as(leader).map(|()| true)
    }
}

//! How the segments of a [`Log`] are begun, used again and removed.
//!
//! A segment that a checkpoint no longer needs becomes a **spare file**, and later a segment again:
//!
//! 1. Both superblocks are written with the new redo point. They are durable before step 2.
//! 2. The header of the file is replaced by one that says that the file is spare. It is durable before step 3.
//! 3. The file gets the name of the new segment. The name is durable before step 4.
//! 4. The header of the new segment is written, and batches are written over the old content.
//! 5. The old segment is synced, and then the new one.
//! 6. The header of the old segment says that another segment was begun after it.
//!
//! [`Log::prepare_segment`] does step 3. If there is no spare file that can be used, it creates one.
//! [`Log::switch_segment`] does step 4, which syncs nothing: a caller can hold a lock that commits take. The next
//! thread that makes the log durable does steps 5 and 6, and [`Log::finish_rotation`] waits for them. No batch of the
//! new segment counts as durable before step 5 is complete. The log begins no further segment before step 6 is
//! complete.
//!
//! After a power cut before step 5, the new segment can be on the device although batches at the end of the old one are
//! not. Its header alone therefore does not prove that the old segment is complete: see `LogReader::proves_end`. If the
//! header is not on the device, a recovery finds a spare file. Every batch that an earlier segment has left in the file
//! is before the start of the new one, because a log uses only files that it wrote itself, in this epoch. A reader
//! never reads such a batch as part of the log, and such a batch does not prove damage.
//!
//! A recovery removes the spare files that it finds, and so does a clean close.

use super::LogConfig;
use super::batch::MAX_PAYLOAD;
use super::group_commit::GroupCommit;
use super::segment::{self, SEGMENT_HEADER, SegmentFile, SegmentHeader};
use super::tail::{OldSegment, Tail};
use super::writer::Log;
use crate::base::{Error, Lsn, Result, checksum::chained};
use crate::io::{Disk, Opener};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// The maximum number of spare files.
const MAX_SPARES: usize = 8;

/// The next segment, as far as it is prepared.
#[derive(Debug)]
pub(super) struct Rotation {
    /// The number of the next segment.
    next_number: u32,
    /// The spare files that this log has made, the longest one at the end.
    spares: Vec<SpareFile>,
    /// The most bytes of all spare files.
    most_spare: u64,
    /// The most bytes of segments that one checkpoint has lately made unnecessary.
    needed: u64,
    /// The file of the next segment, if it is ready.
    prepared: Option<NextFile>,
}

#[derive(Clone, Copy, Debug)]
struct SpareFile {
    /// The number of the segment that it was.
    number: u32,
    /// Bytes of the file.
    len: u64,
}

impl Rotation {
    fn new(next_number: u32) -> Rotation {
        Rotation { next_number, spares: Vec::new(), most_spare: 0, needed: 0, prepared: None }
    }

    /// The bytes of all spare files, and the most that they should have.
    fn held_and_most(&self) -> (u64, u64) {
        (self.spares.iter().map(|spare| spare.len).sum(), self.most_spare.min(self.needed))
    }

    /// The most bytes of another spare file.
    fn room(&self) -> u64 {
        let (held, most) = self.held_and_most();
        if self.spares.len() < MAX_SPARES { most.saturating_sub(held) } else { 0 }
    }

    /// Notes how many bytes of segments a checkpoint has made unnecessary. Spare files have at most as many, or half as
    /// many as before: a log that has become short needs no more. Returns the spare files that are too many, which are
    /// no longer counted.
    fn note_excess_segments(&mut self, bytes: u64) -> Vec<u32> {
        self.needed = bytes.max(self.needed / 2);
        let mut surplus = Vec::new();
        while let (held, most) = self.held_and_most()
            && held > most
        {
            surplus.extend(self.spares.pop().map(|spare| spare.number));
        }
        surplus
    }

    fn add(&mut self, spare: SpareFile) {
        self.spares.push(spare);
        self.spares.sort_unstable_by_key(|spare| spare.len);
    }
}

/// The file of the next segment.
#[derive(Debug)]
struct NextFile {
    disk: Arc<dyn Disk>,
    number: u32,
    /// The length of its old content.
    filled: u64,
}

impl Log {
    /// Starts the log of a new, or cleanly closed, database at `start`: creates the first segment, durable on return,
    /// and removes all other segments of the prefix. `epoch` must be one that this database has not used.
    pub fn create(config: LogConfig, epoch: u32, start: Lsn) -> Result<Log> {
        let stale = Log::stale(&config)?;
        Log::create_after(config, epoch, start, &stale)
    }

    /// The numbers of all segments of this prefix. Files that are no segments do not count.
    pub(crate) fn stale(config: &LogConfig) -> Result<Vec<u32>> {
        let mut numbers = segment::numbers(config)?;
        numbers.retain(|number| !matches!(segment::inspect(config, *number), Ok(SegmentFile::Other)));
        Ok(numbers)
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
            if matches!(segment::inspect(config, number), Ok(SegmentFile::Ours(_) | SegmentFile::Spare)) {
                config.volume.remove(&segment::name(config, number))?;
            }
        }
        Ok(())
    }

    /// Like [`Log::create`], but removes only the segments in `stale`.
    pub(crate) fn create_after(config: LogConfig, epoch: u32, start: Lsn, stale: &[u32]) -> Result<Log> {
        let chain = chained(config.seed(), &epoch.to_le_bytes());
        let number = segment::number_after(&config, stale.last().copied().unwrap_or(0))?;
        let header = SegmentHeader { epoch, number, previous: 0, shape: config.shape, start, chain, has_next: false };
        let log = Log::begin(config, header, Vec::new())?;
        log.remove(stale)?;
        Ok(log)
    }

    /// Creates the first segment of an epoch.
    pub(super) fn begin(config: LogConfig, mut header: SegmentHeader, old_segments: Vec<OldSegment>) -> Result<Log> {
        let disk;
        (header.number, disk) = segment::create_empty(&config, header.number)?;
        config.volume.sync()?;
        let written = segment::write_header(&config, &*disk, &header).and_then(|()| disk.sync());
        if let Err(error) = written {
            // A file without a header is not a segment. If the removal also fails, an unused file remains, which
            // only occupies a number.
            let _ = config.volume.remove(&segment::name(&config, header.number));
            return Err(error);
        }
        Ok(Log {
            opener: Opener::this(),
            seed: config.seed(),
            epoch: header.epoch,
            appended: AtomicU64::new(header.start.0),
            written: AtomicU64::new(0),
            begun_at: AtomicU64::new(0),
            is_rotating: AtomicBool::new(false),
            group: GroupCommit::new(header.start),
            max_payload: AtomicUsize::new(MAX_PAYLOAD),
            rotation: Mutex::new(Rotation::new(segment::number_after(&config, header.number)?)),
            tail: Mutex::new(Tail::new(disk, header, 0, old_segments)),
            config,
        })
    }

    /// Creates or renames the file of the next segment, durably. Call this function before you take a lock that commits
    /// also take, and [`Log::switch_segment`] under that lock.
    ///
    /// # Errors
    /// [`Error::Poisoned`] if the log has been stopped. Any other error leaves the log as it was: there is no space for
    /// another file, for example, or the process has too many open files.
    pub fn prepare_segment(&self) -> Result<()> {
        self.check_process()?;
        let mut rotation = self.rotation.lock();
        self.group.check()?;
        if rotation.prepared.is_none() {
            rotation.prepared = Some(self.next_file(&mut rotation)?);
        }
        Ok(())
    }

    /// Starts a new segment at the LSN of the next batch and returns that LSN. All bytes before it, and the segment,
    /// are then durable. Appends continue meanwhile.
    ///
    /// # Errors
    /// [`Error::Poisoned`] if the log has been stopped. Any other error leaves the log in its segment, as for
    /// [`Log::prepare_segment`].
    pub fn rotate(&self) -> Result<Lsn> {
        loop {
            self.prepare_segment()?;
            if let Some(start) = self.switch_segment()? {
                self.finish_rotation(start)?;
                return Ok(start);
            }
            // Another thread has used or removed the file, or is about to finish its rotation.
            self.finish_rotation(self.next_lsn())?;
        }
    }

    /// Starts a new segment at the LSN of the next batch and returns that LSN, without a sync. Call
    /// [`Log::finish_rotation`] after it. Returns `None` if [`Log::prepare_segment`] has prepared no file, another
    /// caller has used or removed it, or the previous rotation is not finished.
    ///
    /// # Errors
    /// [`Error::Poisoned`] if the log has been stopped, or if the header of the new segment cannot be written. Any
    /// other error leaves the log in its segment: there is no space for the rest of the reservation.
    pub fn switch_segment(&self) -> Result<Option<Lsn>> {
        let mut rotation = self.rotation.lock();
        self.group.check()?;
        let mut tail = self.tail.lock();
        if self.is_rotating.load(Ordering::Acquire) {
            return Ok(None);
        }
        let Some(next) = &rotation.prepared else { return Ok(None) };
        let start = self.change_to(&mut tail, next)?;
        rotation.prepared = None;
        Ok(Some(start))
    }

    /// Makes all bytes before `lsn` durable, and completes the last switch to a segment, if it is not complete. Syncs,
    /// or waits for a thread that does.
    ///
    /// # Errors
    /// [`Error::Poisoned`] if a sync fails, or if the log has been stopped.
    pub fn finish_rotation(&self, lsn: Lsn) -> Result<()> {
        self.check_process()?;
        // A thread that has synced the segments can still be writing to the old one.
        let is_finished = || self.group.durable() >= lsn && !self.is_rotating.load(Ordering::Acquire);
        match self.group.wait_or_lead_until(is_finished)? {
            Some(leader) => self.sync_as(leader),
            None => Ok(()),
        }
    }

    /// The file of the next segment, under its name, durably: a spare file, or a new one. Gives up the spare files that
    /// cannot be used. If no file can be created either, they are kept: they need not be the cause.
    fn next_file(&self, rotation: &mut Rotation) -> Result<NextFile> {
        let mut unusable = Vec::new();
        let next = match self.next_spare(rotation, &mut unusable) {
            Ok(Some(next)) => Ok(next),
            Ok(None) => self.new_file(rotation),
            Err(error) => Err(error),
        };
        if next.is_ok() {
            unusable.iter().try_for_each(|spare: &SpareFile| self.give_up(spare.number))?;
        } else {
            unusable.into_iter().for_each(|spare| rotation.add(spare));
        }
        next
    }

    /// Makes a spare file the file of the next segment. Adds the files that cannot be used to `unusable`. Returns
    /// `None` if no spare file can be used.
    fn next_spare(&self, rotation: &mut Rotation, unusable: &mut Vec<SpareFile>) -> Result<Option<NextFile>> {
        while let Some(spare) = rotation.spares.pop() {
            let taken = segment::take_spare(&self.config, spare.number, rotation.next_number);
            let Ok(Some((number, disk))) = taken.inspect_err(|cause| {
                tracing::warn!(%cause, "cannot use a spare file of the log");
            }) else {
                unusable.push(spare);
                continue;
            };
            self.sync_folder()?;
            // Usually all of it is allocated already. Otherwise commits reserve what they need.
            let filled = disk.reserve(spare.len).map_or(0, |()| spare.len);
            rotation.next_number = segment::number_after(&self.config, number)?;
            return Ok(Some(NextFile { disk, number, filled }));
        }
        Ok(None)
    }

    fn new_file(&self, rotation: &mut Rotation) -> Result<NextFile> {
        let (number, disk) = segment::create_empty(&self.config, rotation.next_number)?;
        if let Err(error) = segment::write_spare(&self.config, &*disk, number) {
            let _ = self.config.volume.remove(&segment::name(&self.config, number));
            return Err(error);
        }
        self.stop_unless(disk.sync())?;
        self.sync_folder()?;
        rotation.next_number = segment::number_after(&self.config, number)?;
        Ok(NextFile { disk, number, filled: 0 })
    }

    /// Removes a spare file that cannot be used, if it is certainly of this log. It is not used again in any case.
    fn give_up(&self, spare: u32) -> Result<()> {
        match segment::inspect(&self.config, spare) {
            Ok(SegmentFile::Spare) => match self.remove(&[spare]) {
                Err(stopped @ Error::Poisoned { .. }) => Err(stopped),
                _ => Ok(()),
            },
            // The file has another name by now, or it is not known to be of this database: another database may have
            // a file of this name.
            _ => Ok(()),
        }
    }

    /// Lets the log continue in another file. The header is written, but not synced.
    fn change_to(&self, tail: &mut Tail, file: &NextFile) -> Result<Lsn> {
        let start = self.next_lsn();
        let (number, previous) = (file.number, tail.header.number);
        let header = SegmentHeader { number, previous, start, chain: tail.chain, ..tail.header };
        let mut next = Tail::new(Arc::clone(&file.disk), header, file.filled, Vec::new());
        next.reserve(tail.promised.saturating_sub(tail.offset))?;
        // As soon as the header may be in the file, the old segment must not grow beyond the start of the new one. So
        // an error stops the log.
        self.stop_unless(segment::write_header(&self.config, &*next.disk, &header))?;
        next.old_segments = std::mem::take(&mut tail.old_segments);
        let begun = Some(SegmentHeader { has_next: true, ..tail.header });
        let old = OldSegment { number: tail.header.number, end: start, len: tail.offset, begun, cut: false };
        next.old_segments.push(old);
        self.is_rotating.store(true, Ordering::Release);
        let previous = std::mem::replace(tail, next);
        tail.previous = Some(Box::new(previous));
        self.begun_at.store(self.written(), Ordering::Release);
        Ok(start)
    }

    /// Ends a segment that gets no more batches. Call it when the segment and the header of the next one are durable. A
    /// failure here has no effect on the log.
    pub(super) fn end_segment(&self, mut old: Tail) {
        let header = SegmentHeader { has_next: true, ..old.header };
        if let Err(cause) = segment::write_header(&self.config, &*old.disk, &header) {
            tracing::warn!(%cause, "cannot mark the old log segment; if the next one is lost, recovery does not detect it");
        }
        if let Err(cause) = old.give_back_reserved() {
            tracing::warn!(%cause, "a log segment keeps space that it does not need");
        }
    }

    /// Removes the segments that end at or before `lsn`, the redo point of both superblocks, but never the current
    /// segment. Those that this log began become spare files, as far as [`Log::keep_spares`] allows and the log lately
    /// needed. All of it is durable on return.
    pub fn remove_before(&self, lsn: Lsn) -> Result<()> {
        self.group.check()?;
        let past: Vec<OldSegment> =
            self.tail.lock().old_segments.iter().filter(|segment| segment.end <= lsn).copied().collect();
        let numbers: Vec<u32> = past.iter().map(|segment| segment.number).collect();
        if past.is_empty() {
            return Ok(());
        }
        let mut rotation = self.rotation.lock();
        let mut rest = self.ours(&rotation.note_excess_segments(past.iter().map(|segment| segment.len).sum()));
        for number in self.ours(&numbers) {
            let begun = past.iter().find(|segment| segment.number == number).and_then(|segment| segment.begun);
            match begun.map_or(Ok(false), |begun| self.keep(&mut rotation, &begun)) {
                Ok(true) => {}
                Err(stopped @ Error::Poisoned { .. }) => return Err(stopped),
                Ok(false) | Err(_) => rest.push(number),
            }
        }
        self.remove(&rest)?;
        self.tail.lock().old_segments.retain(|segment| !numbers.contains(&segment.number));
        Ok(())
    }

    /// Makes a segment a spare file, durably. False if it should be removed.
    fn keep(&self, rotation: &mut Rotation, segment: &SegmentHeader) -> Result<bool> {
        let room = rotation.room();
        if room <= SEGMENT_HEADER {
            return Ok(false);
        }
        let Some((disk, len)) = segment::make_spare(&self.config, segment, room)? else { return Ok(false) };
        self.stop_unless(disk.sync())?;
        rotation.add(SpareFile { number: segment.number, len });
        Ok(true)
    }

    /// Keeps unnecessary segments, up to this many bytes of them, to use them again. A commit is then written over what
    /// is in such a file, and its sync writes neither a new length nor the place of new blocks. A new log keeps none.
    pub fn keep_spares(&self, bytes: u64) {
        self.rotation.lock().most_spare = bytes;
    }

    /// Removes the spare files, durably, keeps none from now on, and frees what the current segment does not need: when
    /// the device is full, before a large transaction, and when the database is closed.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn remove_spares(&self) -> Result<()> {
        self.group.check()?;
        let mut rotation = self.rotation.lock();
        rotation.most_spare = 0;
        let spares: Vec<u32> = rotation.spares.iter().map(|spare| spare.number).collect();
        self.remove(&self.ours(&spares))?;
        // Only now: files that cannot be removed can still be used.
        rotation.spares.clear();
        if let Some(file) = rotation.prepared.take()
            && let Err(cause) = self.remove_unused(file.number)
        {
            // The name may be gone although the removal failed. So the log does not continue in the open file: a spare
            // file is opened again by its name.
            rotation.add(SpareFile { number: file.number, len: file.filled });
            return Err(cause);
        }
        self.tail.lock().give_back_rest()
    }

    /// Removes all segments and spare files, for a clean close. The superblock must already say that no log is needed.
    /// Nothing can be appended after it.
    pub fn remove_all(&self) -> Result<()> {
        self.group.check()?;
        self.poison("the log has been closed");
        let prepared = self.rotation.lock().prepared.take();
        prepared.map_or(Ok(()), |file| self.remove_unused(file.number))?;
        self.remove(&self.ours(&segment::numbers(&self.config)?))
    }

    /// Removes the file of a segment that was not begun. Another database may have a segment of this number, if it got
    /// the name after this one was removed.
    fn remove_unused(&self, number: u32) -> Result<()> {
        match segment::inspect(&self.config, number) {
            Ok(SegmentFile::Spare) => self.remove(&[number]),
            Ok(_) | Err(Error::NotFound { .. }) => Ok(()),
            Err(cause) => Err(cause),
        }
    }

    /// Removes segments durably.
    fn remove(&self, numbers: &[u32]) -> Result<()> {
        if numbers.is_empty() {
            return Ok(());
        }
        for number in numbers {
            self.config.volume.remove(&segment::name(&self.config, *number))?;
        }
        self.sync_folder()
    }

    /// Makes the names of the files durable.
    fn sync_folder(&self) -> Result<()> {
        self.stop_unless(self.config.volume.sync())
    }

    /// Stops the log if a file or the folder could not be synced, or if it is not known what a header contains.
    fn stop_unless(&self, done: Result<()>) -> Result<()> {
        done.or_else(|error| {
            self.group.poison(error.first_cause());
            self.group.check()
        })
    }

    /// Returns the segments of these that belong to this log. If the database file was removed while it was open, a new
    /// database may have a log with the same names.
    fn ours(&self, numbers: &[u32]) -> Vec<u32> {
        let (known, cut): (Vec<u32>, Vec<u32>) = {
            let tail = self.tail.lock();
            let cut = tail.old_segments.iter().filter(|segment| segment.cut).map(|segment| segment.number).collect();
            (tail.old_segments.iter().map(|segment| segment.number).chain([tail.header.number]).collect(), cut)
        };
        let is_ours = |number: &u32| match segment::inspect(&self.config, *number) {
            Ok(SegmentFile::Ours(_) | SegmentFile::Spare) => true,
            Ok(SegmentFile::Foreign | SegmentFile::Other) | Err(Error::NotFound { .. }) => false,
            // Another database may be creating a segment.
            Ok(SegmentFile::Cut) => cut.contains(number),
            Ok(SegmentFile::Damaged) | Err(_) => known.contains(number),
        };
        numbers.iter().copied().filter(is_ours).collect()
    }
}

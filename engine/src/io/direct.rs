//! Direct I/O: reads and writes that bypass the file cache of the system. The system demands that their offsets,
//! lengths and memory are aligned, so this file cuts, widens and copies requests. It keeps no content of the file
//! between requests; `read_ahead` keeps the bytes that it has read ahead.
//!
//! A **unit** is the number of bytes of which all offsets and lengths of direct I/O are multiples: a block of the
//! device, usually 512 bytes or 4 KiB.
//!
//! Every request is copied once, from or to aligned memory. Copying a page of 8 KiB takes less than half a microsecond;
//! reading it from the device takes more than ten.
//!
//! Only the file of a database uses direct I/O. The log is written through the file cache, because most commits write
//! less than a block.

use super::read_ahead::FileReadAhead;
use parking_lot::Mutex;
use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// The alignment of memory in bytes. A device that needs a larger one is not supported.
pub(super) const ALIGNMENT: usize = 4096;
/// The maximum number of bytes of one system call.
const MAX_CALL: usize = 256 << 10;
/// The largest supported unit in bytes.
pub(super) const MAX_UNIT: usize = MAX_CALL / 4;
/// How many buffers are kept for later requests.
const KEPT: usize = 8;

/// Memory that begins at an aligned address.
#[derive(Debug)]
pub(super) struct Buffer {
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

impl Buffer {
    pub(super) fn new(len: usize) -> Buffer {
        let memory = vec![0; len + ALIGNMENT];
        let start = memory.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        Buffer { memory, start, len }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.memory.get(self.start..self.start + self.len).unwrap_or_default()
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self.memory.get_mut(self.start..self.start + self.len).unwrap_or_default()
    }

    /// Reads into its first `len` bytes. Returns how many there were before the end of the file. `offset` and `len` are
    /// aligned.
    pub(super) fn read(&mut self, file: &File, offset: u64, len: usize) -> Result<usize> {
        let bytes = self.bytes_mut().get_mut(..len).unwrap_or_default();
        let mut done = 0;
        while let Some(rest) = bytes.get_mut(done..).filter(|rest| !rest.is_empty()) {
            match file.read_at(rest, offset + done as u64) {
                Ok(0) => break,
                Ok(read) => done += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // The part of a unit at the end of the file has been read. The next offset is not aligned.
                Err(error) if error.kind() == ErrorKind::InvalidInput && done > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }
}

/// A file that is read and written without the file cache.
#[derive(Debug)]
pub(super) struct DirectIo {
    file: Arc<File>,
    /// A power of two.
    unit: u64,
    /// True for a block device. Its length is a multiple of the unit, so a short read is an error.
    fixed_len: bool,
    /// A write that covers its first or last unit only in part holds this lock, because it reads the unit and writes it
    /// back. Trims and resizes hold it, too.
    partial: Mutex<()>,
    buffers: Mutex<Vec<Buffer>>,
    ahead: FileReadAhead,
}

impl DirectIo {
    /// `file` is open for direct I/O.
    pub(super) fn new(file: Arc<File>, unit: usize, fixed_len: bool) -> DirectIo {
        let ahead = FileReadAhead::new(file.clone());
        DirectIo { file, unit: unit as u64, fixed_len, partial: Mutex::default(), buffers: Mutex::default(), ahead }
    }

    /// The unit in bytes.
    pub(super) fn unit(&self) -> u64 {
        self.unit
    }

    /// False if the system refuses to read the first unit.
    pub(super) fn works(&self) -> Result<bool> {
        match self.with_buffer(|buffer| buffer.read(&self.file, 0, usize_of(self.unit))) {
            Err(error) if error.kind() == ErrorKind::InvalidInput => Ok(false),
            read => read.map(|_| true),
        }
    }

    /// Runs `change`, which trims or resizes the file in the `len` bytes from `offset` on. No write that covers a unit
    /// only in part runs at the same time.
    pub(super) fn exclusively<R>(&self, offset: u64, len: u64, change: impl FnOnce() -> R) -> R {
        let alone = self.partial.lock();
        let done = change();
        drop(alone);
        self.changed(offset, len);
        done
    }

    /// The start of the first unit and the end of the last unit of a range.
    fn widened(&self, offset: u64, end: u64) -> (u64, u64) {
        (offset & !(self.unit - 1), end.next_multiple_of(self.unit))
    }

    /// Fails, as the system does, if a file cannot be as long.
    fn check(&self, offset: u64, len: usize) -> Result<()> {
        let most = i64::MAX as u64 - self.unit;
        let end = offset.checked_add(len as u64).filter(|end| *end <= most);
        end.map(drop).ok_or_else(|| ErrorKind::InvalidInput.into())
    }

    fn with_buffer<R>(&self, work: impl FnOnce(&mut Buffer) -> R) -> R {
        // A thread of the parent may have held the lock at the `fork`. No thread of the child process would release it.
        let buffers =
            || if self.ahead.is_of_this_process() { Some(self.buffers.lock()) } else { self.buffers.try_lock() };
        let kept = buffers().and_then(|mut kept| kept.pop());
        let mut buffer = kept.unwrap_or_else(|| Buffer::new(MAX_CALL));
        let done = work(&mut buffer);
        if let Some(mut kept) = buffers().filter(|kept| kept.len() < KEPT) {
            kept.push(buffer);
        }
        done
    }

    /// Reads as [`super::Disk::read_at`] does.
    pub(super) fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.check(offset, buf.len())?;
        if self.ahead.take(offset, buf) {
            return Ok(());
        }
        let mut at = offset;
        let most = MAX_CALL - usize_of(self.unit);
        for part in buf.chunks_mut(most) {
            let end = at + part.len() as u64;
            let (start, stop) = self.widened(at, end);
            self.with_buffer(|buffer| {
                let read = buffer.read(&self.file, start, usize_of(stop - start))?;
                let bytes = buffer.bytes().get(usize_of(at - start)..usize_of(end - start).min(read));
                let bytes = bytes.filter(|bytes| bytes.len() == part.len()).ok_or(ErrorKind::UnexpectedEof)?;
                part.copy_from_slice(bytes);
                Ok::<(), Error>(())
            })?;
            at = end;
        }
        Ok(())
    }

    /// Writes as [`super::Disk::write_as`] does. A file that grows ends at the end of a unit.
    pub(super) fn write_at(&self, offset: u64, buf: &[u8]) -> Result<()> {
        self.check(offset, buf.len())?;
        let is_whole = (offset | buf.len() as u64) & (self.unit - 1) == 0;
        let alone = (!is_whole).then(|| self.partial.lock());
        let mut at = offset;
        let mut rest = buf;
        let mut written = Ok(());
        while !rest.is_empty() && written.is_ok() {
            // All parts but the first begin at the start of a unit.
            let front = usize_of(at & (self.unit - 1));
            let (part, behind) = rest.split_at(rest.len().min(MAX_CALL - front));
            written = self.write_part(at, part);
            (at, rest) = (at + part.len() as u64, behind);
        }
        drop(alone);
        self.changed(offset, buf.len() as u64);
        written
    }

    /// Writes at most [`MAX_CALL`] bytes, with the rest of the first and of the last unit as they are in the file.
    fn write_part(&self, at: u64, part: &[u8]) -> Result<()> {
        let end = at + part.len() as u64;
        let (start, stop) = self.widened(at, end);
        let (front, len) = (usize_of(at - start), usize_of(stop - start));
        self.with_buffer(|buffer| {
            let unit = usize_of(self.unit);
            if end < stop && (stop - self.unit != start || front == 0) {
                self.read_to_write_back(buffer, stop - self.unit)?;
                buffer.bytes_mut().copy_within(..unit, len - unit);
            }
            if front > 0 {
                self.read_to_write_back(buffer, start)?;
            }
            let bytes = buffer.bytes_mut().get_mut(..len).unwrap_or_default();
            bytes.get_mut(front..front + part.len()).unwrap_or_default().copy_from_slice(part);
            debug_assert!((start | len as u64).is_multiple_of(self.unit));
            debug_assert!(bytes.as_ptr().addr().is_multiple_of(ALIGNMENT));
            self.file.write_all_at(bytes, start)
        })
    }

    /// The length of the file. For a block device it is `u64::MAX`, because a short read of a device is an error.
    fn len(&self) -> Result<u64> {
        if self.fixed_len { Ok(u64::MAX) } else { Ok(self.file.metadata()?.len()) }
    }

    /// Reads a unit to the front of the buffer. Its bytes will be written back without a checksum, so it is read until
    /// two reads return the same.
    fn read_to_write_back(&self, buffer: &mut Buffer, start: u64) -> Result<()> {
        let read = |buffer: &mut Buffer| self.read_unit(buffer, start, || self.len());
        self.with_buffer(|again| read_alike(buffer, again, usize_of(self.unit), read))
    }

    /// Reads a unit to the front of the buffer, with zeros after the end of the file. `len` returns the length of the
    /// file.
    fn read_unit(&self, buffer: &mut Buffer, start: u64, len: impl FnOnce() -> Result<u64>) -> Result<()> {
        let mut read = buffer.read(&self.file, start, usize_of(self.unit))?;
        if (read as u64) < self.unit {
            // Zeros written over bytes that could not be read would damage the neighbours of this write. The file may
            // have become longer since the read, by a write beyond this unit. So the length comes first.
            let len = len()?;
            read = buffer.read(&self.file, start, usize_of(self.unit))?;
            if (read as u64) < self.unit.min(len.saturating_sub(start)) {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
        buffer.bytes_mut().get_mut(read..usize_of(self.unit)).unwrap_or_default().fill(0);
        Ok(())
    }

    /// Notes that these bytes of the file have changed.
    fn changed(&self, offset: u64, len: u64) {
        self.ahead.forget(offset, offset.saturating_add(len));
    }

    /// Begins to read these bytes.
    pub(super) fn will_read(&self, offset: u64, len: u64) {
        if self.check(offset, usize_of(len)).is_ok() {
            let (start, end) = self.widened(offset, offset + len);
            self.ahead.begin(start, end);
        }
    }
}

/// The first `len` bytes of a buffer.
fn front(buffer: &Buffer, len: usize) -> &[u8] {
    buffer.bytes().get(..len).unwrap_or_default()
}

/// Reads `len` bytes with `read` to the front of the buffer, twice. If the bytes differ, a third read decides.
fn read_alike(
    buffer: &mut Buffer,
    again: &mut Buffer,
    len: usize,
    mut read: impl FnMut(&mut Buffer) -> Result<()>,
) -> Result<()> {
    read(again)?;
    read(buffer)?;
    if front(again, len) == front(buffer, len) {
        return Ok(());
    }
    let second = front(buffer, len).to_vec();
    read(buffer)?;
    let third = front(buffer, len);
    if third == second || third == front(again, len) {
        return Ok(());
    }
    Err(Error::new(ErrorKind::InvalidData, "three reads returned different bytes: the device is not reliable"))
}

/// Converts a length inside a request. It fits, because the request is in memory.
fn usize_of(len: u64) -> usize {
    usize::try_from(len).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::path::Path;

    fn open(path: &Path, unit: usize) -> DirectIo {
        let file = File::options().read(true).write(true).create(true).truncate(false).open(path).unwrap();
        DirectIo::new(Arc::new(file), unit, false)
    }

    #[test]
    fn a_read_beyond_the_end_fails() {
        let folder = tempfile::tempdir().unwrap();
        let direct = open(&folder.path().join("f"), 512);
        direct.write_at(0, &[1; 700]).unwrap();
        direct.read_at(0, &mut [0; 700]).unwrap();
        for (offset, len) in [(0, 1025), (1024, 1), (5000, 3), (u64::MAX - 3, 3), (i64::MAX as u64, 1)] {
            assert!(direct.read_at(offset, &mut vec![0; len]).is_err(), "{len} at {offset}");
        }
        assert_eq!(direct.write_at(u64::MAX - 3, b"far").unwrap_err().kind(), ErrorKind::InvalidInput);
        direct.read_at(1024, &mut []).unwrap();
    }

    #[test]
    fn a_wrong_read_is_not_written_back() {
        for wrong in [&[0][..], &[1], &[0, 1], &[0, 2]] {
            let (mut buffer, mut again) = (Buffer::new(512), Buffer::new(512));
            let mut reads = 0u8;
            let done = read_alike(&mut buffer, &mut again, 512, |buffer| {
                buffer.bytes_mut().fill(7);
                if wrong.contains(&reads) {
                    buffer.bytes_mut()[100] = 8 + reads;
                }
                reads += 1;
                Ok(())
            });
            match wrong.len() {
                1 => assert!(done.is_ok() && buffer.bytes() == [7; 512], "{wrong:?}"),
                _ => assert_eq!(done.unwrap_err().kind(), ErrorKind::InvalidData, "{wrong:?}"),
            }
        }
    }

    #[test]
    fn a_write_beside_the_end_of_a_block_keeps_its_neighbours() {
        let folder = tempfile::tempdir().unwrap();
        let direct = Arc::new(open(&folder.path().join("f"), 4096));
        const EACH: usize = 700;
        let threads = 4;
        let round = |byte: u8| {
            std::thread::scope(|scope| {
                for thread in 0..threads {
                    let direct = direct.clone();
                    scope.spawn(move || {
                        for at in (thread..400).step_by(threads) {
                            direct.write_at((at * EACH) as u64, &[byte ^ at as u8; EACH]).unwrap();
                        }
                    });
                }
            });
        };
        for byte in [1, 2, 3] {
            round(byte);
            for at in 0..400 {
                let mut bytes = [0; EACH];
                direct.read_at((at * EACH) as u64, &mut bytes).unwrap();
                assert_eq!(bytes, [byte ^ at as u8; EACH], "write {at}");
            }
        }
    }

    #[test]
    fn a_part_of_the_last_block_can_be_written_while_the_file_becomes_longer() {
        let folder = tempfile::tempdir().unwrap();
        let direct = open(&folder.path().join("f"), 4096);
        let mut buffer = Buffer::new(4096);
        let len = || {
            // A write of the next unit makes the file longer, after this unit was read for the first time.
            direct.write_at(4096, &[2; 4096])?;
            direct.len()
        };
        direct.read_unit(&mut buffer, 0, len).unwrap();
        assert_eq!(buffer.bytes(), [0; 4096]);
    }

    #[derive(Clone, Debug)]
    enum Step {
        Write(u64, usize, u8),
        Read(u64, usize),
        WillRead(u64, u64),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let at = || prop_oneof![3 => 0u64..20_000, 1 => 0u64..900_000, 2 => (0u64..40).prop_map(|at| at * 512)];
        let len = || prop_oneof![3 => 0usize..2_000, 2 => (0usize..40).prop_map(|len| len * 512), 1 => 0usize..600_000];
        let step = prop_oneof![
            (at(), len(), any::<u8>()).prop_map(|(at, len, byte)| Step::Write(at, len, byte)),
            (at(), len()).prop_map(|(at, len)| Step::Read(at, len)),
            (at(), len()).prop_map(|(at, len)| Step::WillRead(at, len as u64)),
        ];
        prop::collection::vec(step, 1..60)
    }

    proptest! {
        /// It does the same as a file, but it can be longer, with zeros up to the end of its last unit.
        #[test]
        fn direct_io_agrees_with_buffered_io(
            unit in prop::sample::select(vec![1usize, 512, 4096, MAX_UNIT]),
            steps in steps(),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let direct = open(&folder.path().join("f"), unit);
            let mut model: Vec<u8> = Vec::new();
            for step in steps {
                match step {
                    Step::Write(at, len, byte) => {
                        let bytes: Vec<u8> = (0..len).map(|i| byte.wrapping_add((i % 251) as u8)).collect();
                        direct.write_at(at, &bytes).unwrap();
                        let end = at as usize + len;
                        if len > 0 && model.len() < end {
                            model.resize(end.next_multiple_of(unit), 0);
                        }
                        if len > 0 {
                            model[at as usize..end].copy_from_slice(&bytes);
                        }
                    }
                    Step::Read(at, len) => {
                        let mut bytes = vec![0; len];
                        let read = direct.read_at(at, &mut bytes);
                        match model.get(at as usize..at as usize + len) {
                            Some(expected) => {
                                prop_assert!(read.is_ok());
                                prop_assert!(bytes == expected, "{len} at {at}");
                            }
                            None => prop_assert!(read.is_err() || len == 0),
                        }
                    }
                    Step::WillRead(at, len) => direct.will_read(at, len),
                }
            }
            let mut bytes = vec![0; model.len()];
            direct.read_at(0, &mut bytes).unwrap();
            prop_assert!(bytes == model);
        }
    }
}

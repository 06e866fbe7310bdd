//! [`DeviceDisk`] makes a disk of fixed size, such as a block device, look like a file: it has a length that can
//! change, it reads as zeros where nothing was written, and it is empty at first.
//!
//! The device begins with two copies of the **device header**, each in a block of 4 KiB. The file follows.
//!
//! | at | bytes | field of the device header |
//! |---|---|---|
//! | 0 | 8 | magic `DURADEV\n` |
//! | 8 | 4 | version: 1 |
//! | 12 | 4 | CRC-32C of bytes 16 to 32 |
//! | 16 | 8 | sequence number |
//! | 24 | 8 | length of the file |
//!
//! The length in the header is often greater than that of the file. The bytes up to it were zeros before the header was
//! written, so that a cut of the power leaves zeros where a write was lost, as in a file. The header is changed in one
//! order: the first copy, a sync, the second copy, a sync. So one of them is always durable.

use super::{BLOCK, Disk, WriteKind};
use crate::base::bytes::{are_zero, get_u32, get_u64, put_u32, put_u64, slice};
use crate::base::checksum::checksum;
use crate::base::{Error, Result};
use parking_lot::Mutex;
use std::io::ErrorKind;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const MAGIC: u64 = u64::from_le_bytes(*b"DURADEV\n");
const VERSION: u32 = 1;
const CHECKED: Range<usize> = 16..32;
/// Bytes of both copies of the header. The file begins after them.
const FRONT: u64 = 2 * BLOCK as u64;
/// Bytes at the front and at the end of a device where other systems have their headers.
const SEARCHED: u64 = 1 << 20;
/// The length in the header grows by 1/16, but by at least and at most these numbers of bytes.
const GROWTH: std::ops::RangeInclusive<u64> = 1 << 20..=64 << 20;
/// Bytes of zeros that are written together.
const ZEROS: usize = 1 << 18;

/// A device header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct DeviceHeader {
    sequence: u64,
    len: u64,
}

impl DeviceHeader {
    fn encode(self) -> [u8; BLOCK] {
        let mut block = [0; BLOCK];
        put_u64(&mut block, 0, MAGIC);
        put_u32(&mut block, 8, VERSION);
        put_u64(&mut block, 16, self.sequence);
        put_u64(&mut block, 24, self.len);
        let crc = checksum(slice(&block, CHECKED.start, CHECKED.end));
        put_u32(&mut block, 12, crc);
        block
    }

    /// The header in a block; `None` if there is none, or a damaged one.
    fn decode(block: &[u8]) -> Option<DeviceHeader> {
        let is_sound = get_u64(block, 0) == MAGIC
            && get_u32(block, 12) == checksum(slice(block, CHECKED.start, CHECKED.end))
            && get_u32(block, 8) == VERSION;
        is_sound.then(|| DeviceHeader { sequence: get_u64(block, 16), len: get_u64(block, 24) })
    }
}

#[derive(Debug)]
struct DeviceState {
    /// The bytes from the length of the file up to here are zeros.
    zeros: u64,
    header: DeviceHeader,
    /// The copies of the header that are still to be written, in this order, with a sync after each.
    unwritten: Vec<usize>,
    /// True until the new file is complete: the header says that there is no file (its length is 0).
    unfinished: bool,
}

/// A file on a disk of fixed size.
#[derive(Debug)]
pub struct DeviceDisk {
    device: Arc<dyn Disk>,
    path: PathBuf,
    /// The greatest length of the file.
    capacity: u64,
    /// The length of the file. It changes under the lock of `state`.
    len: AtomicU64,
    state: Mutex<DeviceState>,
    /// A sync has failed. The writes that it covered may never become durable, even if a later sync succeeds.
    failed: AtomicBool,
}

impl DeviceDisk {
    /// Opens the file on a device. Nothing is written. A device of zeros has an empty file. `path` is for messages.
    ///
    /// ```
    /// use duramen::io::{DeviceDisk, Disk, MemoryDisk};
    /// use std::sync::Arc;
    ///
    /// let device = Arc::new(MemoryDisk::new());
    /// device.resize(1 << 20)?;
    /// let file = DeviceDisk::open(device.clone(), "disk".as_ref())?;
    /// file.write_at(100, b"oak")?;
    /// file.complete()?; // until then, the device counts as empty
    /// let file = DeviceDisk::open(device, "disk".as_ref())?;
    /// let mut read = [0; 4];
    /// file.read_at(99, &mut read)?;
    /// assert_eq!(read, *b"\0oak");
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotADatabase`] if the device has other content, [`Error::CorruptMeta`] if it has become smaller than
    /// the file or if both copies of its header are damaged.
    pub fn open(device: Arc<dyn Disk>, path: &Path) -> Result<DeviceDisk> {
        let capacity = (device.size()? / BLOCK as u64 * BLOCK as u64).saturating_sub(FRONT);
        let mut front = [0; 2 * BLOCK];
        if capacity == 0 {
            return Err(not_ours(path, "the device is too small"));
        }
        device.read_at(0, &mut front)?;
        let (first, second) = front.split_at(BLOCK);
        let state = match (DeviceHeader::decode(first), DeviceHeader::decode(second)) {
            (None, None) if [first, second].iter().any(|copy| get_u64(copy, 0) == MAGIC) => {
                return Err(corrupt("both copies of its header are damaged".to_owned()));
            }
            (None, None) => {
                check_empty(&*device, path)?;
                DeviceState::of(DeviceHeader { sequence: 0, len: 0 }, vec![0, 1])
            }
            // The newer first copy may be in the cache only. Then the device still needs the second one.
            (Some(first), second) if second.is_some_and(|second| second.sequence < first.sequence) => {
                DeviceState::of(first, vec![0, 1])
            }
            (None, Some(second)) => DeviceState::of(second, vec![0, 1]),
            // The first copy was synced before the second one was written.
            (Some(first), _) => DeviceState::of(first, vec![1, 0]),
        };
        let len = state.header.len;
        if len > capacity {
            return Err(corrupt(format!("it has {capacity} bytes, and the file on it {len}: it has become smaller")));
        }
        let (path, len, failed) = (path.to_owned(), AtomicU64::new(len), AtomicBool::new(false));
        Ok(DeviceDisk { device, path, capacity, len, state: Mutex::new(state), failed })
    }

    fn full(&self) -> Error {
        Error::Full { path: self.path.clone() }
    }

    /// Syncs the device. After a failure it never succeeds again.
    fn sync_device(&self) -> Result<()> {
        self.unless_failed(|| self.device.sync())
    }

    /// Runs a sync of the device, unless an earlier one has failed.
    fn unless_failed(&self, sync: impl FnOnce() -> Result<()>) -> Result<()> {
        if self.failed.load(Ordering::Acquire) {
            return Err(Error::sync("cannot sync", &self.path, ErrorKind::Other.into()));
        }
        sync().inspect_err(|_| self.failed.store(true, Ordering::Release))
    }

    /// Writes the copies of the header that are not written. Everything that was written before them is durable.
    fn write_header(&self, state: &mut DeviceState) -> Result<()> {
        while let Some(copy) = state.unwritten.first() {
            let written = self.device.write_as(WriteKind::Superblock, (copy * BLOCK) as u64, &state.header.encode());
            // A part of it may have been written.
            written.inspect_err(|_| self.failed.store(true, Ordering::Release))?;
            self.sync_device()?;
            state.unwritten.remove(0);
        }
        Ok(())
    }

    /// Makes the header say that the file has this length.
    fn write_length(&self, state: &mut DeviceState, len: u64) -> Result<()> {
        // The header from which this process began comes first, so that one copy is durable.
        self.write_header(state)?;
        state.header = DeviceHeader { sequence: state.header.sequence + 1, len };
        state.unwritten = vec![0, 1];
        self.write_header(state)
    }

    /// Makes sure that the file can have this length.
    fn prepare(&self, state: &mut DeviceState, len: u64) -> Result<()> {
        if len <= state.zeros {
            return Ok(());
        }
        if len > self.capacity {
            return Err(self.full());
        }
        self.write_header(state)?;
        let step = (state.zeros / 16).clamp(*GROWTH.start(), *GROWTH.end());
        let end = len.saturating_add(step).min(self.capacity);
        let zeros = vec![0; ZEROS];
        let mut at = state.zeros;
        while at < end {
            let part = usize::try_from(end - at).unwrap_or(ZEROS).min(ZEROS);
            self.device.write_as(WriteKind::Other, FRONT + at, slice(&zeros, 0, part))?;
            at += part as u64;
        }
        self.sync_device()?;
        if !state.unfinished {
            self.write_length(state, end)?;
        }
        state.zeros = end;
        Ok(())
    }
}

impl DeviceState {
    fn of(header: DeviceHeader, unwritten: Vec<usize>) -> DeviceState {
        DeviceState { zeros: header.len, header, unwritten, unfinished: header.len == 0 }
    }
}

fn not_ours(path: &Path, what: &str) -> Error {
    Error::NotADatabase { path: path.to_owned(), what: what.to_owned() }
}

fn corrupt(why: String) -> Error {
    Error::CorruptMeta { what: "the device", why }
}

/// Fails if there is anything at the front or at the end of a device.
fn check_empty(device: &dyn Disk, path: &Path) -> Result<()> {
    let size = device.size()?;
    let mut bytes = vec![0; usize::try_from(size.min(SEARCHED)).unwrap_or(0)];
    for at in [0, size - bytes.len() as u64] {
        device.read_at(at, &mut bytes)?;
        if !are_zero(&bytes) {
            let what = "the device has other content; to use it for a database, fill its first and last MiB with zeros";
            return Err(not_ours(path, what));
        }
    }
    Ok(())
}

impl Disk for DeviceDisk {
    fn size(&self) -> Result<u64> {
        Ok(self.len.load(Ordering::Acquire))
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        match offset.checked_add(buf.len() as u64) {
            Some(end) if end <= self.len.load(Ordering::Acquire) => self.device.read_at(FRONT + offset, buf),
            _ if buf.is_empty() => Ok(()),
            _ => Err(Error::io("cannot read", &self.path, ErrorKind::UnexpectedEof.into())),
        }
    }

    fn write_as(&self, kind: WriteKind, offset: u64, buf: &[u8]) -> Result<()> {
        let end = offset.checked_add(buf.len() as u64).ok_or_else(|| self.full())?;
        if end > self.len.load(Ordering::Acquire) {
            let mut state = self.state.lock();
            self.prepare(&mut state, end)?;
            self.len.fetch_max(end, Ordering::AcqRel);
        }
        self.device.write_as(kind, FRONT + offset, buf)
    }

    fn sync(&self) -> Result<()> {
        self.sync_device()?;
        self.write_header(&mut self.state.lock())
    }

    fn sync_bytes(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.unless_failed(|| self.device.sync_bytes(FRONT + offset, bytes))
    }

    /// Trims whole blocks only, because a device can do no more.
    fn trim(&self, offset: u64, len: u64) -> Result<()> {
        let block = BLOCK as u64;
        let end = offset.saturating_add(len).min(self.len.load(Ordering::Acquire)) / block * block;
        let start = offset.next_multiple_of(block);
        if start < end { self.device.trim(FRONT + start, end - start) } else { Ok(()) }
    }

    fn resize(&self, len: u64) -> Result<()> {
        let mut state = self.state.lock();
        if len >= self.len.load(Ordering::Acquire) {
            self.prepare(&mut state, len)?;
            self.len.store(len, Ordering::Release);
            return Ok(());
        }
        self.len.store(len, Ordering::Release);
        // The header gets this length before the next sync returns, and before the bytes beyond it are overwritten.
        if !state.unfinished {
            self.write_header(&mut state)?;
            state.header = DeviceHeader { sequence: state.header.sequence + 1, len };
            state.unwritten = vec![0, 1];
        }
        state.zeros = len;
        Ok(())
    }

    fn will_read(&self, offset: u64, len: u64) {
        self.device.will_read(FRONT + offset, len);
    }

    fn wants_hints(&self) -> bool {
        self.device.wants_hints()
    }

    fn use_direct_io(&self) -> Result<bool> {
        self.device.use_direct_io()
    }

    /// The device belongs to the file, so there is nothing to be allocated.
    fn reserve_range(&self, range: Range<u64>) -> Result<()> {
        if range.end > self.capacity { Err(self.full()) } else { Ok(()) }
    }

    fn capacity(&self) -> Option<u64> {
        Some(self.capacity)
    }

    fn complete(&self) -> Result<()> {
        self.sync()?;
        let mut state = self.state.lock();
        let zeros = state.zeros;
        self.write_length(&mut state, zeros)?;
        state.unfinished = false;
        Ok(())
    }

    fn writes_blocks_whole(&self) -> bool {
        self.device.writes_blocks_whole()
    }

    fn trims_cheaply(&self) -> bool {
        true
    }

    fn allocated(&self) -> Result<u64> {
        self.size()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::MemoryDisk;
    use proptest::prelude::*;

    const MIB: u64 = 1 << 20;

    /// A device of so many MiB with bytes of an earlier use in the middle.
    fn device(mib: u64) -> Arc<MemoryDisk> {
        let device = Arc::new(MemoryDisk::new());
        device.resize(mib * MIB).unwrap();
        let middle = vec![0xA5; usize::try_from(mib.saturating_sub(2) * MIB).unwrap()];
        device.write_at(MIB, &middle).unwrap();
        device
    }

    fn open(device: &Arc<MemoryDisk>) -> Result<DeviceDisk> {
        DeviceDisk::open(device.clone(), Path::new("disk"))
    }

    fn content(disk: &DeviceDisk) -> Vec<u8> {
        let mut bytes = vec![0; usize::try_from(disk.size().unwrap()).unwrap()];
        disk.read_at(0, &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn a_device_with_content_is_refused_and_an_unfinished_creation_leaves_it_empty() {
        let device = device(4);
        for at in [0, 510, 1080, 65600, 4 * MIB - 1] {
            device.write_at(at, b"x").unwrap();
            assert!(matches!(open(&device), Err(Error::NotADatabase { .. })), "byte {at}");
            device.write_at(at, &[0]).unwrap();
        }
        let disk = open(&device).unwrap();
        disk.write_at(0, b"lost").unwrap();
        disk.sync().unwrap();
        let disk = open(&device).unwrap();
        assert_eq!(disk.size().unwrap(), 0);
        disk.write_at(4, b"kept").unwrap();
        disk.complete().unwrap();
        assert_eq!(content(&open(&device).unwrap())[..8], *b"\0\0\0\0kept");
    }

    #[test]
    fn one_damaged_header_is_tolerated_and_two_are_reported() {
        let device = device(4);
        let disk = open(&device).unwrap();
        disk.write_at(0, b"kept").unwrap();
        disk.complete().unwrap();
        let len = disk.size().unwrap();
        for copy in [0, 1] {
            let mut header = [0; 32];
            device.read_at(copy * 4096, &mut header).unwrap();
            device.write_at(copy * 4096 + 16, &[0xff; 16]).unwrap();
            let disk = open(&device).unwrap();
            assert!(disk.size().unwrap() >= len && content(&disk)[..4] == *b"kept", "copy {copy}");
            disk.sync().unwrap();
            let mut again = [0; 32];
            device.read_at(copy * 4096, &mut again).unwrap();
            assert_eq!(again, header, "a sync writes the right copy again");
        }
        [0, 4096].iter().for_each(|copy| device.write_at(copy + 16, &[0xff; 16]).unwrap());
        assert!(matches!(open(&device), Err(Error::CorruptMeta { .. })));
    }

    #[test]
    fn a_file_ends_where_the_device_ends() {
        let device = device(4);
        let disk = open(&device).unwrap();
        let capacity = disk.capacity().unwrap();
        assert_eq!(capacity, 4 * MIB - 8192);
        assert!(matches!(disk.write_at(capacity - 3, b"four"), Err(Error::Full { .. })));
        assert!(matches!(disk.resize(capacity + 1), Err(Error::Full { .. })));
        assert!(matches!(disk.reserve(capacity + 1), Err(Error::Full { .. })));
        disk.reserve(capacity).unwrap();
        disk.write_at(capacity - 4, b"four").unwrap();
        disk.complete().unwrap();
        assert_eq!(open(&device).unwrap().size().unwrap(), capacity);
        device.resize(3 * MIB).unwrap();
        assert!(matches!(open(&device), Err(Error::CorruptMeta { .. })));
        device.resize(MIB).unwrap();
        let small = Arc::new(MemoryDisk::new());
        assert!(matches!(open(&small), Err(Error::NotADatabase { .. })));
    }

    proptest! {
        /// The model is a file in memory with the same calls. A new process finds a file that is at least as long.
        #[test]
        fn a_device_agrees_with_a_file(steps in proptest::collection::vec((0u8..5, 0u64..2_000_000, 1usize..40_000, 1u8..), 1..25)) {
            let device = device(4);
            let model = MemoryDisk::new();
            let mut disk = open(&device).unwrap();
            [&disk as &dyn Disk, &model].iter().for_each(|disk| disk.write_at(0, b"x").unwrap());
            disk.complete().unwrap();
            for (kind, at, len, byte) in steps {
                match kind {
                    0 | 1 => {
                        let bytes = vec![byte; len];
                        disk.write_at(at, &bytes).unwrap();
                        model.write_at(at, &bytes).unwrap();
                    }
                    2 => {
                        // A file of no bytes counts as an empty device.
                        disk.resize(at + 1).unwrap();
                        model.resize(at + 1).unwrap();
                    }
                    3 => disk.sync().unwrap(),
                    _ => {
                        disk.sync().unwrap();
                        disk = open(&device).unwrap();
                        prop_assert!(disk.size().unwrap() >= model.size().unwrap());
                        disk.resize(model.size().unwrap()).unwrap();
                    }
                }
                prop_assert_eq!(disk.size().unwrap(), model.size().unwrap());
                let mut expected = vec![0; usize::try_from(model.size().unwrap()).unwrap()];
                model.read_at(0, &mut expected).unwrap();
                prop_assert!(content(&disk) == expected);
            }
        }
    }
}

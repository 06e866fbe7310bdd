//! A volume in memory whose files a test can inspect, damage and make fail.

use crate::base::{Error, Lsn, Result};
use crate::io::{Disk, LockGuard, Locked, OpenMode, Volume, WriteKind};
use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

#[derive(Clone, Debug, Default)]
pub(super) struct TestVolume(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    files: Mutex<BTreeMap<String, Arc<Mutex<Vec<u8>>>>>,
    /// Counts writes, starts of syncs and ends of syncs, in order.
    clock: AtomicU64,
    syncs: Mutex<Vec<(u64, u64)>>,
    /// The time of each write, by its first eight bytes, which are the start LSN of a batch.
    writes: Mutex<BTreeMap<[u8; 8], u64>>,
    fail_sync: AtomicBool,
    fail_write: AtomicBool,
    fail_remove: AtomicBool,
    fail_remove_late: AtomicBool,
    capacity: Mutex<Option<u64>>,
    slow_sync: AtomicBool,
    /// Writes of a header with the mark wait for this lock.
    mark_gate: Mutex<()>,
    /// How many such writes have begun.
    marks: AtomicU64,
    wrong: Mutex<Option<WrongBytes>>,
}

/// Bytes that some reads return wrong.
#[derive(Clone, Debug)]
struct WrongBytes {
    name: String,
    bytes: Range<u64>,
    /// How many reads return them wrong.
    reads: u32,
    /// They are wrong until the file cache is forgotten.
    cached: bool,
}

impl TestVolume {
    pub(super) fn now(&self) -> u64 {
        self.0.clock.fetch_add(1, Ordering::SeqCst)
    }

    /// (begin, end) of each file sync so far, on the clock.
    pub(super) fn syncs(&self) -> Vec<(u64, u64)> {
        self.0.syncs.lock().clone()
    }

    /// The time at which the batch that starts at `lsn` was written.
    pub(super) fn written(&self, lsn: Lsn) -> u64 {
        self.0.writes.lock()[&lsn.0.to_le_bytes()]
    }

    /// The time at which the last segment header was written.
    pub(super) fn written_header(&self) -> u64 {
        self.0.writes.lock()[b"DURALOG\n"]
    }

    pub(super) fn fail_sync(&self, fail: bool) {
        self.0.fail_sync.store(fail, Ordering::SeqCst);
    }

    pub(super) fn fail_write(&self, fail: bool) {
        self.0.fail_write.store(fail, Ordering::SeqCst);
    }

    pub(super) fn fail_remove(&self, fail: bool) {
        self.0.fail_remove.store(fail, Ordering::SeqCst);
    }

    /// A removal takes effect, and returns an error.
    pub(super) fn fail_remove_late(&self, fail: bool) {
        self.0.fail_remove_late.store(fail, Ordering::SeqCst);
    }

    pub(super) fn slow_sync(&self) {
        self.0.slow_sync.store(true, Ordering::SeqCst);
    }

    /// Until the guard is dropped, the mark is not written to the header of any segment.
    pub(super) fn hold_marks(&self) -> MutexGuard<'_, ()> {
        self.0.mark_gate.lock()
    }

    /// How many writes of a header with the mark have begun.
    pub(super) fn marks(&self) -> u64 {
        self.0.marks.load(Ordering::SeqCst)
    }

    /// The next `reads` reads of these bytes return others. `None`: all reads, until [`Disk::forget_cached`].
    pub(super) fn spoil(&self, name: &str, bytes: Range<u64>, reads: Option<u32>) {
        let (name, cached) = (name.into(), reads.is_none());
        *self.0.wrong.lock() = Some(WrongBytes { name, bytes, reads: reads.unwrap_or(u32::MAX), cached });
    }

    /// Reservations beyond this many bytes a file fail.
    pub(super) fn set_capacity(&self, bytes: Option<u64>) {
        *self.0.capacity.lock() = bytes;
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.0.files.lock().keys().cloned().collect()
    }

    pub(super) fn bytes(&self, name: &str) -> Vec<u8> {
        self.0.files.lock()[name].lock().clone()
    }

    pub(super) fn set_bytes(&self, name: &str, bytes: Vec<u8>) {
        self.0.files.lock().insert(name.into(), Arc::new(Mutex::new(bytes)));
    }

    /// An independent copy.
    pub(super) fn fork(&self) -> TestVolume {
        let copy = TestVolume::default();
        for name in self.names() {
            copy.set_bytes(&name, self.bytes(&name));
        }
        copy
    }
}

fn failure(action: &'static str, name: &str) -> Error {
    Error::io(action, name, std::io::Error::other("a failure that the test asked for"))
}

#[derive(Debug)]
struct TestDisk {
    shared: Arc<Shared>,
    name: String,
    bytes: Arc<Mutex<Vec<u8>>>,
}

impl TestDisk {
    fn error(&self, action: &'static str) -> Error {
        failure(action, &self.name)
    }
}

impl Disk for TestDisk {
    fn size(&self) -> Result<u64> {
        Ok(self.bytes.lock().len() as u64)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let bytes = self.bytes.lock();
        let from = offset as usize;
        let found = bytes.get(from..from + buf.len()).ok_or_else(|| self.error("cannot read"))?;
        buf.copy_from_slice(found);
        if let Some(wrong) = &mut *self.shared.wrong.lock()
            && wrong.name == self.name
            && wrong.reads > 0
        {
            let places = (offset..).zip(buf.iter_mut()).filter(|(at, _)| wrong.bytes.contains(at));
            let spoilt = places.map(|(_, byte)| *byte ^= 0x41).count();
            wrong.reads -= u32::from(spoilt > 0);
        }
        Ok(())
    }

    fn forget_cached(&self, offset: u64) {
        self.shared
            .wrong
            .lock()
            .take_if(|wrong| wrong.cached && wrong.name == self.name && wrong.bytes.start >= offset);
    }

    fn write_as(&self, _kind: WriteKind, offset: u64, buf: &[u8]) -> Result<()> {
        if self.shared.fail_write.load(Ordering::SeqCst) {
            return Err(self.error("cannot write"));
        }
        if buf.starts_with(b"DURALOG\n") && buf[36] & 4 != 0 {
            self.shared.marks.fetch_add(1, Ordering::SeqCst);
            drop(self.shared.mark_gate.lock());
        }
        let mut bytes = self.bytes.lock();
        let end = offset as usize + buf.len();
        if bytes.len() < end {
            bytes.resize(end, 0);
        }
        bytes[offset as usize..end].copy_from_slice(buf);
        if let Some(first) = buf.first_chunk() {
            let now = self.shared.clock.fetch_add(1, Ordering::SeqCst);
            self.shared.writes.lock().insert(*first, now);
        }
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        let begin = self.shared.clock.fetch_add(1, Ordering::SeqCst);
        if self.shared.slow_sync.load(Ordering::SeqCst) {
            std::thread::sleep(std::time::Duration::from_micros(300));
        }
        if self.shared.fail_sync.load(Ordering::SeqCst) {
            return Err(self.error("cannot sync"));
        }
        let end = self.shared.clock.fetch_add(1, Ordering::SeqCst);
        self.shared.syncs.lock().push((begin, end));
        Ok(())
    }

    fn trim(&self, _offset: u64, _len: u64) -> Result<()> {
        Ok(())
    }

    fn resize(&self, len: u64) -> Result<()> {
        self.bytes.lock().resize(len as usize, 0);
        Ok(())
    }

    fn reserve_range(&self, range: Range<u64>) -> Result<()> {
        match *self.shared.capacity.lock() {
            Some(capacity) if range.end > capacity => Err(Error::Full { path: PathBuf::from(&self.name) }),
            _ => Ok(()),
        }
    }

    fn allocated(&self) -> Result<u64> {
        self.size()
    }
}

impl Volume for TestVolume {
    fn open(&self, name: &str, mode: OpenMode) -> Result<Arc<dyn Disk>> {
        let mut files = self.0.files.lock();
        let bytes = match (files.get(name), mode) {
            (Some(_), OpenMode::CreateNew) => return Err(Error::Exists { path: name.into() }),
            (Some(bytes), _) => Arc::clone(bytes),
            (None, OpenMode::CreateNew) => Arc::clone(files.entry(name.into()).or_default()),
            (None, _) => return Err(Error::NotFound { path: name.into() }),
        };
        Ok(Arc::new(TestDisk { shared: Arc::clone(&self.0), name: name.into(), bytes }))
    }

    fn remove(&self, name: &str) -> Result<()> {
        if self.0.fail_remove.load(Ordering::SeqCst) {
            return Err(failure("cannot remove", name));
        }
        self.0.files.lock().remove(name);
        if self.0.fail_remove_late.load(Ordering::SeqCst) {
            return Err(failure("cannot remove", name));
        }
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        let mut files = self.0.files.lock();
        if files.contains_key(from) && files.contains_key(to) {
            return Err(Error::Exists { path: to.into() });
        }
        let bytes = files.remove(from).ok_or_else(|| Error::NotFound { path: from.into() })?;
        files.insert(to.into(), bytes);
        Ok(())
    }

    fn replace(&self, from: &str, to: &str) -> Result<()> {
        self.remove(to)?;
        self.rename(from, to)
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>> {
        Ok(self.names().into_iter().filter(|name| name.starts_with(prefix)).collect())
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn lock(&self, name: &str, _exclusive: bool) -> Result<Locked> {
        #[derive(Debug)]
        struct Free;
        impl LockGuard for Free {
            fn is_of(&self, _name: &str) -> Result<bool> {
                Ok(true)
            }
        }
        Ok(Locked { disk: self.open(name, OpenMode::Write)?, guard: Box::new(Free) })
    }

    fn path(&self, name: &str) -> PathBuf {
        PathBuf::from(name)
    }
}

//! Files in memory, for databases without a file and for tests. They behave like real files: they have holes and locks,
//! and a handle stays valid after its file is removed. A sync does nothing.

use super::blocks::{BLOCK, parts};
use super::{Disk, LockGuard, Locked, OpenMode, Volume, WriteKind};
use crate::base::{Error, Result};
use parking_lot::{Mutex, RwLock};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// A device block. `None` is a hole, which reads as zeros.
type MemoryBlock = RwLock<Option<Box<[u8; BLOCK]>>>;

/// The content of a file, shared by its handles.
#[derive(Debug, Default)]
struct FileContent {
    len: u64,
    blocks: Vec<MemoryBlock>,
}

impl FileContent {
    fn block(&self, number: u64) -> Option<&MemoryBlock> {
        self.blocks.get(usize::try_from(number).ok()?)
    }

    /// Copies the bytes at `offset` to `buf`. The caller has checked that they are inside the file.
    fn read(&self, offset: u64, buf: &mut [u8]) {
        for part in parts(offset, buf.len()) {
            let Some(to) = buf.get_mut(part.at..part.at + part.len) else { continue };
            let block = self.block(part.block).map(|block| block.read());
            match block.as_ref().and_then(|block| block.as_ref()?.get(part.start..part.start + part.len)) {
                Some(from) => to.copy_from_slice(from),
                None => to.fill(0),
            }
        }
    }

    /// Copies `buf` to `offset`. The caller has checked that the bytes are inside the file.
    fn write(&self, offset: u64, buf: &[u8]) {
        for part in parts(offset, buf.len()) {
            let (Some(block), Some(from)) = (self.block(part.block), buf.get(part.at..part.at + part.len)) else {
                continue;
            };
            let mut block = block.write();
            let bytes = block.get_or_insert_with(|| Box::new([0; BLOCK]));
            if let Some(to) = bytes.get_mut(part.start..part.start + part.len) {
                to.copy_from_slice(from);
            }
        }
    }

    /// Sets `len` bytes at `offset` to zero. Whole blocks become holes.
    fn zero(&self, offset: u64, len: u64) {
        let len = len.min(self.len.saturating_sub(offset));
        for part in parts(offset, usize::try_from(len).unwrap_or(usize::MAX)) {
            let Some(block) = self.block(part.block) else { return };
            let mut block = block.write();
            if part.len == BLOCK {
                *block = None;
            } else if let Some(bytes) = block.as_mut()
                && let Some(bytes) = bytes.get_mut(part.start..part.start + part.len)
            {
                bytes.fill(0);
            }
        }
    }

    /// Sets the length. Returns false if there is not enough memory for the list of blocks.
    fn resize(&mut self, len: u64) -> bool {
        let Ok(blocks) = usize::try_from(len.div_ceil(BLOCK as u64)) else { return false };
        if self.blocks.try_reserve(blocks.saturating_sub(self.blocks.len())).is_err() {
            return false;
        }
        // If the file grows again, the bytes after the old end must be zero.
        self.zero(len, u64::MAX);
        self.blocks.resize_with(blocks, MemoryBlock::default);
        self.len = len;
        true
    }
}

#[derive(Debug, Default)]
struct Holders {
    shared: usize,
    exclusive: bool,
}

/// A file, with or without a name.
#[derive(Debug, Default)]
struct MemoryFile {
    content: RwLock<FileContent>,
    holders: Mutex<Holders>,
}

/// A handle of a file in memory.
#[derive(Debug)]
pub struct MemoryDisk {
    file: Arc<MemoryFile>,
    path: PathBuf,
    writable: bool,
}

impl MemoryDisk {
    /// An empty file without a name.
    pub fn new() -> MemoryDisk {
        MemoryDisk { file: Arc::default(), path: PathBuf::from(FOLDER), writable: true }
    }

    fn writable(&self) -> Result<()> {
        if self.writable { Ok(()) } else { Err(Error::ReadOnly) }
    }

    fn invalid(&self, action: &'static str) -> Error {
        Error::io(action, &self.path, ErrorKind::InvalidInput.into())
    }

    fn full(&self) -> Error {
        Error::Full { path: self.path.clone() }
    }
}

impl Default for MemoryDisk {
    fn default() -> MemoryDisk {
        MemoryDisk::new()
    }
}

impl Disk for MemoryDisk {
    fn size(&self) -> Result<u64> {
        Ok(self.file.content.read().len)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let content = self.file.content.read();
        match offset.checked_add(buf.len() as u64) {
            Some(end) if end <= content.len => {
                content.read(offset, buf);
                Ok(())
            }
            _ if buf.is_empty() => Ok(()),
            _ => Err(Error::io("cannot read", &self.path, ErrorKind::UnexpectedEof.into())),
        }
    }

    fn write_as(&self, _kind: WriteKind, offset: u64, buf: &[u8]) -> Result<()> {
        self.writable()?;
        if buf.is_empty() {
            return Ok(());
        }
        let end = offset.checked_add(buf.len() as u64).ok_or_else(|| self.invalid("cannot write"))?;
        {
            let content = self.file.content.read();
            if end <= content.len {
                content.write(offset, buf);
                return Ok(());
            }
        }
        let mut content = self.file.content.write();
        if end > content.len && !content.resize(end) {
            return Err(self.full());
        }
        content.write(offset, buf);
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn trim(&self, offset: u64, len: u64) -> Result<()> {
        self.writable()?;
        self.file.content.read().zero(offset, len);
        Ok(())
    }

    fn resize(&self, len: u64) -> Result<()> {
        self.writable()?;
        if self.file.content.write().resize(len) { Ok(()) } else { Err(self.full()) }
    }

    /// Reserves nothing: memory cannot be allocated in advance.
    fn reserve_range(&self, _range: Range<u64>) -> Result<()> {
        self.writable()
    }

    fn allocated(&self) -> Result<u64> {
        let content = self.file.content.read();
        let used = content.blocks.iter().filter(|block| block.read().is_some()).count();
        Ok(used as u64 * BLOCK as u64)
    }
}

/// The path of the folder in messages.
const FOLDER: &str = "(memory)";

/// A folder in memory. Clones refer to the same folder.
#[derive(Debug, Clone, Default)]
pub struct MemoryVolume {
    files: Arc<Mutex<BTreeMap<String, Arc<MemoryFile>>>>,
}

impl MemoryVolume {
    /// An empty folder.
    pub fn new() -> MemoryVolume {
        MemoryVolume::default()
    }
}

impl Volume for MemoryVolume {
    fn open(&self, name: &str, mode: OpenMode) -> Result<Arc<dyn Disk>> {
        let mut files = self.files.lock();
        let path = self.path(name);
        let file = match (files.get(name), mode) {
            (Some(_), OpenMode::CreateNew) => return Err(Error::Exists { path }),
            (Some(file), _) => Arc::clone(file),
            (None, OpenMode::CreateNew) => Arc::clone(files.entry(name.to_owned()).or_default()),
            (None, _) => return Err(Error::NotFound { path }),
        };
        Ok(Arc::new(MemoryDisk { file, path, writable: mode != OpenMode::Read }))
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.files.lock().remove(name);
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        let mut files = self.files.lock();
        if files.contains_key(to) {
            return Err(Error::Exists { path: self.path(to) });
        }
        let file = files.remove(from).ok_or_else(|| Error::NotFound { path: self.path(from) })?;
        files.insert(to.to_owned(), file);
        Ok(())
    }

    fn replace(&self, from: &str, to: &str) -> Result<()> {
        let mut files = self.files.lock();
        let file = files.remove(from).ok_or_else(|| Error::NotFound { path: self.path(from) })?;
        files.insert(to.to_owned(), file);
        Ok(())
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>> {
        let files = self.files.lock();
        Ok(files
            .range(prefix.to_owned()..)
            .map(|(name, _)| name)
            .take_while(|n| n.starts_with(prefix))
            .cloned()
            .collect())
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn lock(&self, name: &str, exclusive: bool) -> Result<Locked> {
        let files = self.files.lock();
        let file = files.get(name).ok_or_else(|| Error::NotFound { path: self.path(name) })?;
        let mut holders = file.holders.lock();
        if holders.exclusive || (exclusive && holders.shared > 0) {
            return Err(Error::Locked { path: self.path(name) });
        }
        if exclusive {
            holders.exclusive = true;
        } else {
            holders.shared += 1;
        }
        let disk = MemoryDisk { file: Arc::clone(file), path: self.path(name), writable: exclusive };
        let guard = MemoryLock { volume: self.clone(), file: Arc::clone(file), exclusive };
        Ok(Locked { disk: Arc::new(disk), guard: Box::new(guard) })
    }

    fn path(&self, name: &str) -> PathBuf {
        PathBuf::from(FOLDER).join(name)
    }
}

/// A held lock.
#[derive(Debug)]
struct MemoryLock {
    volume: MemoryVolume,
    file: Arc<MemoryFile>,
    exclusive: bool,
}

impl LockGuard for MemoryLock {
    fn is_of(&self, name: &str) -> Result<bool> {
        Ok(self.volume.files.lock().get(name).is_some_and(|named| Arc::ptr_eq(named, &self.file)))
    }
}

impl Drop for MemoryLock {
    fn drop(&mut self) {
        let mut holders = self.file.holders.lock();
        if self.exclusive {
            holders.exclusive = false;
        } else {
            holders.shared -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, Clone)]
    enum DiskOp {
        Write(usize, Vec<u8>),
        Trim(usize, usize),
        Resize(usize),
    }

    fn op() -> impl Strategy<Value = DiskOp> {
        let at = 0usize..5 * BLOCK;
        prop_oneof![
            (at.clone(), 1usize..9000, 1u8..).prop_map(|(at, len, byte)| DiskOp::Write(at, vec![byte; len])),
            (at.clone(), 0usize..9000).prop_map(|(at, len)| DiskOp::Trim(at, len)),
            at.prop_map(DiskOp::Resize),
        ]
    }

    proptest! {
        #[test]
        fn a_disk_is_a_vector_of_bytes(ops in prop::collection::vec(op(), 1..30)) {
            let disk = MemoryDisk::new();
            let mut model: Vec<u8> = Vec::new();
            for op in ops {
                match op {
                    DiskOp::Write(at, bytes) => {
                        disk.write_at(at as u64, &bytes).unwrap();
                        model.resize(model.len().max(at + bytes.len()), 0);
                        model[at..at + bytes.len()].copy_from_slice(&bytes);
                    }
                    DiskOp::Trim(at, len) => {
                        disk.trim(at as u64, len as u64).unwrap();
                        let end = (at + len).min(model.len());
                        model[at.min(end)..end].fill(0);
                    }
                    DiskOp::Resize(len) => {
                        disk.resize(len as u64).unwrap();
                        model.resize(len, 0);
                    }
                }
                prop_assert_eq!(disk.size().unwrap(), model.len() as u64);
                let mut bytes = vec![7; model.len()];
                disk.read_at(0, &mut bytes).unwrap();
                prop_assert!(bytes == model);
            }
        }
    }

    #[test]
    fn offsets_beyond_the_largest_number_are_errors() {
        let disk = MemoryDisk::new();
        assert!(matches!(disk.write_at(u64::MAX, b"xy"), Err(Error::Io { .. })));
        assert!(matches!(disk.read_at(u64::MAX, &mut [0; 2]), Err(Error::Io { .. })));
        assert!(matches!(disk.resize(u64::MAX), Err(Error::Full { .. })));
        disk.trim(u64::MAX, u64::MAX).unwrap();
        assert_eq!(disk.size().unwrap(), 0);
    }
}

//! A volume on top of another volume, which it never changes. Writes are kept in memory and hide the bytes below. It
//! shows the effect of a change on files that do not change.

use super::blocks::SECTOR;
use super::blocks::{BLOCK, parts};
use super::{Disk, Locked, MemoryVolume, OpenMode, Volume, WriteKind};
use crate::base::{Error, Result};
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// The changes of a file.
#[derive(Debug)]
struct OverlayChanges {
    len: u64,
    /// The length of the part of the file below that is still visible. The bytes from here on come from `blocks` or are
    /// zero.
    below: u64,
    blocks: BTreeMap<u64, Box<[u8; BLOCK]>>,
}

/// A file of the volume below, and its changes.
#[derive(Debug)]
struct OverlayDisk {
    below: Arc<dyn Disk>,
    path: PathBuf,
    written: RwLock<OverlayChanges>,
}

impl OverlayDisk {
    fn new(below: Arc<dyn Disk>, path: PathBuf) -> Result<OverlayDisk> {
        let len = below.size()?;
        let written = RwLock::new(OverlayChanges { len, below: len, blocks: BTreeMap::new() });
        Ok(OverlayDisk { below, path, written })
    }

    /// The current content of a block, for a write to a part of it.
    fn block(&self, written: &OverlayChanges, block: u64) -> Box<[u8; BLOCK]> {
        if let Some(bytes) = written.blocks.get(&block) {
            return bytes.clone();
        }
        let mut bytes = Box::new([0; BLOCK]);
        let start = block.saturating_mul(BLOCK as u64);
        let there = written.below.saturating_sub(start).min(BLOCK as u64);
        if let Some(part) = usize::try_from(there).ok().and_then(|there| bytes.get_mut(..there)) {
            read_readable_parts(&*self.below, start, part);
        }
        bytes
    }

    fn invalid(&self, action: &'static str, kind: ErrorKind) -> Error {
        Error::io(action, &self.path, kind.into())
    }
}

/// Fills `buf` with the bytes at `offset`. Sectors that cannot be read become zeros.
pub(crate) fn read_readable_parts(disk: &dyn Disk, offset: u64, buf: &mut [u8]) {
    if disk.read_at(offset, buf).is_ok() {
        return;
    }
    // A device that cannot read one sector may still read the next.
    for (at, sector) in (offset..).step_by(SECTOR).zip(buf.chunks_mut(SECTOR)) {
        if disk.read_at(at, sector).is_err() {
            sector.fill(0);
        }
    }
}

impl Disk for OverlayDisk {
    fn size(&self) -> Result<u64> {
        Ok(self.written.read().len)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let written = self.written.read();
        let end = offset.checked_add(buf.len() as u64);
        if end.is_none_or(|end| end > written.len) && !buf.is_empty() {
            return Err(self.invalid("cannot read", ErrorKind::UnexpectedEof));
        }
        let there = usize::try_from(written.below.saturating_sub(offset)).unwrap_or(usize::MAX).min(buf.len());
        let (old, new) = buf.split_at_mut_checked(there).unwrap_or_default();
        self.below.read_at(offset, old)?;
        new.fill(0);
        for part in parts(offset, buf.len()) {
            let from = written.blocks.get(&part.block).and_then(|bytes| bytes.get(part.start..part.start + part.len));
            if let (Some(from), Some(to)) = (from, buf.get_mut(part.at..part.at + part.len)) {
                to.copy_from_slice(from);
            }
        }
        Ok(())
    }

    fn write_as(&self, _kind: WriteKind, offset: u64, buf: &[u8]) -> Result<()> {
        let invalid = || self.invalid("cannot write", ErrorKind::InvalidInput);
        let end = offset.checked_add(buf.len() as u64).ok_or_else(invalid)?;
        let mut written = self.written.write();
        for part in parts(offset, buf.len()) {
            let mut bytes = self.block(&written, part.block);
            let to = bytes.get_mut(part.start..part.start + part.len);
            if let (Some(to), Some(from)) = (to, buf.get(part.at..part.at + part.len)) {
                to.copy_from_slice(from);
            }
            written.blocks.insert(part.block, bytes);
        }
        written.len = written.len.max(end);
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn will_read(&self, offset: u64, len: u64) {
        self.below.will_read(offset, len);
    }

    fn wants_hints(&self) -> bool {
        self.below.wants_hints()
    }

    fn use_direct_io(&self) -> Result<bool> {
        self.below.use_direct_io()
    }

    fn trim(&self, _offset: u64, _len: u64) -> Result<()> {
        Ok(())
    }

    fn resize(&self, len: u64) -> Result<()> {
        let mut written = self.written.write();
        if len < written.len {
            let last = len / BLOCK as u64;
            let mut bytes = self.block(&written, last);
            let kept = usize::try_from(len % BLOCK as u64).unwrap_or_default();
            bytes.get_mut(kept..).unwrap_or_default().fill(0);
            written.blocks.retain(|block, _| *block < last);
            written.blocks.insert(last, bytes);
            written.below = written.below.min(len);
        }
        written.len = len;
        Ok(())
    }

    fn reserve_range(&self, _range: Range<u64>) -> Result<()> {
        Ok(())
    }

    fn allocated(&self) -> Result<u64> {
        self.below.allocated()
    }
}

/// A folder that starts with the content of another folder. All changes are lost when it is dropped.
#[derive(Debug)]
pub struct OverlayVolume {
    below: Arc<dyn Volume>,
    /// The files of the folder below that were opened, by name.
    over: Mutex<BTreeMap<String, Arc<OverlayDisk>>>,
    /// The files that are not in the folder below.
    new: MemoryVolume,
    removed: Mutex<BTreeSet<String>>,
}

impl OverlayVolume {
    /// A volume on top of the folder `below`.
    pub fn new(below: Arc<dyn Volume>) -> OverlayVolume {
        OverlayVolume { below, over: Mutex::default(), new: MemoryVolume::new(), removed: Mutex::default() }
    }

    fn is_below(&self, name: &str) -> Result<bool> {
        Ok(!self.removed.lock().contains(name) && self.below.list(name)?.iter().any(|found| found == name))
    }

    /// The overlay of a file of the folder below. Opens the file below if that was not done before.
    fn over(&self, name: &str, below: impl FnOnce() -> Result<Arc<dyn Disk>>) -> Result<Arc<dyn Disk>> {
        let mut over = self.over.lock();
        if let Some(disk) = over.get(name) {
            return Ok(disk.clone());
        }
        let disk = Arc::new(OverlayDisk::new(below()?, self.path(name))?);
        over.insert(name.to_owned(), disk.clone());
        Ok(disk)
    }
}

impl Volume for OverlayVolume {
    fn open(&self, name: &str, mode: OpenMode) -> Result<Arc<dyn Disk>> {
        if !self.is_below(name)? {
            return match self.new.open(name, mode) {
                Err(Error::NotFound { .. }) => Err(Error::NotFound { path: self.path(name) }),
                opened => opened,
            };
        }
        if mode == OpenMode::CreateNew {
            return Err(Error::Exists { path: self.path(name) });
        }
        self.over(name, || self.below.open(name, OpenMode::Read))
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.new.remove(name)?;
        self.over.lock().remove(name);
        self.removed.lock().insert(name.to_owned());
        Ok(())
    }

    /// Works for new files only: files of the folder below keep their names.
    fn rename(&self, from: &str, to: &str) -> Result<()> {
        if self.is_below(to)? {
            return Err(Error::Exists { path: self.path(to) });
        }
        self.new.rename(from, to)
    }

    /// The file `from` must be a new one: files of the folder below keep their names.
    fn replace(&self, from: &str, to: &str) -> Result<()> {
        self.new.replace(from, to)?;
        self.over.lock().remove(to);
        self.removed.lock().insert(to.to_owned());
        Ok(())
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>> {
        let removed = self.removed.lock();
        let mut names = self.below.list(prefix)?;
        names.retain(|name| !removed.contains(name));
        names.extend(self.new.list(prefix)?);
        names.sort_unstable();
        Ok(names)
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    /// Always takes a shared lock: nothing is written to the folder below.
    fn lock(&self, name: &str, _exclusive: bool) -> Result<Locked> {
        let Locked { disk, guard } = self.below.lock(name, false)?;
        Ok(Locked { disk: self.over(name, || Ok(disk))?, guard })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.below.path(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, Clone)]
    enum OverlayOp {
        Write(usize, Vec<u8>),
        Resize(usize),
    }

    fn op() -> impl Strategy<Value = OverlayOp> {
        let at = 0usize..5 * BLOCK;
        prop_oneof![
            (at.clone(), 1usize..9000, 1u8..).prop_map(|(at, len, byte)| OverlayOp::Write(at, vec![byte; len])),
            at.prop_map(OverlayOp::Resize),
        ]
    }

    fn below(bytes: &[u8]) -> Arc<MemoryVolume> {
        let volume = Arc::new(MemoryVolume::new());
        volume.open("file", OpenMode::CreateNew).unwrap().write_at(0, bytes).unwrap();
        volume
    }

    fn content(disk: &dyn Disk) -> Vec<u8> {
        let mut bytes = vec![7; usize::try_from(disk.size().unwrap()).unwrap()];
        disk.read_at(0, &mut bytes).unwrap();
        bytes
    }

    proptest! {
        #[test]
        fn a_file_changes_and_the_one_below_does_not(len in 1usize..3 * BLOCK, ops in prop::collection::vec(op(), 1..20)) {
            let mut model = vec![9u8; len];
            let volume = below(&model);
            let overlay = OverlayVolume::new(volume.clone());
            let disk = overlay.open("file", OpenMode::Write).unwrap();
            for op in ops {
                match op {
                    OverlayOp::Write(at, bytes) => {
                        disk.write_at(at as u64, &bytes).unwrap();
                        model.resize(model.len().max(at + bytes.len()), 0);
                        model[at..at + bytes.len()].copy_from_slice(&bytes);
                    }
                    OverlayOp::Resize(len) => {
                        disk.resize(len as u64).unwrap();
                        model.resize(len, 0);
                    }
                }
                prop_assert!(content(&*disk) == model);
            }
            let again = overlay.open("file", OpenMode::Read).unwrap();
            prop_assert!(content(&*again) == model, "both handles refer to one file");
            prop_assert!(content(&*volume.open("file", OpenMode::Read).unwrap()) == vec![9; len]);
        }
    }

    #[test]
    fn names_change_in_the_overlay_only() {
        let volume = below(b"x");
        let overlay = OverlayVolume::new(volume.clone());
        assert!(matches!(overlay.open("file", OpenMode::CreateNew), Err(Error::Exists { .. })));
        assert!(matches!(overlay.open("none", OpenMode::Read), Err(Error::NotFound { .. })));
        overlay.open("fresh", OpenMode::CreateNew).unwrap();
        assert!(matches!(overlay.rename("fresh", "file"), Err(Error::Exists { .. })));
        overlay.rename("fresh", "fresher").unwrap();
        assert_eq!(overlay.list("f").unwrap(), ["file", "fresher"]);
        overlay.remove("file").unwrap();
        assert!(matches!(overlay.open("file", OpenMode::Read), Err(Error::NotFound { .. })));
        assert_eq!(overlay.list("f").unwrap(), ["fresher"]);
        assert_eq!(volume.list("").unwrap(), ["file"]);
        assert!(matches!(
            overlay.open("fresher", OpenMode::Write).unwrap().read_at(9, &mut [0]),
            Err(Error::Io { .. })
        ));
    }

    #[test]
    fn an_exclusive_lock_of_an_overlay_is_shared_below() {
        let volume = below(b"x");
        let overlay = OverlayVolume::new(volume.clone());
        let held = overlay.lock("file", true).unwrap();
        assert!(volume.lock("file", false).is_ok());
        assert!(matches!(volume.lock("file", true), Err(Error::Locked { .. })));
        drop(held);
        assert!(volume.lock("file", true).is_ok());
    }
}

//! A file on the drive: the compressed size of each block, and the counted calls.

use super::counts::{Call, Meter};
use crate::image::usize_of;
use duramen::io::{Disk, WriteKind};
use duramen::{Error, Result};
use flate2::{Compress, Compression, FlushCompress};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Bytes of a block.
pub(super) const BLOCK: u64 = WHOLE as u64;
const BLOCK_LEN: usize = usize_of(BLOCK);
/// The size of a block that is stored as it is.
const WHOLE: u16 = 4096;
/// The size of a block that was not yet compressed.
const UNKNOWN: u16 = u16::MAX;

/// The number of the next file.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// The blocks of a file, which its handles share.
#[derive(Debug)]
pub(super) struct DriveFile {
    number: u64,
    blocks: Mutex<Blocks>,
}

struct Blocks {
    /// The compressed size of each block, or [`UNKNOWN`]; 0 for a block that was never written or was trimmed.
    stored: Vec<u16>,
    /// Blocks of the log that were written since the last sync.
    unsynced: BTreeSet<u64>,
    /// True if blocks are not compressed.
    stores_whole: bool,
    zlib: Compress,
    compressed: Vec<u8>,
}

impl std::fmt::Debug for Blocks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Blocks").field("blocks", &self.stored.len()).field("unsynced", &self.unsynced).finish()
    }
}

/// The blocks that these bytes touch.
fn touched(offset: u64, len: u64) -> Range<u64> {
    offset / BLOCK..(offset + len).div_ceil(BLOCK)
}

impl Blocks {
    fn new(stores_whole: bool) -> Blocks {
        let (zlib, compressed) = (Compress::new(Compression::fast(), true), vec![0; 2 * BLOCK_LEN]);
        Blocks { stored: Vec::new(), unsynced: BTreeSet::new(), stores_whole, zlib, compressed }
    }

    /// Stores a block and returns its size on the drive.
    fn store(&mut self, block: u64, bytes: &[u8; BLOCK_LEN]) -> Result<u64> {
        if self.stores_whole {
            self.set(block, WHOLE);
            return Ok(BLOCK);
        }
        self.zlib.reset();
        let done = self.zlib.compress(bytes, &mut self.compressed, FlushCompress::Finish);
        done.map_err(|error| Error::io("cannot compress", "a block", std::io::Error::other(error)))?;
        let size = self.zlib.total_out().min(BLOCK);
        self.set(block, size as u16);
        Ok(size)
    }

    fn set(&mut self, block: u64, size: u16) {
        let at = usize_of(block);
        if self.stored.len() <= at {
            self.stored.resize(at + 1, 0);
        }
        self.stored[at] = size;
    }

    /// The compressed size of a range of blocks. Compresses those that were not compressed yet.
    fn size(&mut self, disk: &dyn Disk, blocks: Range<u64>) -> Result<u64> {
        let (mut bytes, mut size) = ([0; BLOCK_LEN], 0);
        for block in blocks.start..blocks.end.min(self.stored.len() as u64) {
            size += match self.stored[usize_of(block)] {
                UNKNOWN => {
                    read_block(disk, block, &mut bytes)?;
                    self.store(block, &bytes)?
                }
                known => u64::from(known),
            };
        }
        Ok(size)
    }

    /// Stores a range of blocks, whose bytes are in `disk`, and returns their compressed size.
    fn store_from(&mut self, disk: &dyn Disk, blocks: Range<u64>) -> Result<u64> {
        let (mut bytes, mut size) = ([0; BLOCK_LEN], 0);
        for block in blocks {
            read_block(disk, block, &mut bytes)?;
            size += self.store(block, &bytes)?;
        }
        Ok(size)
    }

    fn free(&mut self, blocks: Range<u64>) {
        let end = self.stored.len() as u64;
        self.stored[usize_of(blocks.start.min(end))..usize_of(blocks.end.min(end))].fill(0);
        self.unsynced.retain(|block| !blocks.contains(block));
    }
}

/// Reads a block. Bytes after the end of the file are zeros.
fn read_block(disk: &dyn Disk, block: u64, bytes: &mut [u8; BLOCK_LEN]) -> Result<()> {
    let offset = block * BLOCK;
    let there = disk.size()?.saturating_sub(offset).min(BLOCK) as usize;
    bytes[there..].fill(0);
    disk.read_at(offset, &mut bytes[..there])
}

impl DriveFile {
    /// A file with the content of `disk`. Blocks of zeros need no space. The others are compressed when their size is
    /// needed.
    pub(super) fn load(disk: &dyn Disk, traits: Traits) -> Result<DriveFile> {
        let mut blocks = Blocks::new(traits.stores_whole);
        let mut bytes = [0; BLOCK_LEN];
        for block in touched(0, disk.size()?) {
            read_block(disk, block, &mut bytes)?;
            if bytes.iter().any(|byte| *byte != 0) {
                blocks.set(block, UNKNOWN);
            }
        }
        Ok(DriveFile { number: NEXT.fetch_add(1, Ordering::Relaxed), blocks: Mutex::new(blocks) })
    }

    /// The compressed size of all blocks. `disk` has their content.
    pub(super) fn stored_bytes(&self, disk: &dyn Disk) -> Result<u64> {
        self.blocks.lock().size(disk, 0..u64::MAX)
    }
}

/// An open file of a [`super::DriveVolume`].
#[derive(Debug)]
pub(super) struct DriveDisk {
    inner: Arc<dyn Disk>,
    file: Arc<DriveFile>,
    meter: Arc<Meter>,
    traits: Traits,
}

/// The properties of a drive.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Traits {
    /// The time of a sync.
    pub(super) sync_time: Duration,
    /// True if blocks are written atomically.
    pub(super) atomic_blocks: bool,
    /// True if blocks are not compressed.
    pub(super) stores_whole: bool,
}

impl DriveDisk {
    pub(super) fn new(inner: Arc<dyn Disk>, file: Arc<DriveFile>, meter: Arc<Meter>, traits: Traits) -> DriveDisk {
        DriveDisk { inner, file, meter, traits }
    }

    fn call(&self, blocks: Range<u64>, physical: u64) -> Call {
        Call { file: self.file.number, first: blocks.start, blocks: blocks.end - blocks.start, physical }
    }

    /// Marks blocks that are written while nothing is counted.
    fn mark_uncounted(blocks: &mut Blocks, written: impl IntoIterator<Item = u64>) {
        written.into_iter().for_each(|block| blocks.set(block, UNKNOWN));
    }

    /// Counts a sync, and takes the time of one.
    fn note_sync(&self) -> Result<()> {
        let mut blocks = self.file.blocks.lock();
        if self.meter.is_counting() {
            self.meter.synced(!blocks.unsynced.is_empty());
            self.count_log(&mut blocks)?;
        } else {
            let unsynced = std::mem::take(&mut blocks.unsynced);
            Self::mark_uncounted(&mut blocks, unsynced);
        }
        drop(blocks);
        if !self.traits.sync_time.is_zero() {
            std::thread::sleep(self.traits.sync_time);
        }
        Ok(())
    }

    /// Counts the blocks of the log that were written since the last sync.
    fn count_log(&self, blocks: &mut Blocks) -> Result<()> {
        let mut unsynced = std::mem::take(&mut blocks.unsynced).into_iter().peekable();
        while let Some(first) = unsynced.next() {
            let mut end = first + 1;
            while unsynced.next_if_eq(&end).is_some() {
                end += 1;
            }
            let physical = blocks.store_from(&*self.inner, first..end)?;
            self.meter.written(WriteKind::Log, self.call(first..end, physical));
        }
        Ok(())
    }
}

impl Disk for DriveDisk {
    fn size(&self) -> Result<u64> {
        self.inner.size()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let mut blocks = self.file.blocks.lock();
        self.inner.read_at(offset, buf)?;
        if !buf.is_empty() && self.meter.is_counting() {
            let range = touched(offset, buf.len() as u64);
            let physical = blocks.size(&*self.inner, range.clone())?;
            self.meter.read(self.call(range, physical));
        }
        Ok(())
    }

    fn write_as(&self, kind: WriteKind, offset: u64, buf: &[u8]) -> Result<()> {
        if offset.checked_add(buf.len() as u64).is_none() {
            return Err(Error::io("cannot write", "a file", ErrorKind::InvalidInput.into()));
        }
        let mut blocks = self.file.blocks.lock();
        self.inner.write_as(kind, offset, buf)?;
        let range = touched(offset, buf.len() as u64);
        if buf.is_empty() {
            return Ok(());
        }
        if kind == WriteKind::Log {
            blocks.unsynced.extend(range);
            return Ok(());
        }
        if !self.meter.is_counting() {
            Self::mark_uncounted(&mut blocks, range);
            return Ok(());
        }
        let physical = blocks.store_from(&*self.inner, range.clone())?;
        self.meter.written(kind, self.call(range, physical));
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        self.inner.sync()?;
        self.note_sync()
    }

    fn sync_bytes(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.inner.sync_bytes(offset, bytes)?;
        self.note_sync()
    }

    fn writes_blocks_whole(&self) -> bool {
        self.traits.atomic_blocks
    }

    fn trims_cheaply(&self) -> bool {
        true
    }

    fn trim(&self, offset: u64, len: u64) -> Result<()> {
        let mut blocks = self.file.blocks.lock();
        self.inner.trim(offset, len)?;
        let whole = offset.div_ceil(BLOCK)..offset.saturating_add(len) / BLOCK;
        if whole.start < whole.end {
            if self.meter.is_counting() {
                self.meter.trimmed(whole.end - whole.start);
            }
            blocks.free(whole);
        }
        Ok(())
    }

    fn resize(&self, len: u64) -> Result<()> {
        let mut blocks = self.file.blocks.lock();
        self.inner.resize(len)?;
        blocks.free(len.div_ceil(BLOCK)..u64::MAX);
        Ok(())
    }

    fn will_read(&self, offset: u64, len: u64) {
        self.inner.will_read(offset, len);
    }

    /// The drive is thin-provisioned: reserved space that is not written needs no space on it.
    fn reserve_range(&self, range: Range<u64>) -> Result<()> {
        self.inner.reserve_range(range)
    }

    fn allocated(&self) -> Result<u64> {
        self.inner.allocated()
    }
}

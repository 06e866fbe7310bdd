//! The content of a file. Versions share their blocks, so that a version for every sync of a long run takes little
//! memory.

use std::ops::Range;
use std::sync::Arc;

/// Bytes of a device block, the unit of the device and of the system's cache.
pub const DEVICE_BLOCK: usize = 4096;
/// Bytes of a sector, which the device writes as a whole or not at all.
pub const SECTOR: usize = 512;

/// Blocks that are shared, and copied before a change, together.
const CHUNK: usize = 64;

pub(crate) type Bytes = [u8; DEVICE_BLOCK];

#[derive(Clone, Default, Debug)]
enum Block {
    /// Never written: zeros.
    #[default]
    Hole,
    /// Given back: zeros.
    Trimmed,
    /// Zeros with space set aside for them.
    Reserved,
    Data(Arc<Bytes>),
}

impl Block {
    fn is_allocated(&self) -> bool {
        matches!(self, Block::Reserved | Block::Data(_))
    }

    fn bytes(&self) -> &Bytes {
        match self {
            Block::Hole | Block::Reserved | Block::Trimmed => &[0; DEVICE_BLOCK],
            Block::Data(bytes) => bytes,
        }
    }
}

type Chunk = [Block; CHUNK];

/// A version of a file's content; a clone costs one count for every 256 KiB.
#[derive(Clone, Default, Debug)]
pub(crate) struct Image {
    len: u64,
    chunks: Vec<Arc<Chunk>>,
    /// How many blocks are allocated, those reserved beyond the length included.
    allocated: u64,
}

/// The part of a byte range that lies in one device block.
pub(crate) struct Part {
    pub(crate) block: usize,
    /// The offset in the block.
    pub(crate) start: usize,
    /// The offset in the range.
    pub(crate) at: usize,
    pub(crate) len: usize,
}

/// A length of or an offset in a file that is in memory.
#[allow(clippy::cast_possible_truncation, reason = "memory has no more bytes than a usize counts")]
pub(crate) const fn usize_of(bytes: u64) -> usize {
    bytes as usize
}

/// Cuts the `len` bytes at `offset` at the borders of device blocks.
pub(crate) fn parts(offset: u64, len: usize) -> impl Iterator<Item = Part> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let position = usize_of(offset) + at;
        let start = position % DEVICE_BLOCK;
        let part = Part { block: position / DEVICE_BLOCK, start, at, len: (len - at).min(DEVICE_BLOCK - start) };
        at += part.len;
        (part.len > 0).then_some(part)
    })
}

impl Image {
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Bytes allocated.
    pub(crate) fn allocated(&self) -> u64 {
        self.allocated * DEVICE_BLOCK as u64
    }

    /// How many blocks the image has room for; those from here on are holes.
    pub(crate) fn blocks(&self) -> usize {
        self.chunks.len() * CHUNK
    }

    /// Whether block `index` reads as anything but a hole.
    pub(crate) fn is_written(&self, index: usize) -> bool {
        matches!(self.block(index), Some(Block::Data(_) | Block::Trimmed))
    }

    fn block(&self, index: usize) -> Option<&Block> {
        self.chunks.get(index / CHUNK).map(|chunk| &chunk[index % CHUNK])
    }

    fn set(&mut self, index: usize, block: Block) {
        while self.blocks() <= index {
            self.chunks.push(Arc::new(std::array::from_fn(|_| Block::Hole)));
        }
        let chunk = Arc::make_mut(&mut self.chunks[index / CHUNK]);
        let old = std::mem::replace(&mut chunk[index % CHUNK], block);
        self.allocated -= u64::from(old.is_allocated());
        self.allocated += u64::from(chunk[index % CHUNK].is_allocated());
    }

    /// Changes block `index` in place; the length stays.
    pub(crate) fn edit(&mut self, index: usize, change: impl FnOnce(&mut Bytes)) {
        // Taken out first, so that a block that is not shared is not copied.
        let held = self.block(index).is_some().then(|| {
            let chunk = Arc::make_mut(&mut self.chunks[index / CHUNK]);
            let old = std::mem::take(&mut chunk[index % CHUNK]);
            self.allocated -= u64::from(old.is_allocated());
            old
        });
        let mut bytes = match held {
            Some(Block::Data(bytes)) => bytes,
            other => Arc::new(*other.unwrap_or_default().bytes()),
        };
        change(Arc::make_mut(&mut bytes));
        self.set(index, Block::Data(bytes));
    }

    /// Reads into a buffer; zeros after the end.
    pub(crate) fn read(&self, offset: u64, buf: &mut [u8]) {
        for part in parts(offset, buf.len()) {
            let to = &mut buf[part.at..part.at + part.len];
            match self.block(part.block) {
                Some(block) => to.copy_from_slice(&block.bytes()[part.start..part.start + part.len]),
                None => to.fill(0),
            }
        }
    }

    /// Writes bytes; the length grows if it must.
    pub(crate) fn write(&mut self, offset: u64, data: &[u8]) {
        for part in parts(offset, data.len()) {
            let from = &data[part.at..part.at + part.len];
            match <&Bytes>::try_from(from) {
                Ok(whole) => self.set(part.block, Block::Data(Arc::new(*whole))),
                Err(_) => self.edit(part.block, |bytes| bytes[part.start..part.start + part.len].copy_from_slice(from)),
            }
        }
        self.len = self.len.max(offset + data.len() as u64);
    }

    /// Gives back the blocks inside the range and clears the rest of it; the length stays.
    pub(crate) fn trim(&mut self, offset: u64, len: u64) {
        let len = usize_of(len.min(self.len.saturating_sub(offset)));
        for part in parts(offset, len) {
            if part.len == DEVICE_BLOCK {
                self.set(part.block, Block::Trimmed);
            } else if self.block(part.block).is_some_and(Block::is_allocated) {
                self.edit(part.block, |bytes| clear_bytes(&mut bytes[part.start..part.start + part.len]));
            }
        }
    }

    /// Sets the length; new bytes are zero.
    pub(crate) fn resize(&mut self, len: u64) {
        let keep = usize_of(len.div_ceil(DEVICE_BLOCK as u64));
        if len <= self.len {
            for index in keep..self.blocks() {
                if !matches!(self.block(index), Some(Block::Hole)) {
                    self.set(index, Block::Hole);
                }
            }
            self.chunks.truncate(keep.div_ceil(CHUNK));
            let tail = usize_of(len) % DEVICE_BLOCK;
            if tail > 0 && self.is_written(keep - 1) {
                self.edit(keep - 1, |bytes| bytes[tail..].fill(0));
            }
        }
        self.len = len;
    }

    /// How many more blocks a write of `len` bytes at `offset` would allocate.
    pub(crate) fn growth(&self, offset: u64, len: usize) -> u64 {
        let fresh = |part: &Part| !self.block(part.block).is_some_and(Block::is_allocated);
        parts(offset, len).filter(fresh).count() as u64
    }

    /// Allocates the blocks of the range, from its start on, but at most `free` blocks. False if some are left.
    pub(crate) fn reserve(&mut self, range: Range<u64>, mut free: u64) -> bool {
        let block = DEVICE_BLOCK as u64;
        for index in usize_of(range.start / block)..usize_of(range.end.div_ceil(block)) {
            if !self.block(index).is_some_and(Block::is_allocated) {
                if free == 0 {
                    return false;
                }
                self.set(index, Block::Reserved);
                free -= 1;
            }
        }
        true
    }
}

/// The effect of a trim on bytes whose block it cannot free.
pub(crate) fn clear_bytes(bytes: &mut [u8]) {
    bytes.fill(0);
}

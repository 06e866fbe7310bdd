//! Names and headers of the segment files. `files` decides which files belong to the log; `writer` and `reader` handle
//! the batches after the header.
//!
//! | at | bytes | field |
//! |---|---|---|
//! | 0 | 8 | magic `DURALOG\n` |
//! | 8 | 4 | format version |
//! | 12 | 4 | epoch |
//! | 16 | 16 | database id |
//! | 32 | 4 | segment number, as in the name |
//! | 36 | 1 | shape: 0 packed, 1 sparse, 2 a spare file, which is no segment; plus 4, see below |
//! | 37 | 3 | the segment number minus that of the previous one; 0 if that does not fit, or for the first of an epoch |
//! | 40 | 8 | start LSN |
//! | 48 | 4 | chain value at the start: the checksum of the batch before |
//! | 52 | 4 | checksum of bytes 0 to 52 |
//!
//! The 4 in the shape is the mark: another segment was begun after this one, and all of this one and the header of the
//! other one were durable when the mark was written.
//!
//! The rest of the first device block is zero. Batches begin at [`SEGMENT_HEADER`]. In a spare file epoch, start LSN
//! and chain value are zero. The bytes after its header belong to an earlier segment, or to the one that it was to
//! become.

use super::window::FileWindow;
use super::{DEVICE_BLOCK, LogConfig, LogShape};
use crate::base::{Error, Lsn, Result, bytes, checksum::checksum};
use crate::io::{Disk, OpenMode, WriteKind};
use std::sync::Arc;

/// Bytes before a segment's first batch. They take no LSN space.
pub const SEGMENT_HEADER: u64 = HEADER_BLOCK as u64;

const HEADER_BLOCK: usize = 4096;
const MAGIC: u64 = u64::from_le_bytes(*b"DURALOG\n");
const VERSION: u32 = 1;
/// The shape of a spare file.
const SPARE: u32 = 2;
/// The mark: the bit of the shape of a segment that is durable and after which another one was begun.
const HAS_NEXT: u32 = 4;
/// The number of bits of the shape. The other 24 bits of the same u32 are the distance to the previous segment.
const SHAPE_BITS: u32 = 8;
const SHAPE_MASK: u32 = (1 << SHAPE_BITS) - 1;
const CHECKED: usize = 52;
const USED: usize = 56;

/// The header of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SegmentHeader {
    pub(super) epoch: u32,
    pub(super) number: u32,
    /// The number of the previous segment of its epoch; 0 if there is none, or if the distance does not fit.
    pub(super) previous: u32,
    pub(super) shape: LogShape,
    pub(super) start: Lsn,
    pub(super) chain: u32,
    /// Another segment of this epoch was begun after it. All of this one and the header of the other one were durable.
    pub(super) has_next: bool,
}

/// The kind of a file that has the name of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SegmentFile {
    /// A segment of this database.
    Ours(SegmentHeader),
    /// A file of this database that was a segment, or that is ready to become one. Its batches are not part of the log,
    /// except if the write of a segment header was lost: see `LogReader::later_batch_in_spare`.
    Spare,
    /// A valid segment, or spare file, of another database.
    Foreign,
    /// No valid header, and only zeros after it: the power failed before any header was durable. Batches are appended
    /// only later, so nothing is lost.
    Cut,
    /// No valid header, but content after it: the header was damaged later.
    Damaged,
    /// A file that is shorter than a header block and does not begin like one. Somebody has given it this name.
    Other,
}

/// The name of segment `number`.
pub(super) fn name(config: &LogConfig, number: u32) -> String {
    format!("{}.{number:06}", config.prefix)
}

/// The numbers of all files with the name of a segment, in ascending order.
pub(super) fn numbers(config: &LogConfig) -> Result<Vec<u32>> {
    let names = config.volume.list(&config.prefix)?;
    let number = |found: &String| {
        let number = found.strip_prefix(&config.prefix)?.strip_prefix('.')?.parse().ok()?;
        (name(config, number) == *found).then_some(number)
    };
    let mut numbers: Vec<u32> = names.iter().filter_map(number).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// The number after `number`. There are four billion numbers. If a file with the last one exists, the user must remove
/// it.
pub(super) fn number_after(config: &LogConfig, number: u32) -> Result<u32> {
    number.checked_add(1).ok_or_else(|| Error::Exists { path: config.volume.path(&name(config, number)) })
}

/// Creates the file of the first segment from `number` on whose name is free, without content, and returns its number.
/// Its name is durable once the caller has synced the folder. It has the permissions of the database file.
///
/// A name is in use if the database file was moved away while it was open: its log and that of the next database with
/// its name grow side by side.
pub(super) fn create_empty(config: &LogConfig, mut number: u32) -> Result<(u32, Arc<dyn Disk>)> {
    loop {
        match config.volume.create_beside(&name(config, number), config.database_name()) {
            Err(Error::Exists { .. }) => number = number_after(config, number)?,
            created => return Ok((number, created?)),
        }
    }
}

/// Makes an empty file the spare file `number`. It is durable once the caller has synced it. On a file system that
/// overwrites allocated blocks in place there is then space for the header of a segment. A reservation is not enough,
/// because not every file system has reservations.
pub(super) fn write_spare(config: &LogConfig, disk: &dyn Disk, number: u32) -> Result<()> {
    let shape = config.shape;
    let header = SegmentHeader { epoch: 0, number, previous: 0, shape, start: Lsn::ZERO, chain: 0, has_next: false };
    write_fields(config, disk, &header, SPARE)
}

/// Writes the header that makes an empty or a spare file a segment. It is in one sector, so a power cut leaves the old
/// bytes or the new header. It is durable once the caller has synced it.
pub(super) fn write_header(config: &LogConfig, disk: &dyn Disk, header: &SegmentHeader) -> Result<()> {
    let has_next = if header.has_next { HAS_NEXT } else { 0 };
    // A number is skipped only if a file has its name, so the distance is small. One that does not fit is written as 0.
    let distance = if header.previous == 0 { 0 } else { header.number.saturating_sub(header.previous) };
    let distance = distance.checked_mul(1 << SHAPE_BITS).unwrap_or(0);
    write_fields(config, disk, header, header.shape as u32 | has_next | distance)
}

/// Makes the segment `segment` a spare file of at most `most` bytes; `None` if the file is not this segment. It is
/// durable once the caller has synced it. No recovery may need the segment.
pub(super) fn make_spare(
    config: &LogConfig,
    segment: &SegmentHeader,
    most: u64,
) -> Result<Option<(Arc<dyn Disk>, u64)>> {
    let disk = match config.volume.open(&name(config, segment.number), OpenMode::Write) {
        Err(Error::NotFound { .. }) => return Ok(None),
        opened => opened?,
    };
    // Another database may have a file of this name by now. The file that is inspected is the file that is written to.
    if inspect_disk(config, disk.clone(), segment.number)? != SegmentFile::Ours(*segment) {
        return Ok(None);
    }
    let len = disk.size()?.min(most);
    disk.resize(len)?;
    write_spare(config, &*disk, segment.number)?;
    Ok(Some((disk, len)))
}

/// Gives the spare file `spare` the first free name from `number` on, and the permissions of the database file. The
/// name is durable once the caller has synced the folder. Returns the number of its name; `None` if there is no such
/// spare file of this database. After an error the file has its old name, unless the device fails again.
pub(super) fn take_spare(config: &LogConfig, spare: u32, mut number: u32) -> Result<Option<(u32, Arc<dyn Disk>)>> {
    let old = name(config, spare);
    match inspect(config, spare) {
        Ok(SegmentFile::Spare) => {}
        Ok(_) | Err(Error::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(error),
    }
    config.volume.share_permissions(&old, config.database_name())?;
    loop {
        match config.volume.rename(&old, &name(config, number)) {
            Err(Error::Exists { .. }) => number = number_after(config, number)?,
            Err(Error::NotFound { .. }) => return Ok(None),
            renamed => break renamed?,
        }
    }
    // The old name can pass to a file of another database between the check and the renaming.
    let opened = config.volume.open(&name(config, number), OpenMode::Write);
    let found = opened.and_then(|disk| Ok((inspect_disk(config, disk.clone(), number)?, disk)));
    match found {
        Ok((SegmentFile::Spare, disk)) => Ok(Some((number, disk))),
        other => {
            config.volume.rename(&name(config, number), &old)?;
            other.map(|_| None)
        }
    }
}

fn write_fields(config: &LogConfig, disk: &dyn Disk, header: &SegmentHeader, shape: u32) -> Result<()> {
    let mut block = [0u8; HEADER_BLOCK];
    bytes::put_u64(&mut block, 0, MAGIC);
    bytes::put_u32(&mut block, 8, VERSION);
    bytes::put_u32(&mut block, 12, header.epoch);
    bytes::put_u128(&mut block, 16, config.database);
    bytes::put_u32(&mut block, 32, header.number);
    bytes::put_u32(&mut block, 36, shape);
    bytes::put_u64(&mut block, 40, header.start.0);
    bytes::put_u32(&mut block, 48, header.chain);
    let sum = checksum(bytes::slice(&block, 0, CHECKED));
    bytes::put_u32(&mut block, CHECKED, sum);
    disk.write_as(WriteKind::Log, 0, &block)
}

/// Reads the header of segment `number`. [`Error::FormatVersion`] if it is a segment of this database in another
/// format.
pub(super) fn inspect(config: &LogConfig, number: u32) -> Result<SegmentFile> {
    inspect_disk(config, config.volume.open(&name(config, number), OpenMode::Read)?, number)
}

fn inspect_disk(config: &LogConfig, disk: Arc<dyn Disk>, number: u32) -> Result<SegmentFile> {
    let mut window = FileWindow::new(disk)?;
    let len = usize::try_from(window.size()).unwrap_or(USED).min(USED);
    let front = window.get(0, len)?.unwrap_or_default();
    let begins_as_one = bytes::are_zero(front) || front.starts_with(&MAGIC.to_le_bytes());
    // The file of a segment has at least a whole header block.
    let may_be_one = begins_as_one || window.size() >= SEGMENT_HEADER;
    let without_content = if may_be_one { SegmentFile::Cut } else { SegmentFile::Other };
    let Some(block) = window.get(0, USED)? else { return Ok(without_content) };
    let sound = checksum(bytes::slice(block, 0, CHECKED)) == bytes::get_u32(block, CHECKED);
    let (shape, distance) = (bytes::get_u32(block, 36) & SHAPE_MASK, bytes::get_u32(block, 36) >> SHAPE_BITS);
    let is_spare = shape == SPARE;
    let has_next = shape & HAS_NEXT != 0;
    let shape = match shape & !HAS_NEXT {
        0 => Some(LogShape::Packed),
        1 => Some(LogShape::Sparse),
        _ => None,
    };
    if bytes::get_u64(block, 0) == MAGIC && sound {
        if bytes::get_u128(block, 16) != config.database {
            return Ok(SegmentFile::Foreign);
        }
        let found = bytes::get_u32(block, 8);
        if found != VERSION {
            let path = config.volume.path(&name(config, number));
            return Err(Error::FormatVersion { path, found, supported: VERSION });
        }
        // The number in its header can differ from the one in its name, because a spare file is renamed before its
        // header is written.
        if is_spare {
            return Ok(SegmentFile::Spare);
        }
        if let Some(shape) = shape.filter(|_| bytes::get_u32(block, 32) == number) {
            return Ok(SegmentFile::Ours(SegmentHeader {
                epoch: bytes::get_u32(block, 12),
                number,
                previous: if distance == 0 { 0 } else { number.saturating_sub(distance) },
                shape,
                start: Lsn(bytes::get_u64(block, 40)),
                chain: bytes::get_u32(block, 48),
                has_next,
            }));
        }
    }
    Ok(if has_content(&mut window)? { SegmentFile::Damaged } else { without_content })
}

/// True if any byte after the header block is not zero.
fn has_content(window: &mut FileWindow) -> Result<bool> {
    let mut at = SEGMENT_HEADER;
    while at < window.size() {
        let len = window.size().saturating_sub(at).min(DEVICE_BLOCK);
        let block = window.get(at, usize::try_from(len).unwrap_or(0))?.unwrap_or_default();
        if !bytes::are_zero(block) {
            return Ok(true);
        }
        at = at.saturating_add(len);
    }
    Ok(false)
}

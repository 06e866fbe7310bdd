//! Room on the device. A slot may be a hole, so a write into it may find the device full. The store therefore keeps
//! bytes allocated beyond the end of the file, as many as the promised writes need, and gives them back when a write
//! fails because there is no space.
//!
//! These bytes begin at a distance from the end of the file. So the file grows into a hole, and the slots and delta
//! blocks of a new page that are not written take no space. The reserve moves forward before the file reaches it.
//!
//! One slot is reserved for a page. But a page that is written several times may take its delta blocks and then the
//! other slot, and gives nothing back before the next sync. So the store writes no more delta blocks once writes use
//! reserved bytes. Bytes are reserved, too, for the delta blocks of the writes that have begun by then.

use super::ShadowStore;
use crate::base::{Error, PageId, Result};
use crate::io::BLOCK;
use std::ops::Range;

/// The reserve grows by 1/16 of the file beyond what is asked for, but by at least and at most these numbers of bytes.
const GROWTH: std::ops::RangeInclusive<u64> = 1 << 20..=64 << 20;

/// The distance from the end of the file to the reserve is a quarter of the file, but at least this number of bytes.
const MIN_DISTANCE: u64 = 2 << 20;

/// The most delta blocks in writes that have begun: four background writers and a checkpoint write 1 MiB each. Threads
/// that miss a page write up to 8 pages each, and seldom while all the others write.
const DELTAS_BEGUN: u64 = 5 * (1 << 20) / BLOCK as u64;

/// The length of the file, and the bytes allocated beyond it.
#[derive(Debug)]
pub(super) struct Room {
    len: u64,
    /// These bytes beyond the end of the file are allocated.
    reserved: Range<u64>,
    /// A process that did not close the file may have left others.
    left: bool,
    /// The file has grown over a part of the reserve, which may be where nothing was written.
    grown_over: bool,
    /// The device was full.
    pub(super) full: bool,
    /// Writes take what was reserved, and nothing has been reserved since.
    in_use: bool,
}

impl Room {
    /// The state for a file that is being opened.
    pub(super) fn new(len: u64) -> Room {
        Room { len, reserved: len..len, left: true, grown_over: false, full: false, in_use: false }
    }

    /// Bytes of the file.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Whether the device was full since the last call.
    pub(super) fn take_full(&mut self) -> bool {
        std::mem::take(&mut self.full)
    }

    /// A write has ended there.
    pub(super) fn note_written(&mut self, end: u64) {
        self.len = self.len.max(end);
        self.grown_over |= !self.reserved.is_empty() && self.reserved.start < self.len;
        self.reserved.start = self.reserved.start.max(self.len);
        self.reserved.end = self.reserved.end.max(self.len);
    }

    /// Whether a page may be written as a delta block.
    pub(super) fn allows_deltas(&self) -> bool {
        !self.in_use
    }

    /// True if the parts of the file that were never written take no space.
    pub(super) fn leaves_holes(&self) -> bool {
        !self.left && !self.grown_over
    }

    /// Notes that the file ends at `len`, and that nothing is allocated beyond that.
    fn cut(&mut self, len: u64) {
        let Room { full, in_use, grown_over, .. } = *self;
        *self = Room { left: false, full, in_use, grown_over, ..Room::new(len) };
    }
}

impl ShadowStore {
    /// Makes sure that the slots of this number of pages can be written.
    pub(super) fn ensure_room(&self, pages: u64) -> Result<()> {
        if self.file.disk().capacity().is_some() {
            // A block device has no holes, and no page has an id beyond its end.
            return Ok(());
        }
        // Two more for a page whose slots must be cleared first.
        let begun = if self.geometry.deltas() == 0 { 0 } else { pages.min(DELTAS_BEGUN) };
        let needed = (pages + 2) * self.geometry.slot() as u64 + begun * BLOCK as u64;
        let mut room = self.room.lock();
        let has = room.reserved.end - room.reserved.start;
        let is_ahead = room.len + (pages + 2) * self.geometry.area() <= room.reserved.start;
        if has >= needed && is_ahead {
            return Ok(());
        }
        if room.left || !is_ahead {
            let len = room.len;
            self.end_at(&mut room, len)?;
        }
        let generous = needed + (room.len / 16).clamp(*GROWTH.start(), *GROWTH.end());
        // `has` is tried last, because these bytes are promised already.
        for bytes in [generous, needed, has] {
            if self.reserve_bytes(&mut room, bytes, pages)? {
                if bytes < needed {
                    break;
                }
                room.in_use = false;
                return Ok(());
            }
        }
        room.full = true;
        Err(Error::Full { path: self.file.path().to_owned() })
    }

    /// Makes the reserve so long; false: the device has no room for it.
    fn reserve_bytes(&self, room: &mut Room, bytes: u64, pages: u64) -> Result<bool> {
        if !room.reserved.is_empty() {
            let start = room.reserved.start;
            return self.reserve_range(room, start..start + bytes);
        }
        let distance = (room.len / 4).max(MIN_DISTANCE) + (pages + 2) * self.geometry.area();
        let far = (room.len + distance).next_multiple_of(BLOCK as u64);
        if self.reserve_range(room, far..far + bytes)? {
            return Ok(true);
        }
        // A reserve that begins at the end of the file is the last choice: the file grows into it, and a new page takes
        // its whole area from it, both slots and the delta blocks. It helps only if the file system does not allow a
        // longer file.
        if self.reserve_range(room, far + bytes - BLOCK as u64..far + bytes)? {
            let len = room.len;
            self.end_at(room, len)?;
            return Ok(false);
        }
        self.reserve_range(room, room.len..room.len + bytes)
    }

    /// Makes this the reserve; false: the device has no room for it, or the file system does not allow so long a file.
    fn reserve_range(&self, room: &mut Room, range: Range<u64>) -> Result<bool> {
        match self.file.disk().reserve_range(range.clone()) {
            Ok(()) => {
                room.reserved = range;
                Ok(true)
            }
            Err(Error::Full { .. }) => {
                // A part of it may be allocated. The next try needs this space.
                room.left = true;
                if room.reserved.is_empty() {
                    let len = room.len;
                    self.end_at(room, len)?;
                }
                Ok(false)
            }
            Err(other) => {
                room.left = true;
                Err(other)
            }
        }
    }

    /// Cuts off the pages at the end of the file that have no image, and gives the reserve back.
    pub(super) fn shrink(&self) -> Result<()> {
        self.trim_all();
        if self.has_valid_map() {
            // No page has changed: only the reserve is given back.
            return self.cut(u64::MAX);
        }
        self.read_whole_map();
        let _no_image_is_written = self.generation.write();
        let pages = self.state.lock().pages.trim_end();
        self.cut(self.geometry.area_of(PageId(pages)).start)
    }

    /// Cuts the file off there, if it is longer, and gives the reserve back.
    pub(super) fn cut(&self, end: u64) -> Result<()> {
        let mut room = self.room.lock();
        let len = room.len.min(end);
        self.end_at(&mut room, len)
    }

    /// Ends the file at `len`; nothing is allocated beyond it then.
    fn end_at(&self, room: &mut Room, len: u64) -> Result<()> {
        let disk = self.file.disk();
        // It is shorter if a write at its end has failed or has not ended yet. When it gets longer it keeps what is
        // allocated.
        if disk.size()? < len {
            disk.resize(len)?;
        }
        disk.resize(len)?;
        room.cut(len);
        Ok(())
    }

    /// Gives the reserve back to the device for writes into holes; false: there is none.
    pub(super) fn use_reserve(&self) -> Result<bool> {
        let mut room = self.room.lock();
        room.full = true;
        room.in_use = true;
        if room.reserved.is_empty() && !room.left {
            return Ok(false);
        }
        let len = room.len;
        self.end_at(&mut room, len)?;
        Ok(true)
    }
}

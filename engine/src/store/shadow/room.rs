//! Room on the device. A slot may be a hole, so a write into it may find the device full. The store therefore keeps bytes
//! allocated behind the end of the file, as many as the promised writes need, and gives them back when a write fails for
//! want of space.

use super::ShadowStore;
use crate::base::{Error, PageId, Result};

/// Least and most bytes by which the reserve grows beyond what is asked for; between them a sixteenth of the file.
const GROWTH: std::ops::RangeInclusive<u64> = 1 << 20..=64 << 20;

/// The length of the file, and what is allocated behind it.
#[derive(Debug)]
pub(super) struct Room {
    len: u64,
    /// All bytes from the end of the file to here are allocated.
    reserved: u64,
    /// A process that did not close the file may have left more.
    left: bool,
}

impl Room {
    /// Of a file that is opened.
    pub(super) fn new(len: u64) -> Room {
        Room { len, reserved: len, left: true }
    }

    /// Bytes of the file.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// A write has ended there.
    pub(super) fn note_written(&mut self, end: u64) {
        self.len = self.len.max(end);
        self.reserved = self.reserved.max(self.len);
    }
}

impl ShadowStore {
    /// Makes sure that so many slots can be written.
    pub(super) fn ensure_room(&self, pages: u64) -> Result<()> {
        // Two more for a page whose slots must be cleared first.
        let needed = (pages + 2) * self.geometry.slot() as u64;
        let mut room = self.room.lock();
        let has = room.reserved - room.len;
        if has >= needed {
            return Ok(());
        }
        let disk = self.file.disk();
        let generous = needed + (room.len / 16).clamp(*GROWTH.start(), *GROWTH.end());
        let from = room.reserved;
        for end in [room.len + generous, room.len + needed] {
            match disk.reserve_range(from..end) {
                Err(Error::Full { .. }) => continue,
                reserved => reserved?,
            }
            room.reserved = end;
            return Ok(());
        }
        Err(Error::Full { path: self.file.path().to_owned() })
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
        self.cut(self.geometry.cell_of(PageId(pages)).start)
    }

    /// Cuts the file off there, if it is longer, and gives the reserve back.
    pub(super) fn cut(&self, end: u64) -> Result<()> {
        let mut room = self.room.lock();
        let len = room.len.min(end);
        self.file.disk().resize(len)?;
        *room = Room { left: false, ..Room::new(len) };
        Ok(())
    }

    /// Gives the reserve back to the device for writes into holes; false: there is none.
    pub(super) fn use_reserve(&self) -> Result<bool> {
        let mut room = self.room.lock();
        if room.reserved == room.len && !room.left {
            return Ok(false);
        }
        self.file.disk().resize(room.len)?;
        *room = Room { left: false, ..Room::new(room.len) };
        Ok(true)
    }
}

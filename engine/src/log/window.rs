//! Reads a file forward in large steps.

use crate::base::{Result, bytes};
use crate::io::Disk;
use std::sync::Arc;

const STEP: u64 = 256 * 1024;

/// Reads a file through a buffer. A file that grows keeps the size that it had. It can be cut after the end
/// of the valid batches: `resume` does that while the recovery reads.
#[derive(Debug)]
pub(super) struct FileWindow {
    disk: Arc<dyn Disk>,
    size: u64,
    at: u64,
    held: Vec<u8>,
}

impl FileWindow {
    /// A window on the current length of `disk`.
    pub(super) fn new(disk: Arc<dyn Disk>) -> Result<FileWindow> {
        Ok(FileWindow { size: disk.size()?, disk, at: 0, held: Vec::new() })
    }

    /// The length of the file in bytes, as far as it is known.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Forgets the bytes that it holds: it reads them again.
    pub(super) fn forget(&mut self) {
        self.held.clear();
    }

    /// `len` bytes at `offset`, or `None` if the file ends before them.
    pub(super) fn get(&mut self, offset: u64, len: usize) -> Result<Option<&[u8]>> {
        let needed = len as u64;
        let held_to = self.at.saturating_add(self.held.len() as u64);
        let is_held = offset >= self.at && offset.saturating_add(needed) <= held_to;
        if !is_held {
            self.size = self.size.min(self.disk.size()?);
        }
        let Some(rest) = self.size.checked_sub(offset).filter(|rest| *rest >= needed) else { return Ok(None) };
        if !is_held {
            let step = usize::try_from(rest.min(STEP.max(needed))).unwrap_or(len);
            self.held.resize(step, 0);
            self.at = offset;
            let filled = self.disk.read_at(offset, &mut self.held);
            if filled.is_err() {
                self.held.clear();
            }
            filled?;
        }
        let from = usize::try_from(offset.saturating_sub(self.at)).unwrap_or(usize::MAX);
        Ok(Some(bytes::slice(&self.held, from, from.saturating_add(len))))
    }
}

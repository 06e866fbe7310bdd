//! Reads a file forward in large steps. This file must not know batches or segments.

use crate::base::{Result, bytes};
use crate::io::Disk;
use std::sync::Arc;

const STEP: u64 = 256 * 1024;

/// Reads a file of fixed size through a buffer.
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

    /// The length of the file in bytes.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// `len` bytes at `offset`, or `None` if the file ends before them.
    pub(super) fn get(&mut self, offset: u64, len: usize) -> Result<Option<&[u8]>> {
        let needed = len as u64;
        let Some(rest) = self.size.checked_sub(offset).filter(|rest| *rest >= needed) else { return Ok(None) };
        let held_to = self.at.saturating_add(self.held.len() as u64);
        if offset < self.at || offset.saturating_add(needed) > held_to {
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

//! Reads large values, whole or as a stream.

use super::LargeRecord;
use crate::base::checksum::chained;
use crate::base::{Error, PageId, Result};
use crate::page::Page;
use crate::txn::engine::Engine;
use std::io::Read;

/// Reads a run to its end and verifies its checksum.
pub(crate) fn check(engine: &Engine, record: &[u8]) -> Result<()> {
    let mut reader = RunReader::new(engine, LargeRecord::decode(record)?);
    while reader.fill()? {
        reader.at = reader.page_payload().len();
    }
    Ok(())
}

/// Reads a whole run and verifies its checksum.
pub(crate) fn read(engine: &Engine, record: &[u8]) -> Result<Vec<u8>> {
    let run = LargeRecord::decode(record)?;
    // The length is from a page and may be wrong, so memory is allocated as pages are read.
    let mut value = Vec::with_capacity(run.len.min(1 << 20));
    let mut reader = RunReader::new(engine, run);
    while reader.fill()? {
        value.extend_from_slice(reader.page_payload());
        reader.at = reader.page_payload().len();
    }
    Ok(value)
}

/// Reads a large value as a stream, page by page.
pub(crate) struct RunReader<'e> {
    engine: &'e Engine,
    run: LargeRecord,
    pages: Box<dyn Iterator<Item = PageId> + Send>,
    page: Vec<u8>,
    at: usize,
    left: usize,
    checksum: u32,
}

impl<'e> RunReader<'e> {
    /// A reader of the value to which a large record points.
    pub(crate) fn open(engine: &'e Engine, record: &[u8]) -> Result<RunReader<'e>> {
        Ok(RunReader::new(engine, LargeRecord::decode(record)?))
    }

    fn new(engine: &'e Engine, run: LargeRecord) -> RunReader<'e> {
        let pages = Box::new(run.pages(engine.pool.page_size()));
        RunReader { engine, run, pages, page: Vec::new(), at: 0, left: run.len, checksum: 0 }
    }

    /// The value's length in bytes.
    pub(crate) fn len(&self) -> u64 {
        self.run.len as u64
    }

    fn page_payload(&self) -> &[u8] {
        Page::new(&self.page).payload()
    }

    /// Reads the next page if all bytes of the current one were returned. Returns false at the end.
    fn fill(&mut self) -> Result<bool> {
        if self.at < self.page_payload().len() {
            return Ok(true);
        }
        if self.left == 0 {
            return Ok(false);
        }
        let bad = |page, what: &str| Err(Error::corrupt(page, format!("a large value {what}")));
        let Some(id) = self.pages.next() else { return bad(self.run.first, "longer than its run") };
        self.page.resize(self.engine.pool.page_size(), 0);
        match &self.engine.store {
            Some(store) if store.read(id, &mut self.page)?.is_none() => return bad(id, "misses this page"),
            Some(_) => {}
            None => self.page.copy_from_slice(&self.engine.pool.read(id)?),
        }
        self.at = 0;
        let payload = Page::new(&self.page).payload();
        if payload.is_empty() || payload.len() > self.left {
            return bad(id, "has another length than its run");
        }
        self.left -= payload.len();
        self.checksum = chained(self.checksum, payload);
        if self.left == 0 && self.checksum != self.run.checksum {
            return bad(self.run.first, "does not have its checksum");
        }
        Ok(true)
    }
}

impl Read for RunReader<'_> {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        if !self.fill().map_err(std::io::Error::other)? {
            return Ok(0);
        }
        let from = self.page_payload().get(self.at..).unwrap_or_default();
        let count = from.len().min(buf.len());
        let (Some(to), Some(from)) = (buf.get_mut(..count), from.get(..count)) else { return Ok(0) };
        to.copy_from_slice(from);
        self.at += count;
        Ok(count)
    }
}

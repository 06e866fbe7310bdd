//! Writes dumps.

use super::checksum::Checksum;
use super::{FIRST_LINE, Head};
use crate::failure::{Failure, Result};
use std::io::Write;

/// Writes a dump, table by table.
pub(crate) struct Writer<W> {
    out: W,
    entry: Vec<u8>,
    /// The number of entries of the current table.
    count: u64,
    checksum: Checksum,
}

impl<W: Write> Writer<W> {
    /// Begins a dump.
    pub(crate) fn new(out: W) -> Result<Writer<W>> {
        let mut writer = Writer { out, entry: Vec::new(), count: 0, checksum: Checksum::new() };
        writer.put(FIRST_LINE)?;
        Ok(writer)
    }

    /// Begins a table.
    pub(crate) fn begin(&mut self, head: &Head) -> Result<()> {
        let mut line = serde_json::to_vec(head).map_err(|error| Failure::Output(error.into()))?;
        line.push(b'\n');
        self.count = 0;
        self.checksum = Checksum::new();
        self.put(&line)
    }

    /// Writes an entry of the current table. Keys must be in ascending order.
    pub(crate) fn entry(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let mut lengths = std::mem::take(&mut self.entry);
        lengths.clear();
        push_varint(&mut lengths, key.len() as u64 + 1);
        push_varint(&mut lengths, value.len() as u64);
        self.count += 1;
        [&lengths, key, value].into_iter().try_for_each(|bytes| self.put(bytes))?;
        self.entry = lengths;
        Ok(())
    }

    /// Ends the current table.
    pub(crate) fn end(&mut self) -> Result<()> {
        self.put(&[0])?;
        self.put(&self.count.to_le_bytes())?;
        self.put(&self.checksum.to_bytes())
    }

    /// Ends the dump.
    pub(crate) fn finish(mut self) -> Result<W> {
        self.put(b"end\n")?;
        self.out.flush().map_err(Failure::Output)?;
        Ok(self.out)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.checksum.add(bytes);
        self.out.write_all(bytes).map_err(Failure::Output)
    }
}

/// Appends a number with 7 bits in each byte, the lowest bits first. All bytes except the last have their high bit set.
fn push_varint(out: &mut Vec<u8>, mut number: u64) {
    loop {
        let [low, ..] = number.to_le_bytes();
        number >>= 7;
        if number == 0 {
            return out.push(low);
        }
        out.push(low | 0x80);
    }
}

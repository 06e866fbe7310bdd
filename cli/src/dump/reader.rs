//! Reads dumps. Every byte of a dump may be wrong.

use super::checksum::Checksum;
use super::{FIRST_LINE, Head};
use crate::failure::{Failure, Result};
use crate::sort::Pair;
use duramen::base::limits::{MAX_KEY, MAX_VALUE};
use std::io::{self, BufRead, Read};

/// The maximum length of the line before a table, in bytes.
const MAX_LINE: u64 = 1 << 20;

/// Reads a dump, table by table.
pub(crate) struct Reader<R> {
    input: R,
    /// The current table and its last key, between [`Reader::table`] and the end of its entries.
    table: Option<(String, Option<Vec<u8>>)>,
    count: u64,
    checksum: Checksum,
}

impl<R: BufRead> Reader<R> {
    /// Checks the first line.
    pub(crate) fn new(input: R) -> Result<Reader<R>> {
        let mut reader = Reader { input, table: None, count: 0, checksum: Checksum::new() };
        let mut line = Vec::new();
        let limit = FIRST_LINE.len() as u64 + 8;
        reader.input.by_ref().take(limit).read_until(b'\n', &mut line).map_err(|error| reader.failed(error))?;
        if line == FIRST_LINE {
            return Ok(reader);
        }
        let why = match line.starts_with(b"duramen dump ") {
            true => "its version is not 1: restore it with the version of Duramen that wrote it",
            false => "it is not a dump: use a file that `duramen dump` wrote",
        };
        Err(Failure::input("the dump", why))
    }

    /// The next table, or `None` at the end of the dump. All entries of the previous table must have been read.
    pub(crate) fn table(&mut self) -> Result<Option<Head>> {
        let mut line = Vec::new();
        self.checksum = Checksum::new();
        self.input.by_ref().take(MAX_LINE).read_until(b'\n', &mut line).map_err(|error| self.failed(error))?;
        if line == b"end\n" {
            let at_end = self.input.fill_buf().map(<[u8]>::is_empty).map_err(|error| self.failed(error))?;
            return if at_end { Ok(None) } else { Err(self.damaged("there are bytes after its end")) };
        }
        if !line.ends_with(b"\n") {
            return Err(self.truncated());
        }
        self.checksum.add(&line);
        let head: Head = serde_json::from_slice(&line).map_err(|_| self.damaged("the head of a table is wrong"))?;
        self.table = Some((head.table.clone(), None));
        self.count = 0;
        Ok(Some(head))
    }

    /// The next entry of the table, or `None` after the last. The count and the checksum of the table are checked
    /// before `None` is returned.
    pub(crate) fn entry(&mut self) -> Result<Option<Pair>> {
        if self.table.is_none() {
            return Ok(None);
        }
        let Some(key_len) = self.varint()?.checked_sub(1) else {
            return self.end_table().map(|()| None);
        };
        let value_len = self.varint()?;
        if key_len > MAX_KEY as u64 || value_len > MAX_VALUE {
            return Err(self.damaged("an entry is longer than the limit"));
        }
        let pair = (self.bytes(key_len)?, self.bytes(value_len)?);
        let ascends = match &mut self.table {
            Some((_, Some(last))) if *last >= pair.0 => false,
            Some((_, last)) => {
                let last = last.get_or_insert_default();
                last.clear();
                last.extend_from_slice(&pair.0);
                true
            }
            None => false,
        };
        if !ascends {
            return Err(self.damaged("its keys are out of order"));
        }
        self.count += 1;
        Ok(Some(pair))
    }

    /// Compares the number of entries and the checksum with those in the dump.
    fn end_table(&mut self) -> Result<()> {
        let count = self.array()?;
        let expected = self.checksum.to_bytes();
        if self.count != u64::from_le_bytes(count) || expected != self.array()? {
            return Err(self.damaged("its checksum is wrong"));
        }
        self.table = None;
        Ok(())
    }

    fn varint(&mut self) -> Result<u64> {
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let [byte] = self.array()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(self.damaged("a length is not a number"))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut array = [0; N];
        self.input.read_exact(&mut array).map_err(|error| self.failed(error))?;
        self.checksum.add(&array);
        Ok(array)
    }

    /// Reads `len` bytes. A wrong length does not allocate much memory.
    fn bytes(&mut self, len: u64) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.input.by_ref().take(len).read_to_end(&mut bytes).map_err(|error| self.failed(error))?;
        if (bytes.len() as u64) < len {
            return Err(self.truncated());
        }
        self.checksum.add(&bytes);
        Ok(bytes)
    }

    fn truncated(&self) -> Failure {
        self.damaged("it is truncated")
    }

    fn failed(&self, error: io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => self.truncated(),
            _ => Failure::File { action: "cannot read", path: "the dump".into(), source: error },
        }
    }

    fn damaged(&self, what: &str) -> Failure {
        let place = match &self.table {
            Some((table, _)) => format!("the dump, table \"{}\"", table.escape_debug()),
            None => "the dump".to_owned(),
        };
        Failure::input(place, format!("{what}: the dump is damaged, use another copy"))
    }
}

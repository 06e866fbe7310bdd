//! The input of entries: files and pipes, with lines or comma-separated values. Keys and values are texts here; types
//! are applied later.

mod csv;
mod lines;

pub(crate) use csv::CsvSource;
pub(crate) use lines::LineSource;

use crate::args::{Csv, TextOptions};
use crate::failure::{Failure, Result};
use crate::streams;
use duramen::base::limits::MAX_VALUE;
use duramen::db::FILE_MAGIC;
use std::cell::Cell;
use std::ffi::OsStr;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::path::Path;
use std::rc::Rc;

/// One entry of the input, as text.
#[derive(Default, PartialEq, Eq, Debug)]
pub(crate) struct InputEntry {
    /// The key.
    pub(crate) key: Vec<u8>,
    /// The value; empty if there is none.
    pub(crate) value: Vec<u8>,
    /// True if there is a value, also an empty one.
    pub(crate) has_value: bool,
}

/// Reads the entries of the input one by one.
pub(crate) trait Source {
    /// Puts the next entry into `entry`. Returns false at the end.
    fn next(&mut self, entry: &mut InputEntry) -> Result<bool>;

    /// The place of the last entry, for errors, such as "line 7".
    fn place(&self) -> String;

    /// Possible mistakes in the input. Called at the end.
    fn doubts(&self) -> Vec<&'static str> {
        Vec::new()
    }
}

/// An open input.
pub(crate) struct Input {
    /// Its entries.
    pub(crate) source: Box<dyn Source>,
    /// The number of bytes read so far.
    pub(crate) bytes: Rc<Cell<u64>>,
    /// The size in bytes, if it is known.
    pub(crate) size: Option<u64>,
}

/// Opens `path`, or standard input for `-`. Returns the reader and its size, if that is known.
pub(crate) fn open(path: &Path) -> Result<(Box<dyn Read>, Option<u64>)> {
    if path == Path::new("-") {
        return Ok((Box::new(stdin()?), None));
    }
    let refused = |source| Failure::File { action: "cannot read", path: path.to_owned(), source };
    let file = File::open(path).map_err(refused)?;
    let metadata = file.metadata().map_err(refused)?;
    if metadata.is_dir() {
        return Err(refused(io::ErrorKind::IsADirectory.into()));
    }
    Ok((Box::new(file), metadata.is_file().then_some(metadata.len())))
}

/// Returns the text of a value argument. `-` reads standard input to its end, line ends included. `hex`: the text is
/// hexadecimal.
pub(crate) fn value(argument: &OsStr, hex: bool) -> Result<Vec<u8>> {
    if argument != "-" {
        return Ok(argument.as_encoded_bytes().to_vec());
    }
    read_all(stdin()?, if hex { 2 * MAX_VALUE } else { MAX_VALUE })
}

/// Standard input.
fn stdin() -> Result<File> {
    let refused = |source| Failure::File { action: "cannot read", path: "standard input".into(), source };
    streams::stdin().map_err(refused)
}

/// The error for a key or a value that is longer than the engine allows.
fn too_long(place: impl Into<String>, what: &str, limit: impl Display) -> Failure {
    Failure::input(place, format!("the {what} is longer than the limit of {limit} bytes"))
}

/// Reads a value of at most `limit` bytes.
fn read_all(reader: impl Read, limit: u64) -> Result<Vec<u8>> {
    let mut value = Vec::new();
    reader.take(limit + 1).read_to_end(&mut value).map_err(unreadable)?;
    if value.len() as u64 > limit {
        return Err(too_long("standard input", "value", MAX_VALUE));
    }
    Ok(value)
}

impl Input {
    /// Opens the input that the options of `load` describe.
    pub(crate) fn open(path: &Path, text: TextOptions, csv: &Csv) -> Result<Input> {
        let (mut reader, size) = open(path)?;
        let mut front = Vec::new();
        reader.by_ref().take(FILE_MAGIC.len() as u64).read_to_end(&mut front).map_err(unreadable)?;
        if front == FILE_MAGIC {
            let why = "it is a Duramen database, not a list of entries: copy it with dump and restore";
            return Err(Failure::input(path.display().to_string(), why));
        }
        let bytes = Rc::new(Cell::new(0));
        let counted = Counted { reader: Cursor::new(front).chain(reader), bytes: Rc::clone(&bytes) };
        let source: Box<dyn Source> = if csv.csv {
            Box::new(CsvSource::new(counted, csv)?)
        } else {
            let end = if text.null { 0 } else { b'\n' };
            Box::new(LineSource::new(BufReader::with_capacity(1 << 20, counted), end))
        };
        Ok(Input { source, bytes, size })
    }
}

/// A reader that counts the bytes.
struct Counted<R> {
    reader: R,
    bytes: Rc<Cell<u64>>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buf)?;
        self.bytes.set(self.bytes.get() + count as u64);
        Ok(count)
    }
}

/// An error of reading the input.
fn unreadable(source: io::Error) -> Failure {
    Failure::File { action: "cannot read", path: "the input".into(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_is_too_long_is_refused_and_not_cut() {
        assert_eq!(read_all(&b"\0oak\n"[..], 5).unwrap(), b"\0oak\n");
        let message = read_all(io::repeat(b'7'), 5).unwrap_err().to_string();
        assert_eq!(message, "standard input: the value is longer than the limit of 4294967295 bytes");
    }
}

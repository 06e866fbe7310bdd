//! Values read as streams.

use crate::base::Result;
use crate::txn::{Engine, large};
use std::io::{Cursor, Read};

/// A value being read; see [`super::ReadOnlyUntypedTable::get_stream`]. A damaged page gives an error of kind `Other`
/// that wraps the engine's own.
pub struct ValueStream<'t> {
    source: Source<'t>,
    len: u64,
}

enum Source<'t> {
    Small(Cursor<Vec<u8>>),
    Large(large::RunReader<'t>),
}

impl<'t> ValueStream<'t> {
    pub(crate) fn open(engine: &'t Engine, bytes: Vec<u8>, large: bool) -> Result<ValueStream<'t>> {
        if large {
            let reader = large::RunReader::open(engine, &bytes)?;
            return Ok(ValueStream { len: reader.len(), source: Source::Large(reader) });
        }
        Ok(ValueStream { len: bytes.len() as u64, source: Source::Small(Cursor::new(bytes)) })
    }

    /// The value's length in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// True if the value has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl Read for ValueStream<'_> {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        match &mut self.source {
            Source::Small(bytes) => bytes.read(buf),
            Source::Large(run) => run.read(buf),
        }
    }
}

//! Writes entries to standard output, one a line: the key, then a TAB and the value, if the table has values.

use crate::args::TextOptions;
use crate::failure::{Failure, Result};
use crate::streams;
use crate::typed::TextForm;
use std::fs::File;
use std::io::{BufWriter, Write};

/// The output of entries, values and counts.
pub(crate) struct Output {
    out: BufWriter<File>,
    end: u8,
    line: Vec<u8>,
}

impl Output {
    /// Standard output, with the line ends of `text`.
    pub(crate) fn new(text: TextOptions) -> Result<Output> {
        let end = if text.null { 0 } else { b'\n' };
        let out = streams::stdout().map_err(Failure::output)?;
        Ok(Output { out: BufWriter::with_capacity(1 << 16, out), end, line: Vec::new() })
    }

    /// Writes a line with a key and, unless its text is empty, a value.
    pub(crate) fn entry(&mut self, key: (&TextForm, &[u8]), value: (&TextForm, &[u8])) -> Result<()> {
        self.line.clear();
        key.0.decode(key.1, &mut self.line)?;
        let after_key = self.line.len();
        self.line.push(b'\t');
        value.0.decode(value.1, &mut self.line)?;
        if self.line.len() == after_key + 1 {
            self.line.truncate(after_key);
        }
        self.end_line()
    }

    /// Writes a line with a value only.
    pub(crate) fn value(&mut self, form: &TextForm, value: &[u8]) -> Result<()> {
        self.line.clear();
        form.decode(value, &mut self.line)?;
        self.end_line()
    }

    /// Writes a value without a line end.
    pub(crate) fn value_only(&mut self, form: &TextForm, value: &[u8]) -> Result<()> {
        self.line.clear();
        form.decode(value, &mut self.line)?;
        self.out.write_all(&self.line).map_err(Failure::output)
    }

    /// Writes a line with a number.
    pub(crate) fn count(&mut self, count: u64) -> Result<()> {
        self.line.clear();
        self.line.extend_from_slice(count.to_string().as_bytes());
        self.end_line()
    }

    fn end_line(&mut self) -> Result<()> {
        self.line.push(self.end);
        self.out.write_all(&self.line).map_err(Failure::output)
    }

    /// Writes the rest of the buffer. Call it at the end, because dropping the output returns no error.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.out.flush().map_err(Failure::output)
    }
}

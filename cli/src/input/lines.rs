//! Entries that are lines: a key, or a key, a TAB and a value. Lines may end with another byte than the newline.

use super::{Entry, Source, unreadable};
use crate::failure::Result;
use std::io::BufRead;

/// Reads lines.
pub(crate) struct LineSource<R> {
    reader: R,
    end: u8,
    line: Vec<u8>,
    number: u64,
}

impl<R: BufRead> LineSource<R> {
    /// Reads lines that end with the byte `end`; the last one may lack it.
    pub(crate) fn new(reader: R, end: u8) -> LineSource<R> {
        LineSource { reader, end, line: Vec::new(), number: 0 }
    }
}

impl<R: BufRead> Source for LineSource<R> {
    fn next(&mut self, entry: &mut Entry) -> Result<bool> {
        self.line.clear();
        if self.reader.read_until(self.end, &mut self.line).map_err(unreadable)? == 0 {
            return Ok(false);
        }
        self.number += 1;
        let line = self.line.strip_suffix(&[self.end]).unwrap_or(&self.line);
        let mut halves = line.splitn(2, |byte| *byte == b'\t');
        entry.key.clear();
        entry.key.extend_from_slice(halves.next().unwrap_or_default());
        let value = halves.next();
        entry.has_value = value.is_some();
        entry.value.clear();
        entry.value.extend_from_slice(value.unwrap_or_default());
        Ok(true)
    }

    fn place(&self) -> String {
        format!("line {}", self.number)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn all(mut source: impl Source) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
        let (mut entry, mut entries) = (Entry::default(), Vec::new());
        while source.next(&mut entry).unwrap() {
            entries.push((entry.key.clone(), entry.has_value.then(|| entry.value.clone())));
        }
        entries
    }

    #[test]
    fn lines_are_keys_or_keys_and_values_and_any_bytes() {
        let source = LineSource::new(&b"oak\nelm\t7\n\n\xFF\r\t\t\0\nlast"[..], b'\n');
        let entries = all(source);
        let value = |value: &[u8]| Some(value.to_vec());
        let expected = [
            (b"oak".to_vec(), None),
            (b"elm".to_vec(), value(b"7")),
            (b"".to_vec(), None),
            (b"\xFF\r".to_vec(), value(b"\t\0")),
            (b"last".to_vec(), None),
        ];
        assert_eq!(entries, expected);
    }

    #[test]
    fn nul_ended_lines_may_hold_newlines() {
        let entries = all(LineSource::new(&b"a\nb\0c\t\n\0"[..], 0));
        assert_eq!(entries, [(b"a\nb".to_vec(), None), (b"c".to_vec(), Some(b"\n".to_vec()))]);
    }

    #[test]
    fn the_place_is_the_number_of_the_line() {
        let mut source = LineSource::new(&b"a\nb\n"[..], b'\n');
        let mut entry = Entry::default();
        source.next(&mut entry).unwrap();
        source.next(&mut entry).unwrap();
        assert_eq!(source.place(), "line 2");
        assert!(!source.next(&mut entry).unwrap());
    }
}

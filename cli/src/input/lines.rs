//! Reads entries from lines: a key, or a key, a TAB and a value. Lines may end with another byte than a newline.

use super::{InputEntry, Source, too_long, unreadable};
use crate::failure::Result;
use duramen::base::limits::{MAX_KEY, MAX_VALUE};
use std::io::{BufRead, Read};

/// The maximum number of bytes before the TAB: more than the longest key needs in hexadecimal. A longer line is not a
/// key, and may have no end.
const MAX_BEFORE_TAB: u64 = 4 * MAX_KEY as u64;
/// The maximum number of bytes after the TAB: the longest value in hexadecimal, and the end of the line.
const MAX_AFTER: u64 = 2 * MAX_VALUE + 1;

/// The byte order mark of UTF-8, with which some programs begin a text.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

const MARK_LOADED: &str =
    "the input begins with a byte order mark, which was loaded as part of the first key: remove it from the input";
const RETURNS_LOADED: &str =
    "every line ends with CR LF, and the CR was loaded as part of it: convert the input if it has Windows line ends";

/// Reads lines.
pub(crate) struct LineSource<R> {
    reader: R,
    end: u8,
    line: Vec<u8>,
    number: u64,
    /// The number of lines that ended with a newline.
    newlines: u64,
    /// The number of lines with a carriage return before the newline.
    returns: u64,
    /// True if the input begins with a byte order mark.
    has_mark: bool,
}

impl<R: BufRead> LineSource<R> {
    /// Reads lines that end with the byte `end`. The last one may lack it.
    pub(crate) fn new(reader: R, end: u8) -> LineSource<R> {
        LineSource { reader, end, line: Vec::new(), number: 0, newlines: 0, returns: 0, has_mark: false }
    }

    /// Appends to the line until it ends, but at most `limit` bytes. Returns the number of bytes.
    fn read(&mut self, limit: u64) -> Result<usize> {
        self.reader.by_ref().take(limit).read_until(self.end, &mut self.line).map_err(unreadable)
    }
}

impl<R: BufRead> Source for LineSource<R> {
    fn next(&mut self, entry: &mut InputEntry) -> Result<bool> {
        self.line.clear();
        if self.read(MAX_BEFORE_TAB)? == 0 {
            return Ok(false);
        }
        self.number += 1;
        if self.line.len() as u64 == MAX_BEFORE_TAB && !self.line.ends_with(&[self.end]) {
            if !self.line.contains(&b'\t') {
                return Err(too_long(self.place(), "key", MAX_KEY));
            }
            if self.read(MAX_AFTER)? as u64 == MAX_AFTER && !self.line.ends_with(&[self.end]) {
                return Err(too_long(self.place(), "value", MAX_VALUE));
            }
        }
        let line = self.line.strip_suffix(&[self.end]).unwrap_or(&self.line);
        self.newlines += u64::from(self.line.ends_with(b"\n"));
        self.returns += u64::from(self.line.ends_with(b"\r\n"));
        self.has_mark |= self.number == 1 && self.line.starts_with(BYTE_ORDER_MARK);
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

    fn doubts(&self) -> Vec<&'static str> {
        let mut doubts = Vec::new();
        if self.has_mark {
            doubts.push(MARK_LOADED);
        }
        if self.end == b'\n' && self.newlines > 0 && self.returns == self.newlines {
            doubts.push(RETURNS_LOADED);
        }
        doubts
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn all(mut source: impl Source) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
        let (mut entry, mut entries) = (InputEntry::default(), Vec::new());
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
    fn carriage_returns_are_kept_and_a_note_says_so_if_every_line_has_one() {
        for (text, end, has_note) in
            [("a\r\nb\r\n", b'\n', true), ("a\r\nb\n", b'\n', false), ("", b'\n', false), ("a\r\0", 0, false)]
                .into_iter()
                .chain([("a\r\nb", b'\n', true), ("a\nb\r", b'\n', false), ("a\r\n\0b\r\n\0", 0, false)])
        {
            let mut source = LineSource::new(text.as_bytes(), end);
            let mut entry = InputEntry::default();
            while source.next(&mut entry).unwrap() {}
            assert_eq!(source.doubts().contains(&RETURNS_LOADED), has_note, "{text:?}");
        }
    }

    #[test]
    fn a_byte_order_mark_is_kept_and_a_note_says_so() {
        for (text, notes) in [
            ("\u{FEFF}a\nb\n", &[MARK_LOADED][..]),
            ("\u{FEFF}", &[MARK_LOADED]),
            ("\u{FEFF}a\r\nb\r\n", &[MARK_LOADED, RETURNS_LOADED]),
            ("a\n\u{FEFF}b\n", &[]),
            ("", &[]),
        ] {
            let mut source = LineSource::new(text.as_bytes(), b'\n');
            let (mut entry, mut keys) = (InputEntry::default(), Vec::new());
            while source.next(&mut entry).unwrap() {
                keys.push(entry.key.clone());
            }
            assert_eq!(source.doubts(), notes, "{text:?}");
            assert_eq!(keys.concat(), text.replace('\n', "").as_bytes(), "{text:?}");
        }
    }

    #[test]
    fn lines_that_end_with_nul_may_contain_newlines() {
        let entries = all(LineSource::new(&b"a\nb\0c\t\n\0"[..], 0));
        assert_eq!(entries, [(b"a\nb".to_vec(), None), (b"c".to_vec(), Some(b"\n".to_vec()))]);
    }

    #[test]
    fn an_input_without_ends_of_lines_is_not_read_to_its_end() {
        let mut source = LineSource::new(std::io::BufReader::new(std::io::repeat(b'k')), b'\n');
        let message = source.next(&mut InputEntry::default()).unwrap_err().to_string();
        assert_eq!(message, "line 1: the key is longer than the limit of 65536 bytes");
    }

    #[test]
    fn long_values_are_read_whole() {
        let line = [b"key\t".to_vec(), vec![b'v'; 1_000_000], b"\nnext".to_vec()].concat();
        let entries = all(LineSource::new(line.as_slice(), b'\n'));
        assert_eq!(entries, [(b"key".to_vec(), Some(vec![b'v'; 1_000_000])), (b"next".to_vec(), None)]);
    }

    #[test]
    fn the_place_is_the_number_of_the_line() {
        let mut source = LineSource::new(&b"a\nb\n"[..], b'\n');
        let mut entry = InputEntry::default();
        source.next(&mut entry).unwrap();
        source.next(&mut entry).unwrap();
        assert_eq!(source.place(), "line 2");
        assert!(!source.next(&mut entry).unwrap());
    }
}

//! Entries that are rows of comma separated values, of which some columns are the key and some the value.

use super::{Entry, Source, unreadable};
use crate::args::Csv;
use crate::failure::{Failure, Result};
use csv::{ByteRecord, ErrorKind, Reader, ReaderBuilder, Trim};
use std::io::{self, Read};

/// How long a row may be, in bytes. Whatever is longer is no list of entries, and may have no end.
const MAX_ROW: u64 = 64 << 20;

/// How long the row is that is added behind the last: where a quote was never closed it becomes a part of it.
const END_ROW: usize = 24;

/// Reads rows.
pub(crate) struct CsvSource<R> {
    reader: Reader<Bounded<R>>,
    row: ByteRecord,
    keys: Vec<usize>,
    values: Vec<usize>,
    end: [u8; END_ROW],
}

impl<R: Read> CsvSource<R> {
    /// Reads the columns that `options` name; the first line is read at once if it has their names.
    pub(crate) fn new(reader: R, options: &Csv) -> Result<CsvSource<R>> {
        let named = |column: &String| column.parse::<usize>().is_err();
        let header = options.header || options.key_column.iter().chain(&options.value_column).any(named);
        let end = [u8::from(options.delimiter == 0); END_ROW];
        let mut reader = ReaderBuilder::new()
            .delimiter(options.delimiter)
            .has_headers(header)
            .flexible(true)
            .trim(Trim::None)
            .buffer_capacity(1 << 20)
            .from_reader(Bounded { reader, left: MAX_ROW, end, ended: 0 });
        let names = if header { reader.byte_headers().map_err(refused)?.clone() } else { ByteRecord::new() };
        let find =
            |columns: &[String]| columns.iter().map(|column| position(column, &names)).collect::<Result<Vec<_>>>();
        let keys = if options.key_column.is_empty() { vec![0] } else { find(&options.key_column)? };
        let values = find(&options.value_column)?;
        Ok(CsvSource { reader, row: ByteRecord::new(), keys, values, end })
    }

    /// True if the row is the one behind the last; an error if that has become a part of another.
    fn is_end(&self) -> Result<bool> {
        let Some(last) = self.row.iter().next_back() else { return Ok(false) };
        match last.strip_suffix(b"\n").unwrap_or(last).strip_suffix(&self.end) {
            Some(b"") => Ok(true),
            Some(_) => Err(Failure::input(self.place(), "a quote is opened here and never closed")),
            None => Ok(false),
        }
    }

    /// Puts the text of `columns` into `out`: one as it is, several as the parts of a tuple.
    fn pick(&self, columns: &[usize], out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        for (i, column) in columns.iter().enumerate() {
            let field = self.row.get(*column).ok_or_else(|| {
                Failure::input(
                    self.place(),
                    format!("column {} is missing: there are only {}", column + 1, self.row.len()),
                )
            })?;
            if columns.len() == 1 {
                out.extend_from_slice(field);
                continue;
            }
            if i > 0 {
                out.push(b',');
            }
            for byte in field {
                if matches!(byte, b',' | b'\\') {
                    out.push(b'\\');
                }
                out.push(*byte);
            }
        }
        Ok(())
    }
}

impl<R: Read> Source for CsvSource<R> {
    fn next(&mut self, entry: &mut Entry) -> Result<bool> {
        self.reader.get_mut().left = MAX_ROW;
        if !self.reader.read_byte_record(&mut self.row).map_err(refused)? {
            return Ok(false);
        }
        if self.is_end()? {
            return Ok(false);
        }
        self.pick(&self.keys, &mut entry.key)?;
        self.pick(&self.values, &mut entry.value)?;
        entry.has_value = !self.values.is_empty();
        Ok(true)
    }

    fn place(&self) -> String {
        match self.row.position() {
            Some(position) => format!("line {}", position.line()),
            None => "the input".to_owned(),
        }
    }
}

/// A reader that fails after `left` bytes, so that a row without an end ends, and that adds a row of its own at the end.
struct Bounded<R> {
    reader: R,
    left: u64,
    end: [u8; END_ROW],
    /// Bytes of the added row that have been read, the newlines around it included.
    ended: usize,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            let why = format!("a row is longer than {MAX_ROW} bytes: load it as a key, a TAB and a value");
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        let mut count = self.reader.read(buf)?;
        if count == 0 {
            let row = [b"\n", self.end.as_slice(), b"\n"].concat();
            count = row.get(self.ended..).unwrap_or_default().read(buf)?;
            self.ended += count;
        }
        self.left = self.left.saturating_sub(count as u64);
        Ok(count)
    }
}

/// The index of a column given by its number, from 1, or its name.
fn position(column: &str, names: &ByteRecord) -> Result<usize> {
    if let Ok(number) = column.parse::<usize>() {
        return number.checked_sub(1).ok_or_else(|| Failure::Usage("columns are counted from 1".to_owned()));
    }
    names.iter().position(|name| name == column.as_bytes()).ok_or_else(|| {
        let names: Vec<_> = names.iter().map(|name| String::from_utf8_lossy(name)).collect();
        Failure::input("line 1", format!("there is no column \"{column}\" among {}", names.join(", ")))
    })
}

fn refused(error: csv::Error) -> Failure {
    let told = error.to_string();
    match error.into_kind() {
        ErrorKind::Io(source) => unreadable(source),
        _ => Failure::input("the input", told),
    }
}

#[cfg(test)]
mod tests {
    use super::super::lines::tests::all;
    use super::*;

    fn options(keys: &[&str], values: &[&str], delimiter: u8) -> Csv {
        let owned = |columns: &[&str]| columns.iter().map(|column| (*column).to_owned()).collect();
        Csv { csv: true, key_column: owned(keys), value_column: owned(values), header: false, delimiter }
    }

    #[test]
    fn columns_are_chosen_by_number_and_quotes_are_resolved() {
        let source = CsvSource::new(&b"1,\"a,\"\"b\"\n2,\xFF\n"[..], &options(&["2"], &["1"], b',')).unwrap();
        assert_eq!(all(source), [(b"a,\"b".to_vec(), Some(b"1".to_vec())), (b"\xFF".to_vec(), Some(b"2".to_vec()))]);
    }

    #[test]
    fn columns_are_chosen_by_name_and_several_make_a_tuple() {
        let text = b"tree;years;place\noak, red;180;wood\n";
        let source = CsvSource::new(&text[..], &options(&["tree", "years"], &["place"], b';')).unwrap();
        assert_eq!(all(source), [(br"oak\, red,180".to_vec(), Some(b"wood".to_vec()))]);
    }

    #[test]
    fn the_first_column_alone_is_the_key_unless_told_otherwise() {
        let source = CsvSource::new(&b"a,b\nc,d,e\n"[..], &options(&[], &[], b',')).unwrap();
        assert_eq!(all(source), [(b"a".to_vec(), None), (b"c".to_vec(), None)]);
    }

    #[test]
    fn an_input_without_ends_of_rows_is_not_read_to_its_end() {
        let mut source = CsvSource::new(io::repeat(b'k'), &options(&[], &[], b',')).unwrap();
        assert!(source.next(&mut Entry::default()).unwrap_err().to_string().contains("a row is longer"));
    }

    #[test]
    fn a_quote_that_is_never_closed_is_told_with_its_line() {
        for text in ["\"a\",\"x\"\n\"open,1\nb,2\nc,3\n", "\"a\",\"x\"\nb,\"open"] {
            let mut source = CsvSource::new(text.as_bytes(), &options(&[], &["2"], b',')).unwrap();
            let mut entry = Entry::default();
            assert!(source.next(&mut entry).unwrap());
            let told = source.next(&mut entry).unwrap_err().to_string();
            assert_eq!(told, "line 2: a quote is opened here and never closed");
        }
        for text in ["\"a\n\"\n", "\"a\n\"", "", "\n", "a\n\n"] {
            let source = CsvSource::new(text.as_bytes(), &options(&[], &[], b',')).unwrap();
            assert_eq!(all(source).len(), usize::from(text.contains('a')), "{text:?}");
        }
        let mut named = options(&[], &[], b',');
        named.header = true;
        assert_eq!(all(CsvSource::new(&b""[..], &named).unwrap()), []);
    }

    #[test]
    fn missing_columns_are_told_with_their_line() {
        let mut source = CsvSource::new(&b"a,b\nc\n"[..], &options(&["2"], &[], b',')).unwrap();
        let mut entry = Entry::default();
        assert!(source.next(&mut entry).unwrap());
        assert_eq!(source.next(&mut entry).unwrap_err().to_string(), "line 2: column 2 is missing: there are only 1");
        let told = CsvSource::new(&b"a,b\n"[..], &options(&["x"], &[], b',')).err().unwrap().to_string();
        assert_eq!(told, "line 1: there is no column \"x\" among a, b");
        assert!(CsvSource::new(&b""[..], &options(&["0"], &[], b',')).is_err());
    }
}

//! Reads entries from rows of comma-separated values. Some columns are the key, others the value.

use super::{InputEntry, Source, unreadable};
use crate::args::Csv;
use crate::failure::{Failure, Result};
use csv::{ByteRecord, ErrorKind, Reader, ReaderBuilder, Trim};
use std::io::{self, Read};

/// The maximum length of a row in bytes. Longer input is not a list of entries, and may have no end.
const MAX_ROW: u64 = 64 << 20;

/// Reads rows.
pub(crate) struct CsvSource<R> {
    reader: Reader<Bounded<R>>,
    row: ByteRecord,
    keys: Vec<usize>,
    values: Vec<usize>,
    /// The number of fields of the first row.
    width: Option<usize>,
}

impl<R: Read> CsvSource<R> {
    /// Reads the columns that `options` name. If the first line has the names of columns, it is read here.
    pub(crate) fn new(reader: R, options: &Csv) -> Result<CsvSource<R>> {
        let named = |column: &String| column.parse::<usize>().is_err();
        let header = options.header || options.key_column.iter().chain(&options.value_column).any(named);
        let mut reader = ReaderBuilder::new()
            .delimiter(options.delimiter)
            .has_headers(header)
            .flexible(true)
            .trim(Trim::None)
            .buffer_capacity(1 << 20)
            .from_reader(Bounded::new(reader, options.delimiter));
        let mut names = if header { reader.byte_headers().map_err(refused)?.clone() } else { ByteRecord::new() };
        if is_end(&reader, &names)? {
            names.clear();
        }
        let find =
            |columns: &[String]| columns.iter().map(|column| position(column, &names)).collect::<Result<Vec<_>>>();
        let keys = if options.key_column.is_empty() { vec![0] } else { find(&options.key_column)? };
        let values = find(&options.value_column)?;
        let width = Some(names.len()).filter(|_| header);
        Ok(CsvSource { reader, row: ByteRecord::new(), keys, values, width })
    }

    /// Fails if the row has another number of fields than the first one: a comma without quotes divides a field.
    fn check_width(&mut self) -> Result<()> {
        let (found, expected) = (self.row.len(), *self.width.get_or_insert(self.row.len()));
        if found == expected {
            return Ok(());
        }
        let why = format!("the number of fields is {found}, and that of the first row is {expected}");
        Err(Failure::input(self.place(), format!("{why}: put a field in quotes if the separator is in it")))
    }

    /// Puts the text of `columns` into `out`. A single column is copied; several columns become the parts of a tuple.
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
    fn next(&mut self, entry: &mut InputEntry) -> Result<bool> {
        self.reader.get_mut().left = MAX_ROW;
        if !self.reader.read_byte_record(&mut self.row).map_err(refused)? {
            return Ok(false);
        }
        if is_end(&self.reader, &self.row)? {
            return Ok(false);
        }
        self.pick(&self.keys, &mut entry.key)?;
        self.pick(&self.values, &mut entry.value)?;
        self.check_width()?;
        entry.has_value = !self.values.is_empty();
        Ok(true)
    }

    fn place(&self) -> String {
        place(&self.row)
    }
}

fn place(row: &ByteRecord) -> String {
    match row.position() {
        Some(position) => format!("line {}", position.line()),
        None => "the input".to_owned(),
    }
}

/// True if `row`, the last row that was read, is the row that was added after the input. An error if the added row has
/// become a part of another row, because a quote was not closed.
fn is_end<R: Read>(reader: &Reader<Bounded<R>>, row: &ByteRecord) -> Result<bool> {
    let Bounded { added, input_bytes, at_end, .. } = reader.get_ref();
    // The newline before the added row ends the last row of the input, if that row has no newline of its own.
    if !at_end || reader.position().byte() <= input_bytes + 1 {
        return Ok(false);
    }
    // Inside a quote that newline is a part of the field.
    match row.len() == 1 && row.get(0) == added.get(1..2) {
        true => Ok(true),
        false => Err(Failure::input(place(row), "a quote opened here is never closed")),
    }
}

/// A reader that fails after `left` bytes, so that a row without an end is an error, and that adds one row after the
/// input.
struct Bounded<R> {
    reader: R,
    left: u64,
    /// The number of bytes of the input so far.
    input_bytes: u64,
    /// True if the input has ended.
    at_end: bool,
    /// The added bytes: a newline, a row of one byte, a newline.
    added: [u8; 3],
    /// The number of added bytes that were read.
    added_read: usize,
}

impl<R> Bounded<R> {
    fn new(reader: R, delimiter: u8) -> Bounded<R> {
        let added = [b'\n', if delimiter == 0 { 1 } else { 0 }, b'\n'];
        Bounded { reader, left: MAX_ROW, input_bytes: 0, at_end: false, added, added_read: 0 }
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            let why = format!("a row is longer than {MAX_ROW} bytes: load it in the form key, TAB, value");
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        let count = if self.at_end { 0 } else { self.reader.read(buf)? };
        self.input_bytes += count as u64;
        self.left = self.left.saturating_sub(count as u64);
        if count > 0 || buf.is_empty() {
            return Ok(count);
        }
        self.at_end = true;
        let count = self.added.get(self.added_read..).unwrap_or_default().read(buf)?;
        self.added_read += count;
        Ok(count)
    }
}

/// The index of a column that is given by its number, from 1, or by its name.
fn position(column: &str, names: &ByteRecord) -> Result<usize> {
    if let Ok(number) = column.parse::<usize>() {
        return number.checked_sub(1).ok_or_else(|| Failure::Usage("columns are counted from 1".to_owned()));
    }
    let mut found = (0..).zip(names).filter(|(_, name)| *name == column.as_bytes()).map(|(at, _)| at);
    if let (Some(first), Some(second)) = (found.next(), found.next()) {
        let why =
            format!("columns {} and {} are both called \"{column}\": give the number of one", first + 1, second + 1);
        return Err(Failure::input("line 1", why));
    }
    names.iter().position(|name| name == column.as_bytes()).ok_or_else(|| {
        let names: Vec<_> = names.iter().map(|name| String::from_utf8_lossy(name)).collect();
        let there = match names.as_slice() {
            [] => ": the input is empty".to_owned(),
            names => format!(" among {}", names.join(", ")),
        };
        let several = if column.contains(',') { "; name each column with an option of its own" } else { "" };
        Failure::input("line 1", format!("there is no column \"{column}\"{there}{several}"))
    })
}

fn refused(error: csv::Error) -> Failure {
    let message = error.to_string();
    match error.into_kind() {
        ErrorKind::Io(source) => unreadable(source),
        _ => Failure::input("the input", message),
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
    fn by_default_the_first_column_is_the_key() {
        let source = CsvSource::new(&b"a,b\nc,d\n"[..], &options(&[], &[], b',')).unwrap();
        assert_eq!(all(source), [(b"a".to_vec(), None), (b"c".to_vec(), None)]);
    }

    #[test]
    fn an_input_without_ends_of_rows_is_not_read_to_its_end() {
        let mut source = CsvSource::new(io::repeat(b'k'), &options(&[], &[], b',')).unwrap();
        assert!(source.next(&mut InputEntry::default()).unwrap_err().to_string().contains("a row is longer"));
    }

    #[test]
    fn an_unclosed_quote_is_reported_with_its_line() {
        for text in ["\"a\",\"x\"\n\"open,1\nb,2\nc,3\n", "\"a\",\"x\"\nb,\"open"] {
            let mut source = CsvSource::new(text.as_bytes(), &options(&[], &["2"], b',')).unwrap();
            let mut entry = InputEntry::default();
            assert!(source.next(&mut entry).unwrap());
            let message = source.next(&mut entry).unwrap_err().to_string();
            assert_eq!(message, "line 2: a quote opened here is never closed");
        }
        for text in ["\"a\n\"\n", "\"a\n\"", "", "\n", "a\n\n"] {
            let source = CsvSource::new(text.as_bytes(), &options(&[], &[], b',')).unwrap();
            assert_eq!(all(source).len(), usize::from(text.contains('a')), "{text:?}");
        }
        let mut named = options(&[], &[], b',');
        named.header = true;
        for text in ["", "\n", "tree,years", "tree\n\n"] {
            assert_eq!(all(CsvSource::new(text.as_bytes(), &named).unwrap()), [], "{text:?}");
        }
        let message = CsvSource::new(&b"tree,\"years\noak,9\n"[..], &named).err().unwrap().to_string();
        assert_eq!(message, "line 1: a quote opened here is never closed");
        let message = CsvSource::new(&b""[..], &options(&["x"], &[], b',')).err().unwrap().to_string();
        assert_eq!(message, "line 1: there is no column \"x\": the input is empty");
    }

    /// The row that is added after the input can also occur in the input.
    #[test]
    fn fields_of_nul_bytes_are_not_taken_for_the_added_row() {
        for byte in [0u8, 1] {
            for len in [1, 24, 25] {
                let field = vec![byte; len];
                let padded = [b"x".as_slice(), &field].concat();
                for end in [&b""[..], b"\n", b"\r\n", b"\n\n\n"] {
                    let text = [field.as_slice(), b"\n", &padded, b"\n", &field, b"\n", &field, end].concat();
                    let source = CsvSource::new(text.as_slice(), &options(&[], &[], b',')).unwrap();
                    let keys: Vec<_> = all(source).into_iter().map(|(key, _)| key).collect();
                    assert_eq!(keys, [&field, &padded, &field, &field].map(Vec::clone), "{len} of {byte}, {end:?}");
                }
            }
        }
        let source = CsvSource::new(&b"a\0b\n\0\n"[..], &options(&["2"], &["1"], 0)).unwrap();
        assert_eq!(all(source), [(b"b".to_vec(), Some(b"a".to_vec())), (b"".to_vec(), Some(b"".to_vec()))]);
    }

    /// A reader that returns one byte at a time gives the same rows as one that returns all at once.
    #[test]
    fn the_end_is_found_for_any_size_of_reads() {
        struct Slow<'t>(&'t [u8]);
        impl Read for Slow<'_> {
            fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
                let len = buf.len().min(1);
                self.0.read(&mut buf[..len])
            }
        }
        for text in ["a,b\n\"c\nd\",e", "a\r\nb\r\n", "\0\n\0", "", "\n\n", "\"\"\n\"\""] {
            let once = all(CsvSource::new(text.as_bytes(), &options(&[], &[], b',')).unwrap());
            assert_eq!(all(CsvSource::new(Slow(text.as_bytes()), &options(&[], &[], b',')).unwrap()), once, "{text:?}");
        }
    }

    #[test]
    fn rows_of_another_length_than_the_first_are_refused_with_their_line() {
        for (text, header) in [("a,b\n1,big, old tree\n", false), ("a,b\n1,big, old tree\n", true), ("a,b\n1\n", false)]
        {
            let mut options = options(&[], &[], b',');
            options.header = header;
            let mut source = CsvSource::new(text.as_bytes(), &options).unwrap();
            let mut entry = InputEntry::default();
            assert!(header || source.next(&mut entry).unwrap());
            let message = source.next(&mut entry).unwrap_err().to_string();
            let fields = text.lines().nth(1).unwrap().split(',').count();
            assert!(message.starts_with(&format!("line 2: the number of fields is {fields}, and ")), "{message}");
        }
        let source = CsvSource::new(&b"a,b\n1,\"big, old tree\"\n\n2,\n"[..], &options(&[], &["2"], b',')).unwrap();
        assert_eq!(all(source).len(), 3);
    }

    #[test]
    fn a_name_of_several_columns_is_refused_if_it_is_used() {
        let open = |keys: &[&str]| CsvSource::new(&b"tree,x,tree\n1,2,3\n"[..], &options(keys, &["x"], b','));
        let message = open(&["tree"]).err().unwrap().to_string();
        assert_eq!(message, "line 1: columns 1 and 3 are both called \"tree\": give the number of one");
        assert_eq!(all(open(&["3"]).unwrap()), [(b"3".to_vec(), Some(b"2".to_vec()))]);
    }

    #[test]
    fn missing_columns_are_reported_with_their_line() {
        let mut source = CsvSource::new(&b"a,b\nc\n"[..], &options(&["2"], &[], b',')).unwrap();
        let mut entry = InputEntry::default();
        assert!(source.next(&mut entry).unwrap());
        assert_eq!(source.next(&mut entry).unwrap_err().to_string(), "line 2: column 2 is missing: there are only 1");
        let message = CsvSource::new(&b"a,b\n"[..], &options(&["x"], &[], b',')).err().unwrap().to_string();
        assert_eq!(message, "line 1: there is no column \"x\" among a, b");
        assert!(CsvSource::new(&b""[..], &options(&["0"], &[], b',')).is_err());
    }
}

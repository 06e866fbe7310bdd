//! How rows become bytes. [`Row::visit`] names the columns of a row once; the four [`Columns`] here write and read them
//! in the two encodings.
//!
//! [`Encoding::Lean`]: numbers in as few bytes as they need (LEB128), texts with their lengths. [`Encoding::Innodb`]:
//! about the bytes of InnoDB's compact rows with the column types of DBT-2. Integers have 4 bytes, reals 8, and
//! decimals the bytes of their digits. A text of fixed length has all its bytes. Before the columns there are 18 bytes
//! that InnoDB keeps for each row: 5 of the record header, 6 of the transaction and 7 of the undo record.

use crate::Result;
use crate::numbers::{index, rounded, short, whole};
use clap::ValueEnum;

/// The encoding of rows and keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum Encoding {
    /// As few bytes as the values need.
    Lean,
    /// Rows as wide as those of InnoDB.
    Innodb,
}

/// A text of at most `N` bytes.
#[derive(Clone, Copy)]
pub(super) struct Text<const N: usize> {
    len: u16,
    bytes: [u8; N],
}

impl<const N: usize> Text<N> {
    pub(super) const EMPTY: Text<N> = Text { len: 0, bytes: [0; N] };

    /// The first `N` bytes of a text.
    pub(super) fn new(text: &[u8]) -> Text<N> {
        let mut new = Text { len: u16::try_from(text.len().min(N)).unwrap_or(u16::MAX), bytes: [0; N] };
        new.bytes[..usize::from(new.len)].copy_from_slice(&text[..usize::from(new.len)]);
        new
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl<const N: usize> PartialEq for Text<N> {
    fn eq(&self, other: &Text<N>) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl<const N: usize> std::fmt::Debug for Text<N> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(self.as_bytes()))
    }
}

/// An amount of money in cents.
pub(super) type Cents = i64;

/// Visits the columns of a row in order, to write or to read them.
pub(super) trait Columns {
    /// An integer of 4 bytes.
    fn int(&mut self, value: &mut u32);
    /// A number that DBT-2 keeps as a real.
    fn real(&mut self, value: &mut u32);
    /// An amount that DBT-2 keeps as a real.
    fn real_cents(&mut self, value: &mut Cents);
    /// A decimal with so many digits before the point and as many after it: 8 or 12.
    fn decimal(&mut self, value: &mut Cents, digits: u8);
    /// Seconds since 1970; 0 is null.
    fn time(&mut self, value: &mut u32);
    /// A text of varying length.
    fn varchar<const N: usize>(&mut self, value: &mut Text<N>);
    /// A text of `N` bytes, filled up with spaces where it is shorter.
    fn char<const N: usize>(&mut self, value: &mut Text<N>);
}

/// A row of a table, without its key.
pub(super) trait Row: Sized {
    /// The row that is read into.
    const EMPTY: Self;

    /// Visits all columns in order.
    fn visit(&mut self, columns: &mut impl Columns);

    /// Reads a row.
    fn decode(encoding: Encoding, bytes: &[u8]) -> Result<Self> {
        let mut row = Self::EMPTY;
        let is_whole = match encoding {
            Encoding::Lean => {
                let mut reader = LeanReader(Some(bytes));
                row.visit(&mut reader);
                reader.0 == Some(&[][..])
            }
            Encoding::Innodb => {
                let mut reader = InnodbReader(bytes.get(INNODB_HEADER..));
                row.visit(&mut reader);
                reader.0 == Some(&[][..])
            }
        };
        if is_whole { Ok(row) } else { Err(format!("a row of {} bytes cannot be decoded", bytes.len()).into()) }
    }
}

/// Encodes rows, one after another.
pub(super) struct Encoder {
    encoding: Encoding,
    /// The transaction that writes the rows, which InnoDB keeps with each.
    transaction: u64,
    /// Rows so far.
    rows: u64,
    bytes: Vec<u8>,
}

const INNODB_HEADER: usize = 18;
/// Bytes of the header of a record in a secondary index.
const INDEX_HEADER: usize = 5;

impl Encoder {
    pub(super) fn new(encoding: Encoding, transaction: u64) -> Encoder {
        Encoder { encoding, transaction, rows: 0, bytes: Vec::new() }
    }

    /// The bytes of a row.
    pub(super) fn row<R: Row>(&mut self, row: &mut R) -> &[u8] {
        self.bytes.clear();
        match self.encoding {
            Encoding::Lean => row.visit(&mut LeanWriter(&mut self.bytes)),
            Encoding::Innodb => {
                self.bytes.extend(self.innodb_header());
                row.visit(&mut InnodbWriter(&mut self.bytes));
            }
        }
        self.rows += 1;
        &self.bytes
    }

    /// The value of an entry of a secondary index, whose key has all columns.
    pub(super) fn index_entry(&mut self) -> &[u8] {
        self.bytes.clear();
        if self.encoding == Encoding::Innodb {
            self.bytes.extend_from_slice(&self.innodb_header()[..INDEX_HEADER]);
        }
        self.rows += 1;
        &self.bytes
    }

    /// The header: flags, number in the page and offset of the next record; number of the transaction; pointer to the
    /// undo record, which has a page and an offset.
    fn innodb_header(&self) -> [u8; INNODB_HEADER] {
        let mut header = [0; INNODB_HEADER];
        header[1..3].copy_from_slice(&(((self.rows % 200) as u16) << 3).to_be_bytes());
        header[3..5].copy_from_slice(&(self.rows % 200 * 80).to_be_bytes()[6..]);
        header[5..11].copy_from_slice(&self.transaction.to_be_bytes()[2..]);
        header[11] = 0x80;
        header[12..16].copy_from_slice(&(self.transaction / 16).to_be_bytes()[4..]);
        header[16..18].copy_from_slice(&((self.rows * 37 % 16_000) as u16).to_be_bytes());
        header
    }
}

struct LeanWriter<'a>(&'a mut Vec<u8>);

impl LeanWriter<'_> {
    fn number(&mut self, mut value: u64) {
        while value > 0x7f {
            self.0.push(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.0.push(value.to_le_bytes()[0]);
    }
}

/// Maps numbers near zero to small ones.
fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

impl Columns for LeanWriter<'_> {
    fn int(&mut self, value: &mut u32) {
        self.number((*value).into());
    }

    fn real(&mut self, value: &mut u32) {
        self.number((*value).into());
    }

    fn real_cents(&mut self, value: &mut Cents) {
        self.number(zigzag(*value));
    }

    fn decimal(&mut self, value: &mut Cents, _digits: u8) {
        self.number(zigzag(*value));
    }

    fn time(&mut self, value: &mut u32) {
        self.0.extend_from_slice(&value.to_be_bytes());
    }

    fn varchar<const N: usize>(&mut self, value: &mut Text<N>) {
        self.number(value.len.into());
        self.0.extend_from_slice(value.as_bytes());
    }

    fn char<const N: usize>(&mut self, value: &mut Text<N>) {
        self.varchar(value);
    }
}

/// `None` after an error.
struct LeanReader<'a>(Option<&'a [u8]>);

impl<'a> LeanReader<'a> {
    fn number(&mut self) -> u64 {
        let (mut value, mut shift) = (0, 0);
        while let Some((&byte, rest)) = self.0.and_then(<[u8]>::split_first) {
            self.0 = Some(rest);
            value |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return value;
            }
            if shift > 63 {
                break;
            }
        }
        self.0 = None;
        0
    }

    fn take(&mut self, len: usize) -> &'a [u8] {
        take(&mut self.0, len)
    }
}

fn take<'a>(bytes: &mut Option<&'a [u8]>, len: usize) -> &'a [u8] {
    let split = bytes.and_then(|bytes| bytes.split_at_checked(len));
    *bytes = split.map(|(_, rest)| rest);
    split.map_or(&[], |(taken, _)| taken)
}

impl Columns for LeanReader<'_> {
    fn int(&mut self, value: &mut u32) {
        *value = short(self.number());
    }

    fn real(&mut self, value: &mut u32) {
        self.int(value);
    }

    fn real_cents(&mut self, value: &mut Cents) {
        *value = unzigzag(self.number());
    }

    fn decimal(&mut self, value: &mut Cents, _digits: u8) {
        *value = unzigzag(self.number());
    }

    fn time(&mut self, value: &mut u32) {
        *value = self.take(4).try_into().map_or(0, u32::from_be_bytes);
    }

    fn varchar<const N: usize>(&mut self, value: &mut Text<N>) {
        let len = index(self.number());
        *value = Text::new(self.take(len));
    }

    fn char<const N: usize>(&mut self, value: &mut Text<N>) {
        self.varchar(value);
    }
}

struct InnodbWriter<'a>(&'a mut Vec<u8>);

/// Bytes of a length before a text of at most `n` bytes.
fn length_bytes(n: usize) -> usize {
    if n < 256 { 1 } else { 2 }
}

/// Bytes of each half of a decimal.
fn half(digits: u8) -> usize {
    if digits <= 8 { 4 } else { 6 }
}

/// One in the second half of a decimal is worth so many cents: ten to the power of minus its digits.
fn cent_of(digits: u8) -> u64 {
    10u64.pow(u32::from(digits) - 2)
}

impl Columns for InnodbWriter<'_> {
    fn int(&mut self, value: &mut u32) {
        // The sign bit is inverted, so that bytes order numbers.
        self.0.extend_from_slice(&(*value ^ 1 << 31).to_be_bytes());
    }

    fn real(&mut self, value: &mut u32) {
        self.0.extend_from_slice(&f64::from(*value).to_le_bytes());
    }

    fn real_cents(&mut self, value: &mut Cents) {
        self.0.extend_from_slice(&(*value as f64 / 100.0).to_le_bytes());
    }

    fn decimal(&mut self, value: &mut Cents, digits: u8) {
        let whole = value.div_euclid(100) as u64 ^ 1 << (8 * half(digits) - 1);
        let rest = value.rem_euclid(100) as u64 * cent_of(digits);
        for part in [whole, rest] {
            self.0.extend_from_slice(&part.to_be_bytes()[8 - half(digits)..]);
        }
    }

    fn time(&mut self, value: &mut u32) {
        self.0.extend_from_slice(&value.to_be_bytes());
    }

    fn varchar<const N: usize>(&mut self, value: &mut Text<N>) {
        self.0.extend_from_slice(&value.len.to_be_bytes()[2 - length_bytes(N)..]);
        self.0.extend_from_slice(value.as_bytes());
    }

    fn char<const N: usize>(&mut self, value: &mut Text<N>) {
        let end = self.0.len() + N;
        self.0.extend_from_slice(value.as_bytes());
        self.0.resize(end, b' ');
    }
}

/// `None` after an error.
struct InnodbReader<'a>(Option<&'a [u8]>);

impl InnodbReader<'_> {
    fn f64(&mut self) -> f64 {
        take(&mut self.0, 8).try_into().map_or(0.0, f64::from_le_bytes)
    }

    /// An unsigned number of so many bytes.
    fn bytes(&mut self, len: usize) -> u64 {
        take(&mut self.0, len).iter().fold(0, |value, byte| value << 8 | u64::from(*byte))
    }
}

impl Columns for InnodbReader<'_> {
    fn int(&mut self, value: &mut u32) {
        *value = short(self.bytes(4)) ^ 1 << 31;
    }

    fn real(&mut self, value: &mut u32) {
        *value = short(whole(self.f64()));
    }

    fn real_cents(&mut self, value: &mut Cents) {
        *value = rounded(self.f64() * 100.0);
    }

    fn decimal(&mut self, value: &mut Cents, digits: u8) {
        let bits = 8 * half(digits);
        let whole = self.bytes(half(digits)) ^ 1 << (bits - 1);
        // A negative number has its sign in the highest of these bits.
        let whole = (whole << (64 - bits)) as i64 >> (64 - bits);
        *value = whole * 100 + (self.bytes(half(digits)) / cent_of(digits)) as i64;
    }

    fn time(&mut self, value: &mut u32) {
        *value = short(self.bytes(4));
    }

    fn varchar<const N: usize>(&mut self, value: &mut Text<N>) {
        let len = index(self.bytes(length_bytes(N)));
        *value = Text::new(take(&mut self.0, len));
    }

    fn char<const N: usize>(&mut self, value: &mut Text<N>) {
        let text = take(&mut self.0, N);
        *value = Text::new(text.trim_ascii_end());
    }
}

//! The bytes of one batch. The header has a checksum of its own; the second checksum covers the payload and chains the
//! batch to the one before.
//!
//! | at | bytes | field |
//! |---|---|---|
//! | 0 | 8 | start LSN |
//! | 8 | 8 | durable LSN known when the batch was written: all bytes of the log before it were on the device |
//! | 16 | 4 | payload length |
//! | 20 | 4 | epoch |
//! | 24 | 1 | kind, chosen by the caller |
//! | 25 | 3 | zero |
//! | 28 | 4 | chained checksum of (checksum of the batch before, bytes 0 to 28, payload) |
//! | 32 | 4 | header checksum of (checksum of the database id, bytes 0 to 32) |

use crate::base::{Error, Lsn, Result, bytes, checksum::chained};

/// Bytes of the header of a batch. [`super::Log::op_lsn`] counts them.
pub const BATCH_HEADER: usize = 36;
/// The maximum length of the payload of a batch.
pub const MAX_PAYLOAD: usize = 1 << 30;

/// The capacity of a new buffer in bytes: enough for the records of a small commit.
const USUAL_BATCH: usize = 1000;
const CHAINED: usize = 28;
const CHECKED: usize = 32;

/// A batch read back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Batch {
    /// The start LSN. [`super::Log::op_lsn`] gives the LSNs of its records.
    pub start: Lsn,
    /// The end LSN, where the next batch starts: the commit time of its contents.
    pub end: Lsn,
    /// The kind that [`super::Log::append`] was given.
    pub kind: u8,
    /// The payload.
    pub payload: Vec<u8>,
}

/// A payload with space for the header in front, so that appending it copies nothing. Keep one and
/// [`clear`](BatchBuffer::clear) it between batches.
#[derive(Clone, Debug)]
pub struct BatchBuffer {
    bytes: Vec<u8>,
}

impl Default for BatchBuffer {
    fn default() -> BatchBuffer {
        BatchBuffer::new()
    }
}

impl BatchBuffer {
    /// An empty payload.
    pub fn new() -> BatchBuffer {
        let mut bytes = Vec::with_capacity(USUAL_BATCH);
        bytes.resize(BATCH_HEADER, 0);
        BatchBuffer { bytes }
    }

    /// Payload bytes so far: the `offset_in_payload` of the next record.
    pub fn len(&self) -> usize {
        self.bytes.len().saturating_sub(BATCH_HEADER)
    }

    /// True if the payload is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The payload so far.
    pub fn payload(&self) -> &[u8] {
        self.bytes.get(BATCH_HEADER..).unwrap_or_default()
    }

    /// The buffer, for encoders that append to a `Vec`. Only append: the space at the front is for the header.
    pub fn out(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Appends `bytes` to the payload.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Truncates the payload to `len` bytes.
    pub fn truncate(&mut self, len: usize) {
        self.bytes.truncate(BATCH_HEADER.saturating_add(len));
    }

    /// Empties the payload, keeping its memory.
    pub fn clear(&mut self) {
        self.truncate(0);
    }

    /// Writes the header. Returns the whole batch and its checksum, which is the `previous` of the next batch.
    pub(super) fn seal(&mut self, fields: &HeaderFields) -> Result<(&[u8], u32)> {
        if self.bytes.len() < BATCH_HEADER {
            self.bytes.resize(BATCH_HEADER, 0);
        }
        let length = self.len();
        let limit = fields.max_payload;
        let field = u32::try_from(length).ok().filter(|_| length <= limit).ok_or_else(|| Error::Option {
            option: "batch length",
            value: length.to_string(),
            expected: format!("at most {limit} bytes"),
        })?;
        let (header, payload) = self.bytes.split_at_mut(BATCH_HEADER);
        bytes::put_u64(header, 0, fields.start.0);
        bytes::put_u64(header, 8, fields.durable.0);
        bytes::put_u32(header, 16, field);
        bytes::put_u32(header, 20, fields.epoch);
        bytes::put_u32(header, 24, u32::from(fields.kind));
        let sum = chained(chained(fields.previous, bytes::slice(header, 0, CHAINED)), payload);
        bytes::put_u32(header, CHAINED, sum);
        let check = chained(fields.seed, bytes::slice(header, 0, CHECKED));
        bytes::put_u32(header, CHECKED, check);
        Ok((&self.bytes, sum))
    }
}

/// The fields of a header that the log sets.
pub(super) struct HeaderFields {
    /// The seed of the database's checksums, from [`super::LogConfig`].
    pub(super) seed: u32,
    pub(super) epoch: u32,
    pub(super) kind: u8,
    pub(super) start: Lsn,
    pub(super) durable: Lsn,
    /// The checksum of the previous batch.
    pub(super) previous: u32,
    /// The maximum length of the payload.
    pub(super) max_payload: usize,
}

/// A header with the right header checksum. [`BatchHeader::proves`] checks the payload.
#[derive(Debug)]
pub(super) struct BatchHeader {
    pub(super) start: Lsn,
    pub(super) durable: Lsn,
    pub(super) length: usize,
    pub(super) epoch: u32,
    pub(super) kind: u8,
    pub(super) checksum: u32,
    chained: [u8; CHAINED],
}

impl BatchHeader {
    /// Reads the header at the front of `input`; `None` if there is no header of this database.
    pub(super) fn decode(input: &[u8], seed: u32) -> Option<BatchHeader> {
        let covered = input.get(..CHECKED)?;
        let length = usize::try_from(bytes::get_u32(input, 16)).ok()?;
        let kind = u8::try_from(bytes::get_u32(input, 24)).ok()?;
        if length > MAX_PAYLOAD
            || input.len() < BATCH_HEADER
            || chained(seed, covered) != bytes::get_u32(input, CHECKED)
        {
            return None;
        }
        Some(BatchHeader {
            start: Lsn(bytes::get_u64(input, 0)),
            durable: Lsn(bytes::get_u64(input, 8)),
            length,
            epoch: bytes::get_u32(input, 20),
            kind,
            checksum: bytes::get_u32(input, CHAINED),
            chained: *input.first_chunk()?,
        })
    }

    /// True if `payload` was written with this header, after a batch with the checksum `previous`.
    pub(super) fn proves(&self, previous: u32, payload: &[u8]) -> bool {
        chained(chained(previous, &self.chained), payload) == self.checksum
    }

    /// The end LSN of the batch.
    pub(super) fn end(&self) -> Lsn {
        self.start.plus(BATCH_HEADER).plus(self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields() -> HeaderFields {
        HeaderFields {
            seed: 7,
            epoch: 3,
            kind: 9,
            start: Lsn(1000),
            durable: Lsn(900),
            previous: 0xabcd,
            max_payload: MAX_PAYLOAD,
        }
    }

    #[test]
    fn a_sealed_batch_is_valid_and_with_a_flipped_bit_it_is_not() {
        let mut buffer = BatchBuffer::new();
        buffer.push(b"records");
        let (sealed, sum) = buffer.seal(&fields()).unwrap();
        let mut sealed = sealed.to_vec();
        let header = BatchHeader::decode(&sealed, 7).unwrap();
        assert_eq!((header.start, header.durable, header.length), (Lsn(1000), Lsn(900), 7));
        assert_eq!((header.epoch, header.kind, header.checksum), (3, 9, sum));
        assert_eq!(header.end(), Lsn(1000 + 36 + 7));
        assert!(header.proves(0xabcd, b"records"));
        assert!(!header.proves(0xabce, b"records"), "another chain");
        assert!(BatchHeader::decode(&sealed, 8).is_none(), "another database");
        for at in 0..sealed.len() {
            for bit in 0..8 {
                sealed[at] ^= 1 << bit;
                let valid = BatchHeader::decode(&sealed, 7).is_some_and(|h| h.proves(0xabcd, &sealed[BATCH_HEADER..]));
                assert!(!valid, "byte {at} bit {bit}");
                sealed[at] ^= 1 << bit;
            }
        }
    }

    #[test]
    fn a_truncated_header_and_zeros_are_invalid() {
        let mut buffer = BatchBuffer::new();
        let sealed = buffer.seal(&fields()).unwrap().0.to_vec();
        for len in 0..BATCH_HEADER {
            assert!(BatchHeader::decode(&sealed[..len], 7).is_none(), "{len}");
        }
        assert!(BatchHeader::decode(&[0; 64], 7).is_none());
    }

    #[test]
    fn a_buffer_keeps_space_for_the_header_after_truncations() {
        let mut buffer = BatchBuffer::new();
        buffer.push(b"abc");
        buffer.out().push(b'd');
        assert_eq!((buffer.len(), buffer.payload()), (4, b"abcd".as_slice()));
        buffer.truncate(1);
        assert_eq!(buffer.payload(), b"a");
        buffer.clear();
        assert!(buffer.is_empty());
        buffer.out().clear();
        assert_eq!(buffer.seal(&fields()).unwrap().0.len(), BATCH_HEADER);
    }
}

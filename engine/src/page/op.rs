//! All operations that can change a page, and their encoding in the log. `apply` performs them.
//!
//! An operation is `tag u8`, then its fields in order: numbers as varints (signed ones in zigzag code), byte strings as
//! `varint length | bytes`, records as `varint (length << 1 | large) | bytes`. The upper fence of a Keep is `varint 0`
//! for none, else `varint length + 1` and the bytes. A run is its number of entries, then each entry: its slot minus
//! the slot of the entry before, its key, its record.

use super::records::Record;
use crate::base::bytes::take;
use crate::base::{Error, PageId, Result, varint};
use std::borrow::Cow;

/// An entry of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NewEntry<'a> {
    /// The position of the entry, as a slot of the page before the run: not below the slot of the entry before it.
    pub slot: u16,
    /// The key image.
    pub key: &'a [u8],
    /// The record.
    pub record: Record<'a>,
}

/// One operation on one page, as the log holds it. Applying it is deterministic, byte for byte.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PageOp<'a> {
    /// New content of the whole page, of any kind: tag 1.
    Format {
        /// The packed page.
        packed: Cow<'a, [u8]>,
    },
    /// A new entry: tag 2.
    Insert {
        /// The slot of the new entry; the entries from there on move up.
        slot: u16,
        /// The key image; ignored at slot 0 of an inner page, where the key is the bare prefix.
        key: &'a [u8],
        /// The record.
        record: Record<'a>,
    },
    /// A new record for an existing entry: tag 3.
    Replace {
        /// The slot of the entry.
        slot: u16,
        /// The new record.
        record: Record<'a>,
    },
    /// Removes the entries `[from, to)`: tag 4. An inner page's new first key becomes the bare prefix.
    Remove {
        /// The first slot that is removed.
        from: u16,
        /// The first slot that stays.
        to: u16,
    },
    /// Keeps the entries `[from, to)`, laid out again under other fences: tag 5.
    Keep {
        /// The first slot that stays.
        from: u16,
        /// The first slot that is removed.
        to: u16,
        /// The new lower fence.
        lower: &'a [u8],
        /// The new upper fence.
        upper: Option<&'a [u8]>,
        /// The new right sibling.
        right: PageId,
    },
    /// A new right sibling: tag 6.
    SetRight {
        /// The sibling.
        right: PageId,
    },
    /// Sets bits of an allocation map: tag 7.
    SetBits {
        /// The first bit.
        from: u32,
        /// The number of bits.
        count: u32,
    },
    /// Clears bits of an allocation map: tag 8.
    ClearBits {
        /// The first bit.
        from: u32,
        /// The number of bits.
        count: u32,
    },
    /// New entries of a leaf, in the order of their keys: tag 9. See [`super::insert_run`].
    InsertRun {
        /// The entries.
        entries: Cow<'a, [NewEntry<'a>]>,
    },
    /// Adds to a u64 in an inline record: tag 10. The length of the record does not change. The sum saturates.
    AddToRecord {
        /// The slot of the entry.
        slot: u16,
        /// The byte offset of the number in the record.
        offset: u16,
        /// The number that is added.
        delta: i64,
    },
}

impl<'a> PageOp<'a> {
    /// Appends the operation's bytes to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            PageOp::Format { packed } => {
                out.push(1);
                push_bytes(out, packed);
            }
            PageOp::Insert { slot, key, record } => {
                out.push(2);
                varint::push(out, u64::from(*slot));
                push_bytes(out, key);
                push_record(out, *record);
            }
            PageOp::Replace { slot, record } => {
                out.push(3);
                varint::push(out, u64::from(*slot));
                push_record(out, *record);
            }
            PageOp::Remove { from, to } => push_numbers(out, 4, [u32::from(*from), u32::from(*to)]),
            PageOp::Keep { from, to, lower, upper, right } => {
                push_numbers(out, 5, [u32::from(*from), u32::from(*to)]);
                push_bytes(out, lower);
                varint::push(out, upper.map_or(0, |upper| upper.len() as u64 + 1));
                out.extend_from_slice(upper.unwrap_or_default());
                varint::push(out, u64::from(right.0));
            }
            PageOp::SetRight { right } => push_numbers(out, 6, [right.0]),
            PageOp::SetBits { from, count } => push_numbers(out, 7, [*from, *count]),
            PageOp::ClearBits { from, count } => push_numbers(out, 8, [*from, *count]),
            PageOp::InsertRun { entries } => push_run(out, entries),
            PageOp::AddToRecord { slot, offset, delta } => {
                push_numbers(out, 10, [u32::from(*slot), u32::from(*offset)]);
                varint::push_signed(out, *delta);
            }
        }
    }

    /// Decodes one operation at the front of `input` and advances `input` after it. Any bytes are safe; malformed ones
    /// are `Error::CorruptMeta`.
    pub fn decode(input: &mut &'a [u8]) -> Result<PageOp<'a>> {
        Self::take(input)
            .ok_or_else(|| Error::CorruptMeta { what: "a page operation", why: "it is truncated or malformed".into() })
    }

    fn take(input: &mut &'a [u8]) -> Option<PageOp<'a>> {
        let tag = take(input, 1)?.first().copied()?;
        Some(match tag {
            1 => PageOp::Format { packed: Cow::Borrowed(take_bytes(input)?) },
            2 => PageOp::Insert { slot: take_number(input)?, key: take_bytes(input)?, record: take_record(input)? },
            3 => PageOp::Replace { slot: take_number(input)?, record: take_record(input)? },
            4 => PageOp::Remove { from: take_number(input)?, to: take_number(input)? },
            5 => PageOp::Keep {
                from: take_number(input)?,
                to: take_number(input)?,
                lower: take_bytes(input)?,
                upper: match varint::take(input)?.checked_sub(1) {
                    Some(len) => Some(take(input, usize::try_from(len).ok()?)?),
                    None => None,
                },
                right: PageId(take_number(input)?),
            },
            6 => PageOp::SetRight { right: PageId(take_number(input)?) },
            7 => PageOp::SetBits { from: take_number(input)?, count: take_number(input)? },
            8 => PageOp::ClearBits { from: take_number(input)?, count: take_number(input)? },
            9 => PageOp::InsertRun { entries: Cow::Owned(take_run(input)?) },
            10 => PageOp::AddToRecord {
                slot: take_number(input)?,
                offset: take_number(input)?,
                delta: varint::take_signed(input)?,
            },
            _ => return None,
        })
    }
}

fn push_numbers<const N: usize>(out: &mut Vec<u8>, tag: u8, numbers: [u32; N]) {
    out.push(tag);
    for number in numbers {
        varint::push(out, u64::from(number));
    }
}

fn push_run(out: &mut Vec<u8>, entries: &[NewEntry<'_>]) {
    out.push(9);
    varint::push(out, entries.len() as u64);
    let mut before = 0;
    for entry in entries {
        varint::push(out, u64::from(entry.slot.wrapping_sub(before)));
        push_bytes(out, entry.key);
        push_record(out, entry.record);
        before = entry.slot;
    }
}

fn push_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    varint::push(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn push_record(out: &mut Vec<u8>, record: Record<'_>) {
    varint::push(out, (record.bytes.len() as u64) << 1 | u64::from(record.large));
    out.extend_from_slice(record.bytes);
}

fn take_run<'a>(input: &mut &'a [u8]) -> Option<Vec<NewEntry<'a>>> {
    let count: u16 = take_number(input)?;
    // The count may be damaged. An entry has at least three bytes, so the input limits the memory.
    let mut entries = Vec::with_capacity(usize::from(count).min(input.len() / 3));
    let mut slot = 0u16;
    for _ in 0..count {
        slot = slot.checked_add(take_number(input)?)?;
        entries.push(NewEntry { slot, key: take_bytes(input)?, record: take_record(input)? });
    }
    Some(entries)
}

fn take_number<T: TryFrom<u64>>(input: &mut &[u8]) -> Option<T> {
    varint::take(input).and_then(|number| T::try_from(number).ok())
}

fn take_bytes<'a>(input: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = take_number(input)?;
    take(input, len)
}

fn take_record<'a>(input: &mut &'a [u8]) -> Option<Record<'a>> {
    let length: u64 = take_number(input)?;
    let bytes = take(input, usize::try_from(length >> 1).ok()?)?;
    Some(Record { bytes, large: length & 1 == 1 })
}

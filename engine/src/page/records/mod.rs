//! Record lists: how a page stores its records. A record list grows down from the end of the page. Each kind of list
//! has a file of its own. Each access to a page has one `match` that chooses between the kinds.

mod fixed;
mod variable;

use super::keys::capacity;
use crate::base::limits::{LARGE_RECORD, PAGE_FRONT};
use std::ops::Range;

/// The bytes of slots that are prefetched: two cache lines have those of 64 records.
const FIRST_SLOTS: usize = 128;

/// The part of an entry that is not its key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Record<'a> {
    /// The value, or the reference to a large value.
    pub bytes: &'a [u8],
    /// True if the value is in a run of pages: `bytes` are then first page u32, length u32, checksum u32.
    pub large: bool,
}

impl<'a> Record<'a> {
    /// Returns a record that the page holds whole.
    pub fn inline(bytes: &'a [u8]) -> Record<'a> {
        Record { bytes, large: false }
    }
}

/// The kind of a record list; the number is its tag in the page header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum RecordListKind {
    /// The page has keys only: every record is empty.
    None = 0,
    /// Records of one length, without slots. Inner pages use this kind with records of 4 bytes, each a page id.
    Fixed = 1,
    /// Records of any length, some of which may be large.
    Variable = 2,
}

impl RecordListKind {
    /// Returns the kind with this tag.
    #[inline(always)]
    pub fn from_tag(tag: u8) -> Option<RecordListKind> {
        const KINDS: [RecordListKind; 3] = [RecordListKind::None, RecordListKind::Fixed, RecordListKind::Variable];
        KINDS.get(usize::from(tag)).copied()
    }

    /// Returns where the slots of the first records are, in a page of this size beyond its first [`PAGE_FRONT`] bytes;
    /// `None` without slots. A lookup reads a slot before it knows where the record is.
    #[inline(always)]
    pub(super) fn first_slots(self, page_size: usize) -> Option<Range<usize>> {
        let slots = page_size.saturating_sub(FIRST_SLOTS)..page_size;
        (self == RecordListKind::Variable && slots.start >= PAGE_FRONT).then_some(slots)
    }

    /// Returns the bytes that a record of `len` bytes takes, including its slot.
    pub(super) fn entry_bytes(self, len: usize) -> usize {
        match self {
            RecordListKind::None => 0,
            RecordListKind::Fixed => len,
            RecordListKind::Variable => variable::entry_bytes(len),
        }
    }
}

/// A record list to read. Any bytes are safe.
#[derive(Clone, Copy)]
pub(super) struct RecordList<'a> {
    /// The kind of the list.
    pub(super) kind: RecordListKind,
    /// The bytes of the list alone.
    pub(super) list: &'a [u8],
    /// The number of entries.
    pub(super) count: usize,
    /// The granule of the page.
    pub(super) granule: usize,
}

impl<'a> RecordList<'a> {
    /// Returns the record of `slot`; an empty record if there is no such slot.
    #[inline]
    pub(super) fn get(&self, slot: usize) -> Record<'a> {
        match self.kind {
            _ if slot >= self.count => Record::default(),
            RecordListKind::None => Record::default(),
            RecordListKind::Fixed => Record::inline(fixed::get(self.list, slot)),
            RecordListKind::Variable => variable::get(self.list, self.count, self.granule, slot),
        }
    }

    /// Returns the bytes that the record of `slot` takes, including its slot.
    #[inline]
    pub(super) fn entry_bytes(&self, slot: usize) -> usize {
        if self.kind == RecordListKind::None { 0 } else { self.kind.entry_bytes(self.get(slot).bytes.len()) }
    }
}

/// Returns the record of `slot` in the record list of an inner page: 4 bytes, whatever the size field says.
#[inline(always)]
pub(super) fn child(list: &[u8], slot: usize) -> &[u8] {
    fixed::get_sized(list, slot, 4)
}

/// Checks the structure of the list. The error says what is wrong.
pub(super) fn check(kind: RecordListKind, list: &[u8], count: usize, granule: usize) -> Result<(), String> {
    match kind {
        RecordListKind::None if list.is_empty() => Ok(()),
        RecordListKind::None => Err(format!("{} bytes where there should be none", list.len())),
        RecordListKind::Fixed => fixed::check(list, count),
        RecordListKind::Variable => variable::check(list, count, granule),
    }
    .map_err(|what| format!("record list {kind:?}: {what}"))
}

/// The state of a record list before a change: its length in bytes, its number of entries, the granule of the page.
#[derive(Clone, Copy)]
pub(super) struct RecordState {
    pub(super) kind: RecordListKind,
    pub(super) bytes: usize,
    pub(super) count: usize,
    pub(super) granule: usize,
}

/// Returns false if the list's bytes cannot hold its entries' slots or records. Such a list must not be changed.
pub(super) fn is_changeable(list: &[u8], state: RecordState) -> bool {
    match state.kind {
        RecordListKind::None => state.bytes == 0,
        RecordListKind::Fixed => fixed::check(list, state.count).is_ok(),
        RecordListKind::Variable => state.bytes >= slots_bytes(state.count, state.granule),
    }
}

/// Returns the bytes that the list takes with `record` added.
pub(super) fn bytes_with(list: &[u8], state: RecordState, record: Record<'_>) -> Result<usize, String> {
    fits_kind(state.kind, record)?;
    match state.kind {
        RecordListKind::None => Ok(0),
        RecordListKind::Fixed => fixed::bytes_with(list, state, record.bytes),
        RecordListKind::Variable => Ok(variable::bytes_with(state, record.bytes.len())),
    }
}

/// Returns the bytes that the list takes with `record` in place of the record of `slot`.
pub(super) fn bytes_replacing(
    list: &[u8],
    state: RecordState,
    slot: usize,
    record: Record<'_>,
) -> Result<usize, String> {
    fits_kind(state.kind, record)?;
    match state.kind {
        RecordListKind::None => Ok(0),
        RecordListKind::Fixed => fixed::check_length(list, record.bytes).map(|()| state.bytes),
        RecordListKind::Variable => variable::bytes_replacing(list, state, slot, record.bytes.len()),
    }
}

fn fits_kind(kind: RecordListKind, record: Record<'_>) -> Result<(), String> {
    match (kind, record.large) {
        (RecordListKind::Variable, true) if record.bytes.len() != LARGE_RECORD => {
            Err(format!("a large record has {LARGE_RECORD} bytes, not {}", record.bytes.len()))
        }
        (RecordListKind::None, false) if !record.bytes.is_empty() => {
            Err(format!("a record of {} bytes in a list without records", record.bytes.len()))
        }
        (RecordListKind::None | RecordListKind::Fixed, true) => Err(format!("a large record in a {kind:?} list")),
        (RecordListKind::Variable, _) | (RecordListKind::None | RecordListKind::Fixed, false) => Ok(()),
    }
}

/// Inserts `record` at `slot`. `list` ends at the end of the page and has the length that [`bytes_with`] returns for
/// this record. All its bytes before the last `state.bytes` are zero.
pub(super) fn insert(list: &mut [u8], state: RecordState, slot: usize, record: Record<'_>) {
    match state.kind {
        RecordListKind::None => {}
        RecordListKind::Fixed => fixed::insert(list, state, slot, record.bytes),
        RecordListKind::Variable => variable::insert(list, state, slot, record),
    }
}

/// Replaces the record of `slot` by `record`. `list` ends at the end of the page. Its length is the larger of its
/// present length and the length that [`bytes_replacing`] returns. The bytes that a shorter record frees become zero.
pub(super) fn replace(list: &mut [u8], state: RecordState, slot: usize, record: Record<'_>) {
    match state.kind {
        RecordListKind::None => {}
        RecordListKind::Fixed => fixed::replace(list, slot, record.bytes),
        RecordListKind::Variable => variable::replace(list, state, slot, record),
    }
}

/// Returns the bytes of the record of `slot`, to be changed in place. Returns no bytes if there is no such record or if
/// it is a large one. `list` is the bytes of the list alone.
pub(super) fn inline_mut(list: &mut [u8], state: RecordState, slot: usize) -> &mut [u8] {
    let range = match state.kind {
        _ if slot >= state.count => None,
        RecordListKind::None => None,
        RecordListKind::Fixed => fixed::range(list, slot),
        RecordListKind::Variable => variable::inline_range(list, state, slot),
    };
    range.and_then(|range| list.get_mut(range)).unwrap_or_default()
}

/// How a removal changes a list. It is planned before anything changes.
pub(super) enum RecordRemoval {
    /// The page has no records.
    Nothing,
    /// The records have one length: the records that stay move over those that go.
    Packed,
    /// One entry leaves the heap: the distance of its front from the heap's upper border, and its length in the heap.
    One(usize, usize),
    /// The list is laid out again: its new bytes.
    Anew(Vec<u8>),
}

/// Plans how [`remove`] takes out the entries `[from, to)`, a range that is not empty. `list` is the bytes of the list
/// alone.
#[inline]
pub(super) fn plan_removal(list: &[u8], state: RecordState, from: usize, to: usize) -> Result<RecordRemoval, String> {
    match state.kind {
        RecordListKind::None => Ok(RecordRemoval::Nothing),
        RecordListKind::Fixed => Ok(RecordRemoval::Packed),
        RecordListKind::Variable => variable::plan_removal(list, state, from, to),
    }
}

/// Takes the entries `[from, to)` out, zeroes the bytes that this frees and returns the new length of the list.
pub(super) fn remove(list: &mut [u8], state: RecordState, from: usize, to: usize, removal: &RecordRemoval) -> usize {
    match removal {
        RecordRemoval::Nothing => 0,
        RecordRemoval::Packed => fixed::remove(list, state, from, to),
        RecordRemoval::One(distance, size) => variable::remove_one(list, state, from, *distance, *size),
        RecordRemoval::Anew(left) => variable::put_left(list, left),
    }
}

/// Checks that each slot has its own entry of the heap, and that the entries cover the heap without gaps. `size`
/// returns the length of the entry at the front of its argument, `None` if the entry is malformed. Slots are offsets
/// from the heap's front.
pub(super) fn check_tiling(
    heap: &[u8],
    slots: impl Iterator<Item = usize>,
    size: impl Fn(&[u8]) -> Option<usize>,
) -> Result<(), String> {
    let mut starts = vec![0u64; heap.len() / 64 + 1];
    let mut distinct = 0;
    for slot in slots {
        let bit = 1u64 << (slot % 64);
        match starts.get_mut(slot / 64) {
            Some(word) if slot < heap.len() && *word & bit == 0 => *word |= bit,
            _ => return Err(format!("slot value {slot} is outside the heap of {} bytes or used twice", heap.len())),
        }
        distinct += 1;
    }
    let (mut at, mut entries) = (0, 0);
    while at < heap.len() {
        let known = starts.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 == 1);
        let Some(bytes) = size(bytes_from(heap, at)).filter(|_| known) else {
            return Err(format!("the heap has no entry at {at}"));
        };
        at += bytes.max(1);
        entries += 1;
    }
    if at == heap.len() && entries == distinct {
        return Ok(());
    }
    Err(format!("{entries} heap entries of {at} bytes for {distinct} slots in {} bytes", heap.len()))
}

fn bytes_from(heap: &[u8], at: usize) -> &[u8] {
    heap.get(at..).unwrap_or_default()
}

/// A record list under construction.
pub(super) enum RecordListBuilder {
    None,
    Fixed(fixed::FixedRecordsBuilder),
    Variable(variable::VariableBuilder),
}

impl RecordListBuilder {
    /// Begins a list for a page of up to `bytes` bytes.
    pub(super) fn new(kind: RecordListKind, granule: usize, bytes: usize) -> RecordListBuilder {
        match kind {
            RecordListKind::None => RecordListBuilder::None,
            RecordListKind::Fixed => RecordListBuilder::Fixed(fixed::FixedRecordsBuilder::new(bytes)),
            RecordListKind::Variable => RecordListBuilder::Variable(variable::VariableBuilder::new(granule, bytes)),
        }
    }

    /// Returns the bytes that the list takes with `record`; `None` if the list cannot hold this record at all.
    #[inline]
    pub(super) fn bytes_with(&self, record: Record<'_>) -> Option<usize> {
        match self {
            RecordListBuilder::None => fits_kind(RecordListKind::None, record).ok().map(|()| 0),
            RecordListBuilder::Fixed(list) => {
                fits_kind(RecordListKind::Fixed, record).ok().and_then(|()| list.bytes_with(record.bytes))
            }
            RecordListBuilder::Variable(list) => {
                fits_kind(RecordListKind::Variable, record).ok().map(|()| list.bytes_with(record.bytes.len()))
            }
        }
    }

    /// Returns the bytes that the list takes now.
    pub(super) fn bytes(&self) -> usize {
        match self {
            RecordListBuilder::None => 0,
            RecordListBuilder::Fixed(list) => list.bytes(),
            RecordListBuilder::Variable(list) => list.bytes(),
        }
    }

    /// Appends a record for which [`RecordListBuilder::bytes_with`] is not `None`.
    #[inline]
    pub(super) fn push(&mut self, record: Record<'_>) {
        match self {
            RecordListBuilder::None => {}
            RecordListBuilder::Fixed(list) => list.push(record.bytes),
            RecordListBuilder::Variable(list) => list.push(record),
        }
    }

    /// Appends the finished list to `out`.
    pub(super) fn finish(self, out: &mut Vec<u8>) {
        match self {
            RecordListBuilder::None => {}
            RecordListBuilder::Fixed(list) => list.finish(out),
            RecordListBuilder::Variable(list) => list.finish(out),
        }
    }
}

/// Returns the bytes of the slots of a variable list of `count` records.
#[inline(always)]
fn slots_bytes(count: usize, granule: usize) -> usize {
    2 * capacity(count, granule)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The slots are read before the record, so they are worth a prefetch, unless that of the front has them already.
    #[test]
    fn first_slots_are_at_the_end_of_a_page_with_records_of_any_length() {
        assert_eq!(RecordListKind::Variable.first_slots(8192), Some(8064..8192));
        assert_eq!(RecordListKind::Variable.first_slots(512), None);
        assert_eq!(RecordListKind::Fixed.first_slots(8192), None);
    }
}

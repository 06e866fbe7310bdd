//! The logical record of a large transaction: all its steps. It is written before any step changes a page.
//!
//! It is written as one or more batches of kind `LOGICAL`, each at most [`PIECE`] bytes: `flags u8 | bytes`, where flag
//! 1 marks the last piece and flag 2 the first. The joined bytes are steps:
//!
//! | tag | step |
//! |---|---|
//! | 1 | tree: table u32, root u32, layout; later steps name trees by their order of appearance (varint) |
//! | 2 | adopt: page id u32, has place u8, place if so, as in a record |
//! | 3 | create: tree |
//! | 4 | drop: tree, keep runs of large values u8 |
//! | 5 | clear: tree, varint length, lower key, has upper u8, varint length, upper key (exclusive) |
//! | 6 | put: tree, large u8, varint key length, key, varint record length, record |
//! | 7 | remove: tree, varint key length, key |
//! | 8 | add to a record: tree, varint key length, key, varint offset, zigzag varint delta |

use super::layout::{LAYOUT_BYTES, layout_from_bytes, layout_to_bytes};
use super::record::LOGICAL;
use crate::base::bytes::take;
use crate::base::{Error, Lsn, PageId, Result, TableId, varint};
use crate::log::{BatchBuffer, Log};
use crate::page::Record;
use crate::store::PlaceBytes;
use crate::tree::{LeafHint, Tree};
use crate::txn::commit::steps::Step;
use crate::txn::space::reclaim::LargeValues;
use std::collections::BTreeMap;

/// The flags of a piece.
const LAST: u8 = 1;
const FIRST: u8 = 2;
/// The most bytes of steps in one batch.
const PIECE: usize = 4 << 20;

/// A transaction read back from the log. It keeps the bytes and decodes each step when it is needed.
#[derive(Debug, Default)]
pub(crate) struct LogicalTransaction {
    /// The LSN of its first batch.
    pub(crate) start: Lsn,
    bytes: Vec<u8>,
    trees: Vec<Tree>,
    len: usize,
    /// How many steps are already applied.
    pub(crate) done: usize,
}

/// Writes the steps to the log and returns the LSN of the first batch.
pub(crate) fn write<'a>(log: &Log, steps: impl Iterator<Item = Step<'a>>) -> Result<Lsn> {
    let start = log.next_lsn();
    let mut trees = BTreeMap::new();
    let most = PIECE.min(log.max_payload() / 2);
    let mut out = Vec::with_capacity(most);
    let mut first = FIRST;
    for step in steps {
        encode(&step, &mut trees, &mut out);
        while out.len() >= most {
            append(log, out.get(..most).unwrap_or(&out), std::mem::take(&mut first))?;
            out.drain(..most);
        }
    }
    append(log, &out, first | LAST)?;
    Ok(start)
}

/// Joins the pieces of a record. If a power cut prevents the last piece of a record, the record ends where the next one
/// begins.
#[derive(Debug, Default)]
pub(crate) struct LogicalReader {
    bytes: Vec<u8>,
    start: Lsn,
}

impl LogicalReader {
    /// Adds the payload of a batch that starts at `start`. Returns the transaction if this was the last piece.
    pub(crate) fn push(&mut self, payload: &[u8], start: Lsn) -> Result<Option<LogicalTransaction>> {
        let Some((flags, bytes)) = payload.split_first() else {
            return Err(Error::CorruptLog { lsn: start, what: "an empty piece of a transaction".into() });
        };
        if flags & FIRST != 0 {
            (self.bytes, self.start) = (Vec::new(), start);
        }
        self.bytes.extend_from_slice(bytes);
        if flags & LAST == 0 {
            return Ok(None);
        }
        LogicalTransaction::decode(std::mem::take(&mut self.bytes), self.start).map(Some)
    }
}

fn append(log: &Log, piece: &[u8], flags: u8) -> Result<Lsn> {
    let mut batch = BatchBuffer::new();
    batch.push(&[flags]);
    batch.push(piece);
    log.append_buffer(LOGICAL, &mut batch)
}

fn encode(step: &Step<'_>, trees: &mut BTreeMap<PageId, u64>, out: &mut Vec<u8>) {
    let mut tree_number = |tree: &Tree, out: &mut Vec<u8>| match trees.get(&tree.root) {
        Some(number) => *number,
        None => {
            let number = trees.len() as u64;
            trees.insert(tree.root, number);
            out.push(1);
            out.extend_from_slice(&tree.table.0.to_le_bytes());
            out.extend_from_slice(&tree.root.0.to_le_bytes());
            out.extend_from_slice(&layout_to_bytes(&tree.layout));
            number
        }
    };
    match *step {
        Step::Adopt { page, place } => {
            out.push(2);
            out.extend_from_slice(&page.0.to_le_bytes());
            out.push(u8::from(place.is_some()));
            if let Some(place) = place {
                place.encode(out);
            }
        }
        Step::Create { tree } => {
            let number = tree_number(tree, out);
            out.push(3);
            varint::push(out, number);
        }
        Step::Drop { tree, large_values } => {
            let number = tree_number(tree, out);
            out.push(4);
            varint::push(out, number);
            out.push(large_values as u8);
        }
        Step::Clear { tree, lower, upper } => {
            let number = tree_number(tree, out);
            out.push(5);
            varint::push(out, number);
            push_bytes(out, lower);
            out.push(u8::from(upper.is_some()));
            push_bytes(out, upper.unwrap_or_default());
        }
        Step::Put { tree, key, record, .. } => {
            let number = tree_number(tree, out);
            out.push(6);
            varint::push(out, number);
            out.push(u8::from(record.large));
            push_bytes(out, key);
            push_bytes(out, record.bytes);
        }
        Step::Remove { tree, key, .. } => {
            let number = tree_number(tree, out);
            out.push(7);
            varint::push(out, number);
            push_bytes(out, key);
        }
        Step::AddToRecord { tree, key, offset, delta } => {
            let number = tree_number(tree, out);
            out.push(8);
            varint::push(out, number);
            push_bytes(out, key);
            varint::push(out, u64::from(offset));
            varint::push_signed(out, delta);
        }
    }
}

fn push_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    varint::push(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

impl LogicalTransaction {
    /// Returns the number of steps.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns the bytes of the steps.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Decodes the joined pieces of a transaction that begins at `start`, and checks every step.
    pub(crate) fn decode(bytes: Vec<u8>, start: Lsn) -> Result<LogicalTransaction> {
        let (mut trees, mut len) = (Vec::new(), 0);
        let mut input = bytes.as_slice();
        while !input.is_empty() {
            let damaged = || Error::CorruptLog { lsn: start, what: "a large transaction with a damaged step".into() };
            match LogicalItem::take(&mut input).ok_or_else(damaged)? {
                LogicalItem::Tree(tree) => trees.push(tree),
                item if item.tree().is_some_and(|tree| tree >= trees.len()) => return Err(damaged()),
                _ => len += 1,
            }
        }
        Ok(LogicalTransaction { start, bytes, trees, len, done: 0 })
    }

    /// Returns the steps, as commit takes them.
    pub(crate) fn steps(&self) -> impl Iterator<Item = Step<'_>> + Clone {
        // `decode` has checked every item and every tree number, so no step is left out.
        self.items().filter_map(|item| item.step(&self.trees))
    }

    fn items(&self) -> impl Iterator<Item = LogicalItem<'_>> + Clone {
        let mut input = self.bytes.as_slice();
        std::iter::from_fn(move || LogicalItem::take(&mut input))
    }

    /// Returns the pages that the transaction has reserved and that are not yet in an allocation map.
    pub(crate) fn reserved(&self) -> impl Iterator<Item = PageId> {
        self.steps().skip(self.done).filter_map(|step| match step {
            Step::Adopt { page, .. } => Some(page),
            Step::Create { tree } => Some(tree.root),
            _ => None,
        })
    }

    /// Returns the pages that the transaction refers to: those that it adopts, and the roots of its trees.
    pub(crate) fn named(&self) -> impl Iterator<Item = PageId> {
        self.items().filter_map(|item| match item {
            LogicalItem::Tree(tree) => Some(tree.root),
            LogicalItem::Adopt { page, .. } => Some(page),
            _ => None,
        })
    }

    /// Returns the pages of the transaction that were written outside the log, with their places.
    pub(crate) fn places(&self) -> impl Iterator<Item = (PageId, PlaceBytes)> {
        self.steps().filter_map(|step| match step {
            Step::Adopt { page, place } => place.map(|place| (page, place)),
            _ => None,
        })
    }
}

/// One item of a logical record. Trees are represented by their numbers.
#[derive(Clone, Copy)]
enum LogicalItem<'a> {
    /// Defines the next tree number; not a step.
    Tree(Tree),
    Adopt {
        page: PageId,
        place: Option<PlaceBytes>,
    },
    Create {
        tree: usize,
    },
    Drop {
        tree: usize,
        large_values: LargeValues,
    },
    Clear {
        tree: usize,
        lower: &'a [u8],
        upper: Option<&'a [u8]>,
    },
    Put {
        tree: usize,
        key: &'a [u8],
        record: Record<'a>,
    },
    Remove {
        tree: usize,
        key: &'a [u8],
    },
    AddToRecord {
        tree: usize,
        key: &'a [u8],
        offset: u16,
        delta: i64,
    },
}

impl<'a> LogicalItem<'a> {
    /// Decodes the item at the front of `input` and advances `input` after it. `None` means damage or the end.
    fn take(input: &mut &'a [u8]) -> Option<LogicalItem<'a>> {
        Some(match take_u8(input)? {
            1 => {
                let table = TableId(take_u32(input)?);
                let root = PageId(take_u32(input)?);
                let layout = layout_from_bytes(take(input, LAYOUT_BYTES)?)?;
                LogicalItem::Tree(Tree { root, table, layout })
            }
            2 => {
                let page = PageId(take_u32(input)?);
                let place = match take_u8(input)? {
                    0 => None,
                    _ => Some(PlaceBytes::take(input)?),
                };
                LogicalItem::Adopt { page, place }
            }
            3 => LogicalItem::Create { tree: take_number(input)? },
            4 => {
                let tree = take_number(input)?;
                let large_values =
                    if take_u8(input)? == LargeValues::Keep as u8 { LargeValues::Keep } else { LargeValues::Free };
                LogicalItem::Drop { tree, large_values }
            }
            5 => {
                let (tree, lower) = (take_number(input)?, take_bytes(input)?);
                let bounded = take_u8(input)? == 1;
                let upper = take_bytes(input)?;
                LogicalItem::Clear { tree, lower, upper: bounded.then_some(upper) }
            }
            6 => {
                let tree = take_number(input)?;
                let large = take_u8(input)? == 1;
                let key = take_bytes(input)?;
                LogicalItem::Put { tree, key, record: Record { bytes: take_bytes(input)?, large } }
            }
            7 => LogicalItem::Remove { tree: take_number(input)?, key: take_bytes(input)? },
            8 => LogicalItem::AddToRecord {
                tree: take_number(input)?,
                key: take_bytes(input)?,
                offset: take_number(input)?,
                delta: varint::take_signed(input)?,
            },
            _ => return None,
        })
    }

    /// Returns the number of the item's tree.
    fn tree(&self) -> Option<usize> {
        match *self {
            LogicalItem::Tree(_) | LogicalItem::Adopt { .. } => None,
            LogicalItem::Create { tree }
            | LogicalItem::Drop { tree, .. }
            | LogicalItem::Clear { tree, .. }
            | LogicalItem::Put { tree, .. }
            | LogicalItem::Remove { tree, .. }
            | LogicalItem::AddToRecord { tree, .. } => Some(tree),
        }
    }

    /// Returns the step of the item, if it is a step.
    fn step(self, trees: &'a [Tree]) -> Option<Step<'a>> {
        Some(match self {
            LogicalItem::Tree(_) => return None,
            LogicalItem::Adopt { page, place } => Step::Adopt { page, place },
            LogicalItem::Create { tree } => Step::Create { tree: trees.get(tree)? },
            LogicalItem::Drop { tree, large_values } => Step::Drop { tree: trees.get(tree)?, large_values },
            LogicalItem::Clear { tree, lower, upper } => Step::Clear { tree: trees.get(tree)?, lower, upper },
            LogicalItem::Put { tree, key, record } => {
                Step::Put { tree: trees.get(tree)?, key, record, hint: LeafHint::NONE }
            }
            LogicalItem::Remove { tree, key } => Step::Remove { tree: trees.get(tree)?, key, hint: LeafHint::NONE },
            LogicalItem::AddToRecord { tree, key, offset, delta } => {
                Step::AddToRecord { tree: trees.get(tree)?, key, offset, delta }
            }
        })
    }
}

fn take_u8(input: &mut &[u8]) -> Option<u8> {
    take(input, 1)?.first().copied()
}

fn take_u32(input: &mut &[u8]) -> Option<u32> {
    Some(u32::from_le_bytes(take(input, 4)?.try_into().ok()?))
}

fn take_bytes<'a>(input: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = usize::try_from(varint::take(input)?).ok()?;
    take(input, len)
}

fn take_number<T: TryFrom<u64>>(input: &mut &[u8]) -> Option<T> {
    T::try_from(varint::take(input)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::{KeyListKind, RecordListKind, SeparatorRule};
    use crate::tree::TreeLayout;
    use proptest::prelude::*;

    fn tree(root: u32) -> Tree {
        let (leaf, inner) = (KeyListKind::USUAL, KeyListKind::USUAL);
        let layout = TreeLayout { leaf, inner, records: RecordListKind::Variable, separators: SeparatorRule::TAIL };
        Tree { root: PageId(root), table: TableId(3), layout }
    }

    fn steps<'a>(a: &'a Tree, b: &'a Tree) -> [Step<'a>; 9] {
        let hint = LeafHint::NONE;
        [
            Step::Adopt { page: PageId(77), place: None },
            Step::Create { tree: a },
            Step::Drop { tree: b, large_values: LargeValues::Keep },
            Step::Clear { tree: a, lower: b"ash", upper: Some(b"elm") },
            Step::Clear { tree: b, lower: b"", upper: None },
            Step::Put { tree: b, key: b"oak", record: Record { bytes: &[7; 12], large: true }, hint },
            Step::Remove { tree: a, key: b"yew", hint },
            Step::AddToRecord { tree: a, key: b"fir", offset: 8, delta: -300 },
            Step::AddToRecord { tree: b, key: b"", offset: u16::MAX, delta: i64::MAX },
        ]
    }

    fn encoded(steps: &[Step<'_>]) -> Vec<u8> {
        let (mut trees, mut out) = (BTreeMap::new(), Vec::new());
        steps.iter().for_each(|step| encode(step, &mut trees, &mut out));
        out
    }

    #[test]
    fn steps_come_back_from_their_bytes() {
        let (a, b) = (tree(70), tree(u32::MAX));
        let steps = steps(&a, &b);
        let transaction = LogicalTransaction::decode(encoded(&steps), Lsn(5)).unwrap();
        let found: Vec<Step<'_>> = transaction.steps().collect();
        assert_eq!((transaction.len(), format!("{found:?}")), (steps.len(), format!("{steps:?}")));
    }

    #[test]
    fn an_addition_has_the_bytes_of_the_format() {
        let tree = tree(70);
        let named = encoded(&[Step::Create { tree: &tree }]);
        let step = Step::AddToRecord { tree: &tree, key: b"fir", offset: 8, delta: -300 };
        let both = encoded(&[Step::Create { tree: &tree }, step]);
        assert_eq!(both.strip_prefix(named.as_slice()).unwrap(), b"\x08\x00\x03fir\x08\xD7\x04");
    }

    #[test]
    fn an_addition_at_an_offset_beyond_all_records_and_one_to_an_unknown_tree_are_refused() {
        let named = encoded(&[Step::Create { tree: &tree(70) }]);
        for step in [&b"\x08\x00\x03fir\x80\x80\x04\x02"[..], b"\x08\x01\x03fir\x08\x02", b"\x08\x00\x03fir\x08"] {
            let refused = LogicalTransaction::decode([&named, step].concat(), Lsn(5));
            assert!(matches!(refused, Err(Error::CorruptLog { lsn: Lsn(5), .. })), "{step:?}");
        }
    }

    proptest! {
        #[test]
        fn damaged_records_give_an_error_or_as_many_steps_as_they_count(at: prop::sample::Index, byte: u8, cut: bool) {
            let (a, b) = (tree(70), tree(71));
            let mut bytes = encoded(&steps(&a, &b));
            let at = at.index(bytes.len());
            bytes[at] = byte;
            bytes.truncate(if cut { at + 1 } else { bytes.len() });
            if let Ok(transaction) = LogicalTransaction::decode(bytes, Lsn(5)) {
                prop_assert_eq!(transaction.steps().count(), transaction.len());
            }
        }
    }
}

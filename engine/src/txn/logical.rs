//! The logical record of a large transaction: its steps, whole, before any of them touches a page.
//!
//! It is written as one or more batches of kind `LOGICAL`, each at most [`PIECE`] bytes: `flags u8 | bytes`, where flag 1
//! is the last piece's and flag 2 the first's. Joined, the bytes are steps:
//!
//! | tag | step |
//! |---|---|
//! | 1 | tree: table u32, root u32, layout; later steps name trees by their order of appearance (varint) |
//! | 2 | adopt: page id u32, has location u8, location 12 bytes if so |
//! | 3 | create: tree |
//! | 4 | drop: tree, keep runs of large values u8 |
//! | 5 | clear: tree, varint length, lower key, has upper u8, varint length, upper key (exclusive) |
//! | 6 | put: tree, large u8, varint key length, key, varint record length, record |
//! | 7 | remove: tree, varint key length, key |

use super::commit::Step;
use super::layout::{LAYOUT_BYTES, layout_from_bytes, layout_to_bytes};
use super::reclaim::Runs;
use super::record::LOGICAL;
use super::versions::OwnedRecord;
use crate::base::bytes::{push_varint, take, take_varint};
use crate::base::{Error, Lsn, PageId, Result, TableId};
use crate::log::{BatchBuffer, Log};
use crate::store::Location;
use crate::tree::{Near, Stretch, Tree};
use std::collections::BTreeMap;

/// Flags of a piece.
const LAST: u8 = 1;
const FIRST: u8 = 2;
/// The most bytes of steps in one batch.
const PIECE: usize = 4 << 20;

/// A transaction read back from the log.
#[derive(Debug, Default)]
pub(crate) struct LogicalTransaction {
    /// LSN of its first batch.
    pub(crate) start: Lsn,
    steps: Vec<OwnedStep>,
    trees: Vec<Tree>,
    /// How many steps are applied already.
    pub(crate) done: usize,
}

#[derive(Debug)]
enum OwnedStep {
    Adopt { page: PageId, location: Option<Location> },
    Create { tree: usize },
    Drop { tree: usize, runs: Runs },
    Clear { tree: usize, range: Stretch },
    Put { tree: usize, key: Vec<u8>, record: OwnedRecord },
    Remove { tree: usize, key: Vec<u8> },
}

/// Writes the steps to the log and returns where they begin.
pub(crate) fn write(log: &Log, steps: &[Step<'_>]) -> Result<Lsn> {
    let start = log.next_lsn();
    let mut trees = BTreeMap::new();
    let mut out = Vec::with_capacity(PIECE);
    let mut first = FIRST;
    for step in steps {
        encode(step, &mut trees, &mut out);
        while out.len() >= PIECE {
            let rest = out.split_off(PIECE);
            append(log, &out, std::mem::take(&mut first))?;
            out = rest;
        }
    }
    append(log, &out, first | LAST)?;
    Ok(start)
}

/// Puts the pieces of a record together again. A record whose last piece never came, because power went, ends where the
/// next one begins.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    bytes: Vec<u8>,
    start: Lsn,
}

impl Pieces {
    /// Takes the payload of a batch that starts at `start`; gives the transaction if it was the last piece.
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
        LogicalTransaction::decode(&std::mem::take(&mut self.bytes), self.start).map(Some)
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
        Step::Adopt { page, location } => {
            out.push(2);
            out.extend_from_slice(&page.0.to_le_bytes());
            out.push(u8::from(location.is_some()));
            if let Some(location) = location {
                out.extend_from_slice(&location.encode());
            }
        }
        Step::Create { tree } => {
            let number = tree_number(tree, out);
            out.push(3);
            push_varint(out, number);
        }
        Step::Drop { tree, runs } => {
            let number = tree_number(tree, out);
            out.push(4);
            push_varint(out, number);
            out.push(runs as u8);
        }
        Step::Clear { tree, range } => {
            let number = tree_number(tree, out);
            out.push(5);
            push_varint(out, number);
            push_bytes(out, &range.lower);
            out.push(u8::from(range.upper.is_some()));
            push_bytes(out, range.upper.as_deref().unwrap_or_default());
        }
        Step::Put { tree, key, record, .. } => {
            let number = tree_number(tree, out);
            out.push(6);
            push_varint(out, number);
            out.push(u8::from(record.large));
            push_bytes(out, key);
            push_bytes(out, record.bytes);
        }
        Step::Remove { tree, key, .. } => {
            let number = tree_number(tree, out);
            out.push(7);
            push_varint(out, number);
            push_bytes(out, key);
        }
    }
}

fn push_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    push_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

impl LogicalTransaction {
    /// How many steps it has.
    pub(crate) fn len(&self) -> usize {
        self.steps.len()
    }

    /// Decodes the joined pieces of a transaction that begins at `start`.
    pub(crate) fn decode(bytes: &[u8], start: Lsn) -> Result<LogicalTransaction> {
        let mut transaction = LogicalTransaction { start, ..LogicalTransaction::default() };
        let mut input = bytes;
        while !input.is_empty() {
            let step = transaction.decode_step(&mut input);
            let what = || "a large transaction with a damaged step".to_owned();
            transaction.steps.extend(step.ok_or_else(|| Error::CorruptLog { lsn: start, what: what() })?);
        }
        Ok(transaction)
    }

    /// The next step; the outer `None` is damage, the inner one a tree definition, which is no step.
    fn decode_step(&mut self, input: &mut &[u8]) -> Option<Option<OwnedStep>> {
        let step = match take_u8(input)? {
            1 => {
                let table = TableId(take_u32(input)?);
                let root = PageId(take_u32(input)?);
                let layout = layout_from_bytes(take(input, LAYOUT_BYTES)?)?;
                self.trees.push(Tree { root, table, layout });
                return Some(None);
            }
            2 => {
                let page = PageId(take_u32(input)?);
                let location = match take_u8(input)? {
                    0 => None,
                    _ => Some(Location::decode(take(input, Location::BYTES)?)?),
                };
                OwnedStep::Adopt { page, location }
            }
            3 => OwnedStep::Create { tree: self.take_tree(input)? },
            4 => {
                let tree = self.take_tree(input)?;
                let runs = if take_u8(input)? == Runs::Keep as u8 { Runs::Keep } else { Runs::Free };
                OwnedStep::Drop { tree, runs }
            }
            5 => OwnedStep::Clear { tree: self.take_tree(input)?, range: take_stretch(input)? },
            6 => {
                let tree = self.take_tree(input)?;
                let large = take_u8(input)? == 1;
                let key = take_bytes(input)?.to_vec();
                OwnedStep::Put { tree, key, record: OwnedRecord { bytes: take_bytes(input)?.into(), large } }
            }
            7 => OwnedStep::Remove { tree: self.take_tree(input)?, key: take_bytes(input)?.to_vec() },
            _ => return None,
        };
        Some(Some(step))
    }

    fn take_tree(&self, input: &mut &[u8]) -> Option<usize> {
        let number = usize::try_from(take_varint(input)?).ok()?;
        (number < self.trees.len()).then_some(number)
    }

    /// The steps, as commit takes them.
    pub(crate) fn steps(&self) -> Vec<Step<'_>> {
        // `take_tree` has checked every number, so none is left out.
        self.steps.iter().filter_map(|step| step.borrow(&self.trees)).collect()
    }

    /// The pages that the transaction has reserved and that no allocation map knows yet.
    pub(crate) fn reserved(&self) -> impl Iterator<Item = PageId> {
        self.steps.iter().skip(self.done).filter_map(|step| match step {
            OwnedStep::Adopt { page, .. } => Some(*page),
            OwnedStep::Create { tree } => self.trees.get(*tree).map(|tree| tree.root),
            _ => None,
        })
    }

    /// The pages written outside the log that belong to the transaction.
    pub(crate) fn locations(&self) -> impl Iterator<Item = (PageId, Location)> {
        self.steps.iter().filter_map(|step| match step {
            OwnedStep::Adopt { page, location } => location.map(|location| (*page, location)),
            _ => None,
        })
    }
}

impl OwnedStep {
    fn borrow<'a>(&'a self, trees: &'a [Tree]) -> Option<Step<'a>> {
        Some(match self {
            OwnedStep::Adopt { page, location } => Step::Adopt { page: *page, location: *location },
            OwnedStep::Create { tree } => Step::Create { tree: trees.get(*tree)? },
            OwnedStep::Drop { tree, runs } => Step::Drop { tree: trees.get(*tree)?, runs: *runs },
            OwnedStep::Clear { tree, range } => Step::Clear { tree: trees.get(*tree)?, range },
            OwnedStep::Put { tree, key, record } => {
                Step::Put { tree: trees.get(*tree)?, key, record: record.view(), near: Near::NONE }
            }
            OwnedStep::Remove { tree, key } => Step::Remove { tree: trees.get(*tree)?, key, near: Near::NONE },
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
    let len = usize::try_from(take_varint(input)?).ok()?;
    take(input, len)
}

fn take_stretch(input: &mut &[u8]) -> Option<Stretch> {
    let lower = take_bytes(input)?.to_vec();
    let bounded = take_u8(input)? == 1;
    let upper = take_bytes(input)?.to_vec();
    Some(Stretch { lower, upper: bounded.then_some(upper) })
}

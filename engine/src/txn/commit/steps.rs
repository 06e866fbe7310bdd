//! The steps of a transaction, in the order in which they are applied. How each is carried out must never be known here.

use super::point_writes::PointWrite;
use crate::base::PageId;
use crate::page::Record;
use crate::store::PlaceBytes;
use crate::tree::{LeafHint, Tree};
use crate::txn::space::reclaim::Runs;

/// One step of a transaction.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step<'a> {
    /// A page written outside the log becomes part of the database.
    Adopt { page: PageId, place: Option<PlaceBytes> },
    /// A new, empty tree on a reserved root page.
    Create { tree: &'a Tree },
    /// A tree is unlinked whole.
    Drop { tree: &'a Tree, runs: Runs },
    /// The keys from `lower` to below `upper`, or to the end, are removed.
    Clear { tree: &'a Tree, lower: &'a [u8], upper: Option<&'a [u8]> },
    /// A key gets a record. `hint`: where its place is, or [`LeafHint::NONE`]; see [`super::appends::EntryDelta`].
    Put { tree: &'a Tree, key: &'a [u8], record: Record<'a>, hint: LeafHint },
    /// A key is removed.
    Remove { tree: &'a Tree, key: &'a [u8], hint: LeafHint },
}

impl<'a> Step<'a> {
    /// The step of a write to a table.
    pub(crate) fn of_write(tree: &'a Tree, (key, record): PointWrite<'a>, hint: LeafHint) -> Step<'a> {
        match record {
            Some(record) => Step::Put { tree, key, record, hint },
            None => Step::Remove { tree, key, hint },
        }
    }

    /// The tree and key whose leaf the step changes, if it is one.
    pub(in crate::txn) fn target(&self) -> Option<(&'a Tree, &'a [u8])> {
        match *self {
            Step::Put { tree, key, .. } | Step::Remove { tree, key, .. } => Some((tree, key)),
            _ => None,
        }
    }

    /// Where the key's place is, if that is known.
    pub(in crate::txn) fn hint(&self) -> LeafHint {
        match *self {
            Step::Put { hint, .. } | Step::Remove { hint, .. } => hint,
            _ => LeafHint::NONE,
        }
    }
}

/// Steps, again and again from the first one on. Those of a table with very many writes are made of its write set one by one:
/// all of them at once would take as much memory as the writes.
#[derive(Default)]
pub(crate) struct Steps<'a> {
    pub(in crate::txn) listed: Vec<Step<'a>>,
    pub(in crate::txn) many: Vec<Many<'a>>,
}

/// The writes to one table.
pub(in crate::txn) struct Many<'a> {
    pub(in crate::txn) tree: &'a Tree,
    pub(in crate::txn) writes: super::point_writes::Iter<'a>,
}

impl<'a> Steps<'a> {
    /// Adds steps.
    pub(crate) fn extend(&mut self, steps: impl IntoIterator<Item = Step<'a>>) {
        self.listed.extend(steps);
    }

    /// All of them as a slice, if they are not too many for that.
    pub(crate) fn as_slice(&self) -> Option<&[Step<'a>]> {
        self.many.is_empty().then_some(&self.listed)
    }

    /// All of them.
    pub(crate) fn iter(&self) -> Iter<'a, '_> {
        Iter { listed: self.listed.iter(), many: self.many.iter(), current: None }
    }
}

/// See [`Steps::iter`].
#[derive(Clone)]
pub(crate) struct Iter<'a, 's> {
    listed: std::slice::Iter<'s, Step<'a>>,
    many: std::slice::Iter<'s, Many<'a>>,
    current: Option<(&'a Tree, super::point_writes::Iter<'a>)>,
}

impl<'a> Iterator for Iter<'a, '_> {
    type Item = Step<'a>;

    fn next(&mut self) -> Option<Step<'a>> {
        if let Some(step) = self.listed.next() {
            return Some(*step);
        }
        loop {
            if let Some((tree, writes)) = &mut self.current
                && let Some(write) = writes.next()
            {
                return Some(Step::of_write(tree, write, LeafHint::NONE));
            }
            let Many { tree, writes } = self.many.next()?;
            self.current = Some((tree, writes.clone()));
        }
    }
}

//! The steps of a transaction, in the order in which they are applied.

use super::point_writes::PointWrite;
use super::write_set::WriteSet;
use crate::base::PageId;
use crate::page::Record;
use crate::store::PlaceBytes;
use crate::tree::{LeafHint, Tree};
use crate::txn::space::reclaim::LargeValues;

/// One step of a transaction.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step<'a> {
    /// A page written outside the log becomes part of the database.
    Adopt { page: PageId, place: Option<PlaceBytes> },
    /// A new, empty tree on a reserved root page.
    Create { tree: &'a Tree },
    /// A whole tree is detached.
    Drop { tree: &'a Tree, large_values: LargeValues },
    /// The keys from `lower` to below `upper`, or to the end, are removed.
    Clear { tree: &'a Tree, lower: &'a [u8], upper: Option<&'a [u8]> },
    /// A key gets a record. `hint` is its place from [`super::entry_delta::EntryDelta`], or [`LeafHint::NONE`].
    Put { tree: &'a Tree, key: &'a [u8], record: Record<'a>, hint: LeafHint },
    /// A number in the record of a key changes. The record exists; see [`Tree::add_to_record`].
    AddToRecord { tree: &'a Tree, key: &'a [u8], offset: u16, delta: i64 },
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

    /// The tree and the key, if the step changes one key.
    pub(crate) fn target(&self) -> Option<(&'a Tree, &'a [u8])> {
        match *self {
            Step::Put { tree, key, .. } | Step::AddToRecord { tree, key, .. } | Step::Remove { tree, key, .. } => {
                Some((tree, key))
            }
            _ => None,
        }
    }

    /// The place of the key, if it is known.
    pub(crate) fn hint(&self) -> LeafHint {
        match *self {
            Step::Put { hint, .. } | Step::Remove { hint, .. } => hint,
            _ => LeafHint::NONE,
        }
    }
}

/// The steps of a transaction. A caller can iterate over them any number of times. The iterator makes the streamed
/// steps one by one from the writes, because a list of them would take as much memory as the writes.
#[derive(Default)]
pub(crate) struct Steps<'a> {
    pub(crate) collected: Vec<Step<'a>>,
    pub(crate) streamed: Vec<StreamedSteps<'a>>,
    /// The steps that change entries of the catalog, in the order of their keys. They come last.
    pub(crate) catalog: Vec<Step<'a>>,
}

/// The steps of writes to one table, all with one hint.
#[derive(Clone)]
pub(crate) struct StreamedSteps<'a> {
    pub(crate) tree: &'a Tree,
    pub(crate) writes: super::point_writes::Iter<'a>,
    pub(crate) hint: LeafHint,
}

impl<'a> Steps<'a> {
    /// Adds steps.
    pub(crate) fn extend(&mut self, steps: impl IntoIterator<Item = Step<'a>>) {
        self.collected.extend(steps);
    }

    /// Sets the steps that change entries of the catalog: `writes`, and `others`, which have other keys.
    pub(crate) fn set_catalog(
        &mut self,
        catalog: &'a Tree,
        writes: &'a WriteSet,
        others: impl Iterator<Item = Step<'a>>,
    ) {
        let writes = writes.points().map(|write| Step::of_write(catalog, write, LeafHint::NONE));
        self.catalog = writes.chain(others).collect();
        self.catalog.sort_by_key(|step| step.target().map(|(_, key)| key));
    }

    /// All steps.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Step<'a>> + Clone + use<'a, '_> {
        let streamed = self.streamed.iter().cloned().flatten();
        self.collected.iter().copied().chain(streamed).chain(self.catalog.iter().copied())
    }
}

impl<'a> Iterator for StreamedSteps<'a> {
    type Item = Step<'a>;

    #[inline]
    fn next(&mut self) -> Option<Step<'a>> {
        Some(Step::of_write(self.tree, self.writes.next()?, self.hint))
    }

    #[inline]
    fn nth(&mut self, n: usize) -> Option<Step<'a>> {
        Some(Step::of_write(self.tree, self.writes.nth(n)?, self.hint))
    }
}

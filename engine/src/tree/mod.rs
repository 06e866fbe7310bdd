//! The B+-tree over the traits [`PageRead`] and [`PageWrite`]: search, insert, remove, split, merge, range delete,
//! bulk load, cursors and verification.
//!
//! A tree is its root's id and a layout; everything else is in its pages. Keys and records are byte strings. The
//! store of the pages (pool, log, versions) and the meaning of the bytes (types, catalog) must not be in this folder.
//!
//! Latches: a reader holds a page while it takes the child's latch and gives it up then. The one writer holds the
//! exclusive latches of all pages that a change touches, parent first, then left to right, until the change is
//! whole; so a reader sees each change whole or not at all.

mod bulk;
mod cursor;
mod edit;
mod free;
mod insert;
mod key_heap;
mod key_range;
mod leaf_copy;
mod long_key;
mod many;
mod merge;
mod put_run;
mod range_delete;
mod read_ahead;
mod rebuild;
mod remove;
mod search;
mod split;
mod store;
#[cfg(test)]
mod tests;
mod verify;

pub use bulk::{BulkLoader, BulkSink, Loaded};
pub use cursor::{Cursor, Entry};
pub use free::{FreeProgress, SubtreeCount};
pub use key_range::KeyRange;
pub use leaf_copy::LeafCopy;
pub use many::LeafHint;
pub use put_run::Put;
pub use range_delete::{DetachedSubtree, RangeRemoval, Removal, RemovedRange};
pub use read_ahead::ReadAhead;
pub use search::Target;
pub use store::{PageRead, PageWrite};
pub use verify::{LevelStats, Problem, TreeStats, Visit};

use crate::base::{PageId, Result, TableId};
use crate::page::{KeyListKind, PageBuilder, RecordListKind, SeparatorRule};

/// How a tree lays out the pages it makes. Pages that are there already say themselves how they are laid out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TreeLayout {
    /// The key list of leaves.
    pub leaf: KeyListKind,
    /// The key list of inner pages, one that [suits](KeyListKind::suits_inner_pages) them.
    pub inner: KeyListKind,
    /// The record list of leaves.
    pub records: RecordListKind,
    /// How splits choose separators.
    pub separators: SeparatorRule,
}

/// A B+-tree: where its root is and how to lay out its pages. Copying it copies the name, not the tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tree {
    /// The root page, the same one for the life of the tree.
    pub root: PageId,
    /// The table that all pages of the tree name as theirs.
    pub table: TableId,
    /// How new pages are laid out.
    pub layout: TreeLayout,
}

impl Tree {
    /// Allocates a root and makes it an empty leaf.
    pub fn create<S: PageWrite>(store: &S, table: TableId, layout: TreeLayout) -> Result<Tree> {
        let (root, mut page) = store.create()?;
        let tree = Tree { root, table, layout };
        tree.format(store, &mut page)?;
        Ok(tree)
    }

    /// Makes the latched root an empty leaf. For a root that was allocated by the caller, or a tree to empty whose
    /// pages the caller has freed.
    pub fn format<S: PageWrite>(&self, store: &S, root: &mut S::Mut<'_>) -> Result<()> {
        let spec = self.spec(self.root, 0, &[], None, PageId::NONE);
        self.format_page(store, root, PageBuilder::new(store.page_size(), &spec).finish())
    }
}

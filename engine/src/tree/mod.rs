//! The B+-tree over the traits [`PageRead`] and [`PageWrite`]: search, insert, remove, split, merge, range delete, bulk
//! load, copies of leaves for cursors, and verification.
//!
//! A tree is the id of its root and a layout; everything else is in its pages. Keys and records are byte strings. The
//! tree does not know where pages are (pool, log, versions), nor what bytes mean (types, catalog).
//!
//! Latches: a reader holds the latch of a page until it has the latch of the child. The single writer holds the
//! exclusive latches of all pages that a change touches, parent first, then left to right, until the change is
//! complete. So a reader sees all of a change or nothing of it.
//!
//! A reader usually holds no latch of another page while it waits for the device: it releases the parent, reads the
//! child, and latches the parent again. If the parent has changed meanwhile, the descent begins again at the root. If a
//! key is stored outside of its page, the reader releases that page, reads the pages of the key, and begins again. The
//! module `attempts` limits the number of attempts.
//!
//! The root of a table keeps its page id: a split of the root moves its content down.

mod add;
mod attempts;
mod bulk;
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

pub use bulk::{BulkLoader, BulkResult, BulkSink};
pub use free::FreeProgress;
pub use key_range::KeyRange;
pub use leaf_copy::LeafCopy;
pub use many::LeafHint;
pub use put_run::Put;
pub use range_delete::{DetachedSubtree, RangeRemoval, Removal, RemovedRange};
pub use read_ahead::LeafReadAhead;
pub use search::LeafTarget;
pub use store::{PageRead, PageWrite};
pub use verify::{LevelStats, Problem, TreeStats, Visit};

use crate::base::{PageId, Result, TableId};
use crate::page::{KeyListKind, PageBuilder, RecordListKind, SeparatorRule};

/// The layout of the pages that a tree creates. Existing pages name their own layout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TreeLayout {
    /// The key list of leaves.
    pub leaf: KeyListKind,
    /// The key list of inner pages. It must [suit](KeyListKind::suits_inner_pages) inner pages.
    pub inner: KeyListKind,
    /// The record list of leaves.
    pub records: RecordListKind,
    /// The rule by which splits choose separators.
    pub separators: SeparatorRule,
}

/// A B+-tree: its root and the layout of its pages. A copy refers to the same tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tree {
    /// The root page. It never changes.
    pub root: PageId,
    /// The table id in all pages of the tree.
    pub table: TableId,
    /// The layout of new pages.
    pub layout: TreeLayout,
}

impl Tree {
    /// Allocates a root and formats it as an empty leaf.
    pub fn create<S: PageWrite>(store: &S, table: TableId, layout: TreeLayout) -> Result<Tree> {
        let (root, mut page) = store.create()?;
        let tree = Tree { root, table, layout };
        tree.format(store, &mut page)?;
        Ok(tree)
    }

    /// Formats the latched root as an empty leaf. The caller has allocated the root, or has freed all other pages of
    /// the tree.
    pub fn format<S: PageWrite>(&self, store: &S, root: &mut S::Mut<'_>) -> Result<()> {
        let spec = self.spec(self.root, 0, &[], None, PageId::NONE);
        self.format_page(store, root, PageBuilder::new(store.page_size(), &spec).finish())
    }
}

//! Rebuilds the inner pages of a tree over its leaves when some pages are lost. The fences of a leaf say which keys it
//! covers. The result is only used to read the rest of a damaged tree.
//!
//! If no leaf covers a range, the new inner pages refer to a page that cannot be read. So a read of this range returns
//! an error, as for a damaged leaf.

use super::bulk::{BulkLoader, BulkResult, BulkSink};
use super::long_key::is_long;
use super::search::child_of;
use super::split::fences;
use super::verify::reach_once;
use super::{PageRead, Tree};
use crate::base::limits::MAX_KEY;
use crate::base::{Error, Lsn, PageId, Result, bytes};
use crate::page::Page;
use std::collections::{BTreeMap, HashSet};

/// A leaf that can be read.
struct Leaf {
    id: PageId,
    lsn: Lsn,
    /// The lower bound of its keys.
    lower: Vec<u8>,
    /// The image of the lower bound in an inner page.
    image: Vec<u8>,
    end: End,
    right: PageId,
}

/// The upper bound of a leaf.
enum End {
    /// All keys are less than this key.
    Below(Vec<u8>),
    /// The upper fence is a long key, whose run may be freed. This is the smallest key that is greater than all keys of
    /// the leaf.
    After(Vec<u8>),
    /// None: it is the rightmost leaf.
    Open,
}

impl Leaf {
    /// True if a leaf that begins at `lower`, which is not before this leaf, overlaps with this leaf.
    fn reaches_into(&self, lower: &[u8]) -> bool {
        match &self.end {
            End::Below(key) | End::After(key) => key.as_slice() > lower,
            End::Open => true,
        }
    }

    /// The start of the uncovered range between this leaf and `next`, or the end of the tree, if there is one.
    fn uncovered_before(&self, next: Option<&Leaf>) -> Option<&[u8]> {
        match &self.end {
            End::Below(key) => next.is_none_or(|next| *key < next.lower).then_some(key),
            End::After(key) => next.is_none_or(|next| self.right != next.id).then_some(key),
            End::Open => None,
        }
    }

    /// The page that stands for the uncovered range after this leaf.
    fn uncovered_page(&self) -> PageId {
        if self.right.is_none() { PageId::UNKNOWN } else { self.right }
    }
}

impl Tree {
    /// Reads every inner page of the tree, the whole keys of its separators, and the root.
    ///
    /// # Errors
    /// The error of the first page that cannot be read or is not of this tree.
    pub fn check_inner_pages<S: PageRead>(&self, store: &S) -> Result<()> {
        let mut seen = HashSet::new();
        let mut waiting = vec![(self.root, None)];
        let mut separator = Vec::new();
        while let Some((id, level)) = waiting.pop() {
            let latched = store.read(id)?;
            let page = Page::new(&latched);
            let level = level.unwrap_or(page.level());
            self.check_page(page, id, level)?;
            reach_once(&mut seen, id)?;
            for slot in 0..if level > 0 { page.count() } else { 0 } {
                if slot > 0 {
                    self.full_key(store, page, slot, &mut separator)?;
                }
                if level > 1 {
                    waiting.push((child_of(page, slot)?, Some(level - 1)));
                }
            }
        }
        Ok(())
    }

    /// Builds inner pages over those of `leaves` that can be read, and returns the content of a root. `None` if no leaf
    /// can be read. If several leaves cover the same keys, the one with the last change is used, because the others
    /// have been freed since.
    ///
    /// # Errors
    /// The errors of the sink, and read errors that are not about a page.
    pub fn rebuild_inner_pages<S: PageRead, K: BulkSink>(
        &self,
        store: &S,
        leaves: &[PageId],
        sink: K,
    ) -> Result<Option<BulkResult>> {
        let mut found = Vec::new();
        for &id in leaves {
            match self.leaf(store, id) {
                Err(Error::Corrupt { .. } | Error::Io { .. }) => {}
                leaf => found.extend(leaf?),
            }
        }
        let mut loader = BulkLoader::new(sink, store.page_size(), self.layout, self.table, 1.0);
        let mut before: Option<Leaf> = None;
        for leaf in disjoint(found).into_values() {
            match &before {
                None if leaf.lower.is_empty() => loader.push_leaf(&[], leaf.id)?,
                None => {
                    loader.push_leaf(&[], PageId::UNKNOWN)?;
                    loader.push_leaf(&leaf.image, leaf.id)?;
                }
                Some(before) => {
                    if let Some(from) = before.uncovered_before(Some(&leaf)) {
                        loader.push_leaf_from(from, before.uncovered_page())?;
                    }
                    loader.push_leaf(&leaf.image, leaf.id)?;
                }
            }
            before = Some(leaf);
        }
        let Some(last) = before else { return Ok(None) };
        if let Some(from) = last.uncovered_before(None) {
            loader.push_leaf_from(from, last.uncovered_page())?;
        }
        loader.finish(self.root).map(Some)
    }

    /// Reads the bounds of a leaf. `None` if it has no key and its lower fence is a long key.
    fn leaf<S: PageRead>(&self, store: &S, id: PageId) -> Result<Option<Leaf>> {
        let latched = store.read(id)?;
        let page = Page::new(&latched);
        self.check_page(page, id, 0)?;
        let (fence, upper) = fences(page);
        let long = |fence: &[u8]| is_long(fence.len(), store.page_size());
        let (mut lower, mut image) = (fence.clone(), fence);
        // A long fence owns no run. The keys of the leaf own theirs.
        if long(&lower) {
            if page.count() == 0 {
                return Ok(None);
            }
            self.full_key(store, page, 0, &mut lower)?;
            self.image_into(store, page, 0, &mut image)?;
        }
        let end = match upper {
            None => End::Open,
            Some(upper) if long(&upper) => {
                let mut last = lower.clone();
                if let Some(slot) = page.count().checked_sub(1) {
                    self.full_key(store, page, slot, &mut last)?;
                }
                End::After(after(last))
            }
            Some(upper) => End::Below(upper),
        };
        Ok(Some(Leaf { id, lsn: page.lsn(), lower, image, end, right: page.right() }))
    }
}

/// The smallest key that is greater than `key`.
fn after(mut key: Vec<u8>) -> Vec<u8> {
    if key.len() == MAX_KEY {
        // No longer key begins with this one.
        return bytes::after_prefix(&key).unwrap_or(key);
    }
    bytes::to_next(&mut key);
    key
}

/// The leaves by their lower bounds, without those that overlap with a leaf that was changed later.
fn disjoint(mut leaves: Vec<Leaf>) -> BTreeMap<Vec<u8>, Leaf> {
    leaves.sort_by_key(|leaf| std::cmp::Reverse(leaf.lsn));
    let mut kept: BTreeMap<Vec<u8>, Leaf> = BTreeMap::new();
    for leaf in leaves {
        let before = kept.range(..=leaf.lower.clone()).next_back();
        let after = kept.range(leaf.lower.clone()..).next();
        let free = before.is_none_or(|(_, before)| !before.reaches_into(&leaf.lower))
            && after.is_none_or(|(lower, _)| !leaf.reaches_into(lower));
        if free {
            kept.insert(leaf.lower.clone(), leaf);
        }
    }
    kept
}

//! Growing the inner pages of a tree anew over its leaves, where some of them are lost: leaves say themselves which keys
//! they cover. Only for reading what is left of a tree; which leaves there are is for the layer above to find.
//!
//! Where no leaf covers a range, the new inner pages lead to one that cannot be read: whoever comes by learns that the
//! range is lost, as by any damaged leaf.

use super::bulk::{BulkLoader, BulkSink, Loaded};
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
    /// No key of it is below this one.
    lower: Vec<u8>,
    /// That key as a page above keeps it.
    image: Vec<u8>,
    end: End,
    right: PageId,
}

/// Where a leaf ends.
enum End {
    /// Below this key.
    Below(Vec<u8>),
    /// Below a long key, whose run may be gone; this is the least key above all of the leaf.
    Behind(Vec<u8>),
    /// Nowhere: it is the rightmost one.
    Open,
}

impl Leaf {
    /// True if a leaf that begins at `lower`, or after it, begins inside this one.
    fn reaches_into(&self, lower: &[u8]) -> bool {
        match &self.end {
            End::Below(key) | End::Behind(key) => key.as_slice() > lower,
            End::Open => true,
        }
    }

    /// Where the gap before `next` begins, or before the end, if there is one.
    fn gap_before(&self, next: Option<&Leaf>) -> Option<&[u8]> {
        match &self.end {
            End::Below(key) => next.is_none_or(|next| *key < next.lower).then_some(key),
            End::Behind(key) => next.is_none_or(|next| self.right != next.id).then_some(key),
            End::Open => None,
        }
    }

    /// What lies in the gap behind it.
    fn gap(&self) -> PageId {
        if self.right.is_none() { PageId::UNKNOWN } else { self.right }
    }
}

impl Tree {
    /// Looks at every inner page of the tree, at the whole keys of its separators, and at the root.
    ///
    /// # Errors
    /// The first page of them that cannot be read or is none of this tree.
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

    /// Grows inner pages over those of `leaves` that can be read, and gives the content of a root; `None` without such a
    /// leaf. Of leaves that cover the same keys the one that was changed last counts: the other has been freed since.
    ///
    /// # Errors
    /// What the sink says, and errors of reading that say nothing of a page.
    pub fn rebuild_inner_pages<S: PageRead, K: BulkSink>(
        &self,
        store: &S,
        leaves: &[PageId],
        sink: K,
    ) -> Result<Option<Loaded>> {
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
                    if let Some(from) = before.gap_before(Some(&leaf)) {
                        loader.push_leaf_from(from, before.gap())?;
                    }
                    loader.push_leaf(&leaf.image, leaf.id)?;
                }
            }
            before = Some(leaf);
        }
        let Some(last) = before else { return Ok(None) };
        if let Some(from) = last.gap_before(None) {
            loader.push_leaf_from(from, last.gap())?;
        }
        loader.finish(self.root).map(Some)
    }

    /// What a leaf says of itself; `None` where it has no key and does not say which ones it covers.
    fn leaf<S: PageRead>(&self, store: &S, id: PageId) -> Result<Option<Leaf>> {
        let latched = store.read(id)?;
        let page = Page::new(&latched);
        self.check_page(page, id, 0)?;
        let (fence, upper) = fences(page);
        let long = |fence: &[u8]| is_long(fence.len(), store.page_size());
        let (mut lower, mut image) = (fence.clone(), fence);
        // A long fence owns no run; the keys of the leaf own theirs.
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
                End::Behind(after(last))
            }
            Some(upper) => End::Below(upper),
        };
        Ok(Some(Leaf { id, lsn: page.lsn(), lower, image, end, right: page.right() }))
    }
}

/// The least key above `key`.
fn after(mut key: Vec<u8>) -> Vec<u8> {
    if key.len() == MAX_KEY {
        // No key goes on where this one ends.
        return bytes::after_prefix(&key).unwrap_or(key);
    }
    bytes::to_next(&mut key);
    key
}

/// The leaves by their lower ends, without those that reach into one that was changed later.
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

//! Counting the entries of a stretch of keys by its leaves.

use crate::base::{Result, limits};
use crate::tree::{LeafCopy, PageRead, Stretch, Target, Tree};

/// How many entries of `tree` lie in `stretch`.
pub(crate) fn entries(pages: &impl PageRead, tree: &Tree, stretch: &Stretch) -> Result<u64> {
    let mut count = 0u64;
    let mut from = stretch.lower.clone();
    let mut copy = LeafCopy::new();
    let mut key = Vec::new();
    loop {
        if let Some((entries, upper)) = unread(pages, tree, stretch, &from)? {
            count += entries;
            from = upper;
            continue;
        }
        copy.load(tree, pages, Target::Covering(&from))?;
        let leaf = Stretch { lower: copy.lower().to_vec(), upper: copy.upper().map(<[u8]>::to_vec) };
        if stretch.covers(&leaf) {
            count += copy.count() as u64;
        } else {
            for slot in 0..copy.count() {
                copy.key_into(slot, &mut key);
                count += u64::from(stretch.contains(&key));
            }
        }
        match leaf.upper {
            Some(upper) if stretch.is_above(&upper) => from = upper,
            _ => return Ok(count),
        }
    }
}

/// The entries of the leaf that begins at `from`, and where it ends, if it keeps its keys apart and the stretch goes on behind
/// it: none of the keys has to be read.
fn unread(pages: &impl PageRead, tree: &Tree, stretch: &Stretch, from: &[u8]) -> Result<Option<(u64, Vec<u8>)>> {
    if !tree.layout.leaf.keeps_keys_apart() {
        return Ok(None);
    }
    tree.leaf_for(pages, from, |page| {
        let mut upper = Vec::new();
        let whole = page.lower_fence() == from && page.upper_fence_into(&mut upper);
        let known = from.len().max(upper.len()) <= limits::max_inline_key(pages.page_size());
        let inside = upper.as_slice() > from && stretch.is_above(&upper);
        (whole && inside && known && page.keeps_keys_apart()).then_some((page.count() as u64, upper))
    })
}

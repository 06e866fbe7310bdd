//! Counting the entries of a stretch of keys by its leaves.

use crate::base::Result;
use crate::tree::{LeafCopy, PageRead, Stretch, Target, Tree};

/// How many entries of `tree` lie in `stretch`.
pub(crate) fn entries(pages: &impl PageRead, tree: &Tree, stretch: &Stretch) -> Result<u64> {
    let mut count = 0u64;
    let mut from = stretch.lower.clone();
    let mut copy = LeafCopy::new();
    let mut key = Vec::new();
    loop {
        if let Some((entries, upper)) = tree.count_unread(pages, stretch, &from)? {
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

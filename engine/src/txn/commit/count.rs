//! Counts the entries of a range of keys, leaf by leaf.

use crate::base::Result;
use crate::tree::{KeyRange, LeafCopy, LeafTarget, PageRead, Tree};

/// How many entries of `tree` are in `key_range`.
pub(crate) fn entries(pages: &impl PageRead, tree: &Tree, key_range: &KeyRange) -> Result<u64> {
    let mut count = 0u64;
    let mut from = key_range.lower.clone();
    let mut copy = LeafCopy::new();
    let mut key = Vec::new();
    loop {
        if let Some((entries, upper)) = tree.count_unread(pages, key_range, &from)? {
            count += entries;
            from = upper;
            continue;
        }
        copy.load(tree, pages, LeafTarget::Covering(&from))?;
        let leaf = KeyRange::between(copy.lower(), copy.upper());
        if key_range.covers(&leaf) {
            count += copy.count() as u64;
        } else {
            for slot in 0..copy.count() {
                copy.key_into(slot, &mut key);
                count += u64::from(key_range.contains(&key));
            }
        }
        match leaf.upper {
            Some(upper) if key_range.is_above(&upper) => from = upper,
            _ => return Ok(count),
        }
    }
}

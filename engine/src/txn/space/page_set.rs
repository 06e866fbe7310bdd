//! A set of page ids that knows its size.

use crate::base::PageId;
use std::collections::HashMap;

/// The number of ids in one chunk.
const CHUNK: u32 = 512;

/// The set has one bit for each id, in chunks, so that neither many ids nor large ids take much memory.
#[derive(Debug, Default)]
pub(crate) struct PageSet {
    chunks: HashMap<u32, [u64; CHUNK as usize / 64]>,
    len: u64,
}

impl PageSet {
    /// Adds an id, which may already be in the set.
    pub(crate) fn insert(&mut self, id: PageId) {
        let chunk = self.chunks.entry(id.0 / CHUNK).or_default();
        let Some(word) = chunk.get_mut((id.0 % CHUNK / 64) as usize) else { return };
        let bit = 1 << (id.0 % 64);
        self.len += u64::from(*word & bit == 0);
        *word |= bit;
    }

    /// Returns true if the id is in the set.
    pub(crate) fn contains(&self, id: PageId) -> bool {
        let word = self.chunks.get(&(id.0 / CHUNK)).and_then(|chunk| chunk.get((id.0 % CHUNK / 64) as usize));
        word.is_some_and(|word| word & 1 << (id.0 % 64) != 0)
    }

    /// Returns the number of ids.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    proptest! {
        #[test]
        fn a_page_set_counts_each_id_once(ids in proptest::collection::vec(prop_oneof![0u32..2000, any::<u32>()], 0..300)) {
            let mut set = PageSet::default();
            ids.iter().for_each(|id| set.insert(PageId(*id)));
            let expected: HashSet<u32> = ids.iter().copied().collect();
            prop_assert_eq!(set.len(), expected.len() as u64);
            for id in ids.iter().flat_map(|id| [*id, id.wrapping_add(1)]).chain(0..2000) {
                prop_assert_eq!(set.contains(PageId(id)), expected.contains(&id));
            }
        }
    }
}

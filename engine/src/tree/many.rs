//! Finding many keys at once, for the writer: level by level, so that the pages of some keys are on their way from
//! memory while those of others are searched. What is done with what is found must never be known here.

use super::long_key::is_long;
use super::search::{Target, child_of};
use super::{PageRead, Tree};
use crate::base::{PageId, Result};
use crate::page::{Page, Record};

/// How many keys are looked for side by side: as many as a processor has fetches in flight, or a few more.
const ABREAST: usize = 16;

impl Tree {
    /// Finds the leaf that covers each of `keys` and runs `each` on the key's index, the leaf, under its shared latch,
    /// and the key's record. The keys are in order: they share the pages near the root, and neighbours their leaf.
    ///
    /// Only for the one writer: no latch is held from one level to the next, so no page may change meanwhile.
    ///
    /// # Errors
    /// What the store says, and pages that are not what their parents say.
    pub fn get_many<S: PageRead>(
        &self,
        store: &S,
        keys: &[&[u8]],
        mut each: impl FnMut(usize, Page<'_>, Option<Record<'_>>),
    ) -> Result<()> {
        let height = Page::new(&store.read(self.root)?).level();
        // The leaf of the last key, and where it ends, if it does.
        let (mut known, mut upper, mut ends) = (PageId::NONE, Vec::new(), false);
        for (group, keys) in keys.chunks(ABREAST).enumerate() {
            let mut at = [self.root; ABREAST];
            // Of neighbours the leaf is known already.
            let near = keys.iter().take_while(|key| !known.is_none() && (!ends || **key < upper.as_slice())).count();
            at.iter_mut().take(near).for_each(|at| *at = known);
            for level in (1..=height).rev() {
                for (key, at) in keys.iter().zip(&mut at).skip(near) {
                    *at = self.step_down(store, *at, level, key)?;
                    store.prefetch(*at);
                }
            }
            for (i, (key, at)) in keys.iter().zip(at).enumerate() {
                let latched = store.read(at)?;
                let leaf = Page::new(&latched);
                self.check_page(leaf, at, 0)?;
                self.check_target(leaf, Target::Covering(key), store.page_size())?;
                let found = self.locate(store, leaf, key)?;
                each(group * ABREAST + i, leaf, found.ok().map(|slot| leaf.record(slot)));
                if i + 1 == keys.len() {
                    ends = leaf.upper_fence_into(&mut upper);
                    known = if is_long(upper.len(), store.page_size()) { PageId::NONE } else { at };
                }
            }
        }
        Ok(())
    }

    /// The child that covers `key`.
    #[inline]
    fn step_down<S: PageRead>(&self, store: &S, id: PageId, level: u8, key: &[u8]) -> Result<PageId> {
        let latched = store.read(id)?;
        let page = Page::new(&latched);
        self.check_page(page, id, level)?;
        child_of(page, self.slot_for(store, page, Target::Covering(key))?)
    }
}

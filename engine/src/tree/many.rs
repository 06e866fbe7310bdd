//! Finds many keys at once, for the writer. It goes level by level, so that neighbouring keys share the reading of a
//! page, and the pages of some keys come from memory while others are searched. Changes of pages must not be in this
//! file.

use super::edit::slot_u16;
use super::search::{Target, child_of};
use super::{PageRead, Tree};
use crate::base::{Lsn, PageId, Result, limits};
use crate::page::Page;

/// How many keys are looked for side by side: what is known of them stays near the processor.
const ABREAST: usize = 256;
/// How many keys ahead pages are fetched from memory.
const AHEAD: usize = 8;

/// Where the writer found the place of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LeafHint {
    /// The leaf that covers it.
    pub leaf: PageId,
    /// The leaf's LSN: as long as it has that one, the rest is true as well.
    pub lsn: Lsn,
    /// The slot of the key, or where it would be inserted.
    pub slot: u16,
    /// The key is there.
    pub there: bool,
}

impl LeafHint {
    /// Nothing is known.
    pub const NONE: LeafHint = LeafHint { leaf: PageId::NONE, lsn: Lsn(0), slot: 0, there: false };

    /// As [`Page::search`] says it.
    #[inline]
    pub(super) fn found(self) -> std::result::Result<usize, usize> {
        if self.there { Ok(self.slot.into()) } else { Err(self.slot.into()) }
    }
}

impl Tree {
    /// Finds the places of `keys`, which are in order, and hands each to `each`, in that order.
    ///
    /// Only for the one writer: no latch is held from one level to the next, so no page may change meanwhile.
    ///
    /// # Errors
    /// What the store says, and pages that are not what their parents say.
    pub fn find_many<'k, S: PageRead>(
        &self,
        store: &S,
        mut keys: impl Iterator<Item = &'k [u8]>,
        mut each: impl FnMut(LeafHint),
    ) -> Result<()> {
        let height = Page::new(&store.read(self.root)?).level();
        let mut abreast = Vec::with_capacity(ABREAST);
        keys.try_for_each(|key| {
            abreast.push((key, self.root));
            if abreast.len() < ABREAST {
                return Ok(());
            }
            self.find_abreast(store, height, &mut abreast, &mut each)?;
            abreast.clear();
            Ok(())
        })?;
        self.find_abreast(store, height, &mut abreast, &mut each)
    }

    /// The place of `key` if that is behind the last entry of its leaf, whose key `look` is given; for the one writer.
    ///
    /// # Errors
    /// As [`Tree::find_many`].
    pub fn find_behind<S: PageRead, R>(
        &self,
        store: &S,
        key: &[u8],
        look: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<(R, LeafHint)>> {
        let head = limits::long_key_head(store.page_size());
        if key.len() > head {
            return Ok(None);
        }
        self.leaf_for(store, key, |leaf| {
            let (slot, mut last) = (leaf.count().checked_sub(1)?, Vec::new());
            leaf.key_into(slot, &mut last);
            // What a page says of a long key is not all of it. And a key of the leaf before may be behind that one's last entry.
            if self.resolver(leaf).is_some() || last.len() > head || last.as_slice() >= key || !leaf.covers(&last) {
                return None;
            }
            let slot = u16::try_from(leaf.count()).ok()?;
            Some((look(&last), LeafHint { leaf: leaf.id(), lsn: leaf.lsn(), slot, there: false }))
        })
    }

    /// Takes keys from the root of so high a tree to their leaves.
    fn find_abreast<S: PageRead>(
        &self,
        store: &S,
        height: u8,
        keys: &mut [(&[u8], PageId)],
        each: &mut impl FnMut(LeafHint),
    ) -> Result<()> {
        for level in (1..=height).rev() {
            self.step_down(store, level, keys)?;
        }
        store.will_read(keys.chunk_by(|(_, a), (_, b)| a == b).filter_map(|same| Some(same.first()?.1)));
        self.look_into_leaves(store, keys, each)
    }

    /// Puts in the place of each key's page, of this level, the child that covers the key.
    fn step_down<S: PageRead>(&self, store: &S, level: u8, keys: &mut [(&[u8], PageId)]) -> Result<()> {
        let mut rest = keys;
        let inline = limits::long_key_head(store.page_size());
        while let Some(&(_, id)) = rest.first() {
            let latched = store.read(id)?;
            let page = Page::new(&latched);
            self.check_page(page, id, level)?;
            let (mut same, mut slot, mut child) = (0, 0, PageId::NONE);
            while let Some((key, at)) = rest.get_mut(same).filter(|(_, at)| *at == id) {
                // The keys are in order, so often the one before has led to the same child; behind the last there is none.
                let last = slot + 1 == page.count();
                let known = same > 0 && (last || key.len() <= inline && page.is_above(slot + 1, key));
                if !known {
                    slot = self.slot_for(store, page, Target::Covering(key))?;
                    child = child_of(page, slot)?;
                    store.prefetch_place_of(child);
                }
                *at = child;
                same += 1;
                fetch_ahead(store, rest.get(same..).unwrap_or_default());
            }
            rest = rest.get_mut(same..).unwrap_or_default();
        }
        Ok(())
    }

    fn look_into_leaves<S: PageRead>(
        &self,
        store: &S,
        keys: &[(&[u8], PageId)],
        each: &mut impl FnMut(LeafHint),
    ) -> Result<()> {
        let mut rest = keys;
        while let Some(&(_, id)) = rest.first() {
            let latched = store.read(id)?;
            let leaf = Page::new(&latched);
            self.check_page(leaf, id, 0)?;
            let same = rest.iter().take_while(|(_, at)| *at == id).count();
            let (here, others) = rest.split_at_checked(same.max(1)).unwrap_or_default();
            // The keys are in order: if the outermost are within the fences, all are.
            let outermost = [here.first(), here.last().filter(|_| here.len() > 1)];
            for (key, _) in outermost.into_iter().flatten() {
                self.check_target(leaf, Target::Covering(key))?;
            }
            let mut found = Ok(0);
            for (i, (key, _)) in here.iter().enumerate() {
                fetch_ahead(store, rest.get(i + 1..).unwrap_or_default());
                // The keys are in order: behind one that is above all of the leaf's, so are all others.
                if found != Err(leaf.count()) {
                    found = self.locate(store, leaf, key)?;
                }
                let (Ok(slot) | Err(slot)) = found;
                each(LeafHint { leaf: id, lsn: leaf.lsn(), slot: slot_u16(leaf, slot)?, there: found.is_ok() });
            }
            rest = others;
        }
        Ok(())
    }
}

/// Fetches the page of a key further on, unless the one before it did.
#[inline]
fn fetch_ahead<S: PageRead>(store: &S, keys: &[(&[u8], PageId)]) {
    if let [.., (_, before), (_, id)] = keys.get(..AHEAD).unwrap_or_default()
        && before != id
    {
        store.prefetch(*id);
    }
}

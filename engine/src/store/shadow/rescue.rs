//! Opens a file whose superblocks are damaged. A page's position is its id, and each slot names the geometry and the
//! database, so that the slots alone lead to all pages.

use super::chain::{Chain, DeltaBase};
use super::choice::KnownPage;
use super::slot::{Geometry, SlotContent, SlotIndex};
use super::slot_area::SlotArea;
use super::store_header::StoreHeader;
use super::{ShadowStore, StoreSurvey};
use crate::base::{Damage, Error, Lsn, PageId, Result};
use crate::io::{BLOCK, Disk, read_readable_parts};
use crate::page::Page;
use crate::store::compress::FoundParts;
use crate::store::rescue::{UnknownFile, without_path};
use crate::store::superblock::{CurrentSuperblock, ID_SLACK};
use crate::store::{DatabaseFile, FoundImage, PageSource, RescuedStore, StoreKind, SuperblockChoice};
use std::ops::Range;
use std::sync::Arc;

impl ShadowStore {
    /// Opens a file that has a superblock.
    pub(super) fn rescue_known(
        file: DatabaseFile,
        superblock: SuperblockChoice,
        source: PageSource,
        damage: Vec<Damage>,
    ) -> Result<RescuedStore> {
        let header = StoreHeader::decode(&file.store_header())?;
        let geometry = Geometry::new(file.page_size(), header.deltas, file.meta().database_id);
        let high_water = file.meta().high_water;
        // The superblock may be an old one: there may be pages where it has a map.
        let pages = geometry.pages(file.disk().size()?).min(high_water.saturating_add(ID_SLACK));
        let store = ShadowStore::with_geometry(file, geometry, pages)?;
        store.load_dictionaries(&header.dictionaries, true)?;
        store.rescued(superblock, source == PageSource::Images, high_water, damage)
    }

    /// Opens a file without a superblock, whose slots have this geometry.
    pub(super) fn rescue_unknown(file: UnknownFile<'_>, geometry: Geometry) -> Result<RescuedStore> {
        let UnknownFile { disk, path, cause, .. } = file;
        let file = DatabaseFile::of(disk, path, CurrentSuperblock::unknown(StoreKind::Shadow, geometry.page()));
        let ids_end = geometry.pages(file.disk().size()?);
        let store = ShadowStore::with_geometry(file, geometry, ids_end)?;
        store.rescued(SuperblockChoice::None, true, 1, vec![Damage::Superblocks { cause: without_path(cause) }])
    }

    /// Visits the image in a slot, with the deltas beside it that belong to it.
    ///
    /// # Errors
    /// [`Error::NotBuilt`].
    pub(super) fn survey_slot(
        &self,
        id: PageId,
        slot_index: SlotIndex,
        visit: &mut dyn FnMut(FoundImage<'_>),
    ) -> Result<()> {
        self.with_buffer(|bytes| {
            if self.read_part(self.geometry.slot_area(id, slot_index, self.geometry.deltas()), bytes).is_err() {
                return Ok(());
            }
            let slot_area = SlotArea::new(bytes, slot_index, self.geometry.slot());
            let SlotContent::Image { stamp, lsn } = self.geometry.look(slot_area.slot(), id) else { return Ok(()) };
            let mut page = vec![0; self.geometry.page()];
            match self.open_slot(id, slot_area.slot(), lsn, &mut page) {
                Ok(()) => {}
                Err(Error::Corrupt { .. }) => return Ok(()),
                Err(error) => return Err(error),
            }
            let applied =
                Chain::apply(&self.geometry, id, slot_area, DeltaBase { stamp, lsn }, &KnownPage::SURVEY, &mut page);
            if applied.is_ok() && Page::check(&page, id).is_ok() {
                let (page, mut packed) = (Page::new(&page), Vec::new());
                page.packed_into(&mut packed);
                visit(FoundImage { page: id, lsn: page.lsn(), packed: &packed });
            }
            Ok(())
        })
    }

    /// `guessed`: any sound image is accepted.
    fn rescued(
        mut self,
        superblock: SuperblockChoice,
        guessed: bool,
        high_water: u32,
        mut damage: Vec<Damage>,
    ) -> Result<RescuedStore> {
        self.rescued = true;
        let meta = self.file.meta();
        self.state.get_mut().accepts_any = guessed;
        match superblock {
            // The map finds pages whose last write is lost.
            SuperblockChoice::Newest if meta.clean && !guessed => {
                self.use_map();
                let damaged = self.read_whole_map().into_iter();
                damage.extend(damaged.map(|(first, last)| Damage::SlotMapPart { first, last }));
            }
            _ => self.state.get_mut().map = None,
        }
        let (mut ids_end, mut last) = (high_water, meta.last);
        if guessed {
            let mut parts = FoundParts::default();
            let mut note = |image: &FoundImage<'_>| {
                ids_end = ids_end.max(image.page.0.saturating_add(1));
                last = last.max(Lsn(image.lsn.0.saturating_add(1)));
            };
            self.survey(&mut |image| {
                note(&image);
                parts.note(&image);
            })?;
            // The first search leaves out images that need dictionaries.
            if parts.add_to(self.compression.dictionaries()) {
                self.survey(&mut |image| note(&image))?;
            }
        }
        Ok(RescuedStore { store: Arc::new(self), meta, superblock, guessed, ids_end, last, damage })
    }
}

/// Searches a part of the file for the first sound slot that ends in this part, and returns the geometry of that slot.
/// The part begins and ends between blocks.
pub(super) fn find_geometry(disk: &dyn Disk, part: Range<u64>) -> Option<Geometry> {
    let mut bytes = vec![0; usize::try_from(part.end - part.start).ok()?];
    read_readable_parts(disk, part.start, &mut bytes);
    let mut slot = Vec::new();
    bytes.chunks_exact(BLOCK).zip((part.start + BLOCK as u64..).step_by(BLOCK)).find_map(|(block, end)| {
        let geometry = Geometry::of_trailer(block)?;
        let start = end.checked_sub(geometry.slot() as u64)?;
        let id = geometry.page_at(start)?;
        slot.clear();
        slot.resize(geometry.slot(), 0);
        read_readable_parts(disk, start, &mut slot);
        matches!(geometry.look(&slot, id), SlotContent::Image { .. }).then_some(geometry)
    })
}

//! Makes hostile bytes pass the checksums of this store, for the fuzz targets. Nothing else may use this.

use super::slot::Geometry;
use super::store_header::StoreHeader;
use crate::base::bytes::put_u32;
use crate::base::{PageId, Result};
use crate::io::{BLOCK, Disk};
use crate::store::DatabaseFile;
use std::path::Path;
use std::sync::Arc;

/// Corrects the checksums of all slots, delta blocks and blocks of the map in a file. Zeros stay zeros.
///
/// # Errors
/// Errors of reading and writing, and those of a damaged superblock.
pub fn reseal(disk: &Arc<dyn Disk>) -> Result<()> {
    let file = DatabaseFile::open(disk.clone(), Path::new("fuzz"))?;
    let header = StoreHeader::decode(&file.store_header())?;
    let geometry = Geometry::new(file.page_size(), header.deltas, file.meta().database_id);
    let len = disk.size()?;
    let pages = geometry.pages(len);
    let end = header.map.map_or(pages, |map| map.pages.min(pages));
    for id in (0..end).map(PageId) {
        let area = geometry.area_of(id);
        let mut bytes = vec![0; usize::try_from(area.end.min(len) - area.start).unwrap_or(0)];
        disk.read_at(area.start, &mut bytes)?;
        reseal_area(&geometry, id, &mut bytes);
        disk.write_at(area.start, &bytes)?;
    }
    if header.map.is_some() {
        let map = geometry.area_of(PageId(end)).start.min(len)..len;
        let mut bytes = vec![0; usize::try_from(map.end - map.start).unwrap_or(0)];
        disk.read_at(map.start, &mut bytes)?;
        bytes.chunks_exact_mut(BLOCK).for_each(super::map::reseal);
        disk.write_at(map.start, &bytes)?;
    }
    Ok(())
}

/// The same for the area of a page. The file may end inside the area.
fn reseal_area(geometry: &Geometry, id: PageId, area: &mut [u8]) {
    let slot = geometry.slot();
    let deltas = slot + geometry.deltas() * BLOCK;
    for start in [0, deltas] {
        if let Some(slot) = area.get_mut(start..start + slot)
            && slot.iter().any(|byte| *byte != 0)
        {
            let crc = geometry.checksum(slot);
            put_u32(slot, geometry.page(), crc);
        }
    }
    let end = deltas.min(area.len());
    for block in area.get_mut(slot.min(end)..end).unwrap_or_default().chunks_exact_mut(BLOCK) {
        if block.iter().any(|byte| *byte != 0) {
            let crc = geometry.delta_checksum(block, id);
            put_u32(block, 0, crc);
        }
    }
}

//! Reads all pages that can be read and collects their table, level and number of entries, and the contents of old
//! copies of the catalog. Nothing is changed here.

use crate::base::{Lsn, PageId, Result, TableId};
use crate::db::catalog::{self, TableEntry, catalog_tree};
use crate::db::check::salvage::costs_a_range;
use crate::page::{KeyListKind, Page, PageKind, RecordListKind, unpack};
use crate::store::PageStore;
use crate::txn::{Engine, ids_per_map};
use std::collections::BTreeMap;

/// The readable pages of a table.
#[derive(Default)]
pub(super) struct RescuedPages {
    pub(super) leaves: Vec<PageId>,
    /// The number of entries in the leaves.
    pub(super) entries: u64,
    /// The least LSN of the leaves; `None` without a leaf.
    pub(super) oldest_leaf: Option<Lsn>,
    /// The greatest LSN of the pages.
    pub(super) newest: Lsn,
    /// The page at the highest level among those that cover all keys, and its level.
    pub(super) root: Option<(PageId, u8)>,
    /// The key list and the record list of the leaf that was read last.
    pub(super) layout: Option<(KeyListKind, RecordListKind)>,
}

/// The pages of all trees, by table. Free pages are left out, except if the allocation maps may be `outdated`.
pub(super) fn survey(
    engine: &Engine,
    store: &dyn PageStore,
    outdated: bool,
) -> Result<BTreeMap<TableId, RescuedPages>> {
    let mut tables: BTreeMap<TableId, RescuedPages> = BTreeMap::new();
    for id in store.pages_between(PageId::NONE, PageId(u32::MAX))? {
        if !outdated && !may_be_taken(engine, id)? {
            continue;
        }
        let latched = match engine.read_page(id) {
            Err(error) if costs_a_range(&error) => continue,
            read => read?,
        };
        let page = Page::new(&latched);
        if !page.is_leaf() && !page.is_inner() {
            continue;
        }
        let table = tables.entry(page.table()).or_default();
        table.newest = table.newest.max(page.lsn());
        if page.is_leaf() {
            table.leaves.push(id);
            table.oldest_leaf = Some(table.oldest_leaf.map_or(page.lsn(), |oldest| oldest.min(page.lsn())));
            table.entries += page.count() as u64;
            table.layout = Some((page.keys(), page.records()));
        }
        let covers_all = page.lower_fence().is_empty() && !page.has_upper_fence();
        if covers_all && table.root.is_none_or(|(_, level)| page.level() >= level) {
            table.root = Some((id, page.level()));
        }
    }
    Ok(tables)
}

/// False if a readable allocation map says that the page is free.
fn may_be_taken(engine: &Engine, id: PageId) -> Result<bool> {
    let per_map = ids_per_map(engine.page_size());
    let map = PageId(id.0 - id.0 % per_map);
    if !engine.page_exists(map) {
        return Ok(true);
    }
    match engine.read_page(map) {
        Ok(page) if Page::new(&page).kind() != PageKind::Map => Ok(true),
        Ok(page) => Ok(Page::new(&page).bit(id.0 - map.0)),
        Err(error) if costs_a_range(&error) => Ok(true),
        Err(error) => Err(error),
    }
}

/// The newest entry of each table in all copies of the catalog in the file, old copies too.
pub(super) fn remembered_tables(
    engine: &Engine,
    store: &dyn PageStore,
) -> Result<BTreeMap<TableId, (String, TableEntry)>> {
    let mut newest: BTreeMap<TableId, (Lsn, String, TableEntry)> = BTreeMap::new();
    let mut page = vec![0; engine.page_size()];
    let mut key = Vec::new();
    store.survey(&mut |image| {
        if Page::new(image.packed).table() != TableId::CATALOG || unpack(image.packed, &mut page).is_err() {
            return;
        }
        let Some(leaf) = Page::check(&page, image.page).ok().filter(Page::is_leaf) else { return };
        for slot in 0..leaf.count() {
            let record = leaf.record(slot);
            if record.large || catalog_tree().full_key(&engine.pages(), leaf, slot, &mut key).is_err() {
                continue;
            }
            if let (Some(Ok(name)), Ok(entry)) = (catalog::table_name(&key), TableEntry::decode(record.bytes)) {
                let known = newest.get(&entry.tree.table).map(|(lsn, ..)| *lsn);
                if known.is_none_or(|known| known <= image.lsn) {
                    newest.insert(entry.tree.table, (image.lsn, name, entry));
                }
            }
        }
    })?;
    Ok(newest.into_iter().map(|(table, (_, name, entry))| (table, (name, entry))).collect())
}

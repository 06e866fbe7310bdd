//! Reads all pages that can be read and collects their table, level and number of entries, and the contents of old
//! copies of the catalog. Nothing is changed here.

use crate::base::{Lsn, PageId, Result, TableId};
use crate::db::catalog::{self, TableEntry, catalog_tree};
use crate::db::salvage::costs_a_range;
use crate::page::{KeyListKind, Page, PageKind, RecordListKind, unpack};
use crate::store::TableStore;
use crate::txn::{Engine, Pages, ids_per_map};
use std::collections::BTreeMap;

/// The pages of a table that can be read.
#[derive(Default)]
pub(super) struct TablePages {
    pub(super) leaves: Vec<PageId>,
    /// Entries of the leaves.
    pub(super) entries: u64,
    /// When the leaf was changed that has not been changed for longest; `None` without a leaf.
    pub(super) oldest_leaf: Option<Lsn>,
    /// When a page was changed last.
    pub(super) newest: Lsn,
    /// Of the pages that cover all keys the one at the highest level, and that level.
    pub(super) root: Option<(PageId, u8)>,
    /// How the leaves keep keys and records; of the last one seen.
    pub(super) layout: Option<(KeyListKind, RecordListKind)>,
}

/// The pages of all trees, by table. Pages that are known to be free are left out, unless what is known may be `outdated`.
pub(super) fn survey(engine: &Engine, store: &TableStore, outdated: bool) -> Result<BTreeMap<TableId, TablePages>> {
    let mut tables: BTreeMap<TableId, TablePages> = BTreeMap::new();
    for id in store.pages() {
        if !outdated && !may_be_taken(engine, id)? {
            continue;
        }
        let latched = match engine.pool.read(id) {
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

/// False where an allocation map that can be read says that a page is free.
fn may_be_taken(engine: &Engine, id: PageId) -> Result<bool> {
    let per_map = ids_per_map(engine.pool.page_size());
    let map = PageId(id.0 - id.0 % per_map);
    if !engine.pool.exists(map) {
        return Ok(true);
    }
    match engine.pool.read(map) {
        Ok(page) if Page::new(&page).kind() != PageKind::Map => Ok(true),
        Ok(page) => Ok(Page::new(&page).bit(id.0 - map.0)),
        Err(error) if costs_a_range(&error) => Ok(true),
        Err(error) => Err(error),
    }
}

/// What the copies of the catalog in the file say, old ones too: of each table the newest.
pub(super) fn remembered_tables(
    engine: &Engine,
    store: &TableStore,
) -> Result<BTreeMap<TableId, (String, TableEntry)>> {
    let mut newest: BTreeMap<TableId, (Lsn, String, TableEntry)> = BTreeMap::new();
    let mut page = vec![0; engine.pool.page_size()];
    let mut key = Vec::new();
    store.each_image(|image| {
        if Page::new(image.packed).table() != TableId::CATALOG || unpack(image.packed, &mut page).is_err() {
            return;
        }
        let Some(leaf) = Page::check(&page, image.page).ok().filter(Page::is_leaf) else { return };
        for slot in 0..leaf.count() {
            let record = leaf.record(slot);
            if record.large || catalog_tree().full_key(&Pages(&engine.pool), leaf, slot, &mut key).is_err() {
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

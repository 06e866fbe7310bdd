//! Reads all pages that can be read and collects their table, level and number of entries, and the contents of old
//! copies of the catalog. Nothing is changed here.

use crate::base::{Lsn, PageId, Result, TableId};
use crate::db::catalog::{self, TableEntry, catalog_tree};
use crate::db::check::salvage::costs_a_range;
use crate::page::{KeyListKind, Page, PageKind, RecordListKind, unpack};
use crate::store::PageStore;
use crate::tree::{Tree, Visit};
use crate::txn::{Engine, ids_per_map};
use std::collections::{BTreeMap, HashSet};

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

/// The pages of all trees, by table. Free pages and the pages of detached subtrees are left out, except if the
/// allocation maps and the catalog may be `outdated`: these pages may be used for something else by now.
pub(super) fn survey(
    engine: &Engine,
    store: &dyn PageStore,
    outdated: bool,
) -> Result<BTreeMap<TableId, RescuedPages>> {
    let detached = if outdated { HashSet::new() } else { detached_pages(engine) };
    let mut tables: BTreeMap<TableId, RescuedPages> = BTreeMap::new();
    for id in store.pages()? {
        if detached.contains(&id) || (!outdated && !may_be_taken(engine, id)?) {
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

/// The pages of the detached subtrees that the catalog lists, except those below a page that cannot be read. Their
/// entries have been removed, but freeing a subtree in part changes its leaves, and then they are newer than the
/// leaves that cover the same keys now.
fn detached_pages(engine: &Engine) -> HashSet<PageId> {
    let mut pages = HashSet::new();
    let layout = catalog_tree().layout;
    // If the catalog is damaged, the subtrees are unknown.
    for ((_, root), at) in engine.catalogued_subtrees(&catalog_tree()).unwrap_or_default() {
        let subtree = Tree { root, table: at.table, layout };
        let _unreadable = subtree.verify(&engine.pages(), &mut |visit| {
            if let Visit::Page(id) = visit {
                pages.insert(id);
            }
        });
    }
    pages
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::check::salvage;
    use crate::io::MemoryVolume;
    use crate::{Database, TableDef};
    use std::sync::Arc;

    #[test]
    fn leaves_of_a_subtree_that_waits_to_be_freed_are_left_out() {
        const TABLE: TableDef<u32, &[u8]> = TableDef::new("t");
        let options = Database::builder().page_size(4096).background(false);
        let db = options.create_on(Arc::new(MemoryVolume::new()), "db").unwrap();
        let commit = |keys: std::ops::Range<u32>, value: &[u8]| {
            let tx = db.begin_write().unwrap();
            let mut table = tx.open_table(TABLE).unwrap();
            table.remove_range(keys.clone());
            keys.for_each(|key| table.put(key, value).unwrap());
            drop(table);
            tx.commit().unwrap();
        };
        commit(0..50_000, b"an old value");
        let snapshot = db.begin_read().unwrap();
        commit(10_000..40_000, b"a new one");
        db.checkpoint().unwrap();
        let engine = &db.shared().engine;
        assert!(!engine.catalogued_subtrees(&catalog_tree()).unwrap().is_empty());
        let (name, entry) = salvage::tables(engine, Lsn::MAX).unwrap().0.remove(0);
        assert_eq!(name, "t");
        let mut live = HashSet::new();
        let mut reach = |visit: Visit<'_>| match visit {
            Visit::Page(id) => drop(live.insert(id)),
            other => panic!("{other:?}"),
        };
        entry.tree.verify(&engine.pages(), &mut reach).unwrap();
        let store = engine.page_store().unwrap();
        let mut found = survey(engine, &*store, false).unwrap();
        let leaves = found.remove(&entry.tree.table).unwrap().leaves;
        assert!(leaves.len() > 100);
        for leaf in leaves {
            assert!(live.contains(&leaf), "page {leaf} is not of the tree");
        }
        drop(snapshot);
    }
}

//! Rebuilds a damaged catalog so that it leads to all tables that are left, and damaged inner pages so that they lead
//! to all leaves. The new pages bypass the log. They are written to the overlay, never to the file.

use super::survey::{TablePages, remembered_tables, survey};
use crate::base::{Damage, Error, Lsn, PageId, Result, TableId};
use crate::db::catalog::{self, TableEntry, catalog_tree, table_key};
use crate::db::check::salvage;
use crate::page::{KeyListKind, Record, RecordListKind, SeparatorRule};
use crate::store::{ID_SLACK, PageStore};
use crate::tree::{BulkLoader, BulkSink, Tree, TreeLayout};
use crate::txn::{CATALOG_ROOT, Engine};
use std::collections::{BTreeMap, HashSet};

/// Makes what is left of the database reachable, and says what was not. `guessed`: the pages of the catalog and the allocation
/// maps may be old ones.
pub(super) fn rebuild(engine: &Engine, store: &dyn PageStore, guessed: bool, damage: &mut Vec<Damage>) -> Result<()> {
    let (mut known, mut errors) = salvage::tables(engine, Lsn::MAX)?;
    let next = next_id(engine, store);
    known.retain(|(name, entry)| {
        let beyond = entry.tree.root >= next;
        let why = || format!("table \"{name}\" begins at page {}, and there is no such page", entry.tree.root);
        errors.extend(beyond.then(|| catalog::corrupt(&why())));
        !beyond
    });
    let mut broken = Vec::new();
    for (name, entry) in &known {
        if inner_damage(engine, &entry.tree)?.is_some() {
            broken.push((name.clone(), entry.clone()));
        }
    }
    let mut catalog: Vec<Damage> = errors.into_iter().map(|cause| Damage::Catalog { cause }).collect();
    if catalog.is_empty() {
        catalog.extend(inner_damage(engine, &catalog_tree())?.map(|cause| Damage::Catalog { cause }));
    }
    if catalog.is_empty() && broken.is_empty() && !guessed {
        return Ok(());
    }
    let mut pages = survey(engine, store, guessed)?;
    let catalog_leaves = pages.remove(&TableId::CATALOG).and_then(|pages| pages.oldest_leaf);
    let ids: HashSet<TableId> = known.iter().map(|(_, entry)| entry.tree.table).collect();
    let mut unknown: Vec<TableId> = pages.keys().filter(|id| !ids.contains(id)).copied().collect();
    if let (true, Some(since)) = (catalog.is_empty(), catalog_leaves) {
        // Of a table that is older than all that the catalog says it would know, had the table not been dropped.
        unknown.retain(|id| pages.get(id).is_some_and(|pages| pages.newest > since));
    }
    if catalog.is_empty() && guessed && !unknown.is_empty() {
        catalog.push(Damage::CatalogOlder);
    }
    let mut rebuild = Rebuild { engine, store, next };
    if !catalog.is_empty() {
        damage.append(&mut catalog);
        for LostTable { name, entry, named } in rebuild.catalog(known, &unknown, &pages)? {
            damage.push(Damage::TableFound { table: name.clone(), named });
            if inner_damage(engine, &entry.tree)?.is_some() {
                broken.push((name, entry));
            }
        }
    }
    for (table, entry) in broken {
        let leaves = pages.get(&entry.tree.table).map_or(&[][..], |pages| &pages.leaves);
        match rebuild.inner_pages(&entry.tree, leaves) {
            Ok(true) => damage.push(Damage::InnerPages { table }),
            Ok(false) => {}
            Err(cause) if salvage::costs_a_range(&cause) => damage.push(Damage::Leaves { table, cause }),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The first id that no page has, nor a link to one that is lost: as far as that can be believed.
fn next_id(engine: &Engine, store: &dyn PageStore) -> PageId {
    let next = store.ids_end().max(1);
    PageId(next.max(engine.ids_end().min(next.saturating_add(ID_SLACK))))
}

/// Why an inner page of a tree, or its root, cannot be read, if that is so.
fn inner_damage(engine: &Engine, tree: &Tree) -> Result<Option<Error>> {
    match tree.check_inner_pages(&engine.pages()) {
        Err(error) if salvage::costs_a_range(&error) => Ok(Some(error)),
        checked => checked.map(|()| None),
    }
}

/// A table that is in no catalog any more.
struct LostTable {
    name: String,
    entry: TableEntry,
    /// An old copy of the catalog says so.
    named: bool,
}

/// Writes new pages over the file.
struct Rebuild<'e> {
    engine: &'e Engine,
    store: &'e dyn PageStore,
    /// From here on no page id is taken.
    next: PageId,
}

impl BulkSink for &mut Rebuild<'_> {
    fn allocate(&mut self) -> Result<PageId> {
        self.take()
    }

    fn write(&mut self, id: PageId, packed: &[u8]) -> Result<()> {
        self.put(id, packed)
    }
}

impl Rebuild<'_> {
    fn take(&mut self) -> Result<PageId> {
        let id = self.next;
        self.next = PageId(id.0.checked_add(1).ok_or(Error::TooManyPages { pages: u64::from(u32::MAX) })?);
        Ok(id)
    }

    fn put(&mut self, id: PageId, packed: &[u8]) -> Result<()> {
        self.engine.forget_page(id);
        self.store.write_unlogged(id, packed).map(drop)
    }

    /// Writes a catalog of the tables that are `known` and of those that are `unknown` and have `pages`; gives the latter.
    fn catalog(
        &mut self,
        known: Vec<(String, TableEntry)>,
        unknown: &[TableId],
        pages: &BTreeMap<TableId, TablePages>,
    ) -> Result<Vec<LostTable>> {
        let mut remembered = remembered_tables(self.engine, self.store)?;
        let mut tables: BTreeMap<String, TableEntry> = known.into_iter().collect();
        let mut found = Vec::new();
        for (id, pages) in unknown.iter().filter_map(|id| Some((*id, pages.get(id)?))) {
            // An old copy may have another root, whose page is something else's by now.
            let root = match pages.root {
                Some((root, _)) => root,
                None => self.take()?,
            };
            let old = remembered.remove(&id);
            let named = old.is_some();
            let number = || Some((format!("table-{id}"), unnamed(id, pages)?));
            let Some((name, entry)) = old.or_else(number) else { continue };
            let name = free_name(&tables, name, id);
            let entry = TableEntry { tree: Tree { root, ..entry.tree }, entries: pages.entries, ..entry };
            tables.insert(name.clone(), entry.clone());
            found.push(LostTable { name, entry, named });
        }
        let (page_size, tree) = (self.engine.page_size(), catalog_tree());
        let mut loader = BulkLoader::new(&mut *self, page_size, tree.layout, tree.table, 1.0);
        for (name, entry) in &tables {
            loader.push(&table_key(name), Record::inline(&entry.encode()))?;
        }
        let root = loader.finish(CATALOG_ROOT)?.root;
        self.put(CATALOG_ROOT, &root)?;
        Ok(found)
    }

    /// Grows inner pages over a table's leaves; false without a leaf.
    fn inner_pages(&mut self, tree: &Tree, leaves: &[PageId]) -> Result<bool> {
        let engine = self.engine;
        let Some(grown) = tree.rebuild_inner_pages(&engine.pages(), leaves, &mut *self)? else { return Ok(false) };
        self.put(tree.root, &grown.root).map(|()| true)
    }
}

/// A name that no table has: this one, or else one with the table's number.
fn free_name(tables: &BTreeMap<String, TableEntry>, mut name: String, id: TableId) -> String {
    let mut tries = 0;
    while tables.contains_key(&name) {
        tries += 1;
        name = if tries == 1 { format!("table-{id}") } else { format!("table-{id}-{tries}") };
    }
    name
}

/// An entry, but for its root, for a table of which nothing but pages is left; `None` without a leaf.
fn unnamed(table: TableId, pages: &TablePages) -> Option<TableEntry> {
    let (leaf, records) = pages.layout?;
    // Nothing says any more that all keys have one length.
    let leaf = if leaf.has_one_length() { KeyListKind::USUAL } else { leaf };
    let key_type = match leaf.key_len() {
        Some(4) => "u32",
        Some(_) => "u64",
        None => "bytes",
    };
    let separators = if leaf.key_len().is_some() { SeparatorRule::Full } else { SeparatorRule::TAIL };
    let (records, value_type) = match records {
        RecordListKind::None => (records, "()"),
        _ => (RecordListKind::Variable, "bytes"),
    };
    let layout = TreeLayout { leaf, inner: leaf.inner(), records, separators };
    Some(TableEntry {
        tree: Tree { root: PageId::NONE, table, layout },
        entries: pages.entries,
        key_type: key_type.to_owned(),
        value_type: value_type.to_owned(),
        key_width: leaf.key_len(),
        value_width: (records == RecordListKind::None).then_some(0),
        next_key: None,
    })
}

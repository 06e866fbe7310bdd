//! Rebuilds a damaged catalog, so that it leads to all tables that are left, and damaged inner pages, so that they lead
//! to all leaves. The new pages bypass the log. They are written to the overlay, never to the file.

use super::survey::{RescuedPages, remembered_tables, survey};
use crate::base::{Damage, Error, Lsn, PageId, Result, TableId};
use crate::db::catalog::{self, TableEntry, catalog_tree, table_key};
use crate::db::check::salvage;
use crate::page::{KeyListKind, Record, RecordListKind, SeparatorRule};
use crate::store::{ID_SLACK, PagePolicy, PageStore};
use crate::tree::{BulkLoader, BulkSink, Tree, TreeLayout};
use crate::txn::{CATALOG_ROOT, Engine};
use std::collections::{BTreeMap, HashSet};

/// Makes all remaining pages of the database reachable, and adds what was damaged to `damage`. `guessed`: the pages of
/// the catalog and of the allocation maps may be old.
pub(super) fn rebuild(engine: &Engine, store: &dyn PageStore, guessed: bool, damage: &mut Vec<Damage>) -> Result<()> {
    let (mut known, mut errors) = salvage::tables(engine, Lsn::MAX)?;
    let next = next_id(engine, store);
    known.retain(|(name, entry)| {
        let beyond = entry.tree.root >= next;
        let why = || format!("the root of table \"{name}\" is page {}, which does not exist", entry.tree.root);
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
        // If a table is older than all leaves of the catalog and is not in the catalog, it was dropped.
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

/// An id greater than the ids of all pages and of all links to lost pages, as far as those are plausible.
fn next_id(engine: &Engine, store: &dyn PageStore) -> PageId {
    let next = store.ids_end().max(1);
    PageId(next.max(engine.ids_end().min(next.saturating_add(ID_SLACK))))
}

/// The error if an inner page of a tree, or its root, cannot be read.
fn inner_damage(engine: &Engine, tree: &Tree) -> Result<Option<Error>> {
    match tree.check_inner_pages(&engine.pages()) {
        Err(error) if salvage::costs_a_range(&error) => Ok(Some(error)),
        checked => checked.map(|()| None),
    }
}

/// A table that is not in the catalog.
struct LostTable {
    name: String,
    entry: TableEntry,
    /// True if the name is from an old copy of the catalog.
    named: bool,
}

/// Writes new pages to the overlay.
struct Rebuild<'e> {
    engine: &'e Engine,
    store: &'e dyn PageStore,
    /// The next free page id.
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
        self.store.write_unlogged(&[(id, packed.to_vec())]).map(drop)
    }

    /// Writes a catalog of the `known` tables and of the `unknown` tables that have `pages`. Returns the latter.
    fn catalog(
        &mut self,
        known: Vec<(String, TableEntry)>,
        unknown: &[TableId],
        pages: &BTreeMap<TableId, RescuedPages>,
    ) -> Result<Vec<LostTable>> {
        let mut remembered = remembered_tables(self.engine, self.store)?;
        let mut tables: BTreeMap<String, TableEntry> = known.into_iter().collect();
        let mut found = Vec::new();
        for (id, pages) in unknown.iter().filter_map(|id| Some((*id, pages.get(id)?))) {
            // An old copy of the catalog may name another root, whose page may now be used for something else.
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

    /// Builds inner pages over the leaves of a table. Returns false if there are none.
    fn inner_pages(&mut self, tree: &Tree, leaves: &[PageId]) -> Result<bool> {
        let engine = self.engine;
        let Some(rebuilt) = tree.rebuild_inner_pages(&engine.pages(), leaves, &mut *self)? else { return Ok(false) };
        self.put(tree.root, &rebuilt.root).map(|()| true)
    }
}

/// A name that no table has: `name` if it is free, or else a name with the number of the table.
fn free_name(tables: &BTreeMap<String, TableEntry>, mut name: String, id: TableId) -> String {
    let mut tries = 0;
    while tables.contains_key(&name) {
        tries += 1;
        name = if tries == 1 { format!("table-{id}") } else { format!("table-{id}-{tries}") };
    }
    name
}

/// A catalog entry without a root, for a table of which only pages are left. `None` if there is no leaf.
fn unnamed(table: TableId, pages: &RescuedPages) -> Option<TableEntry> {
    let (leaf, records) = pages.layout?;
    // It is unknown whether all keys have one length.
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
        policy: PagePolicy::default(),
        next_key: None,
    })
}

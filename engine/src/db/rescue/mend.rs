//! A catalog that leads to all tables that are left, and inner pages that lead to all their leaves, where those that there
//! were are damaged. They are written past the log, over the file and never into it.

use super::survey::{TablePages, remembered_tables, survey};
use crate::base::{Error, Lsn, PageId, Result, TableId};
use crate::db::catalog::{TableEntry, catalog_tree, table_key};
use crate::db::salvage;
use crate::page::{KeyListKind, Record, RecordListKind, SeparatorRule};
use crate::store::TableStore;
use crate::tree::{BulkLoader, BulkSink, Tree, TreeLayout};
use crate::txn::{CATALOG_ROOT, Engine, Pages};
use std::collections::{BTreeMap, HashSet};

/// Makes what is left of the database reachable, and says what was not. `guessed`: the pages of the catalog and the allocation
/// maps may be old ones.
pub(super) fn mend(engine: &Engine, store: &TableStore, guessed: bool, damage: &mut Vec<String>) -> Result<()> {
    let (known, errors) = salvage::tables(engine, Lsn::MAX)?;
    let mut broken = Vec::new();
    for (name, entry) in &known {
        if is_broken(engine, &entry.tree)? {
            broken.push((name.clone(), entry.clone()));
        }
    }
    let mut catalog: Vec<String> = errors.iter().map(|error| format!("the catalog: {}", cause(error))).collect();
    if catalog.is_empty() && is_broken(engine, &catalog_tree())? {
        catalog.push("the catalog: an inner page is damaged".into());
    }
    if catalog.is_empty() && broken.is_empty() && !guessed {
        return Ok(());
    }
    let pages = survey(engine, store, guessed)?;
    let unknown = |id: &TableId| *id != TableId::CATALOG && known.iter().all(|(_, entry)| entry.tree.table != *id);
    if catalog.is_empty() && guessed && pages.keys().any(unknown) {
        catalog.push("the catalog: an older copy of it was found".into());
    }
    let next = store.pages().last().map_or(1, |last| last.0.saturating_add(1)).max(engine.ids.lock().high());
    let mut mending = Mending { engine, store, next: PageId(next) };
    if !catalog.is_empty() {
        damage.append(&mut catalog);
        for (name, entry) in mending.catalog(known, &pages)? {
            damage.push(format!("the catalog: table \"{}\" was found by its pages", name.escape_debug()));
            if is_broken(engine, &entry.tree)? {
                broken.push((name, entry));
            }
        }
    }
    for (name, entry) in broken {
        let leaves = pages.get(&entry.tree.table).map_or(&[][..], |pages| &pages.leaves);
        let name = name.escape_debug();
        match mending.inner_pages(&entry.tree, leaves) {
            Ok(true) => damage
                .push(format!("table \"{name}\": inner pages are damaged, what they led to was found by its leaves")),
            Ok(false) => {}
            Err(error) if salvage::costs_a_range(&error) => {
                damage.push(format!(
                    "table \"{name}\": inner pages are damaged, and its leaves do not fit together: {}",
                    cause(&error)
                ));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Whether an inner page of a tree, or its root, cannot be read.
fn is_broken(engine: &Engine, tree: &Tree) -> Result<bool> {
    match tree.check_inner_pages(&Pages(&engine.pool)) {
        Err(error) if salvage::costs_a_range(&error) => Ok(true),
        checked => checked.map(|()| false),
    }
}

/// What stands in the way, without advice.
fn cause(error: &Error) -> String {
    match error {
        Error::Corrupt { page, what } => format!("page {page}: {what}"),
        Error::CorruptMeta { why, .. } => why.clone(),
        other => other.to_string(),
    }
}

/// Writes new pages over the file.
struct Mending<'e> {
    engine: &'e Engine,
    store: &'e TableStore,
    /// From here on no page id is taken.
    next: PageId,
}

impl BulkSink for &mut Mending<'_> {
    fn allocate(&mut self) -> Result<PageId> {
        let id = self.next;
        self.next = PageId(id.0.checked_add(1).ok_or(Error::TooManyPages { pages: u64::from(u32::MAX) })?);
        Ok(id)
    }

    fn write(&mut self, id: PageId, packed: &[u8]) -> Result<()> {
        self.engine.pool.forget(id);
        self.store.write_unlogged(id, packed).map(drop)
    }
}

impl Mending<'_> {
    /// Writes a catalog of the tables that are `known` and of those that have pages and are in no catalog any more; gives
    /// the latter.
    fn catalog(
        &mut self,
        known: Vec<(String, TableEntry)>,
        pages: &BTreeMap<TableId, TablePages>,
    ) -> Result<Vec<(String, TableEntry)>> {
        let remembered = remembered_tables(self.engine, self.store)?;
        let known_ids: HashSet<TableId> = known.iter().map(|(_, entry)| entry.tree.table).collect();
        let mut tables: BTreeMap<String, TableEntry> = known.into_iter().collect();
        let mut found = Vec::new();
        for (id, pages) in pages.iter().filter(|(id, _)| **id != TableId::CATALOG) {
            if known_ids.contains(id) {
                continue;
            }
            // An old copy may have another root, whose page is something else's by now.
            let root = match pages.root {
                Some((root, _)) => root,
                None => (&mut *self).allocate()?,
            };
            let (name, entry) = match remembered.get(id) {
                Some((name, entry)) => (name.clone(), entry.clone()),
                None => match unnamed(*id, pages) {
                    Some(entry) => (format!("table-{id}"), entry),
                    None => continue,
                },
            };
            let free = |name: &String| !tables.contains_key(name);
            let others = (0..).map(|n| format!("table-{id}{}", if n == 0 { String::new() } else { format!("-{n}") }));
            let name = std::iter::once(name).chain(others).find(free).unwrap_or_default();
            let entry = TableEntry { tree: Tree { root, ..entry.tree }, entries: pages.entries, ..entry };
            tables.insert(name.clone(), entry.clone());
            found.push((name, entry));
        }
        let (page_size, tree) = (self.engine.pool.page_size(), catalog_tree());
        for page in pages.get(&TableId::CATALOG).map_or(&[][..], |pages| &pages.leaves) {
            self.engine.pool.forget(*page);
        }
        let mut loader = BulkLoader::new(&mut *self, page_size, tree.layout, tree.table, 1.0);
        for (name, entry) in &tables {
            loader.push(&table_key(name), Record::inline(&entry.encode()))?;
        }
        let root = loader.finish(CATALOG_ROOT)?.root;
        let mut sink = self;
        sink.write(CATALOG_ROOT, &root)?;
        Ok(found)
    }

    /// Grows inner pages over a table's leaves; false without a leaf.
    fn inner_pages(&mut self, tree: &Tree, leaves: &[PageId]) -> Result<bool> {
        let engine = self.engine;
        let grown = tree.regrow(&Pages(&engine.pool), leaves, &mut *self)?;
        let Some(grown) = grown else { return Ok(false) };
        let mut sink = self;
        sink.write(tree.root, &grown.root).map(|()| true)
    }
}

/// An entry, but for its root, for a table of which nothing but pages is left; `None` without a leaf.
fn unnamed(table: TableId, pages: &TablePages) -> Option<TableEntry> {
    let (leaf, records) = pages.layout?;
    let (leaf, inner, key_type) = match leaf {
        KeyListKind::Blocks32(_) => (leaf, KeyListKind::Fixed, "u32"),
        KeyListKind::Blocks64(_) => (leaf, KeyListKind::Fixed, "u64"),
        // Nothing says any more that all keys have one length.
        KeyListKind::Fixed => (KeyListKind::Head, KeyListKind::Head, "bytes"),
        KeyListKind::Plain => (leaf, KeyListKind::Plain, "bytes"),
        _ => (leaf, KeyListKind::Head, "bytes"),
    };
    let separators = if leaf.key_len().is_some() { SeparatorRule::Full } else { SeparatorRule::TAIL };
    let (records, value_type) = match records {
        RecordListKind::None => (records, "()"),
        _ => (RecordListKind::Variable, "bytes"),
    };
    let layout = TreeLayout { leaf, inner, records, separators };
    Some(TableEntry {
        tree: Tree { root: PageId::NONE, table, layout },
        entries: pages.entries,
        key_type: key_type.to_owned(),
        value_type: value_type.to_owned(),
        next_key: None,
    })
}

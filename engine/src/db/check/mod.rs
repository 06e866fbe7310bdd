//! Checks a database: every page of every tree, every run, and the allocation maps against the pages that are in use.

pub(super) mod rescue;
pub(super) mod salvage;

use super::Database;
use super::catalog::{self, TableEntry, catalog_tree};
use super::shared::Handle;
use crate::base::{Error, Lsn, PageId, Result, bytes};
use crate::tree::{DetachedSubtree, Problem, Tree, TreeStats, Visit};
use crate::txn::{LargeValues, large};
use std::collections::{BTreeMap, BTreeSet};

/// A finding of [`Database::verify`].
///
/// ```
/// # use duramen::{Database, TableDef};
/// # const TREES: TableDef<&str, &str> = TableDef::new("trees");
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("forest.duramen");
/// # let db = Database::create(&path)?;
/// # let tx = db.begin_write()?;
/// # tx.open_table(TREES)?.put("oak", "Quercus robur")?;
/// # tx.commit()?;
/// # db.close()?;
/// # let mut bytes = std::fs::read(&path)?;
/// # while let Some(at) = bytes.windows(7).position(|name| name == b"Quercus") {
/// #     bytes[at] ^= 1; // it rots
/// # }
/// # std::fs::write(&path, bytes)?;
/// let report = Database::open(&path)?.verify(|_| ())?;
/// for finding in &report.findings {
///     println!("page {} of {:?}: {}", finding.page, finding.table, finding.what);
///     if finding.lost {
///         println!("keys from {:?} to {:?} are lost", finding.lower, finding.upper);
///     }
/// }
/// assert_eq!(report.findings[0].table.as_deref(), Some("trees"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The table, if the finding is in one.
    pub table: Option<String>,
    /// The page. [`PageId::NONE`] if the finding is not about a page, or is about an allocation map; `what` then says
    /// so.
    pub page: PageId,
    /// A description.
    pub what: String,
    /// True if keys may be lost. If the catalog is damaged, their table is not known.
    pub lost: bool,
    /// The lower bound of the lost keys.
    pub lower: Vec<u8>,
    /// The upper bound of the lost keys, exclusive; `None` for no bound.
    pub upper: Option<Vec<u8>>,
}

/// The result of [`Database::verify`].
///
/// ```
/// # const TREES: duramen::TableDef<&str, u64> = duramen::TableDef::new("trees");
/// # let db = duramen::Database::in_memory()?;
/// # let tx = db.begin_write()?;
/// # for (name, years) in [("elm", 400), ("oak", 700), ("yew", 3000)] { tx.open_table(TREES)?.put(name, years)?; }
/// # tx.commit()?;
/// let report = db.verify(|_| ())?;
/// assert!(report.findings.is_empty(), "{:?}", report.findings);
/// let (name, stats) = &report.tables[0];
/// assert_eq!((name.as_str(), stats.entries()), ("trees", 3));
/// # Ok::<(), duramen::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct CheckReport {
    /// Each table, with statistics of its tree.
    pub tables: Vec<(String, TreeStats)>,
    /// The number of pages that were read.
    pub pages: u64,
    /// All findings; empty if the database is not damaged.
    pub findings: Vec<Finding>,
}

struct Check<'a> {
    shared: &'a Handle,
    reached: BTreeSet<PageId>,
    /// For each page of a key heap: how many of its keys leaves refer to, and how many keys it has.
    heap: BTreeMap<PageId, (u64, u64)>,
    report: CheckReport,
}

impl Database {
    /// Checks every page: structure, order, separators, links, checksums, entry counts, large values, and that exactly
    /// the reachable pages are allocated. Writers wait until it is finished. `progress` is called at intervals with the
    /// number of pages read. A page that is in the cache is checked there, and its image on the device is not read:
    /// open the database anew to check all images.
    ///
    /// ```
    /// let db = duramen::Database::in_memory()?;
    /// let report = db.verify(|pages| println!("{pages} pages so far"))?;
    /// assert!(report.findings.is_empty());
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// Errors that are not findings, such as a cache that is too small, or [`Error::NotBuilt`] if this build cannot
    /// read a page.
    pub fn verify(&self, mut progress: impl FnMut(u64)) -> Result<CheckReport> {
        let shared = self.shared();
        let _writer = shared.engine.exclude_writers();
        let mut check =
            Check { shared, reached: BTreeSet::new(), heap: BTreeMap::new(), report: CheckReport::default() };
        check.tree(None, &catalog_tree(), false, true, &mut progress)?;
        let (tables, errors) = salvage::tables(&shared.engine, Lsn::MAX)?;
        // The check of the catalog tree has reported its damaged pages.
        for error in errors.iter().filter(|error| !matches!(error, Error::Corrupt { .. })) {
            check.find(None, true, anywhere(PageId::NONE, error.without_advice()));
        }
        for (name, entry) in tables {
            let stats = check.tree(Some(&name), &entry.tree, false, true, &mut progress)?;
            if stats.entries() != entry.entries && stats.problems.is_empty() {
                let what = format!("the catalog has {} entries, the tree has {}", entry.entries, stats.entries());
                check.find(Some(&name), false, anywhere(entry.tree.root, what));
            }
            check.report.tables.push((name, stats));
        }
        // Not all of them are in memory: not those of a database that only reads, nor those with damaged pages.
        let detached = shared.engine.catalogued_subtrees(&catalog_tree());
        if let Err(error) = &detached
            && check.report.findings.is_empty()
        {
            check.find(None, false, anywhere(PageId::NONE, error.without_advice()));
        }
        for ((_, root), at) in detached.unwrap_or_default() {
            let tree = Tree { root, table: at.table, layout: catalog_tree().layout };
            check.tree(None, &tree, true, at.large_values == LargeValues::Free, &mut progress)?;
        }
        check.heaps();
        match shared.engine.store_damage() {
            // The damage hides which pages are in use, so the maps cannot be compared.
            Some(damage) => check.find(None, false, anywhere(PageId::NONE, damage.without_advice())),
            None => {
                check.account();
                if let Some(Err(wrong)) = shared.engine.page_store().map(|store| store.check_places()) {
                    check.find(None, false, anywhere(PageId::NONE, wrong.without_advice()));
                }
            }
        }
        if let Some(slot) = shared.engine.damaged_superblock() {
            let what = format!(
                "superblock {slot} is damaged: the other one is in use; open the database for writing to repair it"
            );
            check.find(None, false, anywhere(PageId::NONE, what));
        }
        check.report.pages = check.reached.len() as u64;
        Ok(check.report)
    }

    /// Passes every page in use to `visit`, in order, with its bytes. For tests of recovery. Writers wait until it is
    /// finished.
    #[doc(hidden)]
    pub fn each_page(&self, mut visit: impl FnMut(PageId, &[u8])) -> Result<()> {
        let engine = &self.shared().engine;
        let _writer = engine.exclude_writers();
        for map in engine.map_pages() {
            for id in engine.taken_pages(map).unwrap_or_default() {
                visit(id, &engine.read_page(id)?);
            }
        }
        Ok(())
    }

    /// Statistics of one table, level by level. Writers wait until they are collected.
    ///
    /// ```
    /// # const TREES: duramen::TableDef<&str, u64> = duramen::TableDef::new("trees");
    /// # let db = duramen::Database::in_memory()?;
    /// # let tx = db.begin_write()?;
    /// # for (name, years) in [("elm", 400), ("oak", 700), ("yew", 3000)] { tx.open_table(TREES)?.put(name, years)?; }
    /// # tx.commit()?;
    /// let stats = db.table_stats("trees")?;
    /// let leaves = &stats.levels[0];
    /// assert_eq!((leaves.pages, leaves.entries), (1, 3));
    /// println!("{} bytes of keys need {} bytes in pages", leaves.raw_key_bytes, leaves.key_list_bytes);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NoTable`], and errors of reading.
    pub fn table_stats(&self, name: &str) -> Result<TreeStats> {
        let shared = self.shared();
        let _writer = shared.engine.exclude_writers();
        let read = |record: Option<crate::page::Record<'_>>| record.map(|r| TableEntry::decode(r.bytes));
        let entry = shared.engine.get_current(&catalog_tree(), &catalog::table_key(name), read)?.transpose()?;
        let entry = entry.ok_or_else(|| Error::NoTable { table: name.to_owned() })?;
        let (mut large, mut stored_bytes) = (Vec::new(), 0);
        let store = shared.engine.page_store();
        let mut visit = |visit: Visit<'_>| match visit {
            Visit::Large { record, .. } => large.push(large::len(record.bytes)),
            Visit::Page(page) | Visit::Heap { page, .. } => {
                stored_bytes += store.as_ref().and_then(|store| store.place_bytes(page)).unwrap_or(0);
            }
        };
        let stats = entry.tree.verify(&shared.engine.pages(), &mut visit)?;
        Ok(TreeStats { large_value_bytes: large.into_iter().flatten().sum(), stored_bytes, ..stats })
    }
}

/// A problem without a known key range.
fn anywhere(page: PageId, what: String) -> Problem {
    Problem { page, what, lower: Vec::new(), upper: None }
}

/// The page that an error names, or else `page`, and the message without advice.
fn page_and_message(error: &Error, page: PageId) -> (PageId, String) {
    match error {
        Error::Corrupt { page, what } => (*page, what.clone()),
        other => (page, other.without_advice()),
    }
}

impl Check<'_> {
    fn find(&mut self, table: Option<&str>, lost: bool, problem: Problem) {
        let Problem { page, what, lower, upper } = problem;
        self.report.findings.push(Finding { table: table.map(str::to_owned), page, what, lost, lower, upper });
    }

    fn tree(
        &mut self,
        name: Option<&str>,
        tree: &Tree,
        detached: bool,
        with_runs: bool,
        progress: &mut dyn FnMut(u64),
    ) -> Result<TreeStats> {
        let engine = &self.shared.engine;
        let mut twice = Vec::new();
        let mut runs = Vec::new();
        let (reached, heap) = (&mut self.reached, &mut self.heap);
        let mut visit = |visit: Visit<'_>| match visit {
            Visit::Page(page) => {
                if !reached.insert(page) {
                    twice.push(page);
                }
                if reached.len().is_multiple_of(4096) {
                    progress(reached.len() as u64);
                }
            }
            Visit::Large { leaf, key, record } if with_runs => runs.push((leaf, key.to_vec(), record.bytes.to_vec())),
            Visit::Large { .. } => {}
            Visit::Heap { page, keys, of } => {
                let (known, _) = heap.entry(page).or_insert((0, of));
                *known += keys;
            }
        };
        let pages = engine.pages();
        let verified = match detached {
            false => tree.verify(&pages, &mut visit),
            true => {
                let subtree = DetachedSubtree { root: tree.root, level: 0, lower: Vec::new(), upper: None };
                tree.verify_subtree(&pages, &subtree, &mut visit)
            }
        };
        let mut stats = match verified {
            Ok(stats) => stats,
            Err(error @ Error::NotBuilt { .. }) => return Err(error),
            Err(error) => {
                let (page, what) = page_and_message(&error, tree.root);
                TreeStats { problems: vec![anywhere(page, what)], ..TreeStats::default() }
            }
        };
        for (leaf, lower, record) in runs {
            stats.large_value_bytes += large::len(&record).unwrap_or_default();
            if let Err(error) = self.run(&record) {
                if matches!(error, Error::NotBuilt { .. }) {
                    return Err(error);
                }
                let (page, what) = page_and_message(&error, leaf);
                let mut upper = lower.clone();
                bytes::to_next(&mut upper);
                stats.problems.push(Problem { page, what, lower, upper: Some(upper) });
            }
        }
        // Problems in a detached subtree lose no keys.
        stats.problems.iter().for_each(|problem| self.find(name, !detached, problem.clone()));
        for problem in twice.into_iter().map(|page| anywhere(page, "it is reached from two places".to_owned())) {
            self.find(name, false, problem.clone());
            stats.problems.push(problem);
        }
        Ok(stats)
    }

    fn run(&mut self, record: &[u8]) -> Result<()> {
        let engine = &self.shared.engine;
        for page in large::pages(engine, record)? {
            if !self.reached.insert(page) {
                return Err(Error::corrupt(page, "a large value's page is reached from two places"));
            }
        }
        large::check(engine, record)
    }

    /// Marks the pages of key heaps as reached, and compares the number of keys in each with the references to them.
    /// Called after all trees were checked.
    fn heaps(&mut self) {
        let sound = self.report.findings.is_empty();
        for (page, (known, of)) in std::mem::take(&mut self.heap) {
            if !self.reached.insert(page) {
                self.find(
                    None,
                    false,
                    anywhere(page, "another part of the database uses this page of the key heap".into()),
                );
            }
            if known != of && sound {
                self.find(None, false, anywhere(page, format!("leaves refer to {known} of its {of} keys")));
            }
        }
    }

    /// Compares the allocation maps with the reached pages.
    fn account(&mut self) {
        let engine = &self.shared.engine;
        if !engine.is_logged() {
            return;
        }
        let mut taken = BTreeSet::new();
        for map in engine.map_pages() {
            match engine.taken_pages(map) {
                Ok(pages) => taken.extend(pages),
                Err(error) => {
                    let (_, what) = page_and_message(&error, map);
                    let what = format!(
                        "an allocation map is damaged ({what}): the database cannot be written; copy the entries to a new database"
                    );
                    self.find(None, false, anywhere(map, what));
                    return;
                }
            }
            self.reached.insert(map);
        }
        // If a tree is damaged, pages below its lost pages are not reached, but they are not leaked either.
        let sound = self.report.findings.is_empty();
        let leaked = taken
            .difference(&self.reached)
            .filter(|_| sound)
            .map(|page| (*page, "it is allocated, but nothing refers to it"));
        let stray = self.reached.difference(&taken).map(|page| (*page, "it is in use, but not allocated"));
        let found: Vec<_> = leaked.chain(stray).collect();
        for (page, what) in found {
            self.find(None, false, anywhere(page, what.to_owned()));
        }
    }
}

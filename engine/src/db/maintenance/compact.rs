//! Compaction: rebuilds every table with full pages, moves every page to the front of the file, and truncates the file.

use super::bulk::{DEFAULT_FILL, Sink};
use super::progress::{Phase, Progress};
use crate::base::{Error, Result, TableId};
use crate::db::Database;
use crate::db::catalog::catalog_tree;
use crate::db::catalog::info::TableInfo;
use crate::db::maintenance::strategy::CompressionPlan;
use crate::db::transaction::write::WriteTransaction;
use crate::page::Record;
use crate::store::PagePolicy;
use crate::tree::{BulkLoader, Tree};
use crate::txn::{Cursor, LargeValues, ReadView, large};
use std::collections::{HashMap, HashSet};
use std::ops::Bound;

/// The result of a compaction.
///
/// ```
/// # const TREES: duramen::TableDef<&str, u64> = duramen::TableDef::new("trees");
/// # let db = duramen::Database::in_memory()?;
/// # let tx = db.begin_write()?;
/// # for (name, years) in [("elm", 400), ("oak", 700), ("yew", 3000)] { tx.open_table(TREES)?.put(name, years)?; }
/// # tx.commit()?;
/// let report = db.compact(|_| ())?;
/// assert_eq!(report.entries, 3);
/// assert_eq!((report.bytes_before, report.bytes_after), (0, 0), "a database in memory has no file");
/// # Ok::<(), duramen::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CompactReport {
    /// The length of the file before, in bytes.
    pub bytes_before: u64,
    /// The length of the file after, in bytes.
    pub bytes_after: u64,
    /// The number of entries rewritten.
    pub entries: u64,
}

impl Database {
    /// Rebuilds every table with full pages and shrinks the file. Readers continue, writers wait until it is finished.
    /// Pages that open snapshots need stay until the snapshots are dropped. It needs as much free space as the live
    /// data have.
    ///
    /// ```
    /// # use duramen::{Database, TableDef};
    /// # const TREES: TableDef<u32, &[u8]> = TableDef::new("trees");
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("forest.duramen");
    /// let db = Database::create(&path)?;
    /// let tx = db.begin_write()?;
    /// {
    ///     let mut trees = tx.open_table(TREES)?;
    ///     for number in 0..10_000u32 {
    ///         trees.put(number, number.to_be_bytes().repeat(25).as_slice())?;
    ///     }
    /// }
    /// tx.commit()?;
    /// db.checkpoint()?;
    /// let tx = db.begin_write()?;
    /// tx.open_table(TREES)?.remove_range(100..);
    /// tx.commit()?;
    ///
    /// let report = db.compact(|_| ())?;
    /// assert_eq!(report.entries, 100);
    /// assert!(report.bytes_after < report.bytes_before);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// If another thread compacts the database, this waits until it has ended. So `progress` must not begin a
    /// compaction.
    ///
    /// # Errors
    /// Errors of reading and writing. The database stays intact if it stops at any point.
    /// [`Error::Corrupt`], which names the table, if a page is damaged. A table with damaged inner pages is left as it
    /// is, and its error is returned after the other tables are rebuilt. If a leaf is damaged, no table is rebuilt.
    /// Read the damaged table with [`ReadOnlyUntypedTable::salvage`](crate::db::ReadOnlyUntypedTable::salvage).
    pub fn compact(&self, mut progress: impl FnMut(Progress)) -> Result<CompactReport> {
        let shared = self.shared();
        shared.check_writable()?;
        let _one = shared.compaction.lock();
        self.compact_to(None, &mut progress)
    }

    /// Compacts as [`Database::compact`] does, and gives each table the compression that the strategy of the plan
    /// chooses. All pages of a table whose compression changes are written anew, those of large values too. Readers
    /// continue meanwhile, and writers wait. If the plan is for some tables only, the others are not rebuilt.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("forest.duramen");
    /// use duramen::{Database, TableDef, db::{Compression, CompressionPlan, Strategy}};
    /// const TREES: TableDef<u32, &str> = TableDef::new("trees");
    ///
    /// let db = Database::create(&path)?;
    /// let tx = db.begin_write()?;
    /// tx.open_table(TREES)?.put(1, "oak")?;
    /// tx.commit()?;
    /// db.compact_with(&CompressionPlan::new(Strategy::All, Compression::Lz4), |_| ())?;
    /// assert_eq!(db.begin_read()?.tables()?[0].compression, Compression::Lz4);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Database::compact`] and [`Database::analyze`].
    pub fn compact_with(&self, plan: &CompressionPlan, mut progress: impl FnMut(Progress)) -> Result<CompactReport> {
        let shared = self.shared();
        shared.check_writable()?;
        let _one = shared.compaction.lock();
        let choices = self.choices(plan, &mut progress)?;
        self.compact_to(Some(&choices), &mut progress)
    }

    /// Compacts. The caller holds the lock of compactions: a compaction drops the dictionaries that no image
    /// names, and a second compaction may be about to write images that name a new one. `choices`: the new policies of
    /// the tables that are rebuilt, by name. `None`: all are rebuilt with the policies that they have.
    fn compact_to(
        &self,
        choices: Option<&HashMap<String, PagePolicy>>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<CompactReport> {
        let shared = self.shared();
        let size = || shared.engine.stats().file_bytes;
        let bytes_before = size();
        shared.check_writable()?;
        let mut copied = self.add_dictionaries(choices, progress)?;
        // After an interrupted compaction, large values still name the dictionary that a new one has replaced.
        copied.extend(self.unused_dictionaries()?.iter().map(|place| place.table));
        let tx = self.begin_write()?;
        let mut tables = tx.tables()?;
        tables.retain(|table| choices.is_none_or(|choices| choices.contains_key(&table.name)));
        let damaged = tx.leave_out_damaged(&mut tables)?;
        let of = tables.iter().map(|table| table.entries).sum();
        let mut so_far = Progress { phase: Phase::Rebuilding, done: 0, of };
        let mut before: Vec<(TableId, PagePolicy)> = Vec::new();
        let rebuilt = tables.iter().try_for_each(|table| {
            let choice = choices.and_then(|choices| choices.get(&table.name)).copied();
            let choice = choice.filter(|choice| *choice != table.policy());
            tx.rebuild(&table.name, (choice, &copied), &mut before, &mut so_far, progress)
                .map_err(|error| error.in_table(&table.name))
        });
        if let Err(error) = rebuilt.and_then(|()| tx.commit()) {
            before.iter().for_each(|(table, policy)| shared.engine.set_policy(*table, *policy));
            return Err(error);
        }
        let freeing = |done| Progress { phase: Phase::Freeing, done, of: 1 };
        progress(freeing(0));
        shared.engine.reclaim_before(&catalog_tree(), shared.engine.last_end())?;
        shared.engine.prune_all();
        shared.engine.checkpoint_with_room()?;
        progress(freeing(1));
        self.drop_dictionaries(progress)?;
        let _writer = shared.engine.lock_writer()?;
        shared.engine.shrink_fully(&mut |done, of| progress(Progress { phase: Phase::Shrinking, done, of }))?;
        match damaged {
            Some(damaged) => Err(damaged),
            None => Ok(CompactReport { bytes_before, bytes_after: size(), entries: so_far.done }),
        }
    }
}

impl WriteTransaction {
    /// Removes the tables with damaged inner pages from the list, and returns the error of the first of them. Entries
    /// are read by right links, without inner pages. But leaves below a damaged inner page could not be freed.
    fn leave_out_damaged(&self, tables: &mut Vec<TableInfo>) -> Result<Option<Error>> {
        let (mut sound, mut damaged) = (Vec::new(), None);
        for table in tables.drain(..) {
            let tree = self.open_untyped(&table.name)?.state.entry.tree;
            match tree.check_inner_pages(&self.shared.engine.pages()) {
                Ok(()) => sound.push(table),
                Err(error @ Error::Corrupt { .. }) => damaged = damaged.or(Some(error.in_table(&table.name))),
                Err(error) => return Err(error),
            }
        }
        *tables = sound;
        Ok(damaged)
    }

    /// Writes a new copy of the table bottom-up and drops its old pages. Runs of large values are copied, too, if the
    /// policy changes, or if the table is in `copied`. `before` gets the old policy if it changes.
    fn rebuild(
        &self,
        name: &str,
        (policy, copied): (Option<PagePolicy>, &HashSet<TableId>),
        before: &mut Vec<(TableId, PagePolicy)>,
        so_far: &mut Progress,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<()> {
        let Some(mut entry) = self.take_name(name)?.map(|state| state.entry) else { return Ok(()) };
        let engine = &self.shared.engine;
        let old = entry.tree;
        if let Some(policy) = policy {
            before.push((old.table, entry.policy));
            entry.policy = policy;
            engine.set_policy(old.table, policy);
        }
        let copies_runs = policy.is_some() || copied.contains(&old.table);
        let fill = engine.best_fill(DEFAULT_FILL);
        let mut loader = BulkLoader::new(
            Sink::for_table(self, old.table, entry.policy),
            engine.page_size(),
            old.layout,
            old.table,
            fill,
        );
        let mut cursor =
            Cursor::new(engine, old, ReadView::Snapshot(crate::base::Lsn::MAX), Bound::Unbounded, Bound::Unbounded);
        while let Some((key, record)) = cursor.next()? {
            if record.large && copies_runs {
                let mut value = large::RunReader::open(engine, record.bytes)?;
                let copy = large::write(engine, &self.adopted, old.table, value.len(), &mut value)?;
                loader.push(key, Record { bytes: &copy.bytes, large: true })?;
            } else {
                loader.push(key, record)?;
            }
            so_far.done += 1;
            if so_far.done.is_multiple_of(1 << 14) {
                progress(*so_far);
            }
        }
        let root = self.allocate()?;
        let loaded = loader.finish(root)?;
        self.write_root(root, loaded.root)?;
        entry.tree = Tree { root, ..old };
        entry.entries = loaded.entries;
        self.install(name, entry, 0);
        self.drop_tree(old, if copies_runs { LargeValues::Free } else { LargeValues::Keep });
        progress(*so_far);
        Ok(())
    }
}

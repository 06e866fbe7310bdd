//! Conversion: copies a closed database into a new file with another page store, page size or delta blocks, and gives
//! the new file the name of the old one.
//!
//! 1. The old database is locked until the end. If it was not closed, it is recovered and closed, so that it has no
//!    log. Otherwise nothing is written to it.
//! 2. Its tables are copied by bulk loads into a file with a temporary name, which has its own lock and log.
//! 3. The new database is closed, so that it has no log either, and is durable.
//! 4. The new file replaces the old one.
//!
//! At any time the name leads to a complete database, and the log beside it, if there is one, belongs to that database.
//! Files, their names and their locks are in `open::creation`.

use super::compact::CompactReport;
use super::progress::{Phase, Progress};
use crate::base::{Error, Result};
use crate::db::open::creation::Creation;
use crate::db::open::{Opened, existing};
use crate::db::table::read_only_untyped::ReadOnlyUntypedTable;
use crate::db::transaction::write::WriteTransaction;
use crate::db::{Builder, Database, DatabaseStats};
use crate::io::{LockGuard, Locked, Volume};
use crate::store;
use crate::txn::{Cursor, ReadView, large};
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

/// Progress is reported after this number of entries, or of bytes of large values.
const STEP_ENTRIES: u64 = 1 << 14;
const STEP_BYTES: u64 = 16 << 20;
/// The number of pages of copied tables after which the copy commits. A commit costs a few syncs.
const PAGES_A_COMMIT: usize = 1 << 12;

impl Builder {
    /// Converts a database that is not open: gives its file the page store ([`Builder::store`]), the page size
    /// ([`Builder::page_size`]) and the delta blocks ([`Builder::delta`]) of these options. Options that are not set do
    /// not change. Even if nothing changes, the file is rebuilt with full pages. `progress` is called at intervals.
    ///
    /// The database is recovered first if it was not closed. Then all tables are copied to a new file beside it, which
    /// replaces it when it is complete and durable. So the device must have space for both files, and a crash at any
    /// time leaves either the old database or the new one, complete. A crash can also leave the unfinished file
    /// `NAME.ID.new`, which the next conversion removes. No process can open the database during the conversion.
    ///
    /// The new file gets the permissions of the old one, and its owner and group if the system allows that. Other hard
    /// links to the old file keep the old database. The totals in [`Metrics::life`](crate::db::Metrics) begin with the
    /// writes of the conversion.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("forest.duramen");
    /// # const TREES: duramen::TableDef<&str, u64> = duramen::TableDef::new("trees");
    /// use duramen::{Database, db::StoreKind};
    ///
    /// let db = Database::create(&path)?;
    /// let tx = db.begin_write()?;
    /// tx.open_table(TREES)?.put("oak", 700)?;
    /// tx.commit()?;
    /// db.close()?;
    ///
    /// let options = Database::builder().store(StoreKind::Shadow);
    /// let report = options.convert(&path, |progress| println!("{} of {} entries", progress.done, progress.of))?;
    /// assert_eq!(report.entries, 1);
    /// let db = Database::open(&path)?;
    /// assert_eq!(db.stats().store, Some(StoreKind::Shadow));
    /// assert_eq!(db.begin_read()?.open_table(TREES)?.len(), 1);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Builder::open`]; [`Error::Full`] if the device has no space for both files; [`Error::Corrupt`],
    /// which names the table, if a page is damaged; and errors of reading and writing. After an error the old database
    /// is unchanged, except if one of the last steps has failed: a sync of the folder, or the removal of the old file.
    /// Then the path leads to the new database, but after a power cut it may lead to the old one again. The old file
    /// may stay as `NAME.ID.new`, and the next conversion removes it.
    pub fn convert(&self, path: impl AsRef<Path>, progress: impl FnMut(Progress)) -> Result<CompactReport> {
        let (volume, name) = existing(path.as_ref())?;
        self.convert_on(volume, &name, progress)
    }

    /// [`Builder::convert`] on any volume.
    ///
    /// ```
    /// use duramen::{Database, io::MemoryVolume};
    /// use std::sync::Arc;
    ///
    /// let volume = Arc::new(MemoryVolume::new());
    /// Database::builder().page_size(4096).create_on(volume.clone(), "forest")?.close()?;
    /// Database::builder().page_size(16384).convert_on(volume.clone(), "forest", |_| ())?;
    /// assert_eq!(Database::builder().open_on(volume, "forest")?.stats().page_size, 16384);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Builder::convert`].
    pub fn convert_on(
        &self,
        volume: Arc<dyn Volume>,
        name: &str,
        mut progress: impl FnMut(Progress),
    ) -> Result<CompactReport> {
        self.check_bounds()?;
        self.checked_page_size(false)?;
        let converted = self.convert_locked(&volume, name, &mut progress);
        converted.map_err(|error| Creation::named(error, &*volume, name))
    }

    fn convert_locked(
        &self,
        volume: &Arc<dyn Volume>,
        name: &str,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<CompactReport> {
        let Locked { disk, guard } = volume.lock(name, true)?;
        let lock: Arc<dyn LockGuard> = guard.into();
        let path = volume.path(name);
        let open = || Opened::of(self, path.clone(), lock.clone(), store::open(disk.clone(), &path)?);
        let mut old = open()?;
        if old.needs_recovery(volume.clone(), name)? {
            match self.clone().background(false).start(old, volume.clone(), name)? {
                (db, None) => db.close()?,
                (_, Some(cause)) => return Err(cause),
            }
            // The store discards what it has learned before the recovery.
            old = open()?;
            old.store.use_closed_state();
        }
        old.remove_log(volume.clone(), name)?;
        let old = old.into_reader(self, None);
        let options = self.or_options_of(&old.stats());
        let creation = Creation::beside(&options, volume.clone(), name, &*lock)?;
        let new = creation.open(&options)?;
        let entries = copy(&old, &new, progress)?;
        // The new database is closed before its file gets the name: its log has the temporary name.
        new.close()?;
        let report = CompactReport { bytes_before: disk.size()?, bytes_after: creation.file_bytes()?, entries };
        old.close()?;
        creation.replace(&*lock)?;
        Ok(report)
    }

    /// Returns these options. Options that are not set are taken from the statistics of a database.
    fn or_options_of(&self, stats: &DatabaseStats) -> Builder {
        let store = self.store.or(stats.store);
        let delta = self.delta.or(stats.delta);
        Builder { store, delta, page_size: self.page_size.or(Some(stats.page_size)), ..self.clone() }
    }
}

/// Copies all tables, in the order of their names, and returns the number of their entries.
fn copy(old: &Database, new: &Database, progress: &mut dyn FnMut(Progress)) -> Result<u64> {
    let from = old.begin_read()?;
    let tables = from.tables()?;
    let of = tables.iter().map(|table| table.entries).sum();
    let mut so_far = Progress { phase: Phase::Rebuilding, done: 0, of };
    let mut tx = new.begin_write()?;
    for table in tables {
        let table = from.open_untyped(&table.name)?;
        copy_table(&table, &tx, &mut so_far, progress).map_err(|error| error.in_table(table.name()))?;
        progress(so_far);
        if tx.adopted.lock().len() >= PAGES_A_COMMIT {
            tx.commit()?;
            tx = new.begin_write()?;
        }
    }
    tx.commit()?;
    Ok(so_far.done)
}

fn copy_table(
    table: &ReadOnlyUntypedTable,
    tx: &WriteTransaction,
    so_far: &mut Progress,
    progress: &mut dyn FnMut(Progress),
) -> Result<()> {
    let mut bulk = tx.bulk_load_copy(table.name(), &table.entry)?;
    let (engine, tree, snapshot) = table.source();
    let mut cursor = Cursor::new(engine, *tree, ReadView::Snapshot(snapshot), Bound::Unbounded, Bound::Unbounded);
    let (mut entries, mut large_bytes) = (0, 0);
    while let Some((key, record)) = cursor.next()? {
        if record.large {
            let mut value = large::RunReader::open(engine, record.bytes)?;
            large_bytes += value.len();
            bulk.push_stream(key, value.len(), &mut value)?;
        } else {
            bulk.push(key, record.bytes)?;
        }
        entries += 1;
        if entries % STEP_ENTRIES == 0 || large_bytes >= STEP_BYTES {
            large_bytes = 0;
            progress(Progress { done: so_far.done + entries, ..*so_far });
        }
    }
    let known = table.len();
    if entries != known {
        let why = format!("it has {known} entries for the table, but {entries} were found");
        return Err(Error::CorruptMeta { what: "the catalog", why });
    }
    so_far.done += bulk.finish()?;
    Ok(())
}

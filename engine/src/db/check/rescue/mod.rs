//! Opens a database whose superblocks, page table, log, catalog or inner pages are damaged.
//!
//! The result is an overlay in memory over the file. The file itself never changes. [`super::salvage`] handles single
//! damaged pages.
//!
//! * `survey`: reads all pages that can be read.
//! * `rebuild`: builds a new catalog and new inner pages that lead to these pages.

mod rebuild;
mod survey;

use crate::base::{Damage, Error, Lsn, Result};
use crate::db::Database;
use crate::db::open::options::Builder;
use crate::db::open::{Opened, check_log_belongs, log_config, next_epoch};
use crate::io::{LockGuard, OpenMode, OverlayVolume, Volume};
use crate::log::{self, LogConfig, LogPosition};
use crate::store::{self, Meta, PageSource, RescuedStore, SuperblockChoice};
use crate::txn::{Redo, RedoResult};
use std::path::Path;
use std::sync::Arc;

impl Builder {
    /// Opens a damaged database for reading, without changing it. It works even if superblocks, page table, log,
    /// catalog or inner pages are damaged and [`Builder::open`] fails. It then reads the whole file to find its pages.
    ///
    /// Also returns the damage; an empty list for an undamaged database.
    /// [`ReadOnlyUntypedTable::salvage`](crate::db::ReadOnlyUntypedTable::salvage) reports the keys that are lost.
    ///
    /// Commits after damage in the log are lost. A table that is not in the catalog gets its name in an older copy of
    /// the catalog, or `table-N`, with keys and values of type `bytes`. If both a page and the structure that points to
    /// it are damaged, an older copy of the page may be used. If both the page table and the catalog are damaged,
    /// dropped tables may come back. [`Builder::page_size`] is used only if the page size is not in the file.
    ///
    /// ```
    /// # use duramen::{Database, TableDef};
    /// # const TREES: TableDef<&str, u64> = TableDef::new("trees");
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("forest.duramen");
    /// # let db = Database::create(&path)?;
    /// # let tx = db.begin_write()?;
    /// # tx.open_table(TREES)?.put("oak", 700)?;
    /// # tx.commit()?;
    /// # db.close()?;
    /// # let mut bytes = std::fs::read(&path)?;
    /// # bytes[..8192].fill(0); // both superblocks
    /// # std::fs::write(&path, bytes)?;
    /// assert!(Database::open(&path).is_err());
    /// let (db, damage) = Database::builder().open_damaged(&path)?;
    /// println!("{}", damage[0]);
    /// assert_eq!(db.begin_read()?.open_table(TREES)?.get("oak")?.unwrap().value(), 700);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Locked`], [`Error::FormatVersion`], [`Error::UnknownStore`], and
    /// [`Error::NotADatabase`] if there is no page in the file.
    pub fn open_damaged(&self, path: impl AsRef<Path>) -> Result<(Database, Vec<Damage>)> {
        let (volume, name) = crate::db::open::existing(path.as_ref())?;
        self.open_damaged_on(volume, &name)
    }

    /// [`Builder::open_damaged`] on any volume.
    ///
    /// ```
    /// use duramen::{Database, io::MemoryVolume};
    /// use std::sync::Arc;
    ///
    /// let volume = Arc::new(MemoryVolume::new());
    /// Database::builder().create_on(volume.clone(), "forest")?.close()?;
    /// let (db, damage) = Database::builder().open_damaged_on(volume, "forest")?;
    /// assert!(db.begin_read()?.tables()?.is_empty() && damage.is_empty());
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Builder::open_damaged`].
    pub fn open_damaged_on(&self, volume: Arc<dyn Volume>, name: &str) -> Result<(Database, Vec<Damage>)> {
        let lock: Arc<dyn LockGuard> = volume.lock(name, false)?.guard.into();
        let recovered = self.recovered(&volume, name)?;
        let overlay = recovered.unwrap_or_else(|| Arc::new(OverlayVolume::new(volume)));
        let mut rescue = self.rescued_store(&*overlay, name, PageSource::Structures)?;
        let mut opened = Opened::of(self, overlay.path(name), lock, (rescue.store, rescue.meta))?;
        let found = match rescue.superblock {
            SuperblockChoice::None => skip_log(&*overlay, name, &mut rescue.damage).map(Some)?,
            _ => replay_remaining(&opened, &overlay, name, &mut rescue.damage)?,
        };
        if found.is_none() && rescue.superblock == SuperblockChoice::Only {
            // The superblock is old, so its page table is old too, and its log was removed.
            let overlay: Arc<dyn Volume> = Arc::new(OverlayVolume::new(overlay));
            rescue = RescuedStore { damage: rescue.damage, ..self.rescued_store(&*overlay, name, PageSource::Images)? };
            let Opened { path, lock, .. } = opened;
            opened = Opened::of(self, path, lock, (rescue.store, rescue.meta))?;
        }
        let redone = found.unwrap_or_default();
        opened.meta.last = rescue.last.max(redone.end);
        let _ = opened.note_maps(&redone);
        opened.meta.high_water = rescue.ids_end.max(redone.high);
        opened.pool.flush_before(Lsn::MAX)?;
        let (store, mut damage) = (opened.store.clone(), rescue.damage);
        damage.extend(opened.damaged_maps()?.into_iter().map(|(page, cause)| Damage::Map { page, cause }));
        let db = opened.into_reader(self, None);
        if rescue.guessed {
            damage.push(Damage::OlderPages);
        }
        rebuild::rebuild(&db.shared().engine, &*store, rescue.guessed, &mut damage)?;
        Ok((db, damage))
    }

    /// If the database was not closed and is not damaged: a volume on which it is recovered, over its unchanged files.
    fn recovered(&self, volume: &Arc<dyn Volume>, name: &str) -> Result<Option<Arc<dyn Volume>>> {
        match self.open_read_only_on(volume.clone(), name) {
            Err(Error::NeedsRecovery { .. }) => {}
            _ => return Ok(None),
        }
        let overlay: Arc<dyn Volume> = Arc::new(OverlayVolume::new(volume.clone()));
        let recovered = self.clone().background(false).open_on(overlay.clone(), name).and_then(Database::close);
        Ok(recovered.is_ok().then_some(overlay))
    }

    fn rescued_store(&self, overlay: &dyn Volume, name: &str, source: PageSource) -> Result<RescuedStore> {
        let disk = overlay.open(name, OpenMode::Write)?;
        store::open_damaged(disk, &overlay.path(name), self.checked_page_size(false)?, source)
    }
}

/// Without a superblock it is unknown which log belongs to this database and where it begins.
fn skip_log(volume: &dyn Volume, name: &str, damage: &mut Vec<Damage>) -> Result<RedoResult> {
    if !volume.list(&format!("{name}-log."))?.is_empty() {
        damage.push(Damage::LogUnread);
    }
    Ok(RedoResult::default())
}

/// Applies the log up to its first damage. `None` if there should be a log and nothing of it can be read.
fn replay_remaining(
    opened: &Opened,
    volume: &Arc<dyn Volume>,
    name: &str,
    damage: &mut Vec<Damage>,
) -> Result<Option<RedoResult>> {
    match replay(opened, &log_config(volume.clone(), name, opened.meta.database_id)) {
        Ok((redone, broken)) => {
            damage.extend(broken.map(|cause| Damage::Log { cause }));
            if redone.unfinished.is_some() {
                damage.push(Damage::LogTorn);
            }
            Ok(Some(redone))
        }
        // Files that an earlier process has left are not part of the log.
        Err(Error::MissingLog { .. }) if opened.meta.clean => Ok(Some(RedoResult::default())),
        Err(
            cause @ (Error::MissingLog { .. }
            | Error::CorruptLog { .. }
            | Error::Corrupt { .. }
            | Error::CorruptMeta { .. }
            | Error::Io { .. }),
        ) => {
            damage.push(Damage::Log { cause });
            Ok(None)
        }
        Err(other) => Err(other),
    }
}

/// Applies the log up to its end or to its first damage, which is returned as an error.
fn replay(opened: &Opened, config: &LogConfig) -> Result<(RedoResult, Option<Error>)> {
    let Opened { meta, pool, store, .. } = opened;
    let Meta { clean, redo, epoch, store_lsn, last, high_water, .. } = *meta;
    let from = if clean { next_epoch(meta) } else { LogPosition { lsn: redo, epoch } };
    let read = || log::read_damaged(config.clone(), from, last)?.ok_or_else(|| config.missing());
    let high_water = high_water.max(store.ids_end());
    if clean {
        check_log_belongs(config, store.file(), meta, &mut read()?)?;
    }
    let mut ahead = read()?;
    let freed = Redo::first_pass(&**store, store_lsn, high_water, &mut ahead)?;
    store.note_log_end(ahead.end_state().lsn)?;
    let mut reader = read()?;
    let redone =
        Redo::new(pool, &**store, store_lsn, high_water).of_damaged().without(freed).run(&mut reader, &mut |_| ())?;
    Ok((redone, reader.take_damage()))
}

//! LMDB as a contestant. It has no cache of its own: it reads from the map of its file, which the system caches. LMDB
//! recommends its option `MDB_NORDAHEAD` for a database that is larger than memory and read at random, but here the
//! system's memory is large enough. It recommends `MDB_WRITEMAP` only where there is a reason for it. Commits that are
//! not synced have `MDB_NOSYNC`; with [`Durability::Interval`] the file is synced whenever 100 ms have passed since the
//! last sync.

use super::Sometimes;
use duramen_bench::Result;
use duramen_bench::contest::{Config, Contestant, DiskKind, Durability, Reader, Writer};
use heed::types::Bytes;
use heed::{CompactionOption, Database, Env, EnvFlags, EnvOpenOptions, RoTxn, RwTxn, WithTls};
use std::path::{Path, PathBuf};

/// The longest file. Address space costs nothing.
const MAP: usize = 1 << 38;
/// The file, as LMDB names it.
const FILE: &str = "data.mdb";

type Table = Database<Bytes, Bytes>;

/// An LMDB environment of one database.
pub(crate) struct Lmdb {
    /// None while it is closed.
    open: Option<(Env, Table)>,
    durability: Durability,
    folder: PathBuf,
    synced: Sometimes,
}

impl Lmdb {
    fn env(&self) -> Result<&(Env, Table)> {
        self.open.as_ref().ok_or_else(|| "the database is closed".into())
    }
}

#[expect(unsafe_code, reason = "LMDB maps its file, which nothing else may change")]
fn open_env(folder: &Path, durability: Durability) -> Result<Env> {
    let mut options = EnvOpenOptions::new();
    options.map_size(MAP);
    // SAFETY: the folder belongs to this run alone.
    unsafe {
        if durability != Durability::Commit {
            options.flags(EnvFlags::NO_SYNC);
        }
        Ok(options.open(folder)?)
    }
}

impl Contestant for Lmdb {
    const NAME: &'static str = "lmdb";

    fn create(config: &Config, folder: &Path) -> Result<Lmdb> {
        if config.disk == DiskKind::Memory {
            return Err("LMDB cannot be in memory only".into());
        }
        let mut lmdb =
            Lmdb { open: None, durability: config.durability, folder: folder.to_owned(), synced: Sometimes::default() };
        lmdb.open(config)?;
        Ok(lmdb)
    }

    fn close(&mut self) -> Result<()> {
        if let Some((env, _)) = self.open.take() {
            env.force_sync()?;
            env.prepare_for_closing().wait();
        }
        Ok(())
    }

    fn open(&mut self, config: &Config) -> Result<()> {
        self.durability = config.durability;
        let env = open_env(&self.folder, config.durability)?;
        let mut tx = env.write_txn()?;
        let table = env.create_database(&mut tx, None)?;
        tx.commit()?;
        self.open = Some((env, table));
        Ok(())
    }

    fn commit(&self, changes: &mut dyn FnMut(&mut dyn Writer) -> Result<()>) -> Result<()> {
        let (env, table) = self.env()?;
        let mut writer = Open { tx: env.write_txn()?, table };
        changes(&mut writer)?;
        writer.tx.commit()?;
        if self.durability == Durability::Interval && self.synced.is_due()? {
            env.force_sync()?;
        }
        Ok(())
    }

    fn compact(&mut self) -> Result<()> {
        let copy = self.folder.join("compact.mdb");
        drop(self.env()?.0.copy_to_path(&copy, CompactionOption::Enabled)?);
        self.close()?;
        std::fs::rename(copy, self.folder.join(FILE))?;
        let env = open_env(&self.folder, self.durability)?;
        let tx = env.read_txn()?;
        let table = env.open_database(&tx, None)?.ok_or("the compacted file has no database")?;
        tx.commit()?;
        self.open = Some((env, table));
        Ok(())
    }

    type Reader<'a> = Snapshot<'a>;

    fn reader(&self) -> Result<Snapshot<'_>> {
        let (env, table) = self.env()?;
        Ok(Snapshot { tx: env.read_txn()?, table })
    }
}

/// A writing transaction.
struct Open<'e> {
    tx: RwTxn<'e>,
    table: &'e Table,
}

impl Writer for Open<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        Ok(self.table.put(&mut self.tx, key, value)?)
    }

    fn remove(&mut self, key: &[u8]) -> Result<()> {
        self.table.delete(&mut self.tx, key)?;
        Ok(())
    }
}

/// A reading transaction.
pub(crate) struct Snapshot<'e> {
    tx: RoTxn<'e, WithTls>,
    table: &'e Table,
}

impl Reader for Snapshot<'_> {
    #[inline]
    fn get<R>(&mut self, key: &[u8], check: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        Ok(self.table.get(&self.tx, key)?.map(check))
    }

    #[inline]
    fn scan(&mut self, from: &[u8], mut visit: impl FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        // LMDB has no empty keys.
        let from = if from.is_empty() { &[0] } else { from };
        for entry in self.table.range(&self.tx, &(std::ops::Bound::Included(from), std::ops::Bound::Unbounded))? {
            let (key, value) = entry?;
            if !visit(key, value) {
                break;
            }
        }
        Ok(())
    }
}

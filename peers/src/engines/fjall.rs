//! fjall as a contestant, with its defaults and the cache of the run. Commits that are not synced are handed to the
//! system ([`PersistMode::Buffer`]); with [`Durability::Interval`] the journal is synced whenever 100 ms have passed
//! since the last sync. Its memtables, of 64 MiB, are beside the cache.

use super::Sometimes;
use duramen_bench::Result;
use duramen_bench::contest::{Config, Contestant, DiskKind, Durability, Reader, Writer};
use fjall::{Database, Keyspace, KeyspaceCreateOptions, OwnedWriteBatch, PersistMode, Readable, Snapshot};
use std::path::{Path, PathBuf};

/// A fjall database of one keyspace.
pub(crate) struct Fjall {
    /// None while it is closed.
    open: Option<(Database, Keyspace)>,
    durability: Durability,
    folder: PathBuf,
    synced: Sometimes,
}

impl Fjall {
    fn parts(&self) -> Result<&(Database, Keyspace)> {
        self.open.as_ref().ok_or_else(|| "the database is closed".into())
    }
}

impl Contestant for Fjall {
    const NAME: &'static str = "fjall";

    fn create(config: &Config, folder: &Path) -> Result<Fjall> {
        if config.disk == DiskKind::Memory {
            return Err("fjall cannot be in memory only".into());
        }
        let synced = Sometimes::default();
        let mut fjall = Fjall { open: None, durability: config.durability, folder: folder.join("fjall"), synced };
        fjall.open(config)?;
        Ok(fjall)
    }

    fn close(&mut self) -> Result<()> {
        if let Some((db, _)) = self.open.take() {
            db.persist(PersistMode::SyncAll)?;
        }
        Ok(())
    }

    fn open(&mut self, config: &Config) -> Result<()> {
        self.durability = config.durability;
        let db = Database::builder(&self.folder).cache_size(config.cache as u64).open()?;
        let keyspace = db.keyspace("records", KeyspaceCreateOptions::default)?;
        self.open = Some((db, keyspace));
        Ok(())
    }

    fn commit(&self, changes: &mut dyn FnMut(&mut dyn Writer) -> Result<()>) -> Result<()> {
        let (db, keyspace) = self.parts()?;
        let synced = match self.durability {
            Durability::Commit => true,
            Durability::Interval => self.synced.is_due()?,
            Durability::None => false,
        };
        let mode = if synced { PersistMode::SyncData } else { PersistMode::Buffer };
        let mut batch = Batch { batch: db.batch().durability(Some(mode)), keyspace };
        changes(&mut batch)?;
        Ok(batch.batch.commit()?)
    }

    fn compact(&mut self) -> Result<()> {
        let (_, keyspace) = self.parts()?;
        keyspace.rotate_memtable_and_wait()?;
        Ok(keyspace.major_compact()?)
    }

    type Reader<'a> = View<'a>;

    fn reader(&self) -> Result<View<'_>> {
        let (db, keyspace) = self.parts()?;
        Ok(View { snapshot: db.snapshot(), keyspace })
    }
}

/// A writing batch.
struct Batch<'a> {
    batch: OwnedWriteBatch,
    keyspace: &'a Keyspace,
}

impl Writer for Batch<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.batch.insert(self.keyspace, key, value);
        Ok(())
    }

    fn remove(&mut self, key: &[u8]) -> Result<()> {
        self.batch.remove(self.keyspace, key);
        Ok(())
    }
}

/// The keyspace as of one moment.
pub(crate) struct View<'a> {
    snapshot: Snapshot,
    keyspace: &'a Keyspace,
}

impl Reader for View<'_> {
    #[inline]
    fn get<R>(&mut self, key: &[u8], check: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        Ok(self.snapshot.get(self.keyspace, key)?.map(|value| check(&value)))
    }

    #[inline]
    fn scan(&mut self, from: &[u8], mut visit: impl FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        for entry in self.snapshot.range(self.keyspace, from..) {
            let (key, value) = entry.into_inner()?;
            if !visit(&key, &value) {
                break;
            }
        }
        Ok(())
    }
}

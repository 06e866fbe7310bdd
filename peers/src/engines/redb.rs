//! redb as a contestant. redb has no commits that are synced at intervals. Therefore a commit is
//! `Durability::Immediate` if 100 ms have passed since the last such commit; all others are `Durability::None`. The
//! page size is the default of redb.

use super::Sometimes;
use duramen_bench::Result;
use duramen_bench::contest::{Config, Contestant, DiskKind, Durability, Reader, Writer};
use redb::backends::InMemoryBackend;
use redb::{Database, ReadOnlyTable, ReadableDatabase, Table, TableDefinition};
use std::path::{Path, PathBuf};

type Bytes = &'static [u8];
type Word = &'static [u8; 8];

const BYTES: TableDefinition<'static, Bytes, Bytes> = TableDefinition::new("basic");
/// Values of 8 bytes need no lengths.
const WORDS: TableDefinition<'static, Bytes, Word> = TableDefinition::new("basic");

/// A redb database of one table.
pub(crate) struct Redb {
    /// None while it is closed.
    db: Option<Database>,
    config: Config,
    path: PathBuf,
    synced: Sometimes,
}

impl Redb {
    fn db(&self) -> Result<&Database> {
        self.db.as_ref().ok_or_else(|| "the database is closed".into())
    }

    fn write(
        &self,
        durability: redb::Durability,
        changes: &mut dyn FnMut(&mut dyn Writer) -> Result<()>,
    ) -> Result<()> {
        let mut tx = self.db()?.begin_write()?;
        tx.set_durability(durability)?;
        match self.config.value_width {
            8 => changes(&mut Open(tx.open_table(WORDS)?))?,
            _ => changes(&mut Open(tx.open_table(BYTES)?))?,
        }
        Ok(tx.commit()?)
    }
}

impl Contestant for Redb {
    const NAME: &'static str = "redb";

    fn create(config: &Config, folder: &Path) -> Result<Redb> {
        let path = folder.join("basic.redb");
        let mut builder = Database::builder();
        builder.set_cache_size(config.cache);
        let db = match config.disk {
            DiskKind::Memory => builder.create_with_backend(InMemoryBackend::new())?,
            DiskKind::File => builder.create(&path)?,
        };
        let redb = Redb { db: Some(db), config: *config, path, synced: Sometimes::default() };
        redb.write(redb::Durability::Immediate, &mut |_| Ok(()))?;
        Ok(redb)
    }

    fn close(&mut self) -> Result<()> {
        if self.config.disk == DiskKind::File {
            // Without it, the commits since the last synced one would be lost.
            self.write(redb::Durability::Immediate, &mut |_| Ok(()))?;
            if let Some(db) = self.db.take() {
                db.close()?;
            }
        }
        Ok(())
    }

    fn open(&mut self, config: &Config) -> Result<()> {
        self.config = *config;
        if self.config.disk == DiskKind::File {
            self.db = Some(Database::builder().set_cache_size(self.config.cache).open(&self.path)?);
        }
        Ok(())
    }

    fn commit(&self, changes: &mut dyn FnMut(&mut dyn Writer) -> Result<()>) -> Result<()> {
        let synced = match self.config.durability {
            Durability::Commit => true,
            Durability::Interval => self.synced.is_due()?,
            Durability::None => false,
        };
        let durability = if synced { redb::Durability::Immediate } else { redb::Durability::None };
        self.write(durability, changes)
    }

    fn compact(&mut self) -> Result<()> {
        self.write(redb::Durability::Immediate, &mut |_| Ok(()))?;
        if let Some(db) = &mut self.db {
            db.compact()?;
        }
        Ok(())
    }

    type Reader<'a> = Snapshot;

    fn reader(&self) -> Result<Snapshot> {
        let tx = self.db()?.begin_read()?;
        Ok(match self.config.value_width {
            8 => Snapshot::Words(tx.open_table(WORDS)?),
            _ => Snapshot::Bytes(tx.open_table(BYTES)?),
        })
    }
}

/// A type of values, as bytes.
trait Kept: redb::Value + 'static {
    fn keep(bytes: &[u8]) -> Result<Self::SelfType<'_>>;
    fn see<R>(kept: Self::SelfType<'_>, see: impl FnOnce(&[u8]) -> R) -> R;
}

impl Kept for Bytes {
    fn keep(bytes: &[u8]) -> Result<&[u8]> {
        Ok(bytes)
    }

    #[inline]
    fn see<R>(kept: &[u8], see: impl FnOnce(&[u8]) -> R) -> R {
        see(kept)
    }
}

impl Kept for Word {
    fn keep(bytes: &[u8]) -> Result<&[u8; 8]> {
        Ok(bytes.try_into()?)
    }

    #[inline]
    fn see<R>(kept: &[u8; 8], see: impl FnOnce(&[u8]) -> R) -> R {
        see(kept)
    }
}

/// The table in a writing transaction.
struct Open<'t, V: Kept>(Table<'t, Bytes, V>);

impl<V: Kept> Writer for Open<'_, V> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.0.insert(key, V::keep(value)?)?;
        Ok(())
    }

    fn remove(&mut self, key: &[u8]) -> Result<()> {
        self.0.remove(key)?;
        Ok(())
    }
}

/// The table as of one moment.
pub(crate) enum Snapshot {
    /// With values of any length.
    Bytes(ReadOnlyTable<Bytes, Bytes>),
    /// With values of 8 bytes.
    Words(ReadOnlyTable<Bytes, Word>),
}

#[inline]
fn get<V: Kept, R>(table: &ReadOnlyTable<Bytes, V>, key: &[u8], check: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
    Ok(table.get(key)?.map(|value| V::see(value.value(), check)))
}

#[inline]
fn scan<V: Kept>(
    table: &ReadOnlyTable<Bytes, V>,
    from: &[u8],
    mut visit: impl FnMut(&[u8], &[u8]) -> bool,
) -> Result<()> {
    for entry in table.range(from..)? {
        let (key, value) = entry?;
        if !V::see(value.value(), |value| visit(key.value(), value)) {
            break;
        }
    }
    Ok(())
}

impl Reader for Snapshot {
    #[inline]
    fn get<R>(&mut self, key: &[u8], check: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        match self {
            Snapshot::Bytes(table) => get(table, key, check),
            Snapshot::Words(table) => get(table, key, check),
        }
    }

    #[inline]
    fn scan(&mut self, from: &[u8], visit: impl FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        match self {
            Snapshot::Bytes(table) => scan(table, from, visit),
            Snapshot::Words(table) => scan(table, from, visit),
        }
    }
}

//! Duramen as a contestant.

use super::contestant::{Config, Contestant, DiskKind, Durability, Reader, Writer};
use crate::Result;
use duramen::db::types::TableOptions;
use duramen::db::{ReadOnlyUntypedTable, UntypedTable};
use duramen::{Builder, Database};
use std::path::{Path, PathBuf};

const TABLE: &str = "basic";

/// A Duramen database of one table.
pub struct Duramen {
    /// None while it is closed.
    db: Option<Database>,
    disk: DiskKind,
    path: PathBuf,
}

fn builder(config: &Config) -> Builder {
    let builder =
        Database::builder().cache(config.cache).direct_io(config.direct_io).durability(match config.durability {
            Durability::Commit => duramen::Durability::Commit,
            Durability::Interval => duramen::Durability::Interval,
            Durability::None => duramen::Durability::None,
        });
    match config.page_size {
        Some(page_size) => builder.page_size(page_size),
        None => builder,
    }
}

impl Duramen {
    fn db(&self) -> Result<&Database> {
        self.db.as_ref().ok_or_else(|| "the database is closed".into())
    }
}

impl Contestant for Duramen {
    const NAME: &'static str = "duramen";

    fn create(config: &Config, folder: &Path) -> Result<Duramen> {
        let builder = builder(config);
        let path = folder.join("basic.duramen");
        let db = match config.disk {
            DiskKind::Memory => builder.in_memory()?,
            DiskKind::File => builder.create(&path)?,
        };
        let key_type = if config.key_width == Some(8) { "u64".to_owned() } else { "bytes".to_owned() };
        let tx = db.begin_write()?;
        let options = TableOptions { compression: config.compression, ..TableOptions::default() };
        drop(tx.create_untyped(TABLE, &key_type, &format!("[u8;{}]", config.value_width), options)?);
        tx.commit()?;
        Ok(Duramen { db: Some(db), disk: config.disk, path })
    }

    fn close(&mut self) -> Result<()> {
        if self.disk == DiskKind::File {
            self.db.take().map_or(Ok(()), Database::close)?;
        }
        Ok(())
    }

    fn open(&mut self, config: &Config) -> Result<()> {
        if self.disk == DiskKind::File {
            self.db = Some(builder(config).open(&self.path)?);
        }
        Ok(())
    }

    fn commit(&self, changes: &mut dyn FnMut(&mut dyn Writer) -> Result<()>) -> Result<()> {
        let tx = self.db()?.begin_write()?;
        changes(&mut tx.open_untyped(TABLE)?)?;
        Ok(tx.commit()?)
    }

    fn compact(&mut self) -> Result<()> {
        self.db()?.compact(|_| ())?;
        Ok(())
    }

    type Reader<'a> = ReadOnlyUntypedTable;

    fn reader(&self) -> Result<ReadOnlyUntypedTable> {
        Ok(self.db()?.begin_read()?.open_untyped(TABLE)?)
    }
}

impl Writer for UntypedTable<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        Ok(UntypedTable::put(self, key, value)?)
    }

    fn remove(&mut self, key: &[u8]) -> Result<()> {
        Ok(self.delete(key)?)
    }
}

impl Reader for ReadOnlyUntypedTable {
    #[inline]
    fn get<R>(&mut self, key: &[u8], check: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        Ok(self.get_with(key, check)?)
    }

    #[inline]
    fn scan(&mut self, from: &[u8], mut visit: impl FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        let mut entries = self.range(from..);
        while entries.next_with(&mut visit)?.unwrap_or(false) {}
        Ok(())
    }
}

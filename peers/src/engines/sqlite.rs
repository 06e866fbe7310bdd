//! SQLite as a contestant: a write-ahead log, and a table whose integer primary key is the key, which SQLite finds
//! fastest. Keys of another length are the primary key of a table `WITHOUT ROWID`. `synchronous` is `FULL` if each
//! commit is synced, else `NORMAL`, which syncs at checkpoints only; with [`Durability::Interval`], too.

use duramen_bench::Result;
use duramen_bench::contest::{Config, Contestant, DiskKind, Durability, Reader, Writer};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OptionalExtension, Row, ToSql, params};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// An SQLite database of one table.
pub(crate) struct Sqlite {
    /// None while it is closed.
    writer: Option<Mutex<Connection>>,
    /// Connections of earlier readers. Each has a cache of its own, which the next reader finds filled.
    readers: Mutex<Vec<Connection>>,
    config: Config,
    path: PathBuf,
}

impl Sqlite {
    fn connect(&self) -> Result<Connection> {
        let connection = Connection::open(&self.path)?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        let synchronous = if self.config.durability == Durability::Commit { "full" } else { "normal" };
        connection.pragma_update(None, "synchronous", synchronous)?;
        connection.pragma_update(None, "cache_size", -(i64::try_from(self.config.cache)? / 1024))?;
        connection.busy_timeout(std::time::Duration::from_secs(60))?;
        Ok(connection)
    }

    fn writer(&self) -> Result<&Mutex<Connection>> {
        self.writer.as_ref().ok_or_else(|| "the database is closed".into())
    }

    fn has_integers(&self) -> bool {
        self.config.key_width == Some(8)
    }

    fn key<'a>(&self, key: &'a [u8]) -> Result<Key<'a>> {
        match self.has_integers() {
            // SQLite's integers have a sign.
            true => Ok(Key::Integer((u64::from_be_bytes(key.try_into()?) ^ (1 << 63)) as i64)),
            false => Ok(Key::Bytes(key)),
        }
    }
}

/// A key as SQLite has it.
enum Key<'a> {
    Integer(i64),
    Bytes(&'a [u8]),
}

impl ToSql for Key<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Key::Integer(key) => ValueRef::Integer(*key),
            Key::Bytes(key) => ValueRef::Blob(key),
        }))
    }
}

impl Contestant for Sqlite {
    const NAME: &'static str = "sqlite";

    fn create(config: &Config, folder: &Path) -> Result<Sqlite> {
        if config.disk == DiskKind::Memory {
            return Err("SQLite is measured in files only".into());
        }
        let mut sqlite =
            Sqlite { writer: None, readers: Mutex::default(), config: *config, path: folder.join("records.sqlite") };
        let connection = sqlite.connect()?;
        let (key, rest) = if sqlite.has_integers() { ("INTEGER", "") } else { ("BLOB", "WITHOUT ROWID") };
        connection
            .execute_batch(&format!("CREATE TABLE records (key {key} PRIMARY KEY, value BLOB NOT NULL) {rest}"))?;
        sqlite.writer = Some(Mutex::new(connection));
        Ok(sqlite)
    }

    fn close(&mut self) -> Result<()> {
        self.readers.lock().map_err(|_| "a thread panicked")?.clear();
        if let Some(writer) = self.writer.take() {
            writer.into_inner().map_err(|_| "a thread panicked")?.close().map_err(|(_, cause)| cause)?;
        }
        Ok(())
    }

    fn open(&mut self, config: &Config) -> Result<()> {
        self.config = *config;
        self.writer = Some(Mutex::new(self.connect()?));
        Ok(())
    }

    fn commit(&self, changes: &mut dyn FnMut(&mut dyn Writer) -> Result<()>) -> Result<()> {
        let connection = self.writer()?.lock().map_err(|_| "a thread panicked")?;
        connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        changes(&mut Open { connection: &connection, sqlite: self })?;
        connection.prepare_cached("COMMIT")?.execute([])?;
        Ok(())
    }

    fn compact(&mut self) -> Result<()> {
        let connection = self.writer()?.lock().map_err(|_| "a thread panicked")?;
        Ok(connection.execute_batch("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)")?)
    }

    type Reader<'a> = View<'a>;

    fn reader(&self) -> Result<View<'_>> {
        let idle = self.readers.lock().map_err(|_| "a thread panicked")?.pop();
        let connection = match idle {
            Some(connection) => connection,
            None => self.connect()?,
        };
        connection.execute_batch("BEGIN")?;
        Ok(View { connection: Some(connection), sqlite: self })
    }
}

/// A writing transaction.
struct Open<'a> {
    connection: &'a Connection,
    sqlite: &'a Sqlite,
}

impl Writer for Open<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let mut put = self.connection.prepare_cached("INSERT OR REPLACE INTO records VALUES (?, ?)")?;
        put.execute(params![self.sqlite.key(key)?, value])?;
        Ok(())
    }

    fn remove(&mut self, key: &[u8]) -> Result<()> {
        self.connection.prepare_cached("DELETE FROM records WHERE key = ?")?.execute([self.sqlite.key(key)?])?;
        Ok(())
    }
}

/// A connection with a reading transaction.
pub(crate) struct View<'a> {
    /// None once it is dropped.
    connection: Option<Connection>,
    sqlite: &'a Sqlite,
}

impl View<'_> {
    fn connection(&self) -> Result<&Connection> {
        self.connection.as_ref().ok_or_else(|| "the reader has ended".into())
    }
}

impl Drop for View<'_> {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        if let (Ok(()), Ok(mut readers)) = (connection.execute_batch("COMMIT"), self.sqlite.readers.lock()) {
            readers.push(connection);
        }
    }
}

impl Reader for View<'_> {
    #[inline]
    fn get<R>(&mut self, key: &[u8], check: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        let mut get = self.connection()?.prepare_cached("SELECT value FROM records WHERE key = ?")?;
        let value = |row: &Row<'_>| Ok(check(row.get_ref(0)?.as_blob()?));
        Ok(get.query_row([self.sqlite.key(key)?], value).optional()?)
    }

    #[inline]
    fn scan(&mut self, from: &[u8], mut visit: impl FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        let from = match from.is_empty() && self.sqlite.has_integers() {
            true => Key::Integer(i64::MIN),
            false => self.sqlite.key(from)?,
        };
        let mut range =
            self.connection()?.prepare_cached("SELECT key, value FROM records WHERE key >= ? ORDER BY key")?;
        let mut rows = range.query([from])?;
        while let Some(row) = rows.next()? {
            let value = row.get_ref(1)?.as_blob()?;
            let goes_on = match row.get_ref(0)? {
                ValueRef::Integer(key) => visit(&(key as u64 ^ (1 << 63)).to_be_bytes(), value),
                key => visit(key.as_blob()?, value),
            };
            if !goes_on {
                break;
            }
        }
        Ok(())
    }
}

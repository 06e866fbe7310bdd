//! `restore`: a new database from a dump.

use super::open;
use super::write::{self, NewTable};
use crate::args::{self, Restore};
use crate::dump::{Reader, folder, sync_folder};
use crate::failure::{Failure, Found, Result};
use crate::progress::{Meter, Unit};
use crate::{input, report};
use duramen::db::DEFAULT_FILL;
use duramen::{Codec, Error, TableOptions, UnknownCodec};
use serde::Serialize;
use std::ffi::OsString;
use std::fs;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::time::Instant;
use tempfile::TempDir;

/// What was done.
#[derive(Serialize)]
struct Summary {
    disk_bytes: u64,
    seconds: f64,
    tables: Vec<Table>,
}

#[derive(Serialize)]
struct Table {
    name: String,
    entries: u64,
}

/// A database that is being made, in a folder of its own beside where it will be: a restore that is killed leaves nothing
/// that could be taken for the whole.
struct Unfinished {
    /// Removed when dropped.
    folder: TempDir,
    name: OsString,
    path: PathBuf,
}

impl Unfinished {
    /// For a database at `path`, where there must be none yet.
    fn beside(path: &Path) -> Result<Unfinished> {
        if path.symlink_metadata().is_ok() {
            return Err(Error::Exists { path: path.to_owned() }.into());
        }
        let refused = |source| Failure::File { action: "cannot create", path: path.to_owned(), source };
        let name = path.file_name().ok_or_else(|| refused(io::ErrorKind::InvalidInput.into()))?.to_owned();
        let folder = tempfile::Builder::new().prefix(".duramen-restore-").tempdir_in(folder(path)).map_err(refused)?;
        Ok(Unfinished { folder, name, path: path.to_owned() })
    }

    fn database(&self) -> PathBuf {
        self.folder.path().join(&self.name)
    }

    /// Gives the whole database its place, unless something has come there meanwhile.
    fn finish(self) -> Result<()> {
        let place = || {
            match fs::hard_link(self.database(), &self.path) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => fs::rename(self.database(), &self.path)?,
                linked => linked?,
            }
            sync_folder(folder(&self.path))
        };
        place().map_err(|source| Failure::File { action: "cannot create", path: self.path.clone(), source })
    }
}

/// Makes the database; if the dump turns out to be damaged, there will be none.
pub(super) fn run(args: &Restore) -> Result<Found> {
    let start = Instant::now();
    let (reader, _) = input::open(&args.file)?;
    let mut reader = Reader::new(BufReader::with_capacity(1 << 20, reader))?;
    let unfinished = Unfinished::beside(&args.database.db)?;
    let database = args::Database { db: unfinished.database(), cache: args.database.cache };
    let target = open::creating(&database, args.page_size)?;
    let mut tables = Vec::new();
    let mut meter = Meter::begin("restoring", Unit::Count("entries"), None, args.progress.quiet);
    while let Some(head) = reader.table()? {
        let options = TableOptions {
            keys: Some(head.keys.parse()?),
            codec: head.codec.as_deref().map(codec).transpose()?,
            separators: Some(head.separators.parse()?),
            auto_increment: head.auto_increment,
            key_width: head.key_width,
            value_width: head.value_width,
        };
        let new = NewTable {
            name: &head.table,
            key_type: &head.key_type,
            value_type: &head.value_type,
            options,
            next_key: head.next_key,
            fill: DEFAULT_FILL,
        };
        let entries = std::iter::from_fn(|| reader.entry().transpose());
        let entries = write::bulk(&target.db, &new, entries, &mut meter)?;
        tables.push(Table { name: head.table, entries });
    }
    drop(meter);
    target.close()?;
    unfinished.finish()?;
    let disk_bytes = open::disk_bytes(&args.database)?;
    report::print(&Summary { disk_bytes, seconds: start.elapsed().as_secs_f64(), tables }, args.report.format)?;
    Ok(Found::There)
}

/// The codec of that name.
fn codec(name: &str) -> Result<Codec> {
    name.parse().map_err(|unknown: UnknownCodec| Failure::input("the dump", unknown))
}

//! Opens databases and tables with the options of the command line, and closes them.

use super::plan;
use crate::args::{self, NewFile};
use crate::failure::{Failure, Result};
use crate::progress;
use crate::size::length;
use crate::typed::TextForm;
use duramen::Codec;
use duramen::db::types::DynType;
use duramen::db::{Damage, DatabaseStats, NewDatabase, ReadOnlyUntypedTable, StoreKind};
use duramen::{Builder, Database, Error, TableInfo, TableOptions};
use std::fmt::Display;
use std::io;
use std::path::Path;

/// Opens a database to read it. Recovers it first if it was not closed properly.
pub(super) fn reading(args: &args::Database) -> Result<Database> {
    match builder(args).open_read_only(&args.db) {
        Err(needs @ Error::NeedsRecovery { .. }) => match builder(args).open(&args.db) {
            // If this user may not write, return the error that says that the database needs recovery.
            Err(Error::Io { source, .. }) if may_not_write(&source) => Err(needs.into()),
            opened => Ok(opened?),
        },
        opened => Ok(opened?),
    }
}

/// Opens a damaged database to read what is left, without changing it. Returns the damage.
pub(super) fn damaged(args: &args::Database) -> Result<(Database, Vec<Damage>)> {
    Ok(builder(args).open_damaged(&args.db)?)
}

/// True if the system refuses to write, and false if the device failed.
fn may_not_write(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

/// Opens an existing database to write.
pub(super) fn writing(args: &args::Database, options: args::WriteOptions) -> Result<Database> {
    Ok(writer(args, options).open(&args.db)?)
}

/// Begins to create a database. The file must not exist, or must be empty.
pub(super) fn creating(args: &args::Database, options: args::WriteOptions, new: args::NewFile) -> Result<NewDatabase> {
    Ok(file_builder(args, options, new).begin_create(&args.db)?)
}

/// The options of a file that is made.
pub(super) fn file_builder(args: &args::Database, options: args::WriteOptions, new: args::NewFile) -> Builder {
    let mut builder = writer(args, options);
    if let Some(size) = new.page_size {
        builder = builder.page_size(length(size));
    }
    if let Some(store) = new.store {
        builder = builder.store(store);
    }
    if let Some(delta) = new.delta {
        builder = builder.delta(delta);
    }
    builder
}

fn builder(args: &args::Database) -> Builder {
    let builder = Database::builder().direct_io(args.direct_io).on_recovery(progress::of_recovery(args.quiet));
    match args.cache {
        Some(size) => builder.cache(length(size)),
        None => builder,
    }
}

/// With the log, the bounds of the work of a recovery, and the threads.
fn writer(args: &args::Database, options: args::WriteOptions) -> Builder {
    let mut builder = builder(args);
    if let Some(shape) = options.shape {
        builder = builder.log_shape(shape.into());
    }
    if let Some(bytes) = options.checkpoint_bytes {
        builder = builder.checkpoint_bytes(bytes.0);
    }
    if let Some(pages) = options.checkpoint_pages {
        builder = builder.checkpoint_pages(pages);
    }
    if let Some(threads) = options.threads.compression {
        builder = builder.compression_threads(threads.into());
    }
    builder
}

/// Closes the database and returns errors that dropping it would only log.
pub(super) fn close(db: Database) -> Result<()> {
    Ok(db.close()?)
}

/// An existing database, or a new one that gets its name when the command succeeds.
enum Destination {
    Existing(Database),
    New(NewDatabase),
}

/// A database to write entries to, and the table, if it already exists.
pub(super) struct WriteTarget {
    destination: Destination,
    pub(super) table: Option<TableInfo>,
}

impl WriteTarget {
    /// Opens the database, or creates it, and compares the options with an existing table.
    pub(super) fn open(
        args: &args::Database,
        options: args::WriteOptions,
        name: &str,
        new: &args::NewTable,
    ) -> Result<WriteTarget> {
        let create = || WriteTarget::create(args, options, new.new_file);
        let db = match writing(args, options) {
            Err(Failure::Engine(Error::NotFound { .. })) => {
                return create().map_err(created_meanwhile);
            }
            // An empty file is treated like a missing one. For any other file the first error is returned.
            Err(cause @ Failure::Engine(Error::NotADatabase { .. })) => {
                return create().map_err(|error| match error {
                    Failure::Engine(Error::Exists { .. }) => cause,
                    other => other,
                });
            }
            opened => opened?,
        };
        let DatabaseStats { page_size, store, delta, .. } = db.stats();
        let refused = |option: &str, found: &dyn Display, given: &dyn Display, convert: &str| {
            let db = args.db.display();
            Err(Failure::Usage(format!(
                "{db} has {option} {found}, not {given}: leave out {option}, or convert the database with \
                 `duramen compact {db} {convert}{option} {given}`"
            )))
        };
        let NewFile { page_size: given_size, store: given_store, delta: given_delta } = new.new_file;
        if let Some(given) = given_store.filter(|given| Some(*given) != store) {
            return refused("--store", &store.map_or("-", StoreKind::name), &given.name(), "");
        }
        if let (Some(given), Some(found)) = (given_delta.filter(|given| Some(*given) != delta), delta) {
            // `compact` accepts `--delta` only together with `--store`.
            return refused("--delta", &found, &given, "--store shadow ");
        }
        if let Some(given) = given_size.filter(|given| length(*given) != page_size) {
            return refused("--page-size", &page_size, &given.0, "");
        }
        let table = db.begin_read()?.tables()?.into_iter().find(|table| table.name == name);
        if let Some(table) = &table {
            agree(table, new)?;
        }
        Ok(WriteTarget { destination: Destination::Existing(db), table })
    }

    fn create(args: &args::Database, options: args::WriteOptions, new: args::NewFile) -> Result<WriteTarget> {
        Ok(WriteTarget { destination: Destination::New(creating(args, options, new)?), table: None })
    }

    /// The database.
    pub(super) fn db(&self) -> &Database {
        match &self.destination {
            Destination::Existing(db) => db,
            Destination::New(new) => new.database(),
        }
    }

    /// True if this command creates the database.
    pub(super) fn is_fresh(&self) -> bool {
        matches!(self.destination, Destination::New(_))
    }

    /// Closes the database. A new database gets its name.
    pub(super) fn close(self) -> Result<()> {
        match self.destination {
            Destination::Existing(db) => close(db),
            Destination::New(new) => new.finish().map_err(|error| created_meanwhile(error.into())),
        }
    }

    /// An error for an entry without a value, if the table exists and has values. An empty value would replace the
    /// value that is there.
    pub(super) fn require_value(&self) -> Result<(), &'static str> {
        match &self.table {
            Some(table) if table.value_type != "()" => Err("there is no value, and the table has values"),
            _ => Ok(()),
        }
    }

    /// The text forms of keys and values. Their types are those of the table, or of the options, or bytes.
    pub(super) fn text_forms(&self, new: &args::NewTable, hex: bool) -> Result<(TextForm, TextForm)> {
        if let Some(table) = &self.table {
            return Ok(text_forms(table, hex));
        }
        let form = |given: &Option<DynType>| -> Result<TextForm> {
            Ok(TextForm::new(given.clone().map_or_else(|| "bytes".parse(), Ok)?, hex))
        };
        Ok((form(&new.key_type)?, form(&new.value_type)?))
    }
}

/// The error for a database that another process has created after this command began.
fn created_meanwhile(failure: Failure) -> Failure {
    match failure {
        Failure::Engine(Error::Exists { path }) => {
            let path = path.display();
            Failure::Usage(format!("{path} was created by another process meanwhile: run the command again"))
        }
        other => other,
    }
}

/// The failure of a command for which the device of `path` has no space.
pub(super) fn no_space(path: &Path, why: &str) -> Failure {
    Failure::Usage(format!("no space left on the device of {}: {why}", path.display()))
}

/// The failure of a command that makes a database, if there is none yet. On a full device the error of the engine names
/// a file that the user does not know, and that is removed.
pub(super) fn in_creation(args: &args::Database, failure: Failure) -> Failure {
    let is_made = std::fs::metadata(&args.db).is_ok_and(|found| !found.is_file() || found.len() > 0);
    match failure {
        Failure::Engine(Error::Full { .. }) if !is_made => {
            no_space(&args.db, "no database was made; free some space and run the command again")
        }
        other => other,
    }
}

/// Advice for an option that an existing table does not have.
const LEAVE_OUT: &str = "leave out the option, or use another table";

/// Fails if the options in `new` differ from the table.
fn agree(table: &TableInfo, new: &args::NewTable) -> Result<()> {
    let types = [("keys", &new.key_type, &table.key_type), ("values", &new.value_type, &table.value_type)];
    for (part, given, found) in types {
        if let Some(given) = given.as_ref().map(ToString::to_string).filter(|given| given != found) {
            let (table, found) = (table.name.clone(), found.clone());
            return Err(Error::TableType { table, part, found, asked: given }.into());
        }
    }
    let layouts = [
        ("--keys", new.keys.map(|given| given.to_string()), table.keys),
        ("--codec", new.codec.map(|given| given.to_string()), table.codec.map_or("none", Codec::name)),
        ("--overflow", new.overflow.map(|given| given.to_string()), &table.overflow.to_string()),
        ("--target", new.target.map(|given| given.to_string()), &table.target.to_string()),
        ("--compress", new.compress.map(|given| given.to_string()), &table.compression.to_string()),
        ("--separators", new.separators.map(|given| given.to_string()), &table.separators),
    ];
    for (option, given, found) in layouts {
        if let Some(given) = given.filter(|given| given != found) {
            let why = format!("it was created with {option} {found}, not {given}: {LEAVE_OUT}");
            return Err(Error::TableState { table: table.name.clone(), why }.into());
        }
    }
    if new.dictionary && !table.dictionary {
        let why = "it was created without --dictionary: leave out the option, or give it to compact".to_owned();
        return Err(Error::TableState { table: table.name.clone(), why }.into());
    }
    if new.auto_increment && table.next_key.is_none() {
        let why = format!("it was created without --auto-increment: {LEAVE_OUT}");
        return Err(Error::TableState { table: table.name.clone(), why }.into());
    }
    Ok(())
}

/// The options of a new table.
pub(super) fn options(new: &args::NewTable) -> Result<TableOptions> {
    let compression = match new.compress {
        None if new.dictionary => plan::dictionary_compression()?,
        given => given.unwrap_or_default(),
    };
    Ok(TableOptions {
        keys: new.keys,
        codec: new.codec,
        separators: new.separators,
        compression,
        target: new.target.unwrap_or_default(),
        overflow: new.overflow.unwrap_or_default(),
        dictionary: new.dictionary,
        auto_increment: new.auto_increment,
        ..TableOptions::default()
    })
}

/// The text forms of the keys and the values of a table.
pub(super) fn text_forms(table: &TableInfo, hex: bool) -> (TextForm, TextForm) {
    let form = |name, width| TextForm::new(DynType::named(name, width), hex);
    (form(&table.key_type, table.key_width), form(&table.value_type, table.value_width))
}

/// Opens a table to read it.
pub(super) fn table(db: &Database, name: &str, hex: bool) -> Result<(ReadOnlyUntypedTable, TextForm, TextForm)> {
    let table = db.begin_read()?.open_untyped(name)?;
    let (keys, values) = text_forms(&table.info(), hex);
    Ok((table, keys, values))
}

/// Bytes of the database on the device. For a block device only the database itself knows them.
pub(super) fn disk_bytes(args: &args::Database) -> Result<u64> {
    let metadata = std::fs::metadata(&args.db).map_err(|source| match source.kind() {
        std::io::ErrorKind::NotFound => Error::NotFound { path: args.db.clone() }.into(),
        _ => Failure::File { action: "cannot read the size of", path: args.db.clone(), source },
    })?;
    #[cfg(unix)]
    if std::os::unix::fs::FileTypeExt::is_block_device(&metadata.file_type()) {
        return Ok(reading(args)?.stats().allocated_bytes);
    }
    #[cfg(unix)]
    let bytes = std::os::unix::fs::MetadataExt::blocks(&metadata) * 512;
    #[cfg(not(unix))]
    let bytes = metadata.len();
    Ok(bytes)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_a_full_device_during_creation_has_the_given_path() {
        let folder = tempfile::tempdir().unwrap();
        let db = folder.path().join("t.duramen");
        let args = args::Database { db: db.clone(), cache: None, direct_io: false, quiet: false };
        let message = || {
            let path = folder.path().join("t.duramen.0123.new-log.000001");
            in_creation(&args, Error::Full { path }.into()).to_string()
        };
        let says = "t.duramen: no database was made; free some space and run the command again";
        assert!(message().ends_with(says), "{}", message());
        std::fs::write(&db, "").unwrap();
        assert!(message().ends_with(says), "{}", message());
        // Then the database exists, and its committed entries can be read.
        std::fs::write(&db, "a database").unwrap();
        assert!(!message().contains("no database was made"), "{}", message());
    }

    #[test]
    fn only_refusals_to_write_count_as_missing_permission() {
        let error = |number| io::Error::from_raw_os_error(number);
        // EACCES, EPERM, EROFS; EIO, EISDIR, ENOENT.
        assert!([13, 1, 30].into_iter().all(|number| may_not_write(&error(number))));
        assert!(![5, 21, 2].into_iter().any(|number| may_not_write(&error(number))));
    }
}

//! `restore`: makes a new database from a dump.

use super::open;
use super::write::{self, TableSpec};
use crate::args::{Restore, WriteOptions};
use crate::dump::{Head, Reader};
use crate::failure::{Completion, Failure, Result};
use crate::progress::{Meter, Unit};
use crate::{input, report};
use duramen::base::limits::DEFAULT_PAGE_SIZE;
use duramen::db::{Compression, DEFAULT_FILL, Target};
use duramen::{Codec, Error, TableOptions, UnknownCodec};
use serde::Serialize;
use std::io::BufReader;
use std::str::FromStr;
use std::time::Instant;

/// The report.
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

/// Creates the database. If the dump is damaged, no database is created.
pub(super) fn run(args: &Restore) -> Result<Completion> {
    let start = Instant::now();
    let (reader, _) = input::open(&args.source.file)?;
    let mut reader = Reader::new(BufReader::with_capacity(1 << 20, reader))?;
    let options = WriteOptions { threads: args.threads, ..WriteOptions::default() };
    let new = open::creating(&args.database, options, args.new_file)?;
    let mut tables = Vec::new();
    let mut meter = Meter::begin("restoring", Unit::Count("entries"), None, args.database.quiet);
    while let Some(head) = reader.table()? {
        let page_size = args.new_file.page_size.map_or(DEFAULT_PAGE_SIZE, crate::size::length);
        let (compression, target) = if args.new_file.store.unwrap_or_default().compresses(page_size) {
            (parsed(head.compression.as_deref())?, target(&head, page_size)?)
        } else {
            (Compression::None, Target::Fit)
        };
        let options = TableOptions {
            keys: Some(head.keys.parse()?),
            codec: head.codec.as_deref().map(codec).transpose()?,
            separators: Some(head.separators.parse()?),
            compression,
            target,
            overflow: parsed(head.overflow.as_deref())?,
            // Another store may not compress pages.
            dictionary: head.dictionary && compression != Compression::None,
            auto_increment: head.auto_increment,
            key_width: head.key_width,
            value_width: head.value_width,
        };
        let table = TableSpec {
            name: &head.table,
            key_type: &head.key_type,
            value_type: &head.value_type,
            options,
            is_copy: true,
            next_key: head.next_key,
            fill: DEFAULT_FILL,
        };
        let entries = std::iter::from_fn(|| reader.entry().transpose());
        let entries = write::bulk(new.database(), &table, entries, &mut meter)?;
        tables.push(Table { name: head.table, entries });
    }
    drop(meter);
    new.finish()?;
    let disk_bytes = open::disk_bytes(&args.database)?;
    report::print(&Summary { disk_bytes, seconds: start.elapsed().as_secs_f64(), tables }, args.report.format)?;
    Ok(Completion::Done)
}

/// The value of this text, or the default.
fn parsed<T: FromStr<Err = Error> + Default>(text: Option<&str>) -> Result<T> {
    Ok(text.map(str::parse).transpose()?.unwrap_or_default())
}

/// The target in the dump, unless it is too long for the pages of the new database.
fn target(head: &Head, page_size: usize) -> Result<Target> {
    let fits = |target: &Target| !matches!(target, Target::Bytes(bytes) if *bytes as usize >= page_size);
    Ok(Some(parsed(head.target.as_deref())?).filter(fits).unwrap_or_default())
}

/// The codec with this name.
fn codec(name: &str) -> Result<Codec> {
    name.parse().map_err(|unknown: UnknownCodec| Failure::input("the dump", unknown))
}

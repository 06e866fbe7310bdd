//! `dump`: all tables, or one, into a file that `restore` reads.

use super::open;
use crate::args::Dump;
use crate::dump::{Head, Writer};
use crate::failure::{Failure, Found, Result};
use crate::progress::{Meter, Unit};
use duramen::{Error, TableInfo};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// How often the meter is told, in entries.
const STEP: u64 = 1024;

/// Writes the tables as they are at one moment.
pub(super) fn run(args: &Dump) -> Result<Found> {
    let db = open::reading(&args.database)?;
    let tx = db.begin_read()?;
    let mut tables = tx.tables()?;
    if let Some(name) = &args.table {
        tables.retain(|table| table.name == *name);
        if tables.is_empty() {
            return Err(Error::NoTable { table: name.clone() }.into());
        }
    }
    let total = tables.iter().map(|table| table.entries).sum();
    let mut meter = Meter::begin("dumping", Unit::Count("entries"), Some(total), args.progress.quiet);
    let out = BufWriter::with_capacity(1 << 20, create(&args.file)?);
    let mut writer = Writer::new(out)?;
    let mut count = 0;
    for table in tables {
        let name = table.name.clone();
        writer.begin(&head(table))?;
        let table = tx.open_untyped(&name)?;
        let mut entries = table.range(..);
        while let Some(written) = entries.next_with(|key, value| writer.entry(key, value))? {
            written?;
            count += 1;
            if count % STEP == 0 {
                meter.show(count, || name.escape_debug().to_string());
            }
        }
        writer.end()?;
    }
    let out = writer.finish()?.into_inner().map_err(|error| Failure::output(error.into_error()))?;
    out.sync()?;
    Ok(Found::There)
}

fn head(table: TableInfo) -> Head {
    let TableInfo { name, key_type, value_type, keys, separators, .. } = table;
    Head { table: name, key_type, value_type, keys: keys.to_owned(), separators: separators.to_owned() }
}

/// Where a dump goes.
enum Out {
    Stdout(io::StdoutLock<'static>),
    File(File),
}

fn create(path: &Path) -> Result<Out> {
    if path == Path::new("-") {
        return Ok(Out::Stdout(io::stdout().lock()));
    }
    let refused = |source| Failure::File { action: "cannot create", path: path.to_owned(), source };
    File::create(path).map(Out::File).map_err(refused)
}

impl Out {
    /// Puts what was written on the device, where there is one.
    fn sync(&self) -> Result<()> {
        match self {
            Out::File(file) if file.metadata().is_ok_and(|metadata| metadata.is_file()) => {
                file.sync_all().map_err(Failure::Output)
            }
            _ => Ok(()),
        }
    }
}

impl Write for Out {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        match self {
            Out::Stdout(out) => out.write(buf),
            Out::File(file) => file.write(buf),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Out::Stdout(out) => out.flush(),
            Out::File(file) => file.flush(),
        }
    }
}

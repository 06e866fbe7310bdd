//! `dump`: all tables, or one, into a file that `restore` reads.

use super::open;
use crate::args::Dump;
use crate::dump::{Head, Writer};
use crate::failure::{Failure, Found, Result};
use crate::progress::{Meter, Unit};
use duramen::{Error, TableInfo};
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

/// How a database file begins.
const DATABASE_MAGIC: &[u8; 8] = b"DURAMEN\x1a";
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
    out.finish()?;
    Ok(Found::There)
}

fn head(table: TableInfo) -> Head {
    let TableInfo { name, key_type, value_type, keys, codec, auto_increment, separators, .. } = table;
    Head {
        table: name,
        key_type,
        value_type,
        keys: keys.to_owned(),
        codec: codec.map(|codec| codec.to_string()),
        auto_increment,
        separators: separators.to_owned(),
    }
}

/// Where a dump goes. A regular file is written under another name and gets its own when it is whole, so that a dump that
/// fails costs nobody the one before.
enum Out {
    Stdout(io::StdoutLock<'static>),
    /// What is no regular file: a pipe, a device.
    Device(File),
    File {
        file: File,
        unfinished: Unfinished,
    },
}

/// A file under another name; removed when dropped before it has got its own.
struct Unfinished {
    path: PathBuf,
    target: Option<PathBuf>,
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if self.target.is_some() {
            // The failure that led here is the one to tell.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn create(path: &Path) -> Result<Out> {
    if path == Path::new("-") {
        return Ok(Out::Stdout(io::stdout().lock()));
    }
    let refused = |source| Failure::File { action: "cannot create", path: path.to_owned(), source };
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => return Err(refused(io::ErrorKind::IsADirectory.into())),
        Ok(found) if !found.is_file() => return File::create(path).map(Out::Device).map_err(refused),
        Ok(_) if is_database(path) => {
            return Err(Failure::Usage(format!("{} is a database: dump into another file", path.display())));
        }
        _ => {}
    }
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".new");
    let unfinished = Unfinished { path: unfinished.into(), target: Some(path.to_owned()) };
    let file = File::create(&unfinished.path).map_err(refused)?;
    Ok(Out::File { file, unfinished })
}

fn is_database(path: &Path) -> bool {
    let mut magic = [0; DATABASE_MAGIC.len()];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && magic == *DATABASE_MAGIC
}

impl Out {
    /// Puts what was written on the device, where there is one, under its own name.
    fn finish(self) -> Result<()> {
        if let Out::File { file, mut unfinished } = self
            && let Some(target) = unfinished.target.clone()
        {
            file.sync_all().and_then(|()| std::fs::rename(&unfinished.path, &target)).map_err(Failure::Output)?;
            unfinished.target = None;
        }
        Ok(())
    }
}

impl Write for Out {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        match self {
            Out::Stdout(out) => out.write(buf),
            Out::Device(file) | Out::File { file, .. } => file.write(buf),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Out::Stdout(out) => out.flush(),
            Out::Device(file) | Out::File { file, .. } => file.flush(),
        }
    }
}

//! `dump`: writes all tables, or one, to a file that `restore` reads.

use super::losses::Losses;
use super::open;
use crate::args::Dump;
use crate::dump::{Head, Target, Writer};
use crate::failure::{Completion, Failure, Result};
use crate::progress::{Meter, Unit};
use duramen::db::types::DynType;
use duramen::db::{Compression, ReadOnlyUntypedTable, ReadTransaction, Salvaged};
use duramen::{Error, TableInfo};
use std::io::BufWriter;

/// A dump being written.
struct Dumping {
    writer: Writer<BufWriter<Target>>,
    meter: Meter,
    /// The number of entries so far.
    count: u64,
    losses: Losses,
}

/// Writes the tables of one snapshot.
pub(super) fn run(args: &Dump) -> Result<Completion> {
    let (db, damage) =
        if args.skip_damaged { open::damaged(&args.database)? } else { (open::reading(&args.database)?, Vec::new()) };
    let tx = db.begin_read()?;
    let tables = tables(args, &tx)?;
    let total = tables.iter().map(|table| table.entries).sum();
    let target = Target::create(&args.file, &args.database.db, args.skip_damaged)?;
    let meter = Meter::begin("dumping", Unit::Count("entries"), Some(total), args.database.quiet);
    let writer = Writer::new(BufWriter::with_capacity(1 << 20, target))?;
    let mut dumping = Dumping { writer, meter, count: 0, losses: Losses::default() };
    for what in &damage {
        let line = dumping.losses.damage(what);
        dumping.meter.print(&line);
    }
    for info in tables {
        let table = tx.open_untyped(&info.name)?;
        dumping.writer.begin(&head(info))?;
        if args.skip_damaged {
            dumping.salvage(&table)?
        } else {
            dumping.table(&table).map_err(|failure| failure.in_table(table.name()))?
        }
        dumping.writer.end()?;
    }
    let Dumping { writer, meter, count, losses } = dumping;
    let target = writer.finish()?.into_inner().map_err(|error| Failure::Output(error.into_error()))?;
    target.finish()?;
    losses.end(|line| meter.print(line), count, Some(total), "dumped")
}

/// The tables to dump.
fn tables(args: &Dump, tx: &ReadTransaction) -> Result<Vec<TableInfo>> {
    let mut tables = tx.tables()?;
    if let Some(name) = &args.table {
        tables.retain(|table| table.name == *name);
        if tables.is_empty() {
            return Err(Error::NoTable { table: name.clone() }.into());
        }
    }
    Ok(tables)
}

impl Dumping {
    fn table(&mut self, table: &ReadOnlyUntypedTable) -> Result<()> {
        let mut entries = table.range(..);
        while let Some(written) = entries.next_with(|key, value| self.writer.entry(key, value))? {
            written?;
            self.step(table.name());
        }
        Ok(())
    }

    /// Like [`Dumping::table`], for a damaged table.
    fn salvage(&mut self, table: &ReadOnlyUntypedTable) -> Result<()> {
        let info = table.info();
        let mut entries = table.salvage(..);
        while let Some(found) = entries.next_with(|key, value| self.writer.entry(key, value))? {
            match found {
                Salvaged::Entry(written) => {
                    written?;
                    self.step(table.name());
                }
                Salvaged::Lost(lost) => {
                    if let Some(line) = self.losses.range(&info, &lost) {
                        self.meter.print(&line);
                    }
                }
            }
        }
        Ok(())
    }

    fn step(&mut self, table: &str) {
        self.count += 1;
        if Meter::is_due(self.count) {
            self.meter.show(self.count, || table.escape_debug().to_string());
        }
    }
}

fn head(table: TableInfo) -> Head {
    let TableInfo {
        name,
        key_type,
        value_type,
        key_width,
        value_width,
        keys,
        codec,
        compression,
        target,
        overflow,
        dictionary,
        next_key,
        separators,
        ..
    } = table;
    let unless_known =
        |name: &str, width: Option<usize>| width.filter(|_| width != DynType::named(name, None).fixed_width());
    Head {
        table: name,
        key_width: unless_known(&key_type, key_width),
        value_width: unless_known(&value_type, value_width),
        key_type,
        value_type,
        keys: keys.to_owned(),
        codec: codec.map(|codec| codec.to_string()),
        compression: (compression != Compression::None).then(|| compression.to_string()),
        target: (target != Default::default()).then(|| target.to_string()),
        overflow: (overflow != Default::default()).then(|| overflow.to_string()),
        dictionary,
        auto_increment: next_key.is_some(),
        next_key,
        separators,
    }
}

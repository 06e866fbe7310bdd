//! A table of every kind: each layout, codec and length of separators, and every sort of keys and values.

use super::layouts;
use duramen::db::types::{KeyLayout, Separators, TableOptions};
use duramen::{Database, Result, TableInfo};
use std::collections::BTreeMap;

pub(crate) type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

/// A table, and what is in it.
pub(crate) struct FilledTable {
    pub(crate) name: String,
    key_type: &'static str,
    value_type: &'static str,
    options: TableOptions,
    pub(crate) entries: Entries,
    /// The next key, if the table assigns keys.
    pub(crate) next_key: Option<u64>,
}

/// All tables with their descriptions and entries, as they are read.
pub(crate) fn contents(db: &Database) -> Result<Vec<(TableInfo, Entries)>> {
    let tx = db.begin_read()?;
    let mut all = Vec::new();
    for info in tx.tables()? {
        let entries = tx.open_untyped(&info.name)?.range(..).collect::<Result<Entries>>()?;
        all.push((info, entries));
    }
    Ok(all)
}

/// A table of each kind, each with about so many entries.
pub(crate) fn kinds(count: usize, rng: &mut fastrand::Rng) -> Vec<FilledTable> {
    let with = |keys| TableOptions { keys: Some(keys), ..TableOptions::default() };
    let of = |len| move |rng: &mut fastrand::Rng| vec_of(len, rng);
    let mut kinds = Vec::new();
    let numbered = [KeyLayout::PkbPart(3), KeyLayout::PkbHeapPart(2)];
    for layout in layouts::for_keys_of_any_length().into_iter().chain(numbered) {
        kinds.push(
            FilledTable::new(layout.to_string(), "bytes", "bytes", with(layout)).filled(count, rng, any_key, any_value),
        );
    }
    let integers = [("u32", 4, "()", 0), ("i64", 8, "()", 0), ("u64", 8, "u32", 4), ("i32", 4, "u32", 4)];
    for (at, options) in layouts::of_blocks().into_iter().enumerate() {
        let (key_type, key_len, value_type, value_len) = integers[at % integers.len()];
        let table = FilledTable::new(format!("blocks {at}"), key_type, value_type, options);
        kinds.push(table.filled(count, rng, of(key_len), of(value_len)));
    }
    for separators in [Separators::Full, Separators::Tail, Separators::TailWithin(100)] {
        let options = TableOptions { separators: Some(separators), ..TableOptions::default() };
        let text = |rng: &mut fastrand::Rng| format!("{:05}", rng.u32(0..90_000)).into_bytes();
        kinds.push(
            FilledTable::new(format!("separators {separators}"), "str", "str", options).filled(count, rng, text, text),
        );
    }
    for (width, value_type) in [(1, "[u8;1]"), (60, "[u8;60]"), (64, "[u8;64]"), (65, "[u8;65]"), (5000, "[u8;5000]")] {
        let table = FilledTable::new(format!("values of {width}"), "(u32,u64)", value_type, with(KeyLayout::Fixed));
        kinds.push(table.filled(count, rng, of(12), of(width)));
    }
    let widths = TableOptions { key_width: Some(5), value_width: Some(7), ..with(KeyLayout::Fixed) };
    kinds.push(FilledTable::new("of a program".into(), "own", "own", widths).filled(count, rng, of(5), of(7)));
    let own = FilledTable::new("of a program too".into(), "own", "own", TableOptions::default());
    kinds.push(own.filled(count, rng, any_key, any_value));
    kinds.push(FilledTable::new("empty".into(), "str", "u64", TableOptions::default()));
    kinds.push(assigned(count));
    kinds
}

impl FilledTable {
    fn new(name: String, key_type: &'static str, value_type: &'static str, options: TableOptions) -> FilledTable {
        FilledTable { name, key_type, value_type, options, entries: Entries::new(), next_key: None }
    }

    fn filled(
        mut self,
        count: usize,
        rng: &mut fastrand::Rng,
        key: impl Fn(&mut fastrand::Rng) -> Vec<u8>,
        value: impl Fn(&mut fastrand::Rng) -> Vec<u8>,
    ) -> FilledTable {
        self.entries = (0..count).map(|_| (key(rng), value(rng))).collect();
        self
    }

    /// Makes the table in a database, its entries in random order and some of them a second time.
    pub(crate) fn put(&self, db: &Database, rng: &mut fastrand::Rng) -> Result<()> {
        let tx = db.begin_write()?;
        let mut table = tx.create_untyped(&self.name, self.key_type, self.value_type, self.options)?;
        let mut entries: Vec<_> = self.entries.iter().collect();
        rng.shuffle(&mut entries);
        for (key, value) in &entries {
            table.put(key, value)?;
        }
        if let Some(next) = self.next_key {
            // A key that was assigned and removed is not assigned again.
            let gone = (next - 1).to_be_bytes();
            table.put(&gone, b"gone")?;
            table.delete(&gone)?;
        }
        drop(table);
        tx.commit()?;
        let tx = db.begin_write()?;
        let mut table = tx.open_untyped(&self.name)?;
        for (key, value) in entries.iter().take(entries.len() / 4) {
            table.put(key, value)?;
        }
        drop(table);
        tx.commit()
    }
}

/// A table that assigns keys, the last of which are gone.
fn assigned(count: usize) -> FilledTable {
    let options = TableOptions { auto_increment: true, ..TableOptions::default() };
    let entry = |n: u64| (n.to_be_bytes().to_vec(), format!("note {n}").into_bytes());
    let entries = (1..=count as u64).map(entry).collect();
    let next_key = Some(count as u64 + 10);
    FilledTable { entries, next_key, ..FilledTable::new("assigned".into(), "u64", "str", options) }
}

fn vec_of(len: usize, rng: &mut fastrand::Rng) -> Vec<u8> {
    std::iter::repeat_with(|| rng.u8(..)).take(len).collect()
}

/// Some begin alike, some are too long for a page.
fn any_key(rng: &mut fastrand::Rng) -> Vec<u8> {
    let common = ["", "oak/", "oak/of the/northern/wood/"][rng.usize(0..3)].as_bytes();
    let len = match rng.u8(0..20) {
        0 => rng.usize(900..6000),
        _ => rng.usize(0..40),
    };
    [common, &vec_of(len, rng)].concat()
}

/// Some are large, of one page and of many; a few of exactly the lengths where pages of one size keep them inside.
fn any_value(rng: &mut fastrand::Rng) -> Vec<u8> {
    let len = match rng.u8(0..20) {
        0 => rng.usize(600..2200),
        1 => rng.usize(3000..40_000),
        _ => rng.usize(0..30),
    };
    vec![rng.u8(..); len]
}

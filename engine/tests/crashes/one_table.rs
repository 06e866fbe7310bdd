//! A database with one table, in which no checkpoint comes by itself.

use duramen::{Builder, Database, Durability, Result, TableDef};

pub(crate) const NAME: &str = "t.duramen";
pub(crate) const TABLE: TableDef<u32, &[u8]> = TableDef::new("t");

pub(crate) fn options() -> Builder {
    Database::builder().page_size(4096).cache(0).checkpoint_bytes(1 << 40).background(false)
}

/// Gives all keys this value, in one durable commit.
pub(crate) fn put(db: &Database, keys: std::ops::Range<u32>, value: &[u8]) -> Result<()> {
    let mut tx = db.begin_write()?;
    tx.set_durability(Durability::Commit);
    let mut table = tx.open_table(TABLE)?;
    keys.into_iter().try_for_each(|key| table.put(key, value))?;
    drop(table);
    tx.commit()
}

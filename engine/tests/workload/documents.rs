//! Documents whose pages a dictionary of Zstandard makes much smaller.

use duramen::db::Compression;
use duramen::{Database, Result, TableDef};

pub(crate) const DOCUMENTS: TableDef<u64, &str> =
    TableDef::new("documents").compression(Compression::Zstd(3)).dictionary(true);

/// A document with words that others have, too, but few on the same page. `kind`: which words.
pub(crate) fn document(key: u64, kind: u64) -> String {
    let mut rng = fastrand::Rng::with_seed(key * 10 + kind);
    let word = |number: u64| {
        let mut rng = fastrand::Rng::with_seed(number * 10 + kind);
        (0..12).map(|_| rng.lowercase()).collect::<String>()
    };
    let fields: Vec<String> = (0..8).map(|_| format!("\"{}\": {}", word(rng.u64(..600)), rng.u8(..))).collect();
    format!("{{\"identifier\": {key}, {}}}", fields.join(", "))
}

pub(crate) fn put(db: &Database, table: TableDef<u64, &str>, keys: impl Iterator<Item = u64>, kind: u64) -> Result<()> {
    let tx = db.begin_write()?;
    let mut documents = tx.open_table(table)?;
    for key in keys {
        documents.put(key, document(key, kind).as_str())?;
    }
    drop(documents);
    tx.commit()
}

//! Documents whose pages a dictionary of Zstandard makes much smaller.

use duramen::db::Compression;
use duramen::{Database, Result, TableDef};

pub(crate) const DOCUMENTS: TableDef<u64, &str> =
    TableDef::new("documents").compression(Compression::Zstd(3)).dictionary(true);

/// Words of this kind and later ones are long and of all letters, digits and signs. A page of 8 KiB with documents of
/// such a kind takes two blocks of 4 KiB without a dictionary, and one with it.
const DENSE: u64 = 5;

/// A document with words that others have, too, but few on the same page. `kind`: which words, less than 10.
pub(crate) fn document(key: u64, kind: u64) -> String {
    let mut rng = fastrand::Rng::with_seed(key * 10 + kind);
    let word = |number: u64| {
        let mut rng = fastrand::Rng::with_seed(number * 10 + kind);
        match kind < DENSE {
            true => (0..12).map(|_| rng.lowercase()).collect::<String>(),
            false => (0..24).map(|_| char::from(rng.u8(b'#'..=b'~'))).collect(),
        }
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

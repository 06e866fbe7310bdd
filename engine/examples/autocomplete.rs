//! Completes what has been typed: the words with a prefix, the most used first.
//!
//!     cargo run -p duramen --example autocomplete -- ca

use duramen::{Database, Result, TableDef};
use std::cmp::Reverse;

const USES: TableDef<&str, u32> = TableDef::new("uses");

fn complete(db: &Database, typed: &str, most: usize) -> Result<Vec<String>> {
    let uses = db.begin_read()?.open_table(USES)?;
    let mut found = Vec::new();
    for entry in uses.prefix(typed) {
        let (word, count) = entry?;
        found.push((Reverse(count.value()), word.value().to_owned()));
    }
    found.sort();
    Ok(found.into_iter().take(most).map(|(_, word)| word).collect())
}

fn main() -> Result<()> {
    let db = Database::in_memory()?;
    let tx = db.begin_write()?;
    {
        let mut uses = tx.open_table(USES)?;
        for (word, count) in [("cat", 30), ("car", 50), ("cart", 7), ("cane", 2), ("dog", 40), ("candle", 11)] {
            uses.put(word, count)?;
        }
    }
    tx.commit()?;
    let typed = std::env::args().nth(1).unwrap_or_else(|| "ca".to_owned());
    println!("{typed}: {}", complete(&db, &typed, 3)?.join(", "));
    Ok(())
}

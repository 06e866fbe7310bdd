//! Counts the words of a file (or of its own source) and prints the ten most frequent.
//!
//!     cargo run -p duramen --example word_count -- FILE

use duramen::{Database, TableDef};
use std::cmp::Reverse;

const WORDS: TableDef<&str, u64> = TableDef::new("words");

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).unwrap_or_else(|| file!().to_owned());
    let text = std::fs::read_to_string(&path).unwrap_or_else(|_| include_str!("word_count.rs").to_owned());
    let db = Database::in_memory()?;
    let tx = db.begin_write()?;
    {
        let mut words = tx.open_table(WORDS)?;
        for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
            let entry = words.entry(word)?;
            let seen = entry.value().unwrap_or(0);
            entry.insert(seen + 1)?;
        }
    }
    tx.commit()?;

    let words = db.begin_read()?.open_table(WORDS)?;
    let mut counts = Vec::new();
    for entry in words.iter() {
        let (word, count) = entry?;
        counts.push((Reverse(count.value()), word.value().to_owned()));
    }
    counts.sort();
    println!("{} different words", words.len());
    for (Reverse(count), word) in counts.iter().take(10) {
        println!("{count:6} {word}");
    }
    Ok(())
}

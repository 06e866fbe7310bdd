//! Indexes the files below a folder and answers "what is under here, and how large is it" without touching the disk
//! again. Paths share long beginnings, so the index keeps of each only what it adds to the one before: see how little
//! that takes.
//!
//!     cargo run --release -p duramen --example path_index -- /usr /usr/share/doc

use duramen::db::types::KeyLayout;
use duramen::{Database, TableDef};
use std::fs;
use std::path::PathBuf;

const FILES: TableDef<&str, u64> = TableDef::new("files").keys(KeyLayout::WiredTiger);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let root = args.next().unwrap_or_else(|| "/etc".to_owned());
    let asked = args.next().unwrap_or_else(|| root.clone());
    let file = std::env::temp_dir().join(format!("duramen-paths-{}.duramen", std::process::id()));
    let db = Database::create(&file)?;

    let (mut raw, mut waiting) = (0, vec![PathBuf::from(root)]);
    let tx = db.begin_write()?;
    {
        let mut files = tx.open_table(FILES)?;
        while let Some(folder) = waiting.pop() {
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                let (Ok(meta), path) = (entry.metadata(), entry.path()) else { continue };
                if meta.is_dir() {
                    waiting.push(path);
                } else if let Some(path) = path.to_str() {
                    raw += path.len();
                    files.put(path, meta.len())?;
                }
            }
        }
    }
    tx.commit()?;

    let files = db.begin_read()?.open_table(FILES)?;
    let (mut count, mut bytes) = (0u64, 0u64);
    let under = format!("{}/", asked.trim_end_matches('/'));
    for entry in files.prefix(under.as_str()) {
        count += 1;
        bytes += entry?.1.value();
    }
    println!("{count} files with {bytes} bytes under {under}");
    db.compact(|_| ())?;
    let kept: u64 = db.table_stats(FILES.name())?.levels.iter().map(|level| level.key_list_bytes).sum();
    println!("{} paths of {raw} bytes in all, {kept} bytes in the index", files.len());
    drop((files, db));
    fs::remove_file(file)?;
    Ok(())
}

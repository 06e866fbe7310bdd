//! `sizes`: the bytes that the same entries take in Duramen, redb, RocksDB and SQLite after compaction. Builds the
//! programs of the folder `sizes` and runs them.

use duramen::db::{Compression, CompressionPlan, Strategy};
use duramen_bench::Result;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Loads the same entries into each store, compacts it, and prints the bytes that it takes
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// A file of lines `key TAB value`
    data: PathBuf,
    /// The folder in which databases are made
    #[arg(long, default_value = ".", value_name = "FOLDER")]
    dir: PathBuf,
}

/// Entries in a commit.
const COMMIT: usize = 10_000;
const DURAMEN: [Compression; 3] = [Compression::None, Compression::Lz4, Compression::Zstd(3)];

/// Measures all stores, and prints a table.
///
/// # Errors
/// Errors of the compiler or a store.
pub(crate) fn run(args: &Args) -> Result<()> {
    let text = std::fs::metadata(&args.data)?.len();
    println!("| store | bytes | of the text |\n|---|---|---|");
    let print = |store: &str, bytes: u64| println!("| {store} | {bytes} | {:.2} |", bytes as f64 / text as f64);
    print("text", text);
    for compression in DURAMEN {
        let folder = tempfile::tempdir_in(&args.dir)?;
        duramen(&args.data, folder.path(), compression)?;
        print(&format!("Duramen, {compression}"), allocated(folder.path())?);
    }
    let folder = tempfile::tempdir_in(&args.dir)?;
    redb(&args.data, folder.path())?;
    print("redb", allocated(folder.path())?);
    for compression in ["none", "zstd"] {
        let folder = tempfile::tempdir_in(&args.dir)?;
        let bytes = peer("rocksdb", "rocksdb", &args.data, folder.path(), &["db", compression])?;
        print(&format!("RocksDB, {compression}"), bytes);
    }
    let folder = tempfile::tempdir_in(&args.dir)?;
    print("SQLite", peer("sqlite", "sqlite3", &args.data, folder.path(), &["db"])?);
    Ok(())
}

/// Calls `put` with some entries at a time.
fn chunks(data: &Path, mut put: impl FnMut(&[(Vec<u8>, Vec<u8>)]) -> Result<()>) -> Result<()> {
    let mut entries = Vec::new();
    for line in BufReader::new(std::fs::File::open(data)?).split(b'\n') {
        let line = line?;
        let at = line.iter().position(|byte| *byte == b'\t');
        let (key, value) = line.split_at(at.unwrap_or(line.len()));
        entries.push((key.to_vec(), value.get(1..).unwrap_or_default().to_vec()));
        if entries.len() == COMMIT {
            put(&entries)?;
            entries.clear();
        }
    }
    put(&entries)
}

fn duramen(data: &Path, folder: &Path, compression: Compression) -> Result<()> {
    const TABLE: duramen::TableDef<&[u8], &[u8]> = duramen::TableDef::new("entries");
    let db = duramen::Database::create(folder.join("db"))?;
    chunks(data, |entries| {
        let tx = db.begin_write()?;
        {
            let mut table = tx.open_table(TABLE)?;
            entries.iter().try_for_each(|(key, value)| table.put(key.as_slice(), value.as_slice()))?;
        }
        Ok(tx.commit()?)
    })?;
    db.compact_with(&CompressionPlan::new(Strategy::All, compression), |_| ())?;
    Ok(db.close()?)
}

fn redb(data: &Path, folder: &Path) -> Result<()> {
    const TABLE: redb::TableDefinition<'static, &[u8], &[u8]> = redb::TableDefinition::new("entries");
    let mut db = redb::Database::create(folder.join("db"))?;
    chunks(data, |entries| {
        let tx = db.begin_write()?;
        {
            let mut table = tx.open_table(TABLE)?;
            for (key, value) in entries {
                table.insert(key.as_slice(), value.as_slice())?;
            }
        }
        Ok(tx.commit()?)
    })?;
    while db.compact()? {}
    Ok(db.close()?)
}

/// Builds the program of a store, runs it with the entries as its input, and returns the bytes of its files.
/// `arguments`: the first is a name in a folder that has nothing else.
fn peer(name: &str, library: &str, data: &Path, folder: &Path, arguments: &[&str]) -> Result<u64> {
    let (program, files) = (folder.join(name), folder.join("files"));
    std::fs::create_dir(&files)?;
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("sizes").join(format!("{name}.c"));
    let mut cc = Command::new("cc");
    cc.args(["-O2", "-o"]).arg(&program).arg(source).arg(format!("-l{library}"));
    if !cc.status()?.success() {
        return Err("cc failed (it needs librocksdb-dev and libsqlite3-dev)".into());
    }
    let input = Stdio::from(std::fs::File::open(data)?);
    let (first, rest) = arguments.split_first().ok_or("a program has a name of its files")?;
    let status = Command::new(program).arg(files.join(first)).args(rest).stdin(input).status()?;
    if status.success() { allocated(&files) } else { Err(format!("{name} failed: {status}").into()) }
}

/// Bytes that the files in a folder take on the device.
fn allocated(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let about = entry.metadata()?;
        bytes += if about.is_dir() { allocated(&entry.path())? } else { about.blocks() * 512 };
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duramen_and_redb_take_about_the_bytes_of_the_entries_and_compression_takes_fewer() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("lines");
        let line = |i: usize| format!("key {i:07}\tsome value, some value, some value {}\n", i * 7);
        std::fs::write(&data, (0..20_000).map(line).collect::<String>()).unwrap();
        let text = std::fs::metadata(&data).unwrap().len();
        let bytes = |load: &dyn Fn(&Path) -> Result<()>| {
            let folder = tempfile::tempdir().unwrap();
            load(folder.path()).unwrap();
            allocated(folder.path()).unwrap()
        };
        let plain = bytes(&|folder| duramen(&data, folder, Compression::None));
        let small = bytes(&|folder| duramen(&data, folder, Compression::Zstd(3)));
        let other = bytes(&|folder| redb(&data, folder));
        assert!(small < plain / 2 && plain < 2 * text && other > text / 2, "{small}, {plain}, {other} of {text}");
    }
}

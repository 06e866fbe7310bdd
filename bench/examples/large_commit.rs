//! One commit of very many changes: how long it takes, how much memory, and how much room its log has at its peak.
//!
//! `large_commit FILE CHANGES ordered|scattered [SECONDS]` commits changes of 100 bytes with a cache of 16 MiB; with
//! SECONDS the process ends itself so long after the commit has begun. `large_commit FILE` opens the file again and
//! says what is there.

use duramen::{Database, Durability, Result, TableDef};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const TABLE: TableDef<&[u8], &[u8]> = TableDef::new("t");
/// Bytes of a value; with its key a change has 100.
const VALUE: usize = 80;

/// Bytes that the log's files take on the device.
fn log_bytes(path: &Path) -> u64 {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned() + "-log.";
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let log = files.filter(|file| file.file_name().to_string_lossy().starts_with(&name));
    log.filter_map(|file| Some(file.metadata().ok()?.blocks() * 512)).sum()
}

/// The most memory that this process has had, as the system says it.
fn memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("VmHWM: unknown").to_owned()
}

fn commit(path: &Path, changes: u64, scattered: bool, end: Option<Duration>) -> Result<()> {
    let db = Database::builder().cache(16 << 20).open_or_create(path)?;
    let mut tx = db.begin_write()?;
    tx.set_durability(Durability::Commit);
    let mut table = tx.open_table(TABLE)?;
    for n in 0..changes {
        let number = if scattered { n.wrapping_mul(0x9E37_79B9_7F4A_7C15) } else { n };
        let mut key = [b'k'; 20];
        key[..8].copy_from_slice(&number.to_be_bytes());
        table.put(key.as_slice(), &[n as u8; VALUE][..])?;
    }
    drop(table);
    println!("written: {}", memory());
    let (over, peak) = (AtomicBool::new(false), AtomicU64::new(0));
    let begun = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                peak.fetch_max(log_bytes(path), Ordering::Relaxed);
                if end.is_some_and(|end| begun.elapsed() > end) {
                    println!("ends itself: {}", memory());
                    std::process::abort();
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let committed = tx.commit();
        over.store(true, Ordering::Relaxed);
        committed
    })?;
    let (peak, all) = (peak.load(Ordering::Relaxed), changes * 100);
    println!("committed in {:.1} s: {}", begun.elapsed().as_secs_f64(), memory());
    println!("log at its peak: {} MB, {:.2} times the changes", peak / 1_000_000, peak as f64 / all as f64);
    db.close()
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let path = PathBuf::from(arguments.first().map_or("large_commit.duramen", String::as_str));
    let begun = Instant::now();
    if let Some(changes) = arguments.get(1).and_then(|count| count.parse().ok()) {
        let scattered = arguments.get(2).is_some_and(|order| order == "scattered");
        let end = arguments.get(3).and_then(|seconds| seconds.parse().ok()).map(Duration::from_secs_f64);
        return commit(&path, changes, scattered, end);
    }
    let db = Database::builder().cache(16 << 20).open(&path)?;
    let tables = db.begin_read()?.tables()?;
    let entries = tables.first().map_or(0, |table| table.entries);
    println!("opened in {:.1} s, {entries} entries: {}", begun.elapsed().as_secs_f64(), memory());
    db.close()
}

//! The time of a recovery whose pages are not in the system's cache, with and without reading ahead.
//!
//! `recovery FOLDER table|shadow [RECORDS CHANGES ROUNDS]` makes a database of records of 100 bytes in a file of
//! FOLDER, changes records at random, ends the process that does so, and recovers copies of the files: in each round
//! one with reading ahead and one without. Linux only: `dd` takes the copies out of the cache.

use duramen::db::{Recovery, StoreKind};
use duramen::io::FileVolume;
use duramen::{Builder, Database, Durability, Result, TableDef};
use duramen_sim::{HookedVolume, Hooks};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

const TABLE: TableDef<u64, [u8; 92]> = TableDef::new("t");
/// Records of a commit.
const BATCH: u64 = 1000;

/// Passes hints on, or not.
#[derive(Debug)]
struct Ahead(bool);

impl Hooks for Ahead {
    fn will_read(&self, _name: &str, _offset: u64, _len: u64) -> bool {
        self.0
    }
}

fn options(store: StoreKind) -> Builder {
    // Each page is read once, and no checkpoint comes before the end.
    Database::builder().store(store).cache(2 << 30).checkpoint_bytes(1 << 40).checkpoint_pages(1 << 40)
}

/// Fills a database, changes records of it and ends the process.
fn fill(path: &Path, store: StoreKind, records: u64, changes: u64) -> Result<()> {
    let db = options(store).durability(Durability::None).create(path)?;
    let put = |keys: &mut dyn Iterator<Item = u64>, value: u8| -> Result<()> {
        let mut keys = keys.peekable();
        while keys.peek().is_some() {
            let tx = db.begin_write()?;
            let mut table = tx.open_table(TABLE)?;
            keys.by_ref().take(BATCH as usize).try_for_each(|key| table.put(key, &[value; 92]))?;
            drop(table);
            tx.commit()?;
        }
        Ok(())
    };
    put(&mut (0..records), 1)?;
    db.checkpoint()?;
    let mut rng = fastrand::Rng::with_seed(1);
    put(&mut (0..changes).map(|_| rng.u64(0..records)), 2)?;
    let mut last = db.begin_write()?;
    last.set_durability(Durability::Commit);
    last.commit()?;
    println!(
        "{} pages, {} of them to redo, {} MB of log",
        db.stats().pages,
        db.stats().redo_pages,
        db.stats().log_bytes >> 20
    );
    std::process::abort();
}

/// The files of a database in a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).into_iter().flatten().flatten().map(|file| file.path()).collect()
}

fn run(command: &mut Command) {
    let status = command.status();
    assert!(status.as_ref().is_ok_and(|status| status.success()), "{command:?}: {status:?}");
}

/// Recovers a copy of the files that nothing has in memory.
fn recover(from: &Path, copy: &Path, store: StoreKind, ahead: bool) -> Result<Recovery> {
    let _ = std::fs::remove_dir_all(copy);
    run(Command::new("cp").args(["-r", "--sparse=always"]).args([from, copy]));
    run(Command::new("sync").arg("-f").arg(copy));
    for file in files(copy) {
        run(Command::new("dd").arg(format!("if={}", file.display())).args(["iflag=nocache", "count=0", "status=none"]));
    }
    let (volume, name) = FileVolume::for_file(&copy.join("t.duramen"))?;
    let db = options(store).open_on(Arc::new(HookedVolume::new(Arc::new(volume), Arc::new(Ahead(ahead)))), &name)?;
    let recovery = db.stats().recovery.unwrap_or_default();
    db.close()?;
    Ok(recovery)
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, store, rest @ ..] = arguments.as_slice() else {
        println!("recovery FOLDER table|shadow [RECORDS CHANGES ROUNDS]");
        return Ok(());
    };
    let store = if store == "shadow" { StoreKind::Shadow } else { StoreKind::Table };
    let number = |at: usize, default| rest.get(at).and_then(|text| text.parse().ok()).unwrap_or(default);
    let (records, changes, rounds) = (number(0, 10_000_000), number(1, 100_000), number(2, 5));
    let (from, copy) = (Path::new(folder).join("from"), Path::new(folder).join("copy"));
    if std::env::var("DURAMEN_RECOVERY_FILL").is_ok() {
        return fill(&from.join("t.duramen"), store, records, changes);
    }
    std::fs::create_dir_all(&from).expect("the folder can be made");
    let program = std::env::current_exe().expect("this program has a file");
    // It aborts, as a process that is killed.
    let _ = Command::new(program).args(&arguments).env("DURAMEN_RECOVERY_FILL", "1").status();
    let mut seconds = [Vec::new(), Vec::new()];
    for round in 0..rounds {
        for ahead in [true, false] {
            let recovery = recover(&from, &copy, store, ahead)?;
            let time = recovery.time.as_secs_f64();
            println!("round {round}, reading ahead {ahead}: {time:.2} s, {} pages", recovery.pages);
            seconds[usize::from(!ahead)].push(time);
        }
    }
    let [with, without] = seconds.map(|mut seconds| {
        seconds.sort_by(f64::total_cmp);
        seconds.get(seconds.len() / 2).copied().unwrap_or(0.0)
    });
    println!("{}: medians {with:.2} s with, {without:.2} s without: {:.1} times as fast", store.name(), without / with);
    for used in [from, copy] {
        let _ = std::fs::remove_dir_all(used);
    }
    Ok(())
}

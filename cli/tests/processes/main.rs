//! Processes that open, create, write, read, compact, convert, restore and remove one path at the same time, through
//! links and relative paths, and are killed at any moment. Acknowledged changes go to a journal, and the database must
//! have them in the end.
//!
//! `DURAMEN_PROCESS_ROUNDS` is the number of rounds (200 by default), `DURAMEN_PROCESS_SEED` the seed of the first
//! round. The timing of the processes decides what happens, so a seed only repeats the same actions.
#![cfg(unix)]

mod journal;
mod place;
mod worker;

use journal::Journal;
use place::{DATABASE, Place};
use std::collections::BTreeSet;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long the processes of a round go on, at the most.
const ROUND: Duration = Duration::from_millis(350);

/// The way in which a round removes the database.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Removal {
    /// The process that removes the database has its lock.
    Locked,
    /// Others remove it while it is open: its own handles may fail then, but no other database may suffer.
    Rude,
}

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().expect(variable))
}

/// A process of a round.
struct Process {
    child: Child,
    what: String,
    /// When it is killed, if it is.
    dies: Option<Instant>,
    /// It says with status 0 that it has made a database.
    restores: bool,
    /// It is of the program, which may find no database, or one that is locked.
    program: bool,
}

/// Starts a process that acts as its seed says until the round is over.
fn worker(place: &Place, seed: u64, removal: Removal) -> (Command, String) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "child_process_runs_a_worker", "--ignored", "--nocapture"]);
    command.env(worker::ROOT, place.root()).env(worker::SEED, seed.to_string());
    command.env(worker::RUDE, if removal == Removal::Rude { "1" } else { "0" });
    (command, format!("worker {seed}"))
}

/// Starts the program itself.
fn program(place: &Place, rng: &mut fastrand::Rng) -> (Command, String) {
    let path = place.spelling(rng);
    let store = if rng.bool() { "table" } else { "shadow" };
    let arguments: &[&str] = match rng.u8(0..6) {
        0 => &["compact", &path, "--quiet"],
        1 | 2 => &["compact", &path, "--quiet", "--store", store],
        3 => &["put", &path, "words", "oak", "tree"],
        _ => &["restore", &path, "../dump", "--quiet", "--store", store],
    };
    let mut command = Command::new(env!("CARGO_BIN_EXE_duramen"));
    command.args(arguments).current_dir(place.any_folder(rng));
    (command, arguments.join(" "))
}

fn start(place: &Place, rng: &mut fastrand::Rng, removal: Removal) -> Process {
    let is_program = rng.u8(0..4) == 0;
    let (mut command, what) = if is_program { program(place, rng) } else { worker(place, rng.u64(..), removal) };
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let dies = rng.bool().then(|| Instant::now() + Duration::from_millis(rng.u64(0..120)));
    let restores = what.starts_with("restore");
    Process { child, what, dies, restores, program: is_program }
}

/// Waits for a process whose time is over; gives what it complained of, and counts what it made.
fn end(process: Process, killed: bool, removal: Removal, journal: &Journal) -> Option<String> {
    let output = process.child.wait_with_output().unwrap();
    let text = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    if output.status.success() {
        if process.restores {
            journal.made();
        }
        return None;
    }
    let expected = [
        "is already open",
        "No such file",
        "there is no database",
        "already exists",
        "created by another process",
        "is empty",
    ];
    let excused =
        process.program && (removal == Removal::Rude || expected.iter().any(|message| text.contains(message)));
    (!killed && !excused).then(|| format!("{}: {}: {text}", process.what, output.status))
}

/// One round; gives what went wrong.
fn round(seed: u64) -> Vec<String> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let removal = if rng.u8(0..4) == 0 { Removal::Rude } else { Removal::Locked };
    let place = Place::new(&mut rng);
    let journal = Journal::new(place.root(), "parent");
    let begun = Instant::now();
    let mut wrong = Vec::new();
    let mut running: Vec<Process> = (0..4).map(|_| start(&place, &mut rng, removal)).collect();
    while !running.is_empty() {
        std::thread::sleep(Duration::from_millis(2));
        let now = Instant::now();
        let over = now.duration_since(begun) > ROUND;
        for at in (0..running.len()).rev() {
            let process = &mut running[at];
            let stuck = now.duration_since(begun) > 20 * ROUND + Duration::from_secs(20);
            let dies = stuck || process.dies.is_some_and(|when| when <= now);
            if dies {
                process.child.kill().unwrap();
            } else if process.child.try_wait().unwrap().is_none() {
                continue;
            }
            let process = running.swap_remove(at);
            if stuck {
                wrong.push(format!("{} does not end", process.what));
            }
            wrong.extend(end(process, dies, removal, &journal));
            if !over {
                running.push(start(&place, &mut rng, removal));
            }
        }
    }
    wrong.extend(journal::complaints(place.root()));
    if let Err(panic) = std::panic::catch_unwind(|| check_remaining_files(&place, removal)) {
        let text = panic.downcast_ref::<String>().cloned();
        wrong.push(text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default());
    }
    wrong.iter().map(|what| format!("round {seed} ({removal:?}): {what}")).collect()
}

/// All that was acknowledged is there, unless it was removed.
fn check_remaining_files(place: &Place, removal: Removal) {
    let (acknowledged, made) = journal::read(place.root());
    let path = place.database();
    let removed = place.removed();
    let left = match worker::options().open(&path) {
        Err(duramen::Error::NotFound { .. }) => None,
        Err(duramen::Error::NotADatabase { .. }) if place.is_empty_file() => None,
        opened => Some(opened.unwrap_or_else(|error| panic!("the database cannot be opened: {error}"))),
    };
    let databases = removed.len() as u64 + u64::from(left.is_some());
    assert!(made <= databases, "{made} databases were made, {databases} are left");
    let mut tokens: BTreeSet<u64> = acknowledged.keys().copied().collect();
    if let Some(db) = &left {
        if let Some(token) = worker::token(db).unwrap() {
            tokens.remove(&token);
            let missing = worker::missing(db, acknowledged.get(&token)).unwrap();
            assert!(missing.is_empty(), "acknowledged and lost: {missing:?}");
        }
        assert_eq!(db.verify(|_| ()).unwrap().findings, [], "the database is damaged");
    }
    for path in removed {
        if tokens.is_empty() {
            break;
        }
        // Its log is not beside it any more; the token was in it with a checkpoint.
        if let Ok((db, _)) = worker::options().open_damaged(&path)
            && let Ok(Some(token)) = worker::token(&db)
        {
            tokens.remove(&token);
        }
    }
    assert!(tokens.is_empty(), "databases are gone that nobody has removed, with {tokens:?}");
    if let Some(db) = left {
        db.close().unwrap();
        std::fs::remove_file(&path).unwrap();
    }
    worker::options().open_or_create(&path).unwrap().close().unwrap();
    if removal == Removal::Locked {
        assert_eq!(place.files(), [DATABASE], "something is left of what was killed");
    }
}

#[test]
fn acknowledged_commits_of_processes_on_one_path_survive() {
    let (rounds, first) = (number("DURAMEN_PROCESS_ROUNDS", 200), number("DURAMEN_PROCESS_SEED", 1));
    let next = AtomicU64::new(0);
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let play = || {
            let mut wrong = Vec::new();
            loop {
                let round_number = next.fetch_add(1, Ordering::Relaxed);
                if round_number >= rounds || wrong.len() > 3 {
                    return wrong;
                }
                wrong.extend(round(first + round_number));
            }
        };
        // Each is mostly waiting: for processes to start, for syncs.
        let players: Vec<_> = (0..4).map(|_| scope.spawn(play)).collect();
        players.into_iter().flat_map(|player| player.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
#[ignore = "a process of acknowledged_commits_of_processes_on_one_path_survive"]
fn child_process_runs_a_worker() {
    // Somebody who runs all ignored tests is not the parent.
    if std::env::var_os(worker::ROOT).is_some() {
        worker::run();
    }
}

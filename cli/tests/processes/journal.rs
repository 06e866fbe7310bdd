//! The acknowledged changes: a file for each process, with one line for each change. A line is written in one piece
//! after the engine has returned, so the lines of a killed process are right.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;

/// Keys by the token of their database.
pub(crate) type Acknowledged = BTreeMap<u64, BTreeSet<u64>>;

/// A process's part of the journal.
pub(crate) struct Journal(File);

impl Journal {
    pub(crate) fn new(root: &Path, name: &str) -> Journal {
        Journal(OpenOptions::new().append(true).create(true).open(root.join("journal").join(name)).unwrap())
    }

    fn line(&self, line: &str) {
        (&self.0).write_all(line.as_bytes()).unwrap();
    }

    /// A database has been made.
    pub(crate) fn made(&self) {
        self.line("made\n");
    }

    /// A key has been committed.
    pub(crate) fn put(&self, token: u64, key: u64) {
        self.line(&format!("put {token} {key}\n"));
    }

    /// Something must not be as it is.
    pub(crate) fn complain(&self, what: &str) {
        self.line(&format!("wrong {}\n", what.replace('\n', " ")));
    }
}

fn lines(root: &Path) -> Vec<String> {
    let mut lines = Vec::new();
    for entry in fs::read_dir(root.join("journal")).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        lines.extend(text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')).map(str::to_owned));
    }
    lines
}

/// The acknowledged commits so far, and the number of databases that were made.
pub(crate) fn read(root: &Path) -> (Acknowledged, u64) {
    let (mut acknowledged, mut made) = (Acknowledged::new(), 0);
    for line in lines(root) {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["made"] => made += 1,
            ["put", token, key] => {
                acknowledged.entry(token.parse().unwrap()).or_default().insert(key.parse().unwrap());
            }
            _ => {}
        }
    }
    (acknowledged, made)
}

/// The errors that processes have reported.
pub(crate) fn complaints(root: &Path) -> Vec<String> {
    lines(root).into_iter().filter(|line| line.starts_with("wrong ")).collect()
}

//! The content that a database must have after a crash, in a simple form: a list of commits, and ordered maps. It
//! checks a recovered database by its content only.

use crate::image::usize_of;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Bound;
use std::sync::{Mutex, PoisonError};

/// The content of a table.
pub type Table = BTreeMap<Vec<u8>, Vec<u8>>;

/// The content of a database: its tables by name, including empty ones.
pub type Tables = BTreeMap<String, Table>;

/// One change inside a commit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// Creates an empty table, if it does not exist.
    Create {
        /// The table.
        table: String,
    },
    /// Removes a table and its entries.
    Drop {
        /// The table.
        table: String,
    },
    /// Renames a table, and replaces the table with the new name if there is one.
    Rename {
        /// The table.
        table: String,
        /// The new name.
        to: String,
    },
    /// Sets a value. Creates the table if it does not exist.
    Put {
        /// The table.
        table: String,
        /// The key.
        key: Vec<u8>,
        /// The value.
        value: Vec<u8>,
    },
    /// Removes a key, if it exists.
    Remove {
        /// The table.
        table: String,
        /// The key.
        key: Vec<u8>,
    },
    /// Removes every key between two bounds; no key if the bounds cross.
    RemoveRange {
        /// The table.
        table: String,
        /// The lower bound.
        from: Bound<Vec<u8>>,
        /// The upper bound.
        to: Bound<Vec<u8>>,
    },
    /// Creates a table with these entries, and replaces a table with its name.
    Load {
        /// The table.
        table: String,
        /// The entries.
        entries: Table,
    },
}

impl Change {
    /// Applies the change to `tables`.
    pub fn apply(&self, tables: &mut Tables) {
        match self {
            Change::Create { table } => {
                tables.entry(table.clone()).or_default();
            }
            Change::Drop { table } => {
                tables.remove(table);
            }
            Change::Rename { table, to } => {
                if let Some(content) = tables.remove(table) {
                    tables.insert(to.clone(), content);
                }
            }
            Change::Put { table, key, value } => {
                tables.entry(table.clone()).or_default().insert(key.clone(), value.clone());
            }
            Change::Remove { table, key } => {
                if let Some(content) = tables.get_mut(table) {
                    content.remove(key);
                }
            }
            Change::RemoveRange { table, from, to } => {
                if let Some(content) = tables.get_mut(table) {
                    remove_range(content, from, to);
                }
            }
            Change::Load { table, entries } => {
                tables.insert(table.clone(), entries.clone());
            }
        }
    }
}

/// `BTreeMap::range` is not used here, because it panics if the bounds cross.
fn remove_range(content: &mut Table, from: &Bound<Vec<u8>>, to: &Bound<Vec<u8>>) {
    content.retain(|key, _| {
        let after_from = match from {
            Bound::Included(from) => key >= from,
            Bound::Excluded(from) => key > from,
            Bound::Unbounded => true,
        };
        let before_to = match to {
            Bound::Included(to) => key <= to,
            Bound::Excluded(to) => key < to,
            Bound::Unbounded => true,
        };
        !(after_from && before_to)
    });
}

/// The number of commits between two complete states that are kept.
const STRIDE: usize = 32;

/// Every commit of a run, in order.
#[derive(Debug)]
pub struct Model {
    commits: Vec<Vec<Change>>,
    now: Tables,
    /// The state after each multiple of [`STRIDE`] commits.
    kept: Vec<Tables>,
    /// The number of acknowledged commits of the last check, and the state after them. Most checks are for the same
    /// number as the check before, or for a few commits more.
    last_check: Mutex<Option<(usize, Tables)>>,
}

impl Default for Model {
    fn default() -> Model {
        Model::new()
    }
}

impl Model {
    /// No commits, no tables.
    pub fn new() -> Model {
        Model::beginning_with(Tables::new())
    }

    /// No commits yet, on an existing content.
    pub fn beginning_with(tables: Tables) -> Model {
        Model { commits: Vec::new(), now: tables.clone(), kept: vec![tables], last_check: Mutex::default() }
    }

    /// Adds a commit before it is made in the database. Returns its number, from 1: the mark to set when the commit is
    /// acknowledged.
    pub fn commit(&mut self, changes: Vec<Change>) -> u64 {
        changes.iter().for_each(|change| change.apply(&mut self.now));
        self.commits.push(changes);
        if self.commits.len().is_multiple_of(STRIDE) {
            self.kept.push(self.now.clone());
        }
        self.commits.len() as u64
    }

    /// How many commits there are.
    pub fn commits(&self) -> u64 {
        self.commits.len() as u64
    }

    /// The content after all commits.
    pub fn now(&self) -> &Tables {
        &self.now
    }

    /// The content after the first `commits` commits.
    pub fn after(&self, commits: u64) -> Tables {
        let commits = usize_of(commits).min(self.commits.len());
        self.apply(self.kept[commits / STRIDE].clone(), commits - commits % STRIDE, commits)
    }

    /// Applies the commits after the first `from`, up to the first `to`.
    fn apply(&self, mut tables: Tables, from: usize, to: usize) -> Tables {
        self.commits[from..to].iter().flatten().for_each(|change| change.apply(&mut tables));
        tables
    }

    /// Like [`Model::after`], and takes the state of the last check if that is nearer.
    fn after_for_check(&self, commits: u64) -> Tables {
        let last = self.last_check.lock().unwrap_or_else(PoisonError::into_inner).take();
        let to = usize_of(commits).min(self.commits.len());
        match last {
            Some((from, tables)) if (to - to % STRIDE..=to).contains(&from) => self.apply(tables, from, to),
            _ => self.after(commits),
        }
    }

    /// Checks that `found` has the first `acknowledged` commits, a complete prefix of the later ones up to `issued`,
    /// and nothing else. Returns the number of commits found, or the least if several fit.
    pub fn check(&self, acknowledged: u64, issued: u64, found: &Tables) -> Result<u64, Mismatch> {
        let least = self.after_for_check(acknowledged);
        let commits = if least == *found {
            Some(acknowledged)
        } else {
            self.find_later(acknowledged, issued, least.clone(), found)
        };
        let checked = commits.ok_or_else(|| Mismatch { acknowledged, issued, difference: difference(&least, found) });
        let at = usize_of(acknowledged).min(self.commits.len());
        *self.last_check.lock().unwrap_or_else(PoisonError::into_inner) = Some((at, least));
        checked
    }

    /// The least number of commits after `acknowledged`, up to `issued`, with the content `found`. `expected` is the
    /// content after `acknowledged`.
    fn find_later(&self, acknowledged: u64, issued: u64, mut expected: Tables, found: &Tables) -> Option<u64> {
        let later = self.commits.get(usize_of(acknowledged)..)?;
        (acknowledged + 1..=issued).zip(later).find_map(|(commits, changes)| {
            changes.iter().for_each(|change| change.apply(&mut expected));
            (expected == *found).then_some(commits)
        })
    }
}

/// The error if a recovered database does not have the content after any allowed number of commits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mismatch {
    /// The number of commits that must be in the database.
    pub acknowledged: u64,
    /// The number of commits that can be in the database.
    pub issued: u64,
    /// The first difference from the acknowledged commits.
    pub difference: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mismatch { acknowledged, issued, difference } = self;
        write!(f, "the database is not the one after any of commits {acknowledged}..={issued}: {difference}")
    }
}

impl std::error::Error for Mismatch {}

/// A description of the first difference.
fn difference(expected: &Tables, found: &Tables) -> String {
    let (empty, mut lines) = (Table::new(), Vec::new());
    for name in expected.keys().chain(found.keys().filter(|name| !expected.contains_key(*name))) {
        match (expected.get(name), found.get(name)) {
            (Some(_), None) => lines.push(format!("table {name:?} is missing")),
            (None, Some(_)) => lines.push(format!("table {name:?} should not exist")),
            (expected, found) => {
                lines.extend(table_difference(name, expected.unwrap_or(&empty), found.unwrap_or(&empty)))
            }
        }
    }
    lines.into_iter().next().unwrap_or_else(|| "nothing differs".to_owned())
}

fn table_difference(name: &str, expected: &Table, found: &Table) -> Option<String> {
    let missing = expected.iter().find(|(key, value)| found.get(*key) != Some(value));
    let surplus = found.iter().find(|(key, _)| !expected.contains_key(*key));
    let show = |bytes: &[u8]| bytes.escape_ascii().to_string();
    match (missing, surplus) {
        (Some((key, value)), _) => {
            let found = found.get(key).map_or("nothing".to_owned(), |found| format!("\"{}\"", show(found)));
            Some(format!("table {name:?} has {found} at \"{}\" instead of \"{}\"", show(key), show(value)))
        }
        (None, Some((key, _))) => Some(format!("table {name:?} has \"{}\", which should not exist", show(key))),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(key: &str, value: &str) -> Change {
        Change::Put { table: "t".to_owned(), key: key.into(), value: value.into() }
    }

    /// 100 commits of two puts each, and one commit that removes a range.
    fn model() -> Model {
        let mut model = Model::new();
        for i in 0..100 {
            let number = model.commit(vec![put("last", &i.to_string()), put(&format!("{i:03}"), "x")]);
            assert_eq!(number, i + 1);
        }
        let (from, to) = (Bound::Included(b"010".to_vec()), Bound::Excluded(b"020".to_vec()));
        model.commit(vec![Change::RemoveRange { table: "t".to_owned(), from, to }]);
        model
    }

    #[test]
    fn a_state_is_rebuilt_from_a_kept_one_and_the_later_commits() {
        let model = model();
        for commits in [0, 1, 31, 32, 33, 64, 100] {
            assert_eq!(
                model.after(commits).get("t").map_or(0, Table::len),
                (commits + u64::from(commits > 0)) as usize
            );
        }
        assert_eq!(model.after(101), *model.now());
        assert_eq!(model.now()["t"].len(), 91);
    }

    #[test]
    fn whole_prefixes_between_acknowledged_and_issued_pass() {
        let model = model();
        for found in 40..=45 {
            assert_eq!(model.check(40, 45, &model.after(found)), Ok(found));
        }
        assert!(model.check(40, 45, &model.after(39)).is_err());
        assert!(model.check(40, 45, &model.after(46)).is_err());
    }

    /// A check may begin with the state that the previous check kept. That state can be earlier or later, and the
    /// previous check may have failed.
    #[test]
    fn checks_do_not_depend_on_the_checks_before_them() {
        let mut model = model();
        for (acknowledged, found) in [(40, 40), (45, 47), (33, 33), (64, 66), (40, 40), (41, 41), (0, 0), (101, 101)] {
            assert_eq!(model.check(acknowledged, acknowledged + 5, &model.after(found)), Ok(found));
            assert!(model.check(acknowledged, acknowledged, &model.after(found + 1)).is_err() || found == 101);
        }
        let number = model.commit(vec![put("later", "y")]);
        assert_eq!(model.check(101, number, model.now()), Ok(number));
        assert_eq!(model.check(number, number, model.now()), Ok(number));
        assert!(model.check(number, number, &model.after(101)).is_err());
    }

    #[test]
    fn half_a_commit_fails_and_the_message_names_the_difference() {
        let model = model();
        let mut found = model.after(40);
        model.commits[40][0].apply(&mut found);
        let mismatch = model.check(40, 45, &found).unwrap_err();
        assert_eq!(mismatch.difference, "table \"t\" has \"40\" at \"last\" instead of \"39\"");
        assert!(mismatch.to_string().contains("40..=45"));
    }

    #[test]
    fn tables_are_created_dropped_and_renamed() {
        let mut model = Model::new();
        model.commit(vec![put("k", "v"), Change::Create { table: "e".to_owned() }]);
        model.commit(vec![Change::Rename { table: "t".to_owned(), to: "e".to_owned() }]);
        assert_eq!(model.now().keys().collect::<Vec<_>>(), ["e"]);
        assert_eq!(model.now()["e"][b"k".as_slice()], b"v");
        let missing = model.check(2, 2, &Tables::new()).unwrap_err();
        assert_eq!(missing.difference, "table \"e\" is missing");
        model.commit(vec![Change::Drop { table: "e".to_owned() }]);
        assert!(model.now().is_empty());
    }

    #[test]
    fn bounds_that_cross_remove_nothing() {
        let mut model = model();
        let before = model.now().clone();
        let (from, to) = (Bound::Included(b"5".to_vec()), Bound::Excluded(b"1".to_vec()));
        model.commit(vec![Change::RemoveRange { table: "t".to_owned(), from, to }]);
        assert_eq!(*model.now(), before);
    }
}

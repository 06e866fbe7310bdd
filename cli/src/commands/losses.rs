//! Reports the losses of a damaged database: one line for each range, and a summary at the end, where it is easily
//! seen.

use super::lost_range::LostRange;
use crate::failure::{Completion, Failure, Result};
use duramen::db::{Damage, Lost};
use duramen::{Error, TableInfo};
use indicatif::HumanCount;

/// A note on the total if the catalog has lost the number of entries of a table.
const COUNTED: &str = " (the total has only the entries in pages that were found)";

/// Counts the losses.
#[derive(Default)]
pub(super) struct Losses {
    ranges: u64,
    tables: Vec<String>,
    /// The last range, which the next one may extend.
    last: Option<(TableInfo, LostRange)>,
    /// True if damage was found outside of the ranges: in the file, the log or the catalog.
    damaged: bool,
    /// What a damaged or missing log costs. If there is something, the expected number of entries is unknown.
    commits: Vec<&'static str>,
    /// True if the catalog is damaged, so the entries of some tables are those in the pages that were found.
    counted: bool,
}

/// The loss of commits by this damage.
pub(super) fn lost_commits(damage: &Damage) -> Option<&'static str> {
    match damage {
        Damage::Log { cause: Error::MissingLog { .. } } | Damage::LogUnread => {
            Some("the commits that are not in the database file")
        }
        Damage::Log { .. } => Some("all commits after the damage in the log"),
        Damage::LogTorn => Some("a part of a large transaction"),
        _ => None,
    }
}

impl Losses {
    /// Adds a range of lost keys of a table. Returns the line for the previous range, unless this one extends it.
    pub(super) fn range(&mut self, table: &TableInfo, lost: &Lost) -> Option<String> {
        if let Some((of, range)) = &mut self.last
            && of.name == table.name
            && range.join(lost)
        {
            return None;
        }
        let line = self.last();
        self.ranges += 1;
        if self.tables.last() != Some(&table.name) {
            self.tables.push(table.name.clone());
        }
        self.last = Some((table.clone(), LostRange::new(lost)));
        line
    }

    /// Returns the line for the last range, if it was not returned yet.
    fn last(&mut self) -> Option<String> {
        let (table, range) = self.last.take()?;
        Some(format!("lost: table \"{}\", {}: {}", table.name.escape_debug(), range.keys(&table.key_type), range.why()))
    }

    /// Adds damage outside of the ranges. Returns its line.
    pub(super) fn damage(&mut self, damage: &Damage) -> String {
        self.damaged = true;
        self.commits.extend(lost_commits(damage));
        self.counted |= matches!(damage, Damage::TableFound { .. });
        format!("damaged: {damage}")
    }

    /// Ends a command that has read `read` entries of `of` expected ones, if that number is known. `done` says what was
    /// done with them, such as "read". Reports the last range. Fails if anything is lost.
    pub(super) fn end(
        mut self,
        report: impl FnOnce(&str),
        read: u64,
        of: Option<u64>,
        done: &str,
    ) -> Result<Completion> {
        if let Some(line) = self.last() {
            report(&line);
        }
        if self.ranges == 0 && !self.damaged {
            return Ok(Completion::Done);
        }
        // Older states of leaves may have more entries than expected.
        let of = of
            .filter(|total| self.commits.is_empty() && read <= *total)
            .map_or_else(String::new, |total| format!(" of {}", HumanCount(total)));
        let counted = if self.counted && !of.is_empty() { COUNTED } else { "" };
        let mut message = format!("{}{of} entries were {done}{counted}", HumanCount(read));
        if self.ranges == 0 && self.commits.is_empty() {
            return Err(Failure::Incomplete(format!("the database is damaged: {message}; other entries may be lost")));
        }
        if self.ranges > 0 {
            let tables: Vec<_> = self.tables.iter().map(|table| format!("\"{}\"", table.escape_debug())).collect();
            let ranges = if self.ranges == 1 { "range of keys" } else { "ranges of keys" };
            message = format!("{message}; lost: {} {ranges} of {}", self.ranges, tables.join(", "));
        }
        for what in self.commits {
            message = format!("{message}; lost: {what}");
        }
        Err(Failure::Incomplete(format!("the database is damaged, and a part of it could not be read: {message}")))
    }
}

//! Reports the losses of a damaged database: one line for each range, and a summary at the end, where it is easily
//! seen.

use super::lost_range::LostRange;
use crate::failure::{Completion, Failure, Result};
use duramen::TableInfo;
use duramen::db::{Damage, Lost};
use indicatif::HumanCount;

/// The loss by a damaged log.
pub(super) const LOST_COMMITS: &str = "all commits after the damage in the log";

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
    /// True if the log is damaged, so the expected number of entries is unknown.
    log: bool,
    /// True if the catalog is damaged, so the entries of some tables are those in the pages that were found.
    counted: bool,
}

/// True if whole commits may be lost.
pub(super) fn is_of_log(damage: &Damage) -> bool {
    matches!(damage, Damage::Log { .. } | Damage::LogUnread | Damage::LogTorn)
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
        self.log |= is_of_log(damage);
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
            .filter(|total| !self.log && read <= *total)
            .map_or_else(String::new, |total| format!(" of {}", HumanCount(total)));
        let counted = if self.counted && !of.is_empty() { COUNTED } else { "" };
        let mut message = format!("{}{of} entries were {done}{counted}", HumanCount(read));
        if self.ranges == 0 && !self.log {
            return Err(Failure::Incomplete(format!("the database is damaged: {message}; other entries may be lost")));
        }
        if self.ranges > 0 {
            let tables: Vec<_> = self.tables.iter().map(|table| format!("\"{}\"", table.escape_debug())).collect();
            let ranges = if self.ranges == 1 { "range of keys" } else { "ranges of keys" };
            message = format!("{message}; lost: {} {ranges} of {}", self.ranges, tables.join(", "));
        }
        if self.log {
            message = format!("{message}; lost: {LOST_COMMITS}");
        }
        Err(Failure::Incomplete(format!("the database is damaged, and a part of it could not be read: {message}")))
    }
}

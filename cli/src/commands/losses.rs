//! Reports the losses of a damaged database: one line for each range, and a summary at the end, where it cannot be
//! overlooked.

use super::lost_range::LostRange;
use crate::failure::{Completion, Failure, Result};
use duramen::TableInfo;
use duramen::db::{Damage, Lost};
use indicatif::HumanCount;

/// What a total means if the catalog has lost the number of entries of a table.
const COUNTED: &str = " (the total has only the entries in pages that were found)";

/// Counts what is lost.
#[derive(Default)]
pub(super) struct Losses {
    ranges: u64,
    tables: Vec<String>,
    /// The last range, which may go on.
    last: Option<(TableInfo, LostRange)>,
    /// Something is damaged that all else hangs on.
    damaged: bool,
    /// Of the log, so that how many entries there should be is not known.
    log: bool,
    /// Of the catalog: the entries of some tables are counted in the pages that were found.
    counted: bool,
}

/// True where commits may be lost whole.
pub(super) fn is_of_log(damage: &Damage) -> bool {
    matches!(damage, Damage::Log { .. } | Damage::LogUnread | Damage::LogTorn)
}

impl Losses {
    /// Notes a range of keys of a table; gives a line that tells the one before, unless this one belongs to it.
    pub(super) fn range(&mut self, table: &TableInfo, lost: &Lost) -> Option<String> {
        if let Some((of, range)) = &mut self.last
            && of.name == table.name
            && range.join(lost)
        {
            return None;
        }
        let told = self.last();
        self.ranges += 1;
        if self.tables.last() != Some(&table.name) {
            self.tables.push(table.name.clone());
        }
        self.last = Some((table.clone(), LostRange::new(lost)));
        told
    }

    /// A line that tells the last range, if that is not done yet.
    fn last(&mut self) -> Option<String> {
        let (table, range) = self.last.take()?;
        Some(format!("lost: table \"{}\", {}: {}", table.name.escape_debug(), range.keys(&table.key_type), range.why()))
    }

    /// Notes damage to what all else hangs on; gives a line that tells it.
    pub(super) fn damage(&mut self, damage: &Damage) -> String {
        self.damaged = true;
        self.log |= is_of_log(damage);
        self.counted |= matches!(damage, Damage::TableFound { .. });
        format!("damaged: {damage}")
    }

    /// Ends a command that has `read` so many entries, of so many that there should be, if that was asked for; `done` is what
    /// has become of them. Tells what is not told yet, and fails, if anything is lost.
    pub(super) fn end(mut self, tell: impl FnOnce(&str), read: u64, of: Option<u64>, done: &str) -> Result<Completion> {
        if let Some(line) = self.last() {
            tell(&line);
        }
        if self.ranges == 0 && !self.damaged {
            return Ok(Completion::Done);
        }
        // Older states of leaves may have more than there should be.
        let of = of
            .filter(|total| !self.log && read <= *total)
            .map_or_else(String::new, |total| format!(" of {}", HumanCount(total)));
        let counted = if self.counted && !of.is_empty() { COUNTED } else { "" };
        let mut told = format!("{}{of} entries were {done}{counted}", HumanCount(read));
        if self.ranges == 0 && !self.log {
            return Err(Failure::Incomplete(format!("the database is damaged: {told}; other entries may be lost")));
        }
        if self.ranges > 0 {
            let tables: Vec<_> = self.tables.iter().map(|table| format!("\"{}\"", table.escape_debug())).collect();
            let ranges = if self.ranges == 1 { "range of keys" } else { "ranges of keys" };
            told = format!("{told}; lost: {} {ranges} of {}", self.ranges, tables.join(", "));
        }
        if self.log {
            told.push_str("; lost: all commits after the damage in the log");
        }
        Err(Failure::Incomplete(format!("the database is damaged, and a part of it could not be read: {told}")))
    }
}

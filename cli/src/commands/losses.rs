//! What a damaged database has lost, told range by range and summed up at the end, where it cannot be overlooked.

use crate::failure::{Failure, Found, Result};
use crate::typed;
use duramen::db::Lost;
use duramen::{Error, TableInfo};

/// Counts what is lost.
#[derive(Default)]
pub(super) struct Losses {
    ranges: u64,
    tables: Vec<String>,
    /// Something is damaged that all else hangs on.
    damaged: bool,
}

impl Losses {
    /// Notes a range of keys of a table; gives a line that tells it.
    pub(super) fn range(&mut self, table: &TableInfo, lost: &Lost) -> String {
        self.ranges += 1;
        if self.tables.last() != Some(&table.name) {
            self.tables.push(table.name.clone());
        }
        let shown = |key: &[u8]| format!("\"{}\"", typed::bound(key, &table.key_type).escape_debug());
        let keys = match (lost.key(), lost.lower.as_slice(), &lost.upper) {
            (Some(key), _, _) => format!("the value of {}", shown(key)),
            (None, [], None) => "all keys".to_owned(),
            (None, [], Some(upper)) => format!("keys up to {}", shown(upper)),
            (None, lower, None) => format!("keys from {} to the end", shown(lower)),
            (None, lower, Some(upper)) => format!("keys from {} to {}", shown(lower), shown(upper)),
        };
        format!("lost: table \"{}\", {keys}: {}", table.name.escape_debug(), cause(&lost.cause))
    }

    /// Notes damage to what all else hangs on; gives a line that tells it.
    pub(super) fn damage(&mut self, what: &str) -> String {
        self.damaged = true;
        format!("damaged: {what}")
    }

    /// Ends a command that has `written` how many entries of how many there should be: with a failure, if anything is
    /// lost.
    pub(super) fn end(self, written: &str) -> Result<Found> {
        if self.ranges == 0 && !self.damaged {
            return Ok(Found::There);
        }
        if self.ranges == 0 {
            return Err(Failure::Incomplete(format!(
                "the database is damaged: {written}; that nothing else was in it is not sure"
            )));
        }
        let tables: Vec<_> = self.tables.iter().map(|table| format!("\"{}\"", table.escape_debug())).collect();
        let ranges = if self.ranges == 1 { "range of keys" } else { "ranges of keys" };
        Err(Failure::Incomplete(format!(
            "the database is damaged, and not all was read: {written}; lost: {} {ranges} of {}",
            self.ranges,
            tables.join(", ")
        )))
    }
}

/// What stood in the way, without advice.
fn cause(error: &Error) -> String {
    match error {
        Error::Corrupt { page, what } if page.is_none() => what.clone(),
        Error::Corrupt { page, what } => format!("page {page}: {what}"),
        other => other.to_string(),
    }
}

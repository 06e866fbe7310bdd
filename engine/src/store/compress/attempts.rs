//! Decides whether a page is worth the time of compressing it.

use crate::base::TableId;
use parking_lot::Mutex;
use std::collections::HashMap;

/// If this number of pages of a table in a row do not get smaller, or miss their target, the next ones are expected to
/// do the same.
const MISSES: u32 = 32;
/// Then one page in this number is tried, because the data may have changed.
const TRIED: u32 = 16;

/// The last results of compression, by table.
#[derive(Debug, Default)]
pub(in crate::store) struct Attempts(Mutex<HashMap<TableId, Row>>);

/// Results in a row.
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    /// Pages that missed since the last page that did not.
    misses: u32,
    /// Pages that were not tried since the last one that was.
    skipped: u32,
}

impl Attempts {
    /// True if the next page of a table is to be compressed.
    pub(in crate::store) fn is_worthwhile(&self, table: TableId) -> bool {
        let mut rows = self.0.lock();
        let row = rows.entry(table).or_default();
        if row.misses < MISSES || row.skipped + 1 >= TRIED {
            row.skipped = 0;
            return true;
        }
        row.skipped += 1;
        false
    }

    /// Notes the result for a page that was tried.
    pub(in crate::store) fn note(&self, table: TableId, is_smaller: bool) {
        let mut rows = self.0.lock();
        let row = rows.entry(table).or_default();
        row.misses = if is_smaller { 0 } else { row.misses.saturating_add(1) };
    }

    /// Forgets the results for a table: it is gone, or gets another policy.
    pub(in crate::store) fn forget(&self, table: TableId) {
        self.0.lock().remove(&table);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compression_is_tried_now_and_then_while_pages_miss_the_target() {
        let (attempts, table, other) = (Attempts::default(), TableId(7), TableId(8));
        let tried = |pages: u32, is_smaller: bool| {
            (0..pages)
                .filter(|_| {
                    let tries = attempts.is_worthwhile(table);
                    if tries {
                        attempts.note(table, is_smaller);
                    }
                    tries
                })
                .count() as u32
        };
        assert_eq!(tried(1000, true), 1000);
        assert_eq!(tried(MISSES, false), MISSES);
        assert_eq!(tried(160, false), 10);
        assert!(attempts.is_worthwhile(other));
        assert_eq!(tried(TRIED + 100, true), 101);
        assert_eq!(tried(MISSES + TRIED, false), MISSES + 1);
        attempts.forget(table);
        assert!(attempts.is_worthwhile(table));
    }
}

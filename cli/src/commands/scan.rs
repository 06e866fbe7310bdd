//! `scan`: the entries of a table, or of a range of it.

use super::open;
use crate::args::Scan;
use crate::failure::{Found, Result};
use crate::output::Output;
use crate::typed::Half;
use duramen::db::{ReadOnlyUntypedTable, UntypedRange};
use std::ffi::OsString;
use std::ops::Bound;

/// Prints the entries, or how many there are.
pub(super) fn run(args: &Scan) -> Result<Found> {
    let db = open::reading(&args.database)?;
    let (table, keys, values) = open::table(&db, &args.table, args.look.hex)?;
    let bounds = Bounds::new(args, &keys)?;
    let limit = args.limit.unwrap_or(u64::MAX);
    let mut output = Output::new(args.look);
    if args.count {
        let count = if bounds.is_all() { table.len().min(limit) } else { count(bounds.range(&table), limit)? };
        output.count(count)?;
        return output.finish().map(|()| Found::There);
    }
    let mut range = bounds.range(&table);
    let mut print = |key: &[u8], value: &[u8]| output.entry((&keys, key), (&values, value));
    let mut left = limit;
    while left > 0 {
        let printed = if args.reverse {
            range.next_back().transpose()?.map(|(key, value)| print(&key, &value))
        } else {
            range.next_with(&mut print)?
        };
        match printed {
            Some(printed) => printed?,
            None => break,
        }
        left -= 1;
    }
    output.finish().map(|()| Found::There)
}

/// How many entries a range has, at most `limit`.
fn count(mut range: UntypedRange<'_>, limit: u64) -> Result<u64> {
    let mut count = 0;
    while count < limit && range.next_with(|_, _| ())?.is_some() {
        count += 1;
    }
    Ok(count)
}

/// The keys that `--from`, `--to` and `--prefix` leave, encoded.
struct Bounds {
    from: Bound<Vec<u8>>,
    to: Bound<Vec<u8>>,
}

impl Bounds {
    fn new(args: &Scan, keys: &Half) -> Result<Bounds> {
        let key = |key: &OsString| keys.encode(key.as_encoded_bytes());
        let mut from = args.from.as_ref().map(key).transpose()?.unwrap_or_default();
        let mut to = args.to.as_ref().map(key).transpose()?;
        if let Some(prefix) = &args.prefix {
            let prefix = keys.encode_prefix(prefix.as_encoded_bytes())?;
            let end = after_prefix(&prefix);
            from = from.max(prefix);
            to = match (to, end) {
                (Some(to), Some(end)) => Some(to.min(end)),
                (to, end) => to.or(end),
            };
        }
        let from = if from.is_empty() { Bound::Unbounded } else { Bound::Included(from) };
        Ok(Bounds { from, to: to.map_or(Bound::Unbounded, Bound::Excluded) })
    }

    fn is_all(&self) -> bool {
        matches!((&self.from, &self.to), (Bound::Unbounded, Bound::Unbounded))
    }

    fn range<'t>(&self, table: &'t ReadOnlyUntypedTable) -> UntypedRange<'t> {
        table.range((self.from.as_ref().map(Vec::as_slice), self.to.as_ref().map(Vec::as_slice)))
    }
}

/// The smallest key after all that begin with `prefix`; `None` where there is none.
fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let kept = prefix.iter().rposition(|byte| *byte < 0xFF)?;
    let mut after = prefix.get(..=kept)?.to_vec();
    if let Some(last) = after.last_mut() {
        *last += 1;
    }
    Some(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_a_prefix_is_the_next_one_of_its_length_or_nothing() {
        assert_eq!(after_prefix(b"ab"), Some(b"ac".to_vec()));
        assert_eq!(after_prefix(b"a\xFF\xFF"), Some(b"b".to_vec()));
        assert_eq!(after_prefix(b"\xFF"), None);
        assert_eq!(after_prefix(b""), None);
    }
}

//! Encodes the key range of `--from`, `--to` and `--prefix`.

use crate::args::RangeArgs;
use crate::failure::Result;
use crate::typed::TextForm;
use std::ffi::OsString;
use std::ops::Bound;

/// A range of stored keys.
pub(super) struct StoredRange {
    from: Bound<Vec<u8>>,
    to: Bound<Vec<u8>>,
}

impl StoredRange {
    /// The keys that match all options.
    pub(super) fn new(args: &RangeArgs, keys: &TextForm) -> Result<StoredRange> {
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
        Ok(StoredRange { from, to: to.map_or(Bound::Unbounded, Bound::Excluded) })
    }

    /// The range for the engine.
    pub(super) fn range(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (self.from.as_ref().map(Vec::as_slice), self.to.as_ref().map(Vec::as_slice))
    }
}

/// The lowest key after all keys that begin with `prefix`, or `None` if there is none.
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
    fn the_key_after_a_prefix_is_the_next_prefix_or_nothing() {
        assert_eq!(after_prefix(b"ab"), Some(b"ac".to_vec()));
        assert_eq!(after_prefix(b"a\xFF\xFF"), Some(b"b".to_vec()));
        assert_eq!(after_prefix(b"\xFF"), None);
        assert_eq!(after_prefix(b""), None);
    }
}

//! Iterates over the integer keys of a table without its values. Each block is decoded once.

use super::guard::decode;
use crate::base::Result;
use crate::db::types::Key;
use crate::txn::Cursor;
use std::marker::PhantomData;
use std::sync::Arc;

/// An iterator over keys in order, from [`crate::db::ReadOnlyTable::keys`].
pub struct Keys<'t, K> {
    cursor: Cursor<'t>,
    table: Arc<str>,
    block: Vec<u64>,
    /// The position in the block.
    at: usize,
    /// An error has ended the iterator.
    failed: bool,
    of: PhantomData<fn() -> K>,
}

impl<'t, K> Keys<'t, K> {
    pub(crate) fn new(cursor: Cursor<'t>, table: Arc<str>) -> Keys<'t, K> {
        Keys { cursor, table, block: Vec::new(), at: 0, failed: false, of: PhantomData }
    }
}

impl<K: for<'a> Key<View<'a> = K>> Keys<'_, K> {
    /// The first key of the next block, or the next key if that is in no block.
    #[cold]
    fn more(&mut self) -> Result<Option<K>> {
        self.at = 0;
        if self.cursor.next_block(&mut self.block)? {
            self.at = 1;
            let first = self.block.first().copied().unwrap_or_default();
            return read::<K>(first, &self.table).map(Some);
        }
        self.block.clear();
        match self.cursor.next()? {
            Some((key, _)) => decode::<K>(key, &self.table, "keys").map(Some),
            None => Ok(None),
        }
    }
}

/// The key whose encoding is this integer of 4 or 8 bytes. If the width is right, the compiler removes both the
/// encoding and the decoding.
#[inline(always)]
fn read<K: for<'a> Key<View<'a> = K>>(integer: u64, table: &str) -> Result<K> {
    if K::fixed_width() == Some(4) {
        let [a, b, c, d, ..] = integer.to_le_bytes();
        return decode::<K>(&[d, c, b, a], table, "keys");
    }
    decode::<K>(&integer.to_be_bytes(), table, "keys")
}

impl<K: for<'a> Key<View<'a> = K>> Iterator for Keys<'_, K> {
    type Item = Result<K>;

    #[inline]
    fn next(&mut self) -> Option<Result<K>> {
        match self.block.get(self.at) {
            Some(&key) => {
                self.at += 1;
                Some(read::<K>(key, &self.table))
            }
            None if self.failed => None,
            None => {
                let next = self.more().transpose();
                self.failed = matches!(next, Some(Err(_)));
                next
            }
        }
    }
}

//! Iterating over a table: in key order, from both ends, stopping at the first error.

use super::bytes::Bytes;
use super::guard::Guard;
use super::types::{Key, Value};
use crate::base::Result;
use crate::txn::{Cursor, Engine, large};
use std::marker::PhantomData;
use std::sync::Arc;

/// The entries of a key range, untyped.
pub struct UntypedRange<'t> {
    engine: &'t Engine,
    cursor: Cursor<'t>,
    failed: bool,
}

impl<'t> UntypedRange<'t> {
    pub(crate) fn new(engine: &'t Engine, cursor: Cursor<'t>) -> UntypedRange<'t> {
        UntypedRange { engine, cursor, failed: false }
    }

    /// Hands the next entry to `f` without copying it; `None` at the end. The fastest way to scan.
    ///
    /// # Errors
    /// A page that cannot be read; the iterator ends there.
    pub fn next_with<R>(&mut self, f: impl FnOnce(&[u8], &[u8]) -> R) -> Result<Option<R>> {
        let engine = self.engine;
        Ok(match self.cursor.next()? {
            None => None,
            Some((key, record)) if record.large => Some(f(key, &large::read(engine, record.bytes)?)),
            Some((key, record)) => Some(f(key, record.bytes)),
        })
    }

    fn next_back_with<R>(&mut self, f: impl FnOnce(&[u8], &[u8]) -> R) -> Result<Option<R>> {
        let engine = self.engine;
        Ok(match self.cursor.next_back()? {
            None => None,
            Some((key, record)) if record.large => Some(f(key, &large::read(engine, record.bytes)?)),
            Some((key, record)) => Some(f(key, record.bytes)),
        })
    }

    pub(crate) fn step<R>(&mut self, back: bool, f: impl FnOnce(&[u8], &[u8]) -> R) -> Option<Result<R>> {
        if self.failed {
            return None;
        }
        let entry = if back { self.next_back_with(f) } else { self.next_with(f) };
        self.failed = entry.is_err();
        entry.transpose()
    }
}

impl Iterator for UntypedRange<'_> {
    type Item = Result<(Vec<u8>, Vec<u8>)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step(false, |key, value| (key.to_vec(), value.to_vec()))
    }
}

impl DoubleEndedIterator for UntypedRange<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.step(true, |key, value| (key.to_vec(), value.to_vec()))
    }
}

/// The entries of a key range, in key order; [`Iterator::rev`] gives them backwards.
pub struct Range<'t, K: Key, V: Value> {
    untyped: UntypedRange<'t>,
    table: Arc<str>,
    of: PhantomData<fn() -> (K, V)>,
}

impl<'t, K: Key, V: Value> Range<'t, K, V> {
    pub(crate) fn new(untyped: UntypedRange<'t>, table: Arc<str>) -> Range<'t, K, V> {
        Range { untyped, table, of: PhantomData }
    }

    fn step(&mut self, back: bool) -> Option<Result<(Guard<K>, Guard<V>)>> {
        let entry = self.untyped.step(back, |key, value| (Bytes::from(key), Bytes::from(value)))?;
        Some(entry.and_then(|(key, value)| {
            Ok((Guard::new(key, &self.table, "keys")?, Guard::new(value, &self.table, "values")?))
        }))
    }
}

impl<K: Key, V: Value> Iterator for Range<'_, K, V> {
    type Item = Result<(Guard<K>, Guard<V>)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step(false)
    }
}

impl<K: Key, V: Value> DoubleEndedIterator for Range<'_, K, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.step(true)
    }
}

//! The standard library's `BTreeMap` as a contestant. Keys and values of 8 bytes are in its nodes, others in boxes.

use crate::Result;
use crate::contest::{Config, Contestant, Reader, Writer};
use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;
use std::sync::{RwLock, RwLockReadGuard};

/// A byte string in the form in which a map stores it.
trait Stored: Ord + Borrow<[u8]> + Send + Sync {
    fn store(bytes: &[u8]) -> Result<Self>
    where
        Self: Sized;
}

impl Stored for Box<[u8]> {
    fn store(bytes: &[u8]) -> Result<Box<[u8]>> {
        Ok(bytes.into())
    }
}

impl Stored for [u8; 8] {
    fn store(bytes: &[u8]) -> Result<[u8; 8]> {
        Ok(bytes.try_into()?)
    }
}

type Boxed = Box<[u8]>;
type Word = [u8; 8];

/// The map, for each form of keys and values.
pub enum Maps {
    /// Keys and values in boxes.
    Boxes(BTreeMap<Boxed, Boxed>),
    /// Keys in boxes.
    BoxedKeys(BTreeMap<Boxed, Word>),
    /// Values in boxes.
    BoxedValues(BTreeMap<Word, Boxed>),
    /// Neither in boxes.
    Words(BTreeMap<Word, Word>),
}

/// Runs the same code on any of the maps.
macro_rules! each {
    ($map:expr, $name:ident => $code:expr) => {
        match $map {
            Maps::Boxes($name) => $code,
            Maps::BoxedKeys($name) => $code,
            Maps::BoxedValues($name) => $code,
            Maps::Words($name) => $code,
        }
    };
}

/// The map of a run.
pub struct Map(RwLock<Maps>);

impl Contestant for Map {
    const NAME: &'static str = "btreemap";

    fn create(config: &Config, _: &Path) -> Result<Map> {
        Ok(Map(RwLock::new(match (config.key_width, config.value_width) {
            (Some(8), 8) => Maps::Words(BTreeMap::new()),
            (Some(8), _) => Maps::BoxedValues(BTreeMap::new()),
            (_, 8) => Maps::BoxedKeys(BTreeMap::new()),
            _ => Maps::Boxes(BTreeMap::new()),
        })))
    }

    fn close(&mut self) -> Result<()> {
        Ok(())
    }

    fn open(&mut self, _: &Config) -> Result<()> {
        Ok(())
    }

    fn commit(&self, changes: &mut dyn FnMut(&mut dyn Writer) -> Result<()>) -> Result<()> {
        each!(&mut *self.0.write().map_err(|_| "a thread panicked")?, map => changes(map))
    }

    fn compact(&mut self) -> Result<()> {
        Ok(())
    }

    type Reader<'a> = RwLockReadGuard<'a, Maps>;

    fn reader(&self) -> Result<RwLockReadGuard<'_, Maps>> {
        self.0.read().map_err(|_| "a thread panicked".into())
    }
}

impl<K: Stored, V: Stored> Writer for BTreeMap<K, V> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.insert(K::store(key)?, V::store(value)?);
        Ok(())
    }

    fn remove(&mut self, key: &[u8]) -> Result<()> {
        BTreeMap::remove(self, key);
        Ok(())
    }
}

impl Reader for RwLockReadGuard<'_, Maps> {
    #[inline]
    fn get<R>(&mut self, key: &[u8], check: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        Ok(each!(&**self, map => map.get(key).map(|value| check(value.borrow()))))
    }

    #[inline]
    fn scan(&mut self, from: &[u8], mut visit: impl FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        let range = (Bound::Included(from), Bound::Unbounded);
        each!(&**self, map => {
            for (key, value) in map.range::<[u8], _>(range) {
                if !visit(key.borrow(), value.borrow()) {
                    break;
                }
            }
        });
        Ok(())
    }
}

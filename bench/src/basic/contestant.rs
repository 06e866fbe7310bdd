//! The interface of a store that takes part. Measuring must not be in this file.

use super::args::{Args, DiskKind, Durability};
use crate::Result;
use crate::keyset::Keys;
use std::path::Path;

/// What a store is to be like.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Bytes of cache.
    pub cache: usize,
    /// Bytes of a page; the store's own if not given.
    pub page_size: Option<usize>,
    /// When commits reach the device.
    pub durability: Durability,
    /// Whether it lies in memory or in a file.
    pub disk: DiskKind,
    /// Bytes of every key, where they are equally long.
    pub key_width: Option<usize>,
    /// Bytes of every value.
    pub value_width: usize,
}

impl Config {
    /// What the options say; a cache larger than the data where they say nothing.
    pub(super) fn new(args: &Args, keys: &Keys) -> Config {
        let data = keys.bytes() + keys.len() * (args.value + 16);
        Config {
            cache: args.cache.map_or(4 * data + (64 << 20), |size| size.0 as usize),
            page_size: args.page_size.map(|size| size.0 as usize),
            durability: args.durability,
            disk: args.disk,
            key_width: keys.width(),
            value_width: args.value,
        }
    }
}

/// A store under measurement.
pub trait Contestant: Sized + Sync {
    /// Its name in reports.
    const NAME: &'static str;

    /// A new, empty store; its files, if any, go to `folder`.
    ///
    /// # Errors
    /// What the store says.
    fn create(config: &Config, folder: &Path) -> Result<Self>;

    /// Closes the store in order; a store in memory stays as it is.
    ///
    /// # Errors
    /// What the store says.
    fn close(&mut self) -> Result<()>;

    /// Opens the store that was closed.
    ///
    /// # Errors
    /// What the store says.
    fn open(&mut self) -> Result<()>;

    /// Runs one writing transaction and commits it.
    ///
    /// # Errors
    /// What the store or `changes` says.
    fn commit(&mut self, changes: &mut dyn FnMut(&mut dyn Writer) -> Result<()>) -> Result<()>;

    /// Makes the store as small as it can be.
    ///
    /// # Errors
    /// What the store says.
    fn compact(&mut self) -> Result<()>;

    /// A hold of one thread on the present state.
    type Reader<'a>: Reader
    where
        Self: 'a;

    /// Begins to read.
    ///
    /// # Errors
    /// What the store says.
    fn reader(&self) -> Result<Self::Reader<'_>>;
}

/// A writing transaction.
pub trait Writer {
    /// Sets a key's value.
    ///
    /// # Errors
    /// What the store says.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()>;

    /// Removes a key.
    ///
    /// # Errors
    /// What the store says.
    fn remove(&mut self, key: &[u8]) -> Result<()>;
}

/// A reading thread.
pub trait Reader {
    /// Hands a key's value to `check` and returns what that says; `None` if the key is not there.
    ///
    /// # Errors
    /// What the store says.
    fn get<R>(&mut self, key: &[u8], check: impl FnOnce(&[u8]) -> R) -> Result<Option<R>>;

    /// Hands entries in key order from `from` on to `visit`, until that returns false.
    ///
    /// # Errors
    /// What the store says.
    fn scan(&mut self, from: &[u8], visit: impl FnMut(&[u8], &[u8]) -> bool) -> Result<()>;
}

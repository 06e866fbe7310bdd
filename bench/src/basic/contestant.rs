//! The interface of a store that is measured. Measuring must not be in this file.

use super::args::{Args, DiskKind, Durability};
use crate::Result;
use crate::keyset::Keys;
use std::path::Path;

/// The options of a store.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Bytes of cache.
    pub cache: usize,
    /// Bytes of a page; `None` for the default of the store.
    pub page_size: Option<usize>,
    /// When commits reach the device.
    pub durability: Durability,
    /// Whether it is in memory or in a file.
    pub disk: DiskKind,
    /// Bytes of every key, if all have the same length.
    pub key_width: Option<usize>,
    /// Bytes of every value.
    pub value_width: usize,
}

impl Config {
    /// The values of the options. The default cache is larger than the data.
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
    /// Errors of the store.
    fn create(config: &Config, folder: &Path) -> Result<Self>;

    /// Closes the store. A store in memory stays open.
    ///
    /// # Errors
    /// Errors of the store.
    fn close(&mut self) -> Result<()>;

    /// Opens the store that was closed.
    ///
    /// # Errors
    /// Errors of the store.
    fn open(&mut self) -> Result<()>;

    /// Runs one writing transaction and commits it.
    ///
    /// # Errors
    /// Errors of the store and of `changes`.
    fn commit(&mut self, changes: &mut dyn FnMut(&mut dyn Writer) -> Result<()>) -> Result<()>;

    /// Makes the store as small as it can be.
    ///
    /// # Errors
    /// Errors of the store.
    fn compact(&mut self) -> Result<()>;

    /// A view of the current state, for one thread.
    type Reader<'a>: Reader
    where
        Self: 'a;

    /// Begins to read.
    ///
    /// # Errors
    /// Errors of the store.
    fn reader(&self) -> Result<Self::Reader<'_>>;
}

/// A writing transaction.
pub trait Writer {
    /// Sets the value of a key.
    ///
    /// # Errors
    /// Errors of the store.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()>;

    /// Removes a key.
    ///
    /// # Errors
    /// Errors of the store.
    fn remove(&mut self, key: &[u8]) -> Result<()>;
}

/// A reading thread.
pub trait Reader {
    /// Passes the value of a key to `check` and returns its result; `None` if the key does not exist.
    ///
    /// # Errors
    /// Errors of the store.
    fn get<R>(&mut self, key: &[u8], check: impl FnOnce(&[u8]) -> R) -> Result<Option<R>>;

    /// Passes entries in key order, from `from` on, to `visit` until it returns false.
    ///
    /// # Errors
    /// Errors of the store.
    fn scan(&mut self, from: &[u8], visit: impl FnMut(&[u8], &[u8]) -> bool) -> Result<()>;
}

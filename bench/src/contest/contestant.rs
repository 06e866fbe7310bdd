//! The interface of a store that is measured.

use crate::Result;
use clap::ValueEnum;
use duramen::db::Compression;
use std::path::Path;

/// The place of a database.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum DiskKind {
    /// In memory.
    Memory,
    /// In a file.
    File,
}

/// When commits reach the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Durability {
    /// Each commit before it is acknowledged.
    Commit,
    /// Every 100 ms.
    Interval,
    /// When the store chooses.
    None,
}

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
    /// How Duramen compresses its pages.
    pub compression: Compression,
    /// Whether pages are read and written with direct I/O, if the store can do so.
    pub direct_io: bool,
}

/// A store under measurement.
pub trait Contestant: Sized + Sync {
    /// Its name in reports.
    const NAME: &'static str;

    /// Why it cannot be measured here, if so: a library is missing.
    fn missing() -> Option<String> {
        None
    }

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

    /// Opens the store that was closed, with these options from now on. Page size, disk and widths must be the ones it
    /// was created with.
    ///
    /// # Errors
    /// Errors of the store.
    fn open(&mut self, config: &Config) -> Result<()>;

    /// Runs one writing transaction and commits it. Only one thread writes at a time; others may read.
    ///
    /// # Errors
    /// Errors of the store and of `changes`.
    fn commit(&self, changes: &mut dyn FnMut(&mut dyn Writer) -> Result<()>) -> Result<()>;

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

//! [`TableDef`]: the name, types and options of a table, as a constant of the program.

use super::options::{KeyLayout, Separators, TableOptions};
use super::value::{Key, Value};
use crate::page::Codec;
use crate::store::{Compression, Overflow, Target};
use std::fmt;
use std::marker::PhantomData;

/// The name, types and options of a table. Usually a constant.
///
/// ```
/// use duramen::db::types::{KeyLayout, TableDef};
///
/// const TREES: TableDef<&str, u64> = TableDef::new("trees");
/// const SOUNDINGS: TableDef<(u32, u64), f64> = TableDef::new("soundings").keys(KeyLayout::Plain);
/// assert_eq!(TREES.name(), "trees");
/// assert_eq!(SOUNDINGS.options().keys, Some(KeyLayout::Plain));
/// ```
pub struct TableDef<'n, K: Key, V: Value> {
    name: &'n str,
    options: TableOptions,
    types: PhantomData<fn() -> (K, V)>,
}

impl<'n, K: Key, V: Value> TableDef<'n, K, V> {
    /// The table `name` with keys of type `K` and values of type `V`, with default options.
    ///
    /// ```
    /// use duramen::TableDef;
    ///
    /// let forest = "black forest".to_owned();
    /// let trees: TableDef<&str, u64> = TableDef::new(&forest); // a name known only at run time
    /// assert_eq!(trees.name(), "black forest");
    /// ```
    pub const fn new(name: &'n str) -> TableDef<'n, K, V> {
        TableDef {
            name,
            options: TableOptions {
                keys: None,
                codec: None,
                separators: None,
                compression: Compression::None,
                target: Target::Fit,
                overflow: Overflow::Spill,
                dictionary: false,
                auto_increment: false,
                key_width: None,
                value_width: None,
            },
            types: PhantomData,
        }
    }

    /// Sets the key list of pages, if the table is created.
    ///
    /// ```
    /// use duramen::{Database, TableDef, db::types::KeyLayout};
    /// const PATHS: TableDef<&str, ()> = TableDef::new("paths").keys(KeyLayout::WiredTiger);
    ///
    /// let db = Database::in_memory()?;
    /// let tx = db.begin_write()?;
    /// let mut paths = tx.open_table(PATHS)?;
    /// assert_eq!(paths.untyped().info().keys, "wiredtiger");
    /// # Ok::<(), duramen::Error>(())
    /// ```
    #[must_use]
    pub const fn keys(mut self, layout: KeyLayout) -> TableDef<'n, K, V> {
        self.options.keys = Some(layout);
        self
    }

    /// Lets the table assign keys, if it is created. [`crate::Table::push`] uses them.
    #[must_use]
    pub const fn auto_increment(mut self) -> TableDef<'n, K, V> {
        self.options.auto_increment = true;
        self
    }

    /// Sets the codec of integer keys in blocks, if the table is created.
    #[must_use]
    pub const fn codec(mut self, codec: Codec) -> TableDef<'n, K, V> {
        self.options.codec = Some(codec);
        self
    }

    /// Sets the rule for separators, if the table is created.
    ///
    /// ```
    /// use duramen::{Database, TableDef, db::types::Separators};
    /// const PATHS: TableDef<&str, ()> = TableDef::new("paths").separators(Separators::Full);
    ///
    /// let db = Database::in_memory()?;
    /// let tx = db.begin_write()?;
    /// let mut paths = tx.open_table(PATHS)?;
    /// assert_eq!(paths.untyped().info().separators, "full");
    /// # Ok::<(), duramen::Error>(())
    /// ```
    #[must_use]
    pub const fn separators(mut self, separators: Separators) -> TableDef<'n, K, V> {
        self.options.separators = Some(separators);
        self
    }

    /// Sets how the pages of the table are compressed in the file, if the table is created. The default is
    /// [`Compression::None`].
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("forest.duramen");
    /// use duramen::{Database, TableDef, db::Compression};
    /// const PATHS: TableDef<&str, ()> = TableDef::new("paths").compression(Compression::Lz4);
    ///
    /// let db = Database::create(&path)?;
    /// let tx = db.begin_write()?;
    /// tx.open_table(PATHS)?.put("/usr/bin/env", ())?;
    /// tx.commit()?;
    /// assert_eq!(db.begin_read()?.tables()?[0].compression, Compression::Lz4);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    #[must_use]
    pub const fn compression(mut self, compression: Compression) -> TableDef<'n, K, V> {
        self.options.compression = compression;
        self
    }

    /// Sets the length of the places that the pages of the table get in the file, if the table is created.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("forest.duramen");
    /// use duramen::{Database, TableDef, db::{Compression, Target}};
    /// const PATHS: TableDef<&str, ()> =
    ///     TableDef::new("paths").compression(Compression::Zlib(6)).target(Target::Bytes(8192));
    ///
    /// let db = Database::builder().page_size(16384).create(&path)?;
    /// let tx = db.begin_write()?;
    /// tx.open_table(PATHS)?.put("/usr/bin/env", ())?;
    /// tx.commit()?;
    /// assert_eq!(db.begin_read()?.tables()?[0].target, Target::Bytes(8192));
    /// # Ok::<(), duramen::Error>(())
    /// ```
    #[must_use]
    pub const fn target(mut self, target: Target) -> TableDef<'n, K, V> {
        self.options.target = target;
        self
    }

    /// Sets what happens to pages that miss the target, if the table is created.
    ///
    /// ```
    /// use duramen::{TableDef, db::{Compression, Overflow, Target}};
    /// const PATHS: TableDef<&str, ()> = TableDef::new("paths")
    ///     .compression(Compression::Zlib(6))
    ///     .target(Target::Bytes(4096))
    ///     .overflow(Overflow::Split);
    /// assert_eq!(PATHS.options().overflow, Overflow::Split);
    /// ```
    #[must_use]
    pub const fn overflow(mut self, overflow: Overflow) -> TableDef<'n, K, V> {
        self.options.overflow = overflow;
        self
    }

    /// Allows a dictionary of Zstandard for the pages of the table, if the table is created. A dictionary has bytes
    /// that are frequent in the pages of the table. [`Database::compact`](crate::Database::compact) trains it on pages
    /// of the table, if it saves more than it takes, and compresses all pages of the table with it. Until then there is
    /// none.
    ///
    /// ```
    /// use duramen::{TableDef, db::Compression};
    /// const PATHS: TableDef<&str, ()> = TableDef::new("paths").compression(Compression::Zstd(3)).dictionary(true);
    /// assert!(PATHS.options().dictionary);
    /// ```
    #[must_use]
    pub const fn dictionary(mut self, dictionary: bool) -> TableDef<'n, K, V> {
        self.options.dictionary = dictionary;
        self
    }

    /// The name of the table.
    pub const fn name(&self) -> &'n str {
        self.name
    }

    /// The options with which the table is created.
    pub const fn options(&self) -> TableOptions {
        self.options
    }

    /// The name of the key type in the catalog.
    ///
    /// ```
    /// use duramen::TableDef;
    ///
    /// let felled: TableDef<(&str, u32), bool> = TableDef::new("felled");
    /// assert_eq!((felled.key_type().as_str(), felled.value_type().as_str()), ("(str,u32)", "bool"));
    /// ```
    pub fn key_type(&self) -> String {
        K::type_name()
    }

    /// The name of the value type in the catalog.
    pub fn value_type(&self) -> String {
        V::type_name()
    }
}

impl<K: Key, V: Value> Clone for TableDef<'_, K, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K: Key, V: Value> Copy for TableDef<'_, K, V> {}

impl<K: Key, V: Value> fmt::Debug for TableDef<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} -> {}", self.name, self.key_type(), self.value_type())
    }
}

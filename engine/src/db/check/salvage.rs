//! Reads a damaged table: returns each entry that can be read, and each range of keys that cannot. Nothing is changed
//! here. To repair a database, a program copies the entries to a new one.
//!
//! A cursor reads as far as it can, and follows right links past damaged inner pages. When it stops, a descent finds
//! the extent of the damage: a page that cannot be read costs the key range between its separators and no more. A new
//! cursor begins after that range.

use crate::base::{Error, Lsn, Result, bytes};
use crate::db::catalog::info::TableInfo;
use crate::db::catalog::{self, TableEntry, catalog_tree};
use crate::db::table::bounds;
use crate::db::table::read_only_untyped::ReadOnlyUntypedTable;
use crate::db::transaction::read::ReadTransaction;
use crate::page::Record;
use crate::tree::Tree;
use crate::txn::{Cursor, Engine, KeyRange, OwnedRecord, ReadView, large};
use std::collections::VecDeque;
use std::ops::{Bound, RangeBounds};

/// A range of lost keys, and why they are lost.
#[derive(Debug)]
pub struct Lost {
    /// The lower bound: no lost key is less.
    pub lower: Vec<u8>,
    /// The upper bound: all lost keys are less; `None` for no bound.
    pub upper: Option<Vec<u8>>,
    /// The error of reading them.
    pub cause: Error,
}

impl Lost {
    /// The key, if only its large value is lost.
    pub fn key(&self) -> Option<&[u8]> {
        let upper = self.upper.as_deref()?;
        (upper.strip_suffix(&[0]) == Some(&self.lower)).then_some(&self.lower)
    }
}

/// An item of [`Salvage`].
#[derive(Debug)]
pub enum Salvaged<R> {
    /// An entry: the result of the function that the caller gave.
    Entry(R),
    /// A range of lost keys.
    Lost(Lost),
}

/// The readable entries and the lost keys of a damaged table, in key order. See [`ReadOnlyUntypedTable::salvage`].
pub struct Salvage<'t> {
    engine: &'t Engine,
    tree: Tree,
    snapshot: Lsn,
    /// All keys below this one were returned or reported as lost.
    position: Vec<u8>,
    end: Option<Vec<u8>>,
    /// A cursor from the position on, after a descent to the position has succeeded. If it must only read the rest of a
    /// leaf, the second value is the end of that leaf.
    cursor: Option<(Cursor<'t>, Option<Option<Vec<u8>>>)>,
    done: bool,
    /// The entries and lost ranges of a leaf in which some keys cannot be read. They are before the position.
    found: VecDeque<Salvaged<(Vec<u8>, OwnedRecord)>>,
}

impl ReadOnlyUntypedTable {
    /// Reads all readable entries of a key range of a damaged table, and reports the ranges of keys that are lost.
    ///
    /// ```
    /// # use duramen::{Database, TableDef};
    /// # const TREES: TableDef<&str, &str> = TableDef::new("trees");
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("forest.duramen");
    /// # let db = Database::create(&path)?;
    /// # let tx = db.begin_write()?;
    /// # tx.open_table(TREES)?.put("oak", "Quercus robur")?;
    /// # tx.commit()?;
    /// # db.close()?;
    /// # let mut bytes = std::fs::read(&path)?;
    /// # while let Some(at) = bytes.windows(7).position(|name| name == b"Quercus") {
    /// #     bytes[at] ^= 1; // it rots
    /// # }
    /// # std::fs::write(&path, bytes)?;
    /// use duramen::db::Salvaged;
    ///
    /// let trees = Database::open(&path)?.begin_read()?.open_untyped("trees")?;
    /// let (mut left, mut lost) = (0, 0);
    /// let mut salvage = trees.salvage(..);
    /// while let Some(found) = salvage.next_with(|key, value| println!("{key:?}: {value:?}"))? {
    ///     match found {
    ///         Salvaged::Entry(()) => left += 1,
    ///         Salvaged::Lost(range) => {
    ///             println!("lost from {:?} to {:?}: {}", range.lower, range.upper, range.cause);
    ///             lost += 1;
    ///         }
    ///     }
    /// }
    /// assert_eq!((left, lost), (0, 1), "the only page is damaged");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn salvage<'k>(&self, range: impl RangeBounds<&'k [u8]>) -> Salvage<'_> {
        let (lower, upper) = bounds::borrowed(&range);
        let (engine, tree, snapshot) = self.source();
        Salvage::new(engine, *tree, snapshot, KeyRange::of(lower, upper))
    }
}

impl ReadTransaction {
    /// Like [`ReadTransaction::tables`], also for a damaged catalog: returns the tables that can be read, and the
    /// errors of reading the others.
    ///
    /// ```
    /// # let db = duramen::Database::in_memory()?;
    /// let (tables, errors) = db.begin_read()?.salvage_tables()?;
    /// assert!(tables.is_empty() && errors.is_empty(), "a new database");
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// Errors that are not caused by a damaged part of the catalog.
    pub fn salvage_tables(&self) -> Result<(Vec<TableInfo>, Vec<Error>)> {
        let (tables, errors) = tables(&self.snapshot.shared.engine, self.snapshot.lsn)?;
        Ok((tables.into_iter().map(|(name, entry)| TableInfo::new(name, &entry)).collect(), errors))
    }
}

/// Tables by name.
type Tables = Vec<(String, TableEntry)>;

/// The tables that can be read from the catalog, and the errors of reading the others.
pub(in crate::db) fn tables(engine: &Engine, snapshot: Lsn) -> Result<(Tables, Vec<Error>)> {
    let (lower, upper) = catalog::all_tables();
    let mut catalog = Salvage::new(engine, catalog_tree(), snapshot, KeyRange { lower, upper: Some(upper) });
    let (mut tables, mut errors) = (Vec::new(), Vec::new());
    let table = |key: &[u8], record: &[u8]| {
        let name = catalog::table_name(key)?;
        Some(name.and_then(|name| Ok((name, TableEntry::decode(record)?))))
    };
    while let Some(found) = catalog.next_with(table)? {
        match found {
            Salvaged::Entry(None) => {}
            Salvaged::Entry(Some(Ok(table))) => tables.push(table),
            Salvaged::Entry(Some(Err(error))) => errors.push(error),
            Salvaged::Lost(lost) => errors.push(lost.cause),
        }
    }
    Ok((tables, errors))
}

/// True if an error costs only the keys that were read with it.
pub(super) fn costs_a_range(error: &Error) -> bool {
    matches!(error, Error::Corrupt { .. } | Error::Io { .. })
}

impl<'t> Salvage<'t> {
    fn new(engine: &'t Engine, tree: Tree, snapshot: Lsn, range: KeyRange) -> Salvage<'t> {
        let done = range.is_empty();
        Salvage {
            engine,
            tree,
            snapshot,
            position: range.lower,
            end: range.upper,
            cursor: None,
            done,
            found: VecDeque::new(),
        }
    }

    /// Calls `f` with the next entry, or returns the next range of lost keys; `None` at the end.
    ///
    /// # Errors
    /// Errors that are not caused by a damaged part of the table, such as a cache that is too small.
    pub fn next_with<R>(&mut self, f: impl FnOnce(&[u8], &[u8]) -> R) -> Result<Option<Salvaged<R>>> {
        loop {
            match self.found.pop_front() {
                Some(Salvaged::Entry((key, record))) => return entry(self.engine, &key, record.view(), f).map(Some),
                Some(Salvaged::Lost(lost)) => return Ok(Some(Salvaged::Lost(lost))),
                None if self.done => return Ok(None),
                None => {}
            }
            let Some((cursor, leaf_end)) = &mut self.cursor else {
                match self.enter()? {
                    Some(lost) => return Ok(Some(Salvaged::Lost(lost))),
                    None => continue,
                }
            };
            let cause = match cursor.next() {
                Ok(Some((key, record))) if *key >= *self.position => {
                    self.position.clear();
                    self.position.extend_from_slice(key);
                    bytes::to_next(&mut self.position);
                    return entry(self.engine, key, record, f).map(Some);
                }
                Ok(Some(_)) => {
                    let cause = self.out_of_order();
                    let (upper, _) = self.reach();
                    return self.skip_lost(upper, cause).map(|lost| Some(Salvaged::Lost(lost)));
                }
                Ok(None) => {
                    let upper = leaf_end.take().unwrap_or_else(|| self.end.clone());
                    self.move_to(upper);
                    continue;
                }
                Err(error) => error,
            };
            let (upper, found) = match leaf_end.take() {
                Some(upper) => (upper, Err(cause)),
                None => self.reach(),
            };
            match found {
                // This leaf is not damaged. Read only the rest of it; then the descent continues after it.
                Ok(()) if self.read_leaf(upper.as_deref())? => {}
                Ok(()) => self.start(upper.clone(), Some(upper)),
                Err(cause) => return self.skip_lost(upper, cause).map(|lost| Some(Salvaged::Lost(lost))),
            }
        }
    }

    /// Collects what can be read of the leaf at the position, up to `upper`, and moves the position to its end. Returns
    /// false, without an effect, if all keys can be read or the leaf is newer than the snapshot.
    fn read_leaf(&mut self, upper: Option<&[u8]>) -> Result<bool> {
        let within = |key: &[u8], position: &[u8]| key >= position && upper.is_none_or(|upper| key < upper);
        let (mut found, mut from, mut why) = (VecDeque::new(), self.position.clone(), None);
        let (mut lost, mut fatal) = (0, None);
        let read = self.tree.leaf_entries(&self.engine.pages(), &self.position, |key, record| match key {
            Ok(key) if within(key, &from) => {
                if let Some(cause) = why.take() {
                    found.push_back(Salvaged::Lost(Lost { lower: from.clone(), upper: Some(key.to_vec()), cause }));
                }
                found.push_back(Salvaged::Entry((key.to_vec(), record.into())));
                from.clear();
                from.extend_from_slice(key);
                bytes::to_next(&mut from);
            }
            // Keys before the position were already reported.
            Ok(key) if key < self.position.as_slice() => why = None,
            Ok(key) if key < from.as_slice() => {
                lost += 1;
                why = Some(self.out_of_order());
            }
            Ok(_) => {}
            Err(cause) if costs_a_range(&cause) => {
                lost += 1;
                why = Some(cause);
            }
            Err(error) => fatal = Some(error),
        });
        if let Some(error) = fatal {
            return Err(error);
        }
        let own = match read {
            Ok((lsn, Some(own))) if lsn <= self.snapshot && lost > 0 => own,
            Err(error) if !costs_a_range(&error) => return Err(error),
            _ => return Ok(false),
        };
        // A leaf may have been split after its parent was written. Then keys after its own end are searched in another
        // leaf.
        let end = own.upper.filter(|own| upper.is_none_or(|upper| own.as_slice() < upper));
        let end = end.or_else(|| upper.map(<[u8]>::to_vec));
        if end.as_ref().is_some_and(|end| *end <= self.position) {
            return Ok(false);
        }
        if let Some(cause) = why {
            found.push_back(Salvaged::Lost(Lost { lower: from, upper: end.clone(), cause }));
        }
        self.found = found;
        self.move_to(end);
        Ok(true)
    }

    /// Starts a cursor at the position, or returns the lost range if the descent to it fails.
    fn enter(&mut self) -> Result<Option<Lost>> {
        match self.reach() {
            (upper, Err(cause)) => self.skip_lost(upper, cause).map(Some),
            (_, Ok(())) => {
                self.start(self.end.clone(), None);
                Ok(None)
            }
        }
    }

    /// Starts a cursor from the position to `upper`.
    fn start(&mut self, upper: Option<Vec<u8>>, leaf_end: Option<Option<Vec<u8>>>) {
        let (from, to) = (Bound::Included(self.position.clone()), upper.map_or(Bound::Unbounded, Bound::Excluded));
        let cursor = Cursor::new(self.engine, self.tree, ReadView::Snapshot(self.snapshot), from, to);
        self.cursor = Some((cursor, leaf_end));
    }

    /// The upper end of the page at the position, or of the lowest page on the path to it that has a reference to it;
    /// and the error that stops the descent, if there is one.
    fn reach(&self) -> (Option<Vec<u8>>, Result<()>) {
        let (upper, found) = self.tree.reach(&self.engine.pages(), &self.position);
        // If separators are out of order, the position must still move forward.
        let ahead = upper.as_ref().is_none_or(|upper| *upper > self.position);
        let upper = match (upper.filter(|_| ahead), &self.end) {
            (Some(upper), Some(end)) => Some(upper.min(end.clone())),
            (upper, end) => upper.or_else(|| end.clone()),
        };
        (upper, found)
    }

    fn out_of_order(&self) -> Error {
        Error::corrupt(self.tree.root, "a leaf of its tree has keys out of order")
    }

    /// Returns the keys from the position to `upper` as lost, and moves the position to `upper`.
    fn skip_lost(&mut self, upper: Option<Vec<u8>>, cause: Error) -> Result<Lost> {
        if !costs_a_range(&cause) {
            return Err(cause);
        }
        let lower = self.position.clone();
        self.move_to(upper.clone());
        Ok(Lost { lower, upper, cause })
    }

    fn move_to(&mut self, at: Option<Vec<u8>>) {
        self.cursor = None;
        self.done = at.is_none() || at == self.end;
        self.position = at.unwrap_or_default();
    }
}

/// Passes an entry to `f`. It is lost if its large value cannot be read.
fn entry<R>(engine: &Engine, key: &[u8], record: Record<'_>, f: impl FnOnce(&[u8], &[u8]) -> R) -> Result<Salvaged<R>> {
    if !record.large {
        return Ok(Salvaged::Entry(f(key, record.bytes)));
    }
    match large::read(engine, record.bytes) {
        Ok(value) => Ok(Salvaged::Entry(f(key, &value))),
        Err(cause) if costs_a_range(&cause) => {
            let mut upper = key.to_vec();
            bytes::to_next(&mut upper);
            Ok(Salvaged::Lost(Lost { lower: key.to_vec(), upper: Some(upper), cause }))
        }
        Err(error) => Err(error),
    }
}

//! The end of a writing transaction: it becomes one list of steps that the engine commits, or it is discarded.

use super::table_state::{Name, TableState, nameless_tables};
use super::write::{WriteTransaction, entry_delta, open_twice};
use crate::base::{Error, Lsn, PageId, Result};
use crate::db::catalog::{self, TableEntry, catalog_tree};
use crate::page::Record;
use crate::tree::Tree;
use crate::txn::{EntryDelta, OwnedRecord, Step, Steps, WriteSet, push_steps};
use std::sync::Arc;

impl WriteTransaction {
    /// Commits all changes atomically. It returns when they have the durability of the transaction.
    ///
    /// ```
    /// # const TREES: duramen::TableDef<&str, u64> = duramen::TableDef::new("trees");
    /// # let db = duramen::Database::in_memory()?;
    /// # let tx = db.begin_write()?;
    /// tx.open_table(TREES)?.put("oak", 700)?;
    /// assert!(db.begin_read()?.tables()?.is_empty());
    /// tx.commit()?;
    /// assert_eq!(db.begin_read()?.open_table(TREES)?.len(), 1);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// The database is unchanged after [`Error::Full`], after [`Error::Forked`], and after an error of reading a leaf.
    /// Other errors stop all writing ([`Error::Poisoned`]) until the database is opened again. This
    /// includes an error of reading another page, such as an allocation map, while pages are changed.
    pub fn commit(mut self) -> Result<()> {
        self.shared.check_process()?;
        self.await_pages()?;
        let end = match self.apply() {
            // Nothing has changed, so a second attempt is safe.
            Err(Error::Full { .. }) => {
                self.shared.engine.make_room(self.adopted.get_mut().iter().all(|(_, place)| place.is_none()))?;
                self.apply()?
            }
            applied => applied?,
        };
        let dropped = self.dropped.get_mut().iter().map(|(tree, _)| tree.table);
        let candidates = self.added.get_mut().drain(..).chain(dropped);
        for table in nameless_tables(self.names.get_mut(), candidates) {
            self.shared.engine.forget_policy(table);
        }
        self.adopted.get_mut().clear();
        self.shared.kept_tables.keep(std::mem::take(self.names.get_mut()));
        // Without changes, the commit still waits for earlier commits.
        let end = end.unwrap_or_else(|| self.shared.engine.last_end());
        self.shared.engine.note_sync_request(end, self.durability);
        drop(self.writer.take());
        self.shared.engine.settle(end, self.durability)?;
        self.shared.after_commit(self.durability)
    }

    /// Discards all changes, as dropping the transaction does.
    ///
    /// ```
    /// # const TREES: duramen::TableDef<&str, u64> = duramen::TableDef::new("trees");
    /// # let db = duramen::Database::in_memory()?;
    /// # let tx = db.begin_write()?;
    /// tx.open_table(TREES)?.put("oak", 700)?;
    /// tx.abort();
    /// assert!(db.begin_read()?.tables()?.is_empty());
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn abort(self) {}

    fn apply(&mut self) -> Result<Option<Lsn>> {
        if let Some(table) = self.abandoned.get_mut().clone() {
            let why =
                "its bulk load was not finished, so the transaction cannot commit: repeat the transaction".to_owned();
            return Err(Error::TableState { table, why });
        }
        let engine = &self.shared.engine;
        let names = self.names.get_mut();
        let mut states: Vec<(&mut TableState, EntryDelta)> = Vec::with_capacity(names.len());
        // The tables in whose row only the number of entries changes.
        let mut counted = Vec::new();
        let mut catalog_writes = WriteSet::default();
        for (name, state) in names {
            match state {
                // A handle that was leaked with `mem::forget` still holds the state.
                Name::Open(state) => {
                    let state = Arc::get_mut(state).ok_or_else(|| open_twice(name))?.get_mut();
                    let delta = entry_delta(engine, state)?;
                    if state.created || state.entry_changed {
                        let mut entry = state.entry.clone();
                        entry.entries = entry.entries.saturating_add_signed(delta.entries);
                        catalog_writes.put(&catalog::table_key(name), Some(Record::inline(&entry.encode())));
                    } else if delta.entries != 0 {
                        counted.push((catalog::table_key(name), delta.entries));
                    }
                    states.push((state, delta));
                }
                Name::Gone => drop(catalog_writes.put(&catalog::table_key(name), None)),
            }
        }
        for (key, record) in self.dictionaries.get_mut().iter() {
            catalog_writes.put(key, record.as_ref().map(OwnedRecord::view));
        }
        if let Some(next) = *self.next_table.get_mut() {
            catalog_writes.put(catalog::NEXT_ID, Some(Record::inline(&next.to_le_bytes())));
        }
        let (adopted, dropped) = (&*self.adopted.get_mut(), &*self.dropped.get_mut());
        let has_writes = states.iter().any(|(state, _)| !state.writes.is_empty());
        if !has_writes && catalog_writes.is_empty() && dropped.is_empty() {
            return Ok(None);
        }
        let catalog = catalog_tree();
        let mut steps = Steps::default();
        let created: Vec<&Tree> = states.iter().filter(|(s, _)| s.created).map(|(s, _)| &s.entry.tree).collect();
        let is_root = |page: PageId| created.iter().any(|tree| tree.root == page);
        steps.extend(
            adopted
                .iter()
                .filter(|(page, at)| at.is_some() || !is_root(*page))
                .map(|&(page, place)| Step::Adopt { page, place }),
        );
        let bulk_loaded = |tree: &Tree| adopted.iter().any(|(page, at)| *page == tree.root && at.is_some());
        steps.extend(created.iter().filter(|tree| !bulk_loaded(tree)).map(|&tree| Step::Create { tree }));
        steps.extend(dropped.iter().map(|(tree, large_values)| Step::Drop { tree, large_values: *large_values }));
        for (state, delta) in &states {
            push_steps(&mut steps, &state.entry.tree, &state.writes, delta);
        }
        let offset = TableEntry::ENTRIES_AT;
        let counts =
            counted.iter().map(|(key, delta)| Step::AddToRecord { tree: &catalog, key, offset, delta: *delta });
        steps.set_catalog(&catalog, &catalog_writes, counts);
        engine.prune_before_commit(self.shared.version_memory)?;
        let end = engine.commit(&steps, &catalog, states.iter().map(|(state, _)| state.loaded).sum())?;
        drop(steps);
        states.iter_mut().for_each(|(state, delta)| state.note_committed(delta.entries));
        Ok(Some(end))
    }
}

impl Drop for WriteTransaction {
    fn drop(&mut self) {
        // Only a transaction that has not committed has the lock. In a child process that `fork` has made, the rest
        // could wait for a lock that a thread of the parent held at the fork, and nobody releases it here.
        if self.writer.is_some() && self.shared.check_process().is_err() {
            std::mem::forget(self.writer.take());
            self.forget_thread();
            return;
        }
        // If pages could not be written, nothing is lost: the transaction does not commit.
        let _ = self.await_pages();
        let pages: Vec<PageId> = self.adopted.get_mut().drain(..).map(|(page, _)| page).collect();
        self.shared.engine.release_pages(&pages);
        self.added.get_mut().iter().for_each(|table| self.shared.engine.forget_policy(*table));
        // The transaction may be the last handle, and then the close, which follows, needs the lock.
        drop(self.writer.take());
    }
}

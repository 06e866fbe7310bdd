//! The state of a table in a writing transaction, and the states that are kept for the next one.

use crate::base::TableId;
use crate::db::catalog::TableEntry;
use crate::db::catalog::entry_rules::EntryRules;
use crate::txn::WriteSet;
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// A table that the transaction has opened.
pub(crate) struct TableState {
    pub(crate) name: Arc<str>,
    pub(crate) entry: TableEntry,
    pub(crate) writes: WriteSet,
    /// True if this transaction creates the table. Its root page is reserved, but not yet formatted.
    pub(crate) created: bool,
    /// The catalog entry must be written even if the number of entries is the same.
    pub(crate) entry_changed: bool,
    /// Bytes of the keys and values of a bulk load.
    pub(super) loaded: u64,
    /// The rules of the last handle.
    pub(super) rules: Option<Arc<EntryRules>>,
}

impl TableState {
    /// A table without writes.
    pub(super) fn new(name: Arc<str>, entry: TableEntry) -> TableState {
        let writes = WriteSet::default();
        TableState { name, entry, writes, created: false, entry_changed: false, loaded: 0, rules: None }
    }

    /// Gives the table another name.
    pub(super) fn rename(&mut self, name: &str) {
        self.name = name.into();
        self.entry_changed = true;
        // The rules contain the name of the table, for errors.
        self.rules = None;
    }

    /// The rules for a handle of Rust types (`typed`), or of bytes.
    pub(super) fn rules(&mut self, typed: bool) -> Arc<EntryRules> {
        if let Some(rules) = self.rules.as_ref().filter(|rules| rules.is_typed() == typed) {
            return Arc::clone(rules);
        }
        let of = if typed { EntryRules::typed } else { EntryRules::untyped };
        let rules = Arc::new(of(&self.name, &self.entry));
        self.rules = Some(Arc::clone(&rules));
        rules
    }

    /// The transaction has committed, and has changed the number of entries by `delta`.
    pub(super) fn note_committed(&mut self, delta: i64) {
        self.entry.entries = self.entry.entries.saturating_add_signed(delta);
        (self.created, self.entry_changed, self.loaded) = (false, false, 0);
        self.writes.reset();
    }
}

/// The states of the tables that committed transactions have used last, at most [`MAX_KEPT`] of them. With a kept
/// state, the next transaction need not read and decode the row of the catalog.
///
/// Only a writing transaction changes the row of a table, and it has the state of that table. It takes the state from
/// here when it first uses the name, and returns it after its commit, under the writer's lock. So the rows here are
/// those of the catalog. A transaction that does not commit returns nothing.
#[derive(Default)]
pub(crate) struct KeptTables(Mutex<Vec<(String, Arc<Mutex<TableState>>)>>);

/// The maximum number of tables that are kept.
pub(super) const MAX_KEPT: usize = 32;

impl KeptTables {
    /// Takes the state of a table.
    pub(super) fn take(&self, name: &str) -> Option<(String, Arc<Mutex<TableState>>)> {
        let mut kept = self.0.lock();
        let at = kept.iter().position(|(other, _)| other == name)?;
        Some(kept.remove(at))
    }

    /// The names of the tables that are kept.
    #[cfg(test)]
    pub(super) fn names(&self) -> Vec<String> {
        self.0.lock().iter().map(|(name, _)| name.clone()).collect()
    }

    /// Keeps the states of a transaction that has committed. The caller holds the writer's lock.
    pub(super) fn keep(&self, names: BTreeMap<String, Name>) {
        let mut kept = self.0.lock();
        for (name, state) in names {
            // A second state with the same name would be found after a transaction that does not commit has taken the
            // first.
            kept.retain(|(other, _)| *other != name);
            let Name::Open(state) = state else { continue };
            if kept.len() >= MAX_KEPT {
                kept.remove(0);
            }
            kept.push((name, state));
        }
    }
}

/// The state of a name in the catalog as the transaction sees it.
pub(super) enum Name {
    Open(Arc<Mutex<TableState>>),
    /// The table was dropped or renamed.
    Gone,
}

/// The `candidates` that the transaction has under no name: they do not exist after its commit.
pub(super) fn nameless_tables(
    names: &BTreeMap<String, Name>,
    candidates: impl Iterator<Item = TableId>,
) -> Vec<TableId> {
    let mut candidates = candidates.peekable();
    if candidates.peek().is_none() {
        return Vec::new();
    }
    let open = |name: &Name| match name {
        Name::Open(state) => Some(state.lock().entry.tree.table),
        Name::Gone => None,
    };
    let named: HashSet<TableId> = names.values().filter_map(open).collect();
    candidates.filter(|table| !named.contains(table)).collect()
}

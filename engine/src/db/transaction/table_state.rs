//! The state of a table in a writing transaction.

use crate::base::TableId;
use crate::db::catalog::TableEntry;
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

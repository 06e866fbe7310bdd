//! The state of a table in a writing transaction.

use crate::base::TableId;
use crate::db::catalog::TableEntry;
use crate::txn::WriteSet;
use parking_lot::Mutex;
use std::collections::BTreeMap;
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

/// The tables whose trees were dropped and that the transaction has under no name.
pub(super) fn dropped_tables(
    names: &BTreeMap<String, Name>,
    dropped: impl Iterator<Item = TableId>,
) -> impl Iterator<Item = TableId> {
    let is_open = |name: &Name, id| matches!(name, Name::Open(state) if state.lock().entry.tree.table == id);
    dropped.filter(move |table| !names.values().any(|name| is_open(name, *table)))
}

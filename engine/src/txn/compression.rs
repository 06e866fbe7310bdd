//! Passes the policies of tables to the page store.

use super::engine::Engine;
use crate::base::{Error, Result, TableId};
use crate::store::{Compression, DictionaryId, PageCompression, PagePolicy, PageStore, Target};
use std::sync::Arc;

impl Engine {
    /// Returns an error if the pages of a table cannot have this policy in this database.
    pub(crate) fn check_policy(&self, policy: PagePolicy) -> Result<()> {
        policy.check(self.page_size())?;
        let Some(store) = self.store.as_ref().filter(|store| store.compression().is_none()) else { return Ok(()) };
        let refused = |option, value: String, only: &str| {
            let (kind, page) = (store.file().kind(), self.page_size());
            let size = (page + kind.trailer()) / 1024;
            let expected = format!("{only} with the page store {} and pages of {size} KiB", kind.name());
            Err(Error::Option { option, value, expected })
        };
        match policy {
            PagePolicy { compression: Compression::None, target: Target::Fit, .. } => Ok(()),
            PagePolicy { compression: Compression::None, target, .. } => refused("target", target.to_string(), "fit"),
            PagePolicy { compression, .. } => refused("compression", compression.to_string(), "none"),
        }
    }

    /// True if compressing the pages of a table with this policy takes long enough for another thread, and may use one.
    pub(crate) fn compresses_in_threads(&self, policy: PagePolicy) -> bool {
        let threads = self.compression().map_or(1, PageCompression::threads);
        policy.compression != Compression::None && threads > 1
    }

    /// Returns the page store; `None` in memory.
    pub(crate) fn page_store(&self) -> Option<Arc<dyn PageStore>> {
        self.store.clone()
    }

    /// Sets the policies of all tables.
    pub(crate) fn replace_policies(&self, policies: impl IntoIterator<Item = (TableId, PagePolicy)>) {
        if let Some(compression) = self.compression() {
            compression.replace_policies(policies);
        }
    }

    /// Removes the policy of a table that no longer exists.
    pub(crate) fn forget_policy(&self, table: TableId) {
        self.set_policy(table, PagePolicy::default());
    }

    /// Sets the policy for writing the pages of a table.
    pub(crate) fn set_policy(&self, table: TableId, policy: PagePolicy) {
        if let Some(compression) = self.compression() {
            compression.set_policy(table, policy);
        }
    }

    /// Lets the next checkpoint leave out these dictionaries. Call it when no image names them.
    ///
    /// A checkpoint that is already running may make an older state of pages durable, whose images name them. So this
    /// waits for its end.
    pub(crate) fn leave_out_dictionaries(&self, ids: &[DictionaryId]) {
        if let Some(compression) = self.compression() {
            self.between_checkpoints(|| ids.iter().for_each(|id| compression.leave_out(*id)));
        }
    }

    /// The page store's part for compression; `None` if the store does not compress pages.
    pub(crate) fn compression(&self) -> Option<&PageCompression> {
        self.store.as_ref()?.compression()
    }
}

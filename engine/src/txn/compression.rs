//! Tells the page store how the pages of a table are compressed. What compresses them is in the store.

use super::engine::Engine;
use crate::base::{Error, Result, TableId};
use crate::store::{Compression, PageStore};
use std::sync::Arc;

impl Engine {
    /// Fails if the pages of a table cannot be compressed like this here.
    pub(crate) fn check_compression(&self, compression: Compression) -> Result<()> {
        compression.check()?;
        match &self.store {
            Some(store) if compression != Compression::None && !store.compresses() => Err(Error::Option {
                option: "compression",
                value: compression.to_string(),
                expected: format!("none with the page store {}", store.file().kind().name()),
            }),
            _ => Ok(()),
        }
    }

    /// The page store; `None` in memory.
    pub(crate) fn page_store(&self) -> Option<Arc<dyn PageStore>> {
        self.store.clone()
    }

    /// The pages of a table are compressed like this when they are written.
    pub(crate) fn set_compression(&self, table: TableId, compression: Compression) {
        if let Some(store) = &self.store {
            store.set_compression(table, compression);
        }
    }
}

//! Point reads: as of a snapshot, or as the one writer sees the table.

use crate::base::{Lsn, Result};
use crate::page::{Page, Record};
use crate::tree::Tree;
use crate::txn::commit::applier::Pages;
use crate::txn::engine::Engine;
use crate::txn::versions::range_pieces::At;
use crate::txn::versions::{Before, OwnedRecord};

impl Engine {
    /// Hands the record that `key` has now to `f`, under the leaf's latch.
    pub(crate) fn get_current<R>(&self, tree: &Tree, key: &[u8], f: impl FnOnce(Option<Record<'_>>) -> R) -> Result<R> {
        tree.get(&Pages(&self.pool), key, |_, record| f(record))
    }

    /// Hands the record that `key` had at `snapshot` to `f`; usually under the leaf's latch, without a copy.
    #[inline]
    pub(crate) fn get_at<R>(
        &self,
        tree: &Tree,
        key: &[u8],
        snapshot: Lsn,
        f: impl FnOnce(Option<Record<'_>>) -> R,
    ) -> Result<R> {
        let mut f = Some(f);
        let direct = tree.get(&Pages(&self.pool), key, |leaf: Page<'_>, record| match f.take() {
            Some(f) if leaf.lsn() <= snapshot => Ok(f(record)),
            kept => {
                f = kept;
                Err(record.map(OwnedRecord::from))
            }
        })?;
        match (direct, f) {
            (Ok(result), _) => Ok(result),
            (Err(now), Some(f)) => self.get_undone(tree, key, snapshot, now, f),
            (Err(_), None) => unreachable!("the closure was put back"),
        }
    }

    /// The leaf has changed since the snapshot: `now` is what it has, the version store knows what it had.
    #[cold]
    fn get_undone<R>(
        &self,
        tree: &Tree,
        key: &[u8],
        snapshot: Lsn,
        now: Before,
        f: impl FnOnce(Option<Record<'_>>) -> R,
    ) -> Result<R> {
        let route = || self.versions.route(tree.table, At::Key(key), snapshot);
        let record = loop {
            if let Some(route) = route() {
                let old = Tree { root: route.root, ..*tree };
                let base = old.get(&Pages(&self.pool), key, |_, record| record.map(OwnedRecord::from))?;
                break self.versions.point(tree.table, key, snapshot, route.until).unwrap_or(base);
            }
            let point = self.versions.point(tree.table, key, snapshot, Lsn::MAX);
            // If the key has been detached meanwhile, the event may be one of what came in its place.
            if route().is_none() {
                break point.unwrap_or(now);
            }
        };
        Ok(f(record.as_ref().map(|record| Record { bytes: &record.bytes, large: record.large })))
    }
}

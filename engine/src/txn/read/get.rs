//! Point reads, at a snapshot or as the writing transaction sees the table.

use crate::base::{Lsn, Result};
use crate::page::{Page, Record};
use crate::tree::Tree;
use crate::txn::engine::Engine;
use crate::txn::large;
use crate::txn::versions::range_map::Position;
use crate::txn::versions::{Before, OwnedRecord};

impl Engine {
    /// Passes the current record of `key` to `f`, under the latch of the leaf.
    pub(crate) fn get_current<R>(&self, tree: &Tree, key: &[u8], f: impl FnOnce(Option<Record<'_>>) -> R) -> Result<R> {
        tree.get(&self.pages(), key, |_, record| f(record))
    }

    /// Passes the record that `key` had at `snapshot` to `f`. Usually this is under the latch of the leaf and without a
    /// copy.
    #[inline]
    pub(crate) fn get_at<R>(
        &self,
        tree: &Tree,
        key: &[u8],
        snapshot: Lsn,
        f: impl FnOnce(Option<Record<'_>>) -> R,
    ) -> Result<R> {
        // The closure stores what it finds in these variables and returns nothing. A compound result would be copied
        // twice, and the second copy would wait for the stores of the first.
        let (mut f, mut direct, mut now) = (Some(f), None, None);
        tree.get(&self.pages(), key, |leaf: Page<'_>, record| match f.take() {
            Some(f) if leaf.lsn() <= snapshot => direct = Some(f(record)),
            kept => {
                f = kept;
                now = record.map(OwnedRecord::from);
            }
        })?;
        match (direct, f) {
            (Some(result), _) => Ok(result),
            (None, Some(f)) => self.get_undone(tree, key, snapshot, now, f),
            (None, None) => unreachable!("the closure was not called"),
        }
    }

    /// Passes the value that `key` had at `snapshot` to `f`. A large value is first read whole.
    #[inline]
    pub(crate) fn get_value<R>(
        &self,
        tree: &Tree,
        key: &[u8],
        snapshot: Lsn,
        f: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        let mut f = Some(f);
        let mut large = None;
        let found = self.get_at(tree, key, snapshot, |record| match record {
            Some(record) if record.large => {
                large = Some(record.bytes.to_vec());
                None
            }
            Some(record) => f.take().map(|f| f(record.bytes)),
            None => None,
        })?;
        match (large, f) {
            (Some(record), Some(f)) => Ok(Some(f(&large::read(self, &record)?))),
            _ => Ok(found),
        }
    }

    /// The leaf has changed since the snapshot. `now` is the current record; the version store may have the old one.
    #[cold]
    fn get_undone<R>(
        &self,
        tree: &Tree,
        key: &[u8],
        snapshot: Lsn,
        now: Before,
        f: impl FnOnce(Option<Record<'_>>) -> R,
    ) -> Result<R> {
        let route = || self.versions.route(tree.table, Position::Key(key), snapshot);
        let record = loop {
            if let Some(route) = route() {
                let old = Tree { root: route.root, ..*tree };
                let base = old.get(&self.pages(), key, |_, record| record.map(OwnedRecord::from))?;
                break self.versions.point(tree.table, key, snapshot, route.until).unwrap_or(base);
            }
            let point = self.versions.point(tree.table, key, snapshot, Lsn::MAX);
            // If the key was detached during this loop, the event may belong to the tree that replaced the detached
            // one.
            if route().is_none() {
                break point.unwrap_or(now);
            }
        };
        Ok(f(record.as_ref().map(|record| Record { bytes: &record.bytes, large: record.large })))
    }
}

//! What a table's writes come to at commit: how many entries more or less, where the key of each goes, and the steps that
//! carry them out. Keys behind all others, as keys in order are, are looked at together. How a step changes pages must never
//! be known here.

use super::applier::Applier;
use super::steps::{Many, Step, Steps};
use super::write_arrays::Tail;
use super::write_set::WriteSet;
use crate::base::Result;
use crate::base::limits::long_key_head;
use crate::page::Record;
use crate::tree::{KeyRange, LeafHint, Tree};
use crate::txn::engine::Engine;

/// With more writes than this the steps of a table are made one by one, and without their places: hardly any commit that has so
/// many goes into one batch.
const MANY: usize = 1 << 20;

/// What a table's writes do to the number of its entries, and where they do it.
#[derive(Default)]
pub(crate) struct EntryDelta<'a> {
    /// Entries added, or, if negative, taken away.
    pub(crate) entries: i64,
    /// The place of each point write, in the order of their keys, as long as its leaf is not freed or detached; none at all
    /// if the writes themselves detach something. Those of `behind` have none.
    places: Vec<LeafHint>,
    /// The last point writes, all of which go behind the last entry of one leaf, and where that is.
    behind: Option<(Tail<'a>, LeafHint)>,
}

impl EntryDelta<'_> {
    /// So many entries are added, nobody knows where.
    pub(crate) fn added(entries: usize) -> EntryDelta<'static> {
        EntryDelta { entries: i64::try_from(entries).unwrap_or(i64::MAX), ..EntryDelta::default() }
    }
}

/// New entries that go behind the last one of a leaf.
pub(crate) struct Append<'a> {
    tree: &'a Tree,
    tail: Tail<'a>,
    hint: LeafHint,
}

/// Adds what carries out a table's writes to `steps` or, if `appends` are wanted, to these.
pub(crate) fn push_steps<'a>(
    steps: &mut Steps<'a>,
    appends: Option<&mut Vec<Append<'a>>>,
    tree: &'a Tree,
    writes: &'a WriteSet,
    delta: &EntryDelta<'a>,
) {
    let clear = |range: &'a KeyRange| Step::Clear { tree, lower: &range.lower, upper: range.upper.as_deref() };
    steps.extend(writes.cleared().iter().map(clear));
    // Without a log nothing is applied in pieces, and each step has its place.
    let many = appends.is_none() && writes.len() > MANY;
    let (mut count, mut rest) = (usize::MAX, LeafHint::NONE);
    if let Some((tail, hint)) = delta.behind {
        rest = hint;
        if let Some(appends) = appends {
            count = delta.places.len();
            appends.push(Append { tree, tail, hint });
        }
    }
    if many {
        steps.many.push(Many { tree, writes: writes.points() });
        return;
    }
    let mut places = delta.places.iter();
    steps.listed.reserve(places.len());
    let mut hint = || *places.next().unwrap_or(&rest);
    steps.extend(writes.points().take(count).map(|write| Step::of_write(tree, write, hint())));
}

impl Engine {
    /// How many entries a table's writes add or take away, and where; the caller holds the writer's lock.
    pub(crate) fn entry_delta<'a>(&self, tree: &Tree, writes: &'a WriteSet) -> Result<EntryDelta<'a>> {
        let pages = self.pages();
        let mut delta = EntryDelta::default();
        for range in writes.cleared() {
            delta.entries = delta.entries.saturating_sub_unsigned(super::count::entries(&pages, tree, range)?);
        }
        let has_cleared = !writes.cleared().is_empty();
        let mut count = usize::MAX;
        if !has_cleared && let Some((before, tail, hint)) = self.find_behind(tree, writes)? {
            count = before;
            delta.entries += i64::try_from(tail.len()).unwrap_or(i64::MAX);
            delta.behind = Some((tail, hint));
        }
        let has_places = !(has_cleared || self.is_logged() && writes.len() > MANY);
        let mut points = writes.points();
        tree.find_many(&pages, writes.points().take(count).map(|(key, _)| key), |place| {
            let Some((key, record)) = points.next() else { return };
            let existed = place.there && !(has_cleared && writes.is_cleared(key));
            delta.entries += i64::from(record.is_some()) - i64::from(existed);
            if has_places {
                delta.places.push(place);
            }
        })?;
        Ok(delta)
    }

    /// The writes behind the last entry of the leaf that the last of them goes to, how many there are before, and their place.
    fn find_behind<'a>(&self, tree: &Tree, writes: &'a WriteSet) -> Result<Option<(usize, Tail<'a>, LeafHint)>> {
        let head = long_key_head(self.pool.page_size());
        let Some(last) = writes.last_in_order().filter(|last| last.len() <= head) else { return Ok(None) };
        if tree.keys_are_out_of_line() {
            return Ok(None);
        }
        let (mut hint, mut key) = (LeafHint::NONE, Vec::new());
        tree.leaf_for(&self.pages(), last, |leaf| {
            let Some(slot) = leaf.count().checked_sub(1) else { return };
            leaf.key_into(slot, &mut key);
            // What a page says of a long key is not all of it. And a key of the leaf before may be behind that one's last entry.
            if let Ok(slot) = u16::try_from(leaf.count())
                && key.len() <= head
                && key.as_slice() < last
                && leaf.covers(&key)
            {
                hint = LeafHint { leaf: leaf.id(), lsn: leaf.lsn(), slot, there: false };
            }
        })?;
        let behind = if hint.leaf.is_none() { None } else { writes.tail(&key) };
        Ok(behind.map(|(before, tail)| (before, tail, hint)))
    }

    /// Puts entries behind the last one of a leaf.
    pub(in crate::txn) fn append(&self, applier: &Applier<'_>, append: &Append<'_>) -> Result<()> {
        let Append { tree, tail, hint } = *append;
        let hint = if applier.has_freed(hint.leaf) { LeafHint::NONE } else { hint };
        let entries = || tail.entries().map(|(key, bytes)| (key, Record::inline(bytes)));
        let done = tree.put_behind(applier, hint, entries(), || {
            match tail.keys_alone() {
                Some((width, keys)) => self.versions.add_new_alike(tree.table, applier.event_lsn(), width, keys),
                None => self.versions.add_new(tree.table, applier.event_lsn(), entries().map(|(key, _)| key)),
            }
            Ok(())
        })?;
        if !done {
            for (key, record) in entries() {
                let before = |old: Option<Record<'_>>| self.note_before(applier, tree.table, key, old);
                tree.put_with_hint(applier, hint, key, record, before)?;
            }
        }
        Ok(())
    }
}

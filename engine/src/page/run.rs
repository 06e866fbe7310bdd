//! Inserts a run of entries into a leaf with one operation: the writes of one transaction to one page. As many entries
//! as fit are inserted. The same entries inserted into the same page give the same bytes; the log relies on that.

use super::apply::{TreePage, insert, key_list, record_list};
use super::check::check_len;
use super::header;
use super::keys::{self, KeyState};
use super::op::NewEntry;
use super::records::{self, Record, RecordListKind};
use super::view::Page;
use crate::base::{Error, Lsn, Result};

/// The least number of keys for one block that makes it worthwhile to write the block again.
const WORTH: usize = 8;

/// Inserts `entries` from the first on as long as they fit, and sets the page's LSN if any did. Returns how many fit.
///
/// Eight or more entries for the same block of integer keys are inserted together. If there is no room for all of them,
/// half as many are tried, and so on. Other entries are inserted one by one.
///
/// # Errors
/// Those of [`super::apply()`], and an error for entries that are not in order. The page may have changed.
pub fn insert_run(page: &mut [u8], entries: &[NewEntry<'_>], lsn: Lsn) -> Result<usize> {
    let view = Page::new(page);
    check_len(page).map_err(|what| Error::corrupt(view.id(), what))?;
    if !view.is_leaf() || !entries.is_sorted_by_key(|entry| entry.slot) {
        return Err(Error::corrupt(view.id(), "a run of entries out of order, or for a page that is no leaf"));
    }
    let mut done = 0;
    while done < entries.len() {
        done += insert_in_place(page, entries.get(done..).unwrap_or_default(), done)?;
        let Some(rest) = entries.get(done..).filter(|rest| !rest.is_empty()) else { break };
        let view = Page::new(page);
        let asked =
            keys::count_in_one_block(view.keys(), view.key_bytes(), view.count(), rest.iter().map(|entry| entry.key))
                .max(1);
        let some = insert_some(page, rest.get(..asked).unwrap_or(rest), done)?;
        done += some;
        if some < asked {
            break;
        }
    }
    if done > 0 {
        header::set_lsn(page, lsn);
    }
    Ok(done)
}

/// Inserts the first of these entries, as long as they have no records and each changes only bytes within one block of
/// integer keys. `done` entries of the run come before them. Returns how many were inserted.
fn insert_in_place(page: &mut [u8], entries: &[NewEntry<'_>], done: usize) -> Result<usize> {
    let view = Page::new(page);
    if view.records() != RecordListKind::None || view.keys().key_len().is_none() {
        return Ok(0);
    }
    let tree = TreePage::of(view)?;
    let plain = entries.iter().take_while(|entry| entry.record == Record::inline(&[]));
    let most = usize::from(u16::MAX).saturating_sub(tree.keys.count);
    let keys = plain.take(most).enumerate().map(|(i, entry)| (usize::from(entry.slot) + done + i, entry.key));
    let some = keys::insert_in_place(key_list(page, &tree), tree.keys, WORTH, keys);
    header::set_lists(page, tree.keys.count + some, tree.keys.bytes, tree.records.bytes);
    Ok(some)
}

/// Inserts some of these entries, which belong to the same block. `done` entries of the run come before them.
fn insert_some(page: &mut [u8], entries: &[NewEntry<'_>], done: usize) -> Result<usize> {
    let mut some = entries;
    while some.len() >= WORTH {
        if insert_together(page, some, done)? {
            return Ok(some.len());
        }
        some = some.get(..some.len() / 2).unwrap_or_default();
    }
    // At most `WORTH` - 1: redo applies a run of exactly these entries and must not insert them together.
    for (i, entry) in entries.iter().take(WORTH - 1).enumerate() {
        if !insert(page, usize::from(entry.slot) + done + i, entry.key, entry.record)? {
            return Ok(i);
        }
    }
    Ok(entries.len().min(WORTH - 1))
}

/// Inserts these entries, which go to one block. Returns false and changes nothing if there is no room for all.
fn insert_together(page: &mut [u8], entries: &[NewEntry<'_>], done: usize) -> Result<bool> {
    let view = Page::new(page);
    let (id, size, tree) = (view.id(), view.bytes().len(), TreePage::of(view)?);
    let corrupt = |what: String| Error::corrupt(id, what);
    let mut records = tree.records;
    // Without records there is nothing to count.
    let none = records.kind == RecordListKind::None && entries.iter().all(|entry| entry.record == Record::inline(&[]));
    for entry in entries {
        if !none {
            records.bytes = records::bytes_with(view.record_bytes(), records, entry.record).map_err(corrupt)?;
        }
        records.count += 1;
    }
    let room = size.checked_sub(tree.keys_at + records.bytes).filter(|_| records.count <= usize::from(u16::MAX));
    let Some(room) = room else { return Ok(false) };
    let keys = entries.iter().map(|entry| (usize::from(entry.slot) + done, entry.key));
    let state = KeyState { room, ..tree.keys };
    let Some(key_bytes) = keys::insert_run(id, key_list(page, &tree), state, keys)? else { return Ok(false) };
    header::set_lists(page, records.count, key_bytes, records.bytes);
    records = tree.records;
    // Without records there is nothing to write.
    let entries = if records.kind == RecordListKind::None { &[][..] } else { entries };
    for (i, entry) in entries.iter().enumerate() {
        let bytes = records::bytes_with(record_list(page, records.bytes), records, entry.record).map_err(corrupt)?;
        records::insert(record_list(page, bytes), records, usize::from(entry.slot) + done + i, entry.record);
        records.bytes = bytes;
        records.count += 1;
    }
    Ok(true)
}

//! Puts a run of entries into a leaf with one operation: the writes of one transaction to one page. As many entries as
//! fit go in. The same entries, put again into the page as it was, make the same bytes; the log relies on that.
//! Splitting a full page must not be in this file.

use super::apply::{TreePage, insert, key_list, record_list};
use super::header;
use super::keys::{self, KeyState};
use super::op::NewEntry;
use super::records::{self, Record, RecordListKind};
use super::view::Page;
use crate::base::{Error, Lsn, Result, limits};

/// So many keys for one block are worth writing it anew.
const WORTH: usize = 8;

/// Inserts `entries` from the first on as long as they fit, and sets the page's LSN if any did. Returns how many.
///
/// Eight or more entries for the same block of integer keys go in together, or half as many, and so on, if there is no room
/// for them all. Others go in one by one.
///
/// # Errors
/// As [`super::apply()`], and for entries that are not in order. The page may have changed.
pub fn insert_run(page: &mut [u8], entries: &[NewEntry<'_>], lsn: Lsn) -> Result<usize> {
    let view = Page::new(page);
    if !limits::is_page_len(page.len()) {
        return Err(Error::corrupt(view.id(), format!("a page of {} bytes", page.len())));
    }
    if !view.is_leaf() || !entries.is_sorted_by_key(|entry| entry.slot) {
        return Err(Error::corrupt(view.id(), "a run of entries out of order, or for a page that is no leaf"));
    }
    let mut done = 0;
    while done < entries.len() {
        done += insert_in_place(page, entries.get(done..).unwrap_or_default(), done)?;
        let Some(rest) = entries.get(done..).filter(|rest| !rest.is_empty()) else { break };
        let view = Page::new(page);
        let asked =
            keys::together(view.keys(), view.key_bytes(), view.count(), rest.iter().map(|entry| entry.key)).max(1);
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

/// Inserts the first of these entries, which come behind `done` others of the run, as long as they have no records and change
/// nothing but bytes within one block of integer keys each; says how many.
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

/// Inserts some of these entries, which belong together and come behind `done` others of the run.
fn insert_some(page: &mut [u8], entries: &[NewEntry<'_>], done: usize) -> Result<usize> {
    let mut some = entries;
    while some.len() >= WORTH {
        if insert_together(page, some, done)? {
            return Ok(some.len());
        }
        some = some.get(..some.len() / 2).unwrap_or_default();
    }
    // Never so many that they would go in together if they came alone.
    for (i, entry) in entries.iter().take(WORTH - 1).enumerate() {
        if !insert(page, usize::from(entry.slot) + done + i, entry.key, entry.record)? {
            return Ok(i);
        }
    }
    Ok(entries.len().min(WORTH - 1))
}

/// Inserts these entries, which go to one block; false, and nothing changed, if there is no room for all.
fn insert_together(page: &mut [u8], entries: &[NewEntry<'_>], done: usize) -> Result<bool> {
    let view = Page::new(page);
    let (id, size, tree) = (view.id(), view.bytes().len(), TreePage::of(view)?);
    let corrupt = |what: String| Error::corrupt(id, what);
    let mut records = tree.records;
    // Where there are none, there is nothing to count.
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
    // Where there are none, there is nothing to put.
    let entries = if records.kind == RecordListKind::None { &[][..] } else { entries };
    for (i, entry) in entries.iter().enumerate() {
        let bytes = records::bytes_with(record_list(page, records.bytes), records, entry.record).map_err(corrupt)?;
        records::insert(record_list(page, bytes), records, usize::from(entry.slot) + done + i, entry.record);
        records.bytes = bytes;
        records.count += 1;
    }
    Ok(true)
}

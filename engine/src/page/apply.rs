//! The one function that changes a page's bytes, at commit and at recovery alike. It makes no decisions: an operation
//! says exactly what happens. Any page and any operation are safe.

use super::builder::{PageBuilder, PageSpec};
use super::check::{check_len, key_list_kind};
use super::header::{self, PageKind};
use super::keys::{self, KeyState};
use super::op::{NewEntry, PageOp};
use super::order::may_precede;
use super::pack::unpack;
use super::records::{self, Record, RecordState};
use super::run::insert_run;
use super::special::put_bits;
use super::view::Page;
use crate::base::{Error, Lsn, PageId, Result, bytes, limits};

/// Applies `op` to `page` and sets the page's LSN to `lsn`. Returns `Ok(false)` and leaves the page unchanged if the
/// result does not fit.
///
/// # Errors
/// `Error::Corrupt` if the operation does not apply to this page: a slot beyond its entries, a key outside its prefix
/// or too long, a record that its list cannot hold, a record without the number to which something is added, a kind of
/// page without such an operation, a number of bytes that is not a page size. The page is unchanged.
pub fn apply(page: &mut [u8], op: &PageOp<'_>, lsn: Lsn) -> Result<bool> {
    check_len(page).map_err(|what| Error::corrupt(Page::new(page).id(), what))?;
    let done = match op {
        PageOp::Format { packed } => unpack(packed, page).map(|()| true),
        PageOp::Insert { slot, key, record } => insert(page, usize::from(*slot), key, *record),
        PageOp::Replace { slot, record } => replace(page, usize::from(*slot), *record),
        PageOp::Remove { from, to } => remove(page, usize::from(*from), usize::from(*to)),
        PageOp::Keep { from, to, lower, upper, right } => {
            keep(page, usize::from(*from), usize::from(*to), lower, *upper, *right)
        }
        PageOp::SetRight { right } => {
            header::set_right(page, *right);
            Ok(true)
        }
        PageOp::SetBits { from, count } => bits(page, *from, *count, true),
        PageOp::ClearBits { from, count } => bits(page, *from, *count, false),
        PageOp::InsertRun { entries } => whole_run(page, entries, lsn),
        PageOp::AddToRecord { slot, offset, delta } => add(page, usize::from(*slot), usize::from(*offset), *delta),
    }?;
    if done {
        header::set_lsn(page, lsn);
    }
    Ok(done)
}

/// The sizes of a tree page's parts, which are known to fit in the page.
#[derive(Clone, Copy)]
pub(super) struct TreePage {
    pub(super) keys_at: usize,
    count: usize,
    inner: bool,
    pub(super) keys: KeyState,
    pub(super) records: RecordState,
}

impl TreePage {
    #[inline(always)]
    pub(super) fn of(view: Page<'_>) -> Result<TreePage> {
        if !(view.is_leaf() || view.is_inner() || view.is_heap()) {
            return Err(Error::corrupt(view.id(), "an operation on entries of a page without entries"));
        }
        let count = view.count();
        let granule = view.granule();
        let header = view.header();
        let kind = key_list_kind(header).map_err(|what| Error::corrupt(view.id(), what))?;
        let (key_bytes, record_bytes) = (header.u16(header::KEY_BYTES), header.u16(header::RECORD_BYTES));
        let (keys_at, inner) = (view.keys_at(), view.is_inner());
        let room = view.bytes().len().saturating_sub(keys_at + record_bytes);
        let tree = TreePage {
            keys_at,
            count,
            inner,
            keys: KeyState { kind, bytes: key_bytes, count, granule, inner, room },
            records: RecordState { kind: view.records(), bytes: record_bytes, count, granule },
        };
        let size = view.bytes().len();
        if tree.used() > size {
            return Err(Error::corrupt(view.id(), format!("its parts do not fit a page of {size} bytes")));
        }
        if !keys::is_changeable(view.key_bytes(), tree.keys)
            || !records::is_changeable(view.record_bytes(), tree.records)
        {
            return Err(Error::corrupt(view.id(), format!("its lists cannot hold {count} entries")));
        }
        Ok(tree)
    }

    fn used(&self) -> usize {
        self.keys_at + self.keys.bytes + self.records.bytes
    }
}

/// Returns the bytes from the key list up to the record list.
pub(super) fn key_list<'p>(page: &'p mut [u8], tree: &TreePage) -> &'p mut [u8] {
    let end = page.len().saturating_sub(tree.records.bytes);
    page.get_mut(tree.keys_at..end).unwrap_or_default()
}

/// Returns the last `len` bytes of a page, where a record list of that length is.
pub(super) fn record_list(page: &mut [u8], len: usize) -> &mut [u8] {
    let at = page.len().saturating_sub(len);
    page.get_mut(at..).unwrap_or_default()
}

fn bits(page: &mut [u8], from: u32, count: u32, set: bool) -> Result<bool> {
    let view = Page::new(page);
    let id = view.id();
    if view.kind() == PageKind::Map && put_bits(page, from, count, set) {
        return Ok(true);
    }
    Err(Error::corrupt(id, format!("not an allocation map, or too short for bits {from} to {from} + {count}")))
}

/// An insertion that is allowed, with the state of the page before it.
struct Insertion<'k> {
    tree: TreePage,
    suffix: &'k [u8],
    /// The key list's state with the room that the new record list leaves; `None` if there is no room.
    keys: Option<KeyState>,
    record_bytes: usize,
}

#[inline(always)]
fn plan_insert<'k>(view: Page<'_>, slot: usize, key: &'k [u8], record: Record<'_>) -> Result<Insertion<'k>> {
    let (size, id) = (view.bytes().len(), view.id());
    let tree = TreePage::of(view)?;
    if slot > tree.count || (tree.inner && slot == 0 && tree.count > 0) {
        return Err(Error::corrupt(id, format!("an insert at slot {slot} of a page with {} entries", tree.count)));
    }
    if key.len() > limits::max_inline_key(size) + 1 {
        return Err(Error::corrupt(id, format!("an insert of a key of {} bytes", key.len())));
    }
    let suffix = if tree.inner && slot == 0 { Some(&[][..]) } else { bytes::strip_prefix(key, view.prefix()) };
    let Some(suffix) = suffix else {
        return Err(Error::corrupt(id, "an insert of a key without the page's prefix"));
    };
    let record_bytes =
        records::bytes_with(view.record_bytes(), tree.records, record).map_err(|what| Error::corrupt(id, what))?;
    let room = size.checked_sub(tree.keys_at + record_bytes).filter(|_| tree.count < usize::from(u16::MAX));
    Ok(Insertion { tree, suffix, keys: room.map(|room| KeyState { room, ..tree.keys }), record_bytes })
}

/// Returns true if [`apply`] would do the insertion. The page stays unchanged.
///
/// # Errors
/// Those of [`apply`].
pub fn would_insert(page: Page<'_>, slot: usize, key: &[u8], record: Record<'_>) -> Result<bool> {
    let Insertion { suffix, keys, .. } = plan_insert(page, slot, key, record)?;
    let Some(state) = keys else { return Ok(false) };
    match keys::would_insert(page.id(), page.key_bytes(), state, slot, suffix)? {
        Some(fits) => Ok(fits),
        // A list of blocks finds out only by trying.
        None => {
            let mut copy = page.bytes().to_vec();
            insert(&mut copy, slot, key, record)
        }
    }
}

pub(super) fn insert(page: &mut [u8], slot: usize, key: &[u8], record: Record<'_>) -> Result<bool> {
    let view = Page::new(page);
    let id = view.id();
    let Insertion { tree, suffix, keys, record_bytes } = plan_insert(view, slot, key, record)?;
    let Some(state) = keys else { return Ok(false) };
    let Some(key_bytes) = keys::insert(id, key_list(page, &tree), state, slot, suffix)? else { return Ok(false) };
    records::insert(record_list(page, record_bytes), tree.records, slot, record);
    header::set_lists(page, tree.count + 1, key_bytes, record_bytes);
    Ok(true)
}

/// Inserts all entries of a run or none.
fn whole_run(page: &mut [u8], entries: &[NewEntry<'_>], lsn: Lsn) -> Result<bool> {
    let mut changed = page.to_vec();
    let done = insert_run(&mut changed, entries, lsn)? == entries.len();
    if done {
        page.copy_from_slice(&changed);
    }
    Ok(done)
}

fn replace(page: &mut [u8], slot: usize, record: Record<'_>) -> Result<bool> {
    let view = Page::new(page);
    let id = view.id();
    let tree = TreePage::of(view)?;
    if slot >= tree.count {
        return Err(Error::corrupt(id, format!("a replacement of slot {slot} of a page with {} entries", tree.count)));
    }
    let record_bytes = records::bytes_replacing(view.record_bytes(), tree.records, slot, record)
        .map_err(|what| Error::corrupt(id, what))?;
    let room = page.len().checked_sub(tree.keys_at + record_bytes);
    let key_bytes = match room {
        Some(room) if tree.keys.bytes <= room => tree.keys.bytes,
        Some(room) => match keys::vacuumize(key_list(page, &tree), KeyState { room, ..tree.keys }) {
            Some(key_bytes) => key_bytes,
            None => return Ok(false),
        },
        None => return Ok(false),
    };
    records::replace(record_list(page, record_bytes.max(tree.records.bytes)), tree.records, slot, record);
    header::set_lists(page, tree.count, key_bytes, record_bytes);
    Ok(true)
}

fn add(page: &mut [u8], slot: usize, offset: usize, delta: i64) -> Result<bool> {
    let view = Page::new(page);
    let id = view.id();
    let tree = TreePage::of(view)?;
    if slot >= tree.count {
        return Err(Error::corrupt(id, format!("an addition to slot {slot} of a page with {} entries", tree.count)));
    }
    let record = records::inline_mut(record_list(page, tree.records.bytes), tree.records, slot);
    let Some(number) = record.get_mut(offset..).and_then(<[u8]>::first_chunk_mut) else {
        return Err(Error::corrupt(id, format!("the record of slot {slot} has no number at byte {offset}")));
    };
    *number = u64::from_le_bytes(*number).saturating_add_signed(delta).to_le_bytes();
    Ok(true)
}

fn remove(page: &mut [u8], from: usize, to: usize) -> Result<bool> {
    let view = Page::new(page);
    let tree = TreePage::of(view)?;
    if from > to || to > tree.count {
        return Err(Error::corrupt(
            view.id(),
            format!("a removal of slots {from} to {to} of a page with {} entries", tree.count),
        ));
    }
    if from == to {
        return Ok(true);
    }
    if tree.inner && from == 0 && to < tree.count {
        return remove_first_children(page, to);
    }
    let id = view.id();
    let room = page.len().saturating_sub(tree.keys_at + tree.records.bytes);
    let state = KeyState { room, ..tree.keys };
    let removal = records::plan_removal(view.record_bytes(), tree.records, from, to);
    let removal = removal.map_err(|what| Error::corrupt(id, what))?;
    let Some(key_bytes) = keys::remove(id, key_list(page, &tree), state, from, to)? else { return Ok(false) };
    let record_bytes = records::remove(record_list(page, tree.records.bytes), tree.records, from, to, &removal);
    header::set_lists(page, tree.count - (to - from), key_bytes, record_bytes);
    Ok(true)
}

/// Removes the first entries of an inner page. The first remaining key becomes the bare prefix, so the page is laid out
/// again under its own fences.
fn remove_first_children(page: &mut [u8], to: usize) -> Result<bool> {
    let view = Page::new(page);
    let mut upper = Vec::new();
    let upper = view.upper_fence_into(&mut upper).then_some(upper.as_slice());
    let packed = rebuilt(view, to, view.count(), view.lower_fence(), upper, view.right());
    let Some(packed) = packed else {
        return Err(Error::corrupt(view.id(), "its entries cannot be laid out again"));
    };
    unpack(&packed, page).map(|()| true)
}

fn keep(page: &mut [u8], from: usize, to: usize, lower: &[u8], upper: Option<&[u8]>, right: PageId) -> Result<bool> {
    let (size, view) = (page.len(), Page::new(page));
    let tree = TreePage::of(view)?;
    let longest = limits::max_inline_key(size) + 1;
    if from > to || to > tree.count || lower.len() > longest || upper.is_some_and(|upper| upper.len() > longest) {
        return Err(Error::corrupt(
            view.id(),
            format!("an operation that keeps slots {from} to {to} of a page with {} entries", tree.count),
        ));
    }
    // Keys are in order, so the first and the last key are enough, if the page has keys. An inner page's first key
    // becomes the lower fence.
    let first = match tree.keys.kind.keys_are_out_of_line() {
        true => to,
        false if tree.inner => from + 1,
        false => from,
    };
    let mut key = Vec::new();
    for slot in [first, to.wrapping_sub(1)].into_iter().filter(|slot| (first..to).contains(slot)) {
        view.key_into(slot, &mut key);
        let within = !strictly_below(&key, lower, size) && upper.is_none_or(|upper| may_precede(&key, upper, size));
        if !within {
            return Err(Error::corrupt(view.id(), "an operation keeps keys outside the new fences"));
        }
    }
    match rebuilt(view, from, to, lower, upper, right) {
        Some(packed) => unpack(&packed, page).map(|()| true),
        None => Ok(false),
    }
}

fn strictly_below(key: &[u8], fence: &[u8], page_size: usize) -> bool {
    super::order::compare_images(key, fence, page_size).is_some_and(std::cmp::Ordering::is_lt)
}

/// Returns the packed page of the entries `[from, to)` under new fences; `None` if they do not fit.
fn rebuilt(
    view: Page<'_>,
    from: usize,
    to: usize,
    lower: &[u8],
    upper: Option<&[u8]>,
    right: PageId,
) -> Option<Vec<u8>> {
    let spec = PageSpec {
        id: view.id(),
        table: view.table(),
        kind: view.kind(),
        level: view.level(),
        keys: view.keys(),
        records: view.records(),
        lower,
        upper,
        right,
    };
    let mut builder = PageBuilder::new(view.bytes().len(), &spec);
    if !builder.push_entries(view, from..to, None) {
        return None;
    }
    let mut packed = builder.finish();
    bytes::put_u64(&mut packed, header::LSN, view.lsn().0);
    (packed.len() <= view.bytes().len()).then_some(packed)
}

//! Small functions that several changes of the tree use: page specifications, formatting.

use super::{PageRead, PageWrite, Tree};
use crate::base::{Error, PageId, Result};
use crate::page::{Page, PageKind, PageOp, PageSpec, RecordListKind};

/// The slot as a number of an operation.
pub(super) fn slot_u16(page: Page<'_>, slot: usize) -> Result<u16> {
    u16::try_from(slot).map_err(|_| Error::corrupt(page.id(), format!("slot {slot} is out of range")))
}

/// True if the entries take less than a quarter of the page without its header and fences.
pub(super) fn is_underfull(page: Page<'_>) -> bool {
    let front = page.front();
    page.used().saturating_sub(front) < page.bytes().len().saturating_sub(front) / 4
}

/// The record of an entry in an inner page.
pub(super) fn child_record(child: PageId) -> [u8; 4] {
    child.0.to_le_bytes()
}

impl Tree {
    /// The specification of a new page of this tree.
    pub(super) fn spec<'a>(
        &self,
        id: PageId,
        level: u8,
        lower: &'a [u8],
        upper: Option<&'a [u8]>,
        right: PageId,
    ) -> PageSpec<'a> {
        let leaf = level == 0;
        PageSpec {
            id,
            table: self.table,
            kind: if leaf { PageKind::Leaf } else { PageKind::Inner },
            level,
            keys: if leaf { self.layout.leaf } else { self.layout.inner },
            records: if leaf { self.layout.records } else { RecordListKind::Fixed },
            lower,
            upper,
            right,
        }
    }

    /// Replaces the content of a latched page.
    pub(super) fn format_page<S: PageWrite>(&self, store: &S, page: &mut S::Mut<'_>, packed: Vec<u8>) -> Result<()> {
        self.must_fit(store, page, &PageOp::Format { packed: packed.into() })
    }

    /// Applies an operation that always fits.
    pub(super) fn must_fit<S: PageWrite>(&self, store: &S, page: &mut S::Mut<'_>, op: &PageOp<'_>) -> Result<()> {
        if store.apply(page, op)? {
            return Ok(());
        }
        let page = Page::new(page);
        Err(Error::corrupt(page.id(), "a change that makes it smaller does not fit in it"))
    }
}

/// Reads a page and releases its latch. For the writer, because no other thread changes pages.
pub(super) fn peek<S: PageRead, R>(store: &S, id: PageId, f: impl FnOnce(Page<'_>) -> R) -> Result<R> {
    let latched = store.read(id)?;
    Ok(f(Page::new(&latched)))
}

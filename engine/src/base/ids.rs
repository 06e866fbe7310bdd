//! Newtypes for ids and LSNs, so that the compiler rejects a page id in the place of an LSN.

use std::fmt;

/// The id of a page. Ids are dense from 0, so an array can be indexed by them. The id of a freed page is used again.
/// Page 0 is the first allocation map and never a child or a sibling, so 0 also means "none".
///
/// ```
/// use duramen::base::PageId;
///
/// assert_eq!(PageId(7).to_string(), "7", "the form in error messages");
/// assert!(PageId::NONE.is_none() && !PageId(7).is_none());
/// assert!(PageId::UNKNOWN.is_unknown() && PageId::UNKNOWN.to_string() == "unknown");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct PageId(pub u32);

impl PageId {
    /// No page: the right sibling of the last leaf.
    pub const NONE: PageId = PageId(0);
    /// A page whose id is unknown because of damage. No page has this id.
    pub const UNKNOWN: PageId = PageId(u32::MAX);

    /// True for [`PageId::NONE`].
    pub fn is_none(self) -> bool {
        self == PageId::NONE
    }

    /// True for [`PageId::UNKNOWN`].
    pub fn is_unknown(self) -> bool {
        self == PageId::UNKNOWN
    }
}

impl fmt::Display for PageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_unknown() {
            return f.write_str("unknown");
        }
        write!(f, "{}", self.0)
    }
}

/// The id of a table. A database never uses an id for a second table. The catalog has the id 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct TableId(pub u32);

impl TableId {
    /// The catalog, which is itself a table.
    pub const CATALOG: TableId = TableId(0);
}

impl fmt::Display for TableId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A log sequence number: a byte position in the endless log of a database, and the clock of the engine. LSNs never
/// restart, not even when the log files are removed.
///
/// ```
/// use duramen::base::Lsn;
///
/// assert_eq!(Lsn(4096).plus(512), Lsn(4608));
/// assert!(Lsn::ZERO < Lsn(1) && Lsn(1) < Lsn::MAX);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Lsn(pub u64);

impl Lsn {
    /// Less than the LSN of every operation.
    pub const ZERO: Lsn = Lsn(0);
    /// Greater than the LSN of every operation.
    pub const MAX: Lsn = Lsn(u64::MAX);

    /// The position `bytes` bytes after this one.
    pub fn plus(self, bytes: usize) -> Lsn {
        Lsn(self.0.saturating_add(bytes as u64))
    }
}

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

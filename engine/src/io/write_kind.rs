//! [`WriteKind`]: what a write to a disk writes. Counting must not be here.

/// What a write to a [`Disk`](super::Disk) writes.
///
/// ```
/// use duramen::io::{Disk, MemoryDisk, WriteKind};
///
/// let disk = MemoryDisk::new();
/// disk.write_as(WriteKind::Page, 0, b"a page")?;
/// assert_eq!((disk.size()?, WriteKind::Page.name()), (6, "page"));
/// # Ok::<(), duramen::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum WriteKind {
    /// The redo log, with the headers of its segments.
    Log,
    /// Whole pages.
    Page,
    /// Changes of pages: delta blocks.
    Delta,
    /// What a page store needs to find its pages: the page table.
    Table,
    /// The superblocks of a database.
    Superblock,
    /// Anything else.
    Other,
}

impl WriteKind {
    /// All kinds, each at the position of its number.
    pub const ALL: [WriteKind; 6] =
        [WriteKind::Log, WriteKind::Page, WriteKind::Delta, WriteKind::Table, WriteKind::Superblock, WriteKind::Other];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            WriteKind::Log => "log",
            WriteKind::Page => "page",
            WriteKind::Delta => "delta",
            WriteKind::Table => "table",
            WriteKind::Superblock => "superblock",
            WriteKind::Other => "other",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_at_the_position_of_its_number() {
        for (at, kind) in WriteKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, at, "{}", kind.name());
        }
    }
}

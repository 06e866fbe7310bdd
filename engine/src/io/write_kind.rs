//! [`WriteKind`]: what a write to a disk contains.

/// The kind of content that a write to a [`Disk`](super::Disk) has.
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
    /// The data by which a page store finds its pages: the page table of `table`, the map of `shadow`.
    Table,
    /// The superblocks of a database.
    Superblock,
    /// All other writes.
    Other,
}

impl WriteKind {
    /// All kinds. The index of a kind is its number.
    pub const ALL: [WriteKind; 6] =
        [WriteKind::Log, WriteKind::Page, WriteKind::Delta, WriteKind::Table, WriteKind::Superblock, WriteKind::Other];

    /// The name in reports.
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

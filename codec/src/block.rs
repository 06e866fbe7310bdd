//! The descriptor of a block and the small types that operations take and give. No codec belongs here.

use crate::Int;

/// The most keys a block may have. [`crate::Codec::Bp128`] allows 128.
pub const MAX_BLOCK: usize = 256;

/// Room for the keys of any block. Decoders may write anything beyond the block's count.
pub type Buffer<T> = [T; MAX_BLOCK];

/// What the caller keeps of a block, beside its bytes: an entry of a block index.
///
/// The first key is in no codec's bytes, so a block of one key has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Block<T> {
    /// The smallest key; zero in an empty block.
    pub first: T,
    /// The largest key; zero in an empty block.
    pub last: T,
    /// How many keys, at most [`crate::Codec::max_count`].
    pub count: u16,
    /// Codecs of whole bytes (`Plain`, `VByte`, `MaskedVByte`, `VarIntGb`, `StreamVByte`): bytes used. Packed codecs
    /// (`For`, `SimdFor`, `Bp128`): bits per key; the bytes used follow from it and `count`.
    pub extent: u16,
}

impl<T: Int> Block<T> {
    /// The smallest key, without touching the bytes.
    pub fn min(&self) -> Option<T> {
        (self.count > 0).then_some(self.first)
    }

    /// The largest key, without touching the bytes.
    pub fn max(&self) -> Option<T> {
        (self.count > 0).then_some(self.last)
    }
}

/// Where a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// How many keys are smaller than the one sought: the index of the first key at least as large.
    pub index: usize,
    /// Whether the key at `index` is the one sought.
    pub exact: bool,
}

/// What an insert or a remove did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edit {
    /// The key was inserted at, or removed from, this index.
    Done(usize),
    /// Nothing to do: an inserted key is already at this index, a key to remove is missing from it.
    Unchanged(usize),
}

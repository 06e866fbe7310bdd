//! The descriptor of a block, and the parameter and result types of operations.

use crate::Int;

/// The maximum number of keys that a block can have. [`crate::Codec::Bp128`] allows 128.
pub const MAX_BLOCK: usize = 256;

/// A buffer for the keys of any block. Decoders may overwrite all of it, also after the block's last key.
pub type Buffer<T> = [T; MAX_BLOCK];

/// The descriptor of a block: what the caller keeps beside the bytes of the block. It is an entry of a block index.
///
/// The first key is in the descriptor only, so a block of one key has no bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Block<T> {
    /// The smallest key; zero in an empty block.
    pub first: T,
    /// The largest key; zero in an empty block.
    pub last: T,
    /// The number of keys, at most [`crate::Codec::max_count`].
    pub count: u16,
    /// For codecs of whole bytes (`Plain`, `VByte`, `MaskedVByte`, `VarIntGb`, `StreamVByte`): the number of bytes
    /// used. For packed codecs (`For`, `SimdFor`, `Bp128`): bits per key. Their number of bytes follows from it and
    /// from `count`.
    pub extent: u16,
}

impl<T: Int> Block<T> {
    /// The smallest key. It does not need the bytes of the block.
    pub fn min(&self) -> Option<T> {
        (self.count > 0).then_some(self.first)
    }

    /// The largest key. It does not need the bytes of the block.
    pub fn max(&self) -> Option<T> {
        (self.count > 0).then_some(self.last)
    }
}

/// The result of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The index of the first key that is not less than the searched key: the number of smaller keys.
    pub index: usize,
    /// True if the key at `index` is the searched key.
    pub exact: bool,
}

/// The result of an insert or a remove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edit {
    /// The key was inserted at, or removed from, this index.
    Done(usize),
    /// Nothing changed: the key to insert is already at this index, or the key to remove is missing and would be at it.
    Unchanged(usize),
}

//! The errors of block operations.

use core::fmt;

/// The result of a block operation.
pub type Result<T> = core::result::Result<T, Error>;

/// The reason why a block operation was refused. The block and its bytes are always unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The bytes and the descriptor are not a block of this codec.
    Corrupt(&'static str),
    /// The block would need `needed` bytes, and the slice is shorter.
    NoRoom {
        /// The number of bytes that the block would have.
        needed: usize,
    },
    /// The block has as many keys as the codec allows.
    Full,
    /// Keys to encode or append are not strictly increasing.
    NotIncreasing,
    /// The index is not less than the number of keys.
    OutOfRange,
}

/// The descriptor claims more bytes than the slice has.
pub(crate) const LONGER: Error = Error::Corrupt("block longer than its bytes");
/// A search reached the end of the keys before the last key of the descriptor.
pub(crate) const ENDS_BELOW: Error = Error::Corrupt("keys end below the last key");
/// A key is not greater than the key before it.
pub(crate) const OUT_OF_ORDER: Error = Error::Corrupt("keys out of order");
/// The descriptor has more keys than a block of the codec.
pub(crate) const TOO_MANY: Error = Error::Corrupt("too many keys");
/// The body ends within a gap.
pub(crate) const CUT: Error = Error::Corrupt("truncated gap");
/// A gap has more bytes or bits than a key.
pub(crate) const LONG: Error = Error::Corrupt("gap beyond the key type");
/// The body is longer than its gaps.
pub(crate) const LEFT_OVER: Error = Error::Corrupt("bytes after the last gap");

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Corrupt(what) => write!(f, "corrupt block: {what}"),
            Error::NoRoom { needed } => write!(f, "the block needs {needed} bytes"),
            Error::Full => f.write_str("the block is full"),
            Error::NotIncreasing => f.write_str("keys are not strictly increasing"),
            Error::OutOfRange => f.write_str("index beyond the block's keys"),
        }
    }
}

impl core::error::Error for Error {}

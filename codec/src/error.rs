//! What can go wrong with a block. Nothing else.

use core::fmt;

/// The result of a block operation.
pub type Result<T> = core::result::Result<T, Error>;

/// Why a block operation was refused. The block and its bytes are unchanged in every case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The bytes or the descriptor are not a block of this codec.
    Corrupt(&'static str),
    /// The block would need `needed` bytes, more than the slice has.
    NoRoom {
        /// Bytes the block would have.
        needed: usize,
    },
    /// The block has as many keys as the codec allows.
    Full,
    /// Keys to encode or append are not strictly increasing.
    NotIncreasing,
    /// The index is not below the block's count.
    OutOfRange,
}

/// A descriptor that claims more bytes than there are.
pub(crate) const LONGER: Error = Error::Corrupt("block longer than its bytes");
/// A search came to the end below the descriptor's last key.
pub(crate) const ENDS_BELOW: Error = Error::Corrupt("keys end below the last key");
/// A gap whose bytes the body does not have.
pub(crate) const CUT: Error = Error::Corrupt("gap cut short");
/// A gap of more bytes or bits than a key.
pub(crate) const LONG: Error = Error::Corrupt("gap beyond the key type");
/// A body with more bytes than its gaps take.
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

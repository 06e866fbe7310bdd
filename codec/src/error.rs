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

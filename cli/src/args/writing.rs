//! Options of commands that write many pages.

use crate::size;
use bytesize::ByteSize;
use clap::{Args, ValueEnum};
use duramen::db::LogShape;

/// The log, the bounds of the work of a recovery, and threads.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct WriteOptions {
    /// The shape of the log [default: packed]
    #[arg(long = "log", value_name = "SHAPE")]
    pub(crate) shape: Option<Shape>,
    /// A checkpoint begins when a recovery would read this number of bytes of log [default: 64M]
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    pub(crate) checkpoint_bytes: Option<ByteSize>,
    /// A checkpoint begins when a recovery would read this number of pages [default: as many as the cache holds,
    /// at least 65536]
    #[arg(long, value_name = "COUNT")]
    pub(crate) checkpoint_pages: Option<u64>,
    #[command(flatten)]
    pub(crate) threads: Threads,
}

/// The threads of commands that write many pages.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct Threads {
    /// The maximum number of threads that compress pages that are written together [default: one for each processor, at
    /// most 4]
    #[arg(long = "compression-threads", value_name = "COUNT", value_parser = clap::value_parser!(u8).range(1..))]
    pub(crate) compression: Option<u8>,
}

/// The shape of the log while a command runs.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shape {
    /// Without padding
    Packed,
    /// Each flush begins a block of 4 KiB, and zeros fill its last one; for drives that compress
    Sparse,
}

impl From<Shape> for LogShape {
    fn from(shape: Shape) -> LogShape {
        match shape {
            Shape::Packed => LogShape::Packed,
            Shape::Sparse => LogShape::Sparse,
        }
    }
}

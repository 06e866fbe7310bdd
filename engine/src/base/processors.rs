//! The number of processors.

use std::num::NonZero;
use std::sync::LazyLock;

/// The number of threads that the system runs at the same time, at least 1. The system reads files to compute it, which
/// takes longer than a small query, so it is computed once.
pub(crate) fn processors() -> usize {
    static PROCESSORS: LazyLock<usize> = LazyLock::new(|| std::thread::available_parallelism().map_or(1, NonZero::get));
    *PROCESSORS
}

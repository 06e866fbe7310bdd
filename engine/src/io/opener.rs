//! The process that has opened a file. A child process that `fork` makes later has copies of the open files, but the
//! state in its memory soon differs from that of its parent. If it wrote to the files, it would damage them.

use super::process_id::process_id;
use crate::base::{Error, Result};
use std::path::Path;

/// The process that has opened a file, a folder or a database.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opener(u64);

impl Opener {
    /// The running process.
    pub(crate) fn this() -> Opener {
        Opener(process_id())
    }

    /// True if it is the running process.
    #[inline]
    pub(crate) fn is_this(self) -> bool {
        process_id() == self.0
    }

    /// Fails in any other process. `path` is that of the opened file.
    pub(crate) fn check(self, path: &Path) -> Result<()> {
        if self.is_this() { Ok(()) } else { Err(Error::Forked { path: path.to_owned() }) }
    }
}

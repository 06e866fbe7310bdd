//! The files of a database after the death of its process.

use super::files;
use duramen::Result;
use duramen::io::MemoryVolume;
use std::sync::Arc;

/// Copies the files whose names begin with `name`.
pub(crate) fn killed(volume: &MemoryVolume, name: &str) -> Result<Arc<MemoryVolume>> {
    let copy = MemoryVolume::new();
    files::copy(volume, &copy, name)?;
    Ok(Arc::new(copy))
}

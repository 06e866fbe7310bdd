//! The files of a database after the death of its process.

use duramen::Result;
use duramen::io::{MemoryVolume, OpenMode, Volume};
use std::sync::Arc;

/// Copies the files whose names begin with `name`.
pub(crate) fn killed(volume: &MemoryVolume, name: &str) -> Result<Arc<MemoryVolume>> {
    let copy = MemoryVolume::new();
    for file in volume.list(name)? {
        let disk = volume.open(&file, OpenMode::Read)?;
        let mut bytes = vec![0; usize::try_from(disk.size()?).unwrap()];
        disk.read_at(0, &mut bytes)?;
        copy.open(&file, OpenMode::CreateNew)?.write_at(0, &bytes)?;
    }
    Ok(Arc::new(copy))
}

//! The files of simulated volumes.

use duramen::Result;
use duramen::io::{OpenMode, Volume};

/// The bytes of a file.
pub(crate) fn bytes_of(volume: &dyn Volume, name: &str) -> Result<Vec<u8>> {
    let file = volume.open(name, OpenMode::Read)?;
    let mut bytes = vec![0; usize::try_from(file.size()?).unwrap()];
    file.read_at(0, &mut bytes)?;
    Ok(bytes)
}

/// Copies the files whose names begin with `prefix`, as a killed process leaves them.
pub(crate) fn copy(from: &dyn Volume, to: &dyn Volume, prefix: &str) -> Result<()> {
    let copy_one = |name: &String| to.open(name, OpenMode::CreateNew)?.write_at(0, &bytes_of(from, name)?);
    from.list(prefix)?.iter().try_for_each(copy_one)
}

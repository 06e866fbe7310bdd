//! Files without the cache of the system: forgetting them, and reading them from the device in order.

use crate::Result;
use crate::contest::memory::files;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Bytes of a read.
const CHUNK: usize = 1 << 20;

/// Removes the files below a folder from the cache of the system. No process may have them open.
pub(super) fn forget(folder: &Path) -> Result<()> {
    for path in files(folder)? {
        let file = File::open(&path)?;
        // Bytes that are not on the device would stay in the cache.
        file.sync_all()?;
        drop_cache(&file)?;
    }
    Ok(())
}

#[cfg(target_os = "linux")]
fn drop_cache(file: &File) -> Result<()> {
    Ok(rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed)?)
}

#[cfg(not(target_os = "linux"))]
fn drop_cache(_: &File) -> Result<()> {
    Err("this system cannot drop files from its cache".into())
}

/// Reads the files below a folder from their beginning to their end, as `dd` with blocks of 1 MiB does. Returns the
/// bytes.
pub(super) fn read_in_order(folder: &Path) -> Result<u64> {
    let mut chunk = vec![0; CHUNK];
    let mut bytes = 0;
    for path in files(folder)? {
        let mut file = File::open(&path)?;
        loop {
            match file.read(&mut chunk)? {
                0 => break,
                read => bytes += read as u64,
            }
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forgotten_files_are_read_whole() {
        let folder = tempfile::tempdir_in(".").unwrap();
        std::fs::write(folder.path().join("a"), vec![1; 3 * CHUNK + 1]).unwrap();
        std::fs::write(folder.path().join("b"), [2]).unwrap();
        forget(folder.path()).unwrap();
        assert_eq!(read_in_order(folder.path()).unwrap(), 3 * CHUNK as u64 + 2);
    }
}

//! The memory of a process, the bytes that it writes, and the device space of a folder, from the system.

use crate::Result;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Bytes of a block, the unit in which the system counts allocated space.
const STAT_BLOCK: u64 = 512;

/// Bytes of memory that this process has now.
pub(crate) fn resident() -> Result<u64> {
    status("VmRSS:")
}

/// The maximum memory of this process since [`reset_peak`], in bytes.
pub(crate) fn peak_resident() -> Result<u64> {
    status("VmHWM:")
}

/// Resets the peak.
pub(crate) fn reset_peak() -> Result<()> {
    Ok(std::fs::write("/proc/self/clear_refs", "5")?)
}

fn status(field: &str) -> Result<u64> {
    let text = std::fs::read_to_string("/proc/self/status")?;
    let kib = text.lines().find_map(|line| line.strip_prefix(field)?.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    Ok(kib.ok_or_else(|| format!("/proc/self/status has no {field}"))? * 1024)
}

/// Bytes of all write calls of this process so far. A write through mapped memory is no call.
pub(crate) fn written() -> Result<u64> {
    let text = std::fs::read_to_string("/proc/self/io")?;
    let bytes = text.lines().find_map(|line| line.strip_prefix("wchar:")?.trim().parse().ok());
    Ok(bytes.ok_or("/proc/self/io has no wchar")?)
}

/// Bytes that the files below a folder have allocated.
pub(crate) fn allocated(folder: &Path) -> Result<u64> {
    let mut blocks = 0;
    for file in files(folder)? {
        match file.metadata() {
            Ok(metadata) => blocks += metadata.blocks(),
            // A log segment may be removed at the same time.
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => {}
            Err(cause) => return Err(cause.into()),
        }
    }
    Ok(blocks * STAT_BLOCK)
}

/// The files below a folder.
pub(crate) fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => files.extend(self::files(&entry.path())?),
            false => files.push(entry.path()),
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocated_bytes_exclude_holes() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(allocated(folder.path()).unwrap(), 0);
        let file = std::fs::File::create(folder.path().join("holes")).unwrap();
        file.set_len(1 << 30).unwrap();
        std::fs::create_dir(folder.path().join("below")).unwrap();
        let full = folder.path().join("below/full");
        std::fs::write(&full, vec![1; 1 << 20]).unwrap();
        std::fs::File::open(&full).unwrap().sync_all().unwrap();
        let bytes = allocated(folder.path()).unwrap();
        assert!((1 << 20..2 << 20).contains(&bytes), "{bytes}");
    }

    #[test]
    fn bytes_of_write_calls_are_counted() {
        let before = written().unwrap();
        std::fs::write(tempfile::tempdir().unwrap().path().join("file"), vec![1; 1 << 20]).unwrap();
        assert!(written().unwrap() >= before + (1 << 20));
    }

    #[test]
    fn a_touched_allocation_is_resident_and_remembered_as_peak() {
        reset_peak().unwrap();
        let before = resident().unwrap();
        let block = std::hint::black_box(vec![1u8; 64 << 20]);
        assert!(resident().unwrap() >= before + (60 << 20));
        drop(block);
        assert!(peak_resident().unwrap() >= before + (60 << 20));
    }
}

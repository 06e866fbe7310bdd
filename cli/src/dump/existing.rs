//! The file that is already at the path of a dump: whether the dump may overwrite it, and whether it is an open
//! descriptor.

use duramen::db::FILE_MAGIC;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The first bytes of blocks that a dump must not overwrite: those of databases, of their logs, and of devices with a
/// database.
const PROTECTED: [[u8; 8]; 3] = [FILE_MAGIC, *b"DURALOG\n", *b"DURADEV\n"];
/// The number of blocks that are searched. A database begins with two superblocks. On a device, two copies of the
/// device header are before them. One block of each pair may be damaged.
const BLOCKS: usize = 4;
/// The length of a block.
const BLOCK: usize = 4096;

/// True if `file`, read from its position, is a database, a log, or a device with a database.
pub(super) fn is_database(file: &File) -> io::Result<bool> {
    let mut front = Vec::new();
    file.take((BLOCKS * BLOCK) as u64).read_to_end(&mut front)?;
    Ok(front.chunks(BLOCK).any(|block| PROTECTED.iter().any(|magic| block.starts_with(magic))))
}

/// True if both are the same file or the same block device.
pub(super) fn is_same(one: &Metadata, other: &Metadata) -> bool {
    let is_file = (one.dev(), one.ino()) == (other.dev(), other.ino());
    let are_devices = one.file_type().is_block_device() && other.file_type().is_block_device();
    is_file || are_devices && one.rdev() == other.rdev()
}

/// The number of the open descriptor that `path` names, such as 1 for `/dev/stdout` and 7 for `/dev/fd/7`. Follows
/// links.
pub(super) fn descriptor(path: &Path) -> Option<u32> {
    let mut path = path.to_owned();
    // More links than a path can have.
    for _ in 0..64 {
        let parent = fs::canonicalize(folder(&path)).ok()?;
        let are_descriptors = |folder| fs::canonicalize(folder).is_ok_and(|folder| folder == parent);
        let name = path.file_name()?;
        if ["/proc/self/fd", "/dev/fd"].into_iter().any(are_descriptors) {
            return name.to_str()?.parse().ok();
        }
        path = parent.join(fs::read_link(parent.join(name)).ok()?);
    }
    None
}

/// The target of links, which need not exist. A cycle of links is an error.
pub(super) fn resolved(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    loop {
        match (fs::canonicalize(&path), fs::read_link(&path)) {
            (Err(error), Ok(to)) if error.kind() == io::ErrorKind::NotFound => path = folder(&path).join(to),
            (Err(error), _) if error.kind() == io::ErrorKind::NotFound => return Ok(path),
            (found, _) => return found,
        }
    }
}

/// The folder of a file.
pub(super) fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_file_with_one_magic_left_is_a_database_and_an_unreadable_one_an_error() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("f");
        let judge = |content: &[u8]| {
            fs::write(&path, content).unwrap();
            is_database(&File::open(&path).unwrap()).unwrap()
        };
        for magic in PROTECTED {
            for block in 0..BLOCKS {
                let mut content = vec![0xA5; BLOCKS * BLOCK];
                content[block * BLOCK..][..8].copy_from_slice(&magic);
                assert!(judge(&content) && judge(&content[..block * BLOCK + 8]), "{magic:?} in block {block}");
                assert!(!judge(&content[..block * BLOCK + 7]), "{magic:?} in block {block}");
            }
        }
        assert!(!judge(b"") && !judge(b"duramen dump 1\n"));
        // A folder can be opened, but not read.
        assert!(is_database(&File::open(place.path()).unwrap()).is_err());
    }

    #[test]
    fn descriptors_are_found_through_links() {
        let place = tempfile::tempdir().unwrap();
        let link = |name: &str, to: &str| {
            symlink(to, place.path().join(name)).unwrap();
            descriptor(&place.path().join(name))
        };
        assert_eq!(descriptor(Path::new("/dev/stdout")), Some(1));
        assert_eq!(descriptor(Path::new("/dev/fd/7")), Some(7));
        assert_eq!(descriptor(Path::new("/proc/self/fd/2")), Some(2));
        assert_eq!([link("out", "/dev/stdout"), link("again", "out")], [Some(1); 2]);
        assert_eq!([link("file", "none"), link("circle", "circle"), link("null", "/dev/null")], [None; 3]);
        assert_eq!([descriptor(Path::new("1")), descriptor(Path::new("/")), descriptor(Path::new("no/1"))], [None; 3]);
    }
}

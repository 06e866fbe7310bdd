//! [`AtomicSupport`] says whether the file system of a folder can write blocks of 4 KiB atomically.

use super::FileVolume;

/// Whether a file system can write a block of 4 KiB so that a power cut leaves its old content or its new content.
///
/// Duramen does not use this for files: it writes through the system's cache, and such writes are only atomic when they
/// bypass the cache.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// use duramen::io::{AtomicSupport, FileVolume};
///
/// match FileVolume::open(folder.path())?.atomic_support() {
///     AtomicSupport::Found => println!("direct writes of 4 KiB can be atomic here"),
///     AtomicSupport::Missing { why } => println!("no writes are atomic: {why}"),
///     AtomicSupport::Unknown { why } => println!("this could not be found out: {why}"),
/// }
/// # Ok::<(), duramen::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AtomicSupport {
    /// The system says that direct writes of 4 KiB can be atomic.
    Found,
    /// It says that they cannot, or does not say that they can.
    Missing {
        /// The reason.
        why: String,
    },
    /// It could not be asked.
    Unknown {
        /// The error of the system.
        why: String,
    },
}

impl FileVolume {
    /// Asks the system about a temporary file without a name, which is gone afterwards.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// let volume = duramen::io::FileVolume::open(folder.path())?;
    /// println!("{:?}", volume.atomic_support());
    /// assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn atomic_support(&self) -> AtomicSupport {
        system::atomic_support(self.handle())
    }

    /// Asks the system about the file `name` of this folder, if it is a block device; otherwise about the folder.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("forest.duramen");
    /// use duramen::io::FileVolume;
    ///
    /// let (folder, name) = FileVolume::for_file(&path)?;
    /// assert_eq!(folder.atomic_support_of(&name), folder.atomic_support());
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn atomic_support_of(&self, name: &str) -> AtomicSupport {
        match self.device_number(name) {
            Ok(None) => self.atomic_support(),
            Ok(Some(_)) => system::atomic_support_of_device(self.handle(), name),
            Err(error) => AtomicSupport::Unknown { why: error.to_string() },
        }
    }
}

#[cfg(target_os = "linux")]
mod system {
    use super::AtomicSupport;
    use crate::io::BLOCK;
    use crate::io::folder::unnamed_file;
    use rustix::fs::{AtFlags, Statx, StatxFlags, statx};
    use rustix::io::Errno;
    use std::fs::File;

    /// `STATX_WRITE_ATOMIC`, since Linux 6.11.
    const WRITE_ATOMIC: StatxFlags = StatxFlags::from_bits_retain(0x1_0000);

    pub(super) fn atomic_support(folder: &File) -> AtomicSupport {
        match unnamed_file(folder) {
            Ok(file) => of_statx(statx(file, c"", AtFlags::EMPTY_PATH, WRITE_ATOMIC)),
            Err(why) => AtomicSupport::Unknown { why },
        }
    }

    pub(super) fn atomic_support_of_device(folder: &File, name: &str) -> AtomicSupport {
        of_statx(statx(folder, name, AtFlags::empty(), WRITE_ATOMIC))
    }

    fn of_statx(status: Result<Statx, Errno>) -> AtomicSupport {
        match status {
            Ok(status) if status.stx_mask & WRITE_ATOMIC.bits() == 0 => answer(None),
            Ok(status) => answer(Some((status.stx_atomic_write_unit_min, status.stx_atomic_write_unit_max))),
            Err(error) => AtomicSupport::Unknown { why: format!("the system cannot be asked: {error}") },
        }
    }

    /// `units`: the least and the most bytes of an atomic write.
    pub(super) fn answer(units: Option<(u32, u32)>) -> AtomicSupport {
        match units {
            Some((least, most)) if (least.max(1) as usize..=most as usize).contains(&BLOCK) => AtomicSupport::Found,
            Some((_, 0)) | None => AtomicSupport::Missing {
                why: "the file system and its device do not say that they have them".to_owned(),
            },
            Some((least, most)) => {
                AtomicSupport::Missing { why: format!("atomic writes have {least} to {most} bytes here") }
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use super::AtomicSupport;
    use std::fs::File;

    pub(super) fn atomic_support(_: &File) -> AtomicSupport {
        AtomicSupport::Missing { why: "only Linux says whether writes are atomic".to_owned() }
    }

    pub(super) fn atomic_support_of_device(folder: &File, _: &str) -> AtomicSupport {
        atomic_support(folder)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn only_a_range_with_4_kib_has_atomic_blocks() {
        for units in [(512, 4096), (4096, 65536), (0, 16384)] {
            assert_eq!(system::answer(Some(units)), AtomicSupport::Found, "{units:?}");
        }
        for units in [None, Some((0, 0)), Some((512, 2048)), Some((8192, 65536))] {
            assert!(matches!(system::answer(units), AtomicSupport::Missing { .. }), "{units:?}");
        }
        let nowhere = FileVolume::open("/proc").unwrap().atomic_support();
        assert!(
            matches!(&nowhere, AtomicSupport::Unknown { why } if why.contains("no file can be made")),
            "{nowhere:?}"
        );
    }
}

//! [`TrimSupport`] says whether the file system of a folder can punch holes.

use super::FileVolume;

/// Whether a file system can return unused space inside a file to the device.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// use duramen::io::{FileVolume, TrimSupport};
///
/// match FileVolume::open(folder.path())?.trim_support() {
///     TrimSupport::Found => println!("files here can have holes"),
///     TrimSupport::Missing { why } => println!("a file keeps all of its space: {why}"),
///     TrimSupport::Unknown { why } => println!("this could not be tested: {why}"),
/// }
/// # Ok::<(), duramen::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TrimSupport {
    /// It punches holes in files.
    Found,
    /// It does not. Files work, but trimmed parts keep their space.
    Missing {
        /// The reason.
        why: String,
    },
    /// The test was not possible.
    Unknown {
        /// The error of the system.
        why: String,
    },
}

impl FileVolume {
    /// Tests whether holes can be punched, in a temporary file without a name.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// let volume = duramen::io::FileVolume::open(folder.path())?;
    /// println!("{:?}", volume.trim_support());
    /// assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn trim_support(&self) -> TrimSupport {
        system::trim_support(self.handle())
    }

    /// Tests whether holes can be punched in the file `name` of this folder. If it is a block device, this asks whether
    /// the device can discard blocks so that they read as zeros.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("forest.duramen");
    /// use duramen::io::FileVolume;
    ///
    /// let (folder, name) = FileVolume::for_file(&path)?;
    /// assert_eq!(folder.trim_support_of(&name), folder.trim_support());
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn trim_support_of(&self, name: &str) -> TrimSupport {
        match self.device_number(name) {
            Ok(None) => self.trim_support(),
            Ok(Some(number)) => system::trim_support_of_device(number),
            Err(error) => TrimSupport::Unknown { why: error.to_string() },
        }
    }
}

#[cfg(target_os = "linux")]
mod system {
    use super::TrimSupport;
    use crate::io::BLOCK;
    use crate::io::folder::unnamed_file;
    use rustix::fs::{FallocateFlags, fallocate};
    use rustix::io::{Errno, retry_on_intr};
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    pub(super) fn trim_support(folder: &File) -> TrimSupport {
        let file = match unnamed_file(folder) {
            Ok(file) => file,
            Err(why) => return TrimSupport::Unknown { why },
        };
        if let Err(error) = file.write_all_at(&[1; 2 * BLOCK], 0) {
            return TrimSupport::Unknown { why: format!("no file can be written here to try it: {error}") };
        }
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        answer(retry_on_intr(|| fallocate(&file, flags, 0, BLOCK as u64)))
    }

    /// Asks the system about a device; a partition has no queue of its own.
    pub(super) fn trim_support_of_device((major, minor): (u32, u32)) -> TrimSupport {
        let folder = format!("/sys/dev/block/{major}:{minor}");
        let most = |queue: &str| std::fs::read_to_string(format!("{folder}/{queue}/write_zeroes_max_bytes"));
        match most("queue").or_else(|_| most("../queue")) {
            Ok(most) if most.trim() == "0" => {
                TrimSupport::Missing { why: "the device does not discard blocks to zeros".to_owned() }
            }
            Ok(_) => TrimSupport::Found,
            Err(error) => TrimSupport::Unknown { why: format!("the system does not say: {error}") },
        }
    }

    pub(super) fn answer(punched: rustix::io::Result<()>) -> TrimSupport {
        match punched {
            Ok(()) => TrimSupport::Found,
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
                TrimSupport::Missing { why: "the file system does not punch holes".to_owned() }
            }
            Err(error) => TrimSupport::Unknown { why: format!("the system fails to punch a hole: {error}") },
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use super::TrimSupport;
    use std::fs::File;

    pub(super) fn trim_support(_: &File) -> TrimSupport {
        TrimSupport::Missing { why: "holes are punched on Linux only".to_owned() }
    }

    pub(super) fn trim_support_of_device(_: (u32, u32)) -> TrimSupport {
        TrimSupport::Missing { why: "block devices are used on Linux only".to_owned() }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use rustix::io::Errno;

    #[test]
    fn unsupported_and_untestable_hole_punching_are_distinguished() {
        assert_eq!(system::answer(Ok(())), TrimSupport::Found);
        assert!(matches!(system::answer(Err(Errno::OPNOTSUPP)), TrimSupport::Missing { .. }));
        assert!(matches!(system::answer(Err(Errno::NOSPC)), TrimSupport::Unknown { .. }));
        let nowhere = FileVolume::open("/proc").unwrap().trim_support();
        assert!(matches!(&nowhere, TrimSupport::Unknown { why } if why.contains("no file can be made")), "{nowhere:?}");
    }
}

//! Detects a file that is mounted alone in its folder, as container systems do. The log would be beside it, in another
//! file system, which can be lost without the file: with the container, for example.

use crate::base::{Error, Result};
use std::fs::File;
use std::path::Path;

/// Fails if the file and its folder are in two mounts. Nothing is known before Linux 5.8, and on other systems.
pub(super) fn check_with_folder(file: &File, folder: &File, path: &Path) -> Result<()> {
    match (mount_id(file), mount_id(folder)) {
        (Some(of_file), Some(of_folder)) if of_file != of_folder => Err(Error::Option {
            option: "path",
            value: format!("{}", path.display()),
            expected:
                "a file whose folder is mounted with it: this one is mounted alone, so its log would be in another \
                       file system; mount the folder"
                    .to_owned(),
        }),
        _ => Ok(()),
    }
}

/// The number of the mount that an open file is in.
#[cfg(target_os = "linux")]
fn mount_id(file: &File) -> Option<u64> {
    use rustix::fs::{AtFlags, StatxFlags, statx};
    let stat = statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID).ok()?;
    (stat.stx_mask & StatxFlags::MNT_ID.bits() != 0).then_some(stat.stx_mnt_id)
}

#[cfg(not(target_os = "linux"))]
fn mount_id(_: &File) -> Option<u64> {
    None
}

//! A block device of the system on a file, for tests of behaviour that only a real device has. It needs Linux,
//! `losetup`, and the right to use it.

use std::path::Path;
use std::process::Command;

/// A loop device. It is detached when it is dropped.
#[derive(Debug)]
pub struct LoopDevice(String);

impl LoopDevice {
    /// Attaches a device to the file `backing`.
    ///
    /// # Errors
    /// Why there is no loop device, in the system's words. Such a test can only be skipped.
    pub fn of(backing: &Path) -> Result<LoopDevice, String> {
        LoopDevice::with_blocks(backing, 512)
    }

    /// Attaches a device with blocks of `bytes` bytes to the file `backing`.
    ///
    /// # Errors
    /// Why there is no loop device, in the system's words.
    pub fn with_blocks(backing: &Path, bytes: usize) -> Result<LoopDevice, String> {
        let blocks = format!("--sector-size={bytes}");
        let made = Command::new("losetup").args(["--find", "--show", &blocks]).arg(backing).output();
        let made = made.map_err(|error| format!("losetup: {error}"))?;
        match made.status.success() {
            true => Ok(LoopDevice(String::from_utf8_lossy(&made.stdout).trim().to_owned())),
            false => Err(String::from_utf8_lossy(&made.stderr).trim().to_owned()),
        }
    }

    /// The path of the device.
    pub fn path(&self) -> &Path {
        Path::new(&self.0)
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("--detach").arg(&self.0).status();
    }
}

//! A drive that compresses: each written block of 4 KiB is compressed with zlib, level 1, and the drive counts the
//! result.
//!
//! It simulates a solid-state drive with built-in transparent compression. Such a drive is thin-provisioned: a block
//! that was never written, or was trimmed, takes no space. The contents are in the files of another folder, in memory
//! or on a real disk, so a database works on the drive as on any other. The drive does not change the data.
//!
//! * A write to a file is counted immediately: there is no system cache between the file and the drive. A block that it
//!   covers in part is written whole.
//! * Writes to the log go through the cache. A block of the log is counted when its file is synced, once for each sync,
//!   however often it was written.
//! * A block that zlib does not make smaller is stored without compression.
//!
//! `counts` has the counts, `cost` the time that a device would need, and `file` the blocks of files.

mod cost;
mod counts;
mod file;

pub use cost::{CallCost, DeviceModel};
pub use counts::{DriveCounts, Traffic};

use counts::Meter;
use duramen::Result;
use duramen::io::{Disk, Locked, OpenMode, Volume};
use file::{DriveDisk, DriveFile, Traits};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A folder on a drive that compresses.
#[derive(Debug)]
pub struct DriveVolume {
    inner: Arc<dyn Volume>,
    files: Mutex<BTreeMap<String, Arc<DriveFile>>>,
    meter: Arc<Meter>,
    traits: Traits,
}

impl DriveVolume {
    /// A drive whose contents are in the files of `inner`. Existing content takes space and is not counted as written.
    pub fn new(inner: Arc<dyn Volume>) -> DriveVolume {
        DriveVolume { inner, files: Mutex::default(), meter: Arc::default(), traits: Traits::default() }
    }

    /// Makes the drive report that it writes blocks of 4 KiB atomically ([`Disk::writes_blocks_whole`]).
    #[must_use]
    pub fn with_atomic_blocks(self) -> DriveVolume {
        DriveVolume { traits: Traits { atomic_blocks: true, ..self.traits }, ..self }
    }

    /// Makes the drive store every block as it is, as most drives do. Nothing is compressed, so it is much faster.
    #[must_use]
    pub fn without_compression(self) -> DriveVolume {
        DriveVolume { traits: Traits { stores_whole: true, ..self.traits }, ..self }
    }

    /// Makes each sync of a file take this time, so that commits of other threads collect during it.
    #[must_use]
    pub fn with_sync_time(self, sync_time: Duration) -> DriveVolume {
        DriveVolume { traits: Traits { sync_time, ..self.traits }, ..self }
    }

    /// Stops or continues counting. A new drive counts. While nothing is counted, nothing is compressed, which is much
    /// faster: the size of a block is then computed when it is needed.
    pub fn set_counting(&self, on: bool) {
        self.meter.set_counting(on);
    }

    /// The counts so far.
    pub fn counts(&self) -> DriveCounts {
        self.meter.counts()
    }

    /// The compressed size of the blocks of the file `name`; 0 if the file was not opened on the drive.
    ///
    /// # Errors
    /// Errors of opening and reading the file.
    pub fn stored_bytes(&self, name: &str) -> Result<u64> {
        let Some(file) = self.files.lock().get(name).cloned() else { return Ok(0) };
        file.stored_bytes(&*self.inner.open(name, OpenMode::Read)?)
    }

    fn wrap(&self, name: &str, inner: Arc<dyn Disk>) -> Result<Arc<dyn Disk>> {
        let mut files = self.files.lock();
        let file = match files.get(name) {
            Some(file) => file.clone(),
            None => {
                let file = Arc::new(DriveFile::load(&*inner, self.traits)?);
                files.insert(name.to_owned(), file.clone());
                file
            }
        };
        Ok(Arc::new(DriveDisk::new(inner, file, self.meter.clone(), self.traits)))
    }

    fn renamed(&self, from: &str, to: &str) {
        let mut files = self.files.lock();
        if let Some(file) = files.remove(from) {
            files.insert(to.to_owned(), file);
        }
    }
}

impl Volume for DriveVolume {
    fn open(&self, name: &str, mode: OpenMode) -> Result<Arc<dyn Disk>> {
        self.wrap(name, self.inner.open(name, mode)?)
    }

    fn create_beside(&self, name: &str, beside: &str) -> Result<Arc<dyn Disk>> {
        self.wrap(name, self.inner.create_beside(name, beside)?)
    }

    fn share_permissions(&self, name: &str, beside: &str) -> Result<()> {
        self.inner.share_permissions(name, beside)
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.inner.remove(name)?;
        self.files.lock().remove(name);
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.inner.rename(from, to)?;
        self.renamed(from, to);
        Ok(())
    }

    fn replace(&self, from: &str, to: &str) -> Result<()> {
        self.inner.replace(from, to)?;
        self.renamed(from, to);
        Ok(())
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>> {
        self.inner.list(prefix)
    }

    fn sync(&self) -> Result<()> {
        self.inner.sync()
    }

    fn lock(&self, name: &str, exclusive: bool) -> Result<Locked> {
        let Locked { disk, guard } = self.inner.lock(name, exclusive)?;
        Ok(Locked { disk: self.wrap(name, disk)?, guard })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.inner.path(name)
    }
}

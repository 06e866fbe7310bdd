//! A drive that compresses: each block of 4 KiB that is written is compressed with zlib, level 1, and the drive counts what
//! that comes to.
//!
//! It stands for a solid-state drive with built-in transparent compression. Such a drive is thin-provisioned: a block that
//! was never written, or was trimmed, takes no space. The contents are in the files of another folder, in memory or real
//! ones, so that a database works on the drive as on any other. The drive never changes what it passes on.
//!
//! * A write to a file is counted at once: the system's cache is not between the file and the drive. A block that it covers
//!   in part is written whole.
//! * Writes to the log do go through the cache: a block of the log is counted when its file is synced, once a sync, however
//!   often it was written.
//! * A block that zlib does not make smaller is stored as it is.
//!
//! `counts` has the numbers, `cost` the time that a device would take. How blocks are kept is in `file`.

mod cost;
mod counts;
mod file;

pub use cost::DeviceModel;
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

/// A folder on a drive that compresses. The module says what it counts.
#[derive(Debug)]
pub struct DriveVolume {
    inner: Arc<dyn Volume>,
    files: Mutex<BTreeMap<String, Arc<DriveFile>>>,
    meter: Arc<Meter>,
    traits: Traits,
}

impl DriveVolume {
    /// A drive whose contents are in the files of `inner`. What is in them already takes space and is not counted as written.
    pub fn new(inner: Arc<dyn Volume>) -> DriveVolume {
        DriveVolume { inner, files: Mutex::default(), meter: Arc::default(), traits: Traits::default() }
    }

    /// Lets the drive say that it writes blocks of 4 KiB atomically ([`Disk::writes_blocks_whole`]).
    #[must_use]
    pub fn with_atomic_blocks(self) -> DriveVolume {
        DriveVolume { traits: Traits { atomic_blocks: true, ..self.traits }, ..self }
    }

    /// Makes each sync of a file take this time, so that commits of other threads gather meanwhile.
    #[must_use]
    pub fn with_sync_time(self, sync_time: Duration) -> DriveVolume {
        DriveVolume { traits: Traits { sync_time, ..self.traits }, ..self }
    }

    /// What was written and read so far.
    pub fn counts(&self) -> DriveCounts {
        self.meter.counts()
    }

    /// Bytes that the blocks of the file `name` take, compressed; 0 if the drive has no such file.
    pub fn stored_bytes(&self, name: &str) -> u64 {
        self.files.lock().get(name).map_or(0, |file| file.stored_bytes())
    }

    fn wrap(&self, name: &str, inner: Arc<dyn Disk>) -> Result<Arc<dyn Disk>> {
        let mut files = self.files.lock();
        let file = match files.get(name) {
            Some(file) => file.clone(),
            None => {
                let file = Arc::new(DriveFile::load(&*inner)?);
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

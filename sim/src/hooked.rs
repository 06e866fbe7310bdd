//! A folder that calls [`Hooks`] at each call to another folder. It does not change the behaviour of the other folder.

use duramen::Result;
use duramen::io::{Disk, Locked, OpenMode, Volume, WriteKind};
use std::fmt::Debug;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// The hooks of a [`HookedVolume`]. By default each does nothing. An error of a hook becomes the error of the call.
pub trait Hooks: Debug + Send + Sync + 'static {
    /// Called before `len` bytes at `offset` of the file `name` are read.
    ///
    /// # Errors
    /// The error of the read.
    fn before_read(&self, name: &str, offset: u64, len: usize) -> Result<()> {
        let _ = (name, offset, len);
        Ok(())
    }

    /// Called with the hint that `len` bytes at `offset` of the file `name` will be read soon. The hint is passed on if
    /// this returns true.
    fn will_read(&self, name: &str, offset: u64, len: u64) -> bool {
        let _ = (name, offset, len);
        true
    }

    /// Called before `len` bytes are written at `offset` of the file `name`.
    ///
    /// # Errors
    /// The error of the write. Then nothing is written.
    fn before_write(&self, name: &str, offset: u64, len: usize) -> Result<()> {
        let _ = (name, offset, len);
        Ok(())
    }

    /// Called before the file `name` is set to the length `end`, or gets space reserved up to `end`.
    ///
    /// # Errors
    /// The error of the call. Then nothing has changed.
    fn before_growth(&self, name: &str, end: u64) -> Result<()> {
        let _ = (name, end);
        Ok(())
    }

    /// Called before the file `from` gets the name `to`.
    ///
    /// # Errors
    /// The error of the renaming. Then nothing has changed.
    fn before_rename(&self, from: &str, to: &str) -> Result<()> {
        let _ = (from, to);
        Ok(())
    }

    /// Called before two files exchange their names.
    ///
    /// # Errors
    /// The error of the exchange. Then nothing has changed.
    fn before_exchange(&self, one: &str, other: &str) -> Result<()> {
        let _ = (one, other);
        Ok(())
    }

    /// Called before the file `name` is synced; `None` means the folder.
    ///
    /// # Errors
    /// The error of the sync. Then nothing is synced.
    fn before_sync(&self, name: Option<&str>) -> Result<()> {
        let _ = name;
        Ok(())
    }

    /// Called after the names of the folder were read, before the caller gets them.
    ///
    /// # Errors
    /// The error of the listing.
    fn after_list(&self) -> Result<()> {
        Ok(())
    }
}

/// A folder that calls its hooks, and passes all calls to the folder below it.
#[derive(Debug)]
pub struct HookedVolume<H> {
    inner: Arc<dyn Volume>,
    hooks: Arc<H>,
}

impl<H: Hooks> HookedVolume<H> {
    /// Calls `hooks` at each call to `inner`.
    pub fn new(inner: Arc<dyn Volume>, hooks: Arc<H>) -> HookedVolume<H> {
        HookedVolume { inner, hooks }
    }

    fn hooked(&self, name: &str, inner: Arc<dyn Disk>) -> Arc<dyn Disk> {
        Arc::new(HookedDisk { inner, name: name.to_owned(), hooks: self.hooks.clone() })
    }
}

impl<H: Hooks> Volume for HookedVolume<H> {
    fn open(&self, name: &str, mode: OpenMode) -> Result<Arc<dyn Disk>> {
        Ok(self.hooked(name, self.inner.open(name, mode)?))
    }

    fn create_beside(&self, name: &str, beside: &str) -> Result<Arc<dyn Disk>> {
        Ok(self.hooked(name, self.inner.create_beside(name, beside)?))
    }

    fn share_permissions(&self, name: &str, beside: &str) -> Result<()> {
        self.inner.share_permissions(name, beside)
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.inner.remove(name)
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.hooks.before_rename(from, to)?;
        self.inner.rename(from, to)
    }

    fn replace(&self, from: &str, to: &str) -> Result<()> {
        self.inner.replace(from, to)
    }

    fn exchange(&self, one: &str, other: &str) -> Result<bool> {
        self.hooks.before_exchange(one, other)?;
        self.inner.exchange(one, other)
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>> {
        let names = self.inner.list(prefix)?;
        self.hooks.after_list()?;
        Ok(names)
    }

    fn sync(&self) -> Result<()> {
        self.hooks.before_sync(None)?;
        self.inner.sync()
    }

    fn lock(&self, name: &str, exclusive: bool) -> Result<Locked> {
        let Locked { disk, guard } = self.inner.lock(name, exclusive)?;
        Ok(Locked { disk: self.hooked(name, disk), guard })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.inner.path(name)
    }
}

#[derive(Debug)]
struct HookedDisk<H> {
    inner: Arc<dyn Disk>,
    name: String,
    hooks: Arc<H>,
}

impl<H: Hooks> Disk for HookedDisk<H> {
    fn size(&self) -> Result<u64> {
        self.inner.size()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.hooks.before_read(&self.name, offset, buf.len())?;
        self.inner.read_at(offset, buf)
    }

    fn write_as(&self, kind: WriteKind, offset: u64, buf: &[u8]) -> Result<()> {
        self.hooks.before_write(&self.name, offset, buf.len())?;
        self.inner.write_as(kind, offset, buf)
    }

    fn sync(&self) -> Result<()> {
        self.hooks.before_sync(Some(&self.name))?;
        self.inner.sync()
    }

    fn sync_bytes(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.hooks.before_sync(Some(&self.name))?;
        self.inner.sync_bytes(offset, bytes)
    }

    fn trim(&self, offset: u64, len: u64) -> Result<()> {
        self.inner.trim(offset, len)
    }

    fn resize(&self, len: u64) -> Result<()> {
        self.hooks.before_growth(&self.name, len)?;
        self.inner.resize(len)
    }

    fn reserve_range(&self, range: Range<u64>) -> Result<()> {
        self.hooks.before_growth(&self.name, range.end)?;
        self.inner.reserve_range(range)
    }

    fn will_read(&self, offset: u64, len: u64) {
        if self.hooks.will_read(&self.name, offset, len) {
            self.inner.will_read(offset, len);
        }
    }

    fn forget_cached(&self, offset: u64) {
        self.inner.forget_cached(offset);
    }

    fn allocated(&self) -> Result<u64> {
        self.inner.allocated()
    }
}

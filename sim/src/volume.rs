//! The simulated folder and its files, as the engine uses them, and the settings of a test. The choices of a power cut
//! are in `crash`.

use crate::DEVICE_BLOCK;
use crate::fault::{Fault, Trigger};
use crate::history::{Change, Event, FileId, Names, Naming};
use crate::image::usize_of;
use crate::state::State;
use duramen::io::{Disk, LockGuard, Locked, OpenMode, Volume, WriteKind};
use duramen::{Error, Result};
use parking_lot::Mutex;
use std::fmt;
use std::io::ErrorKind;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// The largest offset that a simulated file can have: 1 TiB.
const MAX_LEN: u64 = 1 << 40;

/// A folder in memory that records all operations on it. It loses power and fails when a test asks for it. Clones
/// are the same folder.
#[derive(Clone)]
pub struct FailingVolume {
    state: Arc<Mutex<State>>,
}

impl fmt::Debug for FailingVolume {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.with(|state| {
            let files: Vec<_> = state.names.iter().map(|(name, &id)| (name, state.files[id].visible.len())).collect();
            f.debug_struct("FailingVolume").field("files", &files).field("events", &state.events.len()).finish()
        })
    }
}

impl FailingVolume {
    /// An empty folder; `seed` decides what faults do.
    pub fn new(seed: u64) -> FailingVolume {
        FailingVolume::from_state(State::new(seed, Names::new(), Vec::new()))
    }

    /// Lets its files say that they write blocks of 4 KiB atomically ([`Disk::writes_blocks_whole`]), and makes that
    /// true.
    /// They also say that they trim at little cost.
    #[must_use]
    pub fn with_atomic_blocks(self) -> FailingVolume {
        self.state.lock().atomic_blocks = true;
        self
    }

    /// Lets every trim succeed and change nothing, as on a file system that punches no holes.
    #[must_use]
    pub fn without_trims(self) -> FailingVolume {
        self.state.lock().ignores_trims = true;
        self
    }

    /// Lets every reservation succeed and change nothing, as on a file system that has none.
    #[must_use]
    pub fn without_reservations(self) -> FailingVolume {
        self.state.lock().ignores_reservations = true;
        self
    }

    pub(crate) fn from_state(state: State) -> FailingVolume {
        FailingVolume { state: Arc::new(Mutex::new(state)) }
    }

    pub(crate) fn with<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.state.lock())
    }

    /// The length of the history: every write, trim, resize, sync, creation, removal, renaming, and mark is an event.
    pub fn events(&self) -> usize {
        self.with(|state| state.events.len())
    }

    /// Appends `mark` to the history, so that a test knows what was acknowledged before a cut.
    pub fn mark(&self, mark: u64) {
        self.state.lock().events.push(Event::Mark(mark));
    }

    /// The last mark before event `event`.
    pub fn last_mark_before(&self, event: usize) -> Option<u64> {
        self.with(|state| {
            state.events[..event.min(state.events.len())].iter().rev().find_map(|event| match event {
                Event::Mark(mark) => Some(*mark),
                _ => None,
            })
        })
    }

    /// Event `event` in words, for the message of a failed test.
    pub fn describe(&self, event: usize) -> String {
        self.with(|state| match state.events.get(event) {
            None => "the end".to_owned(),
            Some(Event::Change { file, change }) => match change {
                Change::Write { offset, data } => format!("write of {} bytes at {offset} of file {file}", data.len()),
                Change::Resize { len } => format!("resize of file {file} to {len}"),
                Change::Trim { offset, len } => format!("trim of {len} bytes at {offset} of file {file}"),
                Change::SyncBytes { offset, len } => format!("sync of {len} bytes at {offset} of file {file}"),
            },
            Some(Event::Sync { file }) => format!("sync of file {file}"),
            Some(Event::FailedSync { file }) => format!("failed sync of file {file}"),
            Some(Event::Rot { file }) => format!("rot in file {file}"),
            Some(Event::Naming(naming)) => format!("{naming:?}"),
            Some(Event::SyncFolder) => "sync of the folder".to_owned(),
            Some(Event::Mark(mark)) => format!("mark {mark}"),
        })
    }

    /// Makes `fault` strike as `trigger` says, instead of as said before.
    pub fn inject(&self, fault: Fault, trigger: Trigger) {
        self.state.lock().triggers.set(fault, trigger);
    }

    /// How many calls `fault` has hit since the last [`FailingVolume::inject`] of it.
    pub fn struck(&self, fault: Fault) -> u64 {
        self.with(|state| state.triggers.struck(fault))
    }

    /// Leaves `bytes` of free space from now on, `None` for no limit. What is trimmed or removed becomes free.
    pub fn limit_space(&self, bytes: Option<u64>) {
        let mut state = self.state.lock();
        let used: u64 = state.names.values().map(|&file| state.files[file].visible.allocated()).sum();
        state.capacity = bytes.map(|bytes| used.saturating_add(bytes));
    }

    /// Turns the power off once the history has `events` events: every later call fails. `None` leaves it on.
    pub fn power_off_at(&self, events: Option<usize>) {
        self.state.lock().power_off_at = events;
    }

    /// Flips the bits of `mask` in the byte at `offset` of the file `name`, as it is on the device.
    pub fn flip_bits(&self, name: &str, offset: u64, mask: u8) -> Result<()> {
        let file = self.find(name)?;
        self.state.lock().rot(file, offset, mask);
        Ok(())
    }

    /// Flips `bits` bits in `range` of the file `name`, at places that the volume's seed decides.
    pub fn rot(&self, name: &str, range: Range<u64>, bits: usize) -> Result<()> {
        let file = self.find(name)?;
        let mut state = self.state.lock();
        for _ in 0..bits {
            let (offset, bit) = (state.rng.u64(range.clone()), state.rng.u8(0..8));
            state.rot(file, offset, 1 << bit);
        }
        Ok(())
    }

    fn find(&self, name: &str) -> Result<FileId> {
        let found = self.with(|state| state.names.get(name).copied());
        found.ok_or_else(|| Error::NotFound { path: self.path(name) })
    }

    fn disk(&self, file: FileId, name: &str, writable: bool) -> Arc<dyn Disk> {
        let state = Arc::clone(&self.state);
        Arc::new(FailingDisk { state, file, name: name.to_owned(), path: self.path(name), writable })
    }

    fn give_name(&self, state: &mut State, from: &str, to: &str) -> Result<()> {
        if !state.names.contains_key(from) {
            return Err(Error::NotFound { path: self.path(from) });
        }
        state.rename(Naming::Rename { from: from.to_owned(), to: to.to_owned() });
        state.healthy(Fault::RefuseLate, "cannot rename", from, &self.path(from))
    }
}

impl Volume for FailingVolume {
    fn open(&self, name: &str, mode: OpenMode) -> Result<Arc<dyn Disk>> {
        let path = self.path(name);
        let mut state = self.state.lock();
        state.powered("cannot open", &path)?;
        state.healthy(Fault::Refuse, "cannot open", name, &path)?;
        let file = match (state.names.get(name), mode) {
            (Some(_), OpenMode::CreateNew) => return Err(Error::Exists { path }),
            (Some(&file), _) => file,
            (None, OpenMode::CreateNew) => {
                let created = state.create(name);
                state.healthy(Fault::RefuseLate, "cannot create", name, &path)?;
                created
            }
            (None, _) => return Err(Error::NotFound { path }),
        };
        Ok(self.disk(file, name, mode != OpenMode::Read))
    }

    fn remove(&self, name: &str) -> Result<()> {
        let mut state = self.state.lock();
        state.powered("cannot remove", &self.path(name))?;
        state.healthy(Fault::Refuse, "cannot remove", name, &self.path(name))?;
        if state.names.contains_key(name) {
            state.rename(Naming::Remove { name: name.to_owned() });
        }
        state.healthy(Fault::RefuseLate, "cannot remove", name, &self.path(name))
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        let mut state = self.state.lock();
        state.powered("cannot rename", &self.path(from))?;
        state.healthy(Fault::Refuse, "cannot rename", from, &self.path(from))?;
        if state.names.contains_key(from) && state.names.contains_key(to) {
            return Err(Error::Exists { path: self.path(to) });
        }
        self.give_name(&mut state, from, to)
    }

    fn replace(&self, from: &str, to: &str) -> Result<()> {
        let mut state = self.state.lock();
        state.powered("cannot rename", &self.path(from))?;
        state.healthy(Fault::Refuse, "cannot rename", from, &self.path(from))?;
        self.give_name(&mut state, from, to)
    }

    fn exchange(&self, one: &str, other: &str) -> Result<bool> {
        let mut state = self.state.lock();
        state.powered("cannot rename", &self.path(one))?;
        state.healthy(Fault::Refuse, "cannot rename", one, &self.path(one))?;
        if let Some(missing) = [one, other].into_iter().find(|name| !state.names.contains_key(*name)) {
            return Err(Error::NotFound { path: self.path(missing) });
        }
        state.rename(Naming::Exchange { one: one.to_owned(), other: other.to_owned() });
        state.healthy(Fault::RefuseLate, "cannot rename", one, &self.path(one)).map(|()| true)
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>> {
        let mut state = self.state.lock();
        state.powered("cannot list", &self.path(""))?;
        state.healthy(Fault::Refuse, "cannot list", "", &self.path(""))?;
        Ok(state.names.keys().filter(|name| name.starts_with(prefix)).cloned().collect())
    }

    fn sync(&self) -> Result<()> {
        let mut state = self.state.lock();
        state.powered("cannot sync the folder", &self.path(""))?;
        state.healthy(Fault::FailSync, "cannot sync the folder", "", &self.path(""))?;
        state.sync_folder();
        Ok(())
    }

    fn lock(&self, name: &str, exclusive: bool) -> Result<Locked> {
        let path = self.path(name);
        let mut state = self.state.lock();
        state.powered("cannot lock", &path)?;
        let Some(&file) = state.names.get(name) else { return Err(Error::NotFound { path }) };
        let target = &mut state.files[file];
        if target.exclusive || (exclusive && target.shared > 0) {
            return Err(Error::Locked { path });
        }
        if exclusive {
            target.exclusive = true;
        } else {
            target.shared += 1;
        }
        let guard = FailingLock { state: Arc::clone(&self.state), file, exclusive };
        Ok(Locked { disk: self.disk(file, name, exclusive), guard: Box::new(guard) })
    }

    fn path(&self, name: &str) -> PathBuf {
        PathBuf::from("(simulated)").join(name)
    }
}

/// A held lock.
struct FailingLock {
    state: Arc<Mutex<State>>,
    file: FileId,
    exclusive: bool,
}

impl fmt::Debug for FailingLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FailingLock").field("file", &self.file).field("exclusive", &self.exclusive).finish()
    }
}

impl LockGuard for FailingLock {
    fn is_of(&self, name: &str) -> Result<bool> {
        Ok(self.state.lock().names.get(name) == Some(&self.file))
    }
}

impl Drop for FailingLock {
    fn drop(&mut self) {
        let mut state = self.state.lock();
        let target = &mut state.files[self.file];
        if self.exclusive {
            target.exclusive = false;
        } else {
            target.shared -= 1;
        }
    }
}

/// A handle of a file in a [`FailingVolume`].
pub struct FailingDisk {
    state: Arc<Mutex<State>>,
    file: FileId,
    /// The name that it was opened by. The file may have been renamed since.
    name: String,
    path: PathBuf,
    writable: bool,
}

impl fmt::Debug for FailingDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FailingDisk").field("name", &self.name).field("file", &self.file).finish()
    }
}

impl FailingDisk {
    fn writable(&self) -> Result<()> {
        if self.writable { Ok(()) } else { Err(Error::ReadOnly) }
    }

    fn error(&self, action: &'static str, kind: ErrorKind) -> Error {
        Error::io(action, &self.path, kind.into())
    }
}

impl Disk for FailingDisk {
    fn size(&self) -> Result<u64> {
        let state = self.state.lock();
        state.powered("cannot get the size of", &self.path)?;
        Ok(state.files[self.file].visible.len())
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let mut state = self.state.lock();
        state.powered("cannot read", &self.path)?;
        state.healthy(Fault::FailRead, "cannot read", &self.name, &self.path)?;
        let image = &state.files[self.file].visible;
        match offset.checked_add(buf.len() as u64) {
            Some(end) if end <= image.len() => image.read(offset, buf),
            _ if buf.is_empty() => {}
            _ => return Err(self.error("cannot read", ErrorKind::UnexpectedEof)),
        }
        let (front, back) = buf.split_at_mut(buf.len().div_ceil(2));
        for (fault, half) in [(Fault::SpoilFront, front), (Fault::SpoilBack, back)] {
            if !half.is_empty() && state.triggers.strikes(fault, &self.name) {
                half.iter_mut().for_each(|byte| *byte = !*byte);
            }
        }
        Ok(())
    }

    fn write_as(&self, _kind: WriteKind, offset: u64, buf: &[u8]) -> Result<()> {
        self.writable()?;
        let mut state = self.state.lock();
        state.powered("cannot write", &self.path)?;
        state.healthy(Fault::FailWrite, "cannot write", &self.name, &self.path)?;
        if offset.checked_add(buf.len() as u64).is_none_or(|end| end > MAX_LEN) {
            return Err(self.error("cannot write", ErrorKind::FileTooLarge));
        }
        if buf.is_empty() || state.triggers.strikes(Fault::LoseWrite, &self.name) {
            return Ok(());
        }
        let offset = match state.triggers.strikes(Fault::MisdirectWrite, &self.name) {
            true => state.misdirected(self.file, offset),
            false => offset,
        };
        let mut fits = state.fitting(self.file, offset, buf.len());
        let late = state.healthy(Fault::FailLate, "cannot write", &self.name, &self.path);
        if late.is_err() && state.events.len().is_multiple_of(2) {
            fits /= 2;
            if state.atomic_blocks {
                let end = offset + fits as u64;
                fits = fits.saturating_sub(usize_of(end % DEVICE_BLOCK as u64));
            }
        }
        if fits > 0 {
            state.change(self.file, Change::Write { offset, data: buf[..fits].into() });
        }
        late?;
        if fits < buf.len() { Err(Error::Full { path: self.path.clone() }) } else { Ok(()) }
    }

    fn sync(&self) -> Result<()> {
        let mut state = self.state.lock();
        state.powered("cannot sync", &self.path)?;
        let healthy = state.healthy(Fault::FailSync, "cannot sync", &self.name, &self.path);
        match healthy {
            Ok(()) => state.sync(self.file),
            Err(_) => state.fail_sync(self.file),
        }
        healthy
    }

    fn sync_bytes(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let mut state = self.state.lock();
        state.powered("cannot sync", &self.path)?;
        let healthy = state.healthy(Fault::FailSync, "cannot sync", &self.name, &self.path);
        match healthy {
            Ok(()) => state.change(self.file, Change::SyncBytes { offset, len: bytes.len() as u64 }),
            Err(_) => state.fail_sync(self.file),
        }
        healthy
    }

    fn writes_blocks_whole(&self) -> bool {
        self.state.lock().atomic_blocks
    }

    fn trims_cheaply(&self) -> bool {
        self.state.lock().atomic_blocks
    }

    fn trim(&self, offset: u64, len: u64) -> Result<()> {
        self.writable()?;
        let mut state = self.state.lock();
        state.powered("cannot trim", &self.path)?;
        state.healthy(Fault::Refuse, "cannot trim", &self.name, &self.path)?;
        if len > 0 && !state.ignores_trims {
            state.change(self.file, Change::Trim { offset, len });
        }
        Ok(())
    }

    fn resize(&self, len: u64) -> Result<()> {
        self.writable()?;
        let mut state = self.state.lock();
        state.powered("cannot resize", &self.path)?;
        state.healthy(Fault::Refuse, "cannot resize", &self.name, &self.path)?;
        if len > MAX_LEN {
            return Err(self.error("cannot resize", ErrorKind::FileTooLarge));
        }
        state.change(self.file, Change::Resize { len });
        state.healthy(Fault::RefuseLate, "cannot resize", &self.name, &self.path)
    }

    /// Holds as long as nothing of it is trimmed or cut off; a power cut ends it.
    fn reserve_range(&self, range: Range<u64>) -> Result<()> {
        self.writable()?;
        let mut state = self.state.lock();
        state.powered("cannot reserve space for", &self.path)?;
        state.healthy(Fault::Refuse, "cannot reserve space for", &self.name, &self.path)?;
        if range.end > MAX_LEN {
            return Err(self.error("cannot reserve space for", ErrorKind::FileTooLarge));
        }
        if state.ignores_reservations {
            return Ok(());
        }
        // As some file systems do, it keeps what it has allocated before the device is full.
        let free = state.free_blocks();
        if !state.files[self.file].visible.reserve(range, free) {
            return Err(Error::Full { path: self.path.clone() });
        }
        Ok(())
    }

    fn allocated(&self) -> Result<u64> {
        let state = self.state.lock();
        state.powered("cannot get the size of", &self.path)?;
        Ok(state.files[self.file].visible.allocated())
    }
}

//! The running device: files, names, locks, and their history. It does the calls of `volume`, and their failures.
//! `crash` decides what survives a power cut.

use crate::crash;
use crate::fault::{Fault, Triggers};
use crate::history::{Change, Event, FileId, Names, Naming, Versions};
use crate::image::{DEVICE_BLOCK, Image, parts, usize_of};
use duramen::{Error, Result};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

/// A file, named or not.
#[derive(Debug)]
pub(crate) struct File {
    /// The content that reads return.
    pub(crate) visible: Image,
    /// The content that reads returned when the history began.
    first: Image,
    /// After how many events a sync has failed for the first time: from then on reads may see changes that it has lost,
    /// so that a sync does not make durable what they see.
    diverged: Option<usize>,
    pub(crate) versions: Versions<Image>,
    pub(crate) shared: usize,
    pub(crate) exclusive: bool,
}

impl File {
    /// A file of which `content` is durable once `events` events have happened.
    pub(crate) fn new(events: usize, content: Image) -> File {
        let versions = Versions::new(events, content.clone());
        File { first: content.clone(), visible: content, diverged: None, versions, shared: 0, exclusive: false }
    }

    /// The same of a file of which reads see `visible`, since a sync of it has failed before the history began.
    pub(crate) fn diverged(events: usize, content: Image, visible: Image) -> File {
        File { first: visible.clone(), visible, diverged: Some(0), ..File::new(events, content) }
    }
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) rng: fastrand::Rng,
    pub(crate) names: Names,
    pub(crate) folder: Versions<Arc<Names>>,
    pub(crate) files: Vec<File>,
    pub(crate) events: Vec<Event>,
    pub(crate) triggers: Triggers,
    /// Bytes that may be allocated by all named files together.
    pub(crate) capacity: Option<u64>,
    /// Every call fails after this number of events.
    pub(crate) power_off_at: Option<usize>,
    /// A power cut tears no device block, and the files say so.
    pub(crate) atomic_blocks: bool,
    /// A trim changes nothing.
    pub(crate) ignores_trims: bool,
    /// A reservation changes nothing.
    pub(crate) ignores_reservations: bool,
}

impl State {
    /// A device with these files, all durable, and no history.
    pub(crate) fn new(seed: u64, names: Names, files: Vec<File>) -> State {
        State {
            rng: fastrand::Rng::with_seed(seed),
            folder: Versions::new(0, Arc::new(names.clone())),
            names,
            files,
            events: Vec::new(),
            triggers: Triggers::default(),
            capacity: None,
            power_off_at: None,
            atomic_blocks: false,
            ignores_trims: false,
            ignores_reservations: false,
        }
    }

    /// An error once the power is off.
    pub(crate) fn powered(&self, action: &'static str, path: &Path) -> Result<()> {
        match self.power_off_at {
            Some(event) if self.events.len() >= event => {
                Err(Error::io(action, path, std::io::Error::new(ErrorKind::NotConnected, "the power is off")))
            }
            _ => Ok(()),
        }
    }

    /// Counts a call on the file opened as `name`; an error of the device if `fault` strikes.
    pub(crate) fn healthy(&mut self, fault: Fault, action: &'static str, name: &str, path: &Path) -> Result<()> {
        if self.triggers.strikes(fault, name) {
            return Err(device_error(action, path));
        }
        Ok(())
    }

    /// Does `change` to `file`. Reads see it at once. It is durable after the next sync.
    pub(crate) fn change(&mut self, file: FileId, change: Change) {
        let target = &mut self.files[file];
        change.apply(&mut target.visible);
        target.versions.changed(self.events.len());
        self.events.push(Event::Change { file, change });
    }

    /// The changes of `file` that are pending after `events` events, on top of what is durable; `None`: there was no
    /// such file yet.
    pub(crate) fn pending(&self, file: FileId, events: usize) -> Option<(&Image, Vec<&Change>)> {
        let (durable, pending) = self.files[file].versions.at(events)?;
        let changes = pending.iter().filter_map(|&event| match &self.events[event] {
            Event::Change { change, .. } => Some(change),
            _ => None,
        });
        Some((durable, changes.collect()))
    }

    /// The content of `file` that reads returned after `events` events, if a sync would have made another one durable.
    pub(crate) fn seen_astray(&self, file: FileId, events: usize) -> Option<Image> {
        let target = &self.files[file];
        target.diverged.filter(|&since| since <= events)?;
        let mut content = target.first.clone();
        for &event in target.versions.changes_before(events) {
            if let Some(Event::Change { change, .. }) = self.events.get(event) {
                change.apply(&mut content);
            }
        }
        Some(content)
    }

    /// Makes the changes of `file` durable.
    pub(crate) fn sync(&mut self, file: FileId) {
        let content = if self.files[file].diverged.is_some() {
            crash::keep_all(self.pending(file, self.events.len()))
        } else {
            self.files[file].visible.clone()
        };
        self.events.push(Event::Sync { file });
        self.files[file].versions.synced(self.events.len(), content);
    }

    /// Makes some changes of `file` durable and loses the others permanently.
    pub(crate) fn fail_sync(&mut self, file: FileId) {
        let mut rng = self.rng.fork();
        let content = crash::scatter_some(self, file, &mut rng);
        self.events.push(Event::FailedSync { file });
        self.files[file].diverged.get_or_insert(self.events.len());
        self.files[file].versions.synced(self.events.len(), content);
    }

    /// Flips bits of what is stored, on the device and in what reads see.
    pub(crate) fn rot(&mut self, file: FileId, offset: u64, mask: u8) {
        let flip = |image: &mut Image| {
            let (block, at) = (usize_of(offset) / DEVICE_BLOCK, usize_of(offset) % DEVICE_BLOCK);
            if offset < image.len() {
                image.edit(block, |bytes| bytes[at] ^= mask);
            }
        };
        let before = self.events.len();
        self.events.push(Event::Rot { file });
        let target = &mut self.files[file];
        flip(&mut target.visible);
        if let Some((durable, _)) = target.versions.at(before) {
            let mut rotten = durable.clone();
            flip(&mut rotten);
            target.versions.replaced(before + 1, rotten);
        }
    }

    /// Does `naming` to the folder. It is durable after the next sync of the folder.
    pub(crate) fn rename(&mut self, naming: Naming) {
        naming.apply(&mut self.names);
        self.folder.changed(self.events.len());
        self.events.push(Event::Naming(naming));
    }

    pub(crate) fn create(&mut self, name: &str) -> FileId {
        let file = self.files.len();
        self.files.push(File::new(self.events.len() + 1, Image::default()));
        self.rename(Naming::Create { name: name.to_owned(), file });
        file
    }

    pub(crate) fn sync_folder(&mut self) {
        self.events.push(Event::SyncFolder);
        self.folder.synced(self.events.len(), Arc::new(self.names.clone()));
    }

    /// How many blocks can still be allocated.
    pub(crate) fn free_blocks(&self) -> u64 {
        let Some(capacity) = self.capacity else { return u64::MAX };
        let used: u64 = self.names.values().map(|&file| self.files[file].visible.allocated()).sum();
        capacity.saturating_sub(used) / DEVICE_BLOCK as u64
    }

    /// How many of the `len` bytes to be written at `offset` of `file` there is space for.
    pub(crate) fn fitting(&self, file: FileId, offset: u64, len: usize) -> usize {
        let image = &self.files[file].visible;
        let mut free = self.free_blocks();
        let mut fits = 0;
        for part in parts(offset, len) {
            let needed = image.growth(offset + part.at as u64, part.len);
            if needed > free {
                break;
            }
            free -= needed;
            fits += part.len;
        }
        fits
    }

    /// The offset to which a write at `offset` of `file` is misdirected: another block, inside the file if it has
    /// others.
    pub(crate) fn misdirected(&mut self, file: FileId, offset: u64) -> u64 {
        let block = DEVICE_BLOCK as u64;
        let (own, blocks) = (offset / block, self.files[file].visible.len().div_ceil(block));
        let other = if blocks < 2 { own + 1 } else { self.rng.u64(0..blocks) };
        let other = if other == own { (own + 1) % blocks.max(2) } else { other };
        other * block + offset % block
    }
}

/// The error of a device that has failed.
pub(crate) fn device_error(action: &'static str, path: &Path) -> Error {
    Error::io(action, path, std::io::Error::other("the device has failed"))
}

//! The history of a simulated device: its events in order, and which of them were durable at each time. `crash` decides
//! the effect of a power cut.

use crate::image::Image;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Identifies the content of a file for the life of a volume. A name in the folder refers to one.
pub(crate) type FileId = usize;

/// The folder: the names and the contents that they refer to.
pub(crate) type Names = BTreeMap<String, FileId>;

/// A change to a file's content.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    Write {
        offset: u64,
        data: Arc<[u8]>,
    },
    Resize {
        len: u64,
    },
    Trim {
        offset: u64,
        len: u64,
    },
    /// Not a change: a sync of these bytes alone. The blocks that they touch are durable, with all earlier changes.
    SyncBytes {
        offset: u64,
        len: u64,
    },
}

impl Change {
    /// True for a change of bytes or of the length.
    pub(crate) fn changes_content_or_length(&self) -> bool {
        !matches!(self, Change::SyncBytes { .. })
    }

    pub(crate) fn apply(&self, image: &mut Image) {
        match self {
            Change::Write { offset, data } => image.write(*offset, data),
            Change::Resize { len } => image.resize(*len),
            Change::Trim { offset, len } => image.trim(*offset, *len),
            Change::SyncBytes { .. } => {}
        }
    }

    /// The length after the change of a file that had the length `before`.
    pub(crate) fn len_after(&self, before: u64) -> u64 {
        match self {
            Change::Write { offset, data } => before.max(offset + data.len() as u64),
            Change::Resize { len } => *len,
            Change::Trim { .. } | Change::SyncBytes { .. } => before,
        }
    }
}

/// A change to the folder.
#[derive(Clone, Debug)]
pub(crate) enum Naming {
    Create { name: String, file: FileId },
    Remove { name: String },
    Rename { from: String, to: String },
    Exchange { one: String, other: String },
}

impl Naming {
    pub(crate) fn apply(&self, names: &mut Names) {
        match self {
            Naming::Create { name, file } => {
                names.insert(name.clone(), *file);
            }
            Naming::Remove { name } => {
                names.remove(name);
            }
            Naming::Rename { from, to } => {
                if let Some(file) = names.remove(from) {
                    names.insert(to.clone(), file);
                }
            }
            Naming::Exchange { one, other } => {
                if let (Some(first), Some(second)) = (names.remove(one), names.remove(other)) {
                    names.insert(one.clone(), second);
                    names.insert(other.clone(), first);
                }
            }
        }
    }

    /// The names that it changes.
    pub(crate) fn touches(&self) -> [&str; 2] {
        match self {
            Naming::Create { name, .. } | Naming::Remove { name } => [name, name],
            Naming::Rename { from, to } => [from, to],
            Naming::Exchange { one, other } => [one, other],
        }
    }
}

/// One entry of the history.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    Change { file: FileId, change: Change },
    Sync { file: FileId },
    FailedSync { file: FileId },
    Rot { file: FileId },
    Naming(Naming),
    SyncFolder,
    Mark(u64),
}

impl Event {
    /// True for a change of a file or of the folder, which makes nothing durable.
    pub(crate) fn is_change(&self) -> bool {
        match self {
            Event::Change { change, .. } => change.changes_content_or_length(),
            Event::Naming(_) => true,
            _ => false,
        }
    }

    /// The file of a sync that has succeeded, of the whole file or of bytes of it.
    pub(crate) fn synced_file(&self) -> Option<FileId> {
        match self {
            Event::Sync { file } => Some(*file),
            Event::Change { file, change } if !change.changes_content_or_length() => Some(*file),
            _ => None,
        }
    }

    /// True for a sync that has succeeded, of a whole file, of bytes of it, or of the folder.
    pub(crate) fn is_sync(&self) -> bool {
        match self {
            Event::Change { change, .. } => !change.changes_content_or_length(),
            Event::Sync { .. } | Event::SyncFolder => true,
            _ => false,
        }
    }
}

/// The durable version from some event on.
#[derive(Debug)]
struct Durable<T> {
    /// The number of events before it.
    events: usize,
    value: T,
    /// The index of the first change that is not durable with it.
    pending: usize,
}

/// The durable versions of one thing, and the events that changed it.
#[derive(Debug)]
pub(crate) struct Versions<T> {
    durable: Vec<Durable<T>>,
    changes: Vec<usize>,
}

impl<T> Versions<T> {
    /// Begins with `value` durable after `events` events.
    pub(crate) fn new(events: usize, value: T) -> Versions<T> {
        Versions { durable: vec![Durable { events, value, pending: 0 }], changes: Vec::new() }
    }

    /// Records that event `event` changes it.
    pub(crate) fn changed(&mut self, event: usize) {
        self.changes.push(event);
    }

    /// Records that after `events` events `value` is durable and nothing is pending.
    pub(crate) fn synced(&mut self, events: usize, value: T) {
        self.durable.push(Durable { events, value, pending: self.changes.len() });
    }

    /// Records that after `events` events `value` is durable instead, and that pending changes are still pending.
    pub(crate) fn replaced(&mut self, events: usize, value: T) {
        let pending = self.durable.last().map_or(0, |last| last.pending);
        self.durable.push(Durable { events, value, pending });
    }

    /// The events that changed it, of the first `events` events.
    pub(crate) fn changes_before(&self, events: usize) -> &[usize] {
        &self.changes[..self.changes.partition_point(|&event| event < events)]
    }

    /// The durable version after `events` events, and the earlier events that were pending then. `None` if there was no
    /// version yet.
    pub(crate) fn at(&self, events: usize) -> Option<(&T, &[usize])> {
        let found = self.durable.partition_point(|durable| durable.events <= events).checked_sub(1)?;
        let durable = &self.durable[found];
        let end = self.changes.partition_point(|&event| event < events);
        Some((&durable.value, &self.changes[durable.pending.min(end)..end]))
    }
}

//! The counts of a drive that compresses. `cost` computes times from them.

use duramen::io::WriteKind;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// The number of kinds of writes.
const KINDS: usize = WriteKind::ALL.len();

/// The traffic in one direction between a program and the drive.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Traffic {
    /// The number of calls. Neighbouring blocks of the log that one sync writes are one call.
    pub calls: u64,
    /// The number of calls that do not continue where the call before ended. A read may begin in the last block of the
    /// call before it: the drive still has that block.
    pub seeks: u64,
    /// Bytes of whole blocks, before compression.
    pub logical_bytes: u64,
    /// Bytes of these blocks after compression.
    pub physical_bytes: u64,
    /// The physical bytes of each call rounded up to whole blocks: what a drive without compression would store if the
    /// program compressed what it writes.
    pub aligned_bytes: u64,
}

impl Traffic {
    /// Physical bytes for each logical byte, which is alpha in equation 2. 0 if nothing was written.
    pub fn alpha(&self) -> f64 {
        if self.logical_bytes == 0 { 0.0 } else { self.physical_bytes as f64 / self.logical_bytes as f64 }
    }

    fn each(self, other: Traffic, of: impl Fn(u64, u64) -> u64) -> Traffic {
        Traffic {
            calls: of(self.calls, other.calls),
            seeks: of(self.seeks, other.seeks),
            logical_bytes: of(self.logical_bytes, other.logical_bytes),
            physical_bytes: of(self.physical_bytes, other.physical_bytes),
            aligned_bytes: of(self.aligned_bytes, other.aligned_bytes),
        }
    }
}

/// All counts of a drive.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct DriveCounts {
    written: [Traffic; KINDS],
    /// The reads.
    pub read: Traffic,
    /// The number of syncs of files.
    pub syncs: u64,
    /// The number of those that wrote blocks of the log.
    pub log_syncs: u64,
    /// Bytes of whole blocks that were trimmed.
    pub trimmed_bytes: u64,
}

impl DriveCounts {
    /// The writes of a kind.
    pub fn written(&self, kind: WriteKind) -> Traffic {
        self.written[kind as usize]
    }

    /// The writes of all kinds.
    pub fn all_written(&self) -> Traffic {
        self.written.iter().fold(Traffic::default(), |sum, kind| sum.each(*kind, |a, b| a + b))
    }

    /// The counts since `earlier`, which must be from the same drive.
    #[must_use]
    pub fn since(&self, earlier: &DriveCounts) -> DriveCounts {
        let mut since = *self;
        for (now, before) in since.written.iter_mut().zip(earlier.written) {
            *now = now.each(before, |a, b| a - b);
        }
        since.read = self.read.each(earlier.read, |a, b| a - b);
        since.syncs -= earlier.syncs;
        since.log_syncs -= earlier.log_syncs;
        since.trimmed_bytes -= earlier.trimmed_bytes;
        since
    }
}

/// Adds up the counts.
#[derive(Debug, Default)]
pub(super) struct Meter {
    state: Mutex<CountState>,
    /// True if nothing is counted now.
    off: AtomicBool,
}

#[derive(Debug, Default)]
struct CountState {
    counts: DriveCounts,
    /// The file of the last call, and the block after its last one.
    position: (u64, u64),
}

/// Blocks that one call writes or reads.
#[derive(Clone, Copy)]
pub(super) struct Call {
    /// The number of the file.
    pub(super) file: u64,
    /// The first block.
    pub(super) first: u64,
    /// The number of blocks.
    pub(super) blocks: u64,
    /// Their bytes after compression.
    pub(super) physical: u64,
}

impl Meter {
    pub(super) fn set_counting(&self, on: bool) {
        self.off.store(!on, Ordering::Relaxed);
    }

    pub(super) fn is_counting(&self) -> bool {
        !self.off.load(Ordering::Relaxed)
    }

    pub(super) fn counts(&self) -> DriveCounts {
        self.state.lock().counts
    }

    pub(super) fn written(&self, kind: WriteKind, call: Call) {
        let mut state = self.state.lock();
        let continues = state.position == (call.file, call.first);
        state.count(call, continues, |counts| &mut counts.written[kind as usize]);
    }

    pub(super) fn read(&self, call: Call) {
        let mut state = self.state.lock();
        let (file, end) = state.position;
        let continues = file == call.file && (end == call.first || end == call.first + 1);
        state.count(call, continues, |counts| &mut counts.read);
    }

    /// Counts a sync. `log` is true if it wrote blocks of the log.
    pub(super) fn synced(&self, log: bool) {
        let counts = &mut self.state.lock().counts;
        counts.syncs += 1;
        counts.log_syncs += u64::from(log);
    }

    pub(super) fn trimmed(&self, blocks: u64) {
        self.state.lock().counts.trimmed_bytes += blocks * super::file::BLOCK;
    }
}

impl CountState {
    fn count(&mut self, call: Call, continues: bool, of: impl Fn(&mut DriveCounts) -> &mut Traffic) {
        self.position = (call.file, call.first + call.blocks);
        let traffic = of(&mut self.counts);
        traffic.calls += 1;
        traffic.seeks += u64::from(!continues);
        traffic.logical_bytes += call.blocks * super::file::BLOCK;
        traffic.physical_bytes += call.physical;
        traffic.aligned_bytes += call.physical.next_multiple_of(super::file::BLOCK);
    }
}

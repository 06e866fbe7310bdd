//! [`WriteTotals`]: how many bytes, write calls and syncs a database has had, in a form that fits in a superblock.
//! [`StoreCounters`] counts them. `io` defines the kinds of writes.

use crate::base::bytes::{get_u64, put_u64};
use crate::io::{WriteCounts, WriteKind, Written};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many kinds of writes there are.
const KINDS: usize = WriteKind::ALL.len();
/// Bytes of the totals in a superblock.
pub(super) const TOTALS: usize = 8 * (4 + 2 * KINDS);

/// The writes to the files of a database in a period.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("forest.duramen");
/// # const TREES: duramen::TableDef<&str, u64> = duramen::TableDef::new("trees");
/// use duramen::{Database, io::WriteKind};
///
/// let db = Database::create(&path)?;
/// let tx = db.begin_write()?;
/// tx.open_table(TREES)?.put("oak", 700)?;
/// tx.commit()?;
/// let totals = db.metrics().since_open;
/// assert_eq!(totals.user_bytes, 3 + 8, "a key and a value");
/// assert!(totals.written(WriteKind::Log).bytes >= 4096 && totals.log_syncs > 0);
/// assert!(totals.amplification(WriteKind::Log) <= totals.total_amplification());
/// # Ok::<(), duramen::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct WriteTotals {
    /// Bytes of keys and values that commits have put, and of keys that commits have deleted. A key that one commit
    /// puts several times counts once. A range that is deleted counts as its two ends.
    pub user_bytes: u64,
    /// Syncs of the database's file.
    pub data_syncs: u64,
    /// Syncs of the log's files.
    pub log_syncs: u64,
    /// The part of `log_syncs` that was needed only because dirty pages had to be written: their log must be durable
    /// first. A larger cache has fewer.
    pub forced_log_syncs: u64,
    written: [Written; KINDS],
}

impl WriteTotals {
    /// The writes of one kind.
    ///
    /// ```
    /// use duramen::{Database, io::WriteKind};
    ///
    /// let totals = Database::in_memory()?.metrics().since_open;
    /// assert_eq!(totals.written(WriteKind::Page).bytes, 0, "memory is no file");
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn written(&self, kind: WriteKind) -> Written {
        self.written.get(kind as usize).copied().unwrap_or_default()
    }

    /// The writes of all kinds.
    ///
    /// ```
    /// # let volume = std::sync::Arc::new(duramen::io::MemoryVolume::new());
    /// let db = duramen::Database::builder().create_on(volume, "forest")?;
    /// let totals = db.metrics().since_open;
    /// let kinds = duramen::io::WriteKind::ALL.map(|kind| totals.written(kind).bytes);
    /// assert_eq!(totals.all_written().bytes, kinds.iter().sum());
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn all_written(&self) -> Written {
        self.written.iter().fold(Written::default(), |sum, kind| sum.plus(*kind))
    }

    /// Bytes written of a kind for each user byte: a part of the write amplification. `None` without user bytes.
    ///
    /// ```
    /// use duramen::{Database, io::WriteKind};
    ///
    /// let totals = Database::in_memory()?.metrics().since_open;
    /// assert_eq!(totals.amplification(WriteKind::Log), None);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn amplification(&self, kind: WriteKind) -> Option<f64> {
        self.for_a_user_byte(self.written(kind))
    }

    /// Bytes written of all kinds for each user byte: the write amplification, before any compression by the device.
    /// `None` without user bytes.
    ///
    /// ```
    /// let totals = duramen::Database::in_memory()?.metrics().since_open;
    /// assert_eq!(totals.total_amplification(), None);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn total_amplification(&self) -> Option<f64> {
        self.for_a_user_byte(self.all_written())
    }

    fn for_a_user_byte(&self, written: Written) -> Option<f64> {
        (self.user_bytes > 0).then(|| written.bytes as f64 / self.user_bytes as f64)
    }

    /// The sum of both.
    pub(super) fn plus(&self, other: &WriteTotals) -> WriteTotals {
        let mut written = self.written;
        for (sum, more) in written.iter_mut().zip(other.written) {
            *sum = sum.plus(more);
        }
        WriteTotals {
            user_bytes: self.user_bytes.saturating_add(other.user_bytes),
            data_syncs: self.data_syncs.saturating_add(other.data_syncs),
            log_syncs: self.log_syncs.saturating_add(other.log_syncs),
            forced_log_syncs: self.forced_log_syncs.saturating_add(other.forced_log_syncs),
            written,
        }
    }

    /// The totals of one call that writes this number of bytes of superblocks, and of its sync.
    pub(super) fn of_superblock(bytes: usize) -> WriteTotals {
        let mut written = [Written::default(); KINDS];
        if let Some(count) = written.get_mut(WriteKind::Superblock as usize) {
            *count = Written { calls: 1, bytes: bytes as u64 };
        }
        WriteTotals { data_syncs: 1, written, ..WriteTotals::default() }
    }

    /// Puts them into the [`TOTALS`] bytes from `at` on.
    pub(super) fn encode(&self, bytes: &mut [u8], at: usize) {
        let kinds = self.written.iter().flat_map(|count| [count.calls, count.bytes]);
        let numbers = [self.user_bytes, self.data_syncs, self.log_syncs, self.forced_log_syncs];
        for (place, number) in numbers.into_iter().chain(kinds).enumerate() {
            put_u64(bytes, at + 8 * place, number);
        }
    }

    /// Reads what [`WriteTotals::encode`] has put there.
    pub(super) fn decode(bytes: &[u8], at: usize) -> WriteTotals {
        let number = |place: usize| get_u64(bytes, at + 8 * place);
        WriteTotals {
            user_bytes: number(0),
            data_syncs: number(1),
            log_syncs: number(2),
            forced_log_syncs: number(3),
            written: std::array::from_fn(|kind| Written { calls: number(4 + 2 * kind), bytes: number(5 + 2 * kind) }),
        }
    }
}

/// Counts what is written to an open database. The counts need no order among each other.
#[derive(Debug, Default)]
pub(super) struct StoreCounters {
    pub(super) writes: Arc<WriteCounts>,
    user_bytes: AtomicU64,
    forced_log_syncs: AtomicU64,
}

impl StoreCounters {
    /// The totals so far.
    pub(super) fn totals(&self) -> WriteTotals {
        WriteTotals {
            user_bytes: self.user_bytes.load(Ordering::Relaxed),
            data_syncs: self.writes.data_syncs(),
            log_syncs: self.writes.log_syncs(),
            forced_log_syncs: self.forced_log_syncs.load(Ordering::Relaxed),
            written: self.writes.written(),
        }
    }

    /// Counts the bytes that a commit has put or deleted.
    pub(super) fn add_user_bytes(&self, bytes: u64) {
        self.user_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// An eviction has synced the log.
    pub(super) fn add_forced_log_sync(&self) {
        self.forced_log_syncs.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_read_as_they_were_put_and_add_up() {
        let totals = WriteTotals {
            user_bytes: 1,
            data_syncs: 2,
            log_syncs: 3,
            forced_log_syncs: 4,
            written: std::array::from_fn(|kind| Written { calls: 10 + kind as u64, bytes: 100 + kind as u64 }),
        };
        let mut bytes = [0; TOTALS + 16];
        totals.encode(&mut bytes, 8);
        assert_eq!(WriteTotals::decode(&bytes, 8), totals);
        assert_eq!((&bytes[..8], &bytes[8 + TOTALS..]), (&[0; 8][..], &[0; 8][..]));
        let twice = totals.plus(&totals);
        assert_eq!((twice.user_bytes, twice.written(WriteKind::Other).bytes), (2, 210));
        assert_eq!(twice.all_written().calls, 2 * (6 * 10 + 15));
        assert_eq!(totals.amplification(WriteKind::Log), Some(100.0));
    }
}

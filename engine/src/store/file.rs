//! The file of a database, for every store: the two superblocks at its front, its syncs, and the counts of its writes.
//! The bytes after the superblocks belong to the store.

use super::superblock::{self, CurrentSuperblock, FRONT, ID_SLACK, Meta, OtherSuperblock, SUPERBLOCK, Superblock};
use super::syncs::Syncs;
use super::totals::{StoreCounters, WriteTotals};
use super::{StoreKind, StoreOptions};
use crate::base::{Error, Result, limits};
use crate::io::{CountedDisk, Disk, WriteCounts, WriteKind};
use parking_lot::{Mutex, MutexGuard};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The file.
pub struct DatabaseFile {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    page_size: usize,
    kind: StoreKind,
    /// The valid superblock. Locked during a whole checkpoint or superblock write.
    current: Mutex<CurrentSuperblock>,
    /// Both superblocks have at least this high water; 0 as long as that of one is unknown.
    high_water: AtomicU32,
    /// The greatest high water that [`DatabaseFile::raise_high_water`] was called with: no later superblock may have
    /// less.
    raised: AtomicU32,
    syncs: Syncs,
    counters: StoreCounters,
    /// The totals of the writes before the file was opened.
    earlier: WriteTotals,
}

impl std::fmt::Debug for DatabaseFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DatabaseFile").field("path", &self.path).field("kind", &self.kind).finish_non_exhaustive()
    }
}

impl DatabaseFile {
    /// Writes the superblocks of a new database to an empty file and returns once they are durable. `path` is for
    /// messages only.
    pub fn create(options: StoreOptions, disk: Arc<dyn Disk>, path: &Path, meta: Meta) -> Result<DatabaseFile> {
        let StoreOptions { kind, delta } = options;
        limits::check_page_size(meta.page_size + kind.trailer(), false)?;
        let meta = Meta { life: WriteTotals::of_superblock(FRONT), ..meta };
        delta.check()?;
        let store_header = kind.header_of_new(delta, &*disk);
        let first = Superblock { meta, kind, sequence: 1, store_header };
        let second = Superblock { sequence: 2, ..first.clone() };
        disk.write_as(WriteKind::Superblock, 0, &[first.encode(), second.encode()].concat())?;
        disk.sync()?;
        Ok(DatabaseFile::of(
            disk,
            path,
            CurrentSuperblock { superblock: second, slot: 1, other: OtherSuperblock::Same },
        ))
    }

    /// Reads the superblocks. Nothing is written.
    ///
    /// # Errors
    /// Those of [`superblock::choose`].
    pub fn open(disk: Arc<dyn Disk>, path: &Path) -> Result<DatabaseFile> {
        let mut front = vec![0; usize::try_from(disk.size()?.min(FRONT as u64)).unwrap_or(0)];
        disk.read_at(0, &mut front)?;
        Ok(DatabaseFile::of(disk, path, superblock::choose(&front, path)?))
    }

    /// The file whose valid superblock is this one.
    pub(super) fn of(disk: Arc<dyn Disk>, path: &Path, current: CurrentSuperblock) -> DatabaseFile {
        let counters = StoreCounters::default();
        DatabaseFile {
            disk: Arc::new(CountedDisk::data(disk, counters.writes.clone())),
            path: path.to_owned(),
            page_size: current.superblock.meta.page_size,
            kind: current.superblock.kind,
            earlier: current.superblock.meta.life,
            current: Mutex::new(current),
            high_water: AtomicU32::new(0),
            raised: AtomicU32::new(0),
            syncs: Syncs::default(),
            counters,
        }
    }

    /// The page store that keeps the pages.
    pub fn kind(&self) -> StoreKind {
        self.kind
    }

    /// Bytes of a page.
    pub fn page_size(&self) -> usize {
        self.page_size
    }

    /// The file itself; its syncs go through [`DatabaseFile::sync`].
    pub(super) fn disk(&self) -> &dyn Disk {
        &*self.disk
    }

    /// Makes all further reads and writes of the file bypass the file cache of the system.
    ///
    /// # Errors
    /// [`Error::Option`] if the file system does not support it.
    pub(crate) fn use_direct_io(&self) -> Result<()> {
        match self.disk.use_direct_io()? {
            true => Ok(()),
            false => Err(Error::Option {
                option: "direct_io",
                value: "true".to_owned(),
                expected: format!("false, because the file system of {} has no direct I/O", self.path.display()),
            }),
        }
    }

    /// Bytes on the device; the length where the system does not say.
    pub fn allocated(&self) -> u64 {
        self.disk.allocated().or_else(|_| self.disk.size()).unwrap_or(0)
    }

    /// The path of the file, for messages.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The totals of the writes since the file was opened.
    pub fn written(&self) -> WriteTotals {
        self.counters.totals()
    }

    /// The totals of the writes since the database was created, as far as superblocks have them.
    pub fn written_in_life(&self) -> WriteTotals {
        self.earlier.plus(&self.written())
    }

    /// Counts writes to the database's other files, too.
    pub(crate) fn write_counts(&self) -> Arc<WriteCounts> {
        self.counters.writes.clone()
    }

    /// Counts bytes that a commit has put or deleted.
    pub(crate) fn count_user_bytes(&self, bytes: u64) {
        self.counters.add_user_bytes(bytes);
    }

    /// Counts a sync of the log that an eviction needed.
    pub(super) fn count_forced_log_sync(&self) {
        self.counters.add_forced_log_sync();
    }

    /// The layers' part of the valid superblock. Waits for a checkpoint that is being finished.
    pub fn meta(&self) -> Meta {
        self.current.lock().superblock.meta
    }

    /// The store's header: its own bytes in the superblock.
    pub(super) fn store_header(&self) -> Vec<u8> {
        self.current.lock().superblock.store_header.clone()
    }

    /// The number of the damaged superblock, if one of the two is damaged. The next superblock is written over it.
    pub fn damaged_superblock(&self) -> Option<usize> {
        let current = self.current.lock();
        (current.other == OtherSuperblock::Damaged).then(|| 1 - current.slot.min(1))
    }

    /// Returns once everything that was written before the call is durable. After a failure nothing can be made
    /// durable: this and every later call returns [`crate::Error::Poisoned`].
    pub fn sync(&self) -> Result<()> {
        self.syncs.sync(self.disk())
    }

    /// An error once a sync has failed.
    pub fn check_failed(&self) -> Result<()> {
        self.syncs.check()
    }

    /// Takes the right to write the next superblock, and to write before it what it will refer to.
    pub(super) fn begin_update(&self) -> Result<SuperblockUpdate<'_>> {
        let current = self.current.lock();
        self.check_failed()?;
        Ok(SuperblockUpdate { file: self, current })
    }

    /// Writes a superblock with the store's bytes unchanged: to mark a clean database as in use, or the other way
    /// round. Returns once it is durable.
    pub fn write_meta(&self, meta: Meta) -> Result<()> {
        let mut update = self.begin_update()?;
        let store_header = update.store_header().to_vec();
        update.write(meta, store_header)
    }

    /// Makes the superblock that was chosen at opening durable, in both slots. Call it before anything else is written.
    ///
    /// It may be only in the system's cache: the process that wrote it was killed before its sync, or the sync failed,
    /// and then no later sync writes it. So it is written again, with the same bytes, to its own slot, and synced.
    /// Everything that it refers to was synced before it was written. Until then, the device may still have the other
    /// superblock as the valid one. If that one leads to an older state, it is overwritten too. Until this returns,
    /// whatever the older one refers to must not be overwritten, nor its log removed.
    ///
    /// `log_follows`: the log has commits that this superblock does not have, see [`Meta::log_follows`].
    pub fn make_superblock_durable(&self, log_follows: bool) -> Result<()> {
        let mut update = self.begin_update()?;
        // Another program may have put the file here, as a copy, and no sync may have covered its bytes.
        self.sync()?;
        self.write_superblock(update.current.slot, &update.current.superblock)?;
        if update.current.other == OtherSuperblock::Same {
            return Ok(());
        }
        let Superblock { meta, store_header, .. } = update.current.superblock.clone();
        update.write(Meta { log_follows: meta.log_follows || log_follows, ..meta }, store_header)
    }

    /// Returns once the superblock is durable. Other writes may not be: all that a superblock refers to must be synced
    /// before.
    fn write_superblock(&self, slot: usize, superblock: &Superblock) -> Result<()> {
        let (offset, bytes) = ((slot * SUPERBLOCK) as u64, superblock.encode());
        self.disk.write_as(WriteKind::Superblock, offset, &bytes)?;
        self.syncs.sync_bytes(self.disk(), offset, &bytes)
    }

    /// The log may name pages below this one. Before it names others, [`DatabaseFile::raise_high_water`] must be
    /// called.
    fn page_id_limit(&self) -> u32 {
        self.high_water.load(Ordering::Acquire).saturating_add(ID_SLACK)
    }

    /// Raises the high water of both superblocks, if it must be raised before the log may name pages below `high`; see
    /// [`ID_SLACK`].
    ///
    /// # Errors
    /// Errors of writing. The log must not name these pages then.
    pub fn raise_high_water(&self, high: u32) -> Result<()> {
        while high > self.page_id_limit() {
            let mut update = self.begin_update()?;
            self.raised.fetch_max(high, Ordering::AcqRel);
            let (meta, store_header) = (update.current.superblock.meta, update.store_header().to_vec());
            update.write(meta, store_header)?;
        }
        Ok(())
    }
}

/// The right to write the next superblock.
pub(super) struct SuperblockUpdate<'f> {
    file: &'f DatabaseFile,
    current: MutexGuard<'f, CurrentSuperblock>,
}

impl SuperblockUpdate<'_> {
    /// The store's header: its own bytes in the superblock so far.
    pub(super) fn store_header(&self) -> &[u8] {
        &self.current.superblock.store_header
    }

    /// The layers' part of the superblock so far.
    pub(super) fn meta(&self) -> &Meta {
        &self.current.superblock.meta
    }

    /// Writes a superblock that has other bytes of the store.
    pub(super) fn write_store_header(&mut self, store_header: Vec<u8>) -> Result<()> {
        self.write(self.current.superblock.meta, store_header)
    }

    /// Writes a superblock over the older one and returns once it is durable. After an error the device may have it or
    /// not.
    pub(super) fn write(&mut self, mut meta: Meta, store_header: Vec<u8>) -> Result<()> {
        let (file, current) = (self.file, &mut *self.current);
        let slot = 1 - current.slot.min(1);
        // A checkpoint has read the high water before it came here.
        meta.high_water = meta.high_water.max(file.raised.load(Ordering::Acquire));
        meta.life = file.written_in_life().plus(&WriteTotals::of_superblock(SUPERBLOCK));
        // The sequence number grows even if this fails: the next try writes to the same place and must count more.
        current.superblock.sequence += 1;
        if current.other == OtherSuperblock::Same {
            current.other = OtherSuperblock::Older;
        }
        let next = Superblock { meta, kind: file.kind, sequence: current.superblock.sequence, store_header };
        file.write_superblock(slot, &next)?;
        let both = meta.high_water.min(current.superblock.meta.high_water);
        file.high_water.store(both, Ordering::Release);
        let other = next.other(&current.superblock);
        *current = CurrentSuperblock { superblock: next, slot, other };
        Ok(())
    }
}

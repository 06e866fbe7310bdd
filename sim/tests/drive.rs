//! The drive that compresses: its counts against numbers computed by hand, and its contents and counts against a model.

use duramen::Database;
use duramen::io::{Disk, MemoryVolume, OpenMode, Volume, WriteKind};
use duramen_sim::{CallCost, DeviceModel, DriveVolume};
use flate2::{Compress, Compression, FlushCompress};
use proptest::prelude::*;
use std::sync::Arc;

const BLOCK: usize = 4096;

fn drive() -> (DriveVolume, Arc<dyn Disk>) {
    let drive = DriveVolume::new(Arc::new(MemoryVolume::new()));
    let disk = drive.open("file", OpenMode::CreateNew).unwrap();
    (drive, disk)
}

/// Bytes that zlib does not make shorter.
fn random(seed: u64, len: usize) -> Vec<u8> {
    let mut rng = fastrand::Rng::with_seed(seed);
    std::iter::repeat_with(|| rng.u8(..)).take(len).collect()
}

#[test]
fn a_block_that_zlib_does_not_shorten_takes_a_block() {
    let (drive, disk) = drive();
    disk.write_as(WriteKind::Page, 0, &random(1, 2 * BLOCK)).unwrap();
    let page = drive.counts().written(WriteKind::Page);
    assert_eq!((page.calls, page.logical_bytes, page.physical_bytes, page.aligned_bytes), (1, 8192, 8192, 8192));
    assert_eq!((page.alpha(), drive.stored_bytes("file").unwrap()), (1.0, 8192));
    assert_eq!(drive.counts().written(WriteKind::Table).alpha(), 0.0, "nothing was written of that kind");
}

#[test]
fn zeros_take_almost_nothing_and_rounding_up_to_blocks_wastes_the_rest() {
    let (drive, disk) = drive();
    // Random bytes in a page of 16 KiB that is otherwise zero: the example of figure 1.
    let mut page = vec![0; 4 * BLOCK];
    page[..5000].copy_from_slice(&random(2, 5000));
    disk.write_as(WriteKind::Page, 0, &page).unwrap();
    let written = drive.counts().written(WriteKind::Page);
    assert_eq!(written.logical_bytes, 16384);
    assert!((5000..5200).contains(&written.physical_bytes), "{written:?}");
    assert_eq!(written.aligned_bytes, 8192, "two blocks, of which about 3 KiB are wasted");
}

#[test]
fn a_block_written_in_part_is_written_whole() {
    let (drive, disk) = drive();
    disk.write_as(WriteKind::Page, 0, &random(3, BLOCK)).unwrap();
    disk.write_as(WriteKind::Delta, 4000, &random(4, 200)).unwrap();
    let delta = drive.counts().written(WriteKind::Delta);
    assert_eq!((delta.calls, delta.logical_bytes), (1, 8192), "the end of one block and the beginning of the next");
    assert!((4096 + 104..4096 + 200).contains(&delta.physical_bytes), "{delta:?}");
}

#[test]
fn a_block_of_the_log_counts_once_a_sync() {
    let (drive, disk) = drive();
    for at in 0..10 {
        disk.write_as(WriteKind::Log, at * 400, &random(at, 400)).unwrap();
    }
    assert_eq!(drive.counts().all_written().calls, 0, "the cache of the system has it");
    disk.sync().unwrap();
    disk.sync().unwrap();
    let log = drive.counts().written(WriteKind::Log);
    assert_eq!((log.calls, log.logical_bytes), (1, 4096));
    assert_eq!((drive.counts().syncs, drive.counts().log_syncs), (2, 1));
    // The block is written again with what follows in it, and the one after the next is another call.
    disk.write_as(WriteKind::Log, 4000, &random(20, 96)).unwrap();
    disk.write_as(WriteKind::Log, 2 * 4096, &random(21, 96)).unwrap();
    disk.sync().unwrap();
    let since = drive.counts().written(WriteKind::Log);
    assert_eq!((since.calls - log.calls, since.logical_bytes - log.logical_bytes), (2, 8192));
    assert!((4096 + 96..4096 + 200).contains(&(since.physical_bytes - log.physical_bytes)), "{since:?}");
}

#[test]
fn trimmed_truncated_and_removed_bytes_take_no_space() {
    let (drive, disk) = drive();
    disk.write_as(WriteKind::Page, 0, &random(5, 4 * BLOCK)).unwrap();
    disk.trim(100, 2 * BLOCK as u64).unwrap();
    assert_eq!(drive.stored_bytes("file").unwrap(), 3 * 4096, "one whole block is in the range");
    assert_eq!(drive.counts().trimmed_bytes, 4096);
    disk.resize(3 * BLOCK as u64 - 1).unwrap();
    assert_eq!(drive.stored_bytes("file").unwrap(), 2 * 4096);
    drive.rename("file", "other").unwrap();
    assert_eq!((drive.stored_bytes("file").unwrap(), drive.stored_bytes("other").unwrap()), (0, 2 * 4096));
    drive.remove("other").unwrap();
    assert_eq!(drive.stored_bytes("other").unwrap(), 0);
}

#[test]
fn existing_bytes_of_an_opened_file_take_space_and_count_as_unwritten() {
    let below = Arc::new(MemoryVolume::new());
    let file = below.open("file", OpenMode::CreateNew).unwrap();
    file.write_at(0, &random(6, BLOCK)).unwrap();
    file.resize(5 * BLOCK as u64).unwrap();
    let drive = DriveVolume::new(below);
    let disk = drive.open("file", OpenMode::Read).unwrap();
    assert_eq!((drive.stored_bytes("file").unwrap(), drive.counts().all_written().calls), (4096, 0));
    disk.read_at(4000, &mut [0; 200]).unwrap();
    let read = drive.counts().read;
    assert_eq!((read.calls, read.logical_bytes, read.physical_bytes), (1, 8192, 4096));
}

#[test]
fn a_drive_without_compression_stores_every_block_as_it_is() {
    let drive = DriveVolume::new(Arc::new(MemoryVolume::new())).without_compression();
    let disk = drive.open("file", OpenMode::CreateNew).unwrap();
    disk.write_as(WriteKind::Page, 0, &[7; 3 * BLOCK]).unwrap();
    disk.trim(0, BLOCK as u64).unwrap();
    let written = drive.counts().all_written();
    assert_eq!((written.logical_bytes, written.physical_bytes), (3 * 4096, 3 * 4096));
    assert_eq!(drive.stored_bytes("file").unwrap(), 2 * 4096);
}

#[test]
fn uncounted_writes_take_space() {
    let (drive, disk) = drive();
    drive.set_counting(false);
    disk.write_as(WriteKind::Page, 0, &random(9, 2 * BLOCK)).unwrap();
    disk.write_as(WriteKind::Log, 2 * BLOCK as u64, &random(10, BLOCK)).unwrap();
    disk.sync().unwrap();
    disk.read_at(0, &mut [0; 10]).unwrap();
    assert_eq!(drive.counts(), Default::default());
    drive.set_counting(true);
    disk.read_at(4000, &mut [0; 200]).unwrap();
    assert_eq!(drive.counts().read.physical_bytes, 8192);
    disk.sync().unwrap();
    let counts = drive.counts();
    assert_eq!((counts.all_written().calls, counts.log_syncs, drive.stored_bytes("file").unwrap()), (0, 0, 3 * 4096));
}

#[test]
fn device_time_is_the_sum_of_calls_blocks_bytes_and_seeks() {
    let device = DeviceModel {
        name: "test",
        compresses: true,
        read: CallCost { call: 1.0, seek: 100.0, byte: 2.0, parallel: 2.0 },
        write: CallCost { call: 10.0, seek: 100.0, byte: 3.0, parallel: 2.0 },
        block: 1000.0,
        bus_byte: 0.5,
    };
    let (drive, disk) = drive();
    disk.write_as(WriteKind::Page, 0, &random(7, BLOCK)).unwrap(); // a seek
    disk.write_as(WriteKind::Page, 4096, &random(8, BLOCK)).unwrap(); // goes on
    disk.read_at(0, &mut [0; 10]).unwrap(); // a seek
    disk.sync().unwrap();
    let calls = 1.0 + 3.0 * 10.0;
    let overlapping = calls + 2.0 * 100.0 + 3.0 * 1000.0 + 4096.0 * 2.0 + 8192.0 * 3.0;
    let bus = 3.0 * 4096.0 * 0.5;
    assert_eq!(device.seconds(&drive.counts(), 1), bus + overlapping);
    assert_eq!(device.seconds(&drive.counts(), 4), bus + overlapping / 2.0, "it does two calls at once at most");
    let stored = DeviceModel { compresses: false, ..device };
    assert_eq!(stored.seconds(&drive.counts(), 1), bus + overlapping, "nothing here is compressible");
    assert_eq!(device.seconds(&drive.counts().since(&drive.counts()), 1), 0.0);
}

#[test]
fn a_read_continues_the_call_that_ended_in_its_first_block() {
    let (drive, disk) = drive();
    disk.write_as(WriteKind::Page, 0, &random(11, 6 * BLOCK)).unwrap();
    let mut seeks = Vec::new();
    // To the front, from the end of the last block, from within it, the same bytes again, and back.
    for (at, len) in [(0, 4096), (4096, 1000), (5096, 5000), (5096, 5000), (0, 10)] {
        let before = drive.counts();
        disk.read_at(at, &mut vec![0; len]).unwrap();
        seeks.push(drive.counts().since(&before).read.seeks);
    }
    assert_eq!(seeks, [1, 0, 0, 1, 1]);
    let before = drive.counts();
    disk.write_as(WriteKind::Page, 0, &[1; BLOCK]).unwrap(); // the block that was read before
    assert_eq!(drive.counts().since(&before).all_written().seeks, 1);
}

#[test]
fn a_database_on_the_drive_gives_each_write_its_kind() {
    let drive = Arc::new(DriveVolume::new(Arc::new(MemoryVolume::new())));
    let of = duramen::TableDef::<u64, u64>::new("numbers");
    let db = Database::builder().background(false).create_on(drive.clone(), "db").unwrap();
    let tx = db.begin_write().unwrap();
    (0..10_000).for_each(|n| tx.open_table(of).unwrap().put(n, n * n).unwrap());
    tx.commit().unwrap();
    db.close().unwrap();
    let counts = drive.counts();
    for kind in [WriteKind::Log, WriteKind::Page, WriteKind::Table, WriteKind::Superblock] {
        assert!(counts.written(kind).physical_bytes > 0, "{}", kind.name());
    }
    assert_eq!((counts.written(WriteKind::Delta).calls, counts.written(WriteKind::Other).calls), (0, 0));
    let db = Database::builder().open_read_only_on(drive, "db").unwrap();
    let table = db.begin_read().unwrap().open_table(of).unwrap();
    assert!((0..10_000).all(|n| table.get(n).unwrap().unwrap().value() == n * n));
}

/// A file, block by block.
#[derive(Default)]
struct Model {
    bytes: Vec<u8>,
    /// Bytes that each block takes; `None`: it is compressed when its size is needed.
    stored: Vec<Option<u64>>,
    unsynced: Vec<bool>,
    log: u64,
    page: u64,
    /// Nothing is counted.
    off: bool,
}

impl Model {
    fn block(&self, block: usize) -> Vec<u8> {
        let mut bytes = self.bytes[block * BLOCK..self.bytes.len().min((block + 1) * BLOCK)].to_vec();
        bytes.resize(BLOCK, 0);
        bytes
    }

    fn store(&mut self, block: usize) -> u64 {
        let (mut zlib, mut out) = (Compress::new(Compression::new(1), true), vec![0; 2 * BLOCK]);
        zlib.compress(&self.block(block), &mut out, FlushCompress::Finish).unwrap();
        let taken = zlib.total_out().min(4096);
        self.stored[block] = Some(taken);
        taken
    }

    /// Stores a block; returns how many bytes count.
    fn count(&mut self, block: usize) -> u64 {
        if self.off {
            self.stored[block] = None;
            return 0;
        }
        self.store(block)
    }

    fn stored_bytes(&mut self) -> u64 {
        (0..self.stored.len()).map(|block| self.stored[block].unwrap_or_else(|| self.store(block))).sum()
    }

    fn fit(&mut self, len: usize) {
        self.bytes.resize(len, 0);
        self.stored.resize(len.div_ceil(BLOCK), Some(0));
        self.unsynced.resize(len.div_ceil(BLOCK), false);
    }
}

#[derive(Clone, Debug)]
enum Op {
    Write { log: bool, at: usize, len: usize, random: bool },
    Trim { first: usize, blocks: usize },
    Resize { len: usize },
    Sync,
    Counting { on: bool },
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (any::<bool>(), 0..30_000usize, 1..9_000usize, any::<bool>())
            .prop_map(|(log, at, len, random)| Op::Write { log, at, len, random }),
        1 => (0..8usize, 0..4usize).prop_map(|(first, blocks)| Op::Trim { first, blocks }),
        1 => (0..40_000usize).prop_map(|len| Op::Resize { len }),
        2 => Just(Op::Sync),
        1 => any::<bool>().prop_map(|on| Op::Counting { on }),
    ]
}

proptest! {
    #[test]
    fn contents_and_counts_are_those_of_the_model(ops in proptest::collection::vec(op(), 1..40)) {
        let (drive, disk) = drive();
        let mut model = Model::default();
        for (number, op) in ops.into_iter().enumerate() {
            match op {
                Op::Write { log, at, len, random: noise } => {
                    let bytes = if noise { random(number as u64, len) } else { vec![number as u8; len] };
                    let kind = if log { WriteKind::Log } else { WriteKind::Page };
                    disk.write_as(kind, at as u64, &bytes).unwrap();
                    model.fit(model.bytes.len().max(at + len));
                    model.bytes[at..at + len].copy_from_slice(&bytes);
                    for block in at / BLOCK..(at + len).div_ceil(BLOCK) {
                        match log {
                            true => model.unsynced[block] = true,
                            false => model.page += model.count(block),
                        }
                    }
                }
                Op::Trim { first, blocks } => {
                    disk.trim((first * BLOCK) as u64, (blocks * BLOCK) as u64).unwrap();
                    let end = model.stored.len();
                    for block in first.min(end)..(first + blocks).min(end) {
                        let end = model.bytes.len().min((block + 1) * BLOCK);
                        model.bytes[block * BLOCK..end].fill(0);
                        (model.stored[block], model.unsynced[block]) = (Some(0), false);
                    }
                }
                Op::Resize { len } => {
                    disk.resize(len as u64).unwrap();
                    model.fit(len);
                }
                Op::Sync => {
                    disk.sync().unwrap();
                    for block in 0..model.stored.len() {
                        if std::mem::take(&mut model.unsynced[block]) {
                            model.log += model.count(block);
                        }
                    }
                }
                Op::Counting { on } => {
                    drive.set_counting(on);
                    model.off = !on;
                }
            }
        }
        let mut bytes = vec![0; model.bytes.len()];
        prop_assert_eq!(disk.size().unwrap(), bytes.len() as u64);
        disk.read_at(0, &mut bytes).unwrap();
        prop_assert!(bytes == model.bytes);
        let counts = drive.counts();
        prop_assert_eq!(counts.written(WriteKind::Page).physical_bytes, model.page);
        prop_assert_eq!(counts.written(WriteKind::Log).physical_bytes, model.log);
        prop_assert_eq!(drive.stored_bytes("file").unwrap(), model.stored_bytes());
    }
}

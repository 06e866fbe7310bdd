//! The log loses no acknowledged batch, keeps a prefix of whole batches, and can always be read from the redo point of
//! the superblock. The tests cut the power at every event of sequences of appends, syncs, rotations, checkpoints,
//! recoveries and clean closes, and again at every event of the recovery that follows.

use duramen::base::{Lsn, Result, bytes, checksum::checksum, watermark::Watermark};
use duramen::io::{OpenMode, Volume};
use duramen::log::{self, Log, LogConfig, LogPosition, LogShape};
use duramen_sim::{Cut, CutChoice, FailingVolume, Fault, Trigger};
use std::sync::Arc;

/// Spare files of at most this number of bytes: a checkpoint keeps one or a few, and cuts some.
const SPARE: u64 = 24_000;

/// The fields that the layers above would keep in the superblock.
#[derive(Clone, Copy, Debug)]
struct Superblock {
    sequence: u64,
    redo: LogPosition,
    clean: bool,
    /// How many batches lie before the redo point.
    before: u64,
}

impl Superblock {
    const FILE: &str = "db";
    const SLOT: u64 = 4096;

    fn decode(slot: &[u8]) -> Option<Superblock> {
        (bytes::get_u32(slot, 40) == checksum(&slot[..40])).then(|| Superblock {
            sequence: bytes::get_u64(slot, 0),
            redo: LogPosition { lsn: Lsn(bytes::get_u64(slot, 8)), epoch: bytes::get_u32(slot, 16) },
            clean: bytes::get_u32(slot, 20) == 1,
            before: bytes::get_u64(slot, 24),
        })
    }

    /// The newer of the two slots; `None` where the creation of the database was cut.
    fn load(volume: &FailingVolume) -> Option<Superblock> {
        let disk = volume.open(Self::FILE, OpenMode::Read).ok()?;
        let slot = |number: u64| {
            let mut slot = [0; 512];
            disk.read_at(number * Self::SLOT, &mut slot).ok()?;
            Superblock::decode(&slot)
        };
        [slot(0), slot(1)].into_iter().flatten().filter(|found| found.sequence > 0).max_by_key(|found| found.sequence)
    }

    fn store(mut self, volume: &FailingVolume) -> Result<Superblock> {
        self.sequence += 1;
        let mut slot = [0; 512];
        bytes::put_u64(&mut slot, 0, self.sequence);
        bytes::put_u64(&mut slot, 8, self.redo.lsn.0);
        bytes::put_u32(&mut slot, 16, self.redo.epoch);
        bytes::put_u32(&mut slot, 20, u32::from(self.clean));
        bytes::put_u64(&mut slot, 24, self.before);
        let sum = checksum(&slot[..40]);
        bytes::put_u32(&mut slot, 40, sum);
        let disk = volume.open(Self::FILE, OpenMode::Write)?;
        disk.write_at(self.sequence % 2 * Self::SLOT, &slot)?;
        disk.sync()?;
        Ok(self)
    }
}

/// A database that is nothing but its log.
struct Database {
    volume: FailingVolume,
    config: LogConfig,
    superblock: Superblock,
    log: Log,
    /// Every batch since the beginning.
    batches: Vec<Vec<u8>>,
    /// Goes into the payloads, so that a batch of a lost future is not mistaken for its successor.
    life: u8,
}

fn config(volume: &FailingVolume, shape: LogShape) -> LogConfig {
    LogConfig { volume: Arc::new(volume.clone()), prefix: "db-log".into(), database: 77, shape }
}

impl Database {
    fn create(volume: FailingVolume, shape: LogShape) -> Database {
        let config = config(&volume, shape);
        let disk = volume.open(Superblock::FILE, OpenMode::CreateNew).unwrap();
        disk.resize(2 * Superblock::SLOT).unwrap();
        disk.sync().unwrap();
        volume.sync().unwrap();
        let log = Log::create(config.clone(), 1, Lsn(0)).unwrap();
        log.keep_spares(SPARE);
        let redo = LogPosition { lsn: Lsn(0), epoch: 1 };
        let superblock = Superblock { sequence: 0, redo, clean: false, before: 0 }.store(&volume).unwrap();
        Database { volume, config, superblock, log, batches: Vec::new(), life: 0 }
    }

    /// Opens what is on `volume`. The batches found must be a prefix of `possible`, with at least `acknowledged` of
    /// them. `None` where there is no database yet.
    fn open(
        volume: &FailingVolume,
        shape: LogShape,
        possible: &[Vec<u8>],
        acknowledged: u64,
        life: u8,
    ) -> Result<Option<Database>> {
        let Some(superblock) = Superblock::load(volume) else {
            assert_eq!(acknowledged, 0, "the database is gone");
            return Ok(None);
        };
        let config = config(volume, shape);
        let mut found: Vec<Vec<u8>> = possible[..superblock.before as usize].to_vec();
        let (log, superblock) = if superblock.clean {
            let log = Log::create(config.clone(), superblock.redo.epoch + 1, superblock.redo.lsn)?;
            let redo = LogPosition { epoch: log.epoch(), ..superblock.redo };
            (log, Superblock { redo, clean: false, ..superblock }.store(volume)?)
        } else {
            let reader = log::read(config.clone(), superblock.redo, superblock.redo.lsn)?;
            let mut reader = reader.expect("an unclean database has a log");
            while let Some(batch) = reader.next()? {
                found.push(batch.payload);
            }
            (Log::resume(reader)?, superblock)
        };
        assert!(possible.starts_with(&found), "{} batches are not the first of {}", found.len(), possible.len());
        assert!(found.len() as u64 >= acknowledged, "{} of {acknowledged} acknowledged batches", found.len());
        log.keep_spares(SPARE);
        volume.mark(found.len() as u64);
        Ok(Some(Database { volume: volume.clone(), config, superblock, log, batches: found, life }))
    }

    /// Does what one letter says.
    fn step(self, letter: char) -> (Option<Database>, Result<()>) {
        let mut database = self;
        let done = match letter {
            'x' => return database.close_and_open(),
            'k' => return database.kill_and_recover(),
            'a' => database.append(30),
            'b' => database.append(9000),
            's' => database.sync(),
            'r' => database.log.rotate().map(|_| database.acknowledge()),
            // The next sync or rotation finishes this one. Until then, another `w` only
            // prepares a file.
            'w' => database.log.prepare_segment().and_then(|()| database.log.switch_segment()).map(drop),
            'v' => database.log.reserve(20_000),
            'g' => database.log.give_back_reservation(),
            'f' => database.log.remove_spares().map(|()| database.log.keep_spares(SPARE)),
            'c' => database.checkpoint(),
            other => unreachable!("no step {other}"),
        };
        (Some(database), done)
    }

    fn append(&mut self, len: usize) -> Result<()> {
        let number = self.batches.len() as u8;
        let payload: Vec<u8> = [number, self.life].into_iter().cycle().take(len).collect();
        // A write that fails may be found later all the same.
        self.batches.push(payload.clone());
        self.log.append(number, &payload).map(|_| ())
    }

    fn acknowledge(&self) {
        self.volume.mark(self.batches.len() as u64);
    }

    fn sync(&mut self) -> Result<()> {
        self.log.make_durable(self.log.next_lsn())?;
        self.acknowledge();
        Ok(())
    }

    fn checkpoint(&mut self) -> Result<()> {
        let lsn = self.log.rotate()?;
        self.acknowledge();
        let redo = LogPosition { lsn, epoch: self.log.epoch() };
        let superblock = Superblock { redo, before: self.batches.len() as u64, ..self.superblock };
        self.superblock = superblock.store(&self.volume)?;
        self.log.remove_before(lsn)
    }

    fn close_and_open(mut self) -> (Option<Database>, Result<()>) {
        let closed = self.sync().and_then(|()| {
            let redo = LogPosition { lsn: self.log.next_lsn(), epoch: self.log.epoch() };
            let closed = Superblock { redo, clean: true, before: self.batches.len() as u64, ..self.superblock };
            self.superblock = closed.store(&self.volume)?;
            self.log.remove_all()
        });
        if closed.is_err() {
            return (Some(self), closed);
        }
        assert!(self.volume.list("db-log").unwrap().is_empty());
        self.kill_and_recover()
    }

    /// A process that dies loses nothing that it handed to the system.
    fn kill_and_recover(self) -> (Option<Database>, Result<()>) {
        let Database { volume, config, log, batches, life, .. } = self;
        drop(log);
        match Database::open(&volume, config.shape, &batches, batches.len() as u64, life) {
            Ok(database) => (database, Ok(())),
            Err(error) => panic!("recovery without a power cut: {error}"),
        }
    }
}

/// Runs `script` to its end.
fn run(mut database: Database, script: &str) -> Database {
    for letter in script.chars() {
        let (next, done) = database.step(letter);
        done.unwrap();
        database = next.unwrap();
    }
    database
}

const SCRIPTS: [&str; 9] = [
    "aasabsaarasac",
    "aksakabsraakcasa",
    "asxaabsxacvax",
    "vbsrrasckasrabkaca",
    // Segments are used again: after longer and shorter ones, and with torn tails over old content.
    "bacabsarbcasacsaakasca",
    "vbscvascasgacfbcascax",
    // The log continues in a new segment. Neither this segment nor the old one is durable yet.
    "aawabsawbwascaawak",
    "abwkawbakasbcawcwa",
    "vbwcbawascsawbxawab",
];
const AFTERWARDS: [&str; 4] = ["aasca", "kabs", "casx", "awbksa"];
const SHAPES: [LogShape; 2] = [LogShape::Packed, LogShape::Sparse];

fn try_cut(volume: &FailingVolume, cut: Cut, shape: LogShape, possible: &[Vec<u8>], life: u8) -> Option<Database> {
    let acknowledged = volume.last_mark_before(cut.event).unwrap_or(0);
    match Database::open(&volume.crash(cut), shape, possible, acknowledged, life) {
        Ok(database) => database,
        Err(error) => panic!("{cut:?} before {}: {error}", volume.describe(cut.event)),
    }
}

#[test]
fn any_power_cut_and_any_cut_of_its_recovery_keeps_acknowledged_records() {
    let mut states = 0;
    for (number, script) in SCRIPTS.into_iter().enumerate() {
        for shape in SHAPES {
            let first = run(Database::create(FailingVolume::new(1), shape), script);
            for (turn, cut) in first.volume.cuts(3).into_iter().enumerate() {
                states += 1;
                let Some(recovered) = try_cut(&first.volume, cut, shape, &first.batches, 1) else { continue };
                // Everything that a recovery finds after a power cut is on the device.
                let floor = recovered.batches.len();
                let second = run(recovered, AFTERWARDS[(turn + number) % AFTERWARDS.len()]);
                // One recovery in seven is cut everywhere itself: they are alike.
                if turn % 7 != 0 {
                    continue;
                }
                for cut in second.volume.cuts(1) {
                    states += 1;
                    let third = try_cut(&second.volume, cut, shape, &second.batches, 2).expect("it was there before");
                    assert!(third.batches.len() >= floor);
                }
            }
        }
    }
    assert!(states > 10_000, "{states} states");
}

#[test]
fn a_failed_sync_then_a_recovery_then_a_power_cut_keeps_acknowledged_records() {
    for script in SCRIPTS {
        for shape in SHAPES {
            for calls in 0.. {
                let volume = FailingVolume::new(calls);
                let mut database = Database::create(volume.clone(), shape);
                volume.inject(Fault::FailSync, Trigger::once().after(calls).on("db-log"));
                let mut failed = false;
                for letter in script.chars() {
                    // Recoveries have no log to poison yet; a failure there is the caller's to repeat.
                    if matches!(letter, 'k' | 'x') {
                        continue;
                    }
                    let (next, done) = database.step(letter);
                    database = next.unwrap();
                    if done.is_err() {
                        failed = true;
                        break;
                    }
                }
                if !failed {
                    break;
                }
                let recovered = run(database, "kasab");
                for cut in volume.cuts(2) {
                    try_cut(&volume, cut, shape, &recovered.batches, 1);
                }
            }
        }
    }
}

/// How often a segment was used again.
fn reused(volume: &FailingVolume) -> usize {
    (0..volume.events()).filter(|event| volume.describe(*event).starts_with("Rename")).count()
}

#[test]
fn histories_that_reuse_segments_keep_acknowledged_records() {
    let (mut states, mut again) = (0, 0);
    for seed in 0..80 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut script = |len: usize, letters: &str| -> String {
            let letters: Vec<char> = letters.chars().collect();
            (0..len).map(|_| letters[rng.usize(..letters.len())]).collect()
        };
        let (before, after) = (script(30, "aaaabbssscccccrwwvgfkx"), script(8, "aabwsccck"));
        let shape = SHAPES[seed as usize % 2];
        let first = run(Database::create(FailingVolume::new(seed), shape), &before);
        again += reused(&first.volume);
        for (turn, cut) in first.volume.cuts(1).into_iter().enumerate() {
            states += 1;
            let Some(recovered) = try_cut(&first.volume, cut, shape, &first.batches, 1) else { continue };
            if turn % 11 != 0 {
                continue;
            }
            let floor = recovered.batches.len();
            let second = run(recovered, &after);
            again += reused(&second.volume);
            for cut in second.volume.cuts(1) {
                states += 1;
                let third = try_cut(&second.volume, cut, shape, &second.batches, 2).expect("it was there before");
                assert!(third.batches.len() >= floor, "seed {seed}: {before} {after}");
            }
        }
    }
    assert!(states > 10_000 && again > 1_000, "{states} states, {again} segments used again");
}

#[test]
fn damage_after_a_segment_was_used_again_is_reported() {
    for shape in SHAPES {
        let mut database = run(Database::create(FailingVolume::new(3), shape), "bascascabasasas");
        assert_eq!(reused(&database.volume), 1);
        let newest = database.volume.list("db-log").unwrap().pop().unwrap();
        // The first batch after the redo point; later ones know that it was durable.
        database.volume.flip_bits(&newest, 4096 + 40, 1).unwrap();
        database.sync().unwrap();
        let reader = log::read(database.config.clone(), database.superblock.redo, database.superblock.redo.lsn);
        let first = reader.unwrap().expect("a log").next();
        assert!(matches!(first, Err(duramen::Error::CorruptLog { .. })), "{first:?}");
    }
}

/// The payload of a batch that a thread appends beside rotations.
fn batch(number: usize) -> Vec<u8> {
    number.to_le_bytes().repeat(1 + number % 40)
}

/// After each power cut, the log has a prefix of the batches. It reaches at least the LSN that was marked as durable.
fn check_after_cuts(volume: &FailingVolume, shape: LogShape) {
    for cut in volume.cuts(1) {
        let durable = Lsn(volume.last_mark_before(cut.event).unwrap_or(0));
        let after = volume.crash(cut);
        let from = LogPosition { lsn: Lsn(0), epoch: 1 };
        let Some(mut reader) = log::read(config(&after, shape), from, durable).unwrap() else {
            assert_eq!(durable, Lsn(0));
            continue;
        };
        let mut number = 0;
        while let Some(found) = reader.next().unwrap_or_else(|error| panic!("{cut:?}: {error}")) {
            assert_eq!(found.payload, batch(number));
            number += 1;
        }
    }
}

#[test]
fn rotations_during_appends_lose_no_batch_at_a_power_cut() {
    let volume = FailingVolume::new(5);
    let log = Log::create(config(&volume, LogShape::Packed), 1, Lsn(0)).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| (0..300).for_each(|number| assert!(log.append(1, &batch(number)).is_ok())));
        for _ in 0..25 {
            let start = log.rotate().unwrap();
            volume.mark(start.0);
        }
    });
    check_after_cuts(&volume, LogShape::Packed);
}

/// Threads append, sync and begin segments at the same time.
#[test]
fn syncs_during_rotations_lose_no_batch_at_a_power_cut() {
    for shape in SHAPES {
        let volume = FailingVolume::new(6);
        let log = Log::create(config(&volume, shape), 1, Lsn(0)).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for number in 0..200 {
                    let end = log.append(1, &batch(number)).unwrap();
                    if number % 3 != 0 {
                        log.make_durable(end).unwrap();
                        volume.mark(end.0);
                    }
                }
            });
            for _ in 0..20 {
                log.prepare_segment().unwrap();
                if let Some(start) = log.switch_segment().unwrap() {
                    log.finish_rotation(start).unwrap();
                }
            }
        });
        check_after_cuts(&volume, shape);
    }
}

/// The log stays in its segment while there is no space for the header of another one, also on a file system without
/// reservations.
#[test]
fn a_full_device_without_reservations_leaves_the_log_in_its_segment() {
    for shape in SHAPES {
        let volume = FailingVolume::new(7).without_reservations();
        let log = Log::create(config(&volume, shape), 1, Lsn(0)).unwrap();
        let mut batches = 0..;
        let mut append = || log.make_durable(log.append(1, &[batches.next().unwrap(); 100]).unwrap());
        append().unwrap();
        let before = volume.list("db-log").unwrap();
        volume.limit_space(Some(0));
        for full in [log.prepare_segment(), log.rotate().map(drop), log.rotate().map(drop)] {
            assert!(matches!(full, Err(duramen::Error::Full { .. })), "{full:?}");
        }
        assert_eq!(volume.list("db-log").unwrap(), before);
        volume.limit_space(None);
        append().unwrap();
        log.prepare_segment().unwrap();
        volume.limit_space(Some(0));
        log.rotate().unwrap();
        volume.limit_space(None);
        append().unwrap();

        let after = volume.crash(Cut { event: volume.events(), choice: CutChoice::DropUnsynced });
        let from = LogPosition { lsn: Lsn(0), epoch: 1 };
        let mut reader = log::read(config(&after, shape), from, log.durable()).unwrap().expect("a log");
        for batch in 0..3 {
            assert_eq!(reader.next().unwrap().expect("a batch").payload, [batch; 100]);
        }
        assert!(reader.next().unwrap().is_none());
    }
}

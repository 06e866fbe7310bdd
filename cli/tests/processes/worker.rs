//! A process that uses the database. Its seed determines its actions.

use crate::journal::{self, Journal};
use crate::place::Place;
use duramen::db::StoreKind;
use duramen::{Builder, Database, Durability, Error, Result, TableDef};
use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

/// Environment variables that tell the process what to do.
pub(crate) const ROOT: &str = "DURAMEN_PROCESS_ROOT";
pub(crate) const SEED: &str = "DURAMEN_PROCESS_WORKER_SEED";
pub(crate) const RUDE: &str = "DURAMEN_PROCESS_RUDE";

/// One number, which tells a database from those that had its path before it.
const TOKEN: TableDef<u64, u64> = TableDef::new("token");
const KEYS: TableDef<u64, Vec<u8>> = TableDef::new("keys");

/// Small, so that the log goes to new segments all the time.
pub(crate) fn options() -> Builder {
    Database::builder().cache(1 << 20).page_size(4096).checkpoint_bytes(16 << 10)
}

/// The database's token, if it has got one.
pub(crate) fn token(db: &Database) -> Result<Option<u64>> {
    match db.begin_read()?.open_table(TOKEN) {
        Err(Error::NoTable { .. }) => Ok(None),
        table => Ok(table?.get(&0)?.map(|found| found.value())),
    }
}

/// Those of the keys that the database does not have.
pub(crate) fn missing(db: &Database, keys: Option<&BTreeSet<u64>>) -> Result<Vec<u64>> {
    let Some(keys) = keys else { return Ok(Vec::new()) };
    let table = match db.begin_read()?.open_table(KEYS) {
        Err(Error::NoTable { .. }) => return Ok(keys.iter().copied().collect()),
        table => table?,
    };
    let mut missing = Vec::new();
    for &key in keys {
        if table.get(&key)?.is_none_or(|value| value.value() != value_of(key)) {
            missing.push(key);
        }
    }
    Ok(missing)
}

fn value_of(key: u64) -> Vec<u8> {
    vec![key as u8; key as usize % 3000]
}

struct Worker {
    place: Place,
    journal: Journal,
    rng: fastrand::Rng,
    rude: bool,
}

/// Acts until its time is over, or it is killed.
pub(crate) fn run() {
    let place = Place::at(std::env::var_os(ROOT).unwrap().into());
    let seed: u64 = std::env::var(SEED).unwrap().parse().unwrap();
    let journal = Journal::new(place.root(), &seed.to_string());
    let rude = std::env::var(RUDE).unwrap() == "1";
    let mut worker = Worker { place, journal, rng: fastrand::Rng::with_seed(seed), rude };
    let end = Instant::now() + Duration::from_millis(worker.rng.u64(20..150));
    while Instant::now() < end {
        worker.walk();
        if let Err(error) = worker.act() {
            worker.judge(&error);
        }
    }
}

impl Worker {
    /// A database that this process creates has one store or the other.
    fn options(&mut self) -> Builder {
        let store = if self.rng.bool() { StoreKind::Table } else { StoreKind::Shadow };
        self.opening().store(store)
    }

    /// Each opening uses direct I/O or the file cache, at random.
    fn opening(&mut self) -> Builder {
        options().direct_io(self.rng.bool())
    }

    /// Goes to another folder.
    fn walk(&mut self) {
        std::env::set_current_dir(self.place.any_folder(&mut self.rng)).unwrap();
    }

    /// Complains of errors that must not be. Where a file was removed while it was open, its handles may fail.
    fn judge(&self, error: &Error) {
        let expected = match error {
            Error::Locked { .. } | Error::NotFound { .. } | Error::Exists { .. } | Error::NeedsRecovery { .. } => true,
            Error::NotADatabase { what, .. } => what.contains("empty"),
            // The file system of this test has no direct I/O.
            Error::Option { option: "direct_io", .. } => true,
            _ => false,
        };
        let excused = self.rude && !self.place.removed().is_empty();
        if !expected && !excused {
            self.journal.complain(&format!("{error:?}"));
        }
    }

    fn act(&mut self) -> Result<()> {
        let path = self.place.spelling(&mut self.rng);
        let (known, _) = journal::read(self.place.root());
        let db = match self.rng.u8(0..18) {
            0 => return self.remove(),
            16.. => return self.options().convert(&path, |_| ()).map(drop),
            1 => {
                let new = self.options().begin_create(&path)?;
                let token = self.put_token(new.database())?;
                let keys = self.write(new.database(), None)?;
                self.walk();
                new.finish()?;
                self.journal.made();
                keys.into_iter().for_each(|key| self.journal.put(token, key));
                return Ok(());
            }
            2 | 3 => {
                let db = self.options().create(&path)?;
                self.journal.made();
                db
            }
            4..7 => self.opening().open(&path)?,
            7..10 => self.opening().open_read_only(&path)?,
            _ => self.options().open_or_create(&path)?,
        };
        self.walk();
        let mut token = token(&db)?;
        if let Some(token) = token {
            let missing = missing(&db, known.get(&token))?;
            if !missing.is_empty() {
                self.journal.complain(&format!("acknowledged and not to be seen: {missing:?}"));
            }
        }
        let read_only = matches!(db.begin_write(), Err(Error::ReadOnly));
        if !read_only {
            if token.is_none() {
                token = Some(self.put_token(&db)?);
            }
            self.write(&db, token)?;
        }
        match self.rng.u8(0..4) {
            0 => drop(db),
            // As if killed here.
            1 if !read_only => std::process::exit(0),
            _ => db.close()?,
        }
        Ok(())
    }

    /// Tells this database from all others.
    fn put_token(&mut self, db: &Database) -> Result<u64> {
        let token = self.rng.u64(..);
        let tx = db.begin_write()?;
        tx.open_table(TOKEN)?.put(&0, &token)?;
        tx.commit()?;
        // In the file itself, should the log be lost with the file's name.
        db.checkpoint()?;
        Ok(token)
    }

    /// Commits some keys, and does what else is done with an open database. Gives the keys; with a token they are
    /// acknowledged one by one.
    fn write(&mut self, db: &Database, token: Option<u64>) -> Result<Vec<u64>> {
        let mut keys = Vec::new();
        for _ in 0..self.rng.u8(0..30) {
            match self.rng.u8(0..20) {
                0 => db.checkpoint()?,
                1 => drop(db.compact(|_| ())?),
                2 => self.walk(),
                3 => std::thread::sleep(Duration::from_millis(self.rng.u64(0..5))),
                _ => {}
            }
            let key = self.rng.u64(..);
            let mut tx = db.begin_write()?;
            // Writes that a process has handed to the system outlive the process.
            tx.set_durability(*self.rng.choice(&[Durability::Commit, Durability::None]).unwrap_or(&Durability::Commit));
            tx.open_table(KEYS)?.put(&key, value_of(key).as_slice())?;
            tx.commit()?;
            keys.push(key);
            if let Some(token) = token {
                self.journal.put(token, key);
            }
        }
        Ok(keys)
    }

    /// Takes the database's name away, under its lock unless it is rude.
    fn remove(&mut self) -> Result<()> {
        let path = self.place.database();
        let Ok(file) = File::options().read(true).write(true).open(&path) else { return Ok(()) };
        if !self.rude && file.try_lock().is_err() {
            return Ok(());
        }
        let (held, named) = (file.metadata().unwrap(), std::fs::metadata(&path));
        // An empty file is no database.
        if held.len() > 0 && named.is_ok_and(|named| (named.dev(), named.ino()) == (held.dev(), held.ino())) {
            let removed = self.place.root().join("removed").join(format!("{:016x}", self.rng.u64(..)));
            let _ = std::fs::rename(&path, removed);
        }
        Ok(())
    }
}

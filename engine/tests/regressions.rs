//! Promise: what was mended once stays mended. Each test is named after what went wrong.

use duramen::io::{Disk, LockGuard, MemoryVolume, OpenMode, Volume};
use duramen::{Database, Durability, Result, TableDef};
use parking_lot::{Condvar, Mutex};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

const TABLE: TableDef<u32, &str> = TableDef::new("t");

fn options() -> duramen::Builder {
    Database::builder().page_size(4096).cache(1 << 20).background(false)
}

fn put(db: &Database, keys: std::ops::Range<u32>, durability: Durability) -> Result<()> {
    let mut tx = db.begin_write()?;
    tx.set_durability(durability);
    let mut table = tx.open_table(TABLE)?;
    for key in keys {
        table.put(key, "a value that takes some room")?;
    }
    drop(table);
    tx.commit()
}

/// A door that syncs of the log wait at while it is shut.
#[derive(Debug, Default)]
struct Gate {
    state: Mutex<(bool, usize)>,
    changed: Condvar,
}

impl Gate {
    fn shut(&self, shut: bool) {
        self.state.lock().0 = shut;
        self.changed.notify_all();
    }

    fn pass(&self) {
        let mut state = self.state.lock();
        state.1 += 1;
        self.changed.notify_all();
        self.changed.wait_while(&mut state, |(shut, _)| *shut);
        state.1 -= 1;
    }

    fn await_waiting(&self) {
        let mut state = self.state.lock();
        self.changed.wait_while(&mut state, |(_, waiting)| *waiting == 0);
    }
}

#[derive(Debug)]
struct GatedVolume(MemoryVolume, Arc<Gate>);

#[derive(Debug)]
struct GatedDisk(Arc<dyn Disk>, Option<Arc<Gate>>);

impl Volume for GatedVolume {
    fn open(&self, name: &str, mode: OpenMode) -> Result<Arc<dyn Disk>> {
        let gate = name.contains("-log").then(|| self.1.clone());
        Ok(Arc::new(GatedDisk(self.0.open(name, mode)?, gate)))
    }
    fn remove(&self, name: &str) -> Result<()> {
        self.0.remove(name)
    }
    fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.0.rename(from, to)
    }
    fn list(&self, prefix: &str) -> Result<Vec<String>> {
        self.0.list(prefix)
    }
    fn sync(&self) -> Result<()> {
        self.0.sync()
    }
    fn lock(&self, name: &str, exclusive: bool) -> Result<Box<dyn LockGuard>> {
        self.0.lock(name, exclusive)
    }
    fn path(&self, name: &str) -> PathBuf {
        self.0.path(name)
    }
}

impl Disk for GatedDisk {
    fn size(&self) -> Result<u64> {
        self.0.size()
    }
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.0.read_at(offset, buf)
    }
    fn write_at(&self, offset: u64, buf: &[u8]) -> Result<()> {
        self.0.write_at(offset, buf)
    }
    fn sync(&self) -> Result<()> {
        self.1.iter().for_each(|gate| gate.pass());
        self.0.sync()
    }
    fn trim(&self, offset: u64, len: u64) -> Result<()> {
        self.0.trim(offset, len)
    }
    fn resize(&self, len: u64) -> Result<()> {
        self.0.resize(len)
    }
    fn reserve(&self, len: u64) -> Result<()> {
        self.0.reserve(len)
    }
    fn allocated(&self) -> Result<u64> {
        self.0.allocated()
    }
}

#[test]
fn a_later_commit_that_does_not_wait_shows_nothing_that_is_not_durable_yet() -> Result<()> {
    for freeing in [false, true] {
        let gate = Arc::new(Gate::default());
        let db = options().create_on(Arc::new(GatedVolume(MemoryVolume::new(), gate.clone())), "t.duramen")?;
        put(&db, 0..2000, Durability::Commit)?;
        if freeing {
            let tx = db.begin_write()?;
            tx.drop_table("t")?;
            tx.commit()?;
        }
        gate.shut(true);
        std::thread::scope(|scope| -> Result<()> {
            let durable = scope.spawn(|| put(&db, 5000..5001, Durability::Commit));
            gate.await_waiting();
            // It may wait for the other's sync, too, or not; it must not make the other's commit visible.
            let later = scope.spawn(|| match freeing {
                true => db.maintain().map(drop),
                false => put(&db, 5001..5002, Durability::None),
            });
            std::thread::sleep(Duration::from_millis(50));
            let tx = db.begin_read()?;
            let seen = match tx.open_table(TABLE) {
                Ok(table) => table.get(5000)?.is_some(),
                Err(_) => false,
            };
            gate.shut(false);
            durable.join().expect("a durable commit")?;
            later.join().expect("a later commit")?;
            assert!(!seen, "a commit was seen that a power cut could have taken back");
            assert!(db.begin_read()?.open_table(TABLE)?.get(5000)?.is_some());
            Ok(())
        })?;
    }
    Ok(())
}

#[test]
fn two_threads_that_free_the_same_table_free_it_once() -> Result<()> {
    for round in 0..6 {
        let db = options().create_on(Arc::new(MemoryVolume::new()), "t.duramen")?;
        put(&db, 0..20_000, Durability::None)?;
        let tx = db.begin_write()?;
        tx.drop_table("t")?;
        tx.commit()?;
        std::thread::scope(|scope| {
            let free = || while db.maintain().expect("freeing") {};
            let threads = [scope.spawn(free), scope.spawn(free)];
            put(&db, 0..3000 + round, Durability::None).expect("a commit beside");
            threads.into_iter().for_each(|thread| thread.join().expect("freeing"));
        });
        assert_eq!(db.verify(|_| ())?.findings, []);
        assert_eq!(db.begin_read()?.open_table(TABLE)?.len(), u64::from(3000 + round));
    }
    Ok(())
}

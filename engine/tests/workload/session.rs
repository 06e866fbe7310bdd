//! A workload on a simulated volume. Marks in its history say what was promised at which moment, and so what a recovery
//! must find.

use super::{DELTAS, Step, Workload, apply, contents, options, page_size_of};
use duramen::db::{Compression, CompressionPlan, StoreKind, Strategy, Target};
use duramen::{Database, Durability, Error, ReadTransaction, Result};
use duramen_sim::FailingVolume;
use duramen_sim::model::{Change, Model};
use std::collections::VecDeque;
use std::sync::Arc;

pub(crate) const NAME: &str = "t.duramen";

/// A mark in the history: commits that were begun, that have returned, and that were acknowledged as durable.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    pub(crate) issued: u64,
    pub(crate) returned: u64,
    pub(crate) acknowledged: u64,
}

/// Bits of each number of a mark.
const BITS: u32 = 21;

impl Mark {
    /// So many commits, all durable.
    pub(crate) fn of(commits: u64) -> Mark {
        Mark { issued: commits, returned: commits, acknowledged: commits }
    }

    pub(crate) fn set(self, volume: &FailingVolume) {
        volume.mark(self.issued << (2 * BITS) | self.returned << BITS | self.acknowledged);
    }

    pub(crate) fn before(volume: &FailingVolume, event: usize) -> Option<Mark> {
        let mark = volume.last_mark_before(event)?;
        let low = |number: u64| number & ((1 << BITS) - 1);
        Some(Mark { issued: mark >> (2 * BITS), returned: low(mark >> BITS), acknowledged: low(mark) })
    }

    /// The least and most commits that a power cut leaves.
    pub(crate) fn after_power_cut(self) -> (u64, u64) {
        (self.acknowledged, self.issued)
    }

    /// The least and most commits that the death of the process leaves.
    pub(crate) fn after_death(self) -> (u64, u64) {
        (self.returned, self.issued)
    }
}

/// A snapshot and the number of commits it must show.
struct Held {
    tx: ReadTransaction,
    commits: u64,
}

impl Held {
    /// Asserts that the snapshot shows the state at its opening.
    fn check(&self, model: &Model) -> Result<()> {
        if let Err(mismatch) = model.check(self.commits, self.commits, &contents(&self.tx)?) {
            panic!("a snapshot: {mismatch}");
        }
        Ok(())
    }
}

/// A database that is open on a volume, and the model of it.
pub(crate) struct Session<'a> {
    pub(crate) db: Database,
    pub(crate) mark: Mark,
    volume: &'a FailingVolume,
    model: &'a mut Model,
}

impl<'a> Session<'a> {
    pub(crate) fn create(
        store: StoreKind,
        seed: u64,
        volume: &'a FailingVolume,
        model: &'a mut Model,
    ) -> Result<Session<'a>> {
        let delta = DELTAS[usize::try_from(seed % DELTAS.len() as u64).unwrap_or(0)];
        let builder = options().page_size(page_size_of(store, delta)).store(store).delta(delta);
        let db = builder.create_on(Arc::new(volume.clone()), NAME)?;
        Ok(Session::new(db, volume, model))
    }

    /// Goes on with an open database, which has what the model has.
    pub(crate) fn new(db: Database, volume: &'a FailingVolume, model: &'a mut Model) -> Session<'a> {
        let mark = Mark::of(model.commits());
        mark.set(volume);
        Session { db, mark, volume, model }
    }

    pub(crate) fn commit(&mut self, changes: Vec<Change>, durability: Durability) -> Result<()> {
        let mut tx = self.db.begin_write()?;
        tx.set_durability(durability);
        apply(&tx, &changes)?;
        self.mark.issued = self.model.commit(changes);
        self.mark.set(self.volume);
        tx.commit()?;
        self.mark.returned = self.mark.issued;
        if durability == Durability::Commit {
            self.mark.acknowledged = self.mark.issued;
        }
        self.mark.set(self.volume);
        Ok(())
    }

    /// So many steps of a workload.
    pub(crate) fn run(&mut self, workload: &mut Workload, steps: usize) -> Result<()> {
        let mut held = VecDeque::new();
        for _ in 0..steps {
            match workload.next(self.model.now()) {
                Step::Commit { changes, durability } => self.commit(changes, durability)?,
                Step::Abort(changes) => {
                    let tx = self.db.begin_write()?;
                    apply(&tx, &changes)?;
                    tx.abort();
                }
                Step::Checkpoint => {
                    self.db.checkpoint()?;
                    self.mark.acknowledged = self.mark.issued;
                }
                Step::Maintain => drop(self.db.maintain()?),
                Step::Compact => {
                    compact(&self.db, self.mark.issued)?;
                    self.mark.acknowledged = self.mark.issued;
                }
                Step::Snapshot => held.push_back(Held { tx: self.db.begin_read()?, commits: self.mark.issued }),
                Step::Release => {
                    if let Some(oldest) = held.pop_front() {
                        oldest.check(self.model)?;
                    }
                }
            }
            self.mark.set(self.volume);
        }
        held.into_iter().try_for_each(|held| held.check(self.model))
    }

    /// Closes the database in order.
    pub(crate) fn close(self) {
        let Session { db, mark, volume, .. } = self;
        drop(db);
        Mark { acknowledged: mark.issued, ..mark }.set(volume);
    }

    /// Ends the process; the volume can be used by another one.
    pub(crate) fn kill(self) {
        kill(self.volume, self.db);
        self.volume.power_off_at(None);
    }
}

/// Opens what a cut or a death has left and compares it with the model, of which so many commits must and can be there;
/// gives the number of commits found, and nothing where the database need not be there and is not.
pub(crate) fn recover(
    volume: &FailingVolume,
    model: &Model,
    bounds: Option<(u64, u64)>,
    small: bool,
) -> Result<Option<(Database, u64)>, String> {
    // The small cache gives up pages while it redoes; with the large one a checkpoint writes them all at once.
    let cache = if small { 0 } else { 8 << 20 };
    let db = match options().cache(cache).open_on(Arc::new(volume.clone()), NAME) {
        Err(Error::NotFound { .. }) if bounds.is_none() => return Ok(None),
        opened => opened.map_err(|error| format!("it does not open: {error}"))?,
    };
    let (least, most) = bounds.unwrap_or_default();
    let found = db.begin_read().and_then(|tx| contents(&tx)).map_err(|error| error.to_string())?;
    let commits = model.check(least, most, &found).map_err(|mismatch| mismatch.to_string())?;
    let report = db.verify(|_| ()).map_err(|error| error.to_string())?;
    if let Some(finding) = report.findings.first() {
        return Err(format!("{} findings: {finding:?}", report.findings.len()));
    }
    Ok(Some((db, commits)))
}

/// Ends the process that has the database open: nothing more is written.
pub(crate) fn kill(volume: &FailingVolume, db: Database) {
    volume.power_off_at(Some(0));
    drop(db);
}

/// A number from the environment.
pub(crate) fn number(variable: &str, default: usize) -> usize {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Compacts. If the page store can, some compactions also compress all tables or decompress them.
fn compact(db: &Database, number: u64) -> Result<()> {
    let stats = db.stats();
    let compresses = stats.store == Some(StoreKind::Table) || stats.page_size > 4096;
    let plan = |strategy, target| CompressionPlan::new(strategy, Compression::Lz4).target(target);
    let report = match number % 4 {
        1 if compresses => db.compact_with(&plan(Strategy::All, Target::Fit), |_| ())?,
        2 if compresses => db.compact_with(&plan(Strategy::All, Target::Bytes(1024)), |_| ())?,
        3 if compresses => db.compact_with(&plan(Strategy::None, Target::Fit), |_| ())?,
        _ => db.compact(|_| ())?,
    };
    assert!(report.bytes_after > 0);
    Ok(())
}

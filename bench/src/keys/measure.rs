//! Rounds of the workload. All contestants are in one process and take turns, each with a chunk of operations, so that
//! other load on the machine affects all of them. Nothing is printed here.

use super::args::{Args, DiskKind, Layout};
use super::contestant::{self, Contestant, Entries, Table, Turn};
use super::sizes::Sizes;
use crate::Result;
use crate::clock::thread_seconds;
use crate::keyset::{Gathered, Keys};
use crate::value::Values;
use fastrand::Rng;
use indicatif::{ProgressBar, ProgressStyle};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The part of the operations of a step that is done before the measurement: one in this number.
const WARM_UP: usize = 5;
/// The approximate number of turns of each contestant in a step.
const TURNS: usize = 50;
/// The number of entries that all scans of one length read, as a multiple of the number of all entries.
const SCANNED: usize = 5;

/// Speeds of one contestant in one round, in thousand operations a second.
#[derive(Clone, Debug, Default)]
pub(super) struct Speeds {
    pub(super) insert: f64,
    pub(super) search: f64,
    /// Scans, one for each given length.
    pub(super) range: Vec<f64>,
    pub(super) delete: f64,
}

/// The results of one contestant.
pub(super) struct Measured {
    /// The layout; `None` for the `BTreeMap`.
    pub(super) layout: Option<Layout>,
    /// Bytes of a value.
    pub(super) values: usize,
    /// One for each round.
    pub(super) rounds: Vec<Speeds>,
    /// The sizes of a table after the load in the first round.
    pub(super) sizes: Option<Sizes>,
}

/// Measures every layout with every width of values. The `BTreeMap` of each width comes before its layouts.
pub(super) fn all(args: &Args, keys: &Keys, rng: &mut Rng) -> Result<Vec<Measured>> {
    let mut measured = Vec::new();
    for &values in &args.values {
        let layouts = args.layouts.0.iter().copied().map(Some);
        measured.extend(std::iter::once(None).chain(layouts).map(|layout| Measured {
            layout,
            values,
            rounds: Vec::new(),
            sizes: None,
        }));
    }
    for _ in 0..args.repeat {
        Round::new(args, keys, rng).run(&mut measured)?;
    }
    Ok(measured)
}

/// One contestant of a round.
struct Entrant<'a> {
    entries: Entries<'a>,
    name: String,
    store: Store,
}

enum Store {
    Map(Box<dyn Contestant>),
    Table(Box<Table>),
}

impl Store {
    fn contestant(&self) -> &dyn Contestant {
        match self {
            Store::Map(map) => &**map,
            Store::Table(table) => &**table,
        }
    }

    fn contestant_mut(&mut self) -> &mut dyn Contestant {
        match self {
            Store::Map(map) => &mut **map,
            Store::Table(table) => &mut **table,
        }
    }
}

/// In memory a contestant is one thread that never waits, so CPU time is measured. With a disk, all time is measured.
enum Clock {
    Thread,
    Wall(Instant),
}

impl Clock {
    fn of(disk: DiskKind) -> Clock {
        if disk == DiskKind::Memory { Clock::Thread } else { Clock::Wall(Instant::now()) }
    }

    /// Seconds since some moment.
    fn now(&self) -> f64 {
        match self {
            Clock::Thread => thread_seconds(),
            Clock::Wall(start) => start.elapsed().as_secs_f64(),
        }
    }
}

struct Round<'a> {
    args: &'a Args,
    keys: &'a Keys,
    rng: &'a mut Rng,
}

impl<'a> Round<'a> {
    fn new(args: &'a Args, keys: &'a Keys, rng: &'a mut Rng) -> Round<'a> {
        Round { args, keys, rng }
    }

    fn run(mut self, measured: &mut [Measured]) -> Result<()> {
        let parent = self.args.dir.clone().unwrap_or_else(|| PathBuf::from("."));
        let folder = match self.args.disk {
            DiskKind::File => Some(tempfile::Builder::new().prefix("duramen-bench-").tempdir_in(parent)?),
            _ => None,
        };
        let mut entrants = self.entrants(measured, folder.as_ref().map_or(Path::new("."), |folder| folder.path()))?;
        let all = self.keys.shuffled(self.rng);
        let inserted =
            self.step(&mut entrants, "insert", &all, |entrant, turn| entrant.store.contestant_mut().insert(turn))?;
        for entrant in &entrants {
            entrant
                .store
                .contestant()
                .verify(entrant.entries, &|_| true)
                .map_err(|cause| entrant.named_error(cause))?;
        }
        for (entrant, measured) in entrants.iter().zip(&mut *measured) {
            if let (Store::Table(table), None) = (&entrant.store, &measured.sizes) {
                measured.sizes = Some(Sizes::of(table, self.keys, self.args.page_bytes())?);
            }
        }
        let order = self.keys.shuffled(self.rng);
        let reads: Vec<_> = entrants.iter().map(Entrant::reads).collect();
        let searched =
            self.step(&mut entrants, "search", &order, |entrant, turn| entrant.store.contestant().search(turn))?;
        for ((entrant, measured), before) in entrants.iter().zip(&mut *measured).zip(reads) {
            if let (Some(sizes), Some(before), Some(after)) = (&mut measured.sizes, before, entrant.reads()) {
                let a_search = |count: u64| count as f64 / order.len() as f64;
                sizes.read_pages_per_search = a_search(after.0 - before.0);
                sizes.read_bytes_per_search = before.1.zip(after.1).map(|(before, after)| a_search(after - before));
            }
        }
        let mut scanned = Vec::new();
        for &len in &self.args.range {
            let order = self.keys.shuffled(self.rng);
            let starts = &order[..(SCANNED * order.len()).div_ceil(len).clamp(1, order.len())];
            scanned.push(
                self.step(&mut entrants, "scan", starts, |entrant, turn| entrant.store.contestant().scan(turn, len))?,
            );
        }
        let deleted = self.delete(&mut entrants)?;
        for (i, measured) in measured.iter_mut().enumerate() {
            let range = scanned.iter().map(|speeds| speeds[i]).collect();
            let speeds = Speeds { insert: inserted[i], search: searched[i], range, delete: deleted[i] };
            measured.rounds.push(speeds);
        }
        Ok(())
    }

    fn entrants(&self, measured: &[Measured], folder: &Path) -> Result<Vec<Entrant<'a>>> {
        let entrant = |(i, measured): (usize, &Measured)| -> Result<Entrant<'a>> {
            let entries = Entries { keys: self.keys, values: Values::new(measured.values) };
            let (name, store) = match measured.layout {
                None => ("btreemap".to_owned(), Store::Map(contestant::map(measured.values))),
                Some(layout) => {
                    let folder = folder.join(i.to_string());
                    if self.args.disk == DiskKind::File {
                        std::fs::create_dir(&folder)?;
                    }
                    let table = Table::create(self.args, entries, layout, &folder)?;
                    (layout.to_string(), Store::Table(Box::new(table)))
                }
            };
            Ok(Entrant { entries, name, store })
        };
        measured.iter().enumerate().map(entrant).collect()
    }

    /// Removes every second key, in random order.
    fn delete(&mut self, entrants: &mut [Entrant<'a>]) -> Result<Vec<f64>> {
        let mut removed: Vec<u32> = self.keys.ranks().step_by(2).collect();
        self.rng.shuffle(&mut removed);
        let speeds =
            self.step(entrants, "delete", &removed, |entrant, turn| entrant.store.contestant_mut().remove(turn))?;
        for entrant in entrants {
            let odd = |rank: usize| rank % 2 == 1;
            entrant.store.contestant().verify(entrant.entries, &odd).map_err(|cause| entrant.named_error(cause))?;
        }
        Ok(speeds)
    }

    /// The contestants take turns, each with a chunk of the operations. Returns thousand operations a second of each,
    /// without the first operations.
    fn step(
        &self,
        entrants: &mut [Entrant<'a>],
        name: &str,
        ranks: &[u32],
        each: impl Fn(&mut Entrant<'a>, Turn<'_>) -> Result<()>,
    ) -> Result<Vec<f64>> {
        let style = ProgressStyle::with_template("{msg:12} {wide_bar} {human_pos}/{human_len} {eta}");
        let bar = ProgressBar::new(ranks.len() as u64).with_message(name.to_owned());
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        let clock = Clock::of(self.args.disk);
        let mut elapsed = vec![0.0; entrants.len()];
        let (warm_up, timed) = ranks.split_at(ranks.len() / WARM_UP);
        let commits = (ranks.len() / TURNS).div_ceil(self.args.commit).max(1);
        let turn = commits * self.args.commit;
        let mut keys = Gathered::default();
        for (part, counts) in [(warm_up, false), (timed, true)] {
            for ranks in part.chunks(turn) {
                self.keys.gather(ranks, &mut keys);
                for (entrant, elapsed) in entrants.iter_mut().zip(&mut elapsed) {
                    let turn = Turn { entries: entrant.entries, ranks, keys: &keys };
                    let started = clock.now();
                    each(entrant, turn).map_err(|cause| entrant.named_error(cause))?;
                    if counts {
                        *elapsed += clock.now() - started;
                    }
                }
                bar.inc(ranks.len() as u64);
            }
        }
        Ok(elapsed.iter().map(|seconds| timed.len() as f64 / seconds.max(1e-9) / 1e3).collect())
    }
}

impl Entrant<'_> {
    fn named_error(&self, cause: Box<dyn std::error::Error + Send + Sync>) -> Box<dyn std::error::Error + Send + Sync> {
        format!("{}: {cause}", self.name).into()
    }

    /// Pages that a table has read from its disk, and bytes, if these are counted.
    fn reads(&self) -> Option<(u64, Option<u64>)> {
        match &self.store {
            Store::Map(_) => None,
            Store::Table(table) => Some((table.page_reads(), table.traffic().map(|(read, _)| read))),
        }
    }
}

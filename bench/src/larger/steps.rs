//! The steps of the workload, timed and checked.

use super::args::Args;
use crate::Result;
use crate::contest::{
    Contestant, Durability, Figures, Reader, note_speed, on_threads, quantile, timed, verify, wrong_answer,
};
use crate::keyset::Keys;
use crate::value::Values;
use fastrand::Rng;
use indicatif::{ProgressBar, ProgressStyle};
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::{Duration, Instant};

/// A reader beside a writer begins anew after this many reads.
const READS_OF_A_SNAPSHOT: usize = 1_000;
/// The number of values that measure the benchmark's own time. They fit the second level cache of a processor.
const CHECKED: usize = 1_000;
/// The number of operations between two steps of the progress bar.
const TICK: usize = 10_000;

/// The records, and what is known about them.
pub(super) struct Steps<'a> {
    args: &'a Args,
    keys: Keys,
    values: Values,
    /// How often each record has been overwritten. The writer counts an overwrite before it makes it.
    generations: Vec<AtomicU8>,
    rng: Rng,
    figures: Figures,
}

impl Steps<'_> {
    pub(super) fn new(args: &Args) -> Result<Steps<'_>> {
        let mut rng = Rng::with_seed(args.seed);
        let keys = Keys::collect(|push| {
            (0..args.records).for_each(|_| push(&rng.u64(..).to_be_bytes()));
            Ok(())
        })?;
        let values = Values::half_zeros(args.config(0, Durability::None).value_width);
        let generations = (0..keys.len()).map(|_| AtomicU8::new(0)).collect();
        let mut steps = Steps { args, keys, values, generations, rng, figures: Figures::default() };
        steps.note("records", steps.keys.len() as f64);
        steps.note("data_bytes", (steps.keys.len() * args.record_size as usize) as f64);
        Ok(steps)
    }

    pub(super) fn note(&mut self, name: &str, value: f64) {
        self.figures.set(name, value);
    }

    /// Notes the bytes of write calls for each byte of the records that were loaded and overwritten.
    pub(super) fn note_written(&mut self, written: u64) {
        let overwrites: u64 = self.generations.iter().map(|count| u64::from(count.load(Ordering::Relaxed))).sum();
        let user_bytes = (self.keys.len() as u64 + overwrites) * u64::from(self.args.record_size);
        self.note("written_per_user_byte", written as f64 / user_bytes as f64);
    }

    pub(super) fn done(&mut self) -> Figures {
        std::mem::take(&mut self.figures)
    }

    /// Inserts all records in random order.
    pub(super) fn load<C: Contestant>(&mut self, store: &C) -> Result<()> {
        let order = self.keys.shuffled(&mut self.rng);
        let bar = bar(C::NAME, "load", order.len());
        let elapsed = timed(|| {
            order.chunks(self.args.commit as usize).try_for_each(|ranks| {
                bar.inc(ranks.len() as u64);
                self.put(store, ranks)
            })
        })?;
        note_speed(&mut self.figures, "load", order.len(), elapsed);
        Ok(())
    }

    /// Overwrites records, one a commit.
    pub(super) fn overwrite<C: Contestant>(&mut self, store: &C) -> Result<()> {
        let overwrites = self.args.overwrites.unwrap_or(self.args.records / 2);
        self.overwrites(store, "overwrite", overwrites as usize)
    }

    /// Overwrites records, one a commit, with everything in the cache.
    pub(super) fn synced<C: Contestant>(&mut self, store: &C) -> Result<()> {
        self.overwrites(store, "synced", self.args.synced as usize)
    }

    fn overwrites<C: Contestant>(&mut self, store: &C, name: &str, times: usize) -> Result<()> {
        let order = self.keys.shuffled(&mut self.rng);
        let bar = bar(C::NAME, name, times);
        let started = Instant::now();
        for (at, rank) in order.iter().cycle().take(times).enumerate() {
            self.overwrite_one(store, *rank)?;
            if at % TICK == 0 {
                bar.inc(TICK as u64);
            }
        }
        note_speed(&mut self.figures, name, times, started.elapsed());
        Ok(())
    }

    fn overwrite_one<C: Contestant>(&self, store: &C, rank: u32) -> Result<()> {
        self.generations[rank as usize].fetch_add(1, Ordering::Relaxed);
        self.put(store, &[rank])
    }

    /// Writes the current generations of some records in one commit.
    fn put<C: Contestant>(&self, store: &C, ranks: &[u32]) -> Result<()> {
        let mut value = Vec::with_capacity(self.values.width);
        store.commit(&mut |writer| {
            ranks.iter().try_for_each(|rank| {
                let rank = *rank as usize;
                self.values.make(rank, self.generation(rank), &mut value);
                writer.put(self.keys.get(rank), &value)
            })
        })
    }

    fn generation(&self, rank: usize) -> u64 {
        self.generations[rank].load(Ordering::Relaxed).into()
    }

    /// Checks all records and then reads some at random, so that the cache is filled as the following reads leave it.
    pub(super) fn warm<C: Contestant>(&mut self, store: &C) -> Result<()> {
        verify(store, &self.keys, self.values, |_| true, |rank| self.generation(rank))?;
        let order = self.keys.shuffled(&mut self.rng);
        let mut reader = store.reader()?;
        order.iter().take(order.len() / 5).try_for_each(|rank| self.read_one::<C>(&mut reader, *rank as usize))
    }

    /// Reads each record once, in random order.
    pub(super) fn read<C: Contestant>(&mut self, store: &C, name: &str, threads: usize) -> Result<()> {
        let order = self.keys.shuffled(&mut self.rng);
        let bar = bar(C::NAME, name, order.len());
        let read = |reader: &mut C::Reader<'_>, rank| self.read_one::<C>(reader, rank);
        let elapsed = on_threads(store, threads, &order, TICK as u64, &bar, read)?;
        note_speed(&mut self.figures, name, order.len(), elapsed);
        Ok(())
    }

    /// Measures the time that the benchmark itself takes for each read: it finds the key and the generation of a random
    /// record, and checks a value. The values of this step are in the processor's cache.
    pub(super) fn note_own_time(&mut self) {
        let order = self.keys.shuffled(&mut self.rng);
        let values: Vec<Vec<u8>> = (0..self.keys.len().min(CHECKED))
            .map(|rank| {
                let mut value = Vec::new();
                self.values.make(rank, 0, &mut value);
                value
            })
            .collect();
        let started = Instant::now();
        for (rank, (checked, value)) in order.iter().zip(values.iter().enumerate().cycle()) {
            black_box(self.keys.get(*rank as usize));
            black_box(self.generation(*rank as usize));
            black_box(self.values.are(checked, 0, value));
        }
        let each = started.elapsed().as_secs_f64() / order.len().max(1) as f64;
        self.note("own_read_ns", each * 1e9);
    }

    fn read_one<C: Contestant>(&self, reader: &mut C::Reader<'_>, rank: usize) -> Result<()> {
        let key = self.keys.get(rank);
        match reader.get(key, |value| self.values.are(rank, self.generation(rank), value))? {
            Some(true) => Ok(()),
            _ => Err(wrong_answer(C::NAME, "get", key)),
        }
    }

    /// Reads all records in order.
    pub(super) fn scan<C: Contestant>(&mut self, store: &C, name: &str) -> Result<()> {
        let elapsed = timed(|| self.scan_all(store))?;
        note_speed(&mut self.figures, name, self.keys.len(), elapsed);
        Ok(())
    }

    /// Scans a file that is not in memory. `seconds` is the time in which the system reads it in order.
    pub(super) fn cold_scan<C: Contestant>(&mut self, store: &C, seconds: f64) -> Result<()> {
        let elapsed = timed(|| self.scan_all(store))?;
        note_speed(&mut self.figures, "cold_scan", self.keys.len(), elapsed);
        self.note("cold_scan_seconds", elapsed.as_secs_f64());
        self.note("cold_file_seconds", seconds);
        self.note("cold_scan_of_file_speed", seconds / elapsed.as_secs_f64());
        Ok(())
    }

    /// Reads all records in order. Checks the keys, and reads the beginning of each value.
    fn scan_all<C: Contestant>(&self, store: &C) -> Result<()> {
        let (mut rank, mut seen) = (0, 0);
        store.reader()?.scan(&[], |key, value| {
            let right = rank < self.keys.len() && key == self.keys.get(rank) && value.len() == self.values.width;
            seen ^= value.first().copied().unwrap_or(0);
            rank += 1;
            right
        })?;
        black_box(seen);
        match rank == self.keys.len() {
            true => Ok(()),
            false => Err(wrong_answer(C::NAME, "scan, record", rank.to_string().as_bytes())),
        }
    }

    /// Reads at random, first alone and then beside a thread that overwrites, one a commit.
    pub(super) fn beside<C: Contestant>(&mut self, store: &C) -> Result<()> {
        let order = self.keys.shuffled(&mut self.rng);
        let (reads, overwrites) = order.split_at(order.len() / 2);
        let done = AtomicBool::new(false);
        let alone = self.reads(store, reads)?;
        let started = Instant::now();
        let (beside, written) = std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let ranks = overwrites.iter().cycle().enumerate();
                for (at, rank) in ranks {
                    if done.load(Ordering::Relaxed) {
                        return Ok(at);
                    }
                    self.overwrite_one(store, *rank)?;
                }
                Ok(0)
            });
            let beside = self.reads(store, reads);
            done.store(true, Ordering::Relaxed);
            (beside, writer.join())
        });
        let (beside, elapsed) = (beside?, started.elapsed());
        let written: Result<usize> = written.map_err(|_| "the writing thread panicked")?;
        note_speed(&mut self.figures, "beside_overwrite", written?, elapsed);
        self.note_reads("alone", alone);
        self.note_reads("beside", beside);
        Ok(())
    }

    /// Reads, and times each read. Begins anew from time to time. Records may be overwritten at the same time.
    fn reads<C: Contestant>(&self, store: &C, ranks: &[u32]) -> Result<Vec<Duration>> {
        let mut times = Vec::with_capacity(ranks.len());
        for ranks in ranks.chunks(READS_OF_A_SNAPSHOT) {
            let mut reader = store.reader()?;
            for rank in ranks {
                let (rank, started) = (*rank as usize, Instant::now());
                let right = reader.get(self.keys.get(rank), |value| self.is_some_generation(rank, value))?;
                times.push(started.elapsed());
                if right != Some(true) {
                    return Err(wrong_answer(C::NAME, "get", self.keys.get(rank)));
                }
            }
        }
        Ok(times)
    }

    fn is_some_generation(&self, rank: usize, value: &[u8]) -> bool {
        (0..=self.generation(rank)).rev().any(|generation| self.values.are(rank, generation, value))
    }

    fn note_reads(&mut self, name: &str, mut times: Vec<Duration>) {
        note_speed(&mut self.figures, name, times.len(), times.iter().sum());
        times.sort_unstable();
        let micros: Vec<f64> = times.iter().map(|time| time.as_secs_f64() * 1e6).collect();
        for (quantity, fraction) in [("p50", 0.5), ("p99", 0.99)] {
            self.note(&format!("{name}_{quantity}_us"), quantile(&micros, fraction));
        }
    }
}

fn bar(store: &str, step: &str, len: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg:22} {wide_bar} {human_pos}/{human_len} {per_sec} {eta}");
    let bar = ProgressBar::new(len as u64).with_message(format!("{store}: {step}"));
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

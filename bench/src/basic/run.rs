//! One run of one contestant: the steps of the workload, timed and checked.

use super::args::Args;
use crate::Result;
use crate::contest::{
    Config, Contestant, DiskKind, Figures, Reader, memory, note_speed, on_threads, quantile, timed, verify,
    wrong_answer,
};
use crate::keyset::Keys;
use crate::value::Values;
use fastrand::Rng;
use indicatif::{ProgressBar, ProgressStyle};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The number of entries that a scan reads.
const SCAN: usize = 100;
/// There is one scan for this number of entries.
const ENTRIES_PER_SCAN: usize = 20;
/// The number of reads between two steps of the progress bar.
const TICK: u64 = 10_000;

/// Runs the workload once.
///
/// # Errors
/// Errors of the store, and wrong answers.
pub(super) fn run<C: Contestant>(args: &Args) -> Result<Figures> {
    let parent = args.dir.clone().unwrap_or_else(|| PathBuf::from("."));
    let folder = tempfile::Builder::new().prefix("duramen-bench-").tempdir_in(parent)?;
    let mut rng = Rng::with_seed(args.seed);
    let keys = args.key.keys(args.entries(), &mut rng)?;
    let config = args.config(&keys);
    let orders: [Vec<u32>; 4] = std::array::from_fn(|_| keys.shuffled(&mut rng));
    let [load, read, overwrite, delete] = &orders;
    memory::reset_peak()?;
    let run = Setup { args, config, keys: &keys, values: Values::new(args.value), baseline: memory::resident()? };
    let mut figures = Figures::default();
    let figures = &mut figures;
    figures.set("entries", keys.len() as f64);
    figures.set("data_bytes", (keys.bytes() + keys.len() * args.value) as f64);

    let folder = folder.path();
    let mut store = C::create(&config, folder)?;
    run.write(&store, figures, "load", load, Change::Put(0))?;
    run.note_sizes(figures, "load", folder)?;
    figures.set("close_seconds", timed(|| store.close())?.as_secs_f64());
    figures.set("disk_bytes", run.allocated(folder)? as f64);
    figures.set("open_seconds", timed(|| store.open(&config))?.as_secs_f64());
    // This also fills the cache.
    verify(&store, &keys, run.values, |_| true, |_| 0)?;
    run.read(&store, figures, read)?;
    run.scan(&store, figures, read.get(..keys.len().div_ceil(ENTRIES_PER_SCAN)).unwrap_or(read))?;
    run.note_sizes(figures, "read", folder)?;
    figures.set("resident_bytes", figures.get("read_resident_bytes").unwrap_or_default());
    if !args.reads_only {
        run.write(&store, figures, "overwrite", overwrite, Change::Put(1))?;
        run.note_sizes(figures, "overwrite", folder)?;
        verify(&store, &keys, run.values, |_| true, |_| 1)?;
        run.shrink(store, figures, folder, delete)?;
    }
    figures.set("peak_resident_bytes", memory::peak_resident()?.saturating_sub(run.baseline) as f64);
    Ok(std::mem::take(figures))
}

/// A change of a key.
#[derive(Clone, Copy)]
enum Change {
    /// Sets its value of this generation.
    Put(u64),
    /// Removes it.
    Remove,
}

/// The data that all steps use.
struct Setup<'a> {
    args: &'a Args,
    config: Config,
    keys: &'a Keys,
    values: Values,
    /// The memory of the process before the store was created.
    baseline: u64,
}

impl Setup<'_> {
    /// Deletes nine tenths, compacts, and compares the size with a new store that has only the rest.
    fn shrink<C: Contestant>(&self, mut store: C, figures: &mut Figures, folder: &Path, order: &[u32]) -> Result<()> {
        let (gone, rest) = order.split_at(order.len() / 10 * 9);
        let mut present = vec![true; self.keys.len()];
        for rank in gone {
            present[*rank as usize] = false;
        }
        self.write(&store, figures, "delete", gone, Change::Remove)?;
        self.note_sizes(figures, "delete", folder)?;
        verify(&store, self.keys, self.values, |rank| present[rank], |_| 1)?;
        figures.set("compact_seconds", timed(|| store.compact())?.as_secs_f64());
        self.note_sizes(figures, "compact", folder)?;
        verify(&store, self.keys, self.values, |rank| present[rank], |_| 1)?;
        store.close()?;
        let compacted = self.allocated(folder)?;
        figures.set("compact_disk_bytes", compacted as f64);
        drop(store);
        if compacted == 0 {
            return Ok(());
        }
        let folder = folder.join("fresh");
        std::fs::create_dir(&folder)?;
        let mut fresh = C::create(&self.config, &folder)?;
        self.write(&fresh, figures, "fresh", rest, Change::Put(1))?;
        fresh.close()?;
        let bytes = self.allocated(&folder)?;
        figures.set("fresh_disk_bytes", bytes as f64);
        figures.set("compact_over_fresh", compacted as f64 / bytes as f64);
        Ok(())
    }

    /// Writes in the given order, in commits of the given size.
    fn write<C: Contestant>(
        &self,
        store: &C,
        figures: &mut Figures,
        name: &str,
        order: &[u32],
        change: Change,
    ) -> Result<()> {
        let bar = self.bar(C::NAME, name, order.len());
        let mut value = Vec::new();
        let mut micros = Vec::with_capacity(order.len() / self.args.commit + 1);
        let started = Instant::now();
        for ranks in order.chunks(self.args.commit.max(1)) {
            let commit = || {
                store.commit(&mut |writer| {
                    ranks.iter().try_for_each(|rank| {
                        let rank = *rank as usize;
                        match change {
                            Change::Put(generation) => {
                                self.values.make(rank, generation, &mut value);
                                writer.put(self.keys.get(rank), &value)
                            }
                            Change::Remove => writer.remove(self.keys.get(rank)),
                        }
                    })
                })
            };
            micros.push(timed(commit)?.as_secs_f64() * 1e6);
            bar.inc(ranks.len() as u64);
        }
        note_speed(figures, name, order.len(), started.elapsed());
        micros.sort_by(f64::total_cmp);
        for (quantity, fraction) in [("p50", 0.5), ("p99", 0.99), ("p999", 0.999), ("max", 1.0)] {
            figures.set(format!("{name}_commit_{quantity}_us"), quantile(&micros, fraction));
        }
        let spread = quantile(&micros, 0.999) / quantile(&micros, 0.5).max(f64::MIN_POSITIVE);
        figures.set(format!("{name}_commit_p999_over_p50"), spread);
        Ok(())
    }

    /// Reads every key once, in the given order.
    fn read<C: Contestant>(&self, store: &C, figures: &mut Figures, order: &[u32]) -> Result<()> {
        let bar = self.bar(C::NAME, "read", order.len());
        let elapsed = on_threads(store, self.args.threads, order, TICK, &bar, |reader, rank| {
            let key = self.keys.get(rank);
            match reader.get(key, |value| self.values.are(rank, 0, value))? {
                Some(true) => Ok(()),
                _ => Err(wrong_answer(C::NAME, "get", key)),
            }
        })?;
        note_speed(figures, "read", order.len(), elapsed);
        Ok(())
    }

    /// Reads ranges that begin at the given ranks.
    fn scan<C: Contestant>(&self, store: &C, figures: &mut Figures, starts: &[u32]) -> Result<()> {
        let bar = self.bar(C::NAME, "scan", starts.len());
        let elapsed = on_threads(store, self.args.threads, starts, TICK / SCAN as u64, &bar, |reader, start| {
            let end = (start + SCAN).min(self.keys.len());
            let (mut rank, mut right) = (start, true);
            reader.scan(self.keys.get(start), |key, value| {
                right = right && key == self.keys.get(rank) && self.values.are(rank, 0, value);
                rank += 1;
                rank < end
            })?;
            match right && rank == end {
                true => Ok(()),
                false => Err(wrong_answer(C::NAME, "scan from", self.keys.get(start))),
            }
        })?;
        note_speed(figures, "scan", starts.len(), elapsed);
        let entries: usize = starts.iter().map(|start| SCAN.min(self.keys.len() - *start as usize)).sum();
        figures.set("scan_krows", entries as f64 / elapsed.as_secs_f64() / 1e3);
        Ok(())
    }

    fn note_sizes(&self, figures: &mut Figures, name: &str, folder: &Path) -> Result<()> {
        figures.set(format!("{name}_disk_bytes"), self.allocated(folder)? as f64);
        figures.set(format!("{name}_resident_bytes"), memory::resident()?.saturating_sub(self.baseline) as f64);
        Ok(())
    }

    fn allocated(&self, folder: &Path) -> Result<u64> {
        match self.config.disk {
            DiskKind::Memory => Ok(0),
            DiskKind::File => memory::allocated(folder),
        }
    }

    fn bar(&self, contestant: &str, step: &str, len: usize) -> ProgressBar {
        let style = ProgressStyle::with_template("{msg:22} {wide_bar} {human_pos}/{human_len} {per_sec} {eta}");
        let bar = ProgressBar::new(len as u64).with_message(format!("{contestant}: {step}"));
        bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
    }
}

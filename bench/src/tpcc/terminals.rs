//! The terminals: which transactions run, for how long, and how long each takes.

use super::Mix;
use super::transactions::{Outcome, Shop, Terminal, TransactionKind};
use crate::Result;
use crate::numbers::short;
use crate::random::Random;
use hdrhistogram::Histogram;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often the clock of the device is looked at.
const TICK: Duration = Duration::from_millis(20);

impl Mix {
    /// The share of each transaction in [`TransactionKind::ALL`], in thousandths.
    fn shares(self) -> [usize; 5] {
        match self {
            Mix::Standard => [450, 430, 40, 40, 40],
            Mix::Read => [10, 10, 10, 485, 485],
        }
    }

    fn pick(self, random: &mut Random) -> usize {
        let mut number = random.below(1000);
        for (at, share) in self.shares().into_iter().enumerate() {
            match number.checked_sub(share) {
                None => return at,
                Some(rest) => number = rest,
            }
        }
        0
    }
}

/// The times of the transactions of a kind.
#[derive(Clone)]
pub(super) struct Times {
    pub(super) count: u64,
    pub(super) rolled_back: u64,
    /// Microseconds of each.
    pub(super) latencies: Histogram<u64>,
    /// The time that they waited for other transactions that write.
    pub(super) waited: Duration,
}

impl Times {
    fn new() -> Result<Times> {
        Ok(Times { count: 0, rolled_back: 0, latencies: Histogram::new(3)?, waited: Duration::ZERO })
    }

    fn note(&mut self, outcome: Outcome, time: Duration) -> Result<()> {
        self.count += 1;
        self.rolled_back += u64::from(outcome.rolled_back);
        self.waited += outcome.waited;
        Ok(self.latencies.record(time.as_micros().try_into()?)?)
    }

    fn add(&mut self, other: &Times) -> Result<()> {
        self.count += other.count;
        self.rolled_back += other.rolled_back;
        self.waited += other.waited;
        Ok(self.latencies.add(&other.latencies)?)
    }
}

/// The work of all terminals, and the database that they use.
pub(super) struct Work<'a> {
    pub(super) shop: &'a Shop,
    pub(super) mix: Mix,
    pub(super) connections: u32,
    pub(super) terminals: u32,
    pub(super) seed: u64,
}

impl Work<'_> {
    /// Runs transactions in all connections until `is_over`. Returns the times of each kind.
    pub(super) fn run(&self, is_over: impl Fn() -> bool) -> Result<Vec<Times>> {
        let stop = AtomicBool::new(false);
        let results: Vec<Result<Vec<Times>>> = std::thread::scope(|scope| {
            let connect = |number: u32| {
                let stop = &stop;
                scope.spawn(move || {
                    let done = self.connection(number, stop);
                    if done.is_err() {
                        stop.store(true, Ordering::Relaxed);
                    }
                    done
                })
            };
            let threads: Vec<_> = (0..self.connections).map(connect).collect();
            while !is_over() && !stop.load(Ordering::Relaxed) {
                std::thread::sleep(TICK);
            }
            stop.store(true, Ordering::Relaxed);
            threads.into_iter().map(|thread| thread.join().map_err(|_| "a thread has panicked")?).collect()
        });
        let mut all = TransactionKind::ALL.map(|_| Times::new()).into_iter().collect::<Result<Vec<Times>>>()?;
        for times in results {
            for (sum, of) in all.iter_mut().zip(times?) {
                sum.add(&of)?;
            }
        }
        Ok(all)
    }

    fn connection(&self, number: u32, stop: &AtomicBool) -> Result<Vec<Times>> {
        let mut random = Random::new(self.seed ^ u64::from(number) << 32);
        let mut all = TransactionKind::ALL.map(|_| Times::new()).into_iter().collect::<Result<Vec<Times>>>()?;
        while !stop.load(Ordering::Relaxed) {
            let terminal = short(random.below((self.shop.warehouses * self.terminals) as usize));
            let terminal = Terminal {
                warehouse: terminal / self.terminals + 1,
                district: terminal % self.terminals % self.shop.scale.districts + 1,
            };
            let at = self.mix.pick(&mut random);
            let started = Instant::now();
            let outcome = self.shop.run(TransactionKind::ALL[at], terminal, &mut random)?;
            all[at].note(outcome, started.elapsed())?;
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_latencies_are_recorded_as_they_are() {
        let mut times = Times::new().unwrap();
        let outcome = Outcome { waited: Duration::from_millis(5), rolled_back: true };
        times.note(outcome, Duration::from_millis(700)).unwrap();
        assert_eq!((times.count, times.rolled_back, times.waited), (1, 1, outcome.waited));
        assert!((690_000..=710_000).contains(&times.latencies.max()), "{}", times.latencies.max());
    }

    #[test]
    fn a_mix_has_the_shares_of_table_1() {
        for mix in [Mix::Standard, Mix::Read] {
            assert_eq!(mix.shares().iter().sum::<usize>(), 1000);
            let mut random = Random::new(3);
            let mut counts = [0usize; 5];
            (0..100_000).for_each(|_| counts[mix.pick(&mut random)] += 1);
            for (count, share) in counts.into_iter().zip(mix.shares()) {
                assert!(count.abs_diff(share * 100) < 600, "{counts:?}");
            }
        }
    }
}

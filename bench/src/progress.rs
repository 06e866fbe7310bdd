//! The progress of a long measurement, and an estimate of the remaining time.

use std::time::{Duration, Instant};

/// The progress of a number of runs.
pub struct Progress {
    started: Instant,
    runs: usize,
    done: usize,
    /// The weights of the runs that are not done, and of those that are done.
    left: f64,
    spent: f64,
}

impl Progress {
    /// The progress of runs with these weights. A weight is about proportional to the time of the run.
    pub fn new(weights: impl IntoIterator<Item = f64>) -> Progress {
        let (mut runs, mut left) = (0, 0.0);
        for weight in weights {
            runs += 1;
            left += weight;
        }
        Progress { started: Instant::now(), runs, done: 0, left, spent: 0.0 }
    }

    /// Notes that a run is done, and prints it on standard error.
    pub fn done(&mut self, weight: f64, run: &dyn std::fmt::Display) {
        self.done += 1;
        self.left = (self.left - weight).max(0.0);
        self.spent += weight;
        let rest = self.rest(self.started.elapsed());
        eprintln!("{} of {} runs measured, about {} left: {run}", self.done, self.runs, in_words(rest));
    }

    /// The estimated time of the other runs, if the runs so far took `elapsed`.
    fn rest(&self, elapsed: Duration) -> Duration {
        elapsed.mul_f64(if self.spent > 0.0 { self.left / self.spent } else { 0.0 })
    }
}

fn in_words(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds => format!("{} min", seconds.div_ceil(60)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_is_proportional_to_the_weights() {
        let mut progress = Progress::new([1.0, 2.0, 3.0]);
        assert_eq!(progress.rest(Duration::from_secs(60)), Duration::ZERO, "no run is done yet");
        progress.done(2.0, &"a run");
        assert_eq!(progress.rest(Duration::from_secs(60)), Duration::from_secs(120));
        progress.done(1.0, &"a run");
        progress.done(3.0, &"a run");
        assert_eq!(progress.rest(Duration::from_secs(60)), Duration::ZERO);
        assert_eq!([59, 60, 61].map(|s| in_words(Duration::from_secs(s))), ["59 s", "1 min", "2 min"]);
    }
}

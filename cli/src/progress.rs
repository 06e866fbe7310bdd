//! Shows the progress of a long command on standard error: a bar, a spinner, or a line every few seconds if standard
//! error is not a terminal. Never writes to standard output.

use crate::size;
use duramen::db::{Phase, Progress};
use indicatif::{HumanCount, HumanFloatCount, ProgressBar, ProgressState, ProgressStyle};
use std::fmt;
use std::io::{IsTerminal, Write};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The interval between lines without a terminal.
const INTERVAL: Duration = Duration::from_secs(5);

/// A recovery that takes less time is not shown.
const SHORT_RECOVERY: Duration = Duration::from_secs(1);

/// The unit of a meter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unit {
    /// Bytes, shown as KiB, MiB, ...
    Bytes,
    /// Items with this name, such as "pages".
    Count(&'static str),
}

/// Shows one phase of a command.
pub(crate) struct Meter {
    phase: &'static str,
    unit: Unit,
    total: Option<u64>,
    shown: Shown,
}

enum Shown {
    Bar(ProgressBar),
    Lines { last: Instant },
    Nothing,
}

impl Meter {
    /// Begins a phase. `total` is its number of units, if that is known. With `quiet` nothing is shown.
    pub(crate) fn begin(phase: &'static str, unit: Unit, total: Option<u64>, quiet: bool) -> Meter {
        let shown = if quiet {
            Shown::Nothing
        } else if std::io::stderr().is_terminal() {
            Shown::Bar(bar(phase, unit, total))
        } else {
            Shown::Lines { last: Instant::now() }
        };
        Meter { phase, unit, total, shown }
    }

    /// True if the meter should be updated after this number of entries.
    pub(crate) fn is_due(entries: u64) -> bool {
        entries.is_multiple_of(1024)
    }

    /// Shows that `done` units are done, and a note. It is fast enough to be called whenever [`Meter::is_due`].
    pub(crate) fn show(&mut self, done: u64, note: impl FnOnce() -> String) {
        match &mut self.shown {
            Shown::Bar(bar) => {
                bar.set_position(done);
                bar.set_message(note());
            }
            Shown::Lines { last } if last.elapsed() >= INTERVAL => {
                *last = Instant::now();
                let line = line(self.phase, self.unit, self.total, done, &note());
                // An error here means that standard error is closed, and is ignored.
                let _ = writeln!(std::io::stderr(), "{line}");
            }
            Shown::Lines { .. } | Shown::Nothing => {}
        }
    }

    /// Prints a line, also with `quiet`.
    pub(crate) fn print(&self, line: &str) {
        // An error here means that standard error is closed, and is ignored.
        let write = || drop(writeln!(std::io::stderr(), "{line}"));
        match &self.shown {
            Shown::Bar(bar) => bar.suspend(write),
            Shown::Lines { .. } | Shown::Nothing => write(),
        }
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        if let Shown::Bar(bar) = &self.shown {
            bar.finish_and_clear();
        }
    }
}

/// Shows a compaction, a conversion or an analysis: a meter for each phase.
pub(crate) struct PhaseMeter {
    rebuilding: &'static str,
    quiet: bool,
    current: Option<(Phase, Meter)>,
}

impl PhaseMeter {
    /// Shows nothing yet. `rebuilding` is the name of [`Phase::Rebuilding`] in this command.
    pub(crate) fn new(rebuilding: &'static str, quiet: bool) -> PhaseMeter {
        PhaseMeter { rebuilding, quiet, current: None }
    }

    /// Shows progress. A new phase begins a new meter.
    pub(crate) fn show(&mut self, progress: Progress) {
        if self.current.as_ref().is_none_or(|(phase, _)| *phase != progress.phase) {
            // The bar of the phase before is cleared first.
            self.current = None;
            let (name, unit) = self.shown_as(progress.phase);
            self.current = Some((progress.phase, Meter::begin(name, unit, Some(progress.of), self.quiet)));
        }
        if let Some((_, meter)) = &mut self.current {
            meter.show(progress.done, String::new);
        }
    }

    /// The name of a phase, and its unit.
    fn shown_as(&self, phase: Phase) -> (&'static str, Unit) {
        match phase {
            Phase::Analyzing => ("analyzing", Unit::Count("pages")),
            Phase::Sampling => ("sampling for dictionaries", Unit::Count("pages")),
            Phase::Training => ("training dictionaries", Unit::Count("steps")),
            Phase::Rebuilding => (self.rebuilding, Unit::Count("entries")),
            Phase::Freeing => ("freeing old pages", Unit::Count("steps")),
            Phase::Searching => ("searching for unused dictionaries", Unit::Count("pages")),
            Phase::Shrinking => ("shrinking", Unit::Bytes),
            _ => ("working", Unit::Count("steps")),
        }
    }
}

/// Shows a recovery on a terminal, if it takes long. Without a terminal it shows nothing: scripts may take each line on
/// standard error of a command such as `get` for a failure.
pub(crate) fn of_recovery(quiet: bool) -> impl Fn(Progress) + Send + Sync + 'static {
    let hidden = quiet || !std::io::stderr().is_terminal();
    let recovery = Mutex::new(Recovery { begun: Instant::now(), meter: None });
    move |progress| {
        if let Ok(mut recovery) = recovery.lock()
            && !hidden
        {
            recovery.show(progress, Instant::now());
        }
    }
}

/// A recovery, and its meter once it has taken long.
struct Recovery {
    begun: Instant,
    meter: Option<Meter>,
}

impl Recovery {
    fn show(&mut self, progress: Progress, now: Instant) {
        if progress.done >= progress.of {
            self.meter = None;
        } else if now.duration_since(self.begun) >= SHORT_RECOVERY {
            let begin = || Meter::begin("recovering", Unit::Bytes, Some(progress.of), false);
            self.meter.get_or_insert_with(begin).show(progress.done, String::new);
        }
    }
}

fn bar(phase: &'static str, unit: Unit, total: Option<u64>) -> ProgressBar {
    let template = match (unit, total) {
        (Unit::Bytes, Some(_)) => "{prefix} [{wide_bar}] {bytes}/{total_bytes} {bytes_per_sec}, {eta} left {msg}",
        (Unit::Bytes, None) => "{prefix} {spinner} {bytes} {bytes_per_sec} {msg}",
        (Unit::Count(_), Some(_)) => "{prefix} [{wide_bar}] {human_pos}/{human_len} {rate}/s, {eta} left {msg}",
        (Unit::Count(_), None) => "{prefix} {spinner} {human_pos} {rate}/s {msg}",
    };
    let bar = total.map_or_else(ProgressBar::new_spinner, ProgressBar::new);
    if let Ok(style) = ProgressStyle::with_template(template) {
        // `per_sec` of the library has four decimals.
        let rate = |state: &ProgressState, line: &mut dyn fmt::Write| {
            let _ = write!(line, "{:.0}", HumanFloatCount(state.per_sec()));
        };
        bar.set_style(style.progress_chars("=> ").with_key("rate", rate));
    }
    bar.set_prefix(phase);
    bar
}

fn line(phase: &str, unit: Unit, total: Option<u64>, done: u64, note: &str) -> String {
    let amount = |count| match unit {
        Unit::Bytes => size::shown(count),
        Unit::Count(things) => format!("{} {things}", HumanCount(count)),
    };
    let comma = if note.is_empty() { "" } else { ", " };
    let done = match (unit, total) {
        (Unit::Count(_), Some(_)) => HumanCount(done).to_string(),
        _ => amount(done),
    };
    let total = total.map_or_else(String::new, |total| format!(" of {}", amount(total)));
    format!("{phase}: {done}{total}{comma}{note}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_show_phase_amount_and_total() {
        let text = line("reading", Unit::Bytes, Some(4096), 1024, "7 entries");
        assert_eq!(text, "reading: 1.00 KiB of 4.00 KiB, 7 entries");
        assert_eq!(line("dumping", Unit::Count("entries"), Some(2000), 1000, ""), "dumping: 1,000 of 2,000 entries");
        assert_eq!(line("checking", Unit::Count("pages"), None, 12_345, ""), "checking: 12,345 pages");
    }

    #[test]
    fn each_phase_has_a_meter_of_its_own() {
        let mut shown = PhaseMeter::new("compacting", true);
        for (phase, of, name) in [
            (Phase::Analyzing, 8, "analyzing"),
            (Phase::Sampling, 8, "sampling for dictionaries"),
            (Phase::Training, 7, "training dictionaries"),
            (Phase::Rebuilding, 900, "compacting"),
            (Phase::Freeing, 1, "freeing old pages"),
            (Phase::Searching, 8, "searching for unused dictionaries"),
            (Phase::Shrinking, 4096, "shrinking"),
        ] {
            for done in [0, of] {
                shown.show(Progress { phase, done, of });
                let (current, meter) = shown.current.as_ref().unwrap();
                assert_eq!((*current, meter.phase, meter.total), (phase, name, Some(of)));
            }
        }
    }

    #[test]
    fn a_recovery_is_shown_after_one_second_until_its_end() {
        let begun = Instant::now();
        let mut recovery = Recovery { begun, meter: None };
        let mut shows = |done, millis| {
            let progress = Progress { phase: Phase::Recovering, done, of: 4096 };
            recovery.show(progress, begun + Duration::from_millis(millis));
            recovery.meter.as_ref().map(|meter| (meter.phase, meter.total))
        };
        assert_eq!([shows(0, 0), shows(100, 999)], [None, None]);
        assert_eq!([shows(200, 1000), shows(300, 5000)], [Some(("recovering", Some(4096))); 2]);
        assert_eq!(shows(4096, 5001), None);
    }

    #[test]
    fn every_template_is_valid() {
        for unit in [Unit::Bytes, Unit::Count("pages")] {
            for total in [None, Some(9)] {
                let bar = bar("reading", unit, total);
                assert_eq!((bar.prefix().as_str(), bar.length()), ("reading", total));
            }
        }
    }
}

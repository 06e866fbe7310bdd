//! Rounds: Duramen and its rival in turn, each run a process of its own, medians of all.

use super::args::{Args, Format};
use super::contestant::Contestant;
use super::figures::Figures;
use super::{report, run};
use crate::Result;
use std::ffi::OsString;
use std::process::{Command, Stdio};

/// A contestant by name.
#[derive(Clone, Copy)]
pub struct Entrant {
    pub(super) name: &'static str,
    run: fn(&Args) -> Result<Figures>,
}

impl Entrant {
    /// A contestant, by its type.
    pub fn of<C: Contestant>() -> Entrant {
        Entrant { name: C::NAME, run: run::run::<C> }
    }
}

/// Measures Duramen (first) and one rival, and prints the result. The process must have been started with the
/// options that `args` was made of: runs are started with the same and [`Args::only`].
///
/// # Errors
/// What a contestant says, wrong answers among it.
pub fn main(args: &Args, entrants: &[Entrant; 2]) -> Result<()> {
    if let Some(name) = &args.only {
        let known = entrants.iter().find(|entrant| entrant.name == name);
        let entrant = known.ok_or_else(|| format!("there is no contestant {name:?}"))?;
        return report::print_one(args.format, entrant.name, &(entrant.run)(args)?);
    }
    let mut runs = [Vec::new(), Vec::new()];
    for _ in 0..args.repeat.max(1) {
        for (entrant, runs) in entrants.iter().zip(&mut runs) {
            runs.push(in_a_process(entrant.name)?);
        }
    }
    let [ours, theirs] = runs.map(|runs| Figures::median(&runs));
    report::print(args, [(entrants[0].name, &ours), (entrants[1].name, &theirs)])
}

fn in_a_process(name: &str) -> Result<Figures> {
    let only = ["--only", name, "--format", Format::JSON].map(OsString::from);
    let output = Command::new(std::env::current_exe()?)
        .args(std::env::args_os().skip(1).chain(only))
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()?;
    if !output.status.success() {
        return Err(format!("the run of {name} failed: {}", output.status).into());
    }
    let json: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    Figures::from_json(&json[name])
}

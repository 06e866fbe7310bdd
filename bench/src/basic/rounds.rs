//! Rounds: Duramen and another store in alternation. Each run is a process of its own, and the result is the median.

use super::args::{Args, Format};
use super::contestant::Contestant;
use super::figures::Figures;
use super::{report, run};
use crate::Result;
use std::ffi::OsString;
use std::process::{Command, Stdio};

/// A contestant and its name.
#[derive(Clone, Copy)]
pub struct Entrant {
    pub(super) name: &'static str,
    run: fn(&Args) -> Result<Figures>,
}

impl Entrant {
    /// The contestant of this type.
    pub fn of<C: Contestant>() -> Entrant {
        Entrant { name: C::NAME, run: run::run::<C> }
    }
}

/// Measures Duramen, which is first, and another store, and prints the result. The process must have been started with
/// the options in `args`: it starts each run with the same options and [`Args::only`].
///
/// # Errors
/// Errors of a contestant, and wrong answers.
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

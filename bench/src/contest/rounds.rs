//! Rounds: several stores in turn. Each run is a process of its own, and the result is the median.

use super::contestant::Contestant;
use super::figures::Figures;
use crate::Result;
use clap::ValueEnum;
use std::ffi::OsString;
use std::process::{Command, Stdio};

/// A store that can be measured by a workload with these options.
pub struct Entrant<A> {
    pub(crate) name: &'static str,
    pub(crate) run: fn(&A) -> Result<Figures>,
    /// Why it cannot be measured here, if so.
    pub(crate) missing: fn() -> Option<String>,
}

impl<A> Entrant<A> {
    /// The contestant of this type, with its run of the workload.
    pub(crate) fn new<C: Contestant>(run: fn(&A) -> Result<Figures>) -> Entrant<A> {
        Entrant { name: C::NAME, run, missing: C::missing }
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.name
    }
}

/// The format of a result.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Format {
    /// For people.
    Table,
    /// One object, for programs.
    Json,
}

impl Format {
    /// The option value of [`Format::Json`].
    const JSON: &str = "json";
}

/// Runs the entrants in turn, each in a process of its own, which is this program with the options it was started with,
/// `--only` and `--format json`. Returns the medians, in the order of the entrants.
///
/// # Errors
/// A run that fails.
pub(crate) fn in_turn<A>(entrants: &[&Entrant<A>], rounds: usize) -> Result<Vec<Figures>> {
    let mut runs = vec![Vec::new(); entrants.len()];
    for _ in 0..rounds.max(1) {
        for (entrant, runs) in entrants.iter().zip(&mut runs) {
            runs.push(in_a_process(entrant.name)?);
        }
    }
    Ok(runs.iter().map(|runs| Figures::median(runs)).collect())
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

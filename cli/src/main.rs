//! The program `duramen`: fills, reads, checks and repairs databases from the command line.
//!
//! This file parses the command line and turns the end of a command into an exit status: 0 after success, 1 if
//! something was not found, 2 after an error, which is one line on standard error. If a reader such as `head` closes
//! standard output early, the program ends without an error.
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::cast_possible_truncation
    )
)]

mod args;
mod commands;
mod dump;
mod failure;
mod input;
mod output;
mod progress;
mod report;
mod size;
mod sort;
mod typed;
mod words;

use args::CommandLine;
use clap::{CommandFactory, Parser};
use failure::{Completion, Failure};
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let line = match CommandLine::try_parse() {
        Ok(line) => line,
        Err(error) if error.use_stderr() => return told(&one_line(&error.to_string())),
        // Help or the version, which someone asked for.
        Err(error) => {
            return ended(write!(std::io::stdout(), "{error}").map_err(Failure::output).map(|()| Completion::Done));
        }
    };
    ended(commands::run(line.command))
}

/// The exit status for the end of a command.
fn ended(end: Result<Completion, Failure>) -> ExitCode {
    match end {
        Ok(Completion::Done) | Err(Failure::ClosedPipe) => ExitCode::SUCCESS,
        Ok(Completion::NotFound) => ExitCode::from(1),
        Err(failure) => told(&format!("error: {failure}")),
    }
}

/// Prints an error in one line.
fn told(line: &str) -> ExitCode {
    // With standard error closed there is nobody left to tell.
    let _ = writeln!(std::io::stderr(), "{}", line.replace('\n', " "));
    ExitCode::from(2)
}

/// The message of clap for a wrong command line, in one line without the usage, and the command that prints the help.
fn one_line(told: &str) -> String {
    let what = told.split("\n\nUsage:").next().unwrap_or(told);
    let what = what.split("\n\nFor more").next().unwrap_or(what);
    let what = what.split_whitespace().collect::<Vec<_>>().join(" ");
    let name = std::env::args().nth(1).filter(|name| CommandLine::command().find_subcommand(name).is_some());
    format!("{what}; see duramen {}--help", name.map(|name| name + " ").unwrap_or_default())
}

//! The program `duramen`: fills, reads, checks and repairs databases from the command line.
//!
//! This file parses the command line and turns the result of a command into an exit code: 0 after success, 1 if
//! something was not found, 2 after an error, which is printed as one line on standard error. If a reader such as
//! `head` closes standard output early, the program ends without an error, unless it has found damage or writes a dump.
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
mod messages;
mod output;
mod progress;
mod report;
mod sort;
mod streams;
mod typed;

use args::CommandLine;
use clap::{CommandFactory, Parser};
use duramen_size as size;
use failure::{Completion, Failure};
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let line = match CommandLine::try_parse() {
        Ok(line) => line,
        Err(error) if error.use_stderr() => return print_error(&one_line(&error.to_string())),
        // The user asked for the help or the version.
        Err(error) => {
            let printed = streams::stdout().and_then(|mut out| out.write_all(error.to_string().as_bytes()));
            return exit_code(printed.map_err(Failure::output).map(|()| Completion::Done));
        }
    };
    exit_code(commands::run(line.command))
}

/// The exit code for the result of a command.
fn exit_code(result: Result<Completion, Failure>) -> ExitCode {
    match result {
        Ok(Completion::Done) | Err(Failure::ClosedPipe) => ExitCode::SUCCESS,
        Ok(Completion::NotFound) => ExitCode::from(1),
        Err(failure) => print_error(&format!("error: {failure}")),
    }
}

/// Prints an error as one line and returns its exit code.
fn print_error(line: &str) -> ExitCode {
    // If standard error is closed, the error cannot be printed.
    let _ = writeln!(std::io::stderr(), "{}", line.replace('\n', " "));
    ExitCode::from(2)
}

/// The message of clap for a wrong command line, as one line without the usage, and the command that prints the help.
fn one_line(message: &str) -> String {
    let what = message.split("\n\nUsage:").next().unwrap_or(message);
    let what = what.split("\n\nFor more").next().unwrap_or(what);
    let paragraphs = what.split("\n\n").map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
    // How to pass an unknown option as a value is no help: the option belongs to another command.
    let what = paragraphs.filter(|text| !text.starts_with("tip: to pass")).collect::<Vec<_>>().join("; ");
    let name = std::env::args_os().nth(1).and_then(|name| name.into_string().ok());
    let name = name.filter(|name| CommandLine::command().find_subcommand(name).is_some());
    format!("{what}; see duramen {}--help", name.map(|name| name + " ").unwrap_or_default())
}

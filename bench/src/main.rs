//! The program `duramen-bench`: workloads and figures.
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

use clap::{Parser, Subcommand};
use duramen_bench::{Result, basic, codecs, integers, keys, larger, tpcc, writes};
use std::process::ExitCode;

/// Measures Duramen.
#[derive(Parser)]
#[command(version)]
struct Program {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Basic(Box<basic::Args>),
    Codecs(codecs::Args),
    Integers(integers::Args),
    Keys(Box<keys::Args>),
    Larger(Box<larger::Args>),
    Writes(Box<writes::Args>),
    Tpcc(Box<tpcc::Args>),
    /// Makes the figures of a paper again, or of key layouts with page compression
    #[command(subcommand)]
    Figures(Figures),
}

#[derive(Subcommand)]
enum Figures {
    Keys(keys::figures::Args),
    Writes(writes::figures::Args),
    Selective(tpcc::figures::Args),
    Layouts(keys::layouts::Args),
}

fn run(command: &Command) -> Result<()> {
    match command {
        Command::Basic(args) => basic::beside_btreemap(args),
        Command::Codecs(args) => codecs::run(args),
        Command::Integers(args) => integers::run(args),
        Command::Keys(args) => keys::run(args),
        Command::Larger(args) => larger::main(args, &larger::duramen()),
        Command::Writes(args) => writes::run(args),
        Command::Tpcc(args) => tpcc::run(args),
        Command::Figures(Figures::Keys(args)) => keys::figures::run(args),
        Command::Figures(Figures::Writes(args)) => writes::figures::run(args),
        Command::Figures(Figures::Selective(args)) => tpcc::figures::run(args),
        Command::Figures(Figures::Layouts(args)) => keys::layouts::run(args),
    }
}

fn main() -> ExitCode {
    match run(&Program::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(cause) => {
            eprintln!("duramen-bench: {cause}");
            ExitCode::from(2)
        }
    }
}

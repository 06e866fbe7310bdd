//! The program `duramen-peers`: the workloads of `duramen-bench` on other stores. `basic` has Duramen beside the other store
//! in the same run and at the same durability.

mod figures;
mod redb;
mod sizes;
mod writes;

use clap::{Parser, Subcommand, ValueEnum};
use duramen_bench::{Result, basic};
use std::process::ExitCode;

/// Measures other stores, and Duramen beside them.
#[derive(Parser)]
#[command(version)]
struct Program {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Loads in random order, reads, scans, overwrites, deletes nine tenths, compacts; and measures each
    #[command(args_override_self = true)]
    Basic {
        /// The other store
        #[arg(long, default_value = "redb")]
        peer: Peer,
        #[command(flatten)]
        args: Box<basic::Args>,
    },
    /// Overwrites records at random and counts what that writes, by kind, before and after compression
    #[command(args_override_self = true)]
    Writes(writes::Args),
    Sizes(sizes::Args),
    /// Measures other stores for the figures of a paper
    #[command(subcommand)]
    Figures(Figures),
}

#[derive(Subcommand)]
enum Figures {
    Writes(figures::Writes),
}

/// The stores that can be measured.
#[derive(Clone, Copy, ValueEnum)]
enum Peer {
    /// redb 4.5.
    Redb,
}

fn run(command: &Command) -> Result<()> {
    match command {
        Command::Basic { peer: Peer::Redb, args } => {
            basic::main(args, &[basic::Entrant::of::<basic::Duramen>(), basic::Entrant::of::<redb::Redb>()])
        }
        Command::Writes(args) => writes::run(args),
        Command::Sizes(args) => sizes::run(args),
        Command::Figures(Figures::Writes(args)) => figures::writes(args),
    }
}

fn main() -> ExitCode {
    match run(&Program::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(cause) => {
            eprintln!("duramen-peers: {cause}");
            ExitCode::from(2)
        }
    }
}

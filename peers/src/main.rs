//! The program `duramen-peers`: the workloads of `duramen-bench` on another store, with Duramen beside it in the same
//! run and at the same durability.

mod redb;

use clap::{Parser, Subcommand, ValueEnum};
use duramen_bench::{Result, basic};
use std::process::ExitCode;

/// Measures Duramen beside another store.
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
}

/// The stores that can be measured.
#[derive(Clone, Copy, ValueEnum)]
enum Peer {
    /// redb 4.5.
    Redb,
}

fn run(command: &Command) -> Result<()> {
    let Command::Basic { peer, args } = command;
    let rival = match peer {
        Peer::Redb => basic::Entrant::of::<redb::Redb>(),
    };
    basic::main(args, &[basic::Entrant::of::<basic::Duramen>(), rival])
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

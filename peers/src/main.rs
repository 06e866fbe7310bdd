//! The program `duramen-peers`: the workloads of `duramen-bench` on other stores. `basic` and `larger` have Duramen
//! beside the other stores in the same run and at the same durability.
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

mod engines;
mod figures;
mod sizes;
mod writes;

use clap::{Parser, Subcommand, ValueEnum};
use duramen_bench::contest::{Duramen, Entrant};
use duramen_bench::{Result, basic, larger};
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
    Larger(Box<larger::Args>),
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

/// Declares the stores that `basic` and `larger` measure beside Duramen.
macro_rules! peers {
    ($($(#[$doc:meta])* $peer:ident)*) => {
        #[derive(Clone, Copy, ValueEnum)]
        enum Peer {
            $($(#[$doc])* $peer,)*
        }

        impl Peer {
            fn basic(self) -> Entrant<basic::Args> {
                match self {
                    $(Peer::$peer => basic::entrant::<engines::$peer>(),)*
                }
            }
        }

        /// The stores of `larger`.
        fn of_larger() -> Vec<Entrant<larger::Args>> {
            let peers = [$(larger::entrant::<engines::$peer>(),)*];
            larger::duramen().into_iter().chain(peers).collect()
        }
    };
}

peers! {
    /// redb 4.5.
    Redb
    /// fjall 3.1.
    Fjall
    /// RocksDB, of the system's librocksdb-dev.
    #[value(name = "rocksdb")]
    RocksDb
    /// LMDB 0.9, of the crate heed.
    Lmdb
    /// SQLite, of the crate rusqlite.
    Sqlite
    /// WiredTiger, of the system's libwiredtiger-dev.
    #[value(name = "wiredtiger")]
    WiredTiger
}

fn run(command: &Command) -> Result<()> {
    match command {
        Command::Basic { peer, args } => basic::main(args, &[basic::entrant::<Duramen>(), peer.basic()]),
        Command::Larger(args) => larger::main(args, &of_larger()),
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

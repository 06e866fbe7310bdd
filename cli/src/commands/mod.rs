//! The commands, one in each file. Each opens the database, runs the command and returns its result.

mod analyze;
mod bounds;
mod check;
mod compact;
mod del;
mod drop;
mod dump;
mod get;
mod load;
mod losses;
mod lost_range;
mod open;
mod plan;
mod push;
mod put;
mod query;
mod rename;
mod restore;
mod salvage;
mod scan;
mod stat;
mod tables;
mod write;

use crate::args::Command;
use crate::failure::{Completion, Result};

/// Runs a command.
pub(crate) fn run(command: Command) -> Result<Completion> {
    match command {
        Command::Load(args) => load::run(&args).map_err(|failure| open::in_creation(&args.database, failure)),
        Command::Get(args) => get::run(&args),
        Command::Put(args) => put::run(&args).map_err(|failure| open::in_creation(&args.database, failure)),
        Command::Push(args) => push::run(&args).map_err(|failure| open::in_creation(&args.database, failure)),
        Command::Del(args) => del::run(&args),
        Command::Drop(args) => drop::run(&args),
        Command::Rename(args) => rename::run(&args),
        Command::Scan(args) => scan::run(&args),
        Command::Query(args) => query::run(&args),
        Command::Tables(args) => tables::run(&args),
        Command::Stat(args) => stat::run(&args),
        Command::Analyze(args) => analyze::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Dump(args) => dump::run(&args),
        Command::Restore(args) => restore::run(&args).map_err(|failure| open::in_creation(&args.database, failure)),
        Command::Compact(args) => compact::run(&args),
    }
}

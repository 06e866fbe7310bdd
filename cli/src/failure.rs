//! The results of a command: success, something was not found, or a failure. Each has an exit code.

use crate::messages::message;
use duramen::Error;
use std::io;
use std::path::PathBuf;

/// The result of a command that did not fail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Completion {
    /// Exit code 0.
    Done,
    /// A key, an entry or a table does not exist: exit code 1.
    NotFound,
}

/// The reason for a failure, as one line: exit code 2.
#[derive(thiserror::Error, Debug)]
pub(crate) enum Failure {
    /// An error of the engine, with advice for the command line.
    #[error("{}", message(.0))]
    Engine(#[from] Error),
    /// The input or an argument is wrong.
    #[error("{place}: {why}")]
    Input {
        /// The place, such as "line 7".
        place: String,
        /// A description of the error, and the action that resolves it.
        why: String,
    },
    /// Two options, or an option and the database, contradict each other.
    #[error("{0}")]
    Usage(String),
    /// Only a part of the entries was written to an existing table.
    #[error("{cause}; the first {written} entries, by their keys, are in table \"{table}\" already: remove the cause, then load all of them again", table = table.escape_debug())]
    Partly {
        /// The number of committed entries.
        written: u64,
        /// The table.
        table: String,
        /// The failure that stopped the rest.
        cause: Box<Failure>,
    },
    /// The output is incomplete, because the database is damaged.
    #[error("{0}")]
    Incomplete(String),
    /// `check` found damage.
    #[error("{0}")]
    Unsound(String),
    /// A file or standard input cannot be read or created.
    #[error("{action} {path}: {source}", path = path.display())]
    File {
        /// The action, such as "cannot read".
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Standard output or the output file cannot be written.
    #[error("cannot write the output: {0}")]
    Output(io::Error),
    /// The reader has closed standard output. This is not a failure of commands that only print.
    #[error("standard output was closed")]
    ClosedPipe,
}

pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

impl From<duramen_query::Error> for Failure {
    fn from(error: duramen_query::Error) -> Failure {
        match error {
            duramen_query::Error::Engine(error) => Failure::Engine(error),
            text => Failure::Usage(text.to_string()),
        }
    }
}

impl Failure {
    /// An error of writing the output.
    pub(crate) fn output(error: io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::ClosedPipe,
            _ => Failure::Output(error),
        }
    }

    /// Adds the name of the table in which a damaged page was found.
    pub(crate) fn in_table(self, table: &str) -> Failure {
        match self {
            Failure::Engine(Error::Corrupt { page, what }) => {
                Error::corrupt(page, format!("table \"{}\": {what}", table.escape_debug())).into()
            }
            other => other,
        }
    }

    /// An error of the input at `place`.
    pub(crate) fn input(place: impl Into<String>, why: impl ToString) -> Failure {
        Failure::Input { place: place.into(), why: why.to_string() }
    }
}

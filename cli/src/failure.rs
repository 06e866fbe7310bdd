//! How a command ends: success, something was not found, or a failure. The exit status follows from it.

use crate::words::words;
use std::io;
use std::path::PathBuf;

/// The end of a command that did not fail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Completion {
    /// Exit status 0.
    Done,
    /// A key, an entry or a table does not exist: exit status 1.
    NotFound,
}

/// Why a command failed, in one line: exit status 2.
#[derive(thiserror::Error, Debug)]
pub(crate) enum Failure {
    /// The engine's error, in the program's words.
    #[error("{}", words(.0))]
    Engine(#[from] duramen::Error),
    /// The input, or an argument, says something that cannot be.
    #[error("{place}: {why}")]
    Input {
        /// Where, as "line 7".
        place: String,
        /// What is wrong and what to do.
        why: String,
    },
    /// Two options, or an option and the database, contradict each other.
    #[error("{0}")]
    Usage(String),
    /// A table that is there got only a part of what was to be written to it.
    #[error("{cause}; the first {written} entries, by their keys, are in table \"{table}\" already: remove the cause, then load all of them again", table = table.escape_debug())]
    Partly {
        /// How many entries have been committed.
        written: u64,
        /// The table.
        table: String,
        /// What stopped the rest.
        cause: Box<Failure>,
    },
    /// What was asked for was written as far as a damaged database has it.
    #[error("{0}")]
    Incomplete(String),
    /// `check` found something.
    #[error("{0}")]
    Unsound(String),
    /// A file, or standard input, cannot be read or made.
    #[error("{action} {path}: {source}", path = path.display())]
    File {
        /// As "cannot read".
        action: &'static str,
        /// Which.
        path: PathBuf,
        /// The system's own words.
        source: io::Error,
    },
    /// Standard output, or the file to write, does not take what is written.
    #[error("cannot write the output: {0}")]
    Output(io::Error),
    /// The reader of standard output has gone: no failure at all, just the end.
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

    /// An error of the input at `place`.
    pub(crate) fn input(place: impl Into<String>, why: impl ToString) -> Failure {
        Failure::Input { place: place.into(), why: why.to_string() }
    }
}

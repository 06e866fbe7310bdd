//! Options that several benchmarks have. What only one asks for stays with that one.

use clap::ValueEnum;

/// How the results of several contestants are printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Format {
    /// For people.
    Table,
    /// An array of objects, one a contestant.
    Json,
    /// A line a contestant.
    Csv,
}

/// The type of integer keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum KeyType {
    /// Four bytes.
    U32,
    /// Eight bytes.
    U64,
}

/// Makes the folder that figures go to, before anything is measured for them. Errors name it.
pub(crate) fn make_folder(folder: &std::path::Path) -> crate::Result<()> {
    std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()).into())
}

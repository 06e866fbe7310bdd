//! Options of several benchmarks. An option of only one benchmark belongs in that benchmark.

use clap::ValueEnum;

/// The format of the results of several contestants.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Format {
    /// For people.
    Table,
    /// An array of objects, one for each contestant.
    Json,
    /// A line for each contestant.
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

/// Creates the folder for figures before anything is measured. Errors name the folder.
pub(crate) fn make_folder(folder: &std::path::Path) -> crate::Result<()> {
    std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()).into())
}

/// The figures with the given ids; all if there are none. Errors name an id that no figure has.
pub(crate) fn choose<F>(figures: Vec<F>, id: impl Fn(&F) -> &'static str, only: &[String]) -> crate::Result<Vec<F>> {
    let is_asked = |figure: &F| only.iter().any(|asked| asked == id(figure));
    match only.iter().find(|asked| !figures.iter().any(|figure| id(figure) == asked.as_str())) {
        Some(unknown) => {
            let all: Vec<&str> = figures.iter().map(id).collect();
            Err(format!("--only: {unknown:?} is not one of {}", all.join(", ")).into())
        }
        None => Ok(figures.into_iter().filter(|figure| only.is_empty() || is_asked(figure)).collect()),
    }
}

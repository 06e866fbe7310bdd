//! Replacements for the real sets of the paper, which may not be distributed: the lines of a file, or names of files on
//! this machine.

use super::Args;
use crate::keys::data::Data;

/// The folder of paths and names if no file is given.
const ROOT: &str = "/usr";

/// Replaces the URLs of WEBSPAM and MemeTracker.
pub(super) fn paths(args: &Args) -> Data {
    args.paths.clone().map_or_else(|| Data::Paths(ROOT.into()), Data::File)
}

/// Replaces the titles of Wikipedia.
pub(super) fn titles(args: &Args) -> Data {
    args.titles.clone().map_or_else(|| Data::Names(ROOT.into()), Data::File)
}

/// A description of the replacements.
pub(super) fn described(args: &Args) -> String {
    let of = |file: &Option<std::path::PathBuf>, what: &str| {
        file.as_ref().map_or_else(|| format!("{what} of the files under {ROOT}"), |file| file.display().to_string())
    };
    let (paths, titles) = (of(&args.paths, "the paths"), of(&args.titles, "the names"));
    format!("URLs (WEBSPAM, MemeTracker): {paths}. Titles (WikiTitles): {titles}. TPC-H: its own rows.")
}

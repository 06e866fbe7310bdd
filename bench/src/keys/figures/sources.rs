//! What stands for the paper's real sets, which are not free to be handed on: a file's lines, or what is on this machine.

use super::Args;
use crate::keys::data::Data;

/// Where paths and names are looked for unless a file is given.
const ROOT: &str = "/usr";

/// For the URLs of WEBSPAM and MemeTracker.
pub(super) fn paths(args: &Args) -> Data {
    args.paths.clone().map_or_else(|| Data::Paths(ROOT.into()), Data::File)
}

/// For the titles of Wikipedia.
pub(super) fn titles(args: &Args) -> Data {
    args.titles.clone().map_or_else(|| Data::Names(ROOT.into()), Data::File)
}

/// What they are, in words.
pub(super) fn described(args: &Args) -> String {
    let of = |file: &Option<std::path::PathBuf>, what: &str| {
        file.as_ref().map_or_else(|| format!("{what} of the files under {ROOT}"), |file| file.display().to_string())
    };
    let (paths, titles) = (of(&args.paths, "the paths"), of(&args.titles, "the names"));
    format!("URLs (WEBSPAM, MemeTracker): {paths}. Titles (WikiTitles): {titles}. TPC-H: its own rows.")
}

//! The folders of a round, and the ways to name the database in them.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The file's real name.
pub(crate) const DATABASE: &str = "t.duramen";

/// `real` has the database, `other` a link to it, `link` is a link to `real`; what is removed goes to `removed`.
pub(crate) struct Place {
    root: PathBuf,
    /// Removes it all.
    _folder: Option<tempfile::TempDir>,
}

/// A dump of a small table, for all rounds.
fn dump() -> &'static [u8] {
    static DUMP: OnceLock<Vec<u8>> = OnceLock::new();
    DUMP.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let run = |arguments: &[&str]| {
            let run =
                Command::new(env!("CARGO_BIN_EXE_duramen")).args(arguments).current_dir(&folder).output().unwrap();
            assert!(run.status.success(), "{run:?}");
        };
        run(&["put", DATABASE, "restored", "oak", "tree"]);
        run(&["dump", DATABASE, "dump", "--quiet"]);
        fs::read(folder.path().join("dump")).unwrap()
    })
}

impl Place {
    /// A new one, in some of which an empty file waits.
    pub(crate) fn new(rng: &mut fastrand::Rng) -> Place {
        let folder = tempfile::tempdir().unwrap();
        let place = Place { root: folder.path().to_owned(), _folder: Some(folder) };
        for name in ["real", "other", "removed", "journal"] {
            fs::create_dir(place.root.join(name)).unwrap();
        }
        symlink("real", place.root.join("link")).unwrap();
        symlink("../link/t.duramen", place.root.join("other/alias")).unwrap();
        fs::write(place.root.join("dump"), dump()).unwrap();
        if rng.u8(0..4) == 0 {
            fs::write(place.database(), "").unwrap();
        }
        place
    }

    /// The one of this process's round.
    pub(crate) fn at(root: PathBuf) -> Place {
        Place { root, _folder: None }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.root.join("real").join(DATABASE)
    }

    /// A folder of the round.
    pub(crate) fn any_folder(&self, rng: &mut fastrand::Rng) -> PathBuf {
        self.root.join(*rng.choice(&["real", "other", "link", "removed"]).unwrap_or(&"real"))
    }

    /// A path of the database, from any of the folders.
    pub(crate) fn spelling(&self, rng: &mut fastrand::Rng) -> String {
        let absolute = |path: &str| self.root.join(path).to_string_lossy().into_owned();
        match rng.u8(0..6) {
            0 => absolute("real/t.duramen"),
            1 => absolute("other/alias"),
            2 => absolute("link/../other/../link/t.duramen"),
            3 => "../other/alias".to_owned(),
            4 => "../link/t.duramen".to_owned(),
            _ => "../real/./t.duramen".to_owned(),
        }
    }

    /// The names of the database and of the files beside it.
    pub(crate) fn files(&self) -> Vec<String> {
        list(&self.root.join("real"))
            .iter()
            .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
            .collect()
    }

    /// Databases that were removed.
    pub(crate) fn removed(&self) -> Vec<PathBuf> {
        list(&self.root.join("removed"))
    }

    pub(crate) fn is_empty_file(&self) -> bool {
        fs::metadata(self.database()).is_ok_and(|found| found.len() == 0)
    }
}

fn list(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    found
}

//! The output of `dump`: standard output, a device, or a file. A file gets its name when it is complete, so a failed
//! dump does not replace an older one. This file must not know the content.

use crate::failure::{Failure, Result};
use duramen::db::FILE_MAGIC;
use std::fs::{self, File, Metadata};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// The first bytes of files that a dump must not replace: databases and their logs.
const PROTECTED: [[u8; 8]; 2] = [FILE_MAGIC, *b"DURALOG\n"];

/// The destination of a dump.
pub(crate) enum Target {
    /// Standard output.
    Stdout(io::StdoutLock<'static>),
    /// A file that is not regular: a pipe or a device.
    Device(File),
    /// A regular file. It has a temporary name until it is complete.
    File {
        /// The file. It is removed if it is dropped before it gets its name.
        file: NamedTempFile,
        /// Its final name.
        path: PathBuf,
        /// The file that it replaces.
        replaces: Option<Box<Metadata>>,
    },
}

impl Target {
    /// Opens `path`, or standard output for `-`, for writing. Follows links. Refuses `source`, which is being dumped,
    /// other databases and, with `fresh`, every existing file.
    pub(crate) fn create(path: &Path, source: &Path, fresh: bool) -> Result<Target> {
        if path == Path::new("-") {
            return Ok(Target::Stdout(io::stdout().lock()));
        }
        let refused = |source| Failure::File { action: "cannot create", path: path.to_owned(), source };
        // A slash at the end means a folder, but `Path` ignores it.
        if path.as_os_str().as_encoded_bytes().ends_with(b"/") {
            return Err(refused(io::ErrorKind::IsADirectory.into()));
        }
        let target = resolved(path).map_err(refused)?;
        let replaces = match fs::metadata(&target) {
            Ok(found) if found.is_dir() => return Err(refused(io::ErrorKind::IsADirectory.into())),
            Ok(found) if !found.is_file() => return File::create(&target).map(Target::Device).map_err(refused),
            Ok(_) if is_protected(&target) || fs::canonicalize(source).is_ok_and(|source| source == target) => {
                return Err(Failure::Usage(format!("{} is a database: dump to another file", path.display())));
            }
            Ok(_) if fresh => {
                let why = "exists already: a dump of a damaged database does not replace a file";
                return Err(Failure::Usage(format!("{} {why}", path.display())));
            }
            found => found.ok().map(Box::new),
        };
        let mut builder = tempfile::Builder::new();
        builder.prefix(".duramen-dump-");
        // A new file gets the default permissions of this process. A file that replaces another is readable only by its
        // owner until it is complete.
        #[cfg(unix)]
        if replaces.is_none() {
            builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        }
        let file = builder.tempfile_in(folder(&target)).map_err(refused)?;
        Ok(Target::File { file, path: target, replaces })
    }

    /// Syncs the file and gives it its final name. Does nothing for standard output and devices.
    pub(crate) fn finish(self) -> Result<()> {
        let Target::File { file, path, replaces } = self else { return Ok(()) };
        let finish = || {
            if let Some(replaced) = replaces {
                keep_access(file.as_file(), &replaced)?;
            }
            file.as_file().sync_all()?;
            file.persist(&path)?;
            sync_folder(folder(&path))
        };
        finish().map_err(Failure::Output)
    }
}

impl Write for Target {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        match self {
            Target::Stdout(out) => out.write(buf),
            Target::Device(file) => file.write(buf),
            Target::File { file, .. } => file.write(buf),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Target::Stdout(out) => out.flush(),
            Target::Device(file) => file.flush(),
            Target::File { file, .. } => file.flush(),
        }
    }
}

/// The target of links, which need not exist. A cycle of links is an error.
fn resolved(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    loop {
        match (fs::canonicalize(&path), fs::read_link(&path)) {
            (Err(error), Ok(to)) if error.kind() == io::ErrorKind::NotFound => path = folder(&path).join(to),
            (Err(error), _) if error.kind() == io::ErrorKind::NotFound => return Ok(path),
            (found, _) => return found,
        }
    }
}

/// The folder of a file.
fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn is_protected(path: &Path) -> bool {
    let mut magic = [0; 8];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && PROTECTED.contains(&magic)
}

/// Gives `file` the owner and the permissions of the file it replaces.
fn keep_access(file: &File, replaced: &Metadata) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, fchown};
        // Only the superuser can change the owner. For other users the file belongs to the user, as a new file does.
        let _ = fchown(file, Some(replaced.uid()), Some(replaced.gid()));
    }
    file.set_permissions(replaced.permissions())
}

/// Makes the names in a folder durable.
fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

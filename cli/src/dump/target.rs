//! The output of `dump`: a stream, a device, or a file. A file gets its name when it is complete, so a failed dump does
//! not replace an older one.

use super::existing::{descriptor, folder, is_database, is_same, resolved};
use crate::failure::{Failure, Result};
use crate::streams;
use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, ErrorKind, Seek, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// The destination of a dump.
pub(crate) enum Target {
    /// Standard output or another open descriptor, a pipe, or a character device.
    Stream(File),
    /// A block device.
    Block(File),
    /// A regular file. It has a temporary name until it is complete.
    File {
        /// The file. It is removed if it is dropped before it gets its name.
        file: NamedTempFile,
        /// Its final name.
        path: PathBuf,
        /// The file that it replaces. It stays open, so no other file can get its inode number.
        replaces: Option<File>,
    },
}

impl Target {
    /// Opens `path`, or standard output for `-`, for writing. Follows links. Refuses `source`, which is being dumped,
    /// other databases and, with `fresh`, every existing file and block device.
    pub(crate) fn create(path: &Path, source: &Path, fresh: bool) -> Result<Target> {
        let number = descriptor(path);
        if path == Path::new("-") || number == Some(1) {
            return to_stdout(path, source);
        }
        let refused = |source| Failure::File { action: "cannot create", path: path.to_owned(), source };
        // A slash at the end means a folder, but `Path` ignores it.
        if path.as_os_str().as_encoded_bytes().ends_with(b"/") {
            return Err(refused(ErrorKind::IsADirectory.into()));
        }
        // The link of a descriptor need not lead to a path.
        let target = if number.is_some() { path.to_owned() } else { resolved(path).map_err(refused)? };
        let found = match fs::metadata(&target) {
            Ok(found) if found.is_dir() => return Err(refused(ErrorKind::IsADirectory.into())),
            Ok(found) => found,
            Err(error) if error.kind() == ErrorKind::NotFound && number.is_none() => {
                return Target::named(target, None).map_err(refused);
            }
            Err(error) => return Err(refused(error)),
        };
        let is_block = found.file_type().is_block_device();
        if !found.is_file() && !is_block {
            return File::options().write(true).open(&target).map(Target::Stream).map_err(refused);
        }
        let is_stream = number.is_some() && !is_block;
        // The program that opened the descriptor has chosen the file, and the content of the file stays.
        let opened = File::options().read(true).write(is_block).append(is_stream).open(&target);
        let file = opened.map_err(unreadable(path))?;
        let source = fs::metadata(source).map_err(refused)?;
        if is_same(&found, &source) || is_database(&file).map_err(unreadable(path))? {
            return Err(holds_database(path));
        }
        if fresh && !is_stream {
            let why = "already exists: a dump of a damaged database does not replace a file";
            return Err(Failure::Usage(format!("{} {why}", path.display())));
        }
        match (is_stream, is_block) {
            (true, _) => Ok(Target::Stream(file)),
            (_, true) => (&file).rewind().map(|()| Target::Block(file)).map_err(refused),
            _ => Target::named(target, Some(file)).map_err(refused),
        }
    }

    /// A temporary file beside `path`.
    fn named(path: PathBuf, replaces: Option<File>) -> io::Result<Target> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(".duramen-dump-");
        // A new file gets the default permissions of this process. A file that replaces another is readable only by its
        // owner until it is complete.
        if replaces.is_none() {
            builder.permissions(Permissions::from_mode(0o666));
        }
        let file = builder.tempfile_in(folder(&path))?;
        Ok(Target::File { file, path, replaces })
    }

    /// Syncs the file or the block device. Gives the file its final name, unless another file has appeared there. Does
    /// nothing for streams.
    pub(crate) fn finish(self) -> Result<()> {
        let (file, path, replaces) = match self {
            Target::Stream(_) => return Ok(()),
            Target::Block(file) => return file.sync_all().map_err(Failure::Output),
            Target::File { file, path, replaces } => (file, path, replaces),
        };
        let replaced = replaces.as_ref().map(File::metadata).transpose().map_err(Failure::Output)?;
        if let Some(replaced) = &replaced {
            keep_access(file.as_file(), replaced).map_err(Failure::Output)?;
        }
        file.as_file().sync_all().map_err(Failure::Output)?;
        give_name(file, &path, replaced.as_ref())?;
        // Makes the name durable.
        File::open(folder(&path)).and_then(|folder| folder.sync_all()).map_err(Failure::Output)
    }
}

impl Write for Target {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        match self {
            Target::Stream(file) | Target::Block(file) => file.write(buf),
            Target::File { file, .. } => file.write(buf),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Target::Stream(file) | Target::Block(file) => file.flush(),
            Target::File { file, .. } => file.flush(),
        }
    }
}

/// Standard output, unless it is a database. A shell that appends to a file, or that opens a device, keeps what is
/// there.
fn to_stdout(path: &Path, source: &Path) -> Result<Target> {
    let out = streams::open_stdout().map_err(Failure::Output)?;
    let (found, source) =
        out.metadata().and_then(|found| Ok((found, fs::metadata(source)?))).map_err(Failure::Output)?;
    let has_content = found.is_file() && found.len() > 0 || found.file_type().is_block_device();
    // The descriptor may be open for writing only. The program that opened it may have rights that this process does
    // not have.
    let holds = || match File::open("/dev/stdout").and_then(|file| is_database(&file)) {
        Err(error) if matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::NotFound) => Ok(false),
        read => read.map_err(unreadable(path)),
    };
    if is_same(&found, &source) || has_content && holds()? {
        return Err(holds_database(path));
    }
    Ok(Target::Stream(out))
}

/// True if a file system cannot rename a file in this way.
fn is_unsupported(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::InvalidInput | ErrorKind::PermissionDenied)
}

/// Renames `file` to `path`. The only file that it replaces there is `replaced`, if that is still no database.
fn give_name(file: NamedTempFile, path: &Path, replaced: Option<&Metadata>) -> Result<()> {
    match (fs::symlink_metadata(path), replaced) {
        (Ok(found), Some(replaced)) if is_same(&found, replaced) => {
            if File::open(path).and_then(|file| is_database(&file)).map_err(unreadable(path))? {
                return Err(holds_database(path));
            }
            file.persist(path)
        }
        (Ok(_), _) => return Err(appeared(path)),
        (Err(error), _) if error.kind() == ErrorKind::NotFound => match file.persist_noclobber(path) {
            Err(refused) if refused.error.kind() == ErrorKind::AlreadyExists => return Err(appeared(path)),
            // Some file systems cannot rename a file in a way that never replaces another one.
            Err(refused) if is_unsupported(&refused.error) => refused.file.persist(path),
            named => named,
        },
        (Err(error), _) => return Err(Failure::Output(error)),
    }
    .map(drop)
    .map_err(|refused| Failure::Output(refused.error))
}

fn appeared(path: &Path) -> Failure {
    let why = "another file has appeared there during the dump, and is kept: dump to another file";
    Failure::Usage(format!("cannot create {}: {why}", path.display()))
}

fn holds_database(path: &Path) -> Failure {
    Failure::Usage(format!("{} is a database: dump to another file", path.display()))
}

/// An existing file that cannot be read may be a database.
fn unreadable(path: &Path) -> impl Fn(io::Error) -> Failure {
    move |source| Failure::File { action: "cannot read the existing file", path: path.to_owned(), source }
}

/// Gives `file` the permissions of the file it replaces and, if the system allows that, its owner and group.
fn keep_access(file: &File, replaced: &Metadata) -> io::Result<()> {
    let mut access = replaced.mode() & 0o777;
    let made = file.metadata()?;
    if (made.uid(), made.gid()) != (replaced.uid(), replaced.gid()) {
        let (owner, group) = (Some(replaced.uid()), Some(replaced.gid()));
        // Only the superuser can change the owner. The owner can set any group that he is a member of.
        if fchown(file, owner, group).or_else(|_| fchown(file, None, group)).is_err() {
            // The new file has another group than the replaced file. This group must not get the permissions that the
            // group of the replaced file had.
            access &= !0o070;
        }
    }
    match file.set_permissions(Permissions::from_mode(access)) {
        // A file system without permissions.
        Err(error) if matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::Unsupported) => Ok(()),
        set => set,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use duramen::db::FILE_MAGIC;

    /// A target named `dump` in a new folder, after `before`, and how it finishes after `during`.
    fn finished(before: impl FnOnce(&Path), during: impl FnOnce(&Path)) -> (Result<()>, Option<Vec<u8>>) {
        let place = tempfile::tempdir().unwrap();
        let (source, path) = (place.path().join("source"), place.path().join("dump"));
        fs::write(&source, FILE_MAGIC).unwrap();
        before(&path);
        let mut target = Target::create(&path, &source, false).unwrap();
        target.write_all(b"new").unwrap();
        during(&path);
        let done = target.finish();
        let names = fs::read_dir(place.path()).unwrap().count();
        assert_eq!(names, 1 + usize::from(path.exists()), "no temporary file is left");
        (done, fs::read(&path).ok())
    }

    #[test]
    fn a_file_that_appears_during_the_dump_is_kept() {
        let old = |path: &Path| fs::write(path, "old").unwrap();
        for content in [&FILE_MAGIC[..], b"other", b""] {
            let (done, found) = finished(|_| (), |path| fs::write(path, content).unwrap());
            assert!(done.unwrap_err().to_string().contains("another file has appeared"));
            assert_eq!(found.as_deref(), Some(content));
            let replace = |path: &Path| {
                fs::remove_file(path).unwrap();
                fs::write(path, content).unwrap();
            };
            let (done, found) = finished(old, replace);
            assert!(done.unwrap_err().to_string().contains("another file has appeared"));
            assert_eq!(found.as_deref(), Some(content));
        }
        // The same file has become a database.
        let (done, found) = finished(old, |path| fs::write(path, FILE_MAGIC).unwrap());
        assert!(done.unwrap_err().to_string().contains("is a database"));
        assert_eq!(found.as_deref(), Some(&FILE_MAGIC[..]));
    }

    #[test]
    fn the_file_that_was_there_is_replaced_and_a_missing_one_is_made() {
        let old = |path: &Path| fs::write(path, "old").unwrap();
        let remove = |path: &Path| fs::remove_file(path).unwrap();
        for (done, found) in [finished(|_| (), |_| ()), finished(old, |_| ()), finished(old, remove)] {
            done.unwrap();
            assert_eq!(found.as_deref(), Some(&b"new"[..]));
        }
    }
}

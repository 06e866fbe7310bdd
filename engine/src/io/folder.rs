//! [`Volume`] for folders of the operating system, with advisory locks and file permissions.
//!
//! The folder is resolved once and then held open. A later change of the working folder, or a new name of a parent
//! folder, does not change which files are opened.

use super::{DeviceDisk, Disk, FileDisk, LockGuard, Locked, OpenMode, Opener, Volume, mount};
use crate::base::{Error, Result};
use rustix::fs::{
    AtFlags, Dir, FileType, Gid, Mode, OFlags, Stat, Uid, fchmod, fchown, fstat, openat, readlinkat, renameat, statat,
    unlinkat,
};
use rustix::io::{Errno, fcntl_dupfd_cloexec, retry_on_intr};
use std::ffi::{OsStr, OsString};
use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The number of links that are followed in a row before they are taken for a cycle. It is the limit of Linux.
const MAX_LINKS: usize = 40;

/// The descriptors below this one are those of the standard streams.
const FIRST_DESCRIPTOR: RawFd = 3;

const LOOK: &str = "cannot look at";

/// A new file in this folder that has no name, for a test of the file system. The error says what failed.
#[cfg(target_os = "linux")]
pub(super) fn unnamed_file(folder: &File) -> std::result::Result<File, String> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = retry_on_intr(|| openat(folder, ".", flags, Mode::RUSR | Mode::WUSR));
    file.map(File::from).map_err(|error| format!("no file can be made here to try it: {error}"))
}

/// A folder of the file system, held open.
#[derive(Debug, Clone)]
pub struct FileVolume {
    handle: Arc<File>,
    /// The path that the folder was opened by, for messages only.
    path: PathBuf,
    opener: Opener,
}

/// Block devices are files like others on Linux only, where opening a device for an exclusive lock prevents other
/// programs from mounting it.
const HAS_BLOCK_DEVICES: bool = cfg!(target_os = "linux");

impl FileVolume {
    /// Opens the folder at `path`.
    ///
    /// # Errors
    /// [`Error::Io`] if it does not exist or cannot be read.
    pub fn open(path: impl Into<PathBuf>) -> Result<FileVolume> {
        let path = path.into();
        let there = if path.as_os_str().is_empty() { Path::new(".") } else { &path };
        let handle = File::open(there).and_then(|handle| match handle.metadata()?.is_dir() {
            true => Ok(Arc::new(handle)),
            false => Err(ErrorKind::NotADirectory.into()),
        });
        match handle {
            Ok(handle) => Ok(FileVolume { handle, path, opener: Opener::this() }),
            Err(source) => Err(Error::io("cannot open the folder", there, source)),
        }
    }

    /// Finds the folder and the name of the file at `path`. The file need not exist. Links are followed, even if the
    /// target does not exist: the files that the engine keeps beside a database must be the same, whichever path it is
    /// opened by.
    ///
    /// A link to a block device is not followed: the files beside the database are beside the link. Links in the file
    /// system that has the device are followed, because that file system is often lost with the power.
    ///
    /// # Errors
    /// [`Error::Option`] if the path does not name a file, if it names a block device without a link, or if the name is
    /// not UTF-8; [`Error::Io`] if the folder does not exist or cannot be read.
    pub fn for_file(path: &Path) -> Result<(FileVolume, String)> {
        let mut file = path.to_owned();
        // The links that were followed, the last one at the end.
        let mut links = Vec::new();
        for _ in 0..MAX_LINKS {
            let bad = || Error::Option {
                option: "path",
                value: format!("{}", path.display()),
                expected: "the path of a file, with a name in UTF-8 at its end".to_owned(),
            };
            // `file_name` ignores a slash at the end, but such a path names a folder.
            let at_end = |name: &&OsStr| file.as_os_str().as_bytes().ends_with(name.as_bytes());
            let name = file.file_name().filter(at_end).ok_or_else(bad)?.to_owned();
            let folder = FileVolume::open(file.parent().unwrap_or(Path::new("")))?;
            match folder.link(&name).map_err(|e| Error::io("cannot find", &file, e))? {
                Some(target) => {
                    file = folder.path.join(target);
                    links.push((folder, name));
                }
                None => {
                    let (folder, name) = match folder.is_block_device(&name)? {
                        true => link_elsewhere(links, &folder)?.ok_or_else(|| needs_link(path))?,
                        false => (folder, name),
                    };
                    return name.into_string().map(|name| (folder, name)).map_err(|_| bad());
                }
            }
        }
        Err(Error::io("cannot find", path, Errno::LOOP.into()))
    }

    /// The open folder.
    pub(super) fn handle(&self) -> &File {
        &self.handle
    }

    /// The target of the link `name`; `None` if there is no link of this name.
    fn link(&self, name: &OsStr) -> std::io::Result<Option<PathBuf>> {
        match retry_on_intr(|| readlinkat(&*self.handle, name, Vec::new())) {
            Ok(target) => Ok(Some(OsString::from_vec(target.into_bytes()).into())),
            Err(Errno::INVAL | Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// True if the name is one of a block device, or of a link to one.
    fn is_block_device(&self, name: &OsStr) -> Result<bool> {
        match statat(&*self.handle, name, AtFlags::empty()) {
            Err(Errno::NOENT) => Ok(false),
            stat => stat
                .map(|stat| HAS_BLOCK_DEVICES && FileType::from_raw_mode(stat.st_mode) == FileType::BlockDevice)
                .map_err(|e| Error::io(LOOK, self.path.join(name), e.into())),
        }
    }

    /// The major and the minor number of the block device that the file `name` is; `None` if it is not one.
    pub(super) fn device_number(&self, name: &str) -> Result<Option<(u32, u32)>> {
        if !self.is_block_device(name.as_ref())? {
            return Ok(None);
        }
        let stat = statat(&*self.handle, name, AtFlags::empty());
        let device = stat.map_err(|e| Error::io(LOOK, self.path(name), e.into()))?.st_rdev;
        Ok(Some((rustix::fs::major(device), rustix::fs::minor(device))))
    }

    /// `alone`: no other process may have a block device open in this way, nor mount it.
    fn open_file(&self, name: &str, mode: OpenMode, access: Mode, alone: bool) -> Result<File> {
        let path = self.path(name);
        if mode != OpenMode::Read {
            self.opener.check(&path)?;
        }
        let flags = match mode {
            OpenMode::Read => OFlags::RDONLY,
            OpenMode::Write => OFlags::RDWR,
            OpenMode::CreateNew => OFlags::RDWR | OFlags::CREATE | OFlags::EXCL,
        };
        // Opening a pipe that has no writer must not block. The flag has no effect on regular files.
        let flags = flags | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let flags = if alone && self.is_block_device(name.as_ref())? { flags | OFlags::EXCL } else { flags };
        let opened = retry_on_intr(|| openat(&*self.handle, name, flags, access));
        let opened = opened.and_then(|file| {
            with_descriptor_from(FIRST_DESCRIPTOR, file).inspect_err(|_| {
                if mode == OpenMode::CreateNew {
                    let _ = unlinkat(&*self.handle, name, AtFlags::empty());
                }
            })
        });
        match (opened, mode) {
            (Ok(file), _) => {
                // A device or a pipe has the length 0. It would look like an empty file, in which a database can be
                // created.
                let stat = fstat(&file).map_err(|e| Error::io(LOOK, &path, e.into()))?;
                match FileType::from_raw_mode(stat.st_mode) {
                    FileType::RegularFile | FileType::Directory => Ok(File::from(file)),
                    FileType::BlockDevice if HAS_BLOCK_DEVICES => Ok(File::from(file)),
                    _ => Err(Error::io("cannot use", path, std::io::Error::other("it is not a regular file"))),
                }
            }
            (Err(Errno::BUSY), _) => Err(Error::Locked { path }),
            (Err(Errno::EXIST), _) => Err(Error::Exists { path }),
            (Err(Errno::NOENT), OpenMode::Read | OpenMode::Write) => Err(Error::NotFound { path }),
            // `NotFound` would advise to create the database, but here the folder is missing.
            (Err(error), OpenMode::CreateNew) => Err(Error::io("cannot create", path, error.into())),
            (Err(error), _) => Err(Error::io("cannot open", path, error.into())),
        }
    }

    fn disk(&self, name: &str, file: Arc<File>, mode: OpenMode) -> Result<Arc<dyn Disk>> {
        let (path, writable) = (self.path(name), mode != OpenMode::Read);
        let stat = fstat(&*file).map_err(|e| Error::io(LOOK, &path, e.into()))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::BlockDevice {
            return Ok(Arc::new(FileDisk::new(file, path, writable)));
        }
        let device = Arc::new(FileDisk::of_device(file, path.clone(), writable)?);
        Ok(Arc::new(DeviceDisk::open(device, &path)?))
    }

    /// The system's description of a file; `None` if there is no such file.
    fn stat(&self, name: &str) -> Result<Option<Stat>> {
        match statat(&*self.handle, name, AtFlags::empty()) {
            Err(Errno::NOENT) => Ok(None),
            stat => stat.map(Some).map_err(|e| Error::io(LOOK, self.path(name), e.into())),
        }
    }

    fn renamed(&self, renamed: std::io::Result<()>, from: &str, to: &str) -> Result<()> {
        renamed.map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => Error::Exists { path: self.path(to) },
            ErrorKind::NotFound => Error::NotFound { path: self.path(from) },
            _ => Error::io("cannot rename", self.path(from), error),
        })
    }

    fn names(&self, prefix: &str) -> std::io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&*self.handle)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            if !name.starts_with(prefix) {
                continue;
            }
            let is_folder = match entry.file_type() {
                FileType::Unknown => match statat(&*self.handle, name, AtFlags::SYMLINK_NOFOLLOW) {
                    Err(Errno::NOENT) => continue,
                    stat => FileType::from_raw_mode(stat?.st_mode) == FileType::Directory,
                },
                known => known == FileType::Directory,
            };
            if !is_folder {
                names.push(name.to_owned());
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Gives the file `name` the permissions of another file.
    fn share(&self, name: &str, file: &File, like: &Stat) -> Result<()> {
        share(file, like).map_err(|e| Error::io("cannot set the permissions of", self.path(name), e.into()))
    }
}

impl Volume for FileVolume {
    fn open(&self, name: &str, mode: OpenMode) -> Result<Arc<dyn Disk>> {
        let file = self.open_file(name, mode, Mode::from_raw_mode(0o666), false)?;
        self.disk(name, Arc::new(file), mode)
    }

    /// The new file gets the permissions of the file `beside`, and also its owner and group if the system allows that.
    /// At no time does it have more permissions than the other file.
    fn create_beside(&self, name: &str, beside: &str) -> Result<Arc<dyn Disk>> {
        let Some(like) = self.stat(beside)? else { return self.open(name, OpenMode::CreateNew) };
        let access = Mode::from_raw_mode(like.st_mode);
        let file = self.open_file(name, OpenMode::CreateNew, access & Mode::RWXU, false)?;
        self.share(name, &file, &like)?;
        self.disk(name, Arc::new(file), OpenMode::CreateNew)
    }

    fn share_permissions(&self, name: &str, beside: &str) -> Result<()> {
        let Some(like) = self.stat(beside)? else { return Ok(()) };
        let file = self.open_file(name, OpenMode::Write, Mode::empty(), false)?;
        self.share(name, &file, &like)
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.opener.check(&self.path(name))?;
        match retry_on_intr(|| unlinkat(&*self.handle, name, AtFlags::empty())) {
            Err(error) if error != Errno::NOENT => Err(Error::io("cannot remove", self.path(name), error.into())),
            _ => Ok(()),
        }
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.opener.check(&self.path(from))?;
        self.renamed(system::rename_new(&self.handle, from, to), from, to)
    }

    fn replace(&self, from: &str, to: &str) -> Result<()> {
        self.opener.check(&self.path(from))?;
        let renamed = retry_on_intr(|| renameat(&*self.handle, from, &*self.handle, to));
        self.renamed(renamed.map_err(Into::into), from, to)
    }

    fn exchange(&self, one: &str, other: &str) -> Result<bool> {
        self.opener.check(&self.path(one))?;
        match system::exchange(&self.handle, one, other) {
            Err(error) if error.kind() == ErrorKind::Unsupported => Ok(false),
            exchanged => self.renamed(exchanged, one, other).map(|()| true),
        }
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>> {
        self.names(prefix).map_err(|e| Error::io("cannot read the folder", self.path(""), e))
    }

    fn sync(&self) -> Result<()> {
        self.opener.check(&self.path(""))?;
        self.handle.sync_all().map_err(|e| Error::sync("cannot sync the folder", self.path(""), e))
    }

    fn lock(&self, name: &str, exclusive: bool) -> Result<Locked> {
        // Network file systems need a writable file for an exclusive lock. A shared lock must work on a read-only file
        // system.
        let mode = if exclusive { OpenMode::Write } else { OpenMode::Read };
        loop {
            // The lock belongs to this open file. So a second handle in this process is refused like one of another
            // process, and closing other handles of the file does not release the lock.
            let file = Arc::new(self.open_file(name, mode, Mode::empty(), exclusive)?);
            let taken = if exclusive { file.try_lock() } else { file.try_lock_shared() };
            match taken {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(Error::Locked { path: self.path(name) }),
                Err(TryLockError::Error(e)) => return Err(Error::io("cannot lock", self.path(name), e)),
            }
            let guard = FileLock { file: file.clone(), volume: self.clone(), opener: Opener::this() };
            // The previous owner of the lock may have removed the file, or replaced it by another file.
            if guard.is_of(name)? {
                if exclusive && !self.is_block_device(name.as_ref())? {
                    mount::check_with_folder(&file, &self.handle, &self.path(name))?;
                }
                return Ok(Locked { disk: self.disk(name, file, mode)?, guard: Box::new(guard) });
            }
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

/// The same open file, with a descriptor that is at least `least`.
///
/// In a program that has closed its standard streams, the next files that it opens get their descriptors. Whatever then
/// writes a message to standard output or standard error would write it over the front of the file.
fn with_descriptor_from(least: RawFd, file: OwnedFd) -> rustix::io::Result<OwnedFd> {
    if file.as_raw_fd() >= least { Ok(file) } else { fcntl_dupfd_cloexec(&file, least) }
}

/// A held lock. The system releases it when the file is closed, and therefore when the process dies.
#[derive(Debug)]
struct FileLock {
    file: Arc<File>,
    volume: FileVolume,
    opener: Opener,
}

impl LockGuard for FileLock {
    fn is_of(&self, name: &str) -> Result<bool> {
        let named = match statat(&*self.volume.handle, name, AtFlags::empty()) {
            Err(Errno::NOENT) => return Ok(false),
            stat => stat,
        };
        let same = named.and_then(|named| {
            let locked = fstat(&*self.file)?;
            Ok((named.st_dev, named.st_ino) == (locked.st_dev, locked.st_ino))
        });
        same.map_err(|e| Error::io(LOOK, self.volume.path(name), e.into()))
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // Closing the file is not enough: a child process that is being started has a copy of the open file, and with
        // it the lock, until it runs its own program. If unlocking fails, the lock is released by closing the file. A
        // child process that drops its copy must not unlock the file of its parent.
        if self.opener.is_this() {
            let _ = self.file.unlock();
        }
    }
}

/// The last of these links that is not in the file system of the folder that has the device.
fn link_elsewhere(links: Vec<(FileVolume, OsString)>, devices: &FileVolume) -> Result<Option<(FileVolume, OsString)>> {
    let file_system = |folder: &FileVolume| {
        fstat(&*folder.handle).map(|stat| stat.st_dev).map_err(|e| Error::io(LOOK, &folder.path, e.into()))
    };
    let of_devices = file_system(devices)?;
    for (folder, name) in links.into_iter().rev() {
        if file_system(&folder)? != of_devices {
            return Ok(Some((folder, name)));
        }
    }
    Ok(None)
}

fn needs_link(path: &Path) -> Error {
    Error::Option {
        option: "path",
        value: format!("{}", path.display()),
        expected: "a link to this device, in a folder of a file system, where the log will be".to_owned(),
    }
}

/// Gives `file`, which only its owner can access, the permissions and, if possible, the owner and group of the file
/// `like`.
fn share(file: &File, like: &Stat) -> rustix::io::Result<()> {
    let mut access = Mode::from_raw_mode(like.st_mode) & (Mode::RWXU | Mode::RWXG | Mode::RWXO);
    let made = fstat(file)?;
    if (made.st_uid, made.st_gid) != (like.st_uid, like.st_gid) {
        let (owner, group) = (Uid::from_raw(like.st_uid), Gid::from_raw(like.st_gid));
        // Only the superuser can change the owner. The owner can set any group that he is a member of.
        let given = fchown(file, Some(owner), Some(group)).or_else(|_| fchown(file, None, Some(group)));
        if given.is_err() {
            // The file has another group, which must not get the permissions of the other file's group.
            access &= !Mode::RWXG;
        }
    }
    match fchmod(file, access) {
        // A file system without permissions.
        Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
        set => set,
    }
}

#[cfg(target_os = "linux")]
mod system {
    use rustix::fs::{RenameFlags, renameat_with};
    use rustix::io::{Errno, retry_on_intr};
    use std::fs::File;

    /// Renames the file, unless the new name is in use.
    pub(super) fn rename_new(folder: &File, from: &str, to: &str) -> std::io::Result<()> {
        match retry_on_intr(|| renameat_with(folder, from, folder, to, RenameFlags::NOREPLACE)) {
            // The file system does not support this flag.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => super::link_new(folder, from, to),
            renamed => Ok(renamed?),
        }
    }

    pub(super) fn exchange(folder: &File, one: &str, other: &str) -> std::io::Result<()> {
        match retry_on_intr(|| renameat_with(folder, one, folder, other, RenameFlags::EXCHANGE)) {
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => Err(std::io::ErrorKind::Unsupported.into()),
            exchanged => Ok(exchanged?),
        }
    }
}

/// Other systems have no rename that fails if the new name is in use.
#[cfg(not(target_os = "linux"))]
mod system {
    pub(super) use super::link_new as rename_new;

    pub(super) fn exchange(_folder: &std::fs::File, _one: &str, _other: &str) -> std::io::Result<()> {
        Err(std::io::ErrorKind::Unsupported.into())
    }
}

/// Gives the file a second name, unless that name is in use, and then removes the first name. A crash between the two
/// steps leaves both names.
fn link_new(folder: &File, from: &str, to: &str) -> std::io::Result<()> {
    rustix::fs::linkat(folder, from, folder, to, AtFlags::empty())?;
    Ok(unlinkat(folder, from, AtFlags::empty())?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{create_dir, create_dir_all, rename, write};
    use std::os::unix::fs::symlink;

    /// The content of the file at `path`.
    fn content(path: &Path) -> Vec<u8> {
        let (volume, name) = FileVolume::for_file(path).unwrap();
        let disk = volume.open(&name, OpenMode::Read).unwrap();
        let mut bytes = vec![0; usize::try_from(disk.size().unwrap()).unwrap()];
        disk.read_at(0, &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn a_link_and_its_target_are_one_file_in_one_folder() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        create_dir_all(at("real/deep")).unwrap();
        write(at("real/deep/file"), b"x").unwrap();
        symlink("real/deep", at("folder")).unwrap();
        symlink("folder/file", at("relative")).unwrap();
        symlink(at("relative"), at("real/absolute")).unwrap();
        for link in ["folder/file", "relative", "real/absolute", "real/../relative"] {
            let (volume, name) = FileVolume::for_file(&at(link)).unwrap();
            assert_eq!((name.as_str(), content(&at(link))), ("file", b"x".to_vec()), "{link}");
            volume.open(link.rsplit('/').next().unwrap(), OpenMode::CreateNew).map(drop).unwrap_or(());
            let beside = at("real/deep").join(link.rsplit('/').next().unwrap());
            assert!(beside.exists(), "{link} is created in the folder of the file");
        }
    }

    #[test]
    fn a_dangling_link_names_its_target_and_a_link_cycle_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        create_dir(at("far")).unwrap();
        symlink("far/file", at("link")).unwrap();
        let (volume, name) = FileVolume::for_file(&at("link")).unwrap();
        assert!(matches!(volume.open(&name, OpenMode::Read), Err(Error::NotFound { .. })));
        volume.open(&name, OpenMode::CreateNew).unwrap();
        assert!(at("far/file").exists());
        symlink("b", at("a")).unwrap();
        symlink("a", at("b")).unwrap();
        match FileVolume::for_file(&at("a")) {
            Err(Error::Io { path, .. }) => assert_eq!(path, at("a")),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_folder_that_gets_another_name_stays_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        create_dir_all(at("a/b")).unwrap();
        let (volume, name) = FileVolume::for_file(&at("a/b/file")).unwrap();
        rename(at("a"), at("c")).unwrap();
        create_dir_all(at("a/b")).unwrap();
        volume.open(&name, OpenMode::CreateNew).unwrap();
        drop(volume.lock(&name, true).unwrap());
        volume.rename(&name, "other").unwrap();
        assert!(at("c/b/other").exists());
        assert_eq!(volume.list("").unwrap(), ["other"]);
        volume.sync().unwrap();
        volume.remove("other").unwrap();
        assert!(!at("c/b/other").exists());
    }

    #[test]
    fn a_file_with_the_descriptor_of_a_standard_stream_gets_another_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        write(&path, b"x").unwrap();
        let file = OwnedFd::from(File::open(&path).unwrap());
        let low = file.as_raw_fd();
        let moved = with_descriptor_from(low + 1, file).unwrap();
        assert!(moved.as_raw_fd() > low);
        assert!(rustix::io::fcntl_getfd(&moved).unwrap().contains(rustix::io::FdFlags::CLOEXEC));
        let kept = moved.as_raw_fd();
        let moved = File::from(with_descriptor_from(kept, moved).unwrap());
        assert_eq!((moved.as_raw_fd(), std::io::read_to_string(moved).unwrap().as_str()), (kept, "x"));
    }

    #[test]
    fn paths_without_a_file_name_are_refused() {
        for path in ["/", "..", "", "a/..", "a/", "a/."] {
            assert!(
                matches!(FileVolume::for_file(Path::new(path)), Err(Error::Option { option: "path", .. })),
                "{path:?}"
            );
        }
        assert_eq!(FileVolume::for_file(Path::new("to-come")).unwrap().0.path("to-come"), Path::new("to-come"));
    }

    #[test]
    fn a_system_without_a_rename_that_replaces_nothing_does_it_by_links() {
        let folder = tempfile::tempdir().unwrap();
        let volume = FileVolume::open(folder.path()).unwrap();
        ["a", "b"].iter().for_each(|name| write(folder.path().join(name), name).unwrap());
        assert_eq!(link_new(&volume.handle, "a", "b").unwrap_err().kind(), ErrorKind::AlreadyExists);
        link_new(&volume.handle, "a", "c").unwrap();
        assert_eq!(volume.list("").unwrap(), ["b", "c"]);
    }

    #[test]
    fn a_replacement_file_gets_the_permissions_of_the_original() {
        use std::fs::{Permissions, metadata, set_permissions};
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let volume = FileVolume::open(folder.path()).unwrap();
        for mode in [0o600, 0o640, 0o666, 0o604, 0o660, 0o400] {
            let path = folder.path().join("file");
            write(&path, "x").unwrap();
            set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            volume.create_beside("beside", "file").unwrap().write_at(0, b"x").unwrap();
            assert_eq!(metadata(folder.path().join("beside")).unwrap().permissions().mode() & 0o7777, mode);
            ["file", "beside"].iter().for_each(|name| volume.remove(name).unwrap());
        }
        assert!(volume.create_beside("beside", "file").is_ok(), "beside nothing");
    }
}

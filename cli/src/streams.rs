//! Standard input and output as files. If a descriptor cannot be read, the handles of the standard library report the
//! end of the input. If it cannot be written, they report success. These files return the error.

use rustix::fs::{OFlags, fcntl_getfl};
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};

/// Standard input. An error if it was closed when the program started.
pub(crate) fn stdin() -> io::Result<File> {
    opened(io::stdin())
}

/// Standard output. If it was closed when the program started, all that is written to it is lost.
pub(crate) fn stdout() -> io::Result<File> {
    Ok(io::stdout().as_fd().try_clone_to_owned()?.into())
}

/// Standard output. An error if it was closed when the program started.
pub(crate) fn open_stdout() -> io::Result<File> {
    opened(io::stdout())
}

fn opened(stream: impl AsFd) -> io::Result<File> {
    let stream = File::from(stream.as_fd().try_clone_to_owned()?);
    match is_null_in_place(&stream)? {
        true => Err(io::Error::other("it is closed, or it is /dev/null, opened to read and write")),
        false => Ok(stream),
    }
}

/// True for the null device, opened to read and write. The runtime opens it in place of a closed standard stream.
fn is_null_in_place(stream: &File) -> io::Result<bool> {
    let found = stream.metadata()?;
    let is_null = found.file_type().is_char_device()
        && fs::metadata("/dev/null").is_ok_and(|null| null.file_type().is_char_device() && null.rdev() == found.rdev());
    Ok(is_null && fcntl_getfl(stream)? & OFlags::RWMODE == OFlags::RDWR)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_null_device_for_both_directions_stands_for_a_closed_stream() {
        let null = |read, write| File::options().read(read).write(write).open("/dev/null").unwrap();
        assert!(is_null_in_place(&null(true, true)).unwrap());
        assert!(!is_null_in_place(&null(true, false)).unwrap() && !is_null_in_place(&null(false, true)).unwrap());
        assert!(!is_null_in_place(&File::options().read(true).write(true).open("/dev/zero").unwrap()).unwrap());
        assert!(!is_null_in_place(&tempfile::tempfile().unwrap()).unwrap());
    }
}

//! Runs a part of a test in a child process made by `fork`.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

/// Runs `work` with a copy of `of_parent` in a child process made by `fork`, and returns what the parent has. The work
/// must not panic, nor take longer than a minute.
pub(crate) fn in_child<T: Send + 'static>(of_parent: T, work: impl Fn(T) + Send + Sync + 'static) -> T {
    let shared = Arc::new(Mutex::new(Some(of_parent)));
    let of_child = shared.clone();
    let (mut from_child, to_parent) = std::io::pipe().unwrap();
    let run = move || {
        (&to_parent).write_all(&std::process::id().to_le_bytes())?;
        work(of_child.lock().unwrap().take().ok_or(ErrorKind::NotFound)?);
        Ok(())
    };
    let mut command = Command::new("true");
    // SAFETY: no other thread holds the lock that the closure takes, and the allocator is usable after a fork.
    unsafe { command.pre_exec(run) };
    let (ended, has_ended) = mpsc::channel();
    let watch = std::thread::spawn(move || {
        let mut child = [0; 4];
        from_child.read_exact(&mut child).unwrap();
        if has_ended.recv_timeout(Duration::from_secs(60)).is_err() {
            Command::new("kill").args(["-9", &u32::from_le_bytes(child).to_string()]).status().unwrap();
        }
    });
    let status = command.status().unwrap();
    ended.send(()).unwrap();
    watch.join().unwrap();
    assert!(status.success(), "the child process has failed or was killed: {status}");
    drop(command);
    Arc::into_inner(shared).unwrap().into_inner().unwrap().unwrap()
}

//! An id of the running process, in most calls without a system call. Its low half is the id that the system gives.
//! This is not enough: the parent and its child in a new namespace of process ids can both have the id 1, and the id of
//! a parent that has ended can be used again. So the high half is a counter. It is greater than in each process from
//! which this process was forked.
//!
//! The reason for `unsafe`: a commit asks several times whether it runs in the process that opened the database. Each
//! system call takes up to 0.3 us; together they were up to a twentieth of a commit that is not synced. The system can
//! keep a page of memory that is zeros again in a child process made by `fork`. No safe code can ask for such a page.

use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// Used on a system without such memory. No id is ever stored in it, so each call asks the system.
static UNSUPPORTED: AtomicU64 = AtomicU64::new(0);

/// Where the id is kept: null before the first call. It is not a lock, so a child process never waits for a thread of
/// its parent.
static KEPT: AtomicPtr<AtomicU64> = AtomicPtr::new(std::ptr::null_mut());

/// How often this process and the processes from which it was forked have called `ask` with memory that `fork` clears.
/// `fork` copies the counter to the child.
static ASKED: AtomicU32 = AtomicU32::new(0);

/// Returns an id of the running process. It differs from the ids of all processes from which this process was forked.
/// If the system has no memory that `fork` clears, the result is the process id of the system, which is not unique in
/// this sense.
#[inline]
pub(super) fn process_id() -> u64 {
    // SAFETY: the pointer is null or that of an `AtomicU64` that is never freed.
    let kept = unsafe { KEPT.load(Ordering::Acquire).as_ref() };
    match kept.map(|kept| kept.load(Ordering::Relaxed)) {
        None | Some(0) => ask(),
        Some(id) => id,
    }
}

/// Asks the system for the id. Keeps it in memory that is zero in a child process, if there is such memory.
#[cold]
fn ask() -> u64 {
    let of_system = u64::from(std::process::id());
    if KEPT.load(Ordering::Acquire).is_null() {
        let new = cleared_in_a_child().unwrap_or(&UNSUPPORTED);
        // If another thread was faster, the page of this one stays unused.
        let _ = KEPT.compare_exchange(
            std::ptr::null_mut(),
            std::ptr::from_ref(new).cast_mut(),
            Ordering::AcqRel,
            Ordering::Acquire,
        );
    }
    // SAFETY: the pointer is null or that of an `AtomicU64` that is never freed.
    let kept = unsafe { KEPT.load(Ordering::Acquire).as_ref() };
    let Some(kept) = kept.filter(|kept| !std::ptr::eq(*kept, &UNSUPPORTED)) else { return of_system };
    let asked = ASKED.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
    let id = u64::from(asked) << 32 | of_system;
    // If another thread was faster, its id counts.
    kept.compare_exchange(0, id, Ordering::Relaxed, Ordering::Relaxed).map_or_else(|kept| kept, |_| id)
}

/// A number, 0 at first and again in each child process; `None` if the system has no such memory.
#[cfg(all(target_os = "linux", not(miri)))]
fn cleared_in_a_child() -> Option<&'static AtomicU64> {
    use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};
    const LEN: usize = size_of::<AtomicU64>();
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping at an address that the system chooses.
    let page = unsafe { mmap_anonymous(std::ptr::null_mut(), LEN, access, MapFlags::PRIVATE) }.ok()?;
    // SAFETY: the advice is for the page that was just mapped, and to which nothing refers yet.
    unsafe { madvise(page, LEN, Advice::LinuxWipeOnFork) }.ok()?;
    // SAFETY: the page is aligned, full of zeros, a valid number, and never unmapped.
    Some(unsafe { &*page.cast::<AtomicU64>() })
}

#[cfg(not(all(target_os = "linux", not(miri))))]
fn cleared_in_a_child() -> Option<&'static AtomicU64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    /// The id that the system gives.
    fn of_system(id: u64) -> u64 {
        id & u64::from(u32::MAX)
    }

    #[test]
    fn all_threads_get_one_id_with_that_of_the_system() {
        let id = process_id();
        assert_eq!(of_system(id), u64::from(std::process::id()));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| (0..100).for_each(|_| assert_eq!(process_id(), id)));
            }
        });
        let kept = KEPT.load(Ordering::Acquire);
        assert!(!kept.is_null());
        #[cfg(all(target_os = "linux", not(miri)))]
        assert!(!std::ptr::eq(kept, &UNSUPPORTED), "the kernel clears no memory in a child process");
    }

    /// The system can give both processes the same id.
    #[cfg(all(target_os = "linux", not(miri)))]
    #[test]
    fn a_child_process_has_another_id_also_without_that_of_the_system() {
        let of_parent = process_id();
        let mut child = Command::new("true");
        let differs = move || {
            let id = process_id();
            let is_own = of_system(id) == u64::from(std::process::id()) && id == process_id();
            if is_own && id >> 32 > of_parent >> 32 { Ok(()) } else { Err(std::io::ErrorKind::Other.into()) }
        };
        // SAFETY: the closure takes no lock and allocates nothing.
        unsafe { child.pre_exec(differs) };
        assert!(child.status().unwrap().success());
    }
}

//! The id of the running process, in most calls without a system call.
//!
//! The reason for `unsafe`: a commit asks several times whether it runs in the process that opened the database. Each
//! system call takes up to 0.3 us; together they were up to a twentieth of a commit that is not synced. The system can
//! keep a page of memory that is zeros again in a child process made by `fork`. No safe code can ask for such a page.

use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// Used on a system without such memory. No id is ever stored in it, so each call asks the system.
static UNSUPPORTED: AtomicU32 = AtomicU32::new(0);

/// Where the id is kept: null before the first call. It is not a lock, so a child process never waits for a thread of
/// its parent.
static KEPT: AtomicPtr<AtomicU32> = AtomicPtr::new(std::ptr::null_mut());

/// The id of the running process.
#[inline]
pub(super) fn process_id() -> u32 {
    // SAFETY: the pointer is null or that of an `AtomicU32` that is never freed.
    let kept = unsafe { KEPT.load(Ordering::Acquire).as_ref() };
    match kept.map(|kept| kept.load(Ordering::Relaxed)) {
        None | Some(0) => ask(),
        Some(id) => id,
    }
}

/// Asks the system for the id. Keeps it in memory that is zero in a child process, if there is such memory.
#[cold]
fn ask() -> u32 {
    let id = std::process::id();
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
    // SAFETY: the pointer is null or that of an `AtomicU32` that is never freed.
    let kept = unsafe { KEPT.load(Ordering::Acquire).as_ref() };
    if let Some(kept) = kept.filter(|kept| !std::ptr::eq(*kept, &UNSUPPORTED)) {
        kept.store(id, Ordering::Relaxed);
    }
    id
}

/// A number, 0 at first and again in each child process; `None` if the system has no such memory.
#[cfg(all(target_os = "linux", not(miri)))]
fn cleared_in_a_child() -> Option<&'static AtomicU32> {
    use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};
    const LEN: usize = size_of::<AtomicU32>();
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping at an address that the system chooses.
    let page = unsafe { mmap_anonymous(std::ptr::null_mut(), LEN, access, MapFlags::PRIVATE) }.ok()?;
    // SAFETY: the advice is for the page that was just mapped, and to which nothing refers yet.
    unsafe { madvise(page, LEN, Advice::LinuxWipeOnFork) }.ok()?;
    // SAFETY: the page is aligned, full of zeros, a valid number, and never unmapped.
    Some(unsafe { &*page.cast::<AtomicU32>() })
}

#[cfg(not(all(target_os = "linux", not(miri))))]
fn cleared_in_a_child() -> Option<&'static AtomicU32> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_gets_the_id_that_the_system_returns() {
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| (0..100).for_each(|_| assert_eq!(process_id(), std::process::id())));
            }
        });
        let kept = KEPT.load(Ordering::Acquire);
        assert!(!kept.is_null());
        #[cfg(all(target_os = "linux", not(miri)))]
        assert!(!std::ptr::eq(kept, &UNSUPPORTED), "the kernel clears no memory in a child process");
    }
}

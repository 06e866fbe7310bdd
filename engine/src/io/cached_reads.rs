//! Reads through the file cache of the system, and hints to the system about the parts of a file that will be read
//! soon. One of [`ASKING`] reads first asks the system for cached bytes only. This takes a little longer than an
//! ordinary read, and shows whether reads wait for the device. As long as none of these reads waits, the system gets no
//! hints: a hint takes a system call, and the system looks up each page of the range only to find that it is in the
//! cache.

use super::file::system;
use std::cell::Cell;
use std::fs::File;
use std::io::Result;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU32, Ordering};

/// The number of hints after which the system gets no more, unless a read waits for the device.
const HINTS: u32 = 16_384;
/// The number of hints where the system does not say whether a read would wait. It does not decrease.
const ALWAYS: u32 = u32::MAX;
/// One of this number of reads of a thread asks for cached bytes only. It is a prime, so that a thread that repeats a
/// few reads asks at each of them in turn.
const ASKING: u32 = 17;

thread_local! {
    /// The reads of this thread.
    static READS: Cell<u32> = const { Cell::new(0) };
}

/// Counts a read of this thread. True for the first of each [`ASKING`] reads: this read asks for cached bytes.
fn is_asking() -> bool {
    READS.with(|reads| {
        let number = reads.get();
        reads.set(number.wrapping_add(1));
        number % ASKING == 0
    })
}

/// The state of one file.
#[derive(Debug)]
pub(super) struct CachedReads {
    /// How many hints the system still gets.
    hints: AtomicU32,
}

impl CachedReads {
    pub(super) fn new() -> CachedReads {
        CachedReads { hints: AtomicU32::new(HINTS) }
    }

    /// Fills `buf` with the bytes at `offset`.
    pub(super) fn read_at(&self, file: &File, offset: u64, buf: &mut [u8]) -> Result<()> {
        if is_asking() { self.ask_and_read(file, offset, buf) } else { file.read_exact_at(buf, offset) }
    }

    /// Fills `buf`. First asks for the bytes in the file cache only, and notes whether the cache has all of them.
    fn ask_and_read(&self, file: &File, offset: u64, buf: &mut [u8]) -> Result<()> {
        let hints = self.hints.load(Ordering::Relaxed);
        if hints == ALWAYS {
            return file.read_exact_at(buf, offset);
        }
        let cached = match system::read_cached(file, offset, buf) {
            Some(len) if len == buf.len() => return Ok(()),
            cached => cached,
        };
        let now = if cached.is_some() { HINTS } else { ALWAYS };
        if hints != now {
            self.hints.store(now, Ordering::Relaxed);
        }
        let cached = cached.unwrap_or(0);
        file.read_exact_at(buf.get_mut(cached..).unwrap_or_default(), offset + cached as u64)
    }

    /// False if hints would only take time.
    pub(super) fn wants_hints(&self) -> bool {
        self.hints.load(Ordering::Relaxed) > 0
    }

    /// Tells the system that these bytes will be read soon.
    pub(super) fn will_read(&self, file: &File, offset: u64, len: u64) {
        let hints = self.hints.load(Ordering::Relaxed);
        if hints == 0 {
            return;
        }
        if hints != ALWAYS {
            // If another thread changes the number at the same time, one of the two changes is lost, which is harmless.
            self.hints.store(hints - 1, Ordering::Relaxed);
        }
        system::will_read(file, offset, len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::ErrorKind;

    #[test]
    fn there_are_no_hints_as_long_as_the_file_cache_has_what_is_read() {
        let file = tempfile::tempfile_in(".").unwrap();
        let bytes: Vec<u8> = (0..100_000_u32).map(|at| (at % 251) as u8).collect();
        file.write_all_at(&bytes, 0).unwrap();
        file.sync_all().unwrap();
        let reads = CachedReads::new();
        let read = |offset: usize| {
            let mut buf = vec![0; 5000];
            reads.ask_and_read(&file, offset as u64, &mut buf).unwrap();
            assert_eq!(buf, bytes[offset..offset + 5000]);
        };
        read(70_000);
        if reads.hints.load(Ordering::Relaxed) == ALWAYS {
            eprintln!("SKIPPED: this file system does not say whether a read would wait");
            return;
        }
        // Other programs can need the memory of the file cache at any time, so one attempt may not be enough.
        let wants_hints = |prepare: &dyn Fn()| {
            prepare();
            read(50_000);
            reads.wants_hints()
        };
        let use_up = || (0..=HINTS).for_each(|_| reads.will_read(&file, 0, 4096));
        assert!((0..10).any(|_| !wants_hints(&use_up)), "all bytes are in the file cache");
        let forget = || system::leave_cache(&file, 0);
        if !(0..10).any(|_| wants_hints(&forget)) {
            const TMPFS: u64 = 0x0102_1994;
            let kind = rustix::fs::fstatfs(&file).unwrap().f_type as u64;
            assert_eq!(kind, TMPFS, "the read has waited for the device");
            eprintln!("SKIPPED: this file system keeps all bytes in memory");
        }
    }

    #[test]
    fn one_of_17_reads_of_a_thread_asks_for_cached_bytes() {
        let asking =
            |reads: u32| std::thread::spawn(move || (0..reads).filter(|_| is_asking()).count()).join().unwrap();
        assert_eq!([1, ASKING, ASKING + 1, 10 * ASKING].map(asking), [1, 1, 2, 10]);
        // Of reads that repeat, each asks at some time.
        let asked = std::thread::spawn(|| (0..16 * ASKING).filter(|_| is_asking()).collect::<Vec<_>>()).join().unwrap();
        for period in 1..=16 {
            let phases: std::collections::HashSet<u32> = asked.iter().map(|read| read % period).collect();
            assert_eq!(phases.len(), period as usize);
        }
    }

    #[test]
    fn a_read_beyond_the_end_is_an_error_with_and_without_the_answer_of_the_system() {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&[7; 100], 0).unwrap();
        for hints in [HINTS, ALWAYS] {
            let reads = CachedReads { hints: AtomicU32::new(hints) };
            let mut buf = [0; 60];
            reads.ask_and_read(&file, 40, &mut buf).unwrap();
            assert_eq!(buf, [7; 60]);
            for read in [CachedReads::read_at, CachedReads::ask_and_read] {
                assert_eq!(read(&reads, &file, 41, &mut buf).unwrap_err().kind(), ErrorKind::UnexpectedEof);
            }
            assert!(reads.wants_hints());
        }
    }
}

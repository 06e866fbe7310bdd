//! Reads parts of a file ahead, for direct I/O, because then the system reads nothing ahead. A few threads read, so
//! that the device has several requests at a time. Each request reads a **piece** of the file. A piece is kept until
//! all of it is used, or until its end and at least half of it are used; until its bytes in the file change; or until
//! it is old and newer pieces need its memory.
//!
//! Eight threads read, in requests of up to 64 KiB. They keep at most 8 MiB that is not used yet.

use super::Opener;
use super::direct::{ALIGNMENT, Buffer};
use parking_lot::{Condvar, Mutex};
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::sync::Arc;
use std::thread::JoinHandle;

/// The number of threads, and so of requests to the device at a time.
const THREADS: usize = 8;
/// The stack of a thread in bytes: it calls little.
const STACK: usize = 128 << 10;
/// The most bytes of one request.
const PIECE: usize = 64 << 10;
/// The maximum number of bytes of memory that are kept.
const MAX_KEPT: usize = 8 << 20;
/// A piece is old if more than this number of reads came after it: its reader has probably ended early.
const OLD: u64 = 2048;

/// A piece of the file that is read ahead.
#[derive(Debug)]
struct ReadAheadPiece {
    len: usize,
    /// The order in which pieces began: later pieces have greater numbers.
    number: u64,
    /// The number of reads when it began.
    begun: u64,
    /// Bytes that were used so far.
    used: usize,
    /// `None` until it has been read.
    bytes: Option<Buffer>,
}

#[derive(Debug, Default)]
struct ReadAheadState {
    /// The pieces, by their offsets. They do not overlap.
    pieces: BTreeMap<u64, ReadAheadPiece>,
    /// Their offsets, by their numbers.
    by_number: BTreeMap<u64, u64>,
    /// The memory of all pieces in bytes.
    kept: usize,
    /// The number of reads of the file so far.
    reads: u64,
    /// The offsets and numbers of pieces that no thread has begun to read.
    waiting: VecDeque<(u64, u64)>,
    next_number: u64,
    stopped: bool,
}

#[derive(Debug)]
struct SharedReadAhead {
    file: Arc<File>,
    state: Mutex<ReadAheadState>,
    /// There are new pieces to be read.
    work: Condvar,
    /// A piece has been read, or removed.
    read: Condvar,
}

/// The pieces of a file that are read ahead, and the threads that read them. A child process that `fork` has made has
/// no such threads. There nothing is read ahead, and a read or a drop waits for neither a piece nor a lock.
#[derive(Debug)]
pub(super) struct FileReadAhead {
    shared: Arc<SharedReadAhead>,
    opener: Opener,
    /// They start when they are first needed.
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// The memory that a piece of this length takes.
fn memory_of(len: usize) -> usize {
    len + ALIGNMENT
}

impl ReadAheadState {
    fn remove(&mut self, offset: u64) {
        if let Some(piece) = self.pieces.remove(&offset) {
            self.by_number.remove(&piece.number);
            self.kept -= memory_of(piece.len);
        }
    }

    /// Removes old pieces until a piece of this length fits. Returns false if the others are not old.
    fn make_room(&mut self, len: usize) -> bool {
        while self.kept + memory_of(len) > MAX_KEPT {
            let oldest = self.by_number.first_key_value().map(|(_, &offset)| offset);
            let begun = oldest.and_then(|offset| Some(self.pieces.get(&offset)?.begun));
            match (oldest, begun) {
                (Some(oldest), Some(begun)) if begun + OLD < self.reads => self.remove(oldest),
                _ => return false,
            }
        }
        true
    }

    /// The offset and the end of the piece that has this byte.
    fn piece_with(&self, at: u64) -> Option<(u64, u64)> {
        let (&offset, piece) = self.pieces.range(..=at).next_back()?;
        let end = offset + piece.len as u64;
        (at < end).then_some((offset, end))
    }

    fn add(&mut self, offset: u64, len: usize) {
        let number = self.next_number;
        self.next_number += 1;
        self.pieces.insert(offset, ReadAheadPiece { len, number, begun: self.reads, used: 0, bytes: None });
        self.by_number.insert(number, offset);
        self.waiting.push_back((offset, number));
        self.kept += memory_of(len);
        // Drops the entries of removed pieces.
        if self.waiting.len() > 2 * self.pieces.len() + 64 {
            let pieces = &self.pieces;
            self.waiting.retain(|(offset, number)| pieces.get(offset).is_some_and(|piece| piece.number == *number));
        }
    }

    /// Notes that `len` bytes of the piece at `offset` were used, the last ones of it if `to_end`. Removes the piece if
    /// all of it was used, or its end and at least half of it. Pages are not read in the order of their offsets, and
    /// bytes between them may never be read.
    fn note_used(&mut self, offset: u64, len: usize, to_end: bool) {
        let Some(piece) = self.pieces.get_mut(&offset) else { return };
        piece.used += len;
        if piece.used >= piece.len || to_end && 2 * piece.used >= piece.len {
            self.remove(offset);
        }
    }

    /// The offset, the length and the number of the next piece that is to be read.
    fn next(&mut self) -> Option<(u64, usize, u64)> {
        while let Some((offset, number)) = self.waiting.pop_front() {
            if let Some(piece) = self.pieces.get(&offset).filter(|piece| piece.number == number) {
                return Some((offset, piece.len, number));
            }
        }
        None
    }
}

impl FileReadAhead {
    /// False in a child process that `fork` has made.
    pub(super) fn is_of_this_process(&self) -> bool {
        self.opener.is_this()
    }

    pub(super) fn new(file: Arc<File>) -> FileReadAhead {
        let shared = SharedReadAhead { file, state: Mutex::default(), work: Condvar::new(), read: Condvar::new() };
        FileReadAhead { shared: Arc::new(shared), opener: Opener::this(), threads: Mutex::default() }
    }

    /// Begins to read from `start` to `end`, which must be aligned.
    pub(super) fn begin(&self, start: u64, end: u64) {
        if !self.is_of_this_process() || !self.start_threads() {
            return;
        }
        let mut state = self.shared.state.lock();
        let mut at = start;
        while at < end {
            if let Some((_, end)) = state.piece_with(at) {
                at = end;
                continue;
            }
            let next = state.pieces.range(at..).next().map_or(end, |(&next, _)| next).min(end);
            let len = usize::try_from(next - at).unwrap_or(PIECE).min(PIECE);
            if !state.make_room(len) {
                break;
            }
            state.add(at, len);
            at += len as u64;
        }
        drop(state);
        self.shared.work.notify_all();
        self.shared.read.notify_all();
    }

    /// Returns false if no thread could be started.
    fn start_threads(&self) -> bool {
        let mut threads = self.threads.lock();
        if threads.is_empty() {
            let start = |_| {
                let shared = self.shared.clone();
                let thread = std::thread::Builder::new().name("duramen-read".to_owned()).stack_size(STACK);
                thread.spawn(move || shared.read_pieces()).ok()
            };
            threads.extend((0..THREADS).map_while(start));
        }
        !threads.is_empty()
    }

    /// Copies the bytes at `offset` if all of them are read ahead; waits for those that are being read.
    pub(super) fn take(&self, offset: u64, buf: &mut [u8]) -> bool {
        if !self.is_of_this_process() {
            return false;
        }
        let mut state = self.shared.state.lock();
        state.reads += 1;
        let mut rest = buf;
        let mut at = offset;
        while !rest.is_empty() {
            let Some((start, end)) = state.piece_with(at) else { return false };
            let Some(bytes) = state.pieces.get(&start).and_then(|piece| piece.bytes.as_ref()) else {
                self.shared.read.wait(&mut state);
                continue;
            };
            let bytes = usize::try_from(at - start).ok().and_then(|from| bytes.bytes().get(from..)).unwrap_or_default();
            let (part, behind) = rest.split_at_mut(rest.len().min(bytes.len()));
            part.copy_from_slice(bytes.get(..part.len()).unwrap_or_default());
            at += part.len() as u64;
            rest = behind;
            let used = part.len();
            state.note_used(start, used, at == end);
        }
        true
    }

    /// Removes the pieces of the bytes from `start` to `end` that were read ahead or are being read.
    pub(super) fn forget(&self, start: u64, end: u64) {
        let mut state = self.shared.state.lock();
        let first = state.piece_with(start).map_or(start, |(offset, _)| offset);
        let offsets: Vec<u64> = state.pieces.range(first..end.max(first)).map(|(&offset, _)| offset).collect();
        offsets.iter().for_each(|&offset| state.remove(offset));
        drop(state);
        if !offsets.is_empty() {
            self.shared.read.notify_all();
        }
    }
}

impl SharedReadAhead {
    /// Reads pieces until the file is closed.
    fn read_pieces(&self) {
        let mut state = self.state.lock();
        while !state.stopped {
            let Some((offset, len, number)) = state.next() else {
                self.work.wait(&mut state);
                continue;
            };
            drop(state);
            let mut buffer = Buffer::new(len);
            let read = buffer.read(&self.file, offset, len);
            state = self.state.lock();
            // The bytes may have changed since they were read.
            if let Some(piece) = state.pieces.get_mut(&offset).filter(|piece| piece.number == number) {
                match read {
                    Ok(read) if read == len => piece.bytes = Some(buffer),
                    // A caller that needs these bytes reads them again, and gets the error.
                    _ => state.remove(offset),
                }
                self.read.notify_all();
            }
        }
    }
}

impl Drop for FileReadAhead {
    fn drop(&mut self) {
        if !self.is_of_this_process() {
            std::mem::forget(std::mem::take(self.threads.get_mut()));
            return;
        }
        self.shared.state.lock().stopped = true;
        self.shared.work.notify_all();
        for thread in self.threads.get_mut().drain(..) {
            // A thread that panicked has reported it. Nothing depends on it.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;
    use std::time::{Duration, Instant};

    /// A file whose bytes tell their offsets.
    fn file(len: usize) -> Arc<File> {
        let bytes: Vec<u8> = (0..len).map(|at| (at / 512) as u8).collect();
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&bytes, 0).unwrap();
        Arc::new(file)
    }

    /// Waits until all pieces have been read.
    fn settle(ahead: &FileReadAhead) {
        let began = Instant::now();
        while ahead.shared.state.lock().pieces.values().any(|piece| piece.bytes.is_none()) {
            assert!(began.elapsed() < Duration::from_secs(60), "the pieces are not read");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn a_piece_that_was_read_ahead_is_used_once() {
        let ahead = FileReadAhead::new(file(1 << 20));
        let mut bytes = [0; 8192];
        assert!(!ahead.take(0, &mut bytes));
        ahead.begin(4096, 300_032);
        assert!(!ahead.take(0, &mut bytes), "its beginning was not read");
        for at in (4096..290_000).step_by(8192) {
            assert!(ahead.take(at, &mut bytes), "at {at}");
            assert_eq!((bytes[0], bytes[8191]), ((at / 512) as u8, ((at + 8191) / 512) as u8));
        }
        assert!(!ahead.take(4096, &mut bytes), "it was used");
        assert!(ahead.shared.state.lock().kept < PIECE);
    }

    #[test]
    fn a_piece_stays_if_its_end_is_used_first() {
        let ahead = FileReadAhead::new(file(1 << 20));
        ahead.begin(0, 16_384);
        let mut bytes = [0; 4096];
        for at in [12_288, 0, 8192, 4096] {
            assert!(ahead.take(at, &mut bytes), "at {at}");
        }
        assert!(ahead.shared.state.lock().pieces.is_empty());
        ahead.begin(0, 16_384);
        for at in [4096, 12_288] {
            assert!(ahead.take(at, &mut bytes), "at {at}");
        }
        assert!(!ahead.take(0, &mut bytes), "half of it was used, and its end");
    }

    #[test]
    fn changed_bytes_are_dropped_from_read_ahead() {
        let file = file(1 << 20);
        let ahead = FileReadAhead::new(file.clone());
        ahead.begin(0, 1 << 20);
        settle(&ahead);
        file.write_all_at(&[255; 1024], 70_000).unwrap();
        ahead.forget(70_000, 71_024);
        let mut bytes = [0; 512];
        assert!(!ahead.take(70_000, &mut bytes) && !ahead.take(65_536, &mut bytes));
        assert!(ahead.take(0, &mut bytes) && ahead.take(131_072, &mut bytes), "the pieces beside it stay");
        ahead.begin(65_536, 131_072);
        assert!(ahead.take(70_000, &mut bytes));
        assert_eq!(bytes, [255; 512]);
        ahead.forget(0, u64::MAX);
        assert!(ahead.shared.state.lock().pieces.is_empty());
    }

    #[test]
    fn read_ahead_keeps_a_bounded_number_of_bytes_and_none_beyond_the_end() {
        let ahead = FileReadAhead::new(file(3 * MAX_KEPT + 100));
        let mut bytes = [0; 1];
        ahead.begin(0, 2 * MAX_KEPT as u64);
        ahead.begin(2 * MAX_KEPT as u64, 4 * MAX_KEPT as u64);
        settle(&ahead);
        {
            let state = ahead.shared.state.lock();
            let lens: usize = state.pieces.values().map(|piece| memory_of(piece.len)).sum();
            assert!(lens == state.kept && state.kept <= MAX_KEPT && state.by_number.len() == state.pieces.len());
        }
        assert!(
            ahead.take(0, &mut bytes) && !ahead.take(2 * MAX_KEPT as u64, &mut bytes),
            "those that are needed stay"
        );
        (0..OLD).for_each(|_| assert!(!ahead.take(2 * MAX_KEPT as u64, &mut bytes)));
        ahead.begin(2 * MAX_KEPT as u64, 4 * MAX_KEPT as u64);
        settle(&ahead);
        assert!(!ahead.take(0, &mut bytes) && ahead.take(2 * MAX_KEPT as u64, &mut bytes), "old pieces make room");
        ahead.forget(0, u64::MAX);
        ahead.begin(3 * MAX_KEPT as u64, 3 * MAX_KEPT as u64 + 4096);
        settle(&ahead);
        assert!(!ahead.take(3 * MAX_KEPT as u64, &mut bytes), "the file ends in this piece");
    }

    #[test]
    fn readers_of_pieces_that_are_removed_do_not_wait_for_ever() {
        let ahead = FileReadAhead::new(file(1 << 20));
        std::thread::scope(|scope| {
            for thread in 0..4u64 {
                let ahead = &ahead;
                scope.spawn(move || {
                    let mut bytes = [0; 4096];
                    for round in 0..500u64 {
                        let at = (round * 7 + thread) % 200 * 4096;
                        ahead.begin(at, at + 65_536);
                        if ahead.take(at, &mut bytes) {
                            assert_eq!(bytes[0], (at / 512) as u8);
                        }
                        ahead.forget(at, at + 12_288);
                    }
                });
            }
        });
    }
}

//! Sorted runs of entries in one unnamed temporary file, and merging them.
//!
//! An entry in a run is `key length | value length | key | value`. A length is a `usize` in the byte order of the
//! machine: no other process reads the file. For the same reason it has no checksums and no version.

use super::Pair;
use crate::failure::{Failure, Result};
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// The smallest and the largest read buffer of a run.
const BUFFER: (usize, usize) = (16 << 10, 4 << 20);

/// Makes the error of a file operation in `folder`.
fn refused_in(folder: &Path) -> impl Fn(io::Error) -> Failure + Copy {
    move |source| Failure::File { action: "cannot sort in a file in", path: folder.to_owned(), source }
}

/// Runs being written.
pub(super) struct Runs {
    folder: PathBuf,
    file: Option<BufWriter<File>>,
    /// The end of each run in the file.
    ends: Vec<u64>,
    written: u64,
}

impl Runs {
    pub(super) fn new(folder: &Path) -> Runs {
        Runs { folder: folder.to_owned(), file: None, ends: Vec::new(), written: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Appends an entry to the current run. Keys must come in ascending order, each once.
    pub(super) fn write(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let refused = refused_in(&self.folder);
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let file = tempfile::tempfile_in(&self.folder).map_err(refused)?;
                none.insert(BufWriter::with_capacity(1 << 20, file))
            }
        };
        let lengths = [key.len(), value.len()].map(usize::to_ne_bytes);
        let lengths = lengths.as_flattened();
        let write = |bytes| file.write_all(bytes);
        [lengths, key, value].into_iter().try_for_each(write).map_err(refused)?;
        self.written += (lengths.len() + key.len() + value.len()) as u64;
        Ok(())
    }

    /// Ends the current run.
    pub(super) fn end_run(&mut self) {
        self.ends.push(self.written);
    }

    /// Merges all runs, with about `budget` bytes of buffers. If there are too many runs for that, groups of them are
    /// merged to longer runs first.
    pub(super) fn merge(mut self, budget: usize) -> Result<Merge> {
        let most = (budget / BUFFER.0).max(2);
        while self.ends.len() > most {
            let mut longer = Runs::new(&self.folder);
            let written = self.finish()?;
            for group in written.runs.chunks(most) {
                let mut merge = Merge::of(&written, group, budget)?;
                while let Some((key, value)) = merge.next()? {
                    longer.write(&key, &value)?;
                }
                longer.end_run();
            }
            self = longer;
        }
        let written = self.finish()?;
        Merge::of(&written, &written.runs, budget)
    }

    fn finish(self) -> Result<WrittenRuns> {
        let refused = refused_in(&self.folder);
        let file = match self.file {
            Some(file) => file.into_inner().map_err(|error| refused(error.into_error()))?,
            // There are no runs.
            None => tempfile::tempfile_in(&self.folder).map_err(refused)?,
        };
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let runs = starts.zip(&self.ends).map(|(start, end)| start..*end).collect();
        Ok(WrittenRuns { folder: self.folder, file: Rc::new(file), runs })
    }
}

/// Runs that were written: their file, and where they are in it.
struct WrittenRuns {
    folder: PathBuf,
    file: Rc<File>,
    runs: Vec<Range<u64>>,
}

/// A part of the shared file.
struct FilePart {
    file: Rc<File>,
    at: u64,
    end: u64,
}

impl Read for FilePart {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX).min(buf.len());
        let mut file = &*self.file;
        file.seek(SeekFrom::Start(self.at))?;
        let count = file.read(buf.get_mut(..left).unwrap_or_default())?;
        self.at += count as u64;
        Ok(count)
    }
}

/// A run being read.
struct SortedRun {
    reader: BufReader<FilePart>,
}

impl SortedRun {
    /// The next key and the length of its value, which follows.
    fn next(&mut self) -> io::Result<Option<(Vec<u8>, usize)>> {
        if self.reader.buffer().is_empty() && self.reader.get_ref().at == self.reader.get_ref().end {
            return Ok(None);
        }
        let mut lengths = [[0; size_of::<usize>()]; 2];
        self.reader.read_exact(lengths.as_flattened_mut())?;
        let [key_len, value_len] = lengths.map(usize::from_ne_bytes);
        Ok(Some((self.bytes(key_len)?, value_len)))
    }

    fn bytes(&mut self, len: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; len];
        self.reader.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}

/// The next entry of a run, without its value: together the values of all runs may be longer than the memory. The
/// greatest head has the smallest key. For equal keys it is the head of the latest run.
struct MergeHead {
    key: Vec<u8>,
    value_len: usize,
    /// Runs are numbered in the order of their writing.
    number: usize,
    run: SortedRun,
}

impl Ord for MergeHead {
    fn cmp(&self, other: &MergeHead) -> std::cmp::Ordering {
        other.key.cmp(&self.key).then(self.number.cmp(&other.number))
    }
}

impl PartialOrd for MergeHead {
    fn partial_cmp(&self, other: &MergeHead) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for MergeHead {
    fn eq(&self, other: &MergeHead) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for MergeHead {}

/// Merges runs.
pub(crate) struct Merge {
    heads: BinaryHeap<MergeHead>,
    folder: PathBuf,
}

impl Merge {
    fn of(written: &WrittenRuns, runs: &[Range<u64>], budget: usize) -> Result<Merge> {
        let folder = written.folder.clone();
        let refused = refused_in(&folder);
        let buffer = (budget / runs.len().max(1)).clamp(BUFFER.0, BUFFER.1);
        let mut heads = BinaryHeap::with_capacity(runs.len());
        for (number, &Range { start, end }) in runs.iter().enumerate() {
            let part = FilePart { file: Rc::clone(&written.file), at: start, end };
            let mut run = SortedRun { reader: BufReader::with_capacity(buffer, part) };
            if let Some((key, value_len)) = run.next().map_err(refused)? {
                heads.push(MergeHead { key, value_len, number, run });
            }
        }
        Ok(Merge { heads, folder })
    }

    /// The number of runs that are being read.
    #[cfg(test)]
    pub(super) fn open_runs(&self) -> usize {
        self.heads.len()
    }

    /// The entry with the next key, from the latest run that has it.
    pub(super) fn next(&mut self) -> Result<Option<Pair>> {
        let Some(next) = self.advance()? else { return Ok(None) };
        while self.heads.peek().is_some_and(|head| head.key == next.0) {
            self.advance()?;
        }
        Ok(Some(next))
    }

    /// Takes the greatest head and replaces it by the next entry of its run.
    fn advance(&mut self) -> Result<Option<Pair>> {
        let refused = refused_in(&self.folder);
        let Some(mut head) = self.heads.peek_mut() else { return Ok(None) };
        let value = head.value_len;
        let value = head.run.bytes(value).map_err(refused)?;
        Ok(Some(match head.run.next().map_err(refused)? {
            Some((key, value_len)) => {
                head.value_len = value_len;
                (std::mem::replace(&mut head.key, key), value)
            }
            None => (PeekMut::pop(head).key, value),
        }))
    }
}

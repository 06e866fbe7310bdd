//! Sorts any number of entries by key in bounded memory. If several entries have the same key, the last one remains.
//!
//! Entries are collected in memory. When they exceed the budget they are sorted and written to an unnamed temporary
//! file as a *run*. At the end all runs are merged, in several passes if there are many. This module knows bytes only,
//! no types and no database.

mod runs;

use crate::failure::Result;
use runs::{Merge, Runs};
use std::path::Path;

/// A key and its value.
pub(crate) type Pair = (Vec<u8>, Vec<u8>);

/// Collects entries.
pub(crate) struct Sorter {
    budget: usize,
    memory: Memory,
    runs: Runs,
}

/// Entries in memory: their bytes one after the other, and the span of each entry.
#[derive(Default)]
pub(crate) struct Memory {
    bytes: Vec<u8>,
    spans: Vec<Span>,
}

/// The span of an entry in the bytes: its key, then its value.
#[derive(Clone, Copy)]
struct Span {
    start: usize,
    key_len: u32,
    value_len: u32,
}

impl Memory {
    fn add(&mut self, key: &[u8], value: &[u8], key_len: u32, value_len: u32) {
        self.spans.push(Span { start: self.bytes.len(), key_len, value_len });
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
    }

    fn len(&self) -> usize {
        self.bytes.len() + self.spans.len() * size_of::<Span>()
    }

    fn entry(&self, span: Span) -> (&[u8], &[u8]) {
        let entry = self.bytes.get(span.start..).unwrap_or_default();
        let (key, rest) = entry.split_at_checked(span.key_len as usize).unwrap_or_default();
        (key, rest.get(..span.value_len as usize).unwrap_or_default())
    }

    /// Sorts by key, and keeps the last entry of equal keys. The sort is stable, and fast for input that is partly
    /// sorted.
    fn sort(&mut self) {
        let mut spans = std::mem::take(&mut self.spans);
        spans.sort_by(|a, b| self.entry(*a).0.cmp(self.entry(*b).0));
        spans.reverse();
        spans.dedup_by(|later, kept| self.entry(*later).0 == self.entry(*kept).0);
        spans.reverse();
        self.spans = spans;
    }
}

impl Sorter {
    /// Keeps at most about `budget` bytes in memory. More entries go to an unnamed file in `folder`.
    pub(crate) fn new(budget: usize, folder: &Path) -> Sorter {
        Sorter { budget, memory: Memory::default(), runs: Runs::new(folder) }
    }

    /// Adds an entry.
    pub(crate) fn add(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let too_long =
            |bytes: &[u8]| duramen::Error::ValueTooLong { len: bytes.len() as u64, max: u64::from(u32::MAX) };
        let key_len = u32::try_from(key.len()).map_err(|_| too_long(key))?;
        let value_len = u32::try_from(value.len()).map_err(|_| too_long(value))?;
        if self.memory.len() + key.len() + value.len() > self.budget && !self.memory.spans.is_empty() {
            self.spill()?;
        }
        self.memory.add(key, value, key_len, value_len);
        Ok(())
    }

    /// Writes the entries in memory as a run.
    fn spill(&mut self) -> Result<()> {
        self.memory.sort();
        for span in &self.memory.spans {
            let (key, value) = self.memory.entry(*span);
            self.runs.write(key, value)?;
        }
        self.runs.end_run();
        self.memory.bytes.clear();
        self.memory.spans.clear();
        Ok(())
    }

    /// Returns the entries in key order, each key once.
    pub(crate) fn finish(mut self) -> Result<Sorted> {
        if self.runs.is_empty() {
            self.memory.sort();
            return Ok(Sorted::Memory { memory: self.memory, next: 0 });
        }
        self.spill()?;
        self.memory = Memory::default();
        Ok(Sorted::Runs(self.runs.merge(self.budget)?))
    }
}

/// Sorted entries.
pub(crate) enum Sorted {
    /// All of them are in memory.
    Memory {
        /// The entries.
        memory: Memory,
        /// The index of the next entry.
        next: usize,
    },
    /// They are in several runs.
    Runs(Merge),
}

impl Sorted {
    /// The number of entries, if it is known before the merge.
    pub(crate) fn known_len(&self) -> Option<u64> {
        match self {
            Sorted::Memory { memory, next } => Some((memory.spans.len() - next) as u64),
            Sorted::Runs(_) => None,
        }
    }
}

impl Iterator for Sorted {
    type Item = Result<Pair>;

    fn next(&mut self) -> Option<Result<Pair>> {
        match self {
            Sorted::Memory { memory, next } => {
                let (key, value) = memory.entry(*memory.spans.get(*next)?);
                *next += 1;
                Some(Ok((key.to_vec(), value.to_vec())))
            }
            Sorted::Runs(merge) => merge.next().transpose(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn any_budget_sorts_and_keeps_the_last_of_equal_keys(
            entries in proptest::collection::vec((proptest::collection::vec(0u8..4, 0..4), any::<[u8; 2]>()), 0..200),
            budget in 1usize..4000,
        ) {
            let folder = tempfile::tempdir().unwrap();
            let mut sorter = Sorter::new(budget, folder.path());
            let mut model = BTreeMap::new();
            for (key, value) in &entries {
                sorter.add(key, value).unwrap();
                model.insert(key.clone(), value.to_vec());
            }
            let sorted: Vec<Pair> = sorter.finish().unwrap().map(Result::unwrap).collect();
            prop_assert_eq!(sorted, model.into_iter().collect::<Vec<_>>());
            prop_assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        }
    }

    #[test]
    fn an_entry_larger_than_the_budget_is_kept_whole() {
        let folder = tempfile::tempdir().unwrap();
        let mut sorter = Sorter::new(100, folder.path());
        let large = vec![7; 300_000];
        sorter.add(b"b", &large).unwrap();
        sorter.add(b"a", b"").unwrap();
        let sorted: Vec<Pair> = sorter.finish().unwrap().map(Result::unwrap).collect();
        assert_eq!(sorted, [(b"a".to_vec(), vec![]), (b"b".to_vec(), large)]);
    }

    #[test]
    fn no_more_runs_are_read_at_once_than_the_budget_has_buffers_for() {
        let folder = tempfile::tempdir().unwrap();
        for (budget, most) in [(0, 2), (100, 2), (5 * (16 << 10), 5)] {
            let mut sorter = Sorter::new(budget, folder.path());
            let value = vec![7; budget.max(1)];
            for number in (0..200u32).rev().chain(50..60) {
                sorter.add(&(number % 150).to_be_bytes(), &[&number.to_be_bytes()[..], &value].concat()).unwrap();
            }
            let sorted = sorter.finish().unwrap();
            let Sorted::Runs(merge) = &sorted else { panic!("the entries are longer than the budget") };
            assert!((1..=most).contains(&merge.open_runs()), "{} runs with {budget} bytes", merge.open_runs());
            let number = |bytes: &[u8]| u32::from_be_bytes(bytes[..4].try_into().unwrap());
            let found = sorted.map(|pair| pair.map(|(key, value)| (number(&key), number(&value))).unwrap());
            // Of equal keys the last one remains.
            assert!(found.eq((0..150).map(|key| (key, key))), "{budget}");
        }
    }

    #[test]
    fn an_error_names_the_folder_of_the_temporary_file() {
        let mut sorter = Sorter::new(1, Path::new("/nonexistent"));
        sorter.add(b"a", b"").unwrap();
        assert!(sorter.add(b"b", b"").unwrap_err().to_string().contains("/nonexistent"));
    }
}

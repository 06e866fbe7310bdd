//! An arena of keys, each with a record or without one. Adding an entry takes two copies and no allocation of its own.

use crate::base::bytes;
use crate::page::Record;
use std::slice::ChunksExact;

/// Entries in the order in which they were added.
#[derive(Default, Debug)]
pub(super) struct EntryArena {
    bytes: Vec<u8>,
    /// The span of each entry. Empty while all entries have one shape.
    places: Vec<EntrySpan>,
    uniform: Option<UniformShape>,
}

/// The span of an entry: the key is in `at..record`, the record from `record` to the start of the next entry.
#[derive(Clone, Copy, Debug)]
struct EntrySpan {
    at: usize,
    record: usize,
    kind: RecordKind,
}

/// The kind of the record that is stored with a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum RecordKind {
    Nothing,
    Record { large: bool },
}

/// The common shape of all entries: `key` is the length of each key, at least one byte, and `stride` is the length of a
/// key and its record. Entries of one shape need no list of spans.
#[derive(Clone, Copy, Debug)]
struct UniformShape {
    key: usize,
    stride: usize,
    kind: RecordKind,
    count: usize,
}

/// The kind and the bytes of a record.
#[inline(always)]
fn parts(record: Option<Record<'_>>) -> (RecordKind, &[u8]) {
    record.map_or((RecordKind::Nothing, &[]), |record| (RecordKind::Record { large: record.large }, record.bytes))
}

/// An iterator over entries of one shape.
#[derive(Clone, Debug)]
pub(super) struct UniformEntries<'a> {
    entries: ChunksExact<'a, u8>,
    key: usize,
    kind: RecordKind,
}

impl<'a> UniformEntries<'a> {
    /// The keys and the bytes of their records, if all entries have a record that is not large.
    pub(super) fn records(&self) -> Option<impl Iterator<Item = (&'a [u8], &'a [u8])> + Clone + use<'a>> {
        let key = (self.kind == RecordKind::Record { large: false }).then_some(self.key)?;
        Some(self.entries.clone().map(move |entry| entry.split_at_checked(key).unwrap_or_default()))
    }
}

impl<'a> Iterator for UniformEntries<'a> {
    type Item = (&'a [u8], Option<Record<'a>>);

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        self.nth(0)
    }

    #[inline(always)]
    fn nth(&mut self, n: usize) -> Option<Self::Item> {
        entry(self.entries.nth(n)?, self.key, self.kind)
    }
}

/// Divides the bytes of an entry into its key of `key` bytes and its record.
#[inline(always)]
fn entry(bytes: &[u8], key: usize, kind: RecordKind) -> Option<(&[u8], Option<Record<'_>>)> {
    let (key, bytes) = bytes.split_at_checked(key)?;
    let record = match kind {
        RecordKind::Nothing => None,
        RecordKind::Record { large } => Some(Record { bytes, large }),
    };
    Some((key, record))
}

impl EntryArena {
    /// How many entries there are.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.uniform.map_or(self.places.len(), |uniform| uniform.count)
    }

    /// True if there are entries, all have records, all keys have one length, and all records have one length.
    pub(super) fn has_uniform_records(&self) -> bool {
        self.uniform.is_some_and(|uniform| uniform.kind != RecordKind::Nothing)
    }

    /// Adds an entry if it has the shape of all others.
    #[inline(always)]
    pub(super) fn push_uniform(&mut self, key: &[u8], record: Option<Record<'_>>) -> bool {
        let (kind, record) = parts(record);
        let Some(uniform) = &mut self.uniform else { return false };
        if key.len() != uniform.key || record.len() != uniform.stride - uniform.key || kind != uniform.kind {
            return false;
        }
        uniform.count += 1;
        bytes::append(&mut self.bytes, key);
        bytes::append(&mut self.bytes, record);
        true
    }

    /// Adds an entry.
    #[inline]
    pub(super) fn push(&mut self, key: &[u8], record: Option<Record<'_>>) {
        if !self.push_uniform(key, record) {
            self.push_other(key, record);
        }
    }

    /// Adds keys without records.
    pub(super) fn push_keys<'k>(&mut self, mut keys: impl Iterator<Item = &'k [u8]>) {
        while let Some(key) = keys.next() {
            self.push(key, None);
            let Some(uniform) = self.uniform.as_mut().filter(|uniform| uniform.kind == RecordKind::Nothing) else {
                continue;
            };
            let (width, before) = (uniform.key, self.bytes.len());
            self.bytes.reserve(keys.size_hint().0 * width);
            let other = keys.by_ref().find(|key| {
                let is_like = key.len() == width;
                if is_like {
                    bytes::append(&mut self.bytes, key);
                }
                !is_like
            });
            uniform.count += (self.bytes.len() - before) / width;
            if let Some(key) = other {
                self.push(key, None);
            }
        }
    }

    #[inline(never)]
    fn push_other(&mut self, key: &[u8], record: Option<Record<'_>>) {
        let (kind, record) = parts(record);
        let at = self.bytes.len();
        if self.len() == 0 && !key.is_empty() {
            self.uniform = Some(UniformShape { key: key.len(), stride: key.len() + record.len(), kind, count: 1 });
        } else {
            if let Some(UniformShape { key, stride, kind, count }) = self.uniform.take() {
                let ats = (0..count).map(|index| index * stride);
                self.places = ats.map(|at| EntrySpan { at, record: at + key, kind }).collect();
            }
            self.places.push(EntrySpan { at, record: at + key.len(), kind });
        }
        self.bytes.reserve(key.len() + record.len());
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(record);
    }

    /// The key of an entry, empty if there is no such entry.
    #[inline]
    pub(super) fn key(&self, index: usize) -> &[u8] {
        match (self.uniform, self.places.get(index)) {
            (Some(UniformShape { key, stride, .. }), _) => {
                bytes::slice(&self.bytes, index * stride, index * stride + key)
            }
            (None, Some(place)) => bytes::slice(&self.bytes, place.at, place.record),
            (None, None) => &[],
        }
    }

    /// The key of the last entry, empty if there is none.
    #[inline(always)]
    pub(super) fn last_key(&self) -> &[u8] {
        match self.uniform {
            Some(UniformShape { key, stride, .. }) => {
                let at = self.bytes.len().wrapping_sub(stride);
                bytes::slice(&self.bytes, at, at.wrapping_add(key))
            }
            None => self.key(self.places.len().wrapping_sub(1)),
        }
    }

    /// The key and the record of an entry.
    #[inline(always)]
    pub(super) fn get(&self, index: usize) -> Option<(&[u8], Option<Record<'_>>)> {
        let (bytes, key, kind) = match self.uniform {
            Some(UniformShape { key, stride, kind, count }) => {
                let at = if index < count { index * stride } else { return None };
                (bytes::slice(&self.bytes, at, at + stride), key, kind)
            }
            None => {
                let EntrySpan { at, record, kind } = *self.places.get(index)?;
                let end = self.places.get(index + 1).map_or(self.bytes.len(), |next| next.at);
                (bytes::slice(&self.bytes, at, end), record - at, kind)
            }
        };
        entry(bytes, key, kind)
    }

    /// All entries, if they have one shape.
    pub(super) fn uniform(&self) -> Option<UniformEntries<'_>> {
        let UniformShape { key, stride, kind, .. } = self.uniform?;
        Some(UniformEntries { entries: self.bytes.chunks_exact(stride), key, kind })
    }

    /// How many of `len` entries have a key below `key`. `index` gives the entries in the order of their keys.
    pub(super) fn position(&self, key: &[u8], len: usize, index: impl Fn(usize) -> usize) -> usize {
        let (mut low, mut high) = (0, len);
        while low < high {
            let middle = low.midpoint(high);
            match self.key(index(middle)) < key {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }

    /// Removes all entries, keeping the memory.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.places.clear();
        self.uniform = None;
    }

    /// Bytes of the entries.
    #[inline(always)]
    pub(super) fn bytes(&self) -> usize {
        self.bytes.len() + self.places.len() * size_of::<EntrySpan>()
    }

    /// Bytes of memory that are allocated for the entries.
    pub(super) fn allocated(&self) -> usize {
        self.bytes.capacity() + self.places.capacity() * size_of::<EntrySpan>()
    }
}

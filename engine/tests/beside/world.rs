//! The expected content of the database after each commit: tables of keys and values that are made from numbers, so
//! that the expected content needs little memory.

use crate::keys::key_of_a_group;
use crate::layouts;
use duramen::base::limits::max_inline_key;
use duramen::db::types::{Separators, TableOptions};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

/// The kind of a table's keys and values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WorldTable {
    /// `u32` to `u64`, keys in blocks.
    Numbers,
    /// `u64` alone, in blocks.
    Keys,
    /// Paths to bytes, some values too large for a page.
    Texts,
    /// Long keys that agree in all that a page keeps of them, to `u64`.
    Long,
    /// Short and long keys that begin alike, to bytes, some values too large for a page.
    Mixed,
}

pub(crate) const KINDS: [WorldTable; 5] =
    [WorldTable::Numbers, WorldTable::Keys, WorldTable::Texts, WorldTable::Long, WorldTable::Mixed];

impl WorldTable {
    /// The names of the types of keys and values.
    pub(crate) fn types(self) -> (&'static str, &'static str) {
        match self {
            WorldTable::Numbers => ("u32", "u64"),
            WorldTable::Keys => ("u64", "()"),
            WorldTable::Texts | WorldTable::Mixed => ("bytes", "bytes"),
            WorldTable::Long => ("bytes", "u64"),
        }
    }

    /// Keys are made of numbers below this one.
    pub(crate) fn span(self) -> u32 {
        match self {
            WorldTable::Numbers | WorldTable::Keys => 3000,
            WorldTable::Texts => 1000,
            WorldTable::Long | WorldTable::Mixed => 300,
        }
    }

    /// The key of a number; greater numbers have greater keys.
    pub(crate) fn key(self, n: u32, page_size: usize) -> Vec<u8> {
        match self {
            WorldTable::Numbers => n.to_be_bytes().to_vec(),
            WorldTable::Keys => {
                (u64::from(n) << 12 | u64::from(n.wrapping_mul(2_654_435_761) >> 20)).to_be_bytes().to_vec()
            }
            WorldTable::Texts => format!("/usr/share/{:03}/{n:05}", n / 7).into_bytes(),
            WorldTable::Long => {
                let mut key = vec![b'k'; max_inline_key(page_size) + 10];
                key.extend(n.to_be_bytes());
                key.resize(key.len() + (n % 5) as usize * page_size / 3, b'z');
                key
            }
            WorldTable::Mixed => key_of_a_group(n, page_size),
        }
    }

    /// The value that a number stands for.
    pub(crate) fn value(self, stamp: u32, page_size: usize) -> Vec<u8> {
        let len = match stamp % 60 {
            0 => 3 * page_size,
            1 => page_size,
            rest => rest as usize,
        };
        match self {
            WorldTable::Keys => Vec::new(),
            WorldTable::Numbers | WorldTable::Long => u64::from(stamp).to_be_bytes().to_vec(),
            WorldTable::Texts | WorldTable::Mixed => stamp.to_le_bytes().into_iter().cycle().take(len).collect(),
        }
    }

    /// Some layout that suits.
    pub(crate) fn options(self, rng: &mut fastrand::Rng) -> TableOptions {
        match self {
            WorldTable::Numbers | WorldTable::Keys => rng.choice(layouts::of_blocks()).unwrap_or_default(),
            WorldTable::Texts | WorldTable::Long | WorldTable::Mixed => TableOptions {
                keys: rng.choice(layouts::for_keys_of_any_length()),
                separators: rng.choice([Separators::Full, Separators::Tail, Separators::TailWithin(500)]),
                ..TableOptions::default()
            },
        }
    }
}

/// A table: which value the key of each number has.
#[derive(Clone, Debug)]
pub(crate) struct Content {
    pub(crate) kind: WorldTable,
    pub(crate) options: TableOptions,
    pub(crate) entries: BTreeMap<u32, u32>,
}

/// Tables by name.
pub(crate) type World = BTreeMap<String, Arc<Content>>;

/// Numbers between two bounds, and the same as keys.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Between(pub(crate) Bound<u32>, pub(crate) Bound<u32>);

impl Between {
    pub(crate) fn any(kind: WorldTable, rng: &mut fastrand::Rng) -> Between {
        let (a, b) = (rng.u32(0..kind.span()), rng.u32(0..kind.span()));
        let bound = |rng: &mut fastrand::Rng, n: u32| match rng.u8(0..10) {
            0 => Bound::Unbounded,
            1..6 => Bound::Included(n),
            _ => Bound::Excluded(n),
        };
        let near = if rng.bool() { a.max(b) } else { a.min(b) + rng.u32(0..30) };
        Between(bound(rng, a.min(b)), bound(rng, near))
    }

    pub(crate) fn holds(&self, n: u32) -> bool {
        let above = match self.0 {
            Bound::Unbounded => true,
            Bound::Included(low) => low <= n,
            Bound::Excluded(low) => low < n,
        };
        above
            && match self.1 {
                Bound::Unbounded => true,
                Bound::Included(high) => n <= high,
                Bound::Excluded(high) => n < high,
            }
    }

    pub(crate) fn keys(&self, kind: WorldTable, page_size: usize) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
        let key = |n| kind.key(n, page_size);
        (self.0.map(key), self.1.map(key))
    }
}

/// How many commits back the history goes: a reader asks at once for what it sees.
const KEPT: usize = 4000;

/// The state of the tables after each commit. A commit is noted before it is made.
#[derive(Default)]
pub(crate) struct History(Mutex<BTreeMap<u64, Arc<World>>>);

impl History {
    /// The last commit and its tables: for the writer, which knows that it is alone.
    pub(crate) fn latest(&self) -> (u64, Arc<World>) {
        let commits = self.0.lock();
        commits.last_key_value().map(|(number, world)| (*number, world.clone())).unwrap_or_default()
    }

    pub(crate) fn add(&self, number: u64, world: World) {
        let mut commits = self.0.lock();
        commits.insert(number, Arc::new(world));
        if commits.len() > KEPT {
            commits.pop_first();
        }
    }

    pub(crate) fn at(&self, number: u64) -> Arc<World> {
        self.0.lock().get(&number).cloned().unwrap_or_else(|| panic!("nothing is known of commit {number}"))
    }
}

//! The random parts of histories: kinds of tables, keys, values and bounds.

use super::layouts;
use duramen::db::types::{KeyLayout, Separators, TableOptions};
use fastrand::Rng;
use std::ops::Bound;

/// A range of keys.
pub(crate) type DrawnRange = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// A table's types and options, and which keys it gets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HistoryTable {
    pub(crate) keys: &'static str,
    pub(crate) values: &'static str,
    pub(crate) options: TableOptions,
    /// Of ten keys of any length, so many are longer than a page takes.
    long: u8,
    /// Bytes of a page.
    page: usize,
}

impl HistoryTable {
    pub(crate) fn draw(rng: &mut Rng, page: usize) -> HistoryTable {
        let separators = [None, Some(Separators::Full), Some(Separators::Tail), Some(Separators::TailWithin(100))];
        let separators = separators[rng.usize(..4)];
        let (keys, values, options) = match rng.u8(0..10) {
            0..2 => {
                let blocks = layouts::of_blocks();
                let keys = ["u32", "u64", "i32", "i64"][rng.usize(..4)];
                (keys, ["()", "u32", "bytes"][rng.usize(..3)], blocks[rng.usize(..blocks.len())])
            }
            2 => {
                let options = TableOptions { keys: Some(KeyLayout::Fixed), separators, ..TableOptions::default() };
                (["u32", "u64"][rng.usize(..2)], ["u32", "bytes"][rng.usize(..2)], options)
            }
            _ => {
                let layouts = layouts::for_keys_of_any_length();
                let keys = layouts.get(rng.usize(..=layouts.len())).copied();
                ("bytes", "bytes", TableOptions { keys, separators, ..TableOptions::default() })
            }
        };
        HistoryTable { keys, values, options, long: [0, 0, 0, 1, 6][rng.usize(..5)], page }
    }

    /// Keys meet again, and neighbours have much in common.
    pub(crate) fn key(&self, rng: &mut Rng) -> Vec<u8> {
        if self.keys != "bytes" {
            let number = match rng.u8(0..10) {
                0..8 => rng.u64(0..1500),
                8 => rng.u64(0..40) * 0x0101_0101,
                _ => rng.u64(..),
            };
            return number.to_be_bytes()[if self.keys.ends_with("64") { 0 } else { 4 }..].to_vec();
        }
        if rng.u8(0..10) < self.long {
            return self.long_key(rng);
        }
        match rng.u8(0..8) {
            0..3 => rng.u16(0..1500).to_be_bytes().to_vec(),
            3..5 => format!("/usr/share/doc/package-{:04}/copyright", rng.u16(0..600)).into_bytes(),
            5 | 6 => format!("{}", rng.u16(0..800)).into_bytes(),
            _ => (0..rng.usize(0..4)).map(|_| rng.u8(..)).collect(),
        }
    }

    /// One of some hundred keys from an eighth of a page to three of them: some differ in their first bytes, some in
    /// their last ones alone, and some are the beginnings of others.
    fn long_key(&self, rng: &mut Rng) -> Vec<u8> {
        let len = (self.page * [1, 2, 4, 8, 12, 24][rng.usize(..6)] / 8).min(65_000);
        let mut key = match rng.u8(0..3) {
            0 => vec![b'x'; len],
            1 => format!("long {:02} ", rng.u8(0..20)).into_bytes(),
            _ => format!("/usr/share/doc/package-{:04}", rng.u16(0..600) / 100 * 100).into_bytes(),
        };
        key.resize(len.max(key.len()), b'y');
        match rng.u8(0..4) {
            0 => {}
            1 => key.push(rng.u8(0..20)),
            2 => key.extend(rng.u16(0..3).to_be_bytes()),
            _ => *key.last_mut().unwrap() = rng.u8(0..20),
        }
        key
    }

    pub(crate) fn value(&self, rng: &mut Rng) -> Vec<u8> {
        let len = match (self.values, rng.u8(0..60)) {
            ("()", _) => 0,
            ("u32", _) => 4,
            (_, 0) => rng.usize(0..self.page * 3),
            (_, 1..4) => rng.usize(0..=self.page / 4),
            _ => rng.usize(0..40),
        };
        let (mut value, byte) = (rng.u32(..).to_be_bytes().to_vec(), rng.u8(..));
        value.resize(len, byte);
        value
    }

    pub(crate) fn bounds(&self, rng: &mut Rng) -> DrawnRange {
        let mut bound = || match rng.u8(0..8) {
            0 => Bound::Unbounded,
            1..5 => Bound::Included(self.key(rng)),
            _ => Bound::Excluded(self.key(rng)),
        };
        let (from, to) = (bound(), bound());
        match (&from, &to) {
            // Mostly the right way round.
            (Bound::Included(a) | Bound::Excluded(a), Bound::Included(b) | Bound::Excluded(b)) if a > b => {
                if rng.u8(0..10) > 0 { (to, from) } else { (from, to) }
            }
            _ => (from, to),
        }
    }

    /// A range of few keys, or none.
    pub(crate) fn narrow(&self, rng: &mut Rng) -> DrawnRange {
        let from = self.key(rng);
        let mut to = from.clone();
        match to.last_mut() {
            Some(last) => *last = last.saturating_add(rng.u8(0..4)),
            None => to.push(rng.u8(..)),
        }
        (Bound::Included(from), Bound::Excluded(to))
    }
}

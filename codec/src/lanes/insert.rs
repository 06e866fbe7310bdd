//! The kernel that inserts a field into a frame in place: the rows before its place stay, the rows behind it move up by
//! one lane, row by row. Making a stream longer must not be in this file.
#![allow(clippy::indexing_slicing, clippy::needless_range_loop, reason = "parts of a row, four at the most")]

use super::Lanes;
use super::vector::Vector;
use super::words::{partial_word, store_partial};
use crate::Int;
use crate::bits::mask;

/// The most vectors of a row.
const PARTS: usize = 4;

/// A row, or a word of every lane, in as many vectors as it takes.
type Row<V> = [V; PARTS];

/// The vectors of a row, each by its number.
macro_rules! each_part {
    ($row:ident, $part:ident => $vector:expr) => {
        for $part in 0..Lanes::<V::Key>::COUNT / V::LANES {
            $row[$part] = $vector;
        }
    };
}

/// A stream that is read and written row by row, each row read before it is written.
struct Rows<V: Vector> {
    body: *mut u8,
    words: usize,
    /// What comes behind the whole words, as it was.
    tail: Row<V>,
    width: u32,
    mask: V,
    /// Where the next row begins.
    word: usize,
    shift: u32,
    /// That word as it was, and what is known of what it becomes.
    old: Row<V>,
    new: Row<V>,
}

impl<V: Vector> Rows<V> {
    /// The stream from `row` on.
    ///
    /// # Safety
    /// The vector's level, for this and all methods; `body` is as long as `lanes` says and outlives the result; the row is
    /// inside, and no more rows are read and written than there are from it on.
    #[inline(always)]
    unsafe fn from_row(lanes: &Lanes<V::Key>, body: &mut [u8], row: usize) -> Rows<V> {
        let (words, (word, shift)) = (lanes.words(), lanes.place(row));
        let body = body.as_mut_ptr();
        // SAFETY: the caller's: the tail's byte rows follow the whole words.
        unsafe {
            let mut tail = [V::splat(V::Key::default()); PARTS];
            each_part!(tail, part => partial_word::<V>(lanes, body.add(words * 64), part));
            let mask = V::splat(V::Key::narrow(mask(lanes.width)));
            let mut rows = Rows { body, words, tail, width: lanes.width, mask, word, shift, old: tail, new: tail };
            rows.old = rows.at(word);
            // The bits below the row stay.
            let (new, up) = (&mut rows.new, V::Key::BITS - shift);
            each_part!(new, part => rows.old[part].shl(up).shr(up));
            rows
        }
    }

    #[inline(always)]
    unsafe fn at(&self, word: usize) -> Row<V> {
        let mut row = self.tail;
        // SAFETY: whole words are inside the body.
        unsafe {
            if word < self.words {
                let from = self.body.add(word * 64);
                each_part!(row, part => V::load(from.add(part * size_of::<V>())));
            }
        }
        row
    }

    /// The next row's fields, as they were.
    #[inline(always)]
    unsafe fn read(&self) -> Row<V> {
        let mut row = self.old;
        // SAFETY: the row's words are inside the stream.
        unsafe {
            each_part!(row, part => row[part].shr(self.shift));
            if self.shift + self.width > V::Key::BITS {
                let (next, up) = (self.at(self.word + 1), V::Key::BITS - self.shift);
                each_part!(row, part => row[part].or(next[part].shl(up)));
            }
            each_part!(row, part => row[part].and(self.mask));
        }
        row
    }

    /// Writes the fields of the next row. A word is stored once no row has bits in it that have not been read.
    #[inline(always)]
    unsafe fn write(&mut self, row: &Row<V>) {
        // SAFETY: a word all of whose bits rows have is a whole one, inside the body.
        unsafe {
            let new = &mut self.new;
            each_part!(new, part => new[part].or(row[part].shl(self.shift)));
            self.shift += self.width;
            if self.shift >= V::Key::BITS {
                self.store();
                self.word += 1;
                self.shift -= V::Key::BITS;
                self.old = self.at(self.word);
                let new = &mut self.new;
                each_part!(new, part => row[part].shr(self.width - self.shift));
            }
        }
    }

    /// # Safety
    /// The word is a whole one.
    #[inline(always)]
    unsafe fn store(&self) {
        // SAFETY: whole words are inside the body.
        unsafe {
            let to = self.body.add(self.word * 64);
            for part in 0..Lanes::<V::Key>::COUNT / V::LANES {
                self.new[part].store(to.add(part * size_of::<V>()).cast());
            }
        }
    }

    /// Writes what is left behind the last row.
    ///
    /// # Safety
    /// `lanes` are those of [`Rows::from_row`].
    #[inline(always)]
    unsafe fn finish(&self, lanes: &Lanes<V::Key>) {
        // SAFETY: the place is a whole word, or the tail's byte rows, inside the body.
        unsafe {
            if self.shift == 0 {
                return;
            }
            if self.word < self.words {
                return self.store();
            }
            for part in 0..Lanes::<V::Key>::COUNT / V::LANES {
                store_partial(lanes, self.new[part], self.body.add(self.words * 64), part);
            }
        }
    }
}

/// Moves the fields from `index` on up by one place and puts `field` there; what was in the last place is lost. False, and
/// nothing changed, where `field` does not belong between its neighbours.
///
/// # Safety
/// The vector's level; `body` is as long as `lanes` says, and `index` inside.
#[inline(always)]
pub(super) unsafe fn insert<V: Vector>(lanes: &Lanes<V::Key>, body: &mut [u8], index: usize, field: V::Key) -> bool {
    let per_row = Lanes::<V::Key>::COUNT;
    let (row, lane) = (index / per_row, index % per_row);
    let row_before_is_below = lane > 0 || row > 0 && lanes.get(body, row - 1, per_row - 1) < field.widen();
    // SAFETY: the caller's.
    unsafe {
        let mut rows = Rows::<V>::from_row(lanes, body, row);
        let (there, target) = (rows.read(), V::splat(field));
        let (mut below, mut above) = (0, 0);
        for part in 0..per_row / V::LANES {
            below |= there[part].less(target) << (part * V::LANES);
            above |= target.less(there[part]) << (part * V::LANES);
        }
        // A bit a lane, and one more for the lane before the first.
        let belongs = (below << 1 | u32::from(row_before_is_below)) & above;
        if belongs >> lane & 1 == 0 {
            return false;
        }
        rows.write(&with_field(&there, lane, target));
        let mut before = there;
        for _ in row + 1..lanes.rows {
            let there = rows.read();
            rows.write(&moved(&there, &before));
            before = there;
        }
        rows.finish(lanes);
    }
    true
}

/// The row one lane further up, behind the last lane of the row before.
#[inline(always)]
unsafe fn moved<V: Vector>(row: &Row<V>, before: &Row<V>) -> Row<V> {
    let mut moved = *row;
    // SAFETY: the caller's level.
    unsafe {
        let mut left = before[Lanes::<V::Key>::COUNT / V::LANES - 1];
        for part in 0..Lanes::<V::Key>::COUNT / V::LANES {
            moved[part] = row[part].behind(left);
            left = row[part];
        }
    }
    moved
}

/// Ones, and behind them zeros: a row from the middle less some lanes on has ones in so many.
static ONES: [[u8; 64]; 2] = [[0xFF; 64], [0; 64]];

/// The row with a field, which `field` has in all lanes, in `lane`, those from there on moved up.
#[inline(always)]
unsafe fn with_field<V: Vector>(row: &Row<V>, lane: usize, field: V) -> Row<V> {
    let mut with = *row;
    // SAFETY: the caller's level; with fewer lanes below than a row has, the rows of ones are inside `ONES`.
    unsafe {
        let up = moved(row, row);
        let ones = ONES.as_ptr().cast::<u8>().add(64 - lane * V::Key::BYTES);
        let all = V::splat(V::Key::MAX);
        for part in 0..Lanes::<V::Key>::COUNT / V::LANES {
            let at = ones.add(part * size_of::<V>());
            let (below, upto) = (V::load(at), V::load(at.sub(V::Key::BYTES)));
            let (here, behind) = (upto.sub(below), all.sub(upto));
            with[part] = row[part].and(below).or(field.and(here)).or(up[part].and(behind));
        }
    }
    with
}

//! The kernel that inserts a field into a frame in place. The rows before its place do not change, and the fields after
//! it move up by one lane.

use super::Lanes;
use super::vector::Vector;
use super::words::{partial_word, store_partial};
use crate::Int;
use crate::bits::mask;

/// The most vectors of a row.
const PARTS: usize = 4;

/// A row, or the same word of every lane, in as many vectors as it needs.
type Row<V> = [V; PARTS];

/// Assigns each vector of a row.
macro_rules! each_part {
    ($row:ident, $part:ident => $vector:expr) => {
        for $part in 0..Lanes::<V::Key>::COUNT / V::LANES {
            $row[$part] = $vector;
        }
    };
}

/// A stream that is read and written row by row. Each row is read before it is written.
struct Rows<V: Vector> {
    body: *mut u8,
    words: usize,
    /// The partial last word before the change.
    tail: Row<V>,
    width: u32,
    mask: V,
    /// The position of the next row: its word, and its first bit there.
    word: usize,
    shift: u32,
    /// The old content of this word, and the known bits of its new content.
    old: Row<V>,
    new: Row<V>,
}

impl<V: Vector> Rows<V> {
    /// Begins at `row`.
    ///
    /// # Safety
    /// The machine must have the vector's level, for this and all methods. `body` has the length of `lanes` and
    /// outlives the result. The row is inside the stream, and no rows after its end are read or written.
    #[allow(clippy::indexing_slicing, reason = "parts of a row, four at the most")]
    #[inline(always)]
    unsafe fn from_row(lanes: &Lanes<V::Key>, body: &mut [u8], row: usize) -> Rows<V> {
        let (words, (word, shift)) = (lanes.words(), lanes.place(row));
        let body = body.as_mut_ptr();
        // SAFETY: guaranteed by the caller: the byte rows of the tail follow the whole words.
        unsafe {
            let mut tail = [V::splat(V::Key::default()); PARTS];
            each_part!(tail, part => partial_word::<V>(lanes, body.add(words * 64), part));
            let mask = V::splat(V::Key::narrow(mask(lanes.width)));
            let mut rows = Rows { body, words, tail, width: lanes.width, mask, word, shift, old: tail, new: tail };
            rows.old = rows.at(word);
            // The bits before the row do not change.
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

    /// The old fields of the next row.
    #[allow(clippy::indexing_slicing, reason = "parts of a row, four at the most")]
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

    /// Writes the fields of the next row. A word is stored only when all rows with bits in it have been read.
    #[allow(clippy::indexing_slicing, reason = "parts of a row, four at the most")]
    #[inline(always)]
    unsafe fn write(&mut self, row: &Row<V>) {
        // SAFETY: a word that rows fill completely is a whole word inside the body.
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
    #[allow(clippy::indexing_slicing, reason = "parts of a row, four at the most")]
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

    /// Stores the bits that are left after the last row.
    ///
    /// # Safety
    /// `lanes` is the one of [`Rows::from_row`].
    #[allow(clippy::indexing_slicing, reason = "parts of a row, four at the most")]
    #[inline(always)]
    unsafe fn finish(&self, lanes: &Lanes<V::Key>) {
        // SAFETY: the position is a whole word, or the byte rows of the tail, inside the body.
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

/// Moves the fields from `index` on up by one place and writes `field` to `index`. The last field is lost. Returns
/// false and changes nothing if `field` does not belong between its neighbours.
///
/// # Safety
/// The machine must have the vector's level. `body` has the length of `lanes`, and `index` is inside the stream.
#[allow(clippy::indexing_slicing, clippy::needless_range_loop, reason = "parts of a row, four at the most")]
#[inline(always)]
pub(super) unsafe fn insert<V: Vector>(lanes: &Lanes<V::Key>, body: &mut [u8], index: usize, field: V::Key) -> bool {
    let per_row = Lanes::<V::Key>::COUNT;
    let (row, lane) = (index / per_row, index % per_row);
    let row_before_is_below = lane > 0 || row > 0 && lanes.get(body, row - 1, per_row - 1) < field.widen();
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut rows = Rows::<V>::from_row(lanes, body, row);
        let (there, target) = (rows.read(), V::splat(field));
        let (mut below, mut above) = (0, 0);
        for part in 0..per_row / V::LANES {
            below |= there[part].less(target) << (part * V::LANES);
            above |= target.less(there[part]) << (part * V::LANES);
        }
        // One bit for each lane, and before them one bit for the last lane of the row before.
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

/// The row moved up by one lane. Its first lane is the last lane of the row before.
#[allow(clippy::indexing_slicing, reason = "parts of a row, four at the most")]
#[inline(always)]
unsafe fn moved<V: Vector>(row: &Row<V>, before: &Row<V>) -> Row<V> {
    let mut moved = *row;
    // SAFETY: the caller has the level.
    unsafe {
        let mut left = before[Lanes::<V::Key>::COUNT / V::LANES - 1];
        for part in 0..Lanes::<V::Key>::COUNT / V::LANES {
            moved[part] = row[part].behind(left);
            left = row[part];
        }
    }
    moved
}

/// Ones, then zeros. A vector that is loaded some lanes before the middle has ones in that many lanes.
static ONES: [[u8; 64]; 2] = [[0xFF; 64], [0; 64]];

/// The row with the field inserted in `lane`. The lanes from there on move up. `field` has the field in all lanes.
#[allow(clippy::indexing_slicing, reason = "parts of a row, four at the most")]
#[inline(always)]
unsafe fn with_field<V: Vector>(row: &Row<V>, lane: usize, field: V) -> Row<V> {
    let mut with = *row;
    // SAFETY: the caller has the level. `lane` is less than the number of lanes of a row, so all loads are inside
    // `ONES`.
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

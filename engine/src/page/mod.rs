//! The format of one page: header, fences, key lists, record lists, separators, page operations, checking.
//!
//! Everything here is a function from bytes to bytes. This layer knows neither where a page is, nor latches, nor other
//! pages. Reading accepts any bytes: a field outside the page reads as zero. [`Page::check`] finds once, when bytes
//! come from a device, whether they are a sound page.
//!
//! Bytes from a device or from the log are untrusted. [`Page::check`] runs when an image is read that this process has
//! neither written nor checked before (the `table` store knows that; the others check at each read), and when recovery
//! formats a page. After that a wrong field gives a wrong value, never a panic. An operation that would write outside
//! of its page is an error before the page changes. If only a bug in the engine can cause such a write, it panics.
//! Builds with debug assertions check a page after every operation of a commit or of redo.
//!
//! A page holds two lists, one of keys and one of records. Every key list works with every record list, and one tree
//! can have pages of different lists.

mod apply;
mod block_cut;
mod builder;
mod check;
mod header;
mod heap;
mod keys;
mod long;
mod op;
mod order;
mod pack;
mod records;
mod run;
mod separator;
mod special;
mod view;
mod window;

pub use apply::{apply, would_insert};
pub use builder::{PageBuilder, PageSpec};
pub use duramen_codec::{Codec, UnknownCodec};
pub use header::{PageKind, set_lsn};
pub use heap::{heap_number, heap_page_builder, out_of_line_image};
pub use keys::{BlockRule, Instantiation, KeyLayout, KeyListKind, KeyPlace, KeyProperties};
pub use op::{NewEntry, PageOp};
pub use order::compare_images;
pub use pack::{unpack, unpack_within};
pub use records::{Record, RecordListKind};
pub use run::insert_run;
pub use separator::{SeparatorRule, Split, choose_split};
pub use special::{map_bits, map_page, map_page_size, run_capacity, run_page};
pub use view::{IntegerEncoding, Page};
pub use window::KeyWindow;

#[cfg(test)]
mod tests;

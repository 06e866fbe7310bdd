//! The format of one page: header, fences, key lists, record lists, separators, page operations, checking.
//!
//! Everything here is a function from bytes to bytes. The place of a page, latches and the links between pages must not
//! be in this folder. Reading accepts any bytes: a field outside the page reads as zero. [`Page::check`] finds once,
//! when bytes come from a device, whether they are a sound page.

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
pub use keys::{BlockRule, Instantiation, KeyLayout, KeyListKind, KeyPlace, KeysToKeep};
pub use op::{NewEntry, PageOp};
pub use order::compare_images;
pub use pack::{unpack, unpack_within};
pub use records::{Record, RecordListKind};
pub use run::insert_run;
pub use separator::{SeparatorRule, Split, choose_split};
pub use special::{map_bits, map_page, map_page_size, run_capacity, run_page};
pub use view::Page;
pub use window::KeyWindow;

#[cfg(test)]
mod tests;

//! Where pages live: the `table` page store (places, images, the page table, the superblock) and the buffer pool.
//!
//! Nothing here knows what a page means beyond its id, its LSN and whether its bytes are sound, but for two things that
//! `page` is asked: whether it is an inner page, by the pool that keeps those longer, and which page size an allocation map
//! tells, by `rescue` where no superblock does. Keys, trees, the log's records and transactions must never appear.
//!
//! * `pool`: [`Pool`] keeps pages in memory.
//! * `table`: [`TableStore`] maps page ids to places in the file and writes every image to a new place.
//! * `superblock`: what names the database, at the front of its file.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::cast_possible_truncation
)]

mod pool;
pub mod superblock;
mod syncs;
mod table;
#[cfg(test)]
mod tests;

pub use pool::frame::{Pin, ReadGuard, WriteGuard};
pub use pool::prefetch::Ahead;
pub use pool::{Backing, Pool, PoolStats};
pub use superblock::{ID_SLACK, Meta};
pub use table::checkpoint::Frozen;
pub use table::image::{self, IMAGE_HEADER, ImageBatch};
pub use table::page_table::{decode_chunk, decode_directory};
pub use table::place::{GRAIN, Location, Place};
pub use table::rescue::{Believed, FoundImage, RescuedStore, Trust};
pub use table::{StoreStats, TableStore, WriteKind};

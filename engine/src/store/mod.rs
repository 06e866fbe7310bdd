//! Where pages live: the `table` page store (places, images, the page table, the superblock) and the buffer pool.
//!
//! Nothing here knows what a page means beyond its id, its LSN and whether its bytes are sound, but for two things that
//! `page` is asked: whether it is an inner page, by the pool that keeps those longer, and which page size an allocation map
//! tells, by `rescue` where no superblock does. Keys, trees, the log's records and transactions must never appear.
//!
//! * [`TableStore`] maps page ids to places in the file and writes every image to a new place; `checkpoint` makes the
//!   map durable.
//! * `rescue` opens a file whose page table is damaged, by what images say of themselves.
//! * [`Pool`] keeps pages in memory in front of it.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::cast_possible_truncation
)]

mod allocator;
mod checkpoint;
mod evict;
mod flush;
mod frame;
mod frames;
mod growing;
mod huge;
pub mod image;
mod page_table;
pub mod place;
mod pool;
mod prefetch;
mod region;
mod relocate;
mod rescue;
mod room;
pub mod superblock;
mod syncs;
mod table_store;
#[cfg(test)]
mod tests;

pub use checkpoint::Frozen;
pub use frame::{Pin, ReadGuard, WriteGuard};
pub use image::{IMAGE_HEADER, ImageBatch};
pub use page_table::{decode_chunk, decode_directory};
pub use place::{GRAIN, Location, Place};
pub use pool::{Backing, Pool, PoolStats};
pub use prefetch::Ahead;
pub use rescue::{Believed, FoundImage, RescuedStore, Trust};
pub use superblock::{ID_SLACK, Meta};
pub use table_store::{StoreStats, TableStore, WriteKind};

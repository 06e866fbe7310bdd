//! Page ids and places: which of them are free, how the pages of detached subtrees become free again, and how the file
//! gets smaller.

pub(super) mod id_ranges;
pub(super) mod maps;
pub(super) mod page_ids;
pub(super) mod reclaim;
pub(super) mod shrink;
mod unlogged;
pub(super) mod withheld;

//! Page ids and places: which of them are free, how the pages of detached subtrees become free again, and how the file
//! gets smaller.

pub(super) mod gaps;
pub(super) mod id_ranges;
pub(super) mod maps;
pub(super) mod page_ids;
pub(super) mod reclaim;
mod unlogged;
pub(super) mod withheld;

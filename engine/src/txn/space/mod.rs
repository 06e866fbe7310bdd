//! The space of the file: free page ids, freeing the pages of detached subtrees, and making the file smaller.

pub(super) mod id_ranges;
pub(super) mod maps;
pub(super) mod page_ids;
pub(super) mod page_set;
pub(super) mod pending_frees;
pub(super) mod reclaim;
mod room;
pub(super) mod shrink;
mod split_overflowed;
pub(super) mod unlogged;

//! Page ids: which of them are free, and how the pages of detached subtrees become free again.

pub(super) mod page_ids;
pub(super) mod reclaim;

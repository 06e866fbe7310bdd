//! A power cut, the death of a process, a failed sync or a full device leaves a sound database with every acknowledged
//! commit.

mod backups;
mod closing;
mod counts;
mod crash;
mod crash_beside;
mod crash_cached;
mod crash_convert;
mod crash_create;
mod crash_dictionaries;
mod device;
mod full_device;
mod log_crash;
mod log_segments;
mod lost_page;
mod lost_superblock;
mod lost_writes;
mod one_table;
mod read_ahead;
mod recovery_bounds;
mod redo_equal;
mod sparse_log;
mod store_crash;
mod syncs;
mod wrong_reads;

#[path = "../workload/mod.rs"]
mod workload;

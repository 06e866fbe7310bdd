//! The program as a whole: started as a process, judged by its exit status, its output and the files it leaves.

mod analyze;
mod bad_input;
mod convert;
#[cfg(target_os = "linux")]
mod device;
mod dump_restore;
mod entries;
mod load_scan;
mod messages;
mod own_types;
mod place;
mod query;
mod reports;
mod salvage;
mod salvage_totals;
mod streams;
mod tables;
mod unclean;

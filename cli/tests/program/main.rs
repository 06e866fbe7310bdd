//! The program as a whole: started as a process, judged by its exit status, its output and the files it leaves.

mod analyze;
mod bad_input;
mod convert;
#[cfg(target_os = "linux")]
mod device;
mod dump_restore;
mod entries;
mod load_scan;
mod own_types;
mod place;
mod query;
mod reports;
mod rest;
mod salvage;
mod streams;
mod tables;
mod unclean;
mod words;

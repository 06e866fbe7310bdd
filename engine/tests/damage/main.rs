//! Damaged files: no panic, no endless loop, no wrong data, and as much as possible is read from them.

mod beside;
mod failing_device;
mod hostile;
mod lost_tail;
mod rescue;
mod salvage;
mod stopped;
mod unreadable;

#[path = "../workload/mod.rs"]
mod workload;

//! Simulated disks for tests, and a model of the data that must survive a crash.
//!
//! * [`FailingVolume`] is a folder in memory that records every change. [`FailingVolume::crash`] returns the folder as
//!   a power cut at any event could have left it; [`FailingVolume::cuts`] lists the cuts worth testing.
//!   [`FailingVolume::outlive`] returns the folder after the death of a process on a machine that goes on.
//! * [`Fault`] and [`Trigger`] make calls fail, or succeed without effect, while the engine runs.
//! * [`HookedVolume`] calls [`Hooks`] beside the calls to another folder; a [`Meter`] counts bytes.
//! * [`model::Model`] records the commits and checks the content of a recovered database.
//!
//! All choices follow from seeds, so that a failing case can be repeated. The assumptions about real devices are in
//! `docs/durability.md`. This crate sees files and bytes; it must not know what the engine writes.

mod crash;
mod death;
mod fault;
mod history;
mod hooked;
mod image;
mod metered;
pub mod model;
mod state;
mod volume;

pub use crash::{Cut, CutChoice};
pub use death::{Death, Manner};
pub use fault::{Fault, Trigger};
pub use hooked::{HookedVolume, Hooks};
pub use image::{DEVICE_BLOCK, SECTOR};
pub use metered::Meter;
pub use volume::{FailingDisk, FailingVolume};

//! Simulated disks for tests, and a model of the data that must survive a crash.
//!
//! * [`FailingVolume`] is a folder in memory that records every change. [`FailingVolume::crash`] returns the folder as
//!   a power cut at any event could have left it; [`FailingVolume::cuts`] lists the cuts worth testing.
//!   [`FailingVolume::outlive`] returns the folder after the death of a process on a machine that goes on.
//! * [`Fault`] and [`Trigger`] make calls fail, or succeed without effect, while the engine runs.
//! * [`DriveVolume`] is a folder on a drive that compresses every block and counts; a [`DeviceModel`] says how long a device
//!   would take for it.
//! * [`HookedVolume`] calls [`Hooks`] beside the calls to another folder; a [`Meter`] counts bytes.
//! * [`model::Model`] records the commits and checks the content of a recovered database.
//!
//! All choices follow from seeds, so that a failing case can be repeated. The assumptions about real devices are in
//! `docs/durability.md`. This crate sees files, bytes and their kinds; it must not know what the engine writes.

mod crash;
mod death;
mod drive;
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
pub use drive::{DeviceModel, DriveCounts, DriveVolume, Traffic};
pub use fault::{Fault, Trigger};
pub use hooked::{HookedVolume, Hooks};
pub use image::{DEVICE_BLOCK, SECTOR};
pub use metered::Meter;
pub use volume::{FailingDisk, FailingVolume};

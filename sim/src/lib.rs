//! Disks for tests: one that fails on purpose, and the model that says what must survive.
//!
//! * [`FailingVolume`] is a folder in memory that records every change. [`FailingVolume::crash`] gives the folder as
//!   a power cut at any event could have left it; [`FailingVolume::cuts`] lists the cuts worth trying.
//!   [`FailingVolume::outlive`] gives the folder as the next process finds it when one has died and the machine goes on.
//! * [`Fault`] and [`Trigger`] make calls fail, or lie, while the engine runs.
//! * [`HookedVolume`] does something beside the calls to another folder, as [`Hooks`] say; a [`Meter`] counts bytes.
//! * [`model::Model`] remembers what was committed and judges what a recovery has found.
//!
//! Everything is decided by seeds, so that a failing case can be run again. What is assumed of a real device is
//! written in `docs/durability.md`. Nothing here may know what the engine writes: it sees files and bytes.

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

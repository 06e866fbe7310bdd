//! Simulated disks for tests, and a model of the data that must survive a crash.
//!
//! * [`FailingVolume`] is a folder in memory that records every change. [`FailingVolume::crash`] returns the folder as
//!   a power cut at any event could have left it. [`FailingVolume::cuts`] lists the cuts worth testing.
//!   [`FailingVolume::outlive`] returns the folder after the death of a process on a machine that continues to run.
//! * [`Fault`] and [`Trigger`] make calls fail, or succeed without effect, while the engine runs.
//! * [`DriveVolume`] is a folder on a drive that compresses every block and counts. A [`DeviceModel`] computes the time
//!   that a device would need.
//! * [`HookedVolume`] calls [`Hooks`] at each call to another folder. A [`Meter`] counts bytes.
//! * [`model::Model`] records the commits and checks the content of a recovered database.
//!
//! Seeds decide all choices, so that a failing case can be repeated. `docs/durability.md` has the assumptions about
//! real devices. This crate sees files, bytes and kinds of writes. It does not know what the engine writes.
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::cast_possible_truncation
    )
)]
#![allow(
    clippy::indexing_slicing,
    reason = "an index out of bounds is a bug of the simulator, which must end the test"
)]

mod crash;
mod death;
mod drive;
mod fault;
mod history;
mod hooked;
mod image;
mod loop_device;
mod metered;
pub mod model;
mod state;
mod volume;

pub use crash::{Cut, CutChoice};
pub use death::{Death, DeathKind};
pub use drive::{CallCost, DeviceModel, DriveCounts, DriveVolume, Traffic};
pub use fault::{Fault, Trigger};
pub use hooked::{HookedVolume, Hooks};
pub use image::{DEVICE_BLOCK, SECTOR};
pub use loop_device::LoopDevice;
pub use metered::Meter;
pub use volume::{FailingDisk, FailingVolume};

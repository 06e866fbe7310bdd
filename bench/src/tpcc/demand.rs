//! The virtual clock: how long some work takes on a machine with a given device and a number of processors.

use crate::clock::process_seconds;
use duramen_sim::{DeviceModel, DriveCounts, DriveVolume};
use std::sync::atomic::{AtomicU64, Ordering};

/// The machine whose time is computed.
#[derive(Clone, Copy)]
pub(super) struct Machine {
    pub(super) device: DeviceModel,
    /// Calls that wait for the device at the same time.
    pub(super) queue_depth: u32,
    pub(super) processors: u32,
}

/// The resources of a machine that some work needs. Other work of this machine changes only the processor time.
#[derive(Clone, Copy, Default)]
pub(super) struct Demand {
    /// The calls of the device.
    pub(super) counts: DriveCounts,
    /// Seconds of processors.
    pub(super) processor: f64,
    /// Those of them that no other transaction that writes can overlap.
    pub(super) serial: f64,
}

impl Demand {
    /// All demand so far. `serial`: nanoseconds.
    pub(super) fn now(drive: &DriveVolume, serial: &AtomicU64) -> Demand {
        let serial = serial.load(Ordering::Relaxed) as f64 / 1e9;
        Demand { counts: drive.counts(), processor: process_seconds(), serial }
    }

    /// The demand since an earlier moment.
    pub(super) fn since(&self, earlier: &Demand) -> Demand {
        Demand {
            counts: self.counts.since(&earlier.counts),
            processor: self.processor - earlier.processor,
            serial: self.serial - earlier.serial,
        }
    }

    /// The seconds of a machine: those of the resource that is busy for the longest time. The other resources work at
    /// the same time.
    pub(super) fn seconds(&self, machine: &Machine) -> f64 {
        let device = machine.device.seconds(&self.counts, machine.queue_depth);
        device.max(self.processor / f64::from(machine.processors)).max(self.serial)
    }

    /// The name of that resource.
    pub(super) fn bottleneck(&self, machine: &Machine) -> &'static str {
        let seconds = self.seconds(machine);
        match () {
            () if self.serial >= seconds => "writer",
            () if self.processor / f64::from(machine.processors) >= seconds => "processors",
            () => "device",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_resource_determines_the_time() {
        let machine = |processors| Machine { device: DeviceModel::SATA_SSD, queue_depth: 32, processors };
        let demand = Demand { processor: 6.0, serial: 2.0, ..Demand::default() };
        assert_eq!((demand.seconds(&machine(2)), demand.bottleneck(&machine(2))), (3.0, "processors"));
        assert_eq!((demand.seconds(&machine(4)), demand.bottleneck(&machine(4))), (2.0, "writer"));
        let mut counts = DriveCounts::default();
        counts.read.calls = 1_000_000;
        let reading = Demand { counts, ..demand };
        assert!((reading.seconds(&machine(4)) - 1e6 * 163e-6 / 32.0).abs() < 1e-9);
        assert_eq!(reading.bottleneck(&machine(4)), "device");
    }
}

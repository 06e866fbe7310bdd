//! The time that a device needs for the counted work: a linear model, so that the same counts give the time of any
//! device.

use super::counts::{DriveCounts, Traffic};
use super::file::BLOCK;

/// A device. Times are in seconds.
///
/// A call takes a fixed time; the time of a seek, if it does not continue where the call before ended; the time to
/// compress each block; and the time of the medium for each stored byte. Calls at the same time overlap in all of this,
/// but not on the bus, which every byte passes before it is compressed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DeviceModel {
    /// The name in reports.
    pub name: &'static str,
    /// True if the device compresses. Otherwise the bytes on the medium are those before compression.
    pub compresses: bool,
    /// The time of a call that reads.
    pub read_call: f64,
    /// The time of a call that writes or syncs.
    pub write_call: f64,
    /// The additional time of a call that does not continue where the call before ended.
    pub seek: f64,
    /// The time to compress or expand a block of 4 KiB.
    pub block: f64,
    /// The time of a byte on the bus.
    pub bus_byte: f64,
    /// The time to read a byte from the medium.
    pub read_byte: f64,
    /// The time to write a byte to the medium.
    pub write_byte: f64,
    /// The maximum number of calls at the same time.
    pub parallel: u32,
}

impl DeviceModel {
    /// The drive of the B-minus-tree paper: flash behind a zlib engine of 5 us a block, on a PCIe 3 x4 bus of 3.2 GB/s.
    /// A read takes 80 us. A page of flash, 16 KiB, takes 1 ms to write, and compressed blocks fill it without gaps. A
    /// call that writes returns when its blocks are compressed.
    pub const COMPRESSING: DeviceModel = DeviceModel {
        name: "compressing",
        compresses: true,
        read_call: 80e-6,
        write_call: 0.0,
        seek: 0.0,
        block: 5e-6,
        bus_byte: 1.0 / 3.2e9,
        read_byte: 0.0,
        write_byte: 1e-3 / 16384.0,
        parallel: 64,
    };
    /// A SATA solid-state drive.
    pub const SATA_SSD: DeviceModel = DeviceModel {
        name: "sata-ssd",
        compresses: false,
        read_call: 100e-6,
        write_call: 60e-6,
        seek: 0.0,
        block: 0.0,
        bus_byte: 1.0 / 550e6,
        read_byte: 0.0,
        write_byte: 1.0 / 350e6,
        parallel: 32,
    };
    /// A hard disk of 7,200 revolutions a minute.
    pub const HARD_DISK: DeviceModel = DeviceModel {
        name: "hard-disk",
        compresses: false,
        read_call: 0.1e-3,
        write_call: 0.1e-3,
        seek: 12.7e-3,
        block: 0.0,
        bus_byte: 1.0 / 600e6,
        read_byte: 1.0 / 200e6,
        write_byte: 1.0 / 200e6,
        parallel: 1,
    };
    /// An NVMe solid-state drive without compression.
    pub const NVME_SSD: DeviceModel = DeviceModel {
        name: "nvme-ssd",
        compresses: false,
        read_call: 80e-6,
        write_call: 20e-6,
        seek: 0.0,
        block: 0.0,
        bus_byte: 1.0 / 3.2e9,
        read_byte: 0.0,
        write_byte: 1.0 / 1.2e9,
        parallel: 128,
    };
    /// All devices.
    pub const ALL: [DeviceModel; 4] =
        [DeviceModel::COMPRESSING, DeviceModel::SATA_SSD, DeviceModel::HARD_DISK, DeviceModel::NVME_SSD];

    /// The seconds that the device needs for the counted work, with `queue_depth` calls at a time.
    pub fn seconds(&self, counts: &DriveCounts, queue_depth: u32) -> f64 {
        self.seconds_of(counts.read, counts.all_written(), counts.syncs, queue_depth)
    }

    /// Like [`DeviceModel::seconds`], for other counts.
    pub fn seconds_of(&self, read: Traffic, written: Traffic, syncs: u64, queue_depth: u32) -> f64 {
        let medium = |traffic: Traffic| match self.compresses {
            true => traffic.physical_bytes as f64,
            false => traffic.logical_bytes as f64,
        };
        let logical = (read.logical_bytes + written.logical_bytes) as f64;
        let calls = read.calls as f64 * self.read_call + (written.calls + syncs) as f64 * self.write_call;
        let seeks = (read.seeks + written.seeks) as f64 * self.seek;
        let media = medium(read) * self.read_byte + medium(written) * self.write_byte;
        let overlapping = calls + seeks + media + logical / BLOCK as f64 * self.block;
        logical * self.bus_byte + overlapping / f64::from(queue_depth.clamp(1, self.parallel))
    }
}

//! The time that a device needs for the counted work: a linear model, so that the same counts give the time of any
//! device.

use super::counts::{DriveCounts, Traffic};
use super::file::BLOCK;

/// The cost of the calls in one direction. Times are in seconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CallCost {
    /// The time of a call.
    pub call: f64,
    /// The additional time of a call that does not continue where the call before ended.
    pub seek: f64,
    /// The time of a byte on the medium.
    pub byte: f64,
    /// How many calls overlap at most. It is not a whole number where calls at the same time share a part of the
    /// device.
    pub parallel: f64,
}

/// A device. Times are in seconds.
///
/// A call takes the time of its direction and the time to compress each block. Calls at the same time overlap in all of
/// this, but not on the bus, which every byte passes before it is compressed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DeviceModel {
    /// The name in reports.
    pub name: &'static str,
    /// True if the device compresses. Otherwise the bytes on the medium are those before compression.
    pub compresses: bool,
    /// The calls that read.
    pub read: CallCost,
    /// The calls that write or sync.
    pub write: CallCost,
    /// The time to compress or expand a block of 4 KiB.
    pub block: f64,
    /// The time of a byte on the bus.
    pub bus_byte: f64,
}

impl DeviceModel {
    /// The drive of the B-minus-tree paper: flash behind a zlib engine of 5 us a block, on a PCIe 3 x4 bus of 3.2 GB/s.
    /// A read takes 80 us. A page of flash, 16 KiB, takes 1 ms to write, and compressed blocks fill it without gaps. A
    /// call that writes returns when its blocks are compressed.
    pub const COMPRESSING: DeviceModel = DeviceModel {
        name: "compressing",
        compresses: true,
        read: CallCost { call: 80e-6, seek: 0.0, byte: 0.0, parallel: 64.0 },
        write: CallCost { call: 0.0, seek: 0.0, byte: 1e-3 / 16384.0, parallel: 64.0 },
        block: 5e-6,
        bus_byte: 1.0 / 3.2e9,
    };
    /// The SATA solid-state drive of the paper on selective compression, fitted to its tables 2 and 3. It reads 4 KiB
    /// at random in 171 us, and in 12.8 us if 32 calls are in the queue; it writes 4 KiB in 49.9 us and 34.6 us.
    pub const SATA_SSD: DeviceModel = DeviceModel {
        name: "sata-ssd",
        compresses: false,
        read: CallCost { call: 163e-6, seek: 0.0, byte: 0.0, parallel: 32.0 },
        write: CallCost { call: 34.2e-6, seek: 0.0, byte: 1.95e-9, parallel: 1.57 },
        block: 0.0,
        bus_byte: 1.88e-9,
    };
    /// The hard disk of the same paper, of 7,200 revolutions a minute, fitted to the same tables. It reads 4 KiB at
    /// random in 6.8 ms, and in 3.4 ms if 32 calls are in the queue; its cache makes writes as fast as that.
    pub const HARD_DISK: DeviceModel = DeviceModel {
        name: "hard-disk",
        compresses: false,
        read: CallCost { call: 0.0, seek: 6.8e-3, byte: 5.9e-9, parallel: 2.0 },
        write: CallCost { call: 0.0, seek: 3.4e-3, byte: 6.0e-9, parallel: 1.0 },
        block: 0.0,
        bus_byte: 1.0 / 600e6,
    };
    /// An NVMe solid-state drive without compression.
    pub const NVME_SSD: DeviceModel = DeviceModel {
        name: "nvme-ssd",
        compresses: false,
        read: CallCost { call: 80e-6, seek: 0.0, byte: 0.0, parallel: 128.0 },
        write: CallCost { call: 20e-6, seek: 0.0, byte: 1.0 / 1.2e9, parallel: 128.0 },
        block: 0.0,
        bus_byte: 1.0 / 3.2e9,
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
        self.direction(&self.read, read, read.calls, queue_depth)
            + self.direction(&self.write, written, written.calls + syncs, queue_depth)
    }

    fn direction(&self, cost: &CallCost, traffic: Traffic, calls: u64, queue_depth: u32) -> f64 {
        let medium = if self.compresses { traffic.physical_bytes } else { traffic.logical_bytes };
        let blocks = traffic.logical_bytes as f64 / BLOCK as f64;
        let overlapping = calls as f64 * cost.call
            + traffic.seeks as f64 * cost.seek
            + medium as f64 * cost.byte
            + blocks * self.block;
        traffic.logical_bytes as f64 * self.bus_byte + overlapping / f64::from(queue_depth.max(1)).min(cost.parallel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes a second of random calls of 4 KiB.
    fn speed(device: &DeviceModel, is_read: bool, queue_depth: u32) -> f64 {
        let some = Traffic { calls: 1, seeks: 1, logical_bytes: BLOCK, ..Traffic::default() };
        let (read, written) = if is_read { (some, Traffic::default()) } else { (Traffic::default(), some) };
        BLOCK as f64 / device.seconds_of(read, written, 0, queue_depth) / 1e6
    }

    #[test]
    fn the_drives_of_the_paper_are_as_fast_as_its_tables_say() {
        let table_3 =
            [(&DeviceModel::SATA_SSD, [23.9, 82.1, 318.9, 118.3]), (&DeviceModel::HARD_DISK, [0.6, 1.2, 1.2, 1.1])];
        for (device, [read, write, read_32, write_32]) in table_3 {
            for (is_read, depth, paper) in
                [(true, 1, read), (false, 1, write), (true, 32, read_32), (false, 32, write_32)]
            {
                let ours = speed(device, is_read, depth);
                assert!((ours / paper - 1.0).abs() < 0.1, "{} {is_read} {depth}: {ours} and {paper}", device.name);
            }
        }
    }
}

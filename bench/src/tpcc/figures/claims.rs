//! The values that the figures show and that the claims of the paper are about.

use super::runs::Run;
use crate::claims::{self, Results};
use duramen_sim::{DeviceModel, Traffic};
use serde_json::Value;

/// The devices of the paper.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Device {
    Ssd,
    Hdd,
}

impl Device {
    pub(super) const ALL: [Device; 2] = [Device::Ssd, Device::Hdd];

    pub(super) fn name(self) -> &'static str {
        match self {
            Device::Ssd => "SSD",
            Device::Hdd => "HDD",
        }
    }

    fn model(self) -> DeviceModel {
        match self {
            Device::Ssd => DeviceModel::SATA_SSD,
            Device::Hdd => DeviceModel::HARD_DISK,
        }
    }

    /// Megabytes a second of calls of one length.
    pub(super) fn speed(self, reads: bool, random: bool, bytes: u64, queue_depth: u32) -> f64 {
        let calls = Traffic { calls: 1, seeks: random.into(), logical_bytes: bytes, ..Traffic::default() };
        let (read, written) = if reads { (calls, Traffic::default()) } else { (Traffic::default(), calls) };
        bytes as f64 / self.model().seconds_of(read, written, 0, queue_depth) / 1e6
    }
}

/// A value that is computed from a run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Measure {
    /// Transactions a minute.
    Tpm(Device),
    /// Those on SSD divided by those on HDD.
    SsdToHdd,
    /// Seconds of loading.
    Loading(Device),
    /// The share of the uncompressed database that is saved, and that of a table, in percent.
    Saved,
    TableSaved(&'static str),
    /// The bytes of a table per entry, divided by the bytes per entry without compression before the run.
    TableSize(&'static str),
    /// 1 if a table is compressed, else 0.
    IsCompressed(&'static str),
    /// Milliseconds of a transaction: all, waiting for other transactions that write, calls of the device one after the
    /// other, and compression with decompression.
    Response(Device),
    LockWait,
    FileIo(Device),
    Coding,
    /// Seconds of compression while loading.
    LoadingCoding,
    /// How much of the processors is in use while loading, in percent.
    LoadingUse(Device),
    /// The seeks of a transaction.
    ReadSeeks,
    WriteSeeks,
}

impl claims::Measure<Run> for Measure {
    fn of(self, run: &Run, results: &Results<Run>) -> Option<f64> {
        let object = results.get(run)?;
        let get = |path: &str| object.pointer(path).and_then(Value::as_f64);
        let on = |device: Device, path: &str| get(&format!("/devices/{}/{path}", device.model().name));
        let a_transaction = |total: f64| Some(total / get("/transactions")?);
        let milliseconds = |seconds: f64| a_transaction(1000.0 * seconds);
        let table = |name: &str| object["tables"].as_array()?.iter().find(|table| table["name"] == name);
        match self {
            Measure::Tpm(device) => on(device, "tpm"),
            Measure::SsdToHdd => Some(on(Device::Ssd, "tpm")? / on(Device::Hdd, "tpm")?),
            Measure::Loading(device) => on(device, "load/seconds"),
            Measure::Saved => Some(100.0 * get("/saved")?),
            Measure::TableSaved(name) => Some(100.0 * table(name)?["saved"].as_f64()?),
            Measure::TableSize(name) => Some(1.0 - table(name)?["saved"].as_f64()?),
            Measure::IsCompressed(name) => Some(f64::from(u8::from(table(name)?["compressed"].as_bool()?))),
            Measure::Response(device) => milliseconds(on(device, "work/seconds")? * get("/workload/connections")?),
            Measure::LockWait => get("/each_transaction_ms/lock_wait"),
            Measure::FileIo(device) => milliseconds(on(device, "work/latency_seconds")?),
            Measure::Coding => {
                Some(get("/each_transaction_ms/compression")? + get("/each_transaction_ms/decompression")?)
            }
            Measure::LoadingCoding => get("/load/compress_seconds"),
            Measure::LoadingUse(device) => Some(100.0 * on(device, "load/processor_use")?),
            Measure::ReadSeeks => a_transaction(get("/work/read_seeks")?),
            Measure::WriteSeeks => a_transaction(get("/work/write_seeks")?),
        }
    }
}

/// A number, a question and a claim about these values.
pub(super) type Number = claims::Number<Measure, Run>;
pub(super) type Asked = claims::Asked<Measure, Run>;
pub(super) type Claim = claims::Claim<Measure, Run>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::Measure as _;
    use serde_json::json;

    #[test]
    fn seeks_are_those_of_a_transaction() {
        let run = Run::standard(crate::tpcc::figures::runs::Method::None);
        let result = json!({ "transactions": 4, "work": { "read_seeks": 10, "write_seeks": 2 } });
        let results = Results::from([(run, result)]);
        assert_eq!(
            [Measure::ReadSeeks, Measure::WriteSeeks].map(|measure| measure.of(&run, &results)),
            [Some(2.5), Some(0.5)]
        );
    }
}

//! Prints the results of the benchmark of writes.

use super::run::{Measured, Work};
use super::{Args, Format};
use crate::Result;
use clap::ValueEnum;
use comfy_table::Table;
use comfy_table::presets::UTF8_BORDERS_ONLY;
use duramen::io::WriteKind;
use duramen_sim::{DeviceModel, Traffic};
use serde_json::{Map, Value, json};

/// The number of calls that the drive executes at the same time.
const QUEUE_DEPTH: u32 = 4;

/// Prints the result.
pub(super) fn print(args: &Args, measured: &Measured) -> Result<()> {
    let object = object(args, measured);
    match args.format {
        Format::Json => println!("{}", serde_json::to_string_pretty(&object)?),
        Format::Table => println!("{}", table(&object)),
    }
    Ok(())
}

/// Returns the result as an object.
pub(super) fn object(args: &Args, measured: &Measured) -> Value {
    let Measured { overwrites, reads, scans, leaves, frames, evictions, beta, stored_bytes, file_bytes, .. } = measured;
    let counts = &overwrites.counts;
    let user = measured.user_bytes as f64;
    let kinds = |of: &dyn Fn(Traffic) -> f64| {
        let kinds = WriteKind::ALL.into_iter().filter(|kind| *kind != WriteKind::Other);
        let each = kinds.map(|kind| (kind.name().to_owned(), json!(of(counts.written(kind)))));
        std::iter::once(("total".to_owned(), json!(of(counts.all_written())))).chain(each).collect::<Map<_, _>>()
    };
    json!({
        "wa_physical": kinds(&|traffic| traffic.physical_bytes as f64 / user),
        "wa_logical": kinds(&|traffic| traffic.logical_bytes as f64 / user),
        "wa_aligned": kinds(&|traffic| traffic.aligned_bytes as f64 / user),
        "alpha": kinds(&|traffic| traffic.alpha()),
        "tps": overwrites.operations as f64 / overwrites.seconds,
        "device_seconds": DeviceModel::COMPRESSING.seconds(counts, QUEUE_DEPTH),
        "beta": beta,
        "physical_bytes": stored_bytes,
        "logical_bytes": file_bytes,
        "overwrites": work(overwrites),
        "reads": work(reads),
        "scans": work(scans),
        "log_syncs": counts.log_syncs,
        "forced_log_syncs": measured.forced_log_syncs,
        "syncs": counts.syncs,
        "evictions": evictions,
        "leaves": leaves,
        "cache_pages": frames,
        "workload": workload(args),
    })
}

/// Returns the parameters of the workload.
pub(super) fn workload(args: &Args) -> Value {
    json!({
        "records": args.records, "record_size": args.record_size, "varied": args.varied, "page_size": args.page_size.0,
        "cache": args.cache.0, "threads": args.threads, "store": args.store.name(),
        "persist_table": args.persist_table, "delta": args.delta.to_string(), "log": name(args.log),
        "flush": args.flush.to_string(), "disk": name(args.disk), "seed": args.seed,
    })
}

fn name(value: impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

fn work(work: &Work) -> Value {
    let seconds =
        DeviceModel::ALL.map(|device| (device.name.to_owned(), json!(device.seconds(&work.counts, QUEUE_DEPTH))));
    json!({
        "operations": work.operations,
        "tps": work.operations as f64 / work.seconds,
        "read_calls": work.counts.read.calls,
        "read_bytes": work.counts.read.logical_bytes,
        "write_calls": work.counts.all_written().calls,
        "device_seconds": Map::from_iter(seconds),
    })
}

/// Returns the same as a table for people.
fn table(object: &Value) -> String {
    let mut table = Table::new();
    table.load_preset(UTF8_BORDERS_ONLY);
    for (name, value) in object.as_object().into_iter().flatten() {
        let text = match value {
            Value::Object(fields) => {
                let fields = fields.iter().map(|(name, value)| format!("{name} {}", short(value)));
                fields.collect::<Vec<_>>().join(", ")
            }
            value => short(value),
        };
        table.add_row([name.replace('_', " "), text]);
    }
    table.to_string()
}

fn short(value: &Value) -> String {
    match value {
        Value::Number(number) if number.is_f64() => format!("{:.3}", number.as_f64().unwrap_or(f64::NAN)),
        Value::String(text) => text.clone(),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| format!("{name} {}", short(value)));
            format!("({})", fields.collect::<Vec<_>>().join(", "))
        }
        value => value.to_string(),
    }
}

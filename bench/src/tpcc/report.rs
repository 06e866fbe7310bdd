//! Prints what was measured, as a table or as JSON. Nothing is measured here.

use super::demand::{Demand, Machine};
use super::run::{Measured, Phase, saved};
use super::transactions::TransactionKind;
use super::{Args, DiskKind, Format};
use crate::Result;
use clap::ValueEnum;
use comfy_table::Table;
use comfy_table::presets::UTF8_BORDERS_ONLY;
use duramen_sim::{DeviceModel, Traffic};
use serde_json::{Map, Value, json};

/// The percentiles of latencies.
const PERCENTILES: [f64; 3] = [50.0, 90.0, 99.0];

pub(super) fn print(args: &Args, measured: &Measured) -> Result<()> {
    let object = object(args, measured);
    match args.format {
        Format::Json => println!("{}", serde_json::to_string_pretty(&object)?),
        Format::Table => println!("{}", tables(&object)),
    }
    Ok(())
}

/// The seconds of a phase: those of this machine, or of the virtual clock.
fn seconds(args: &Args, phase: &Phase) -> f64 {
    match args.disk {
        DiskKind::File => phase.wall_seconds,
        DiskKind::Metered => phase.demand.seconds(&args.machine()),
    }
}

/// The resource that limits a phase.
fn bottleneck(args: &Args, phase: &Phase) -> &'static str {
    match args.disk {
        DiskKind::File => "this machine",
        DiskKind::Metered => phase.demand.bottleneck(&args.machine()),
    }
}

/// The result as an object.
pub(super) fn object(args: &Args, measured: &Measured) -> Value {
    let Measured { load, work, times, sizes, cache } = measured;
    let transactions: u64 = times.iter().map(|of| of.count).sum();
    let waited: f64 = times.iter().map(|of| of.waited.as_secs_f64()).sum();
    let each = |seconds: f64| 1000.0 * seconds / transactions.max(1) as f64;
    let minutes = seconds(args, work) / 60.0;
    let compression = &work.compression;
    let mut workload = workload(args);
    workload["cache"] = json!(cache);
    let kinds = TransactionKind::ALL.iter().zip(times).map(|(kind, of)| {
        let percentile =
            |part: &f64| (format!("p{part}_ms"), json!(of.latencies.value_at_percentile(*part) as f64 / 1e3));
        let mut object: Map<_, _> = PERCENTILES.iter().map(percentile).collect();
        object.insert("lock_wait_ms".into(), json!(1000.0 * of.waited.as_secs_f64() / of.count.max(1) as f64));
        object.insert("count".into(), json!(of.count));
        object.insert("rolled_back".into(), json!(of.rolled_back));
        (kind.name().to_owned(), Value::Object(object))
    });
    let tables = sizes.iter().map(|size| {
        json!({
            "name": size.name, "pages": size.pages, "uncompressed_bytes": size.uncompressed,
            "stored_bytes": size.stored, "saved": saved(size.stored, size.uncompressed), "compressed": size.is_compressed,
        })
    });
    json!({
        "strategy": args.strategy.to_string(),
        "compression": args.storage().compression.to_string(),
        "target": args.storage().target.to_string(),
        "overflow": args.overflow.to_string(),
        "tpm": transactions as f64 / minutes,
        "new_orders_per_minute": times.first().map_or(0, |of| of.count - of.rolled_back) as f64 / minutes,
        "saved": measured.saved(),
        "load_seconds": seconds(args, load),
        "bottleneck": bottleneck(args, work),
        "load": phase(args, load),
        "work": phase(args, work),
        "devices": Map::from_iter(DeviceModel::ALL.map(|device| {
            (device.name.to_owned(), device_object(args, measured, transactions, device))
        })),
        "each_transaction_ms": {
            "lock_wait": each(waited),
            "response": 1000.0 * seconds(args, work) * f64::from(args.connections) / transactions.max(1) as f64,
            "file_io": each(args.device.model().seconds(&work.demand.counts, 1)),
            "compression": each(compression.compress_time.as_secs_f64()),
            "decompression": each(compression.decompress_time.as_secs_f64()),
        },
        "transactions": transactions,
        "kinds": kinds.collect::<Map<_, _>>(),
        "tables": tables.collect::<Vec<_>>(),
        "workload": workload,
    })
}

/// The parameters of the workload. The bytes of cache are null if they follow from the data.
pub(super) fn workload(args: &Args) -> Value {
    let storage = args.storage();
    json!({
        "strategy": args.strategy.to_string(), "compression": storage.compression.to_string(),
        "target": storage.target.to_string(), "overflow": args.overflow.to_string(),
        "warehouses": args.warehouses, "mix": name(args.mix), "connections": args.connections,
        "terminals": args.terminals, "seconds": args.seconds, "warmup": args.warmup, "cache": args.cache.map(|cache| cache.0),
        "page_size": args.page_size.0, "rows": name(args.rows), "disk": name(args.disk),
        "device": name(args.device), "queue_depth": args.queue_depth, "processors": args.processors,
        "seed": args.seed, "scale": args.scale,
    })
}

fn phase(args: &Args, phase: &Phase) -> Value {
    let Demand { counts, processor, serial } = phase.demand;
    let written = counts.all_written();
    let (read, compression) = (counts.read, phase.compression);
    let seconds = seconds(args, phase);
    json!({
        "seconds": seconds,
        "wall_seconds": phase.wall_seconds,
        "processor_seconds": processor,
        "writer_seconds": serial,
        "processor_use": processor / f64::from(args.processors) / seconds,
        "read_calls": read.calls, "read_seeks": read.seeks, "read_bytes": read.logical_bytes,
        "write_calls": written.calls, "write_seeks": written.seeks, "written_bytes": written.logical_bytes,
        "syncs": counts.syncs,
        "compression_attempts": compression.compressed + compression.missed,
        "compressed_pages": compression.compressed, "missed_pages": compression.missed,
        "recompressed_pages": compression.recompressed,
        "decompressed_pages": compression.decompressed, "split_pages": compression.split,
        "compress_seconds": compression.compress_time.as_secs_f64(),
        "decompress_seconds": compression.decompress_time.as_secs_f64(),
    })
}

/// The time of the same work on a device of another kind: the calls do not depend on the device.
fn device_object(args: &Args, measured: &Measured, transactions: u64, device: DeviceModel) -> Value {
    let of = |phase: &Phase| {
        let counts = &phase.demand.counts;
        let machine = Machine { device, ..args.machine() };
        let (read, written) = (counts.read, counts.all_written());
        let none = Traffic::default();
        let seconds = phase.demand.seconds(&machine);
        json!({
            "seconds": seconds,
            "bottleneck": phase.demand.bottleneck(&machine),
            "read_seconds": device.seconds_of(read, none, 0, args.queue_depth),
            "write_seconds": device.seconds_of(none, written, counts.syncs, args.queue_depth),
            "latency_seconds": device.seconds(counts, 1),
            "processor_use": phase.demand.processor / f64::from(args.processors) / seconds,
        })
    };
    let (load, work) = (of(&measured.load), of(&measured.work));
    let tpm = 60.0 * transactions as f64 / work["seconds"].as_f64().unwrap_or(f64::NAN);
    json!({ "tpm": tpm, "load": load, "work": work })
}

fn name(value: impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// The same for people.
fn tables(object: &Value) -> String {
    let mut parts = Vec::new();
    let mut summary = table(&["", ""]);
    for key in [
        "strategy",
        "compression",
        "target",
        "overflow",
        "tpm",
        "new_orders_per_minute",
        "saved",
        "load_seconds",
        "bottleneck",
    ] {
        summary.add_row([key.replace('_', " "), short(&object[key])]);
    }
    for (key, value) in object["each_transaction_ms"].as_object().into_iter().flatten() {
        summary.add_row([format!("{} ms a transaction", key.replace('_', " ")), short(value)]);
    }
    parts.push(summary);
    let mut kinds = table(&["transaction", "count", "rolled back", "p50 ms", "p90 ms", "p99 ms", "lock wait ms"]);
    for (kind, of) in object["kinds"].as_object().into_iter().flatten() {
        let columns =
            ["count", "rolled_back", "p50_ms", "p90_ms", "p99_ms", "lock_wait_ms"].map(|column| short(&of[column]));
        kinds.add_row(std::iter::once(kind.clone()).chain(columns));
    }
    parts.push(kinds);
    let mut phases = table(&["", "loading", "transactions"]);
    for (key, value) in object["load"].as_object().into_iter().flatten() {
        phases.add_row([key.replace('_', " "), short(value), short(&object["work"][key])]);
    }
    parts.push(phases);
    let mut devices = table(&["device", "tpm", "read s", "write s", "loading s", "bottleneck"]);
    for (name, of) in object["devices"].as_object().into_iter().flatten() {
        let work = &of["work"];
        devices.add_row([
            name.clone(),
            short(&of["tpm"]),
            short(&work["read_seconds"]),
            short(&work["write_seconds"]),
            short(&of["load"]["seconds"]),
            short(&work["bottleneck"]),
        ]);
    }
    parts.push(devices);
    let mut sizes = table(&["table", "compressed", "pages", "MB uncompressed", "MB stored", "saved"]);
    for of in object["tables"].as_array().into_iter().flatten() {
        let megabytes = |key: &str| format!("{:.1}", of[key].as_f64().unwrap_or(0.0) / 1e6);
        sizes.add_row([
            short(&of["name"]),
            if of["compressed"] == json!(true) { "yes" } else { "no" }.to_owned(),
            short(&of["pages"]),
            megabytes("uncompressed_bytes"),
            megabytes("stored_bytes"),
            short(&of["saved"]),
        ]);
    }
    parts.push(sizes);
    parts.iter().map(Table::to_string).collect::<Vec<_>>().join("\n\n")
}

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(UTF8_BORDERS_ONLY);
    if header.iter().any(|name| !name.is_empty()) {
        table.set_header(header);
    }
    table
}

fn short(value: &Value) -> String {
    match value {
        Value::Number(number) if number.is_f64() => format!("{:.3}", number.as_f64().unwrap_or(f64::NAN)),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

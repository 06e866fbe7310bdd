//! Tests of the log on a volume in memory that counts calls, fails and loses data on demand.
mod damage;
mod epochs;
mod group;
mod others;
mod recycled;
mod round_trip;
mod volume;

use super::*;
use crate::base::watermark::Watermark;
use crate::base::{Error, Result};
use volume::TestVolume;

const DATABASE: u128 = 0x0123_4567_89ab_cdef_0123_4567_89ab_cdef;

fn config(volume: &TestVolume, shape: LogShape) -> LogConfig {
    LogConfig { volume: Arc::new(volume.clone()), prefix: "db-log".into(), database: DATABASE, shape }
}

fn packed(volume: &TestVolume) -> LogConfig {
    config(volume, LogShape::Packed)
}

fn at(lsn: Lsn, epoch: u32) -> LogPosition {
    LogPosition { lsn, epoch }
}

/// All payloads from `from` on.
fn read_all(config: LogConfig, from: LogPosition) -> Result<Vec<Vec<u8>>> {
    let mut reader = read(config, from, Lsn::ZERO)?.expect("a log");
    let mut payloads = Vec::new();
    while let Some(batch) = reader.next()? {
        payloads.push(batch.payload);
    }
    Ok(payloads)
}

/// Reads the payloads from `from` on up to the end, and returns whether that end was an error.
fn read_some(config: LogConfig, from: LogPosition) -> (Vec<Vec<u8>>, Result<()>) {
    let mut payloads = Vec::new();
    let mut reader = match read(config, from, Lsn::ZERO) {
        Ok(Some(reader)) => reader,
        Ok(None) => return (payloads, Ok(())),
        Err(error) => return (payloads, Err(error)),
    };
    loop {
        match reader.next() {
            Ok(Some(batch)) => payloads.push(batch.payload),
            Ok(None) => return (payloads, Ok(())),
            Err(error) => return (payloads, Err(error)),
        }
    }
}

fn segment_name(number: u32) -> String {
    format!("db-log.{number:06}")
}

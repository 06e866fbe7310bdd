//! Measurements by (sensor, second): ranges in order, the newest first, and forgetting what is old in a moment.
//!
//!     cargo run --release -p duramen --example time_series

use duramen::{Database, Result, TableDef};

const READINGS: TableDef<(u32, u64), f64> = TableDef::new("readings");

fn main() -> Result<()> {
    let db = Database::in_memory()?;
    let tx = db.begin_write()?;
    {
        let mut readings = tx.open_table(READINGS)?;
        for sensor in 0..10u32 {
            for second in 0..10_000u64 {
                let value = 20.0 + f64::from(sensor) + (second as f64 / 600.0).sin();
                readings.put((sensor, second), value)?;
            }
        }
    }
    tx.commit()?;

    let readings = db.begin_read()?.open_table(READINGS)?;
    let (mut sum, mut count) = (0.0, 0);
    for entry in readings.range((3, 1000)..(3, 2000)) {
        sum += entry?.1.value();
        count += 1;
    }
    println!("sensor 3, seconds 1000 to 1999: {count} readings, mean {:.3}", sum / f64::from(count));
    if let Some(newest) = readings.range((3, 0)..(4, 0)).next_back().transpose()? {
        println!("its newest: second {} with {:.3}", newest.0.value().1, newest.1.value());
    }

    let tx = db.begin_write()?;
    {
        let mut readings = tx.open_table(READINGS)?;
        for sensor in 0..10u32 {
            readings.remove_range((sensor, 0)..(sensor, 9_000));
        }
        println!("{} readings left", readings.len()?);
    }
    tx.commit()
}

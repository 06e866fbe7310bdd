//! A queue of jobs: producers append, workers take the first, each job is taken exactly once. In a file it survives
//! crashes.
//!
//!     cargo run -p duramen --example queue

use duramen::{Database, Durability, Result, TableDef};
use std::sync::atomic::{AtomicU32, Ordering};

const JOBS: TableDef<u64, &str> = TableDef::new("jobs");

fn push(db: &Database, job: &str) -> Result<()> {
    let mut tx = db.begin_write()?;
    tx.set_durability(Durability::Interval);
    {
        let mut jobs = tx.open_table(JOBS)?;
        let next = jobs.last()?.map_or(0, |(number, _)| number.value() + 1);
        jobs.put(next, job)?;
    }
    tx.commit()
}

fn pop(db: &Database) -> Result<Option<String>> {
    let mut tx = db.begin_write()?;
    tx.set_durability(Durability::Interval);
    let job = tx.open_table(JOBS)?.pop_first()?.map(|(_, job)| job.value().to_owned());
    tx.commit()?;
    Ok(job)
}

fn main() -> Result<()> {
    let db = Database::in_memory()?;
    let done = AtomicU32::new(0);
    for number in 0..200 {
        push(&db, &format!("job {number}"))?;
    }
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while pop(&db).expect("the queue").is_some() {
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    println!("{} jobs done by 4 workers", done.load(Ordering::Relaxed));
    Ok(())
}

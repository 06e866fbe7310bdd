//! A long report over a snapshot while the table changes under it: the report is of one moment, and nobody waits.
//!
//!     cargo run -p duramen --example snapshot_report

use duramen::{Database, Result, TableDef};

const STOCK: TableDef<&str, u32> = TableDef::new("stock");

fn main() -> Result<()> {
    let db = Database::in_memory()?;
    let goods = ["apples", "pears", "plums", "quinces"];
    let set = |count: u32| -> Result<()> {
        let tx = db.begin_write()?;
        {
            let mut stock = tx.open_table(STOCK)?;
            for name in goods {
                stock.put(name, count)?;
            }
        }
        tx.commit()
    };
    set(100)?;
    let morning = db.begin_read()?;
    for count in (0..100).rev() {
        set(count)?;
    }
    let evening = db.begin_read()?;
    println!("{:10} {:>8} {:>8}", "", "morning", "evening");
    let (before, after) = (morning.open_table(STOCK)?, evening.open_table(STOCK)?);
    for (was, is) in before.iter().zip(after.iter()) {
        let ((name, was), (_, is)) = (was?, is?);
        println!("{:10} {:>8} {:>8}", name.value(), was.value(), is.value());
    }
    Ok(())
}

//! Orders under numbers that the table assigns, and aggregates of their amounts: sums, averages and the largest ones.
//!
//!     cargo run --release -p duramen --example orders

use duramen::query::{Aggregate, Column, Outcome, Query};
use duramen::{Codec, Database, Result, TableDef};

/// Amounts in cents. The numbers are kept in blocks of binary-packed gaps, which of numbers in a row take next to
/// nothing.
const ORDERS: TableDef<u64, i64> = TableDef::new("orders").codec(Codec::Bp128).auto_increment();

fn main() -> Result<()> {
    let db = Database::in_memory()?;
    let tx = db.begin_write()?;
    {
        let mut orders = tx.open_table(ORDERS)?;
        for n in 0..100_000i64 {
            // Every hundredth is a refund.
            let amount = 100 + n * 7919 % 90_000;
            orders.push(if n % 100 == 99 { -amount } else { amount })?;
        }
        let newest = orders.push(4_200)?;
        println!("the newest order has number {}", newest.value());
    }
    tx.commit()?;

    let snapshot = db.begin_read()?;
    let orders = snapshot.open_table(ORDERS)?;
    let asked = [Aggregate::Count, Aggregate::Sum(Column::Value), Aggregate::Top(Column::Value, 3)];
    let found = Query::of(&orders).range(1_000u64..2_000).filter(|_, amount| amount > 0).run(&asked)?;
    if let [Outcome::Number(count), Outcome::Number(sum), Outcome::List(top)] = &found[..] {
        let top: Vec<String> = top.iter().map(ToString::to_string).collect();
        println!("orders 1000 to 1999: {count} worth {sum}, the largest {}", top.join(", "));
    }

    let totals = [Aggregate::Count, Aggregate::Sum(Column::Value), Aggregate::Average(Column::Value)];
    let refunds = Query::of(&orders).filter(|_, amount| amount < 0).run(&totals)?;
    for (name, outcome) in ["count", "sum", "average"].into_iter().zip(refunds) {
        if let Outcome::Number(number) = outcome {
            println!("refunds: {name} = {number}");
        }
    }
    Ok(())
}

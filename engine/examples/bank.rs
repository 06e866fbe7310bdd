//! Moves money between accounts from several threads. Every snapshot sees the same total: a commit is whole or absent.
//!
//!     cargo run -p duramen --example bank

use duramen::{Database, Durability, Result, TableDef};

const ACCOUNTS: TableDef<u32, i64> = TableDef::new("accounts");
const PEOPLE: u32 = 100;
const EACH: i64 = 1000;

fn transfer(db: &Database, from: u32, to: u32, amount: i64) -> Result<bool> {
    let mut tx = db.begin_write()?;
    tx.set_durability(Durability::Interval);
    {
        let mut accounts = tx.open_table(ACCOUNTS)?;
        let balance = |account: u32, accounts: &duramen::Table<'_, u32, i64>| -> Result<i64> {
            Ok(accounts.get(account)?.map_or(0, |balance| balance.value()))
        };
        let (ours, theirs) = (balance(from, &accounts)?, balance(to, &accounts)?);
        if ours < amount || from == to {
            return Ok(false); // dropping the transaction forgets it
        }
        accounts.insert(from, ours - amount)?;
        accounts.insert(to, theirs + amount)?;
    }
    tx.commit().map(|()| true)
}

fn total(db: &Database) -> Result<i64> {
    let accounts = db.begin_read()?.open_table(ACCOUNTS)?;
    let mut sum = 0;
    for entry in accounts.iter() {
        sum += entry?.1.value();
    }
    Ok(sum)
}

fn main() -> Result<()> {
    let folder = std::env::temp_dir().join(format!("duramen-bank-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for the database");
    let db = Database::create(folder.join("bank.duramen"))?;
    let tx = db.begin_write()?;
    {
        let mut accounts = tx.open_table(ACCOUNTS)?;
        for person in 0..PEOPLE {
            accounts.insert(person, EACH)?;
        }
    }
    tx.commit()?;
    std::thread::scope(|scope| {
        for seed in 1..=3u32 {
            let db = &db;
            scope.spawn(move || {
                for step in 0..300u32 {
                    let mixed = step.wrapping_mul(2_654_435_761).wrapping_add(seed * 7919);
                    transfer(db, mixed % PEOPLE, (mixed >> 8) % PEOPLE, i64::from(mixed % 97)).expect("a transfer");
                }
            });
        }
        for _ in 0..50 {
            assert_eq!(total(&db).expect("a total"), i64::from(PEOPLE) * EACH);
        }
    });
    println!("900 transfers, 50 snapshots, and the total is still {}", total(&db)?);
    drop(db);
    std::fs::remove_dir_all(folder).expect("to clean up");
    Ok(())
}

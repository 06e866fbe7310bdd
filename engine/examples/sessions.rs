//! Sessions that expire: one table by token, one by time of expiry, so that clearing out is one range.
//!
//!     cargo run -p duramen --example sessions

use duramen::{Database, Result, TableDef};

const SESSIONS: TableDef<&str, (u64, &str)> = TableDef::new("sessions");
const EXPIRY: TableDef<(u64, &str), ()> = TableDef::new("sessions by expiry");

fn open(db: &Database, token: &str, user: &str, until: u64) -> Result<()> {
    let tx = db.begin_write()?;
    tx.open_table(SESSIONS)?.put(token, (until, user))?;
    tx.open_table(EXPIRY)?.put((until, token), ())?;
    tx.commit()
}

fn clear_out(db: &Database, now: u64) -> Result<usize> {
    let tx = db.begin_write()?;
    let mut gone = Vec::new();
    {
        let mut expiry = tx.open_table(EXPIRY)?;
        for entry in expiry.range(..(now, "")) {
            gone.push(entry?.0.value().1.to_owned());
        }
        expiry.remove_range(..(now, ""));
        let mut sessions = tx.open_table(SESSIONS)?;
        for token in &gone {
            sessions.remove(token.as_str())?;
        }
    }
    tx.commit()?;
    Ok(gone.len())
}

fn main() -> Result<()> {
    let db = Database::in_memory()?;
    for number in 0..100u64 {
        open(&db, &format!("token-{number}"), "somebody", 1000 + number * 10)?;
    }
    println!("{} expired", clear_out(&db, 1500)?);
    println!("{} open", db.begin_read()?.open_table(SESSIONS)?.len());
    Ok(())
}

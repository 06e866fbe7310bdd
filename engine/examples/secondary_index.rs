//! Users by id, and by e-mail through a second table that is kept in the same transactions: the two can never disagree.
//!
//!     cargo run -p duramen --example secondary_index

use duramen::{Database, Result, TableDef};

const USERS: TableDef<u64, (&str, &str)> = TableDef::new("users");
const BY_MAIL: TableDef<&str, u64> = TableDef::new("users by e-mail");

fn register(db: &Database, name: &str, mail: &str) -> Result<Option<u64>> {
    let tx = db.begin_write()?;
    let id = {
        let mut by_mail = tx.open_table(BY_MAIL)?;
        let mut users = tx.open_table(USERS)?;
        let id = users.last()?.map_or(1, |(id, _)| id.value() + 1);
        if !by_mail.entry(mail)?.or_insert(id)? {
            return Ok(None); // taken; nothing was written
        }
        users.insert(id, (name, mail))?;
        id
    };
    tx.commit()?;
    Ok(Some(id))
}

fn main() -> Result<()> {
    let db = Database::in_memory()?;
    for (name, mail) in [("Ann", "ann@example.org"), ("Bob", "bob@example.org"), ("Eve", "ann@example.org")] {
        match register(&db, name, mail)? {
            Some(id) => println!("{name} is user {id}"),
            None => println!("{name} cannot have {mail}: it is taken"),
        }
    }
    let tx = db.begin_read()?;
    let id = tx.open_table(BY_MAIL)?.get("bob@example.org")?.map(|id| id.value());
    if let Some(user) = id.map(|id| tx.open_table(USERS)?.get(id)).transpose()?.flatten() {
        println!("bob@example.org belongs to {}", user.value().0);
    }
    Ok(())
}

//! Promise: a snapshot shows the database at one moment for as long as it is open, whatever is written, dropped or
//! moved meanwhile. Readers wait for no writer. After a failed sync nothing is acknowledged.

use crate::workload::{apply, contents, options};
use duramen::{Database, Durability, Error, ReadTransaction, Result, TableDef};
use duramen_sim::model::{Change, Model};
use duramen_sim::{Cut, CutChoice, FailingVolume, Fault, Trigger};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const ACCOUNTS: TableDef<u32, u64> = TableDef::new("accounts");
const COUNT: u32 = 2000;
const EACH: u64 = 1000;

fn open_accounts(db: &Database) -> Result<()> {
    let tx = db.begin_write()?;
    let mut accounts = tx.open_table(ACCOUNTS)?;
    for account in 0..COUNT {
        accounts.put(account, EACH)?;
    }
    drop(accounts);
    tx.commit()
}

fn transfer(db: &Database, rng: &mut fastrand::Rng) -> Result<()> {
    let mut tx = db.begin_write()?;
    tx.set_durability(if rng.u8(0..20) == 0 { Durability::Commit } else { Durability::None });
    let mut accounts = tx.open_table(ACCOUNTS)?;
    for _ in 0..rng.usize(1..40) {
        let (from, to) = (rng.u32(0..COUNT), rng.u32(0..COUNT));
        let amount = accounts.get(from)?.map_or(0, |value| value.value()).min(rng.u64(1..50));
        let rest = accounts.get(from)?.map_or(0, |value| value.value()) - amount;
        // An empty account is closed, a new one opened: keys come and go.
        match rest {
            0 => drop(accounts.remove(from)?),
            rest => accounts.put(from, rest)?,
        }
        let has = accounts.get(to)?.map_or(0, |value| value.value());
        if has + amount > 0 {
            accounts.put(to, has + amount)?;
        }
    }
    drop(accounts);
    tx.commit()
}

/// The sum over all accounts, by scanning both ways and by asking for each.
fn sums(tx: &ReadTransaction) -> Result<[u64; 3]> {
    let accounts = tx.open_table(ACCOUNTS)?;
    let forward: Vec<(u32, u64)> =
        accounts.iter().map(|e| e.map(|(k, v)| (k.value(), v.value()))).collect::<Result<_>>()?;
    let mut backward = 0;
    for entry in accounts.iter().rev() {
        backward += entry?.1.value();
    }
    let mut asked = 0;
    for account in 0..COUNT {
        asked += accounts.get(account)?.map_or(0, |value| value.value());
    }
    assert_eq!(accounts.len(), forward.len() as u64);
    assert!(forward.is_sorted_by(|a, b| a.0 < b.0), "keys out of order");
    Ok([forward.iter().map(|(_, value)| value).sum(), backward, asked])
}

#[test]
fn transfers_keep_the_sum_in_every_snapshot_and_reads_are_repeatable() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.duramen");
    let db = Database::builder().page_size(4096).cache(0).checkpoint_bytes(64 << 10).create(path)?;
    open_accounts(&db)?;
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| -> Result<usize> {
                    let mut snapshots = 0;
                    while !over.load(Ordering::Acquire) {
                        let tx = db.begin_read()?;
                        let first = sums(&tx)?;
                        assert_eq!(first, [EACH * u64::from(COUNT); 3]);
                        assert_eq!(sums(&tx)?, first);
                        snapshots += 1;
                    }
                    Ok(snapshots)
                })
            })
            .collect();
        let mut rng = fastrand::Rng::with_seed(1);
        let written: Result<()> = (0..600).try_for_each(|_| transfer(&db, &mut rng));
        over.store(true, Ordering::Release);
        for reader in readers {
            assert!(reader.join().expect("a reader")? > 0);
        }
        written
    })?;
    assert!(db.verify(|_| ())?.findings.is_empty());
    Ok(())
}

#[test]
fn a_snapshot_stays_the_same_when_its_tables_are_changed_and_removed() -> Result<()> {
    let volume = FailingVolume::new(0);
    let db = options().create_on(Arc::new(volume), "t.duramen")?;
    let put = |table: &str, key: u32, len: usize| Change::Put {
        table: table.into(),
        key: key.to_be_bytes().to_vec(),
        value: vec![key as u8; len],
    };
    let range = |from: u32, to: u32| Change::RemoveRange {
        table: "a".into(),
        from: std::ops::Bound::Included(from.to_be_bytes().to_vec()),
        to: std::ops::Bound::Excluded(to.to_be_bytes().to_vec()),
    };
    let mut model = Model::new();
    let mut held: Vec<(ReadTransaction, u64)> = Vec::new();
    let mut all: Vec<Vec<Change>> = vec![
        (0..3000).map(|key| put("a", key, 60)).chain((0..3000).map(|key| put("b", key, 30))).collect(),
        vec![put("a", 7, 20_000), put("a", 8, 9000)],
        vec![range(100, 2500)],
        (500..900).map(|key| put("a", key, 70)).collect(),
        vec![range(600, 800), put("a", 7, 12)],
        vec![Change::Drop { table: "b".into() }],
        (0..200).map(|key| put("b", key, 200)).collect(),
        vec![Change::Rename { table: "a".into(), to: "c".into() }, range(0, 10)],
        (0..600).map(|key| put("a", key, 50)).collect(),
    ];
    for (number, changes) in all.drain(..).enumerate() {
        let tx = db.begin_write()?;
        apply(&tx, &changes)?;
        model.commit(changes);
        tx.commit()?;
        held.push((db.begin_read()?, model.commits()));
        match number % 3 {
            0 => db.checkpoint()?,
            1 => while db.maintain()? {},
            _ => drop(db.compact(|_| ())?),
        }
        for (tx, commits) in &held {
            model.check(*commits, *commits, &contents(tx)?).unwrap_or_else(|error| panic!("step {number}: {error}"));
        }
    }
    // The oldest go last: what each held back must not take anything from the others.
    while let Some((tx, commits)) = held.pop() {
        model.check(commits, commits, &contents(&tx)?).unwrap_or_else(|error| panic!("{error}"));
        drop(tx);
        while db.maintain()? {}
    }
    assert_eq!(db.verify(|_| ())?.findings, []);
    Ok(())
}

#[test]
fn readers_do_not_wait_for_a_writing_transaction_that_stays_open() -> Result<()> {
    let db = Database::in_memory()?;
    open_accounts(&db)?;
    let tx = db.begin_write()?;
    tx.open_table(ACCOUNTS)?.put(0, 0)?;
    let (send, receive) = std::sync::mpsc::channel();
    let reading = db.clone();
    std::thread::spawn(move || send.send(reading.begin_read().and_then(|tx| sums(&tx))));
    let read = receive.recv_timeout(Duration::from_secs(60)).expect("the reader waits for the writer");
    assert_eq!(read?, [EACH * u64::from(COUNT); 3]);
    tx.commit()?;
    assert_eq!(sums(&db.begin_read()?)?, [EACH * u64::from(COUNT - 1); 3]);
    Ok(())
}

fn put_one(db: &Database, key: u32, durability: Durability) -> Result<()> {
    let mut tx = db.begin_write()?;
    tx.set_durability(durability);
    tx.open_table(ACCOUNTS)?.put(key, 1)?;
    tx.commit()
}

/// The keys there are, from 0 on. A missing key is a commit that is missing before a later one.
fn keys(db: &Database) -> Result<u32> {
    let tx = db.begin_read()?;
    let accounts = match tx.open_table(ACCOUNTS) {
        Err(Error::NoTable { .. }) => return Ok(0),
        accounts => accounts?,
    };
    let keys: Vec<u32> = accounts.iter().map(|entry| entry.map(|(key, _)| key.value())).collect::<Result<_>>()?;
    assert!(keys.iter().copied().eq(0..keys.len() as u32), "{keys:?}");
    Ok(keys.len() as u32)
}

#[test]
fn a_durable_commit_makes_all_earlier_commits_durable() -> Result<()> {
    let volume = FailingVolume::new(0);
    let db = options().create_on(Arc::new(volume.clone()), "t.duramen")?;
    let mut durable = 0;
    for key in 0..60 {
        let durability = [Durability::None, Durability::Interval, Durability::Commit][(key * 7 % 10 / 4) as usize];
        put_one(&db, key, durability)?;
        if durability == Durability::Commit {
            durable = key + 1;
        }
        for choice in [CutChoice::DropUnsynced, CutChoice::Random(u64::from(key)), CutChoice::KeepAll] {
            let state = volume.crash(Cut { event: volume.events(), choice });
            let found = keys(&options().open_on(Arc::new(state), "t.duramen")?)?;
            assert!((durable..=key + 1).contains(&found), "{found} keys after {key}, {durable} durable, {choice:?}");
        }
    }
    Ok(())
}

#[test]
fn after_a_failed_sync_nothing_is_acknowledged_and_the_handle_says_so() -> Result<()> {
    let volume = FailingVolume::new(3);
    let db = options().create_on(Arc::new(volume.clone()), "t.duramen")?;
    (0..10).try_for_each(|key| put_one(&db, key, Durability::Commit))?;
    put_one(&db, 10, Durability::None)?;
    let before = db.begin_read()?;
    volume.inject(Fault::FailSync, Trigger::once());
    assert!(matches!(put_one(&db, 11, Durability::Commit), Err(Error::Poisoned { .. })));
    for durability in [Durability::Commit, Durability::Interval, Durability::None] {
        let refused = put_one(&db, 12, durability);
        assert!(matches!(refused, Err(Error::Poisoned { .. })), "{refused:?}");
    }
    assert!(matches!(db.checkpoint(), Err(Error::Poisoned { .. })));
    // Visible commits stay visible, and commits that were not acknowledged are not visible.
    assert_eq!(keys(&db)?, 11);
    assert_eq!(before.open_table(ACCOUNTS)?.len(), 11);
    drop((before, db));
    for choice in [CutChoice::DropUnsynced, CutChoice::KeepAll, CutChoice::Random(1), CutChoice::Random(2)] {
        let state = volume.crash(Cut { event: volume.events(), choice });
        let found = keys(&options().open_on(Arc::new(state), "t.duramen")?)?;
        assert!((10..=12).contains(&found), "{found} keys after {choice:?}");
    }
    // Without a cut the process may go on with a new handle.
    let db = options().open_on(Arc::new(volume), "t.duramen")?;
    let found = keys(&db)?;
    put_one(&db, found, Durability::Commit)?;
    assert_eq!(keys(&db)?, found + 1);
    Ok(())
}

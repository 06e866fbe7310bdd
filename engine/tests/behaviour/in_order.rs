//! Commits of keys in ascending order append many entries together. Every snapshot keeps its content, whatever other
//! changes are made.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

use duramen::{Database, Durability, ReadTransaction, Result, TableDef};
use proptest::prelude::*;
use std::collections::BTreeMap;

const KEYS: TableDef<u32, ()> = TableDef::new("keys");
const WITH_VALUES: TableDef<u32, u64> = TableDef::new("with values");
const NAMES: TableDef<&str, &str> = TableDef::new("names");

/// Writes of one transaction: so many keys from the first on, so far from each other; backwards; removals of keys; one
/// more key at the end.
#[derive(Clone, Debug)]
struct Writes {
    first: u32,
    count: u32,
    stride: u32,
    backwards: bool,
    removed: Vec<u32>,
    odd: Option<u32>,
}

fn writes() -> impl Strategy<Value = Writes> {
    let rest =
        (prop::bool::weighted(0.2), prop::collection::vec(0u32..6000, 0..3), prop::option::weighted(0.2, 0u32..6000));
    (0u32..6000, 0u32..900, 1u32..5, prop::bool::weighted(0.3), rest).prop_map(
        |(first, count, stride, removes, (backwards, mut removed, odd))| {
            removed.truncate(if removes { 3 } else { 0 });
            Writes { first, count, stride, backwards, removed, odd }
        },
    )
}

type Model = BTreeMap<u32, u64>;

/// Longer every turn: what is written over makes the leaf split that others are appended to.
fn name(turn: u64) -> String {
    "x".repeat(17 * turn as usize)
}

fn write(db: &Database, model: &mut Model, writes: &Writes, turn: u64) -> Result<()> {
    let mut keys: Vec<u32> = (0..writes.count).map(|n| writes.first + n * writes.stride).collect();
    if writes.backwards {
        keys.reverse();
    }
    keys.extend(writes.odd);
    let tx = db.begin_write()?;
    {
        let (mut alone, mut valued) = (tx.open_table(KEYS)?, tx.open_table(WITH_VALUES)?);
        let mut names = tx.open_table(NAMES)?;
        for key in keys {
            alone.put(key, ())?;
            valued.put(key, turn)?;
            names.put(format!("{key:08}").as_str(), name(turn).as_str())?;
            model.insert(key, turn);
        }
        for key in &writes.removed {
            alone.remove(*key)?;
            valued.remove(*key)?;
            names.remove(format!("{key:08}").as_str())?;
            model.remove(key);
        }
        assert_eq!(
            (alone.len()?, valued.len()?, names.len()?),
            (model.len() as u64, model.len() as u64, model.len() as u64)
        );
    }
    tx.commit()
}

fn check(seen: &ReadTransaction, model: &Model) -> Result<()> {
    let (alone, valued, names) = (seen.open_table(KEYS)?, seen.open_table(WITH_VALUES)?, seen.open_table(NAMES)?);
    assert_eq!((alone.len(), valued.len()), (model.len() as u64, model.len() as u64));
    assert!(alone.iter().map(|entry| entry.unwrap().0.value()).eq(model.keys().copied()));
    let entries = valued.iter().map(Result::unwrap).map(|(key, turn)| (key.value(), turn.value()));
    assert!(entries.eq(model.iter().map(|(key, turn)| (*key, *turn))));
    let named = names.iter().map(Result::unwrap).map(|(key, turn)| (key.value().to_owned(), turn.value().to_owned()));
    assert!(named.eq(model.iter().map(|(key, turn)| (format!("{key:08}"), name(*turn)))));
    for key in (0..10_000).step_by(97) {
        assert_eq!(alone.contains_key(key)?, model.contains_key(&key));
        assert_eq!(valued.get(key)?.map(|turn| turn.value()), model.get(&key).copied());
    }
    Ok(())
}

#[test]
fn many_keys_in_order_in_one_transaction_are_all_there() -> Result<()> {
    const LONG: TableDef<u64, ()> = TableDef::new("long");
    const MANY: u64 = 400_000;
    let folder = tempfile::tempdir().unwrap();
    for db in [Database::in_memory()?, Database::create(folder.path().join("many"))?] {
        let write = |keys: std::ops::Range<u64>, odd: Option<u64>| -> Result<()> {
            let tx = db.begin_write()?;
            let mut table = tx.open_table(LONG)?;
            for key in keys.chain(odd) {
                table.put(key, ())?;
            }
            drop(table);
            tx.commit()
        };
        write(0..10, None)?;
        let before = db.begin_read()?;
        write(10..MANY, None)?;
        // More than lies side by side without notes, and then one that is out of order.
        write(MANY..2 * MANY, Some(3))?;
        let table = db.begin_read()?.open_table(LONG)?;
        assert_eq!(table.len(), 2 * MANY);
        assert!(table.iter().map(|entry| entry.unwrap().0.value()).eq(0..2 * MANY));
        assert_eq!(before.open_table(LONG)?.len(), 10);
        assert!(before.open_table(LONG)?.iter().map(|entry| entry.unwrap().0.value()).eq(0..10));
        drop(before);
        assert!(db.verify(|_| ())?.findings.is_empty());
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn snapshots_stay_the_same_while_entries_are_added_in_order(
        all in prop::collection::vec(writes(), 1..10),
        shift in 9u32..15,
        in_memory: bool,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("in order");
        let options = Database::builder().durability(Durability::None).background(false);
        let mut db = match in_memory {
            true => options.page_size(1 << shift).in_memory().unwrap(),
            false => options.page_size(4096).create(&path).unwrap(),
        };
        let (mut model, mut snapshots) = (Model::new(), Vec::new());
        for (writes, turn) in all.iter().zip(1..) {
            write(&db, &mut model, writes, turn).unwrap();
            if turn % 3 != 0 {
                snapshots.push((db.begin_read().unwrap(), model.clone()));
            }
        }
        for (seen, model) in snapshots {
            check(&seen, &model).unwrap();
        }
        if !in_memory {
            drop(db);
            db = Database::open(&path).unwrap();
        }
        check(&db.begin_read().unwrap(), &model).unwrap();
        prop_assert!(db.verify(|_| ()).unwrap().findings.is_empty());
    }
}

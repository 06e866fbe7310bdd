//! Ranges that are read from both ends in turn, with and without copies of the entries. Each entry is returned once and
//! in order, in every layout: in a snapshot, in a snapshot that is older than a commit, and in a writing transaction.

use duramen::db::Table;
use duramen::{Database, Result, TableDef, TableOptions};
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;

const TABLE: TableDef<&[u8], u64> = TableDef::new("t");
const LAYOUTS: [&str; 8] = ["plain", "head", "db2", "myisam", "wiredtiger", "wiredtiger-best", "pkb", "pkb-heap"];

type Model = BTreeMap<Vec<u8>, u64>;

/// Reads a range to its end, by turns from the back, from the front, and from the front without copying.
macro_rules! read_by_turns {
    ($range:expr, $expected:expr, $turns:expr) => {{
        let mut range = $range;
        let mut expected: VecDeque<(Vec<u8>, u64)> = $expected;
        for turn in $turns {
            let (wanted, found) = match turn % 4 {
                0 => {
                    (expected.pop_back(), range.next_back().transpose()?.map(|(k, v)| (k.value().to_vec(), v.value())))
                }
                1 => (expected.pop_front(), range.next().transpose()?.map(|(k, v)| (k.value().to_vec(), v.value()))),
                _ => (expected.pop_front(), range.next_with(|key, value| (key.to_vec(), value))?),
            };
            assert_eq!(found, wanted);
        }
        while let Some(found) = range.next_with(|key, value| (key.to_vec(), value))? {
            assert_eq!(Some(found), expected.pop_front());
        }
        assert_eq!(expected, VecDeque::new());
        assert!(range.next_back().is_none() && range.next().is_none());
    }};
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        9 => (0u16..600).prop_map(|number| format!("common/{number:03}").into_bytes()),
        1 => prop::collection::vec(b'a'..b'd', 0..150),
    ]
}

fn bound() -> impl Strategy<Value = Bound<Vec<u8>>> {
    prop_oneof![
        2 => Just(Bound::Unbounded),
        1 => key().prop_map(Bound::Included),
        1 => key().prop_map(Bound::Excluded),
    ]
}

fn as_slices(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    bound.as_ref().map(Vec::as_slice)
}

/// The entries of a model in a range; none if the range ends before it begins.
fn within(model: &Model, lower: &Bound<Vec<u8>>, upper: &Bound<Vec<u8>>) -> VecDeque<(Vec<u8>, u64)> {
    let above = |key: &Vec<u8>| match lower {
        Bound::Unbounded => true,
        Bound::Included(lower) => key >= lower,
        Bound::Excluded(lower) => key > lower,
    };
    let below = |key: &Vec<u8>| match upper {
        Bound::Unbounded => true,
        Bound::Included(upper) => key <= upper,
        Bound::Excluded(upper) => key < upper,
    };
    model.iter().filter(|(key, _)| above(key) && below(key)).map(|(key, value)| (key.clone(), *value)).collect()
}

fn write(
    table: &mut Table<'_, &'static [u8], u64>,
    model: &mut Model,
    changes: &[(Vec<u8>, Option<u64>)],
) -> Result<()> {
    for (key, value) in changes {
        match value {
            Some(value) => {
                table.put(key.as_slice(), *value)?;
                model.insert(key.clone(), *value);
            }
            None => {
                table.remove(key.as_slice())?;
                model.remove(key);
            }
        }
    }
    Ok(())
}

fn commit(db: &Database, model: &mut Model, changes: &[(Vec<u8>, Option<u64>)]) -> Result<()> {
    let tx = db.begin_write()?;
    write(&mut tx.open_table(TABLE)?, model, changes)?;
    tx.commit()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn each_entry_of_a_range_comes_once_from_either_end(
        layout in 0..LAYOUTS.len(),
        page_size in prop::sample::select(vec![512usize, 4096]),
        first in prop::collection::vec((key(), any::<u64>().prop_map(Some)), 0..600),
        then in prop::collection::vec((key(), any::<Option<u64>>()), 0..60),
        own in prop::collection::vec((key(), any::<Option<u64>>()), 0..60),
        (lower, upper) in (bound(), bound()),
        turns in prop::collection::vec(any::<u8>(), 0..700),
    ) {
        let by_turns = || -> Result<()> {
            let db = Database::builder().page_size(page_size).in_memory()?;
            let keys = LAYOUTS[layout].parse().expect("a layout");
            let tx = db.begin_write()?;
            let options = TableOptions { keys: Some(keys), ..TableOptions::default() };
            drop(tx.create_untyped(TABLE.name(), "bytes", "u64", options)?);
            tx.commit()?;
            let mut model = Model::new();
            commit(&db, &mut model, &first)?;
            let (before, overtaken) = (model.clone(), db.begin_read()?.open_table(TABLE)?);
            let range = || (as_slices(&lower), as_slices(&upper));
            read_by_turns!(overtaken.range(range()), within(&before, &lower, &upper), &turns);
            commit(&db, &mut model, &then)?;
            read_by_turns!(overtaken.range(range()), within(&before, &lower, &upper), &turns);
            let now = db.begin_read()?.open_table(TABLE)?;
            read_by_turns!(now.range(range()), within(&model, &lower, &upper), &turns);
            let tx = db.begin_write()?;
            let mut table = tx.open_table(TABLE)?;
            write(&mut table, &mut model, &own)?;
            read_by_turns!(table.range(range()), within(&model, &lower, &upper), &turns);
            Ok(())
        };
        by_turns().expect("no error in memory");
    }
}

/// Cursors of one thread take over each other's memory: nothing of what the one before saw may show.
#[test]
fn cursors_of_different_databases_reuse_buffers_without_leaking_keys() {
    let of = |size: usize, from: u32, long: usize| {
        let db = Database::builder().page_size(size).in_memory().unwrap();
        let tx = db.begin_write().unwrap();
        let mut table = tx.open_table(TABLE).unwrap();
        let all: Vec<Vec<u8>> = (from..from + 300).map(|n| [&n.to_be_bytes()[..], &vec![7; long]].concat()).collect();
        for key in &all {
            table.put(key.as_slice(), 1).unwrap();
        }
        // Not there yet for anybody else: its cursor sees the transaction's own writes alone.
        let mine: Vec<Vec<u8>> = table.iter().map(|entry| entry.unwrap().0.value().to_vec()).collect();
        assert_eq!(mine, all);
        drop(table);
        tx.commit().unwrap();
        (db, all)
    };
    let bases = [of(512, 0, 3), of(16384, 1000, 5000), of(4096, 500, 900), of(512, 90, 0)];
    let tables: Vec<_> = bases.iter().map(|(db, _)| db.begin_read().unwrap().open_table(TABLE).unwrap()).collect();
    for turn in 0..bases.len() * 3 {
        let (here, there) = (turn % bases.len(), turn * 7 % 3);
        let keys = |at: usize| tables[at].iter().map(|entry| entry.unwrap().0.value().to_vec());
        // Two at once, one of them given up halfway.
        let mut other = keys(there);
        assert_eq!(other.by_ref().take(40).collect::<Vec<_>>(), bases[there].1[..40]);
        assert_eq!(keys(here).collect::<Vec<_>>(), bases[here].1);
        assert_eq!(keys(here).rev().collect::<Vec<_>>(), bases[here].1.iter().rev().cloned().collect::<Vec<_>>());
        assert_eq!(other.next().as_ref(), bases[there].1.get(40));
    }
}

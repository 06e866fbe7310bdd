//! Promise: a database, in a file or in memory, behaves like one `BTreeMap` for each table, for any sequence of
//! commits, aborts, range removals, snapshots, checkpoints and reopenings, with a cache that is much smaller than the
//! data.

use crate::workload::documents::{DOCUMENTS, document, put};
use crate::workload::layouts;
use crate::workload::stores::STORES;
use duramen::db::types::{Separators, TableOptions};
use duramen::db::{Compression, CompressionPlan, Overflow, StoreKind, Strategy as PlanStrategy, Target};
use duramen::{Database, Durability, Result, TableDef};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::Bound;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

#[derive(Clone, Debug)]
enum Op {
    Put(Vec<u8>, Vec<u8>),
    Remove(Vec<u8>),
    RemoveRange(Vec<u8>, Vec<u8>),
    Commit,
    Abort,
    Snapshot,
    DropSnapshot(prop::sample::Index),
    Checkpoint,
    Reopen,
    Maintain,
    Compact,
    /// A compaction that may train a dictionary for the table, or takes its dictionary away.
    Dictionary(bool),
}

/// Keys from a small space, so that they meet again: short ones, ones with a long common start, and a few huge ones.
fn key() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => (0u16..2000).prop_map(|n| n.to_be_bytes().to_vec()),
        4 => (0u16..500).prop_map(|n| format!("/usr/share/doc/package-{n:04}/copyright").into_bytes()),
        1 => (0u8..12, 900usize..4000).prop_map(|(n, len)| { let mut key = vec![b'x'; len]; key.push(n); key }),
        1 => prop::collection::vec(any::<u8>(), 0..4),
    ]
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        6 => prop::collection::vec(any::<u8>(), 0..40),
        1 => (any::<u8>(), 500usize..9000).prop_map(|(byte, len)| vec![byte; len]),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        60 => (key(), value()).prop_map(|(key, value)| Op::Put(key, value)),
        20 => key().prop_map(Op::Remove),
        2 => (key(), key()).prop_map(|(a, b)| Op::RemoveRange(a.clone().min(b.clone()), a.max(b))),
        6 => Just(Op::Commit),
        9 => step(),
    ]
}

/// The operations between transactions, or instead of committing one.
fn step() -> impl Strategy<Value = Op> {
    prop_oneof![
        1 => Just(Op::Abort),
        2 => Just(Op::Snapshot),
        2 => any::<prop::sample::Index>().prop_map(Op::DropSnapshot),
        1 => Just(Op::Checkpoint),
        1 => Just(Op::Reopen),
        1 => Just(Op::Maintain),
        1 => Just(Op::Compact),
    ]
}

/// A table's types and options.
#[derive(Clone, Copy, Debug)]
struct ModelTable {
    keys: &'static str,
    values: &'static str,
    options: TableOptions,
}

impl ModelTable {
    /// Keys and values of any length.
    fn bytes(options: TableOptions) -> ModelTable {
        ModelTable { keys: "bytes", values: "bytes", options }
    }

    /// Integers in blocks of any codec and size, with each kind of record list.
    fn blocks() -> impl Strategy<Value = ModelTable> {
        let keys = prop::sample::select(vec!["u32", "u64", "i32", "i64"]);
        let values = prop::sample::select(vec!["()", "u32", "bytes"]);
        (keys, values, prop::sample::select(layouts::of_blocks())).prop_map(|(keys, values, options)| ModelTable {
            keys,
            values,
            options,
        })
    }

    /// The encoding of an integer key.
    fn key(&self, number: u64) -> Vec<u8> {
        number.to_be_bytes()[if self.keys.ends_with("64") { 0 } else { 4 }..].to_vec()
    }

    /// A value as these values are.
    fn value(&self, mut value: Vec<u8>) -> Vec<u8> {
        match self.values {
            "()" => value.clear(),
            "u32" => value.resize(4, 7),
            _ => {}
        }
        value
    }
}

/// Integers that meet again, most of them near each other: what keeps blocks full and lets some become wide.
fn integer() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0u64..3000, 2 => (0u64..40).prop_map(|n| n * 0x0101_0101), 1 => any::<u64>()]
}

/// Operations on a table of blocks. Runs of keys are put and removed at once, so that there are many keys.
fn integer_ops(kind: ModelTable) -> impl Strategy<Value = Vec<Op>> {
    let one = move |(key, value): (u64, Vec<u8>)| vec![Op::Put(kind.key(key), kind.value(value))];
    let run_of_keys = move |(first, count, step, value): (u64, u64, u64, Vec<u8>)| {
        let value = kind.value(value);
        (0..count).map(|n| Op::Put(kind.key(first + n * step), value.clone())).collect()
    };
    let ops = prop_oneof![
        30 => (integer(), value()).prop_map(one),
        6 => (0u64..3000, 1u64..400, 1u64..5, prop::collection::vec(any::<u8>(), 0..10)).prop_map(run_of_keys),
        20 => integer().prop_map(move |key| vec![Op::Remove(kind.key(key))]),
        4 => (0u64..3000, 1u64..60).prop_map(move |(first, count)| {
            (first..first + count).map(|key| Op::Remove(kind.key(key))).collect()
        }),
        2 => (integer(), integer()).prop_map(move |(a, b)| {
            let [a, b] = [a, b].map(|key| kind.key(key));
            vec![Op::RemoveRange(a.clone().min(b.clone()), a.max(b))]
        }),
        8 => Just(vec![Op::Commit]),
        12 => step().prop_map(|op| vec![op]),
    ];
    prop::collection::vec(ops, 1..200).prop_map(|ops| ops.concat())
}

/// Keys of a table of documents, at most.
const DOCUMENT_KEYS: u64 = 2000;

/// Operations on a table of documents of several kinds, each of which needs a dictionary of its own.
fn document_ops() -> impl Strategy<Value = Vec<Op>> {
    let put = |key: u64, kind: u64| Op::Put(key.to_be_bytes().to_vec(), document(key, kind).into_bytes());
    let run_of_keys = move |(first, count, step, kind): (u64, u64, u64, u64)| {
        (0..count).map(|n| put((first + n * step) % DOCUMENT_KEYS, kind)).collect()
    };
    let [a, b] = [0..DOCUMENT_KEYS, 0..DOCUMENT_KEYS];
    let ops = prop_oneof![
        10 => (0..DOCUMENT_KEYS, 1u64..700, 1u64..4, 5u64..8).prop_map(run_of_keys),
        6 => (0..DOCUMENT_KEYS, 5u64..8).prop_map(move |(key, kind)| vec![put(key, kind)]),
        6 => (0..DOCUMENT_KEYS).prop_map(|key| vec![Op::Remove(key.to_be_bytes().to_vec())]),
        1 => (a, b).prop_map(|(a, b)| {
            vec![Op::RemoveRange(a.min(b).to_be_bytes().to_vec(), a.max(b).to_be_bytes().to_vec())]
        }),
        6 => Just(vec![Op::Commit]),
        4 => prop::sample::select(vec![true, true, false]).prop_map(|wish| vec![Op::Dictionary(wish)]),
        9 => step().prop_map(|op| vec![op]),
    ];
    prop::collection::vec(ops, 1..40).prop_map(|ops| ops.concat())
}

/// Everything a reader can ask, against the model.
fn agrees(tx: &duramen::ReadTransaction, model: &Model) -> Result<()> {
    let table = match tx.open_untyped("t") {
        Ok(table) => table,
        Err(duramen::Error::NoTable { .. }) => {
            assert!(model.is_empty());
            return Ok(());
        }
        Err(other) => return Err(other),
    };
    assert_eq!(table.len(), model.len() as u64);
    let forward: Vec<_> = table.range(..).collect::<Result<_>>()?;
    let expected: Vec<_> = model.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
    assert!(forward == expected, "{} entries forward, {} expected", forward.len(), expected.len());
    let mut backward: Vec<_> = table.range(..).rev().collect::<Result<_>>()?;
    backward.reverse();
    assert!(backward == expected, "{} entries backward, {} expected", backward.len(), expected.len());
    for (key, value) in model.iter().step_by(7) {
        assert_eq!(table.get(key)?.as_ref(), Some(value));
        let mut other = key.clone();
        match table.info().key_type.as_str() {
            "bytes" => other.push(1),
            _ => other.iter_mut().rev().take(1).for_each(|last| *last ^= 1),
        }
        assert_eq!(table.get(&other)?.as_ref(), model.get(&other));
    }
    let bounds = (Bound::Excluded([0u8, 200].as_slice()), Bound::Included([3u8, 1].as_slice()));
    let some: Vec<_> = table.range(bounds).collect::<Result<_>>()?;
    let owned = (Bound::Excluded(vec![0u8, 200]), Bound::Included(vec![3u8, 1]));
    let expected: Vec<_> = model.range(owned).map(|(k, v)| (k.clone(), v.clone())).collect();
    assert_eq!(some, expected);
    Ok(())
}

struct Run {
    folder: Option<tempfile::TempDir>,
    store: StoreKind,
    page_size: usize,
    table: ModelTable,
    db: Option<Database>,
    committed: Model,
    snapshots: Vec<(duramen::ReadTransaction, Model)>,
}

impl Run {
    fn new(page_size: usize, in_memory: bool, mut table: ModelTable) -> Run {
        if page_size < 4096 {
            table.options.target = Target::Fit;
        }
        let folder = (!in_memory).then(|| tempfile::tempdir().unwrap());
        Run::start(folder, StoreKind::Table, page_size, table)
    }

    fn start(folder: Option<tempfile::TempDir>, store: StoreKind, page_size: usize, table: ModelTable) -> Run {
        let mut run = Run { folder, store, page_size, table, db: None, committed: Model::new(), snapshots: Vec::new() };
        let options = run.options();
        run.db = Some(match &run.folder {
            Some(folder) => options.create(folder.path().join("m.duramen")).unwrap(),
            None => options.in_memory().unwrap(),
        });
        run
    }

    /// A table of documents in a file, so many that a dictionary pays, and trained.
    fn with_dictionary(store: StoreKind) -> Result<Run> {
        // The store `shadow` saves whole blocks, so it needs larger pages.
        let (page_size, keys, kind) = (if store == StoreKind::Table { 4096 } else { 8192 }, 1500, 5);
        let table = ModelTable { keys: "u64", values: "str", options: DOCUMENTS.options() };
        let mut run = Run::start(Some(tempfile::tempdir().unwrap()), store, page_size, table);
        run.transaction(&[], true)?;
        put(run.db(), TableDef::new("t"), 0..keys, kind)?;
        run.committed = (0..keys).map(|key| (key.to_be_bytes().to_vec(), document(key, kind).into_bytes())).collect();
        run.db().compact(|_| ())?;
        let all = run.db().dictionaries()?;
        assert!(all.len() == 1 && all[0].is_used, "{store:?}: {all:?}");
        Ok(run)
    }

    fn options(&self) -> duramen::Builder {
        Database::builder()
            .store(self.store)
            .page_size(self.page_size)
            .cache(0)
            .durability(Durability::None)
            .background(false)
    }

    fn db(&self) -> &Database {
        self.db.as_ref().unwrap()
    }

    fn transaction(&mut self, ops: &[Op], commit: bool) -> Result<()> {
        let mut model = self.committed.clone();
        let tx = self.db().begin_write()?;
        {
            let mut table = match tx.exists("t")? {
                true => tx.open_untyped("t")?,
                false => tx.create_untyped("t", self.table.keys, self.table.values, self.table.options)?,
            };
            for op in ops {
                match op {
                    Op::Put(key, value) => {
                        assert_eq!(table.insert(key, value)?, model.insert(key.clone(), value.clone()))
                    }
                    Op::Remove(key) => assert_eq!(table.remove(key)?, model.remove(key)),
                    Op::RemoveRange(from, to) => {
                        table.remove_range(from.as_slice()..to.as_slice());
                        model.retain(|key, _| key < from || key >= to);
                    }
                    _ => {}
                }
            }
            assert_eq!(table.len()?, model.len() as u64);
            let seen: Model = table.range(..).collect::<Result<_>>()?;
            assert!(seen == model, "own writes: {} seen, {} expected", seen.len(), model.len());
            let back: Model = table.range(..).rev().collect::<Result<_>>()?;
            assert!(back == model, "own writes backward");
        }
        if commit {
            tx.commit()?;
            self.committed = model;
        }
        Ok(())
    }

    fn step(&mut self, op: &Op) -> Result<()> {
        match op {
            Op::Snapshot => {
                let snapshot = self.db().begin_read()?;
                self.snapshots.push((snapshot, self.committed.clone()));
            }
            Op::DropSnapshot(index) if !self.snapshots.is_empty() => {
                let at = index.index(self.snapshots.len());
                self.snapshots.remove(at);
            }
            Op::Checkpoint => self.db().checkpoint()?,
            Op::Maintain => while self.db().maintain()? {},
            Op::Compact => drop(self.db().compact(|_| ())?),
            Op::Dictionary(wish) => {
                let plan = CompressionPlan::new(PlanStrategy::All, Compression::Zstd(3)).dictionary(*wish);
                self.db().compact_with(&plan, |_| ())?;
            }
            Op::Reopen => {
                if let Some(folder) = &self.folder {
                    self.snapshots.clear();
                    self.db = None;
                    self.db = Some(self.options().open(folder.path().join("m.duramen"))?);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn check(&self) -> Result<()> {
        let report = self.db().verify(|_| ())?;
        assert!(report.findings.is_empty(), "{:?}", report.findings);
        agrees(&self.db().begin_read()?, &self.committed)?;
        self.snapshots.iter().try_for_each(|(snapshot, model)| agrees(snapshot, model))
    }
}

/// All choices that there are for keys of any length.
fn bytes_table() -> impl Strategy<Value = ModelTable> {
    let keys = layouts::for_keys_of_any_length().into_iter().map(Some).chain([None]);
    let separators = prop_oneof![Just(Separators::Full), Just(Separators::Tail)];
    let compression =
        prop::sample::select(vec![Compression::None, Compression::Lz4, Compression::Zstd(3), Compression::Zlib(6)]);
    let target = prop::sample::select(vec![Target::Fit, Target::Bytes(1024), Target::Bytes(2048)]);
    let overflow = Overflow::Split;
    (prop::sample::select(keys.collect::<Vec<_>>()), separators, compression, target).prop_map(
        move |(keys, separators, compression, target)| {
            let separators = Some(separators);
            ModelTable::bytes(TableOptions {
                keys,
                separators,
                compression,
                target,
                overflow,
                ..TableOptions::default()
            })
        },
    )
}

fn run(ops: &[Op], page_size: usize, in_memory: bool, table: ModelTable) -> Result<()> {
    play(Run::new(page_size, in_memory, table), ops)
}

fn play(mut run: Run, ops: &[Op]) -> Result<()> {
    let mut pending = Vec::new();
    for op in ops {
        match op {
            Op::Put(..) | Op::Remove(_) | Op::RemoveRange(..) => pending.push(op.clone()),
            Op::Commit | Op::Abort => {
                run.transaction(&pending, matches!(op, Op::Commit))?;
                pending.clear();
                run.check()?;
            }
            other => run.step(other)?,
        }
    }
    run.check()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 60, ..ProptestConfig::default() })]

    #[test]
    fn a_database_in_a_file_is_a_map(ops in prop::collection::vec(op(), 1..600), table in bytes_table()) {
        run(&ops, 4096, false, table).unwrap();
    }

    #[test]
    fn a_database_in_memory_is_a_map(
        ops in prop::collection::vec(op(), 1..600), shift in 8u32..14, table in bytes_table(),
    ) {
        run(&ops, 1 << shift, true, table).unwrap();
    }

    #[test]
    fn a_table_of_integers_in_blocks_is_a_map(
        (table, ops) in ModelTable::blocks().prop_flat_map(|kind| (Just(kind), integer_ops(kind))),
        in_memory: bool,
        shift in 9u32..14,
    ) {
        run(&ops, if in_memory { 1 << shift } else { 4096 }, in_memory, table).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3, max_shrink_iters: 60, ..ProptestConfig::default() })]

    #[test]
    fn a_table_with_a_dictionary_is_a_map(ops in document_ops(), store in prop::sample::select(&STORES[..])) {
        play(Run::with_dictionary(store).unwrap(), &ops).unwrap();
    }
}

#[test]
fn a_transaction_larger_than_the_cache_is_whole() -> Result<()> {
    let mut run = Run::new(4096, false, ModelTable::bytes(TableOptions::default()));
    let entries = |from: u32, to: u32| -> Vec<Op> {
        (from..to).map(|n| Op::Put(n.wrapping_mul(2_654_435_761).to_be_bytes().to_vec(), vec![n as u8; 30])).collect()
    };
    run.transaction(&entries(0, 40_000), true)?;
    run.step(&Op::Snapshot)?;
    run.transaction(&entries(20_000, 60_000), true)?;
    run.check()?;
    run.step(&Op::Reopen)?;
    run.check()
}

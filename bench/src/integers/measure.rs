//! The rounds of `duramen-bench integers`. In each round every operation runs once with every table and every
//! reference, one after the other, so that a slow moment affects all of them. Every result is checked. Nothing is
//! printed here.

use super::layout::Layout;
use super::store::{Map, Sorted, Store, Table, TableKey, fold};
use super::{Args, Fill, KeyType};
use crate::Result;
use crate::clock::thread_seconds;
use crate::random::Random;
use crate::stats::median;
use clap::ValueEnum;
use std::collections::BTreeMap;

/// A timed operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Operation {
    /// Point lookups of neighbouring keys, in order.
    LookupInOrder,
    /// Point lookups at random.
    LookupRandom,
    /// All keys one by one.
    Cursor,
    /// SUM of the keys.
    Sum,
    /// AVERAGE of the keys above half the greatest.
    Average,
    /// COUNT of all keys.
    Count,
    /// COUNT of the keys above half the greatest.
    CountAbove,
    /// Inserts in order, into an empty table.
    InsertInOrder,
    /// Inserts at random, into an empty table.
    InsertRandom,
}

impl Operation {
    /// All operations.
    pub(super) fn all() -> Vec<Operation> {
        Operation::value_variants().to_vec()
    }

    /// The name of its figure in JSON and CSV.
    pub(super) fn field(self) -> &'static str {
        match self {
            Operation::LookupInOrder => "lookup_in_order_ns",
            Operation::LookupRandom => "lookup_random_ns",
            Operation::Cursor => "cursor_ns",
            Operation::Sum => "sum_ns",
            Operation::Average => "average_ns",
            Operation::Count => "count_ns",
            Operation::CountAbove => "count_above_ns",
            Operation::InsertInOrder => "insert_in_order_ns",
            Operation::InsertRandom => "insert_random_ns",
        }
    }
}

/// Nanoseconds for each key of each measured operation, as the median of the rounds.
pub(super) type Times = BTreeMap<Operation, f64>;

/// One layout with one number of keys.
pub(super) struct Row {
    pub(super) layout: Layout,
    pub(super) keys: usize,
    pub(super) bytes_per_key: f64,
    /// The sum and the count of the keys, from the table.
    pub(super) sum: u128,
    pub(super) count: u64,
    /// The part of the keys that AVERAGE uses.
    pub(super) upper_part: f64,
    pub(super) times: Times,
    /// The times of the sorted `Vec` and of the `BTreeMap`.
    pub(super) vec: Times,
    pub(super) btreemap: Times,
}

impl Row {
    /// The first row of plain keys in blocks with the same number of keys, if there is one.
    pub(super) fn plain<'r>(&self, rows: &'r [Row]) -> Option<&'r Row> {
        rows.iter().find(|other| other.layout.name() == "plain" && other.keys == self.keys)
    }
}

/// The keys of a run, and the expected results.
struct Workload {
    keys: Vec<u32>,
    /// The same in the order in which tables are filled, if that is another one.
    mixed: Option<Vec<u32>>,
    /// Existing keys to look up: at random, and neighbours in order.
    random: Vec<u32>,
    ordered: Vec<u32>,
    /// Keys to insert, in order and at random.
    inserts: Vec<u32>,
    shuffled: Vec<u32>,
    middle: u32,
    sum: u128,
    folded: u64,
    upper: u64,
    average: f64,
}

impl Workload {
    fn new(args: &Args, n: usize) -> Result<Workload> {
        let mut random = Random::new(args.seed);
        let keys = args.data.keys(n, &mut random)?;
        let Some(greatest) = keys.last().copied() else { return Err("there are no keys".into()) };
        let middle = greatest / 2;
        let above = &keys[keys.partition_point(|key| *key <= middle)..];
        let average = above.iter().map(|key| u128::from(*key)).sum::<u128>() as f64 / above.len() as f64;
        let lookups = (0..args.lookups).map(|_| keys[random.below(keys.len())]).collect();
        let inserts = keys[..keys.len().min(args.inserts)].to_vec();
        let mut shuffled = inserts.clone();
        random.shuffle(&mut shuffled);
        let mixed = (args.fill == Fill::Random).then(|| {
            let mut mixed = keys.clone();
            random.shuffle(&mut mixed);
            mixed
        });
        Ok(Workload {
            mixed,
            random: lookups,
            ordered: keys[..keys.len().min(args.lookups)].to_vec(),
            inserts,
            shuffled,
            middle,
            sum: keys.iter().map(|key| u128::from(*key)).sum(),
            folded: keys.iter().fold(0, |all, key| fold(all, u64::from(*key))),
            upper: above.len() as u64,
            average,
            keys,
        })
    }

    /// Runs an operation that only reads. Returns the number of keys that count for it, and whether the result was
    /// right.
    fn read(&self, store: &dyn Store, operation: Operation) -> Result<(usize, bool)> {
        let n = self.keys.len();
        Ok(match operation {
            Operation::LookupInOrder => (self.ordered.len(), store.lookup(&self.ordered)? == self.ordered.len()),
            Operation::LookupRandom => (self.random.len(), store.lookup(&self.random)? == self.random.len()),
            Operation::Cursor => (n, store.cursor()? == self.folded),
            Operation::Sum => (n, store.sum()? == self.sum),
            Operation::Average => {
                let average = store.average_above(self.middle)?;
                (n, (average - self.average).abs() <= self.average * 1e-12)
            }
            Operation::Count => (n, store.count()? == n as u64),
            Operation::CountAbove => (n, store.count_above(self.middle)? == self.upper),
            Operation::InsertInOrder | Operation::InsertRandom => (1, false),
        })
    }

    /// Nanoseconds for each key of an operation that only reads. It is repeated for the minimum time.
    fn time(&self, store: &dyn Store, operation: Operation) -> Result<f64> {
        let (start, mut keys) = (thread_seconds(), 0);
        loop {
            let (done, right) = self.read(store, operation)?;
            if !right {
                return Err(format!("wrong answer: {operation:?}").into());
            }
            keys += done;
            let seconds = thread_seconds() - start;
            if seconds >= MIN_SECONDS {
                return Ok(seconds * 1e9 / keys as f64);
            }
        }
    }

    /// Fails if a table finds keys that were never inserted.
    fn check_absent(&self, store: &dyn Store) -> Result<()> {
        let beside =
            self.random.iter().map(|key| key.wrapping_add(1)).filter(|key| self.keys.binary_search(key).is_err());
        let absent: Vec<u32> = beside.take(1000).collect();
        match store.lookup(&absent)? {
            0 => Ok(()),
            found => Err(format!("wrong answer: {found} keys found that were never inserted").into()),
        }
    }
}

/// The minimum time of a measurement.
const MIN_SECONDS: f64 = 0.002;
/// The number of keys that a contestant inserts before it is the turn of the next one.
const TURN: usize = 50_000;

/// A table or a reference, with its rounds so far.
struct Entrant {
    name: String,
    layout: Option<Layout>,
    store: Box<dyn Store>,
    rounds: BTreeMap<Operation, Vec<f64>>,
}

impl Entrant {
    fn named_error(&self, cause: Box<dyn std::error::Error + Send + Sync>) -> Box<dyn std::error::Error + Send + Sync> {
        format!("{}: {cause}", self.name).into()
    }

    fn times(&mut self) -> Times {
        std::mem::take(&mut self.rounds).into_iter().map(|(operation, rounds)| (operation, median(rounds))).collect()
    }
}

/// Measures every layout with `n` keys.
pub(super) fn all(args: &Args, n: usize) -> Result<Vec<Row>> {
    match args.keys {
        KeyType::U32 => measure::<u32>(args, n),
        KeyType::U64 => measure::<u64>(args, n),
    }
}

fn measure<K: TableKey + 'static>(args: &Args, n: usize) -> Result<Vec<Row>> {
    let work = Workload::new(args, n)?;
    let mut entrants = Vec::new();
    let mut sizes = Vec::new();
    for layout in args.layouts() {
        let mut table = Table::<K>::create(layout, args.page_bytes(), args.commit, work.keys.len())?;
        table.insert(work.mixed.as_ref().unwrap_or(&work.keys))?;
        sizes.push(table.bytes_per_key()?);
        let (name, store) = (layout.to_string(), Box::new(table) as Box<dyn Store>);
        entrants.push(Entrant { name, layout: Some(layout), store, rounds: BTreeMap::new() });
    }
    let map = Map(if args.wants_map() { work.keys.iter().map(|key| (*key, ())).collect() } else { BTreeMap::new() });
    let references: [(&str, Box<dyn Store>); 2] =
        [("vec", Box::new(Sorted(work.keys.clone()))), ("btreemap", Box::new(map))];
    entrants.extend(references.map(|(name, store)| Entrant {
        name: name.to_owned(),
        layout: None,
        store,
        rounds: BTreeMap::new(),
    }));
    for entrant in entrants.iter().filter(|entrant| entrant.layout.is_some()) {
        work.check_absent(&*entrant.store).map_err(|cause| entrant.named_error(cause))?;
    }
    for _ in 0..args.rounds {
        for &operation in &args.operations {
            round::<K>(args, &work, operation, &mut entrants)?;
        }
    }
    rows(&work, entrants, sizes)
}

/// Runs one operation once with each entrant.
fn round<K: TableKey + 'static>(
    args: &Args,
    work: &Workload,
    operation: Operation,
    entrants: &mut [Entrant],
) -> Result<()> {
    let times = match operation {
        Operation::InsertInOrder => insert::<K>(args, &work.inserts, entrants)?,
        Operation::InsertRandom => insert::<K>(args, &work.shuffled, entrants)?,
        // The map is only measured for lookups and inserts.
        reading => {
            let lookup = matches!(reading, Operation::LookupInOrder | Operation::LookupRandom);
            let time = |entrant: &Entrant| match entrant.name.as_str() {
                "btreemap" if !lookup => Ok(None),
                _ => work.time(&*entrant.store, reading).map(Some).map_err(|cause| entrant.named_error(cause)),
            };
            entrants.iter().map(time).collect::<Result<Vec<_>>>()?
        }
    };
    for (entrant, time) in entrants.iter_mut().zip(times) {
        if let Some(time) = time {
            entrant.rounds.entry(operation).or_default().push(time);
        }
    }
    Ok(())
}

/// Nanoseconds for each key of inserting `keys` into new stores, in turns; `None` for the `Vec`.
fn insert<K: TableKey + 'static>(args: &Args, keys: &[u32], entrants: &[Entrant]) -> Result<Vec<Option<f64>>> {
    let mut stores = Vec::new();
    for entrant in entrants {
        let store: Option<Box<dyn Store>> = match (entrant.layout, entrant.name.as_str()) {
            (Some(layout), _) => {
                Some(Box::new(Table::<K>::create(layout, args.page_bytes(), args.commit, keys.len())?))
            }
            (None, "btreemap") => Some(Box::new(Map(BTreeMap::new()))),
            (None, _) => None,
        };
        stores.push(store.map(|store| (store, 0.0)));
    }
    for keys in keys.chunks(TURN) {
        for (store, seconds) in stores.iter_mut().flatten() {
            let start = thread_seconds();
            store.insert(keys)?;
            *seconds += thread_seconds() - start;
        }
    }
    let sum = keys.iter().map(|key| u128::from(*key)).sum::<u128>();
    for ((store, _), entrant) in
        stores.iter().zip(entrants).filter_map(|(store, entrant)| Some((store.as_ref()?, entrant)))
    {
        if (store.sum()?, store.count()?, store.lookup(keys)?) != (sum, keys.len() as u64, keys.len()) {
            return Err(entrant.named_error("wrong answer: not all inserted keys were found".into()));
        }
    }
    Ok(stores.into_iter().map(|store| store.map(|(_, seconds)| seconds * 1e9 / keys.len() as f64)).collect())
}

fn rows(work: &Workload, mut entrants: Vec<Entrant>, sizes: Vec<f64>) -> Result<Vec<Row>> {
    let references = entrants.split_off(sizes.len());
    let mut references = references.into_iter().map(|mut entrant| entrant.times());
    let (vec, btreemap) = (references.next().unwrap_or_default(), references.next().unwrap_or_default());
    let mut rows = Vec::new();
    for (mut entrant, bytes_per_key) in entrants.into_iter().zip(sizes) {
        let Some(layout) = entrant.layout else { continue };
        rows.push(Row {
            layout,
            keys: work.keys.len(),
            bytes_per_key,
            sum: entrant.store.sum()?,
            count: entrant.store.count()?,
            upper_part: work.upper as f64 / work.keys.len() as f64,
            times: entrant.times(),
            vec: vec.clone(),
            btreemap: btreemap.clone(),
        });
    }
    Ok(rows)
}

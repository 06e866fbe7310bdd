//! Runs a query. Some queries need no leaf. All others read every leaf in the range once, with several threads.
//!
//! In a leaf that has not changed since the snapshot, the block headers answer what they can, and blocks are summed in
//! compressed form. Entries are decoded one by one only if a predicate or a value needs it.

use super::accumulator::{Accumulator, Needs};
use super::number::{Number, NumberType};
use super::{Aggregate, Column, Outcome};
use crate::base::{Error, Result};
use crate::db::ReadOnlyUntypedTable;
use crate::page::{KeyWindow, Page, Record};
use crate::txn::{Cursor, Engine, KeyRange, Latched, ReadView, VisibleEntries, large};
use std::borrow::Cow;
use std::ops::{Bound, Range};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{Builder, ScopedJoinHandle};

/// A filter of entries.
pub(super) struct Filter<'f> {
    /// True if the entry with this key and value is selected.
    pub(super) keep: Box<Keep<'f>>,
    /// The filter uses values, so large values must be read.
    pub(super) reads_values: bool,
}

type Keep<'f> = dyn Fn(&[u8], &[u8]) -> Result<bool> + Sync + 'f;

/// A query, ready to run.
pub(super) struct QueryPlan<'f> {
    pub(super) aggregates: Vec<Aggregate>,
    pub(super) range: KeyRange,
    pub(super) filter: Option<Filter<'f>>,
    pub(super) threads: usize,
    /// The limit of numbers that are kept.
    pub(super) max_numbers: u64,
}

/// The types and needs of both columns.
#[derive(Clone, Copy)]
struct Columns {
    types: [Option<NumberType>; 2],
    needs: [Needs; 2],
}

/// The results of one thread.
struct Totals {
    count: u64,
    accumulators: [Accumulator; 2],
}

impl Totals {
    /// The number of numbers that are kept.
    fn numbers(&self) -> u64 {
        self.accumulators.iter().map(Accumulator::numbers).sum()
    }
}

impl Columns {
    fn of(table: &ReadOnlyUntypedTable, aggregates: &[Aggregate]) -> Columns {
        let mut needs = [Needs::default(); 2];
        for aggregate in aggregates {
            let Some(column) = aggregate.column() else { continue };
            let [key, value] = &mut needs;
            let needs = if column == Column::Key { key } else { value };
            match *aggregate {
                Aggregate::Sum(_) | Aggregate::Average(_) => needs.sum = true,
                Aggregate::Min(_) | Aggregate::Max(_) => needs.extremes = true,
                // Keys are all different.
                Aggregate::CountDistinct(Column::Key) | Aggregate::Count => {}
                Aggregate::CountDistinct(_) | Aggregate::Distinct(_) => needs.distinct = true,
                Aggregate::Top(_, most) => needs.top = needs.top.max(most),
                Aggregate::Bottom(_, most) => needs.bottom = needs.bottom.max(most),
            }
        }
        Columns { types: table.type_names().map(NumberType::named), needs }
    }

    fn found(&self) -> Totals {
        let [key, value] = self.types;
        let [of_key, of_value] = self.needs;
        Totals {
            count: 0,
            accumulators: [Accumulator::new("keys", key, of_key), Accumulator::new("values", value, of_value)],
        }
    }
}

/// Runs the query on a table's snapshot.
pub(super) fn run(table: &ReadOnlyUntypedTable, plan: &QueryPlan<'_>) -> Result<Vec<Outcome>> {
    let columns = Columns::of(table, &plan.aggregates);
    for column in plan.aggregates.iter().filter_map(Aggregate::column) {
        check_column(table, &columns, column)?;
    }
    let found = match shortcut(table, plan, &columns)? {
        Some(found) => found,
        None => by_leaves(table, plan, &columns)?,
    };
    plan.aggregates.iter().map(|aggregate| outcome(aggregate, &found)).collect()
}

/// Fails for a column that does not have numbers.
fn check_column(table: &ReadOnlyUntypedTable, columns: &Columns, column: Column) -> Result<()> {
    let ([key, value], [key_type, value_type]) = (columns.types, table.type_names());
    let (of, part, name) = match column {
        Column::Key => (key, "keys", key_type),
        Column::Value => (value, "values", value_type),
    };
    match of {
        Some(_) => Ok(()),
        None => Err(Error::TableState {
            table: table.name().to_owned(),
            why: format!("its {part} have type {name}, which is not a number: only COUNT(*) is possible"),
        }),
    }
}

/// Counting all, and the extremes of keys, need no more than the catalog and two leaves.
fn shortcut(table: &ReadOnlyUntypedTable, plan: &QueryPlan<'_>, columns: &Columns) -> Result<Option<Totals>> {
    let [key, value] = columns.needs;
    let counted =
        plan.aggregates.iter().any(|aggregate| matches!(aggregate, Aggregate::Count | Aggregate::CountDistinct(_)));
    let all = plan.range == KeyRange::default();
    if plan.filter.is_some() || value.any() || key.sum || key.each() || (counted && !all) {
        return Ok(None);
    }
    let mut found = columns.found();
    found.count = if all { table.len() } else { 0 };
    if let (true, Some(of)) = (key.extremes, columns.types[0]) {
        let (engine, tree, snapshot) = table.source();
        let bounds = plan.range.clone();
        let upper = bounds.upper.map_or(Bound::Unbounded, Bound::Excluded);
        let mut cursor = Cursor::new(engine, *tree, ReadView::Snapshot(snapshot), Bound::Included(bounds.lower), upper);
        let mut keys = Vec::with_capacity(2);
        keys.extend(cursor.next()?.map(|(key, _)| of.read(key)));
        keys.extend(cursor.next_back()?.map(|(key, _)| of.read(key)));
        keys.into_iter().for_each(|key| found.accumulators[0].add_extreme(key));
    }
    Ok(Some(found))
}

fn by_leaves(table: &ReadOnlyUntypedTable, plan: &QueryPlan<'_>, columns: &Columns) -> Result<Totals> {
    let (engine, tree, _) = table.source();
    let parts = shares(plan, engine.dividers(tree, &plan.range)?);
    match of_parts(table, plan, columns, &parts) {
        // Several threads may keep the same number several times. A single thread may need fewer.
        Err(Error::TooManyNumbers { .. }) if parts.len() > 1 => {
            of_parts(table, plan, columns, std::slice::from_ref(&plan.range))
        }
        found => found,
    }
}

/// The totals of the entries in these ranges. Each range has its own thread.
fn of_parts(
    table: &ReadOnlyUntypedTable,
    plan: &QueryPlan<'_>,
    columns: &Columns,
    parts: &[KeyRange],
) -> Result<Totals> {
    let (engine, tree, snapshot) = table.source();
    // A filter is code of the caller, so it runs without the latch of a page.
    let latched = if plan.filter.is_some() { Latched::No } else { Latched::Yes };
    let kept = AtomicU64::new(0);
    let one = |range: &KeyRange| {
        let (filter, found, window) = (plan.filter.as_ref(), columns.found(), KeyWindow::default());
        let mut scan = Scan { engine, columns, filter, found, window };
        let mut known = 0;
        engine.leaves(tree, snapshot, range, latched, &mut |part| {
            scan.part(part)?;
            let numbers = scan.found.numbers();
            let all = kept.fetch_add(numbers - known, Ordering::Relaxed) + numbers - known;
            known = numbers;
            if all > plan.max_numbers { Err(Error::TooManyNumbers { max: plan.max_numbers }) } else { Ok(()) }
        })?;
        Ok(scan.found)
    };
    let founds = side_by_side(parts, Builder::new, &one);
    let mut all = columns.found();
    for found in founds {
        let Totals { count, accumulators } = found?;
        all.count += count;
        for (all, one) in all.accumulators.iter_mut().zip(accumulators) {
            all.join(one);
        }
    }
    Ok(all)
}

/// Calls `one` for each range: for the last one on this thread, and for each other one on a thread of its own, if the
/// system can start it.
fn side_by_side<R: Send>(
    ranges: &[KeyRange],
    builder: fn() -> Builder,
    one: &(impl Fn(&KeyRange) -> R + Sync),
) -> Vec<R> {
    let Some((last, others)) = ranges.split_last() else { return Vec::new() };
    std::thread::scope(|scope| {
        let spawn = |range| builder().spawn_scoped(scope, move || one(range));
        let threads: Vec<_> = others.iter().map(|range| (range, spawn(range))).collect();
        let last = one(last);
        let finish = |(range, thread): (&KeyRange, std::io::Result<ScopedJoinHandle<'_, R>>)| match thread {
            Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(_) => one(range),
        };
        threads.into_iter().map(finish).chain([last]).collect()
    })
}

/// The range cut at some of the dividers, a part for each thread.
fn shares(plan: &QueryPlan<'_>, dividers: Vec<Vec<u8>>) -> Vec<KeyRange> {
    let threads = plan.threads.min(dividers.len() + 1).max(1);
    let cuts = (1..threads).filter_map(|n| dividers.get(n * (dividers.len() + 1) / threads - 1).cloned());
    let mut parts = vec![plan.range.clone()];
    for cut in cuts {
        if let Some(last) = parts.last_mut() {
            let upper = last.upper.replace(cut.clone());
            parts.push(KeyRange { lower: cut, upper });
        }
    }
    parts
}

/// The state of one thread while it reads its leaves.
struct Scan<'s> {
    engine: &'s Engine,
    columns: &'s Columns,
    filter: Option<&'s Filter<'s>>,
    found: Totals,
    window: KeyWindow,
}

impl Scan<'_> {
    fn part(&mut self, part: VisibleEntries<'_>) -> Result<()> {
        match part {
            VisibleEntries::Entry(key, record) => self.row(key, record),
            VisibleEntries::Leaf(page, slots) if self.filter.is_some() || self.columns.needs[0].each() => {
                self.rows(page, slots)
            }
            VisibleEntries::Leaf(page, slots) => self.leaf(page, slots),
        }
    }

    fn row(&mut self, key: &[u8], record: Record<'_>) -> Result<()> {
        // The page has only a pointer to a large value, and a large value is never a number.
        let value = if record.large && self.filter.is_some_and(|filter| filter.reads_values) {
            Cow::Owned(large::read(self.engine, record.bytes)?)
        } else {
            Cow::Borrowed(record.bytes)
        };
        if let Some(filter) = self.filter
            && !(filter.keep)(key, &value)?
        {
            return Ok(());
        }
        self.found.count += 1;
        let columns = self.columns.needs.iter().zip(&self.columns.types).zip([key, &value]);
        for (((needs, of), bytes), accumulator) in columns.zip(&mut self.found.accumulators) {
            if let (true, Some(of)) = (needs.any(), of) {
                accumulator.add(of.read(bytes));
            }
        }
        Ok(())
    }

    fn rows(&mut self, page: Page<'_>, slots: Range<usize>) -> Result<()> {
        self.window.clear();
        let mut key = Vec::with_capacity(16);
        let mut window = std::mem::take(&mut self.window);
        for slot in slots {
            window.key_into(page, slot, &mut key);
            self.row(&key, page.record(slot))?;
        }
        self.window = window;
        Ok(())
    }

    /// Adds a leaf of which all entries are selected.
    fn leaf(&mut self, page: Page<'_>, slots: Range<usize>) -> Result<()> {
        self.found.count += slots.len() as u64;
        let Columns { types: [of_key, of_value], needs: [key, value] } = *self.columns;
        if let (true, Some(of)) = (key.extremes && !slots.is_empty(), of_key) {
            let mut bytes = Vec::with_capacity(16);
            for slot in [slots.start, slots.end - 1] {
                page.key_into(slot, &mut bytes);
                self.found.accumulators[0].add_extreme(of.read(&bytes));
            }
        }
        if let (true, Some(of)) = (key.sum, of_key) {
            self.sum_keys(page, slots.clone(), of)?;
        }
        if let (true, Some(of)) = (value.any(), of_value) {
            for slot in slots {
                self.found.accumulators[1].add(of.read(page.record(slot).bytes));
            }
        }
        Ok(())
    }

    fn sum_keys(&mut self, page: Page<'_>, slots: Range<usize>, of: NumberType) -> Result<()> {
        let accumulator = &mut self.found.accumulators[0];
        // The bytes that are read in this leaf are prefetched in the next one, whose blocks most likely have the same
        // positions. The processor itself prefetches within 4 KiB only.
        let ahead = || {
            let ahead = self.engine.read_ahead(page)?;
            Some(move |bytes: &[u8]| ahead.like(bytes))
        };
        let Some(sum) = page.sum_of_integers(&slots, ahead) else {
            self.window.clear();
            let mut key = Vec::with_capacity(16);
            for slot in slots.clone() {
                self.window.key_into(page, slot, &mut key);
                accumulator.add_sum(of.read(&key));
            }
            accumulator.count += slots.len() as u64;
            return Ok(());
        };
        accumulator.count += slots.len() as u64;
        let sum = match of {
            // At most 65,535 keys of 64 bits: nothing here reaches 2^127.
            NumberType::Signed(_) => Number::Signed(sum.wrapping_sub(of.bias() * slots.len() as u128).cast_signed()),
            NumberType::Unsigned(_) | NumberType::Float(_) => Number::Unsigned(sum),
        };
        accumulator.add_sum(sum);
        Ok(())
    }
}

fn outcome(aggregate: &Aggregate, found: &Totals) -> Result<Outcome> {
    let [key, value] = &found.accumulators;
    let accumulator = |column: Column| if column == Column::Key { key } else { value };
    let number = |number: Option<Number>| number.map_or(Outcome::Nothing, Outcome::Number);
    Ok(match *aggregate {
        Aggregate::Count | Aggregate::CountDistinct(Column::Key) => {
            Outcome::Number(Number::Unsigned(u128::from(found.count)))
        }
        Aggregate::CountDistinct(Column::Value) => Outcome::Number(Number::Unsigned(value.distinct.len() as u128)),
        Aggregate::Sum(column) => Outcome::Number(accumulator(column).total()?),
        Aggregate::Average(column) => number(accumulator(column).average()),
        Aggregate::Min(column) => number(accumulator(column).min),
        Aggregate::Max(column) => number(accumulator(column).max),
        Aggregate::Distinct(column) => Outcome::List(accumulator(column).distinct.iter().copied().collect()),
        Aggregate::Top(column, most) => Outcome::List(accumulator(column).top(most)),
        Aggregate::Bottom(column, most) => Outcome::List(accumulator(column).bottom(most)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_done_even_if_the_system_refuses_its_thread() {
        let ranges: Vec<KeyRange> = (0..5u8).map(|n| KeyRange { lower: vec![n], upper: None }).collect();
        let lower = |range: &KeyRange| range.lower.clone();
        // No system has room for such a stack.
        for builder in [Builder::new, || Builder::new().stack_size(1 << 60)] {
            assert_eq!(side_by_side(&ranges, builder, &lower), [[0], [1], [2], [3], [4]]);
        }
        assert!(Builder::new().stack_size(1 << 60).spawn(|| ()).is_err());
    }
}

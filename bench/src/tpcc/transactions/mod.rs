//! The five transactions (sections 2.4 to 2.8 of the specification). Each picks its input and does its work.

mod delivery;
mod new_order;
mod order_status;
mod payment;
mod stock_level;

use super::columns::{Encoder, Encoding, Row};
use super::data;
use super::keys::{Key, Keys};
use super::schema::{Scale, Table};
use crate::Result;
use crate::clock::thread_seconds;
use crate::numbers::{short, whole};
use crate::random::Random;
use duramen::db::{UntypedRange, UntypedTable};
use duramen::{Database, ReadTransaction, WriteTransaction};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// A transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TransactionKind {
    NewOrder,
    Payment,
    Delivery,
    StockLevel,
    OrderStatus,
}

impl TransactionKind {
    /// All of them, in the order of table 1 of the paper.
    pub(super) const ALL: [TransactionKind; 5] = [
        TransactionKind::NewOrder,
        TransactionKind::Payment,
        TransactionKind::Delivery,
        TransactionKind::StockLevel,
        TransactionKind::OrderStatus,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            TransactionKind::NewOrder => "new-order",
            TransactionKind::Payment => "payment",
            TransactionKind::Delivery => "delivery",
            TransactionKind::StockLevel => "stock-level",
            TransactionKind::OrderStatus => "order-status",
        }
    }
}

/// The database that the transactions work on.
pub(super) struct Shop {
    pub(super) db: Database,
    pub(super) encoding: Encoding,
    pub(super) scale: Scale,
    pub(super) warehouses: u32,
    /// A transaction that writes first reads its rows on a snapshot, while others write.
    pub(super) reads_before: bool,
    /// Transactions that have begun to write.
    pub(super) writers: AtomicU64,
    /// Processor time in nanoseconds of transactions that write, while others that write had to wait for them.
    pub(super) serial: AtomicU64,
}

/// The user of a terminal: the warehouse, and the district of the stock that is looked at.
#[derive(Clone, Copy)]
pub(super) struct Terminal {
    pub(super) warehouse: u32,
    pub(super) district: u32,
}

/// The result of a transaction.
#[derive(Clone, Copy, Default)]
pub(super) struct Outcome {
    /// The time that it waited for other transactions that write.
    pub(super) waited: Duration,
    /// It was rolled back, as one in a hundred orders is.
    pub(super) rolled_back: bool,
}

impl Shop {
    /// Runs a transaction.
    pub(super) fn run(&self, kind: TransactionKind, terminal: Terminal, random: &mut Random) -> Result<Outcome> {
        match kind {
            TransactionKind::NewOrder => self.new_order(terminal, random),
            TransactionKind::Payment => self.payment(terminal, random),
            TransactionKind::Delivery => self.delivery(terminal, random),
            TransactionKind::StockLevel => self.stock_level(terminal, random),
            TransactionKind::OrderStatus => self.order_status(terminal, random),
        }
    }

    pub(super) fn keys(&self) -> Keys {
        Keys(self.encoding)
    }

    fn district(&self, random: &mut Random) -> u32 {
        data::uniform(random, 1, self.scale.districts)
    }

    /// A warehouse other than `warehouse`, if there is one.
    fn other_warehouse(&self, warehouse: u32, random: &mut Random) -> u32 {
        match self.warehouses {
            1 => warehouse,
            several => (warehouse + data::uniform(random, 0, several - 2)) % several + 1,
        }
    }

    /// Waits until no other transaction writes.
    fn begin_write(&self) -> Result<Writing<'_>> {
        let started = Instant::now();
        let tx = self.db.begin_write()?;
        let waited = started.elapsed();
        let number = self.writers.fetch_add(1, Ordering::Relaxed);
        let encoder = Encoder::new(self.encoding, 2000 + number);
        Ok(Writing { tx, encoder, keys: self.keys(), waited, began: thread_seconds(), serial: &self.serial })
    }

    /// Reads rows on a snapshot before a transaction writes, so that it then finds their pages in the cache. While it
    /// writes, others that write wait for it.
    fn read_before(&self, table: Table, keys: impl IntoIterator<Item = Key>) -> Result<()> {
        if !self.reads_before {
            return Ok(());
        }
        let table = self.db.begin_read()?.open_untyped(table.name())?;
        keys.into_iter().try_for_each(|key| Ok(table.get_with(key.as_bytes(), |_| ()).map(|_| ())?))
    }

    fn begin_read(&self) -> Result<Reading> {
        Ok(Reading { tx: self.db.begin_read()?, keys: self.keys() })
    }
}

/// Seconds since 1970.
fn now() -> u32 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| short(time.as_secs()))
}

fn missing(table: Table) -> String {
    format!("a row of {} is missing", table.name())
}

/// A transaction that writes.
struct Writing<'s> {
    tx: WriteTransaction,
    encoder: Encoder,
    keys: Keys,
    waited: Duration,
    /// The processor time of the thread at the beginning.
    began: f64,
    /// The counter to which its processor time is added.
    serial: &'s AtomicU64,
}

impl Writing<'_> {
    fn open(&self, table: Table) -> Result<UntypedTable<'_>> {
        Ok(self.tx.open_untyped(table.name())?)
    }

    /// A row that may be missing.
    fn find<R: Row>(&self, table: Table, key: Key) -> Result<Option<R>> {
        self.open(table)?.get_with(key.as_bytes(), |bytes| R::decode(self.keys.0, bytes))?.transpose()
    }

    fn get<R: Row>(&self, table: Table, key: Key) -> Result<R> {
        self.find(table, key)?.ok_or_else(|| missing(table).into())
    }

    fn put<R: Row>(&mut self, table: Table, key: Key, mut row: R) -> Result<()> {
        let row = self.encoder.row(&mut row);
        Ok(self.tx.open_untyped(table.name())?.put(key.as_bytes(), row)?)
    }

    fn put_index(&mut self, index: Table, key: Key) -> Result<()> {
        let entry = self.encoder.index_entry();
        Ok(self.tx.open_untyped(index.name())?.put(key.as_bytes(), entry)?)
    }

    /// Changes a row and returns it as it then is.
    fn update<R: Row + Copy>(&mut self, table: Table, key: Key, change: impl FnOnce(&mut R)) -> Result<R> {
        let mut row = self.get(table, key)?;
        change(&mut row);
        self.put(table, key, row)?;
        Ok(row)
    }

    fn commit(self) -> Result<Outcome> {
        self.end(false, |tx| Ok(tx.commit()?))
    }

    fn roll_back(self) -> Result<Outcome> {
        self.end(true, |tx| {
            drop(tx);
            Ok(())
        })
    }

    fn end(self, rolled_back: bool, end: impl FnOnce(WriteTransaction) -> Result<()>) -> Result<Outcome> {
        end(self.tx)?;
        let nanoseconds = (thread_seconds() - self.began) * 1e9;
        self.serial.fetch_add(whole(nanoseconds), Ordering::Relaxed);
        Ok(Outcome { waited: self.waited, rolled_back })
    }
}

/// A transaction that only reads.
struct Reading {
    tx: ReadTransaction,
    keys: Keys,
}

impl Reading {
    fn get<R: Row>(&self, table: Table, key: Key) -> Result<R> {
        let row =
            self.tx.open_untyped(table.name())?.get_with(key.as_bytes(), |bytes| R::decode(self.keys.0, bytes))?;
        row.ok_or_else(|| missing(table))?
    }

    /// The number of a customer of a district. No transaction changes names.
    fn customer(&self, named: Named) -> Result<u32> {
        match named {
            Named::Number(customer) => Ok(customer),
            Named::Last(name) => {
                let names = self.tx.open_untyped(Table::CustomerName.name())?;
                let to = name.end();
                let named = names.range(name.as_bytes()..to.as_bytes());
                Ok(middle_customer(self.keys, named)?.ok_or_else(|| missing(Table::CustomerName))?)
            }
        }
    }
}

/// The customer in the middle of those with a name, by first names (2.5.2.2). `named`: their entries in the index.
fn middle_customer(keys: Keys, mut named: UntypedRange<'_>) -> Result<Option<u32>> {
    let mut customers = Vec::new();
    while let Some(customer) = named.next_with(|key, _| keys.named_customer(key))? {
        customers.push(customer);
    }
    Ok(customers.get(customers.len().saturating_sub(1) / 2).copied())
}

/// How a customer is named: by a number, or in six of ten cases by the last name.
enum Named {
    Number(u32),
    Last(Key),
}

/// Picks a customer of a district.
fn some_customer(district: Key, scale: &Scale, random: &mut Random) -> Named {
    match random.below(100) {
        0..60 => Named::Last(district.name(data::some_last_name(random, scale).as_bytes())),
        _ => Named::Number(data::customer_number(random, scale)),
    }
}

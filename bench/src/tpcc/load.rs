//! Makes the initial database: each table in key order by a bulk load.

use super::columns::Encoder;
use super::data::{LOADED, Population};
use super::keys::Keys;
use super::rows::{History, NewOrder};
use super::schema::{Storage, Table};
use crate::Result;
use duramen::db::{BulkTable, DEFAULT_FILL};
use duramen::{Database, WriteTransaction};
use std::collections::HashSet;

/// The warehouses and tables of a database.
pub(super) struct Loader<'a> {
    pub(super) population: Population,
    pub(super) warehouses: u32,
    pub(super) storage: &'a Storage,
    /// The tables that are compressed.
    pub(super) compressed: HashSet<Table>,
}

/// A table that is loaded.
struct Target<'t> {
    bulk: BulkTable<'t>,
    encoder: Encoder,
}

impl Loader<'_> {
    /// Loads all tables. `progress` gets the name of each before it begins.
    pub(super) fn load(&self, db: &Database, mut progress: impl FnMut(&'static str)) -> Result<()> {
        for table in Table::ALL {
            progress(table.name());
            let tx = db.begin_write()?;
            self.load_table(&tx, table)?;
            tx.commit()?;
        }
        Ok(db.checkpoint()?)
    }

    fn load_table(&self, tx: &WriteTransaction, table: Table) -> Result<()> {
        let options = self.storage.options(table, self.compressed.contains(&table));
        let bulk = tx.bulk_load(table.name(), table.key_type(), "bytes", options, DEFAULT_FILL)?;
        let mut target = Target { bulk, encoder: Encoder::new(self.storage.encoding, 1000 + table as u64) };
        self.fill(table, &mut target)?;
        target.bulk.finish()?;
        Ok(())
    }

    fn fill(&self, table: Table, to: &mut Target<'_>) -> Result<()> {
        let keys = Keys(self.storage.encoding);
        let Loader { population, .. } = self;
        match table {
            Table::Item => (1..=population.scale.items).try_for_each(|item| {
                Ok(to.bulk.push(keys.item(item).as_bytes(), to.encoder.row(&mut population.item(item)))?)
            }),
            Table::Warehouse => self.each_warehouse(|warehouse| {
                let row = to.encoder.row(&mut population.warehouse(warehouse));
                Ok(to.bulk.push(keys.warehouse(warehouse).as_bytes(), row)?)
            }),
            Table::Stock => self.each_warehouse(|warehouse| {
                (1..=population.scale.items).try_for_each(|item| {
                    let row = to.encoder.row(&mut population.stock(warehouse, item));
                    Ok(to.bulk.push(keys.stock(warehouse, item).as_bytes(), row)?)
                })
            }),
            Table::History => self.fill_history(to),
            _ => self.each_warehouse(|warehouse| {
                (1..=population.scale.districts)
                    .try_for_each(|district| self.fill_district(table, warehouse, district, to))
            }),
        }
    }

    fn each_warehouse(&self, work: impl FnMut(u32) -> Result<()>) -> Result<()> {
        (1..=self.warehouses).try_for_each(work)
    }

    fn fill_history(&self, to: &mut Target<'_>) -> Result<()> {
        let scale = self.population.scale;
        let mut number = 0u64;
        self.each_warehouse(|warehouse| {
            for (district, customer) in (1..=scale.districts)
                .flat_map(|district| (1..=scale.customers).map(move |customer| (district, customer)))
            {
                number += 1;
                let mut row = History {
                    customer,
                    customer_district: district,
                    customer_warehouse: warehouse,
                    district,
                    warehouse,
                    date: LOADED,
                    amount: 1000,
                    data: self.population.history_data(warehouse, district, customer),
                };
                to.bulk.push(&number.to_be_bytes(), to.encoder.row(&mut row))?;
            }
            Ok(())
        })
    }

    /// Loads the rows of a district into one of the tables whose keys begin with a district.
    fn fill_district(&self, table: Table, warehouse: u32, district: u32, to: &mut Target<'_>) -> Result<()> {
        let Loader { population, .. } = self;
        let scale = population.scale;
        let place = Keys(self.storage.encoding).district(warehouse, district);
        let orders = || (1..).zip(population.customers_of_orders(warehouse, district));
        match table {
            Table::District => {
                to.bulk.push(place.as_bytes(), to.encoder.row(&mut population.district(warehouse, district)))?;
            }
            Table::Customer => {
                for customer in 1..=scale.customers {
                    let mut row = population.customer(warehouse, district, customer);
                    to.bulk.push(place.customer(customer).as_bytes(), to.encoder.row(&mut row))?;
                }
            }
            Table::CustomerName => {
                let key = |customer| {
                    let row = population.customer(warehouse, district, customer);
                    place.name(row.last.as_bytes()).name(row.first.as_bytes()).customer(customer)
                };
                let mut keys: Vec<_> = (1..=scale.customers).map(key).collect();
                keys.sort_unstable_by(|a, b| a.as_bytes().cmp(b.as_bytes()));
                for key in keys {
                    to.bulk.push(key.as_bytes(), to.encoder.index_entry())?;
                }
            }
            Table::NewOrder => {
                for order in scale.customers - scale.new_orders() + 1..=scale.customers {
                    to.bulk.push(place.order(order).as_bytes(), to.encoder.row(&mut NewOrder {}))?;
                }
            }
            Table::Orders => {
                for (order, customer) in orders() {
                    let mut row = population.order(warehouse, district, order, customer);
                    to.bulk.push(place.order(order).as_bytes(), to.encoder.row(&mut row))?;
                }
            }
            Table::CustomerOrders => {
                let mut by_customer: Vec<(u32, u32)> = orders().map(|(order, customer)| (customer, order)).collect();
                by_customer.sort_unstable();
                for (customer, order) in by_customer {
                    let key = place.customer(customer).order_from_last(order);
                    to.bulk.push(key.as_bytes(), to.encoder.index_entry())?;
                }
            }
            Table::OrderLine => {
                for (order, customer) in orders() {
                    for line in 1..=population.order(warehouse, district, order, customer).lines {
                        let mut row = population.order_line(warehouse, district, order, line);
                        to.bulk.push(place.order(order).line(line).as_bytes(), to.encoder.row(&mut row))?;
                    }
                }
            }
            Table::Warehouse | Table::History | Table::Item | Table::Stock => {}
        }
        Ok(())
    }
}

//! Delivery (2.7): delivers the oldest order of each district of a warehouse.

use super::{Outcome, Shop, Terminal, now};
use crate::Result;
use crate::random::Random;
use crate::tpcc::columns::Row;
use crate::tpcc::data::uniform;
use crate::tpcc::rows::{Customer, Order, OrderLine};
use crate::tpcc::schema::Table;

impl Shop {
    pub(super) fn delivery(&self, terminal: Terminal, random: &mut Random) -> Result<Outcome> {
        let Terminal { warehouse, .. } = terminal;
        let carrier = uniform(random, 1, 10);
        let keys = self.keys();
        self.read_deliveries(warehouse)?;
        let mut tx = self.begin_write()?;
        for district in 1..=self.scale.districts {
            let place = keys.district(warehouse, district);
            let oldest = {
                let (from, to) = (place, place.end());
                let new_orders = tx.open(Table::NewOrder)?;
                new_orders.range(from.as_bytes()..to.as_bytes()).next_with(|key, _| keys.order_of(key))?
            };
            // All orders of the district may have been delivered.
            let Some(order) = oldest else { continue };
            let place_of_order = place.order(order);
            tx.open(Table::NewOrder)?.delete(place_of_order.as_bytes())?;
            let row: Order = tx.update(Table::Orders, place_of_order, |row: &mut Order| row.carrier = carrier)?;
            let mut lines = Vec::new();
            {
                let (from, to) = (place_of_order, place_of_order.end());
                let table = tx.open(Table::OrderLine)?;
                let mut range = table.range(from.as_bytes()..to.as_bytes());
                while let Some(line) = range.next_with(|_, bytes| OrderLine::decode(keys.0, bytes))? {
                    lines.push(line?);
                }
            }
            let mut total = 0;
            for (number, mut line) in (1..).zip(lines) {
                line.delivery_date = now();
                total += line.amount;
                tx.put(Table::OrderLine, place_of_order.line(number), line)?;
            }
            tx.update(Table::Customer, place.customer(row.customer), |customer: &mut Customer| {
                customer.balance += total;
                customer.deliveries += 1;
            })?;
        }
        tx.commit()
    }

    /// Reads what a delivery will probably change, before it writes.
    fn read_deliveries(&self, warehouse: u32) -> Result<()> {
        if !self.reads_before {
            return Ok(());
        }
        let keys = self.keys();
        let tx = self.begin_read()?;
        for district in 1..=self.scale.districts {
            let place = keys.district(warehouse, district);
            let new_orders = tx.tx.open_untyped(Table::NewOrder.name())?;
            let mut range = new_orders.range(place.as_bytes()..place.end().as_bytes());
            let Some(order) = range.next_with(|key, _| place.order(keys.order_of(key)))? else { continue };
            let row: Order = tx.get(Table::Orders, order)?;
            self.read_before(Table::OrderLine, [order.line(1), order.line(row.lines)])?;
            self.read_before(Table::Customer, [place.customer(row.customer)])?;
        }
        Ok(())
    }
}

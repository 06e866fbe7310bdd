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
        let (mut tx, outcome) = self.begin_write()?;
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
        tx.commit()?;
        Ok(outcome)
    }
}

//! Order-Status (2.6): reads the last order of a customer.

use super::{Outcome, Shop, Terminal, missing, some_customer};
use crate::Result;
use crate::random::Random;
use crate::tpcc::columns::Row;
use crate::tpcc::rows::{Customer, Order, OrderLine};
use crate::tpcc::schema::Table;

impl Shop {
    pub(super) fn order_status(&self, terminal: Terminal, random: &mut Random) -> Result<Outcome> {
        let district = self.district(random);
        let keys = self.keys();
        let place = keys.district(terminal.warehouse, district);
        let named = some_customer(place, &self.scale, random);

        let tx = self.begin_read()?;
        let customer = tx.customer(named)?;
        let _: Customer = tx.get(Table::Customer, place.customer(customer))?;
        let of_customer = place.customer(customer);
        let last = {
            let to = of_customer.end();
            let orders = tx.tx.open_untyped(Table::CustomerOrders.name())?;
            orders.range(of_customer.as_bytes()..to.as_bytes()).next_with(|key, _| keys.indexed_order(key))?
        };
        let order = place.order(last.ok_or_else(|| missing(Table::CustomerOrders))?);
        let row: Order = tx.get(Table::Orders, order)?;
        let to = order.end();
        let table = tx.tx.open_untyped(Table::OrderLine.name())?;
        let mut range = table.range(order.as_bytes()..to.as_bytes());
        let mut lines = 0;
        while let Some(line) = range.next_with(|_, bytes| OrderLine::decode(keys.0, bytes))? {
            let _ = line?;
            lines += 1;
        }
        match lines == row.lines {
            true => Ok(Outcome::default()),
            false => Err(format!("an order has {lines} of {} lines", row.lines).into()),
        }
    }
}

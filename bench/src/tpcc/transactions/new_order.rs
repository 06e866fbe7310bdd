//! New-Order (2.4): enters an order of five to fifteen lines.

use super::{Outcome, Shop, Terminal, TransactionKind, now};
use crate::Result;
use crate::numbers::short;
use crate::random::Random;
use crate::tpcc::data::{self, uniform};
use crate::tpcc::rows::{Customer, District, Item, NewOrder, Order, OrderLine, Stock, Warehouse};
use crate::tpcc::schema::Table;

/// A line of the order, as it is entered.
struct Line {
    item: u32,
    supply_warehouse: u32,
    quantity: u32,
}

impl Shop {
    fn lines(&self, warehouse: u32, random: &mut Random) -> Vec<Line> {
        let count = uniform(random, 5, 15);
        let mut lines: Vec<Line> = (0..count)
            .map(|_| Line {
                item: data::item_number(random, &self.scale),
                supply_warehouse: match random.below(100) {
                    0 => self.other_warehouse(warehouse, random),
                    _ => warehouse,
                },
                quantity: uniform(random, 1, 10),
            })
            .collect();
        if random.below(100) == 0
            && let Some(last) = lines.last_mut()
        {
            // There is no such item.
            last.item = self.scale.items + 1;
        }
        lines
    }

    pub(super) fn new_order(&self, terminal: Terminal, random: &mut Random) -> Result<Outcome> {
        let Terminal { warehouse, .. } = terminal;
        let (district, customer) = (self.district(random), data::customer_number(random, &self.scale));
        let lines = self.lines(warehouse, random);
        let keys = self.keys();
        let place = keys.district(warehouse, district);

        self.read_before(Table::Customer, [place.customer(customer)])?;
        self.read_before(Table::Stock, lines.iter().map(|line| keys.stock(line.supply_warehouse, line.item)))?;
        let mut tx = self.begin_write()?;
        let Warehouse { tax, .. } = tx.get(Table::Warehouse, keys.warehouse(warehouse))?;
        let row: District = tx.update(Table::District, place, |row: &mut District| row.next_order += 1)?;
        let order = row.next_order - 1;
        let Customer { discount, .. } = tx.get(Table::Customer, place.customer(customer))?;
        let all_local = lines.iter().all(|line| line.supply_warehouse == warehouse).into();
        let entered = Order { customer, entry_date: now(), carrier: 0, lines: short(lines.len()), all_local };
        tx.put(Table::Orders, place.order(order), entered)?;
        tx.put_index(Table::CustomerOrders, place.customer(customer).order_from_last(order))?;
        tx.put(Table::NewOrder, place.order(order), NewOrder {})?;
        let mut total = 0;
        for (number, line) in (1..).zip(&lines) {
            let Some(item): Option<Item> = tx.find(Table::Item, keys.item(line.item))? else {
                return tx.roll_back();
            };
            let amount = i64::from(line.quantity) * item.price;
            total += amount;
            let stock =
                tx.update(Table::Stock, keys.stock(line.supply_warehouse, line.item), |stock: &mut Stock| {
                    let left = stock.quantity.checked_sub(line.quantity).filter(|left| *left >= 10);
                    stock.quantity = left.unwrap_or(stock.quantity + 91 - line.quantity);
                    stock.ytd += i64::from(line.quantity) * 100;
                    stock.orders += 1;
                    stock.remote_orders += u32::from(line.supply_warehouse != warehouse);
                })?;
            let entered = OrderLine {
                item: line.item,
                supply_warehouse: line.supply_warehouse,
                delivery_date: 0,
                quantity: line.quantity,
                amount,
                district_info: stock.districts[district as usize - 1],
            };
            tx.put(Table::OrderLine, place.order(order).line(number), entered)?;
        }
        // The terminal shows this amount: rates are in units of 1/10000.
        let rate = |parts: u32| f64::from(parts) / 10_000.0;
        let shown = total as f64 * (1.0 - rate(discount)) * (1.0 + rate(tax) + rate(row.tax));
        if shown.is_nan() || shown < 0.0 {
            return Err(format!("{} costs {shown}", TransactionKind::NewOrder.name()).into());
        }
        tx.commit()
    }
}

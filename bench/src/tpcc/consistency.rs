//! The twelve consistency conditions (section 3.3.2 of the specification), in one pass over each table. Condition 11
//! holds in the initial database only; here it also counts the orders that were delivered since.

use super::columns::{Cents, Row};
use super::keys::Keys;
use super::rows::{Customer, District, History, Order, OrderLine, Warehouse};
use super::schema::{Scale, Table};
use super::transactions::Shop;
use crate::Result;
use duramen::ReadTransaction;
use duramen::db::UntypedRange;

/// The sums of a district.
#[derive(Clone, Default)]
struct DistrictSums {
    ytd: Cents,
    next_order: u32,
    orders: u32,
    last_order: u32,
    /// Lines that the orders say they have, and lines that there are.
    lines_of_orders: u32,
    lines: u32,
    new_orders: u32,
    first_new_order: u32,
    last_new_order: u32,
    /// The sum of its payments.
    paid: Cents,
    deliveries: u32,
}

/// The sums of a customer.
#[derive(Clone, Default)]
struct CustomerSums {
    balance: Cents,
    ytd_payment: Cents,
    /// Amounts of the order lines that were delivered.
    delivered: Cents,
    /// The sum of the payments.
    paid: Cents,
}

/// The sums that are compared.
struct Sums {
    scale: Scale,
    warehouses: Vec<Cents>,
    /// Payments in each warehouse.
    paid: Vec<Cents>,
    districts: Vec<DistrictSums>,
    customers: Vec<CustomerSums>,
    /// Conditions that do not hold, each with the place.
    broken: Vec<String>,
}

/// Checks all conditions.
///
/// # Errors
/// One that names the conditions that do not hold, and errors of the engine.
pub(super) fn check(shop: &Shop) -> Result<()> {
    let tx = shop.db.begin_read()?;
    let (warehouses, scale) = (shop.warehouses as usize, shop.scale);
    let districts = warehouses * scale.districts as usize;
    let mut sums = Sums {
        scale,
        warehouses: vec![0; warehouses],
        paid: vec![0; warehouses],
        districts: vec![DistrictSums::default(); districts],
        customers: vec![CustomerSums::default(); districts * scale.customers as usize],
        broken: Vec::new(),
    };
    let keys = shop.keys();
    sums.add_places(&tx, keys)?;
    sums.add_customers(&tx, keys)?;
    sums.add_orders(&tx, keys)?;
    sums.compare_warehouses();
    sums.compare_districts();
    sums.compare_customers();
    match sums.broken.first() {
        None => Ok(()),
        Some(first) => Err(format!("{} consistency conditions do not hold, such as {first}", sums.broken.len()).into()),
    }
}

/// The next entry: what `of` takes from its key, and its row.
fn next<R: Row, K>(range: &mut UntypedRange<'_>, keys: Keys, of: impl Fn(&[u8]) -> K) -> Result<Option<(K, R)>> {
    let entry = range.next_with(|key, value| (of(key), R::decode(keys.0, value)))?;
    entry.map(|(key, row)| Ok((key, row?))).transpose()
}

impl Sums {
    fn warehouse(&self, warehouse: u32) -> usize {
        (warehouse as usize).wrapping_sub(1).min(self.warehouses.len() - 1)
    }

    fn district(&self, warehouse: u32, district: u32) -> usize {
        let at = self.warehouse(warehouse) * self.scale.districts as usize + (district as usize).wrapping_sub(1);
        at.min(self.districts.len() - 1)
    }

    fn customer(&self, district: usize, customer: u32) -> usize {
        let at = district * self.scale.customers as usize + (customer as usize).wrapping_sub(1);
        at.min(self.customers.len() - 1)
    }

    fn expect(&mut self, condition: u8, holds: bool, place: impl Fn() -> String) {
        if !holds {
            self.broken.push(format!("condition {condition} of {}", place()));
        }
    }

    fn add_places(&mut self, tx: &ReadTransaction, keys: Keys) -> Result<()> {
        let table = tx.open_untyped(Table::Warehouse.name())?;
        let mut range = table.range(..);
        while let Some((warehouse, row)) = next::<Warehouse, _>(&mut range, keys, |key| keys.warehouse_of(key))? {
            let at = self.warehouse(warehouse);
            self.warehouses[at] = row.ytd;
        }
        let table = tx.open_untyped(Table::District.name())?;
        let mut range = table.range(..);
        let of = |key: &[u8]| (keys.warehouse_of(key), keys.district_of(key));
        while let Some(((warehouse, district), row)) = next::<District, _>(&mut range, keys, of)? {
            let at = self.district(warehouse, district);
            (self.districts[at].ytd, self.districts[at].next_order) = (row.ytd, row.next_order);
        }
        Ok(())
    }

    fn add_customers(&mut self, tx: &ReadTransaction, keys: Keys) -> Result<()> {
        let table = tx.open_untyped(Table::Customer.name())?;
        let mut range = table.range(..);
        let of = |key: &[u8]| (keys.warehouse_of(key), keys.district_of(key), keys.customer_of(key));
        while let Some(((warehouse, district, customer), row)) = next::<Customer, _>(&mut range, keys, of)? {
            let district = self.district(warehouse, district);
            self.districts[district].deliveries += row.deliveries;
            let at = self.customer(district, customer);
            (self.customers[at].balance, self.customers[at].ytd_payment) = (row.balance, row.ytd_payment);
        }
        let table = tx.open_untyped(Table::History.name())?;
        let mut range = table.range(..);
        while let Some(((), row)) = next::<History, _>(&mut range, keys, |_| ())? {
            let (warehouse, district) = (self.warehouse(row.warehouse), self.district(row.warehouse, row.district));
            self.paid[warehouse] += row.amount;
            self.districts[district].paid += row.amount;
            let of = self.district(row.customer_warehouse, row.customer_district);
            let customer = self.customer(of, row.customer);
            self.customers[customer].paid += row.amount;
        }
        Ok(())
    }

    /// Orders, new orders and order lines are in the same order.
    fn add_orders(&mut self, tx: &ReadTransaction, keys: Keys) -> Result<()> {
        let (orders, new_orders, lines) = (
            tx.open_untyped(Table::Orders.name())?,
            tx.open_untyped(Table::NewOrder.name())?,
            tx.open_untyped(Table::OrderLine.name())?,
        );
        let of = |key: &[u8]| (keys.warehouse_of(key), keys.district_of(key), keys.order_of(key));
        let (mut orders, mut new_orders, mut lines) = (orders.range(..), new_orders.range(..), lines.range(..));
        let mut new_order = new_orders.next_with(|key, _| of(key))?;
        let mut line: Option<(_, OrderLine)> = next(&mut lines, keys, of)?;
        while let Some((place, row)) = next::<Order, _>(&mut orders, keys, of)? {
            let (warehouse, district, order) = place;
            let at = self.district(warehouse, district);
            let is_new = new_order == Some(place);
            let sums = &mut self.districts[at];
            sums.orders += 1;
            sums.last_order = sums.last_order.max(order);
            sums.lines_of_orders += row.lines;
            if is_new {
                if sums.new_orders == 0 {
                    sums.first_new_order = order;
                }
                sums.new_orders += 1;
                sums.last_new_order = order;
                new_order = new_orders.next_with(|key, _| of(key))?;
            }
            let name = || format!("order {order} of district {district} of warehouse {warehouse}");
            self.expect(5, is_new == (row.carrier == 0), name);
            let (mut count, mut delivered, mut total) = (0, 0, 0);
            while let Some((_, found)) = line.filter(|(of, _)| *of == place) {
                count += 1;
                if found.delivery_date != 0 {
                    delivered += 1;
                    total += found.amount;
                }
                line = next(&mut lines, keys, of)?;
            }
            self.expect(6, count == row.lines, name);
            self.expect(7, delivered == if row.carrier == 0 { 0 } else { count }, name);
            self.districts[at].lines += count;
            let customer = self.customer(at, row.customer);
            self.customers[customer].delivered += total;
        }
        self.expect(5, new_order.is_none(), || format!("new order {new_order:?}, which is no order"));
        self.expect(6, line.is_none(), || "an order line of no order".to_owned());
        Ok(())
    }

    fn compare_warehouses(&mut self) {
        for warehouse in 0..self.warehouses.len() {
            let name = || format!("warehouse {}", warehouse + 1);
            let per = self.scale.districts as usize;
            let districts: Cents = self.districts[warehouse * per..][..per].iter().map(|sums| sums.ytd).sum();
            let (ytd, paid) = (self.warehouses[warehouse], self.paid[warehouse]);
            self.expect(1, ytd == districts, name);
            self.expect(8, ytd == paid, name);
        }
    }

    fn compare_districts(&mut self) {
        let delivered_at_first = self.scale.customers - self.scale.new_orders();
        for at in 0..self.districts.len() {
            let per = self.scale.districts as usize;
            let name = || format!("district {} of warehouse {}", at % per + 1, at / per + 1);
            let sums = self.districts[at].clone();
            let newest = if sums.new_orders == 0 { sums.last_order } else { sums.last_new_order };
            self.expect(2, sums.next_order == sums.last_order + 1 && sums.last_order == newest, name);
            let range = sums.last_new_order + 1 - sums.first_new_order.min(sums.last_new_order + 1);
            self.expect(3, sums.new_orders == 0 || sums.new_orders == range, name);
            self.expect(4, sums.lines == sums.lines_of_orders, name);
            self.expect(9, sums.ytd == sums.paid, name);
            self.expect(11, sums.orders == sums.new_orders + delivered_at_first + sums.deliveries, name);
        }
    }

    fn compare_customers(&mut self) {
        for at in 0..self.customers.len() {
            let (per, of) = (self.scale.customers as usize, self.scale.districts as usize);
            let name = || {
                let (district, warehouse) = (at / per % of + 1, at / per / of + 1);
                format!("customer {} of district {district} of warehouse {warehouse}", at % per + 1)
            };
            let CustomerSums { balance, ytd_payment, delivered, paid } = self.customers[at].clone();
            self.expect(10, balance == delivered - paid, name);
            self.expect(12, balance + ytd_payment == delivered, name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::small_shop;
    use super::*;
    use crate::tpcc::columns::Encoder;

    /// Changes the first row of a table.
    fn change<R: Row>(shop: &Shop, table: Table, change: impl FnOnce(&mut R)) {
        let tx = shop.db.begin_write().unwrap();
        let mut open = tx.open_untyped(table.name()).unwrap();
        let (key, value) = open.range(..).next().unwrap().unwrap();
        let mut row = R::decode(shop.encoding, &value).unwrap();
        change(&mut row);
        open.put(&key, Encoder::new(shop.encoding, 1).row(&mut row)).unwrap();
        drop(open);
        tx.commit().unwrap();
    }

    fn remove_first(shop: &Shop, table: Table) {
        let tx = shop.db.begin_write().unwrap();
        let mut open = tx.open_untyped(table.name()).unwrap();
        let (key, _) = open.range(..).next().unwrap().unwrap();
        open.delete(&key).unwrap();
        drop(open);
        tx.commit().unwrap();
    }

    #[test]
    fn every_condition_is_found_broken() {
        type Break = fn(&Shop);
        let breaks: [(&[u8], Break); 8] = [
            (&[1, 8], |shop| change(shop, Table::Warehouse, |row: &mut Warehouse| row.ytd += 1)),
            (&[1, 9], |shop| change(shop, Table::District, |row: &mut District| row.ytd += 1)),
            (&[2], |shop| change(shop, Table::District, |row: &mut District| row.next_order += 1)),
            (&[5, 11], |shop| remove_first(shop, Table::NewOrder)),
            (&[4, 6], |shop| remove_first(shop, Table::OrderLine)),
            (&[5, 7], |shop| change(shop, Table::Orders, |row: &mut Order| row.carrier = 0)),
            (&[10, 12], |shop| change(shop, Table::Customer, |row: &mut Customer| row.balance += 1)),
            (&[3, 5, 11], |shop| {
                let tx = shop.db.begin_write().unwrap();
                let mut open = tx.open_untyped(Table::NewOrder.name()).unwrap();
                let (key, _) = open.range(..).nth(1).unwrap().unwrap();
                open.delete(&key).unwrap();
                drop(open);
                tx.commit().unwrap();
            }),
        ];
        for (conditions, make) in breaks {
            let shop = small_shop(1);
            check(&shop).unwrap();
            make(&shop);
            let found = check(&shop).unwrap_err().to_string();
            let first = conditions.iter().any(|number| found.contains(&format!("condition {number} of")));
            assert!(first && found.starts_with(&format!("{} ", conditions.len())), "{conditions:?}: {found}");
        }
    }
}

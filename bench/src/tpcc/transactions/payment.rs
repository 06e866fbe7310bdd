//! Payment (2.5): a customer pays.

use super::{Outcome, Shop, Terminal, now, some_customer};
use crate::Result;
use crate::random::Random;
use crate::tpcc::columns::Text;
use crate::tpcc::data::uniform;
use crate::tpcc::rows::{Customer, District, History, Warehouse};
use crate::tpcc::schema::Table;

impl Shop {
    pub(super) fn payment(&self, terminal: Terminal, random: &mut Random) -> Result<Outcome> {
        let Terminal { warehouse, .. } = terminal;
        let district = self.district(random);
        // Some customers pay elsewhere.
        let (customer_warehouse, customer_district) = match random.below(100) {
            0..15 => (self.other_warehouse(warehouse, random), self.district(random)),
            _ => (warehouse, district),
        };
        let amount = i64::from(uniform(random, 100, 500_000));
        let keys = self.keys();
        let place = keys.district(customer_warehouse, customer_district);
        let named = some_customer(place, &self.scale, random);

        let customer = self.begin_read()?.customer(named)?;
        self.read_before(Table::Customer, [place.customer(customer)])?;
        let mut tx = self.begin_write()?;
        let at: Warehouse =
            tx.update(Table::Warehouse, keys.warehouse(warehouse), |row: &mut Warehouse| row.ytd += amount)?;
        let within: District =
            tx.update(Table::District, keys.district(warehouse, district), |row: &mut District| row.ytd += amount)?;
        tx.update(Table::Customer, place.customer(customer), |row: &mut Customer| {
            row.balance -= amount;
            row.ytd_payment += amount;
            row.payments += 1;
            if row.credit.as_bytes() == b"BC" {
                let (whole, cents) = (amount / 100, amount % 100);
                let paid = format!(
                    "{customer} {customer_district} {customer_warehouse} {district} {warehouse} {whole}.{cents:02}|"
                );
                row.data = Text::new(&[paid.as_bytes(), row.data.as_bytes()].concat());
            }
        })?;
        let mut history = History {
            customer,
            customer_district,
            customer_warehouse,
            district,
            warehouse,
            date: now(),
            amount,
            data: Text::new(&[at.name.as_bytes(), b"    ", within.name.as_bytes()].concat()),
        };
        let row = tx.encoder.row(&mut history);
        tx.tx.open_untyped(Table::History.name())?.push(row)?;
        tx.commit()
    }
}

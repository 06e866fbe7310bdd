//! Stock-Level (2.8): counts the items of the last twenty orders of a district of which there are few.

use super::{Outcome, Shop, Terminal};
use crate::Result;
use crate::random::Random;
use crate::tpcc::columns::Row;
use crate::tpcc::data::uniform;
use crate::tpcc::rows::{District, OrderLine, Stock};
use crate::tpcc::schema::Table;
use std::collections::BTreeSet;

const ORDERS: u32 = 20;

impl Shop {
    pub(super) fn stock_level(&self, terminal: Terminal, random: &mut Random) -> Result<Outcome> {
        let Terminal { warehouse, district } = terminal;
        let least = uniform(random, 10, 20);
        let keys = self.keys();
        let place = keys.district(warehouse, district);

        let tx = self.begin_read()?;
        let District { next_order, .. } = tx.get(Table::District, place)?;
        let (from, to) = (place.order(next_order.saturating_sub(ORDERS)), place.order(next_order));
        let lines = tx.tx.open_untyped(Table::OrderLine.name())?;
        let mut range = lines.range(from.as_bytes()..to.as_bytes());
        let mut items = BTreeSet::new();
        while let Some(line) = range.next_with(|_, bytes| OrderLine::decode(keys.0, bytes))? {
            items.insert(line?.item);
        }
        let mut few = 0;
        for item in items {
            let stock: Stock = tx.get(Table::Stock, keys.stock(warehouse, item))?;
            few += u32::from(stock.quantity < least);
        }
        match few <= ORDERS * 15 {
            true => Ok(Outcome::default()),
            false => Err(format!("{few} items are few").into()),
        }
    }
}

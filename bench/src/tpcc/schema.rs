//! The tables, their indexes and sizes.

use super::columns::Encoding;
use duramen::TableOptions;
use duramen::db::types::{KeyLayout, Separators};
use duramen::db::{Compression, CompressionPlan, Overflow, Strategy, Target};

/// A table or an index.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Table {
    Warehouse,
    District,
    Customer,
    /// An index of the customers of a district by last and first name.
    CustomerName,
    History,
    NewOrder,
    Orders,
    /// An index of the orders of a customer, the last one first.
    CustomerOrders,
    OrderLine,
    Item,
    Stock,
}

/// A table with its indexes, as the paper counts them.
pub(super) struct TableGroup {
    /// The name in reports, and in table 4 of the paper.
    pub(super) name: &'static str,
    pub(super) tables: &'static [Table],
}

impl Table {
    pub(super) const ALL: [Table; 11] = [
        Table::Warehouse,
        Table::District,
        Table::Customer,
        Table::CustomerName,
        Table::History,
        Table::NewOrder,
        Table::Orders,
        Table::CustomerOrders,
        Table::OrderLine,
        Table::Item,
        Table::Stock,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Table::Warehouse => "warehouse",
            Table::District => "district",
            Table::Customer => "customer",
            Table::CustomerName => "customer_name",
            Table::History => "history",
            Table::NewOrder => "new_order",
            Table::Orders => "orders",
            Table::CustomerOrders => "orders_by_customer",
            Table::OrderLine => "order_line",
            Table::Item => "item",
            Table::Stock => "stock",
        }
    }

    /// The type of its keys. History has none, as in the specification: the engine assigns its keys.
    pub(super) fn key_type(self) -> &'static str {
        if self == Table::History { "u64" } else { "bytes" }
    }

    /// Entries of the table in a warehouse. Items are counted in the first one.
    pub(super) fn entries(self, scale: &Scale) -> u64 {
        let districts = u64::from(scale.districts);
        match self {
            Table::Warehouse => 1,
            Table::District => districts,
            Table::Customer | Table::CustomerName | Table::History | Table::Orders | Table::CustomerOrders => {
                districts * u64::from(scale.customers)
            }
            Table::NewOrder => districts * u64::from(scale.new_orders()),
            Table::OrderLine => districts * u64::from(scale.customers) * 10,
            Table::Item | Table::Stock => u64::from(scale.items),
        }
    }
}

/// Tables with their indexes, in the order of table 4.
pub(super) const GROUPS: [TableGroup; 9] = [
    TableGroup { name: "stock", tables: &[Table::Stock] },
    TableGroup { name: "order_line", tables: &[Table::OrderLine] },
    TableGroup { name: "customer", tables: &[Table::Customer, Table::CustomerName] },
    TableGroup { name: "orders", tables: &[Table::Orders, Table::CustomerOrders] },
    TableGroup { name: "history", tables: &[Table::History] },
    TableGroup { name: "new_order", tables: &[Table::NewOrder] },
    TableGroup { name: "item", tables: &[Table::Item] },
    TableGroup { name: "district", tables: &[Table::District] },
    TableGroup { name: "warehouse", tables: &[Table::Warehouse] },
];

/// How many of everything there are. The specification has 10 districts in each warehouse, 3,000 customers and as many
/// orders in each district, and 100,000 items.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    pub(super) districts: u32,
    pub(super) customers: u32,
    pub(super) items: u32,
}

impl Scale {
    /// The scale of the specification, divided by `divisor`.
    pub(super) fn divided(divisor: u32) -> Scale {
        Scale { districts: 10, customers: (3000 / divisor).max(30), items: (100_000 / divisor).max(200) }
    }

    /// The orders of a district that are not delivered: the last 900 of 3,000.
    pub(super) fn new_orders(&self) -> u32 {
        self.customers * 3 / 10
    }
}

/// How tables are stored.
#[derive(Clone, Copy, Debug)]
pub(super) struct Storage {
    pub(super) encoding: Encoding,
    pub(super) strategy: Strategy,
    pub(super) compression: Compression,
    pub(super) target: Target,
    pub(super) overflow: Overflow,
}

impl Storage {
    /// The options of a table. As in InnoDB, keys and separators are not compressed where rows are as wide as in
    /// InnoDB, and an uncompressed page gets a place of its whole length.
    pub(super) fn options(&self, table: Table, is_compressed: bool) -> TableOptions {
        let innodb = self.encoding == Encoding::Innodb;
        TableOptions {
            keys: innodb.then_some(KeyLayout::Plain),
            separators: innodb.then_some(Separators::Full),
            compression: if is_compressed { self.compression } else { Compression::None },
            target: if is_compressed || innodb { self.target } else { Target::Fit },
            overflow: if is_compressed { self.overflow } else { Overflow::Spill },
            auto_increment: table == Table::History,
            ..TableOptions::default()
        }
    }

    /// The plan that decides which tables are compressed, once for a table and its indexes.
    pub(super) fn plan(&self) -> CompressionPlan {
        let plan = CompressionPlan::new(self.strategy, self.compression).target(self.target).overflow(self.overflow);
        GROUPS
            .iter()
            .filter(|group| group.tables.len() > 1)
            .fold(plan, |plan, group| plan.group(group.tables.iter().map(|table| table.name())))
    }
}

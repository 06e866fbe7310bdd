//! The rows of the nine tables, with the columns of the TPC-C specification (revision 5.11, section 1.3) in the types
//! of DBT-2. The columns of the primary key are in the key, not here.

use super::columns::{Cents, Columns, Row, Text};

/// Declares a row: each column with its type, and how it is visited.
macro_rules! row {
    ($(#[$about:meta])* $name:ident { $($(#[$note:meta])* $field:ident: $type:ty = $empty:expr, $kind:ident $(($digits:literal))?;)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Debug)]
        pub(super) struct $name {
            $($(#[$note])* pub(super) $field: $type,)*
        }

        impl Row for $name {
            const EMPTY: $name = $name { $($field: $empty,)* };

            fn visit(&mut self, columns: &mut impl Columns) {
                $(columns.$kind(&mut self.$field $(, $digits)?);)*
            }
        }
    };
}

row! {
    Warehouse {
        name: Text<10> = Text::EMPTY, varchar;
        street_1: Text<20> = Text::EMPTY, varchar;
        street_2: Text<20> = Text::EMPTY, varchar;
        city: Text<20> = Text::EMPTY, varchar;
        state: Text<2> = Text::EMPTY, char;
        zip: Text<9> = Text::EMPTY, char;
        tax: u32 = 0, real;
        ytd: Cents = 0, decimal(12);
    }
}

row! {
    District {
        name: Text<10> = Text::EMPTY, varchar;
        street_1: Text<20> = Text::EMPTY, varchar;
        street_2: Text<20> = Text::EMPTY, varchar;
        city: Text<20> = Text::EMPTY, varchar;
        state: Text<2> = Text::EMPTY, char;
        zip: Text<9> = Text::EMPTY, char;
        tax: u32 = 0, real;
        ytd: Cents = 0, decimal(12);
        next_order: u32 = 0, int;
    }
}

row! {
    Customer {
        first: Text<16> = Text::EMPTY, varchar;
        middle: Text<2> = Text::EMPTY, char;
        last: Text<16> = Text::EMPTY, varchar;
        street_1: Text<20> = Text::EMPTY, varchar;
        street_2: Text<20> = Text::EMPTY, varchar;
        city: Text<20> = Text::EMPTY, varchar;
        state: Text<2> = Text::EMPTY, char;
        zip: Text<9> = Text::EMPTY, char;
        phone: Text<16> = Text::EMPTY, char;
        since: u32 = 0, time;
        credit: Text<2> = Text::EMPTY, char;
        credit_limit: Cents = 0, decimal(12);
        discount: u32 = 0, real;
        balance: Cents = 0, decimal(12);
        ytd_payment: Cents = 0, decimal(12);
        payments: u32 = 0, real;
        deliveries: u32 = 0, real;
        data: Text<500> = Text::EMPTY, varchar;
    }
}

row! {
    History {
        customer: u32 = 0, int;
        customer_district: u32 = 0, int;
        customer_warehouse: u32 = 0, int;
        district: u32 = 0, int;
        warehouse: u32 = 0, int;
        date: u32 = 0, time;
        amount: Cents = 0, real_cents;
        data: Text<24> = Text::EMPTY, varchar;
    }
}

/// It has no column but those of its key.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct NewOrder {}

impl Row for NewOrder {
    const EMPTY: NewOrder = NewOrder {};

    fn visit(&mut self, _columns: &mut impl Columns) {}
}

row! {
    Order {
        customer: u32 = 0, int;
        entry_date: u32 = 0, time;
        /// 0 is null.
        carrier: u32 = 0, int;
        lines: u32 = 0, int;
        all_local: u32 = 0, real;
    }
}

row! {
    OrderLine {
        item: u32 = 0, int;
        supply_warehouse: u32 = 0, int;
        /// 0 is null.
        delivery_date: u32 = 0, time;
        quantity: u32 = 0, real;
        amount: Cents = 0, real_cents;
        district_info: Text<24> = Text::EMPTY, varchar;
    }
}

row! {
    Item {
        image: u32 = 0, int;
        name: Text<24> = Text::EMPTY, varchar;
        price: Cents = 0, real_cents;
        data: Text<50> = Text::EMPTY, varchar;
    }
}

/// The row of an item in a warehouse.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Stock {
    pub(super) quantity: u32,
    /// The text for order lines of each of the ten districts.
    pub(super) districts: [Text<24>; 10],
    pub(super) ytd: Cents,
    pub(super) orders: u32,
    pub(super) remote_orders: u32,
    pub(super) data: Text<50>,
}

impl Row for Stock {
    const EMPTY: Stock =
        Stock { quantity: 0, districts: [Text::EMPTY; 10], ytd: 0, orders: 0, remote_orders: 0, data: Text::EMPTY };

    fn visit(&mut self, columns: &mut impl Columns) {
        columns.real(&mut self.quantity);
        self.districts.iter_mut().for_each(|info| columns.varchar(info));
        columns.decimal(&mut self.ytd, 8);
        columns.real(&mut self.orders);
        columns.real(&mut self.remote_orders);
        columns.varchar(&mut self.data);
    }
}

#[cfg(test)]
mod tests {
    use super::super::columns::{Encoder, Encoding};
    use super::*;

    fn round<R: Row + PartialEq + std::fmt::Debug>(mut row: R) -> [usize; 2] {
        [Encoding::Lean, Encoding::Innodb].map(|encoding| {
            let bytes = Encoder::new(encoding, 77).row(&mut row).to_vec();
            assert_eq!(R::decode(encoding, &bytes).ok().as_ref(), Some(&row));
            for len in 0..bytes.len() {
                assert!(R::decode(encoding, &bytes[..len]).is_err(), "{len} of {}", bytes.len());
            }
            bytes.len()
        })
    }

    #[test]
    fn rows_are_decoded_as_they_were_and_innodb_rows_are_as_wide_as_its_tables_say() {
        let line = OrderLine {
            item: 99_999,
            supply_warehouse: 7,
            delivery_date: 1_400_000_000,
            quantity: 5,
            amount: 999_999,
            district_info: Text::new(&[b'x'; 24]),
        };
        // Table 4: 26,308 MB of 300 million rows, 92 bytes each, of which 16 are the key.
        assert!(matches!(round(line), [30..=45, 68..=76]));
        let stock =
            Stock { districts: [line.district_info; 10], data: Text::new(&[b'd'; 38]), ytd: 100, ..Stock::EMPTY };
        // 387 bytes, of which 8 are the key.
        assert!(matches!(round(stock), [280..=310, 330..=380]));
        for balance in [-1, -1000, -99, 0, 1, 12_345, -4_611_686_018] {
            round(Customer { balance, data: Text::new(&[b'c'; 500]), state: Text::new(b"CA"), ..Customer::EMPTY });
            round(OrderLine { amount: balance, ..line });
        }
        round(NewOrder {});
        round(Warehouse { ytd: 30_000_000, ..Warehouse::EMPTY });
    }
}

//! Random data by the rules of the specification (sections 2.1.6 and 4.3). A row of the initial database depends only
//! on the seed and its key, so that a table and its indexes can be made one after the other.

use super::columns::Text;
use super::rows::{Customer, District, Item, Order, OrderLine, Stock, Warehouse};
use super::schema::Scale;
use crate::numbers::short;
use crate::random::{Random, mix};

/// When the initial rows were made: 2014-05-13.
pub(super) const LOADED: u32 = 1_400_000_000;

const SYLLABLES: [&str; 10] = ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];
const ALPHANUMERIC: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const DIGITS: &[u8; 10] = b"0123456789";
const ORIGINAL: &[u8] = b"ORIGINAL";

/// The constants of non-uniform random numbers, for 255, 1,023 and 8,191.
const C: [usize; 3] = [173, 519, 4321];

/// A uniform number from `low` to `high`.
pub(super) fn uniform(random: &mut Random, low: u32, high: u32) -> u32 {
    low + short(random.below((high - low + 1) as usize))
}

/// A non-uniform number from `low` to `high` (2.1.6). The mask `a` is 255, 1,023 or 8,191.
fn non_uniform(random: &mut Random, a: usize, low: u32, high: u32) -> u32 {
    let c = C[usize::from(a > 255) + usize::from(a > 1023)];
    let range = (high - low + 1) as usize;
    let number = (random.below(a + 1) | (low as usize + random.below(range))) + c;
    low + short(number % range)
}

/// A customer of a district.
pub(super) fn customer_number(random: &mut Random, scale: &Scale) -> u32 {
    non_uniform(random, 1023, 1, scale.customers)
}

/// An item.
pub(super) fn item_number(random: &mut Random, scale: &Scale) -> u32 {
    non_uniform(random, 8191, 1, scale.items)
}

/// The last name with a number from 0 to 999 (4.3.2.3).
fn last_name(number: u32) -> Text<16> {
    let name = [number / 100 % 10, number / 10 % 10, number % 10].map(|syllable| SYLLABLES[syllable as usize]).concat();
    Text::new(name.as_bytes())
}

/// The last name of some customer.
pub(super) fn some_last_name(random: &mut Random, scale: &Scale) -> Text<16> {
    last_name(non_uniform(random, 255, 0, scale.customers.min(1000) - 1))
}

/// Random letters and digits.
fn text<const N: usize>(random: &mut Random, low: u32, high: u32) -> Text<N> {
    let mut bytes = [0; N];
    let len = uniform(random, low, high) as usize;
    bytes[..len].iter_mut().for_each(|byte| *byte = ALPHANUMERIC[random.below(62)]);
    Text::new(&bytes[..len])
}

fn digits<const N: usize>(random: &mut Random) -> Text<N> {
    let mut bytes = [0; N];
    bytes.iter_mut().for_each(|byte| *byte = DIGITS[random.below(10)]);
    Text::new(&bytes)
}

fn zip(random: &mut Random) -> Text<9> {
    let mut bytes = *b"000011111";
    bytes[..4].iter_mut().for_each(|byte| *byte = DIGITS[random.below(10)]);
    Text::new(&bytes)
}

/// Data of an item; every tenth has `ORIGINAL` somewhere.
fn data(random: &mut Random) -> Text<50> {
    let data = text::<50>(random, 26, 50);
    if random.below(10) > 0 {
        return data;
    }
    let mut bytes = data.as_bytes().to_vec();
    let at = random.below(bytes.len() - ORIGINAL.len() + 1);
    bytes[at..at + ORIGINAL.len()].copy_from_slice(ORIGINAL);
    Text::new(&bytes)
}

/// Makes the rows of the initial database.
#[derive(Clone, Copy)]
pub(super) struct Population {
    pub(super) seed: u64,
    pub(super) scale: Scale,
}

impl Population {
    /// Numbers for a row of a table.
    fn random(&self, table: u64, warehouse: u32, district: u32, number: u32) -> Random {
        let place = u64::from(warehouse) << 40 | u64::from(district) << 32 | u64::from(number);
        Random::new(mix(self.seed ^ table << 60) ^ mix(place))
    }

    pub(super) fn warehouse(&self, warehouse: u32) -> Warehouse {
        let random = &mut self.random(1, warehouse, 0, 0);
        Warehouse {
            name: text(random, 6, 10),
            street_1: text(random, 10, 20),
            street_2: text(random, 10, 20),
            city: text(random, 10, 20),
            state: text(random, 2, 2),
            zip: zip(random),
            tax: uniform(random, 0, 2000),
            ytd: i64::from(self.scale.districts * self.scale.customers) * 1000,
        }
    }

    pub(super) fn district(&self, warehouse: u32, district: u32) -> District {
        let random = &mut self.random(2, warehouse, district, 0);
        District {
            name: text(random, 6, 10),
            street_1: text(random, 10, 20),
            street_2: text(random, 10, 20),
            city: text(random, 10, 20),
            state: text(random, 2, 2),
            zip: zip(random),
            tax: uniform(random, 0, 2000),
            ytd: i64::from(self.scale.customers) * 1000,
            next_order: self.scale.customers + 1,
        }
    }

    pub(super) fn customer(&self, warehouse: u32, district: u32, customer: u32) -> Customer {
        let random = &mut self.random(3, warehouse, district, customer);
        let last = match customer {
            1..=1000 => last_name(customer - 1),
            _ => some_last_name(random, &self.scale),
        };
        Customer {
            first: text(random, 8, 16),
            middle: Text::new(b"OE"),
            last,
            street_1: text(random, 10, 20),
            street_2: text(random, 10, 20),
            city: text(random, 10, 20),
            state: text(random, 2, 2),
            zip: zip(random),
            phone: digits(random),
            since: LOADED,
            credit: Text::new(if random.below(10) == 0 { b"BC" } else { b"GC" }),
            credit_limit: 5_000_000,
            discount: uniform(random, 0, 5000),
            balance: -1000,
            ytd_payment: 1000,
            payments: 1,
            deliveries: 0,
            data: text(random, 300, 500),
        }
    }

    /// The text that says what a payment is for.
    pub(super) fn history_data(&self, warehouse: u32, district: u32, customer: u32) -> Text<24> {
        text(&mut self.random(4, warehouse, district, customer), 12, 24)
    }

    /// The customers of the orders of a district, in the order of the orders: each has one.
    pub(super) fn customers_of_orders(&self, warehouse: u32, district: u32) -> Vec<u32> {
        let mut customers: Vec<u32> = (1..=self.scale.customers).collect();
        self.random(5, warehouse, district, 0).shuffle(&mut customers);
        customers
    }

    /// True if an initial order was delivered.
    fn is_delivered(&self, order: u32) -> bool {
        order <= self.scale.customers - self.scale.new_orders()
    }

    pub(super) fn order(&self, warehouse: u32, district: u32, order: u32, customer: u32) -> Order {
        let random = &mut self.random(6, warehouse, district, order);
        Order {
            customer,
            entry_date: LOADED,
            lines: uniform(random, 5, 15),
            carrier: if self.is_delivered(order) { uniform(random, 1, 10) } else { 0 },
            all_local: 1,
        }
    }

    pub(super) fn order_line(&self, warehouse: u32, district: u32, order: u32, line: u32) -> OrderLine {
        let random = &mut self.random(7, warehouse, district, order << 4 | line);
        let is_delivered = self.is_delivered(order);
        OrderLine {
            item: uniform(random, 1, self.scale.items),
            supply_warehouse: warehouse,
            delivery_date: if is_delivered { LOADED } else { 0 },
            quantity: 5,
            amount: if is_delivered { 0 } else { uniform(random, 1, 999_999).into() },
            district_info: text(random, 24, 24),
        }
    }

    pub(super) fn item(&self, item: u32) -> Item {
        let random = &mut self.random(8, 0, 0, item);
        Item {
            image: uniform(random, 1, 10_000),
            name: text(random, 14, 24),
            price: uniform(random, 100, 10_000).into(),
            data: data(random),
        }
    }

    pub(super) fn stock(&self, warehouse: u32, item: u32) -> Stock {
        let random = &mut self.random(9, warehouse, 0, item);
        Stock {
            quantity: uniform(random, 10, 100),
            districts: std::array::from_fn(|_| text(random, 24, 24)),
            ytd: 0,
            orders: 0,
            remote_orders: 0,
            data: data(random),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn non_uniform_numbers_are_in_range_and_some_are_frequent() {
        let mut random = Random::new(1);
        let scale = Scale::divided(1);
        let mut counts = vec![0u32; scale.customers as usize + 1];
        for _ in 0..300_000 {
            counts[customer_number(&mut random, &scale) as usize] += 1;
            assert!((1..=scale.items).contains(&item_number(&mut random, &scale)));
        }
        assert_eq!(counts[0], 0);
        assert!(*counts.iter().max().unwrap_or(&0) > 500, "uniform: 100 each");
        assert_eq!(last_name(371).as_bytes(), b"PRICALLYOUGHT");
    }

    #[test]
    fn a_row_depends_on_its_key_and_the_seed_only() {
        let population = Population { seed: 5, scale: Scale::divided(100) };
        assert_eq!(population.customer(1, 2, 3), population.customer(1, 2, 3));
        assert_ne!(population.customer(1, 2, 3), population.customer(1, 3, 2));
        let mut customers = population.customers_of_orders(1, 1);
        customers.sort_unstable();
        assert!(customers.into_iter().eq(1..=30));
    }
}

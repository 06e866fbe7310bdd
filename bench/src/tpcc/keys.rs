//! The keys of all tables and indexes. A key is its columns in order, each in as many bytes for every row, so that
//! bytes order keys as columns do.

use super::columns::Encoding;

/// Bytes of a name in a key.
const NAME: usize = 16;

/// A key, or the beginning of one.
#[derive(Clone, Copy)]
pub(super) struct Key {
    encoding: Encoding,
    len: usize,
    bytes: [u8; 64],
}

impl Key {
    fn push(mut self, bytes: &[u8]) -> Key {
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
        self
    }

    /// A number, of `lean` bytes where the encoding is lean, else of four.
    fn number(self, value: u32, lean: usize) -> Key {
        match self.encoding {
            Encoding::Lean => self.push(&value.to_be_bytes()[4 - lean..]),
            Encoding::Innodb => self.push(&(value ^ 1 << 31).to_be_bytes()),
        }
    }

    /// Appends an order. Later orders come first: their numbers are inverted.
    pub(super) fn order_from_last(self, order: u32) -> Key {
        self.number(!order & 0x7fff_ffff, 4)
    }

    /// Appends the number of an order line.
    pub(super) fn line(self, line: u32) -> Key {
        self.number(line, 1)
    }

    /// Appends the order.
    pub(super) fn order(self, order: u32) -> Key {
        self.number(order, 4)
    }

    /// Appends the customer of a district.
    pub(super) fn customer(self, customer: u32) -> Key {
        self.number(customer, 2)
    }

    /// Appends a last name or a first name.
    pub(super) fn name(self, name: &[u8]) -> Key {
        let mut padded = [0; NAME];
        padded[..name.len().min(NAME)].copy_from_slice(&name[..name.len().min(NAME)]);
        self.push(&padded)
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// The first bytes that no key with this beginning has.
    pub(super) fn end(mut self) -> Key {
        for byte in self.bytes[..self.len].iter_mut().rev() {
            *byte = byte.wrapping_add(1);
            if *byte != 0 {
                break;
            }
        }
        self
    }
}

/// The keys of an encoding.
#[derive(Clone, Copy)]
pub(super) struct Keys(pub(super) Encoding);

impl Keys {
    fn empty(self) -> Key {
        Key { encoding: self.0, len: 0, bytes: [0; 64] }
    }

    pub(super) fn warehouse(self, warehouse: u32) -> Key {
        self.empty().number(warehouse, 2)
    }

    /// The key of a district, with which all keys of its customers and orders begin.
    pub(super) fn district(self, warehouse: u32, district: u32) -> Key {
        self.warehouse(warehouse).number(district, 1)
    }

    pub(super) fn item(self, item: u32) -> Key {
        self.empty().number(item, 3)
    }

    pub(super) fn stock(self, warehouse: u32, item: u32) -> Key {
        self.warehouse(warehouse).number(item, 3)
    }

    /// The number in some bytes of a key: the `index`th of its columns, of which those before it have `before` bytes in
    /// the lean encoding, and itself `lean`.
    fn column(self, key: &[u8], index: usize, before: usize, lean: usize) -> u32 {
        let (at, len, flip) = match self.0 {
            Encoding::Lean => (before, lean, 0),
            Encoding::Innodb => (4 * index, 4, 1 << 31),
        };
        let bytes = key.get(at..at + len).unwrap_or_default();
        bytes.iter().fold(0, |value, byte| value << 8 | u32::from(*byte)) ^ flip
    }

    /// The warehouse of a key that begins with one.
    pub(super) fn warehouse_of(self, key: &[u8]) -> u32 {
        self.column(key, 0, 0, 2)
    }

    /// The district of a key that begins with a warehouse and one.
    pub(super) fn district_of(self, key: &[u8]) -> u32 {
        self.column(key, 1, 2, 1)
    }

    /// The customer of a customer's key.
    pub(super) fn customer_of(self, key: &[u8]) -> u32 {
        self.column(key, 2, 3, 2)
    }

    /// The order of the key of an order, of a new order or of an order line.
    pub(super) fn order_of(self, key: &[u8]) -> u32 {
        self.column(key, 2, 3, 4)
    }

    /// The customer at the end of a key of the index of names.
    pub(super) fn named_customer(self, key: &[u8]) -> u32 {
        let len = if self.0 == Encoding::Lean { 2 } else { 4 };
        self.column_at_end(key, len)
    }

    /// The order at the end of a key of the index of the orders of a customer.
    pub(super) fn indexed_order(self, key: &[u8]) -> u32 {
        !self.column_at_end(key, 4) & 0x7fff_ffff
    }

    fn column_at_end(self, key: &[u8], len: usize) -> u32 {
        let bytes = &key[key.len().saturating_sub(len)..];
        let flip = if self.0 == Encoding::Lean { 0 } else { 1 << 31 };
        bytes.iter().fold(0, |value, byte| value << 8 | u32::from(*byte)) ^ flip
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_order_as_their_columns_and_give_them_back() {
        for encoding in [Encoding::Lean, Encoding::Innodb] {
            let keys = Keys(encoding);
            let key = keys.district(3, 10).order(70_000).line(9);
            let key = key.as_bytes();
            assert_eq!((keys.warehouse_of(key), keys.district_of(key), keys.order_of(key)), (3, 10, 70_000));
            let named = keys.district(3, 1).name(b"BARBARBAR").name(b"Ann").customer(2999);
            assert_eq!(keys.named_customer(named.as_bytes()), 2999);
            let district = keys.district(3, 1);
            assert!(district.as_bytes() < named.as_bytes() && named.as_bytes() < district.end().as_bytes());
            let last = |order| keys.district(1, 1).customer(5).order_from_last(order);
            assert!(last(8).as_bytes() < last(7).as_bytes());
            assert_eq!(keys.indexed_order(last(8).as_bytes()), 8);
            assert!(keys.stock(1, 9).as_bytes() < keys.stock(1, 100_000).as_bytes());
        }
    }
}

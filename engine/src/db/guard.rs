//! What a read gives back: a key or value that has left its page, typed.

use super::bytes::Bytes;
use super::types::Value;
use crate::base::{Error, Result};
use std::fmt;
use std::marker::PhantomData;

/// An owned key or value of type `T`; [`Guard::value`] gives it in its own form.
pub struct Guard<T: Value> {
    bytes: Bytes,
    of: PhantomData<fn() -> T>,
}

impl<T: Value> Guard<T> {
    /// Checks that the bytes are a `T`, so that [`Guard::value`] cannot fail.
    pub(crate) fn new(bytes: Bytes, table: &str, part: &'static str) -> Result<Guard<T>> {
        decode::<T>(&bytes, table, part)?;
        Ok(Guard { bytes, of: PhantomData })
    }

    /// The value. Short ones were copied without an allocation, large ones were read whole.
    pub fn value(&self) -> T::View<'_> {
        match T::decode(&self.bytes) {
            Ok(value) => value,
            Err(what) => unreachable!("the bytes were checked when the guard was made: {what}"),
        }
    }

    /// The value's encoding.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl<T: Value> fmt::Debug for Guard<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Guard").field(&self.bytes).finish()
    }
}

/// Decodes a key or value; bytes that are none of its type name the table they are in.
pub(crate) fn decode<'a, T: Value>(bytes: &'a [u8], table: &str, part: &'static str) -> Result<T::View<'a>> {
    T::decode(bytes).map_err(|what| Error::TableState {
        table: table.to_owned(),
        why: format!("an entry has {part} that are no {}: {what}", T::type_name()),
    })
}

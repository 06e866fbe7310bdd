//! A place of a page, as the log carries it.

use crate::base::bytes::take;
use crate::base::{Error, Lsn};
use std::ops::Deref;

/// The place of a page that was written outside the log. The log carries it, and only the store can read it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlaceBytes {
    len: u8,
    bytes: [u8; PlaceBytes::MAX],
}

impl PlaceBytes {
    /// The maximum number of bytes that a place can have.
    pub const MAX: usize = 15;
    /// A place of no bytes.
    pub const EMPTY: PlaceBytes = PlaceBytes { len: 0, bytes: [0; PlaceBytes::MAX] };

    /// A place of these bytes; `None` if there are more than [`PlaceBytes::MAX`].
    pub fn new(place: &[u8]) -> Option<PlaceBytes> {
        let mut bytes = [0; PlaceBytes::MAX];
        bytes.get_mut(..place.len())?.copy_from_slice(place);
        Some(PlaceBytes { len: u8::try_from(place.len()).ok()?, bytes })
    }

    /// Appends its length and its bytes to a log record.
    pub fn encode(self, out: &mut Vec<u8>) {
        out.push(self.len);
        out.extend_from_slice(&self);
    }

    /// Decodes a place from the front of `input` and removes it there; `None` if there is none.
    pub fn take(input: &mut &[u8]) -> Option<PlaceBytes> {
        let len = take(input, 1)?.first().copied()?;
        PlaceBytes::new(take(input, usize::from(len))?)
    }
}

/// The error for a log record whose place is not valid in its store.
pub(super) fn no_place(lsn: Lsn) -> Error {
    Error::CorruptLog { lsn, what: "a record has an invalid place".into() }
}

impl Deref for PlaceBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }
}

//! Compares the whole content of a store with the expected content. Never timed.

use super::contestant::{Contestant, Reader};
use crate::Result;
use crate::keyset::Keys;
use crate::value::Values;

/// Fails if the store does not have exactly the keys of the ranks for which `present` is true, each with the value of
/// its generation.
pub(crate) fn verify<C: Contestant>(
    store: &C,
    keys: &Keys,
    values: Values,
    present: impl Fn(usize) -> bool,
    generation: impl Fn(usize) -> u64,
) -> Result<()> {
    let mut expected = (0..keys.len()).filter(|rank| present(*rank));
    let mut wrong = None;
    store.reader()?.scan(&[], |key, value| {
        let right = match expected.next() {
            Some(rank) => keys.get(rank) == key && values.are(rank, generation(rank), value),
            None => false,
        };
        if !right {
            wrong = Some(key.to_vec());
        }
        right
    })?;
    match (wrong, expected.next()) {
        (Some(key), _) => Err(wrong_answer(C::NAME, "scan", &key)),
        (None, Some(rank)) => Err(wrong_answer(C::NAME, "scan ends before", keys.get(rank))),
        (None, None) => Ok(()),
    }
}

/// The error for a wrong answer of a store.
#[cold]
pub(crate) fn wrong_answer(name: &str, what: &str, key: &[u8]) -> Box<dyn std::error::Error + Send + Sync> {
    format!("{name} answers wrong: {what} {:?}", String::from_utf8_lossy(key)).into()
}

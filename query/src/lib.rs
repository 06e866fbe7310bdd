//! Queries of a Duramen database as text, such as `SUM(key), COUNT(*) FROM t WHERE key >= 10 AND key < 99`.
//!
//! [`Statement`] is a parsed text. It runs as a [`duramen::query::Query`], which computes the aggregates.
//! `docs/query.md` describes the syntax. Only the public interface of the engine may be used here, and no aggregate may
//! be computed here.
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::cast_possible_truncation
    )
)]

mod error;
mod literal;
mod parse;
mod predicate;
mod statement;
mod token;

pub use error::{Error, Result};
pub use statement::Statement;

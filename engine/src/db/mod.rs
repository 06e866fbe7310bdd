//! The public API above transactions: opening, tables, typed keys and values, options.

pub mod types;

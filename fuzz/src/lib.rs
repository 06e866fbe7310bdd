//! One fuzz target per decoder, as plain functions.

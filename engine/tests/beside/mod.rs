//! What the test of readers beside writers is made of: tables and what each commit makes of them, the changes, the reads.

pub(crate) mod changes;
pub(crate) mod reads;
pub(crate) mod world;

//! The parts of the test of readers beside writers: the tables and their content after each commit, the changes, and
//! the reads.

pub(crate) mod changes;
pub(crate) mod reads;
pub(crate) mod world;

//! Disks for tests and figures: one that fails on purpose.

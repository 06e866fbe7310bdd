//! Sorted-integer block codecs, slice to slice.
//!
//! No pages, no I/O, no allocation on hot paths: the engine's integer key lists are built on this crate.

//! Reading: one entry, entries in order, whole leaves, each as a snapshot or the writing transaction sees it. Nothing is
//! changed here.

pub(super) mod cursor;
pub(super) mod get;
pub(super) mod leaves;
pub(super) mod pages;

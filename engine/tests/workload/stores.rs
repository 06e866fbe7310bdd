//! The page stores. Tests that must hold for all of them use this list.

use duramen::db::StoreKind;

pub(crate) const STORES: [StoreKind; 2] = [StoreKind::Table, StoreKind::Shadow];

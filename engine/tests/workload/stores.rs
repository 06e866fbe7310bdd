//! The page stores. Tests that must hold for all of them use this list.

use duramen::db::StoreKind;

pub(crate) const STORES: [StoreKind; 2] = [StoreKind::Table, StoreKind::Shadow];

const _: () = assert!(STORES.len() == StoreKind::ALL.len(), "a page store is missing in STORES");

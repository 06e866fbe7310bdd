//! Tests of what only the table store has: its page table, its free map, and places.

mod chunks;
mod closed;
mod cut;
#[cfg(target_os = "linux")]
mod giant;
mod hostile;
mod places;
#[cfg(target_os = "linux")]
mod scale;

use super::directory::{Directory, FreeMapPlace};
use super::*;
use crate::base::checksum::checksum;
use crate::store::StoreKind;
use crate::store::superblock::tests::meta;
use crate::store::tests::{Failing, PAGE_SIZE, SAMPLE_TABLE, disk, sample};
use std::path::Path;

impl TableStore {
    /// Writes one page, all of it.
    fn write(&self, id: PageId, page: &[u8]) -> Result<()> {
        (self as &dyn PageStore).write(id, page)
    }
}

/// A new database without pages.
fn create(disk: &Arc<Failing>) -> TableStore {
    let meta = Meta { high_water: 1, ..meta() };
    TableStore::open(DatabaseFile::create(StoreKind::Table.into(), disk.clone(), Path::new("db"), meta).unwrap())
        .unwrap()
}

fn open(disk: &Arc<Failing>) -> Result<TableStore> {
    TableStore::open(DatabaseFile::open(disk.clone(), Path::new("db"))?)
}

//! The costs of a large database: memory for each page, processor time to open it, bytes that a checkpoint writes. The
//! whole size, 1 TiB of pages of 8 KiB, is measured with `DURAMEN_SCALE=full`. The tests turn off the minimum of
//! 16 MiB of chunks in memory, so that the limit is a third of the page table in every size.

use super::giant::{GiantDisk, Used, in_own_process, pages};
use super::*;
use crate::io::{FileVolume, OpenMode, Volume};
use crate::store::table::encoding::{CHUNK_BYTES, GROUP_BYTES, GROUP_CHUNKS};
use crate::store::table::place::Place;
use crate::store::tests::sample_of;

const SIZE: usize = 8192;
/// Changed pages.
const CHANGED: u32 = 1000;
/// Bytes of memory for each page: 2.6 in the free map, and what opening has used meanwhile.
const MAX_MEMORY: f64 = 4.5;
/// Bytes of memory for each page after chunks of the page table were used: a third of them stay, with 12.4 bytes a
/// page.
const MAX_MEMORY_LATER: f64 = 9.0;
/// Bytes of memory for each page after a session that has filled the database. The free map is smaller.
const MAX_MEMORY_FILLED: f64 = 8.0;
/// Bytes of the chunks that stay in memory when an opening decodes all of them.
const KEPT_AT_OPENING: f64 = 12.4 / 12.0 * (16 << 20) as f64;
/// Seconds of processor time of opening 2^21 pages of a closed database; 1.0 without a map. A machine under load needs
/// more.
const MAX_OPENING: f64 = 0.5;
/// Seconds of processor time of a checkpoint, whatever the size of the database. A machine under load needs far less.
const MAX_SECONDS: f64 = 1.0;

#[test]
fn a_large_database_takes_little_memory_and_a_checkpoint_writes_changes_only() {
    let name = "a_large_database_takes_little_memory_and_a_checkpoint_writes_changes_only";
    in_own_process(&format!("store::table::tests::scale::{name}"), || measure(false));
}

#[test]
fn a_large_database_that_was_closed_is_opened_with_its_free_map() {
    let name = "a_large_database_that_was_closed_is_opened_with_its_free_map";
    in_own_process(&format!("store::table::tests::scale::{name}"), || measure(true));
}

/// A checkpoint follows each 32,768 pages. The pages have places and no bytes.
#[test]
fn chunks_are_evicted_while_a_database_is_filled() {
    let name = "chunks_are_evicted_while_a_database_is_filled";
    in_own_process(&format!("store::table::tests::scale::{name}"), fill);
}

fn fill() {
    let pages = pages();
    let meta = Meta { page_size: SIZE, high_water: pages, ..meta() };
    let folder = tempfile::tempdir().unwrap();
    let disk = FileVolume::open(folder.path()).unwrap().open("db", OpenMode::CreateNew).unwrap();
    let file = DatabaseFile::create(StoreKind::Table.into(), disk, Path::new("db"), meta).unwrap();
    // The page table lies before the pages: 12 bytes a page, its superseded parts, and room between them.
    let first = u64::from(pages) / 8;
    file.disk().resize((first + u64::from(pages)) * GRAIN as u64).unwrap();
    let store = TableStore::open(file).unwrap();
    store.state.lock().table.keep(0);
    let begin = Used::now();
    for id in 0..pages {
        let location = Location { place: Place::new(first + u64::from(id), 1).unwrap(), crc: id };
        let place = PlaceBytes::new(&location.encode()).unwrap();
        assert!(store.install(PageId(id), place, Lsn(1)).unwrap(), "page {id}");
        if (id + 1).is_multiple_of(1 << 15) {
            store.finish(store.begin_checkpoint(), meta).unwrap();
        }
    }
    let (memory, _) = begin.since(pages);
    println!("{pages} pages: {memory:.2} bytes of memory a page");
    assert!(memory < MAX_MEMORY_FILLED, "{memory:.2} bytes of memory a page");
}

fn measure(has_map: bool) {
    let pages = pages();
    let meta = Meta { page_size: SIZE, high_water: pages, clean: true, ..meta() };
    let disk = GiantDisk::new(meta, pages, has_map);
    let open = || TableStore::open(DatabaseFile::open(disk.clone(), Path::new("db")).unwrap()).unwrap();

    let before = Used::now();
    disk.read_all();
    let (_, making) = before.since(pages);
    let opening = Used::now();
    let store = open();
    store.state.lock().table.keep(0);
    let (memory, seconds) = opening.since(pages);
    println!(
        "{pages} pages: {memory:.2} bytes of memory a page; opening takes {seconds:.3} s, {making:.3} s in the disk"
    );
    let kept = if has_map { 0.0 } else { KEPT_AT_OPENING / f64::from(pages) };
    assert!(memory < MAX_MEMORY + kept, "{memory:.2} bytes of memory a page");
    let most = if has_map { MAX_OPENING } else { 2.0 * MAX_OPENING } * f64::from(pages) / f64::from(1 << 21);
    assert!(seconds - making < most, "opening takes {seconds:.3} s, {making:.3} s in the disk");
    assert_eq!(store.stats().pages, u64::from(pages));

    let mut rng = fastrand::Rng::with_seed(1);
    let before = Used::now();
    let lookups = 1_000_000;
    for _ in 0..lookups {
        let id = rng.u32(..pages);
        assert_eq!(store.location(PageId(id)).unwrap(), Some(GiantDisk::location(id)));
    }
    let (_, seconds) = before.since(pages);
    let (memory, _) = opening.since(pages);
    println!("a look-up takes {:.0} ns; {memory:.2} bytes of memory a page then", seconds * 1e9 / f64::from(lookups));
    assert!(memory < MAX_MEMORY_LATER.max(MAX_MEMORY + kept), "{memory:.2} bytes of memory a page");

    let changed: Vec<u32> = (0..CHANGED).map(|_| rng.u32(..pages)).collect();
    let page = |id| sample_of(SIZE, id, 150, u64::from(id));
    changed.iter().for_each(|&id| store.write(PageId(id), &page(id)).unwrap());
    let (before, images) = (Used::now(), store.stats().written_bytes);
    store.finish(store.begin_checkpoint(), meta).unwrap();
    let ((_, seconds), written) = (before.since(pages), store.stats().written_bytes - images);
    println!("{CHANGED} changed pages: a checkpoint writes {written} bytes in {seconds:.4} s");
    // The chunks of the changed pages, the groups of these, and the directory.
    let groups = pages as usize / CHUNK_PAGES / GROUP_CHUNKS;
    let most = CHANGED as usize * CHUNK_BYTES + groups.min(CHANGED as usize) * GROUP_BYTES + groups * Location::BYTES;
    assert!(written <= (most + GRAIN) as u64, "a checkpoint writes {written} bytes");
    assert!(seconds < MAX_SECONDS, "a checkpoint takes {seconds:.3} s of processor time");

    drop(store);
    let store = open();
    assert_eq!(store.stats().pages, u64::from(pages));
    let mut read = vec![0; SIZE];
    for id in changed {
        assert!(store.read(PageId(id), &mut read).unwrap().is_some() && read == page(id), "page {id}");
    }
}

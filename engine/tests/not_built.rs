//! Promise: a build without the C libraries reads and writes what does not need them, and says clearly what does. Run
//! it with `cargo test -p duramen --no-default-features --test not_built`.

#![cfg(not(feature = "zstd"))]

use duramen::db::{Compression, CompressionPlan, Strategy, Target};
use duramen::{Database, Error, Result, TableDef, TableOptions};
use std::path::{Path, PathBuf};

/// A copy of a golden file.
fn copy(name: &str, folder: &Path) -> PathBuf {
    let path = folder.join("t.duramen");
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/{name}.duramen"));
    std::fs::copy(golden, &path).unwrap();
    path
}

/// True for the error that names the missing feature, also in words.
fn is_not_built<T: std::fmt::Debug>(result: Result<T>) -> bool {
    let Err(error) = result else { return false };
    matches!(error, Error::NotBuilt { feature: "zstd" }) && error.to_string().contains("zstd")
}

#[test]
fn pages_that_need_a_feature_are_an_error_that_names_it_and_others_are_read() -> Result<()> {
    for name in ["compression", "shadow-compression"] {
        let folder = tempfile::tempdir().unwrap();
        let path = copy(name, folder.path());
        let before = std::fs::read(&path).unwrap();
        {
            let db = Database::open_read_only(&path)?;
            let tx = db.begin_read()?;
            for info in tx.tables()? {
                let table = tx.open_untyped(&info.name)?;
                assert_eq!(table.len(), 40, "{name}: {}", info.name);
                let (count, entries) = (table.count(..), table.range(..).collect::<Result<Vec<_>>>());
                // Pages of the store `shadow` that fit a block are not compressed, unless their target is smaller.
                let is_plain = name == "shadow-compression" && info.target == Target::Fit;
                match info.compression {
                    Compression::Zstd(_) if !is_plain => {
                        assert!(is_not_built(count) && is_not_built(entries), "{name}: {}", info.name);
                    }
                    _ => assert_eq!((count?, entries?.len()), (40, 40), "{name}: {}", info.name),
                }
            }
            drop(tx);
            assert!(is_not_built(db.verify(|_| ())), "{name}");
        }
        assert!(std::fs::read(&path).unwrap() == before, "{name}: the file is not touched");
        let db = Database::open(&path)?;
        let tables = db.begin_read()?.tables()?;
        let tx = db.begin_write()?;
        for info in &tables {
            let written = tx.open_untyped(&info.name)?.put(b"beech", b"and ash");
            assert!(matches!(info.compression, Compression::Zstd(_)) || written.is_ok(), "{name}: {}", info.name);
        }
        assert!(is_not_built(tx.commit()), "{name}");
        let zstd = CompressionPlan::new(Strategy::All, Compression::Zstd(3));
        assert!(is_not_built(db.compact_with(&zstd, |_| ())), "{name}");
        assert!(is_not_built(db.analyze(&zstd, |_| ())), "{name}");
    }
    Ok(())
}

#[test]
fn pages_with_a_dictionary_need_the_feature_too() -> Result<()> {
    for (name, entries) in [("dictionary", 1500), ("shadow-dictionary", 1000)] {
        let folder = tempfile::tempdir().unwrap();
        let path = copy(name, folder.path());
        let db = Database::open(&path)?;
        assert_eq!(db.dictionaries()?.len(), 1, "{name}");
        let table = db.begin_read()?.open_untyped("documents")?;
        assert_eq!(table.len(), entries, "{name}");
        let (got, count) = (table.get(&7u64.to_be_bytes()), table.count(..));
        assert!(is_not_built(got) && is_not_built(count), "{name}");
        let (verified, compacted) = (db.verify(|_| ()), db.compact(|_| ()));
        assert!(is_not_built(verified) && is_not_built(compacted), "{name}");
        drop((table, db));
        let db = Database::open_read_only(&path)?;
        assert_eq!(db.dictionaries()?.len(), 1, "{name}: it is not dropped");
    }
    Ok(())
}

/// A snapshot keeps the pages of a dropped table, which name its dictionary.
#[test]
fn a_dictionary_that_pages_name_is_not_dropped_without_the_feature() -> Result<()> {
    for name in ["dictionary", "shadow-dictionary"] {
        let folder = tempfile::tempdir().unwrap();
        let db = Database::builder().background(false).open(copy(name, folder.path()))?;
        let snapshot = db.begin_read()?;
        let tx = db.begin_write()?;
        assert!(tx.drop_table("documents")?);
        tx.commit()?;
        db.compact(|_| ())?;
        assert_eq!(db.dictionaries()?.len(), 1, "{name}");
        drop(snapshot);
    }
    Ok(())
}

/// The pages are read before they are freed. They stay in use until a build that can read them opens the database.
#[test]
fn a_table_that_needs_the_feature_can_be_dropped_and_others_are_written_after_it() -> Result<()> {
    for name in ["compression", "shadow-compression", "dictionary", "shadow-dictionary"] {
        let folder = tempfile::tempdir().unwrap();
        let path = copy(name, folder.path());
        let open = || Database::builder().background(false).open(&path);
        let mut db = open()?;
        let tables = db.begin_read()?.tables()?;
        let tx = db.begin_write()?;
        for info in tables.iter().filter(|info| matches!(info.compression, Compression::Zstd(_))) {
            assert!(tx.drop_table(&info.name)?, "{name}: {}", info.name);
        }
        tx.commit()?;
        for round in 0u32..3 {
            while db.maintain()? {}
            let tx = db.begin_write()?;
            tx.open_table(TableDef::<u32, u32>::new("numbers"))?.put(round, round)?;
            tx.commit()?;
            db.close()?;
            db = open()?;
        }
        assert_eq!(db.begin_read()?.open_table(TableDef::<u32, u32>::new("numbers"))?.len(), 3, "{name}");
        db.close()?;
    }
    Ok(())
}

/// A large value can have a compressed run although its leaf is not compressed, and a leaf can be beside a compressed
/// one.
#[test]
fn removing_entries_that_need_the_feature_stops_no_writing() -> Result<()> {
    let mut removed = 0;
    for name in ["compression", "shadow-compression", "dictionary", "shadow-dictionary"] {
        let folder = tempfile::tempdir().unwrap();
        let db = Database::builder().background(false).open(copy(name, folder.path()))?;
        for info in db.begin_read()?.tables()? {
            let table = db.begin_read()?.open_untyped(&info.name)?;
            let (front, back) = (table.range(..), table.range(..).rev());
            let readable = front.map_while(Result::ok).chain(back.map_while(Result::ok));
            let mut keys: Vec<Vec<u8>> = readable.map(|(key, _)| key.to_vec()).collect();
            keys.extend((0u64..1500).map(|key| key.to_be_bytes().to_vec()));
            for key in keys {
                let tx = db.begin_write()?;
                if tx.open_untyped(&info.name)?.delete(&key).is_err() {
                    continue;
                }
                match tx.commit() {
                    Err(Error::NotBuilt { .. }) => {}
                    committed => {
                        committed.unwrap_or_else(|error| panic!("{name}, {}: {error}", info.name));
                        removed += 1;
                    }
                }
            }
        }
        let tx = db.begin_write()?;
        tx.open_table(TableDef::<u32, u32>::new("numbers"))?.put(1, 1)?;
        tx.commit()?;
    }
    assert!(removed > 40, "{removed}");
    Ok(())
}

#[test]
fn a_table_with_zlib_works_without_the_feature() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("zlib.duramen");
    let db = Database::create(&path)?;
    let tx = db.begin_write()?;
    let options = TableOptions { compression: Compression::Zlib(6), ..TableOptions::default() };
    let mut table = tx.create_untyped("t", "u32", "bytes", options)?;
    (0u32..2000).try_for_each(|key| table.put(&key.to_be_bytes(), &[key as u8; 200]))?;
    drop(table);
    tx.commit()?;
    db.close()?;
    let db = Database::open(&path)?;
    let table = db.begin_read()?.open_untyped("t")?;
    for key in 0u32..2000 {
        assert_eq!(table.get(&key.to_be_bytes())?.unwrap(), [key as u8; 200]);
    }
    drop(table);
    assert!(std::fs::metadata(&path).unwrap().len() < 200 * 2000 / 4, "the pages are compressed");
    db.close()
}

#[test]
fn a_table_with_zstd_cannot_be_created_without_the_feature() -> Result<()> {
    let db = Database::in_memory()?;
    let tx = db.begin_write()?;
    let options = TableOptions { compression: Compression::Zstd(3), ..TableOptions::default() };
    assert!(is_not_built(tx.create_untyped("t", "u32", "bytes", options).map(drop)));
    assert!(is_not_built("zstd:5".parse::<Compression>()));
    Ok(())
}

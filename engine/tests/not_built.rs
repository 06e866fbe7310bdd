//! Promise: a build without the C libraries reads and writes what does not need them, and says clearly what does. Run it with
//! `cargo test -p duramen --no-default-features --test not_built`.

#![cfg(not(feature = "zstd"))]

use duramen::db::{Compression, CompressionPlan, Strategy};
use duramen::{Database, Error, Result, TableOptions};
use std::path::Path;

/// True for the error that names the missing feature, also in words.
fn is_told<T: std::fmt::Debug>(result: Result<T>) -> bool {
    let Err(error) = result else { return false };
    matches!(error, Error::NotBuilt { feature: "zstd" }) && error.to_string().contains("zstd")
}

#[test]
fn pages_that_need_a_feature_are_an_error_that_names_it_and_others_are_read() -> Result<()> {
    for name in ["compression", "shadow-compression"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.duramen");
        std::fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/{name}.duramen")), &path)
            .unwrap();
        let before = std::fs::read(&path).unwrap();
        {
            let db = Database::open_read_only(&path)?;
            let tx = db.begin_read()?;
            for info in tx.tables()? {
                let table = tx.open_untyped(&info.name)?;
                let (count, needs_zstd) = (table.count(..), matches!(info.compression, Compression::Zstd(_)));
                assert_eq!(count.as_ref().ok(), Some(&40), "{name}: {}", info.name);
                let entries = table.range(..).collect::<Result<Vec<_>>>();
                match needs_zstd {
                    true => assert!(is_told(entries), "{name}: {}", info.name),
                    false => assert_eq!(entries?.len(), 40, "{name}: {}", info.name),
                }
            }
            drop(tx);
            assert!(is_told(db.verify(|_| ())), "{name}");
        }
        assert!(std::fs::read(&path).unwrap() == before, "{name}: the file is not touched");
        let db = Database::open(&path)?;
        let tables = db.begin_read()?.tables()?;
        let tx = db.begin_write()?;
        for info in &tables {
            let written = tx.open_untyped(&info.name)?.put(b"beech", b"and ash");
            assert!(matches!(info.compression, Compression::Zstd(_)) || written.is_ok(), "{name}: {}", info.name);
        }
        assert!(is_told(tx.commit()), "{name}");
        let zstd = CompressionPlan::new(Strategy::All, Compression::Zstd(3));
        assert!(is_told(db.compact_with(&zstd, |_| ())), "{name}");
        assert!(is_told(db.analyze(&zstd, |_| ())), "{name}");
    }
    Ok(())
}

#[test]
fn a_table_cannot_be_made_with_it() -> Result<()> {
    let db = Database::in_memory()?;
    let tx = db.begin_write()?;
    let options = TableOptions { compression: Compression::Zstd(3), ..TableOptions::default() };
    assert!(is_told(tx.create_untyped("t", "u32", "bytes", options).map(drop)));
    assert!(is_told("zstd:5".parse::<Compression>()));
    Ok(())
}

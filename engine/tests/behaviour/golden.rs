//! Promise: the format does not change. `tests/golden/` has a small database for each key layout and for each way of
//! writing pages. Every version must read all of them. `DURAMEN_GOLDEN=write cargo test -p duramen --test behaviour
//! golden::` writes the missing ones, for a new layout or codec. Until the first release, a change of the format
//! removes the files and writes them again. After it, no file may be written again.

#[cfg(feature = "zstd")]
use crate::workload::documents;
use duramen::db::types::KeyLayout;
use duramen::db::{Compression, DeltaBlocks, StoreKind, Target};
use duramen::{Codec, Database, Result, TableOptions};
use std::fs;
use std::path::{Path, PathBuf};

/// Entries of a table with values.
const ENTRIES: usize = 40;
/// Entries of a table without: more than a block takes.
const KEYS: usize = 300;
/// The files with a dictionary: name, store, page size, and number and kind of the documents.
const DICTIONARIES: [(&str, StoreKind, usize, u64, u64); 2] =
    [("dictionary", StoreKind::Table, 4096, 1500, 0), ("shadow-dictionary", StoreKind::Shadow, 8192, 1000, 5)];
/// The codecs that the file of blocks has; each newer one has a file of its own.
const FIRST_CODECS: usize = 8;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// A table of a golden file.
struct Golden {
    name: String,
    key_type: &'static str,
    value_type: &'static str,
    entries: usize,
    options: TableOptions,
}

/// How the pages of a golden file are written, if it is of the store `shadow`.
fn delta_of(file: &str) -> Option<DeltaBlocks> {
    match file {
        "shadow" => Some(DeltaBlocks::OFF),
        "shadow-compression" | "shadow-delta" => Some(DeltaBlocks::default()),
        "shadow-chain" => Some(DeltaBlocks { threshold: 3000, segment: 32, blocks: 4 }),
        _ => None,
    }
}

/// The golden files, each with its tables: one of each layout, one of each codec that is newer than these, one of each
/// compression, and one of each way of writing pages of the store `shadow`.
fn files() -> Vec<(String, Vec<Golden>)> {
    let (first, newer) = Codec::ALL.split_at(FIRST_CODECS);
    let layouts = KeyLayout::ALL.map(|layout| (layout.to_string().replace(':', "-"), tables(layout, first)));
    let codecs = newer.iter().map(|codec| (format!("blocks-{codec}"), tables(KeyLayout::Blocks, &[*codec])));
    let shadow = ["shadow", "shadow-delta", "shadow-chain"].map(|name| (name.to_owned(), tables(KeyLayout::Head, &[])));
    let compressed = ["compression", "shadow-compression"].map(|name| (name.to_owned(), compressed()));
    layouts.into_iter().chain(codecs).chain(compressed).chain(shadow).collect()
}

/// A table of each kind of compression and of target.
fn compressed() -> Vec<Golden> {
    let methods = [Compression::Lz4, Compression::Zstd(3), Compression::Zlib(6)];
    let all = methods.iter().flat_map(|method| [(*method, Target::Fit), (*method, Target::Bytes(1024))]);
    all.map(|(compression, target)| Golden {
        name: format!("{compression} {target}"),
        key_type: "bytes",
        value_type: "bytes",
        entries: ENTRIES,
        options: TableOptions { keys: Some(KeyLayout::Head), compression, target, ..TableOptions::default() },
    })
    .collect()
}

fn tables(layout: KeyLayout, codecs: &[Codec]) -> Vec<Golden> {
    let keys = TableOptions { keys: Some(layout), ..TableOptions::default() };
    let with_values = |key_type: &'static str| Golden {
        name: key_type.to_owned(),
        key_type,
        value_type: "bytes",
        entries: ENTRIES,
        options: keys,
    };
    let numbered = |layout: KeyLayout| Golden {
        name: layout.to_string(),
        options: TableOptions { keys: Some(layout), ..keys },
        ..with_values("bytes")
    };
    match layout {
        KeyLayout::Fixed => ["u64", "(u32,u64)"].map(with_values).into(),
        KeyLayout::Pkb => vec![with_values("bytes"), numbered(KeyLayout::PkbPart(8))],
        KeyLayout::PkbHeap => vec![with_values("bytes"), numbered(KeyLayout::PkbHeapPart(1))],
        KeyLayout::Blocks | KeyLayout::ShortBlocks => {
            let short = layout == KeyLayout::ShortBlocks;
            let codecs = codecs.iter().filter(|codec| !short || codec.max_count() > 128);
            let of = |codec: Codec, key_type| Golden {
                name: format!("{codec}-{key_type}"),
                value_type: "()",
                entries: KEYS,
                options: TableOptions { codec: Some(codec), ..keys },
                ..with_values(key_type)
            };
            codecs.flat_map(|&codec| ["u32", "u64"].map(|key_type| of(codec, key_type))).collect()
        }
        _ => ["bytes", "u64"].map(with_values).into(),
    }
}

/// The key of an entry; they rise.
fn key(key_type: &str, n: usize) -> Vec<u8> {
    let integer = u32::try_from(n * n * 37 + n).unwrap();
    match key_type {
        "bytes" if n == ENTRIES - 1 => format!("long/{:x<900}", "").into_bytes(),
        "bytes" => format!("{}/of/the/{:02}/wood/{n:04}", if n < 20 { "ash" } else { "beech" }, n / 7).into_bytes(),
        "u32" => integer.to_be_bytes().to_vec(),
        "u64" => (u64::from(integer) << 13).to_be_bytes().to_vec(),
        "(u32,u64)" => [&integer.to_be_bytes()[..], &(n as u64).to_be_bytes()].concat(),
        other => panic!("no keys of type {other}"),
    }
}

/// The value of an entry; one beside keys of any length is large.
fn value(table: &Golden, n: usize) -> Vec<u8> {
    match (table.value_type, table.key_type, n) {
        ("()", ..) => Vec::new(),
        (_, "bytes", 7) => vec![b'v'; 1400],
        _ => format!("value {n}").into_bytes(),
    }
}

fn write(path: &Path, name: &str, tables: &[Golden]) -> Result<()> {
    // The store `shadow` does not compress pages of 4 KiB.
    let page_size = if name == "shadow-compression" { 8192 } else { 4096 };
    let mut builder = Database::builder().page_size(page_size).background(false);
    if let Some(delta) = delta_of(name) {
        builder = builder.store(StoreKind::Shadow).delta(delta);
    }
    let db = builder.create(path)?;
    let tx = db.begin_write()?;
    for golden in tables {
        let mut table = tx.create_untyped(&golden.name, golden.key_type, golden.value_type, golden.options)?;
        for n in (0..golden.entries).map(|n| n * 7 % golden.entries) {
            table.put(&key(golden.key_type, n), &value(golden, n))?;
        }
    }
    tx.commit()?;
    db.compact(|_| ())?;
    if delta_of(name).is_some() {
        // Small changes after the compaction, at three checkpoints: for delta blocks beside the slots.
        for n in 0..3 {
            let tx = db.begin_write()?;
            for golden in tables {
                let mut table = tx.open_untyped(&golden.name)?;
                table.put(&key(golden.key_type, n), b"another")?;
                table.put(&key(golden.key_type, n), &value(golden, n))?;
            }
            tx.commit()?;
            db.checkpoint()?;
        }
    }
    db.close()
}

#[test]
fn databases_of_every_key_layout_are_read_as_they_were_written() -> Result<()> {
    let writes = std::env::var_os("DURAMEN_GOLDEN").is_some_and(|wish| wish == "write");
    let copies = tempfile::tempdir().unwrap();
    for (name, tables) in files() {
        let (golden, copy) = (folder().join(format!("{name}.duramen")), copies.path().join(format!("{name}.duramen")));
        if writes && !golden.exists() {
            write(&copy, &name, &tables)?;
            fs::create_dir_all(folder()).unwrap();
            fs::copy(&copy, &golden).unwrap();
            fs::remove_file(&copy).unwrap();
        }
        fs::copy(&golden, &copy).unwrap_or_else(|e| panic!("{}: {e}", golden.display()));
        let db = Database::open(&copy)?;
        let report = db.verify(|_| ())?;
        assert!(report.findings.is_empty(), "{name}: {:?}", report.findings);
        let has_deltas = delta_of(&name).is_some_and(|delta| delta != DeltaBlocks::OFF);
        assert_eq!(db.metrics().delta_bytes > 0, has_deltas, "{name}");
        let tx = db.begin_read()?;
        for table in &tables {
            let read = tx.open_untyped(&table.name)?;
            let (info, options, what) = (read.info(), table.options, format!("{name}: {}", table.name));
            assert_eq!(
                (info.key_type.as_str(), info.value_type.as_str()),
                (table.key_type, table.value_type),
                "{what}"
            );
            assert_eq!(
                (Some(info.keys), info.codec),
                (options.keys.map(|keys| keys.to_string()).as_deref(), options.codec)
            );
            assert_eq!(read.count(..)?, table.entries as u64, "{what}");
            for n in 0..table.entries {
                assert_eq!(read.get(&key(table.key_type, n))?, Some(value(table, n)), "{what}: entry {n}");
            }
        }
    }
    Ok(())
}

#[test]
fn every_golden_file_is_read_by_a_test() {
    let names = files().into_iter().map(|(name, _)| name).chain(DICTIONARIES.map(|(name, ..)| name.to_owned()));
    let known: Vec<String> = names.map(|name| format!("{name}.duramen")).collect();
    for entry in fs::read_dir(folder()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(known.contains(&name), "{name}");
    }
}

/// Pages that are compressed with a dictionary.
#[cfg(feature = "zstd")]
#[test]
fn databases_with_dictionaries_are_read_as_they_were_written() -> Result<()> {
    use documents::{DOCUMENTS, document, put};
    let writes = std::env::var_os("DURAMEN_GOLDEN").is_some_and(|wish| wish == "write");
    let copies = tempfile::tempdir().unwrap();
    for (name, store, page_size, keys, kind) in DICTIONARIES {
        let (path, copy) = (folder().join(format!("{name}.duramen")), copies.path().join(name));
        if writes && !path.exists() {
            let mut builder = Database::builder().page_size(page_size).background(false).store(store);
            if store == StoreKind::Shadow {
                builder = builder.delta(DeltaBlocks::OFF);
            }
            let db = builder.create(&copy)?;
            put(&db, DOCUMENTS, 0..keys, kind)?;
            // The second one makes the file shorter.
            for _ in 0..2 {
                db.compact(|_| ())?;
                db.checkpoint()?;
                while db.maintain()? {}
            }
            db.close()?;
            fs::copy(&copy, &path).unwrap();
        }
        fs::copy(&path, &copy).unwrap();
        let db = Database::open(&copy)?;
        assert_eq!(db.stats().store, Some(store), "{name}");
        assert!(db.dictionaries()?.iter().all(|one| one.is_used) && db.dictionaries()?.len() == 1, "{name}");
        assert_eq!(db.verify(|_| ())?.findings, [], "{name}");
        let table = db.begin_read()?.open_table(DOCUMENTS)?;
        assert_eq!(table.len(), keys, "{name}");
        for entry in table.range(..) {
            let (key, value) = entry?;
            assert_eq!(value.value(), document(key.value(), kind), "{name}");
        }
    }
    Ok(())
}

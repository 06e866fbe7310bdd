//! Promise: an analysis shows what compression saves, and a compaction gives each table the compression that the
//! strategy chooses. No entry changes.

use duramen::db::{Compression, CompressionPlan, Overflow, Phase, Progress, Reason, Strategy, TableAnalysis, Target};
use duramen::{Database, Error, Result, TableOptions};
use std::collections::BTreeMap;
use std::path::Path;

const ENTRIES: u32 = 3000;
/// All pages become smaller; none does; only half of the pages do, in a range of keys; and large values that become
/// smaller.
const TABLES: [&str; 4] = ["even", "random", "half", "large"];

type Model = BTreeMap<(&'static str, u32), Vec<u8>>;

fn noise(seed: u32, len: usize) -> Vec<u8> {
    let mut state = u64::from(seed) + 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8
    };
    (0..len).map(|_| next()).collect()
}

fn value(table: &str, key: u32) -> Option<Vec<u8>> {
    let text = || format!("beech, ash, oak, elm and yew, {key}; ").repeat(6).into_bytes();
    match table {
        "even" => Some(text()),
        "random" => Some(noise(key, 200)),
        "half" => Some(if key < ENTRIES / 3 { text() } else { noise(key, 200) }),
        _ => key.is_multiple_of(100).then(|| text().repeat(90)),
    }
}

fn build(path: &Path) -> Result<Model> {
    let mut model = Model::new();
    let db = Database::builder().page_size(4096).cache(1 << 20).create(path)?;
    let tx = db.begin_write()?;
    for name in TABLES {
        let mut table = tx.create_untyped(name, "u32", "bytes", Default::default())?;
        for key in 0..ENTRIES {
            if let Some(value) = value(name, key) {
                table.put(&key.to_be_bytes(), &value)?;
                model.insert((name, key), value);
            }
        }
    }
    tx.commit()?;
    db.compact(|_| ())?;
    db.close()?;
    Ok(model)
}

/// Compares the entries of the database with those of the model, and returns the compression of each table.
fn compare(path: &Path, model: &Model) -> Result<BTreeMap<String, Compression>> {
    let db = Database::open(path)?;
    assert_eq!(db.verify(|_| ())?.findings, []);
    let tx = db.begin_read()?;
    for name in TABLES {
        let table = tx.open_untyped(name)?;
        let entries = model.range((name, 0)..=(name, u32::MAX));
        assert_eq!(table.count(..)?, entries.clone().count() as u64);
        for ((_, key), value) in entries {
            assert_eq!(table.get(&key.to_be_bytes())?.as_ref(), Some(value), "{name}: {key}");
        }
    }
    Ok(tx.tables()?.into_iter().map(|table| (table.name, table.compression)).collect())
}

fn analysis(db: &Database, plan: &CompressionPlan) -> Result<BTreeMap<String, TableAnalysis>> {
    Ok(db.analyze(plan, |_| ())?.into_iter().map(|table| (table.table.clone(), table)).collect())
}

#[test]
fn an_analysis_measures_pages_and_chooses_after_the_bounds() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.duramen");
    build(&path)?;
    let db = Database::open_read_only(&path)?;
    let plan = CompressionPlan::new(Strategy::SELECTIVE, Compression::Lz4);
    let tables = analysis(&db, &plan)?;
    for name in ["even", "large"] {
        let table = &tables[name];
        assert_eq!((table.reason, table.choice), (Reason::Close, Compression::Lz4), "{table:?}");
        assert!(table.sampled > 100 && table.pages == table.sampled, "{table:?}");
        let fit: Vec<_> = table.methods.iter().filter(|method| method.target == Target::Fit).collect();
        let [lz4, zstd, zlib] = fit[..] else { panic!("{table:?}") };
        assert!(lz4.saving > 0.4 && zstd.saving >= lz4.saving && zlib.saving >= lz4.saving, "{table:?}");
        assert!(lz4.saved_bytes < table.bytes, "{table:?}");
    }
    assert_eq!(tables["random"].reason, Reason::NoSaving, "{:?}", tables["random"]);
    assert_eq!(tables["half"].choice, Compression::None);
    // One decision for both: most pages of the two become smaller, but not all.
    let plan = plan.group(["even", "half"]);
    let grouped = analysis(&db, &plan)?;
    assert_eq!((grouped["even"].reason, grouped["half"].reason), (Reason::BelowMedian, Reason::BelowMedian));
    let all = analysis(&db, &CompressionPlan::new(Strategy::All, Compression::Zlib(1)))?;
    assert!(all.values().all(|table| table.choice == Compression::Zlib(1) && table.methods.len() == 12));
    Ok(())
}

#[test]
fn an_analysis_compares_with_the_present_size_of_the_pages() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.duramen");
    build(&path)?;
    let db = Database::open(&path)?;
    let all = |compression| CompressionPlan::new(Strategy::All, compression);
    let even = |plan: &CompressionPlan| Ok::<_, Error>(analysis(&db, plan)?["even"].clone());
    let plain = even(&all(Compression::Lz4))?;
    assert_eq!(plain.current_bytes, plain.bytes, "{plain:?}");
    assert!(plain.choice_bytes < plain.bytes * 2 / 3, "{plain:?}");
    db.compact_with(&all(Compression::Lz4), |_| ())?;
    let unchanged = even(&all(Compression::Lz4))?;
    assert_eq!(unchanged.choice_bytes, unchanged.current_bytes, "{unchanged:?}");
    let expected = plain.choice_bytes;
    assert!(unchanged.current_bytes.abs_diff(expected) < expected / 20, "{expected}: {unchanged:?}");
    // Without compression the pages would take as much as before.
    let back = even(&CompressionPlan::new(Strategy::None, Compression::Lz4))?;
    assert_eq!((back.choice_bytes, back.current_bytes), (back.bytes, unchanged.current_bytes), "{back:?}");
    let smaller = even(&all(Compression::Zlib(9)))?;
    assert!(smaller.choice_bytes < smaller.current_bytes && smaller.current_bytes < smaller.bytes, "{smaller:?}");
    Ok(())
}

#[test]
fn a_compaction_compresses_the_chosen_tables_and_another_decompresses_them() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.duramen");
    let model = build(&path)?;
    let mut lengths = Vec::new();
    for (strategy, compression, chosen) in [
        (Strategy::All, Compression::Zstd(3), &TABLES[..]),
        (Strategy::SELECTIVE, Compression::Lz4, &["even", "large"]),
        (Strategy::None, Compression::Zstd(3), &[]),
    ] {
        let db = Database::open(&path)?;
        let snapshot = db.begin_read()?;
        let report = db.compact_with(&CompressionPlan::new(strategy, compression), |_| ())?;
        assert_eq!(report.entries, model.len() as u64);
        // A reader of the old trees and runs continues.
        let (table, key) = (snapshot.open_untyped("large")?, 200u32);
        assert_eq!(table.get(&key.to_be_bytes())?.as_ref(), model.get(&("large", key)));
        drop((table, snapshot));
        while db.maintain()? {}
        db.compact(|_| ())?;
        db.close()?;
        for (name, found) in compare(&path, &model)? {
            let expected = if chosen.contains(&name.as_str()) { compression } else { Compression::None };
            assert_eq!(found, expected, "{strategy}: {name}");
        }
        lengths.push(std::fs::metadata(&path).unwrap().len());
    }
    let [all, selective, none] = lengths[..] else { panic!("{lengths:?}") };
    assert!(all < selective && selective < none * 8 / 10, "{lengths:?}");
    Ok(())
}

#[test]
fn a_plan_for_some_tables_leaves_the_others_as_they_are() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.duramen");
    let model = build(&path)?;
    let entries_of = |tables: &[&str]| model.keys().filter(|(name, _)| tables.contains(name)).count() as u64;
    let mut expected = BTreeMap::from(TABLES.map(|name| (name.to_owned(), Compression::None)));
    for (strategy, compression, tables) in [
        (Strategy::All, Compression::Zstd(3), &["large", "half"][..]),
        (Strategy::All, Compression::Lz4, &["half"]),
        (Strategy::SELECTIVE, Compression::Zlib(6), &["even"]),
        (Strategy::SELECTIVE, Compression::None, &["half"]),
        (Strategy::None, Compression::Lz4, &["large"]),
    ] {
        let plan = tables.iter().fold(CompressionPlan::new(strategy, compression), |plan, table| plan.table(*table));
        let db = Database::open(&path)?;
        for (name, table) in analysis(&db, &plan)? {
            let is_left_out = !tables.contains(&name.as_str());
            assert_eq!(table.reason == Reason::LeftOut, is_left_out, "{strategy} {tables:?}: {table:?}");
            if is_left_out {
                assert_eq!((table.choice, table.choice_bytes), (table.current, table.current_bytes), "{table:?}");
            }
        }
        let report = db.compact_with(&plan, |_| ())?;
        assert_eq!(report.entries, entries_of(tables), "{strategy} {tables:?}");
        db.close()?;
        let of_plan = if strategy == Strategy::None { Compression::None } else { compression };
        expected.extend(tables.iter().map(|table| ((*table).to_owned(), of_plan)));
        assert_eq!(compare(&path, &model)?, expected, "{strategy} {tables:?}");
    }
    let db = Database::open(&path)?;
    // The pages of a table that is left out count in its group.
    let plan = CompressionPlan::new(Strategy::SELECTIVE, Compression::Lz4).group(["even", "half"]).table("even");
    let grouped = analysis(&db, &plan)?;
    assert_eq!((grouped["even"].reason, grouped["half"].reason), (Reason::BelowMedian, Reason::LeftOut));
    let unknown = CompressionPlan::new(Strategy::All, Compression::Lz4).table("even").table("odd");
    assert!(matches!(db.analyze(&unknown, |_| ()), Err(Error::NoTable { table }) if table == "odd"));
    assert!(matches!(db.compact_with(&unknown, |_| ()), Err(Error::NoTable { table }) if table == "odd"));
    Ok(())
}

#[test]
fn with_a_target_places_have_one_of_two_lengths() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.duramen");
    let model = build(&path)?;
    let db = Database::open(&path)?;
    let plan = CompressionPlan::new(Strategy::SELECTIVE, Compression::Zlib(6)).target(Target::Bytes(2048));
    let analysis = analysis(&db, &plan)?;
    let [even, half] = ["even", "half"].map(|name| &analysis[name]);
    assert_eq!((even.choice, even.choice_target), (Compression::Zlib(6), Target::Bytes(2048)), "{even:?}");
    assert_eq!((half.choice, half.choice_target), (Compression::None, Target::Fit), "{half:?}");
    let small = even.methods.iter().find(|method| method.target == Target::Bytes(1024)).unwrap();
    let reached = even.methods.iter().find(|method| method.target == Target::Bytes(2048)).unwrap();
    assert!(small.saved_bytes != reached.saved_bytes && reached.saved_bytes <= even.bytes / 2, "{even:?}");
    db.compact_with(&plan, |_| ())?;
    let target =
        |db: &Database| Ok::<_, Error>(db.begin_read()?.tables()?.iter().map(|table| table.target).collect::<Vec<_>>());
    assert_eq!(target(&db)?, [Target::Bytes(2048), Target::Fit, Target::Bytes(2048), Target::Fit]);
    db.close()?;
    compare(&path, &model)?;
    let db = Database::open(&path)?;
    let too_long = plan.target(Target::Bytes(4096));
    assert!(matches!(db.compact_with(&too_long, |_| ()), Err(Error::Option { option: "target", .. })));
    Ok(())
}

/// A leaf of noise does not compress. With `split` each leaf ends up in a place of the target.
#[test]
fn leaves_that_miss_the_target_are_split() -> Result<()> {
    [false, true].into_iter().try_for_each(split_leaves)
}

/// `background`: background threads compress and split as well.
fn split_leaves(background: bool) -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let mut sizes = Vec::new();
    for overflow in [Overflow::Spill, Overflow::Split] {
        let path = folder.path().join(format!("{overflow}.duramen"));
        let db = Database::builder().page_size(16384).cache(1 << 20).background(background).create(&path)?;
        let tx = db.begin_write()?;
        let (compression, target) = (Compression::Lz4, Target::Bytes(8192));
        let options = TableOptions { compression, target, overflow, ..TableOptions::default() };
        let mut table = tx.create_untyped("noise", "u32", "bytes", options)?;
        for key in 0..ENTRIES {
            // The first part of each value compresses, so that half of a page does, but not all of it.
            table.put(&key.to_be_bytes(), &[vec![7; 60], noise(key, 140)].concat())?;
        }
        drop(table);
        tx.commit()?;
        for _ in 0..20 {
            db.checkpoint()?;
            while db.maintain()? {}
        }
        db.close()?;
        let db = Database::open(&path)?;
        assert_eq!(db.verify(|_| ())?.findings, []);
        let tx = db.begin_read()?;
        assert_eq!(tx.tables()?[0].overflow, overflow);
        let table = tx.open_untyped("noise")?;
        for key in 0..ENTRIES {
            assert_eq!(table.get(&key.to_be_bytes())?, Some([vec![7; 60], noise(key, 140)].concat()));
        }
        let stats = db.stats();
        sizes.push((stats.pages, stats.live_bytes / stats.pages));
    }
    let [(whole, spilled), (halves, met)] = sizes[..] else { panic!("{sizes:?}") };
    assert!(halves > whole * 5 / 4 && spilled > 12_000 && met < 9000, "{sizes:?}");
    Ok(())
}

/// Each page of the file is sampled before the first entry is rewritten. Other strategies sample none. At the end the
/// file is shrunk.
#[test]
fn a_compaction_reports_its_analysis_and_then_its_entries() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.duramen");
    let entries = build(&path)?.len() as u64;
    let db = Database::open(&path)?;
    let pages = db.stats().pages;
    for strategy in [Strategy::SELECTIVE, Strategy::All] {
        let mut reports = Vec::new();
        db.compact_with(&CompressionPlan::new(strategy, Compression::Lz4), |done| reports.push(done))?;
        assert!(reports.is_sorted_by_key(|progress| progress.phase), "{reports:?}");
        assert!(reports.iter().all(|progress| progress.done <= progress.of), "{reports:?}");
        let last = |phase| reports.iter().rfind(|progress| progress.phase == phase).copied();
        let whole = |phase, of| Progress { phase, done: of, of };
        let analyzed = (strategy == Strategy::SELECTIVE).then_some(whole(Phase::Analyzing, pages));
        assert_eq!(last(Phase::Analyzing), analyzed);
        assert_eq!(last(Phase::Rebuilding), Some(whole(Phase::Rebuilding, entries)));
        let rebuilding = reports.iter().filter(|progress| progress.phase == Phase::Rebuilding);
        assert!(rebuilding.into_iter().all(|progress| progress.of == entries), "{reports:?}");
        assert_eq!(last(Phase::Freeing), Some(whole(Phase::Freeing, 1)));
        assert!(last(Phase::Shrinking).is_some_and(|progress| progress.of > 0), "{reports:?}");
        assert_eq!([Phase::Sampling, Phase::Training, Phase::Searching].map(last), [None; 3]);
    }
    Ok(())
}

/// A table that is so small that its compression does not matter keeps its options.
#[test]
fn the_selective_strategy_leaves_tiny_tables_as_they_are() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let db = Database::builder().page_size(8192).create(folder.path().join("t.duramen"))?;
    let tx = db.begin_write()?;
    let (compression, target, overflow) = (Compression::Lz4, Target::Bytes(4096), Overflow::Split);
    let options = TableOptions { compression, target, overflow, ..TableOptions::default() };
    #[cfg(feature = "zstd")]
    let options = TableOptions { compression: Compression::Zstd(5), dictionary: true, ..options };
    tx.create_untyped("empty", "u32", "bytes", options)?;
    tx.create_untyped("tiny", "u32", "bytes", options)?.put(&7u32.to_be_bytes(), b"oak")?;
    tx.create_untyped("plain", "u32", "bytes", TableOptions::default())?.put(&7u32.to_be_bytes(), b"oak")?;
    tx.commit()?;
    let options = |db: &Database| -> Result<Vec<_>> {
        let tables = db.begin_read()?.tables()?;
        Ok(tables.into_iter().map(|t| (t.compression, t.target, t.overflow, t.dictionary)).collect())
    };
    let before = options(&db)?;
    for target in [Target::Fit, Target::Bytes(2048)] {
        let plan = CompressionPlan::new(Strategy::SELECTIVE, Compression::Lz4).target(target);
        for table in db.analyze(&plan, |_| ())? {
            assert_eq!(table.reason, Reason::TooSmall, "{table:?}");
            assert_eq!((table.choice, table.choice_target), (table.current, table.current_target), "{table:?}");
        }
        db.compact_with(&plan, |_| ())?;
        assert_eq!(options(&db)?, before);
    }
    // Together with a table that is large enough it gets one decision.
    let tx = db.begin_write()?;
    let mut large = tx.create_untyped("large", "u32", "bytes", TableOptions::default())?;
    (0..ENTRIES).try_for_each(|key| large.put(&key.to_be_bytes(), &noise(key, 200)))?;
    drop(large);
    tx.commit()?;
    let plan = CompressionPlan::new(Strategy::SELECTIVE, Compression::Lz4).group(["large", "tiny"]);
    let analysis = analysis(&db, &plan)?;
    assert_eq!((analysis["tiny"].reason, analysis["tiny"].choice), (Reason::NoSaving, Compression::None));
    Ok(())
}

#[test]
fn plans_that_cannot_be_met_are_refused_and_change_nothing() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.duramen");
    let model = build(&path)?;
    let db = Database::open(&path)?;
    // The name of a group that does not exist is found before anything is written.
    let unknown = CompressionPlan::new(Strategy::All, Compression::Lz4).group(["nobody"]);
    assert!(matches!(db.compact_with(&unknown, |_| ()), Err(Error::NoTable { .. })));
    let twice = CompressionPlan::new(Strategy::SELECTIVE, Compression::Lz4).group(["even"]).group(["even"]);
    assert!(matches!(db.analyze(&twice, |_| ()), Err(Error::Option { option: "group", .. })));
    let delta = CompressionPlan::new(Strategy::Selective { delta: 1.5, strict: false }, Compression::Lz4);
    assert!(matches!(db.compact_with(&delta, |_| ()), Err(Error::Option { option: "strategy", .. })));
    db.close()?;
    assert!(compare(&path, &model)?.values().all(|found| *found == Compression::None));
    let db = Database::open_read_only(&path)?;
    let all = CompressionPlan::new(Strategy::All, Compression::Lz4);
    assert!(matches!(db.compact_with(&all, |_| ()), Err(Error::ReadOnly)));
    drop(db);
    let shadow = folder.path().join("s.duramen");
    let db = Database::builder().store(duramen::db::StoreKind::Shadow).page_size(4096).create(&shadow)?;
    assert!(matches!(db.analyze(&all, |_| ()), Err(Error::Option { option: "compression", .. })));
    Ok(())
}

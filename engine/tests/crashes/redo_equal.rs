//! Promise: redo restores the pages that a power cut has lost, byte for byte, whether they had been evicted, were in
//! the last checkpoint, or had never been written.

use crate::workload::stores::STORES;
use crate::workload::{Step, Workload, apply, options};
use duramen::db::StoreKind;
use duramen::{Database, Durability, Result};
use duramen_sim::model::Model;
use duramen_sim::{Cut, CutChoice, FailingVolume};
use std::collections::BTreeMap;
use std::sync::Arc;

const NAME: &str = "t.duramen";

fn pages(db: &Database) -> Result<BTreeMap<u32, Vec<u8>>> {
    let mut pages = BTreeMap::new();
    db.each_page(|id, bytes| drop(pages.insert(id.0, bytes.to_vec())))?;
    Ok(pages)
}

/// Runs a workload, cuts the power with the log durable to its end, and compares all pages.
fn compare(store: StoreKind, seed: u64, cache: usize, checkpoints: bool) -> Result<()> {
    let volume = FailingVolume::new(seed);
    let db = options().store(store).cache(cache).checkpoint_bytes(1 << 40).create_on(Arc::new(volume.clone()), NAME)?;
    let (mut workload, mut model) = (Workload::new(seed), Model::new());
    for _ in 0..80 {
        match workload.next(model.now()) {
            Step::Commit { changes, durability } => {
                let mut tx = db.begin_write()?;
                tx.set_durability(durability);
                apply(&tx, &changes)?;
                model.commit(changes);
                tx.commit()?;
            }
            Step::Abort(changes) => apply(&db.begin_write()?, &changes)?,
            Step::Checkpoint if checkpoints => db.checkpoint()?,
            Step::Maintain => drop(db.maintain()?),
            Step::Compact if checkpoints => drop(db.compact(|_| ())?),
            _ => {}
        }
    }
    let mut tx = db.begin_write()?;
    tx.set_durability(Durability::Commit);
    tx.commit()?;
    let lost = pages(&db)?;
    let state = volume.crash(Cut { event: volume.events(), choice: CutChoice::DropUnsynced });
    let found = pages(&options().cache(cache).open_on(Arc::new(state), NAME)?)?;
    let what = format!("{store:?}, seed {seed}, cache {cache}, checkpoints {checkpoints}");
    assert!(lost.len() > 20, "{what}: only {} pages", lost.len());
    assert!(lost.keys().eq(found.keys()), "{what}: pages {:?} became {:?}", lost.keys(), found.keys());
    for (id, bytes) in &lost {
        let differs = bytes.iter().zip(&found[id]).position(|(a, b)| a != b);
        assert_eq!(differs, None, "{what}: page {id} differs first at this byte");
    }
    Ok(())
}

#[test]
fn recovered_pages_equal_the_lost_ones_byte_for_byte() -> Result<()> {
    for seed in 0..24 {
        let store = STORES[(seed / 12) as usize];
        compare(store, seed, if seed % 2 == 0 { 0 } else { 16 << 20 }, seed % 3 == 0)?;
    }
    Ok(())
}

/// As above, of tables of integer keys in blocks: appends, random inserts and removals, one table a codec and size.
fn compare_blocks(store: StoreKind, seed: u64) -> Result<()> {
    let volume = FailingVolume::new(seed);
    let db =
        options().store(store).cache(1 << 20).checkpoint_bytes(1 << 40).create_on(Arc::new(volume.clone()), NAME)?;
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut models: BTreeMap<String, BTreeMap<u64, u8>> = BTreeMap::new();
    for round in 0..30 {
        let mut tx = db.begin_write()?;
        tx.set_durability(Durability::Commit);
        for (at, options) in crate::workload::layouts::of_blocks().into_iter().enumerate() {
            let wide = (at as u64 + seed).is_multiple_of(2);
            let (name, key_type) = (format!("{options:?}"), if wide { "u64" } else { "u32" });
            let mut table = match round {
                0 => tx.create_untyped(&name, key_type, "u8", options)?,
                _ => tx.open_untyped(&name)?,
            };
            let key = |key: u64| key.to_be_bytes()[if wide { 0 } else { 4 }..].to_vec();
            let model = models.entry(name).or_default();
            let end = model.keys().next_back().map_or(0, |last| last + 1);
            for n in 0..150 {
                let number = if rng.bool() { end + n } else { rng.u64(0..60_000) };
                table.put(&key(number), &[round])?;
                model.insert(number, round);
            }
            let gone: Vec<u64> = model.keys().copied().filter(|_| rng.u8(0..12) == 0).collect();
            for number in gone {
                table.delete(&key(number))?;
                model.remove(&number);
            }
        }
        tx.commit()?;
        if round == 12 {
            db.checkpoint()?;
        }
    }
    let lost = pages(&db)?;
    let state = volume.crash(Cut { event: volume.events(), choice: CutChoice::DropUnsynced });
    let db = options().open_on(Arc::new(state), NAME)?;
    assert!(lost == pages(&db)?, "{store:?}, seed {seed}: recovered pages differ");
    assert_eq!(db.verify(|_| ())?.findings, []);
    for (name, model) in models {
        let table = db.begin_read()?.open_untyped(&name)?;
        let number = |key: &[u8]| key.iter().fold(0u64, |number, byte| number << 8 | u64::from(*byte));
        let found = table.range(..).map(|entry| entry.map(|(key, value)| (number(&key), value[0])));
        assert_eq!(found.collect::<Result<BTreeMap<_, _>>>()?, model, "{name}");
    }
    Ok(())
}

#[test]
fn recovered_pages_of_blocks_equal_the_lost_ones_byte_for_byte() -> Result<()> {
    (0..4).try_for_each(|seed| compare_blocks(STORES[seed as usize % STORES.len()], seed))
}

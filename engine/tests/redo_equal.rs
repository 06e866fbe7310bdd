//! Promise: redo gives back the pages that a power cut has taken, byte for byte, whether they had been evicted, were in
//! the last checkpoint, or had never left memory.

mod workload;

use duramen::{Database, Durability, Result};
use duramen_sim::model::Model;
use duramen_sim::{Cut, CutChoice, FailingVolume};
use std::collections::BTreeMap;
use std::sync::Arc;
use workload::{Step, Workload, apply, options};

const NAME: &str = "t.duramen";

fn pages(db: &Database) -> Result<BTreeMap<u32, Vec<u8>>> {
    let mut pages = BTreeMap::new();
    db.each_page(|id, bytes| drop(pages.insert(id.0, bytes.to_vec())))?;
    Ok(pages)
}

/// Runs a workload, cuts the power with the log durable to its end, and compares all pages.
fn compare(seed: u64, cache: usize, checkpoints: bool) -> Result<()> {
    let volume = FailingVolume::new(seed);
    let db = options().cache(cache).checkpoint_bytes(1 << 40).create_on(Arc::new(volume.clone()), NAME)?;
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
    let what = format!("seed {seed}, cache {cache}, checkpoints {checkpoints}");
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
    for seed in 0..12 {
        compare(seed, if seed % 2 == 0 { 0 } else { 16 << 20 }, seed % 3 == 0)?;
    }
    Ok(())
}

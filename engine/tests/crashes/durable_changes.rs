//! Promise: if a sync after the last checkpoint has made changes of pages durable, and the process has then overwritten
//! what the checkpoint had of these pages, two power cuts lose nothing. The second cut is in the recovery from the
//! first one, or soon after it.

use super::*;

/// The pages that change, and a page that is written until the store syncs.
const CHANGING: std::ops::Range<u32> = 0..2;
const FILLER: u32 = 9;
/// The store syncs at the latest when it has written so many pages.
const WRITES: usize = 64;

/// Changes the pages, each in more than a sector of a delta.
fn change_much(run: &mut Run) {
    let changed = run.change_with(CHANGING, |_, lsn, before| {
        let mut page = before?.to_vec();
        bytes::put_u64(&mut page, 0, lsn);
        page[PAYLOAD..PAYLOAD + 600].iter_mut().step_by(16).for_each(|byte| *byte = byte.wrapping_add(2));
        Some(page)
    });
    changed.unwrap();
}

/// Makes all changes durable, without a checkpoint.
fn sync(run: &mut Run) {
    (0..WRITES).for_each(|_| run.change(FILLER..FILLER + 1).unwrap());
}

#[test]
fn a_recovery_that_is_cut_loses_no_changes_that_were_durable() {
    let is_shadow = |shape: &Shape| shape.options.kind == StoreKind::Shadow;
    let mut tried = 0;
    for shape in Shape::all().into_iter().filter(is_shadow) {
        let volume = shape.volume(8);
        let mut run = Run::create(shape, &volume).unwrap();
        run.write(CHANGING.chain(FILLER..FILLER + 1)).unwrap();
        for _ in 0..3 {
            run.checkpoint(std::iter::empty()).unwrap();
            change_much(&mut run);
        }
        run.checkpoint(std::iter::empty()).unwrap();
        let mut changes = Vec::new();
        for _ in 0..4 {
            let begin = volume.events();
            change_much(&mut run);
            changes.extend(begin..volume.events());
            sync(&mut run);
        }
        run.check("the history");
        // Each cut tears a change of a page whose earlier changes are durable.
        let is_torn = |cut: &Cut| matches!(cut.choice, CutChoice::Torn(_)) && changes.contains(&cut.event);
        for cut in volume.cuts(1).into_iter().filter(is_torn) {
            let crashed = volume.crash(cut);
            let mark = Mark::before(&volume, cut.event).expect("a checkpoint");
            mark.set(&crashed);
            let mut after = run.recover(&crashed, Some(mark)).expect("it was created");
            change_much(&mut after);
            for second in crashed.cuts(1) {
                tried += 1;
                let what = format!("{shape:?}, {cut:?}, then {second:?}, a {}", crashed.describe(second.event));
                let mark = Mark::before(&crashed, second.event).expect("the first one");
                after.recover(&crashed.crash(second), Some(mark)).expect("it was created").check(&what);
            }
        }
    }
    assert!(tried > 1000, "{tried} second cuts");
}

//! Promise: a power cut while a checkpoint cuts off the free end of the file, and while the file grows again, loses
//! nothing, in a file and on a block device.

use super::*;

/// Room for so many images makes the file so long that a checkpoint cuts off its free end.
const LONG: u64 = 700;
/// The pages that stay, and those that are written to the end of the file and dropped again.
const STAYING: u32 = 8;
const SHAPES: [Shape; 2] = [Shape::TABLE, Shape::of(StoreKind::Table, DeltaBlocks::OFF, Device::Block(12))];

/// Lets checkpoints cut off the end of the file, in which pages were, and writes pages there again. Returns the number
/// of cuts.
fn cut_and_grow(run: &mut Run) -> Result<usize> {
    let len = |run: &Run| run.store.stats().file_bytes;
    let mut cuts = 0;
    for _ in 0..2 {
        run.store.ensure_room(LONG)?;
        run.write(STAYING..200)?;
        run.checkpoint(0..2)?;
        run.drop_pages(STAYING..200);
        run.store.ensure_room(1)?;
        for _ in 0..3 {
            let before = len(run);
            run.checkpoint(2..4)?;
            cuts += usize::from(len(run) < before);
        }
        let cut = len(run);
        run.store.ensure_room(LONG)?;
        run.write(STAYING..200)?;
        assert!(len(run) > cut, "the file has grown again");
        run.change(1..12)?;
    }
    Ok(cuts)
}

#[test]
fn redo_continues_after_every_power_cut_around_a_truncation() {
    for shape in SHAPES {
        let volume = shape.volume(6);
        let mut run = Run::create(shape, &volume).unwrap();
        run.write(0..STAYING).unwrap();
        run.checkpoint(std::iter::empty()).unwrap();
        let created = volume.events();
        let cuts = cut_and_grow(&mut run).unwrap();
        assert_eq!(cuts, 2, "{shape:?}");
        run.check("the history");
        for cut in volume.cuts(1).into_iter().filter(|cut| cut.event >= created) {
            let what = format!("{shape:?}, {cut:?}, a {}", volume.describe(cut.event));
            let crashed = volume.crash(cut);
            let mut after = run.recover(&crashed, Mark::before(&volume, cut.event)).expect("it was created");
            after.check(&what);
            after.store.check_places().unwrap();
            after.write(0..STAYING).unwrap();
            after.checkpoint(std::iter::empty()).unwrap();
            let mark = Mark { redo: after.acknowledged, end: after.end };
            after.recover(&crashed, Some(mark)).unwrap().check(&what);
        }
    }
}

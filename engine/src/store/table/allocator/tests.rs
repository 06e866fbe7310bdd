//! Tests of the free map against a list of extents.

use super::*;
use proptest::prelude::*;

/// A grain that no test reaches.
const FAR: u64 = 1 << 20;

#[derive(Clone, Debug)]
enum Step {
    One(u64),
    Batch(Vec<u32>, Fit),
    Below(u64),
    Release(usize),
    Trim,
}

fn fit() -> impl Strategy<Value = Fit> {
    prop_oneof![Just(Fit::Next), Just(Fit::Lowest)]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => prop_oneof![1u64..130, 1u64..5000].prop_map(Step::One),
        3 => (proptest::collection::vec(1u32..130, 1..40), fit()).prop_map(|(sizes, fit)| Step::Batch(sizes, fit)),
        2 => (1u64..130).prop_map(Step::Below),
        6 => any::<usize>().prop_map(Step::Release),
        1 => Just(Step::Trim),
    ]
}

/// Takes an extent in the model; fails on an overlap.
fn take(model: &mut Vec<Extent>, extent: Extent) -> Result<(), TestCaseError> {
    prop_assert!(model.iter().all(|other| other.end() <= extent.first || extent.end() <= other.first));
    model.push(extent);
    Ok(())
}

/// Allocates places for all images, run by run.
fn allocate_all(allocator: &mut PlaceAllocator, sizes: &[u32], fit: Fit, firsts: &mut Vec<u64>) -> bool {
    while let Some(rest) = sizes.get(firsts.len()..).filter(|rest| !rest.is_empty()) {
        let before = firsts.len();
        if !allocator.allocate_run(rest, fit, u64::MAX, firsts) || firsts.len() == before {
            return false;
        }
    }
    true
}

fn lowest_free_run(model: &[Extent], grains: u64) -> u64 {
    let mut sorted = model.to_vec();
    sorted.sort_unstable();
    let region = u64::from(REGION);
    let mut at = 0;
    for extent in sorted.iter().copied().chain([Extent { first: u64::MAX, grains: 0 }]) {
        // No run crosses a border of regions.
        while at < extent.first {
            let end = extent.first.min((at / region + 1) * region);
            if end - at >= grains {
                return at;
            }
            at = end;
        }
        at = extent.end();
    }
    at
}

fn free_longest_places(model: &[Extent], grains: u64, end: u64) -> u64 {
    let mut sorted = model.to_vec();
    sorted.sort_unstable();
    let region = u64::from(REGION);
    let (mut at, mut longest_places) = (0, 0);
    for extent in sorted.iter().copied().chain([Extent { first: end, grains: 0 }]) {
        while at < extent.first.min(end) {
            let stop = extent.first.min(end).min((at / region + 1) * region);
            longest_places += (stop - at) / grains;
            at = stop;
        }
        at = at.max(extent.end());
    }
    longest_places
}

proptest! {
    #[test]
    fn allocations_do_not_overlap_and_take_the_lowest_free_run(steps in proptest::collection::vec(step(), 1..120)) {
        let mut allocator = PlaceAllocator::new(17);
        let mut model = vec![Extent { first: 0, grains: FIRST_GRAIN }];
        for step in steps {
            match step {
                Step::One(grains) => {
                    let extent = allocator.allocate(grains).unwrap();
                    prop_assert_eq!(extent.grains, grains);
                    if grains <= u64::from(REGION) {
                        prop_assert_eq!(extent.first, lowest_free_run(&model, grains));
                    }
                    take(&mut model, extent)?;
                }
                Step::Batch(sizes, fit) => {
                    let mut firsts = Vec::new();
                    let places = allocator.longest_places(FAR);
                    prop_assert!(allocate_all(&mut allocator, &sizes, fit, &mut firsts));
                    let most: u64 = sizes.iter().map(|&size| u64::from(size.div_ceil(17))).sum();
                    prop_assert!(allocator.longest_places(FAR) + most >= places, "no free run is cut in two");
                    prop_assert_eq!(firsts.len(), sizes.len());
                    for (&first, &size) in firsts.iter().zip(&sizes) {
                        let extent = Extent { first, grains: u64::from(size) };
                        prop_assert_eq!(extent.first / u64::from(REGION), (extent.end() - 1) / u64::from(REGION));
                        take(&mut model, extent)?;
                    }
                }
                Step::Below(grains) => {
                    let limit = allocator.end() / 2;
                    let expected = Some(lowest_free_run(&model, grains)).filter(|first| first + grains <= limit);
                    let extent = allocator.allocate_below(grains, limit);
                    prop_assert_eq!(extent.map(|extent| extent.first), expected);
                    if let Some(extent) = extent {
                        take(&mut model, extent)?;
                    }
                }
                Step::Release(which) if model.len() > 1 => {
                    allocator.release(model.swap_remove(1 + which % (model.len() - 1)));
                }
                Step::Release(_) => {}
                Step::Trim => allocator.trim(),
            }
            prop_assert_eq!(allocator.used(), model.iter().map(|extent| extent.grains).sum::<u64>());
            let end = allocator.end() + if allocator.used().is_multiple_of(2) { 3000 } else { 0 };
            prop_assert_eq!(allocator.longest_places(end), free_longest_places(&model, 17, end));
            prop_assert_eq!(allocator.end(), model.iter().map(|extent| extent.end()).max().unwrap());
            let places = allocator.longest_places(allocator.end()) + end % 400;
            let with = allocator.end_with(places);
            prop_assert!(with >= allocator.end() && allocator.longest_places(with) >= places);
            let is_border = with == allocator.end() || with.is_multiple_of(u64::from(REGION));
            prop_assert!(is_border || allocator.longest_places(with - 1) < places, "it is the least one");
        }
        for extent in model.clone() {
            prop_assert!(!allocator.claim(extent), "a place in use was given out");
        }
    }
}

#[test]
fn a_batch_lies_together_in_an_empty_file() {
    let mut allocator = PlaceAllocator::new(17);
    let mut firsts = Vec::new();
    assert!(allocate_all(&mut allocator, &[16; 100], Fit::Next, &mut firsts));
    assert!(firsts.windows(2).all(|pair| pair[1] == pair[0] + 16));
}

#[test]
fn a_batch_uses_free_runs_before_the_file_grows() {
    let mut allocator = PlaceAllocator::new(17);
    let mut firsts = Vec::new();
    assert!(allocate_all(&mut allocator, &[16; 100], Fit::Next, &mut firsts));
    for first in firsts.iter().step_by(2) {
        allocator.release(Extent { first: *first, grains: 16 });
    }
    for _ in 0..6 {
        assert!(allocate_all(&mut allocator, &[16; 10], Fit::Lowest, &mut Vec::new()));
    }
    assert!(allocator.end() <= u64::from(REGION), "60 images in 50 free runs and the rest of the region");
}

#[test]
fn the_map_grows_with_the_used_bytes_and_not_with_the_file() {
    let mut allocator = PlaceAllocator::new(17);
    let far = Extent { first: MAX_GRAINS - 17, grains: 17 };
    assert!(allocator.claim(far));
    assert_eq!((allocator.slots.len(), allocator.end()), (2, MAX_GRAINS));
    let longest_places = MAX_GRAINS / u64::from(REGION) * u64::from(REGION / 17);
    assert!((longest_places - 3..=longest_places).contains(&allocator.longest_places(MAX_GRAINS)));
    assert_eq!(allocator.allocate(5000).map(|extent| extent.first), Some(u64::from(REGION)));
    allocator.release(far);
    allocator.trim();
    assert_eq!((allocator.slots.len(), allocator.count), (4, 4));
}

#[test]
fn the_file_never_exceeds_the_largest_length() {
    let mut allocator = PlaceAllocator::new(17);
    assert!(!allocator.claim(Extent { first: MAX_GRAINS - 1, grains: 2 }));
    assert!(!allocator.claim(Extent { first: u64::MAX, grains: 2 }));
    assert!(!allocator.claim(Extent { first: 20, grains: 0 }));
    assert_eq!(allocator.used(), FIRST_GRAIN);
}

#[test]
fn a_long_free_run_is_used_unless_the_file_could_be_much_shorter() {
    for (free, is_used, fit) in
        [(2, true, Fit::Lowest), (7, false, Fit::Lowest), (2, true, Fit::Next), (7, false, Fit::Next)]
    {
        let mut allocator = PlaceAllocator::new(17);
        let mut firsts = Vec::new();
        assert!(allocate_all(&mut allocator, &[16; 8 * REGION as usize / 16 - 8], Fit::Next, &mut firsts));
        let region = |first: u64| first / u64::from(REGION);
        for (index, &first) in firsts.iter().enumerate() {
            // Every second image of the regions 0 to 5 is released, and all of region `free` but the last image.
            if (region(first) == free && index + 1 < firsts.len()) || (index % 2 == 0 && region(first) < 6) {
                allocator.release(Extent { first, grains: 16 });
            }
        }
        let mut batch = Vec::new();
        assert!(allocate_all(&mut allocator, &[16; 60], fit, &mut batch));
        assert_eq!(batch.iter().all(|&first| region(first) == free), is_used, "{batch:?}");
        assert_eq!(batch.iter().any(|&first| region(first) == free), is_used, "{batch:?}");
    }
}

#[test]
fn a_batch_goes_on_behind_the_last_one_and_comes_back_when_more_has_become_free() {
    let mut allocator = PlaceAllocator::new(17);
    let mut firsts = Vec::new();
    assert!(allocate_all(&mut allocator, &[16; 4 * REGION as usize / 16 - 8], Fit::Next, &mut firsts));
    let free_runs = |allocator: &mut PlaceAllocator, firsts: &[u64]| {
        for run in firsts.chunks_exact(8).step_by(2) {
            run[..4].iter().for_each(|&first| allocator.release(Extent { first, grains: 16 }));
        }
    };
    free_runs(&mut allocator, &firsts);
    let mut batches = Vec::new();
    for _ in 0..20 {
        let mut batch = Vec::new();
        assert!(allocate_all(&mut allocator, &[16; 4], Fit::Next, &mut batch));
        assert!(batch.windows(2).all(|pair| pair[1] == pair[0] + 16), "one run: {batch:?}");
        batches.push(batch[0]);
    }
    assert!(batches.is_sorted(), "{batches:?}");
    // What is free before the last batch waits until the search has been at the end.
    allocator.release(Extent { first: batches[0], grains: 64 });
    let mut next = Vec::new();
    assert!(allocate_all(&mut allocator, &[16; 4], Fit::Next, &mut next));
    assert!(next[0] > batches[19]);
    let mut lowest = Vec::new();
    assert!(allocate_all(&mut allocator, &[16; 4], Fit::Lowest, &mut lowest));
    assert_eq!(lowest[0], batches[0]);
}

//! Tests inserts, replacements, removals and searches against a sorted Vec, and tests the builder and packing.

use super::*;
use crate::page::unpack_within;

#[derive(Clone, Debug)]
enum Step {
    Put(Owned),
    Remove(prop::sample::Index, usize),
    /// Integer keys from the entry's key on: their number, their distance, and whether they are one run.
    Run(Owned, usize, u64, bool),
    /// Entries that are inserted as one run.
    Many(Vec<Owned>),
    /// An addition to a number in a record: the entry, the byte offset, what is added.
    Add(prop::sample::Index, u16, i64),
}

fn steps(shape: Shape) -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        5 => entry(shape).prop_map(Step::Put),
        1 => (any::<prop::sample::Index>(), prop_oneof![4 => Just(1usize), 1 => 0usize..6, 1 => 0usize..600])
            .prop_map(|(at, n)| Step::Remove(at, n)),
        1 => (entry(shape), 1usize..400, prop_oneof![Just(1u64), 1u64..40, Just(70_000)], any::<bool>())
            .prop_map(|(entry, count, distance, together)| Step::Run(entry, count, distance, together)),
        1 => proptest::collection::vec(entry(shape), 1..60).prop_map(Step::Many),
        1 => (any::<prop::sample::Index>(), 0u16..12, any::<i64>())
            .prop_map(|(at, offset, delta)| Step::Add(at, offset, delta)),
    ];
    proptest::collection::vec(step, 0..120)
}

type Setup = (Shape, Vec<u8>, Option<Vec<u8>>, Vec<Step>);

fn setup() -> impl Strategy<Value = Setup> {
    shape().prop_flat_map(|shape| (fences(shape), steps(shape)).prop_map(move |((l, u), steps)| (shape, l, u, steps)))
}

/// Bytes of an entry besides its key and its record.
const ENTRY_SLOTS: usize = 8;

/// The page has grown by no more than its list allows for these entries.
fn assert_growth(before: &[u8], page: &[u8], new: &[Owned]) {
    let (free, left, keys) = (Page::new(before).free(), Page::new(page).free(), Page::new(page).keys());
    // The slots of lists without blocks have different lengths.
    let Some(growth) = keys.codec().and(keys.most_growth()) else { return };
    let most: usize = new.iter().map(|(key, record, _)| key.len() + record.len() + ENTRY_SLOTS + growth).sum();
    assert!(free.saturating_sub(left) <= most, "{free} bytes, then {left}, and not {most} less");
}

/// Inserts one entry into page and model. The page may refuse it if there is no room, and is then unchanged.
fn put(page: &mut [u8], model: &mut Vec<Owned>, entry: Owned) {
    let before = page.to_vec();
    let found = Page::new(page).search(&entry.0);
    let expected = model.binary_search_by(|there| there.0.cmp(&entry.0));
    assert_eq!(found, expected);
    let done = match found {
        Ok(slot) => apply(page, &PageOp::Replace { slot: slot as u16, record: as_record(&entry) }, Lsn(2)),
        Err(slot) => {
            let would = would_insert(Page::new(page), slot, &entry.0, as_record(&entry));
            let done =
                apply(page, &PageOp::Insert { slot: slot as u16, key: &entry.0, record: as_record(&entry) }, Lsn(2));
            assert_eq!(would.unwrap(), *done.as_ref().unwrap(), "would_insert and apply agree");
            assert_growth(&before, page, std::slice::from_ref(&entry));
            done
        }
    };
    // The page refuses another length in a list of fixed sizes; the strategies never generate one.
    if done.unwrap() {
        match found {
            Ok(slot) => model[slot] = entry,
            Err(slot) => model.insert(slot, entry),
        }
    } else {
        assert_eq!(page, before, "a refused operation changed the page");
    }
}

/// Inserts the new ones of the entries into page and model as one run. The entries that fit, inserted again, make the
/// same page.
fn put_run(page: &mut [u8], model: &mut Vec<Owned>, entries: Vec<Owned>) {
    let place = |entry: &Owned| model.binary_search_by(|there| there.0.cmp(&entry.0)).err();
    let new: Vec<(usize, &Owned)> = entries.iter().filter_map(|entry| Some((place(entry)?, entry))).collect();
    let run: Vec<NewEntry<'_>> = new
        .iter()
        .map(|&(slot, entry)| NewEntry { slot: slot as u16, key: &entry.0, record: as_record(entry) })
        .collect();
    let before = page.to_vec();
    let done = insert_run(page, &run, Lsn(2)).unwrap();
    let mut again = before.clone();
    if done > 0 {
        let whole = PageOp::InsertRun { entries: run[..done].into() };
        assert!(apply(&mut again, &whole, Lsn(2)).unwrap(), "a run that fit once fits again");
    }
    assert!(again == page, "the same run makes another page");
    let refused = run.get(done).map(|entry| {
        let op = PageOp::Insert { slot: entry.slot + done as u16, key: entry.key, record: entry.record };
        (op, again.clone())
    });
    if let Some((op, mut page)) = refused.filter(|_| done == 0) {
        assert!(!apply(&mut page, &op, Lsn(2)).unwrap(), "there is room for the first entry");
    }
    let new: Vec<Owned> = new.into_iter().take(done).map(|(_, entry)| entry.clone()).collect();
    assert_growth(&before, page, &new);
    model.extend(new);
    model.sort();
}

/// Adds to a number in a record of page and model. The page refuses it if the record has no such number.
fn add(page: &mut [u8], model: &mut [Owned], slot: usize, offset: u16, delta: i64) {
    let before = page.to_vec();
    let done = apply(page, &PageOp::AddToRecord { slot: slot as u16, offset, delta }, Lsn(2));
    let record = model.get_mut(slot).filter(|(_, _, large)| !large);
    let number = record.and_then(|(_, bytes, _)| bytes.get_mut(usize::from(offset)..)?.first_chunk_mut());
    match number {
        Some(number) => {
            assert!(done.unwrap());
            *number = u64::from_le_bytes(*number).saturating_add_signed(delta).to_le_bytes();
        }
        None => assert!(done.is_err() && page == before, "a refused operation changed the page"),
    }
}

/// Returns true if the layout of the list depends on the order of the insertions, not only on the entries.
fn has_history(keys: KeyListKind) -> bool {
    matches!(keys, KeyListKind::WiredTiger(_) | KeyListKind::Db2) || keys.key_len().is_some()
}

/// Returns true for lists with a best prefix group.
fn has_best(keys: KeyListKind) -> bool {
    matches!(keys, KeyListKind::WiredTiger(Instantiation::BestGroup | Instantiation::Both))
}

fn number(key: &[u8]) -> u64 {
    key.iter().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

/// Returns a number as a key of that many bytes.
fn bytes_of(number: u64, len: usize) -> Option<Vec<u8>> {
    let bytes = number.to_be_bytes();
    bytes[..8 - len].iter().all(|&byte| byte == 0).then(|| bytes[8 - len..].to_vec())
}

fn run((shape, lower, upper, steps): Setup) -> (Vec<u8>, Vec<Owned>) {
    let mut page = empty(shape, &lower, upper.as_deref());
    let mut model: Vec<Owned> = Vec::new();
    let mut countdown = 0usize;
    for step in steps {
        match step {
            Step::Put(entry) if sorted(vec![entry.clone()], &lower, upper.as_deref()).is_empty() => {
                assert_eq!(Page::new(&page).below_upper(&entry.0), upper.as_ref().is_none_or(|u| entry.0 < *u));
            }
            Step::Put(entry) => put(&mut page, &mut model, entry),
            Step::Remove(at, n) => {
                let from = if model.is_empty() { 0 } else { at.index(model.len()) };
                let to = (from + n).min(model.len());
                let before = page.clone();
                if apply(&mut page, &PageOp::Remove { from: from as u16, to: to as u16 }, Lsn(3)).unwrap() {
                    model.drain(from..to);
                } else {
                    assert!(shape.keys.may_grow_on_removal() && page == before);
                }
            }
            Step::Add(at, offset, delta) => {
                let slot = if model.is_empty() { 0 } else { at.index(model.len()) };
                add(&mut page, &mut model, slot, offset, delta);
            }
            Step::Many(entries) => put_run(&mut page, &mut model, sorted(entries, &lower, upper.as_deref())),
            Step::Run((key, record, large), count, distance, together) if shape.keys.key_len().is_some() => {
                let (mut key, mut entries) = (Some(number(&key)), Vec::new());
                for _ in 0..count {
                    let Some(bytes) = key.and_then(|key| bytes_of(key, shape.key_len)) else { break };
                    let entry = (bytes, record.clone(), large);
                    entries.push(entry);
                    key = key.and_then(|key| key.checked_add(distance));
                }
                let entries = sorted(entries, &lower, upper.as_deref());
                if together {
                    put_run(&mut page, &mut model, entries);
                } else {
                    entries.into_iter().for_each(|entry| put(&mut page, &mut model, entry));
                }
            }
            Step::Run(..) => {}
        }
        // Large pages are compared whole only from time to time, to keep the test quick.
        countdown = countdown.checked_sub(shape.size.min(4096)).unwrap_or_else(|| {
            assert_holds(&page, &model);
            4096 * 3
        });
    }
    assert_holds(&page, &model);
    (page, model)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn a_page_agrees_with_a_sorted_vec(setup in setup()) {
        let (lower, upper) = (setup.1.clone(), setup.2.clone());
        let (page, _) = run(setup);
        let view = Page::new(&page);
        prop_assert_eq!(view.lower_fence(), lower.as_slice());
        let mut fence = Vec::new();
        prop_assert_eq!(view.upper_fence_into(&mut fence), upper.is_some());
        prop_assert_eq!(fence, upper.unwrap_or_default());
        prop_assert_eq!((view.id(), view.table(), view.right(), view.level()), (PageId(7), TableId(3), PageId(9), 0));
    }

    #[test]
    fn every_key_is_searched_right_even_outside_the_fences(setup in setup(), probe in free_key(40)) {
        let (page, model) = run(setup);
        let expected = model.binary_search_by(|there| there.0.as_slice().cmp(&probe));
        prop_assert_eq!(Page::new(&page).search(&probe), expected);
        for from in 0..=model.len() {
            let longer = (from..model.len()).find(|slot| model[*slot].0.len() > probe.len());
            prop_assert_eq!(Page::new(&page).first_longer(from, probe.len()), longer);
        }
    }

    #[test]
    fn a_window_that_moves_has_the_keys_of_the_page(setup in setup(), jumps: Vec<prop::sample::Index>) {
        let (page, model) = run(setup);
        let (page, mut window) = (Page::new(&page), KeyWindow::default());
        let slots = (0..model.len()).chain((0..model.len()).rev());
        for slot in slots.chain(jumps.iter().filter(|_| !model.is_empty()).map(|jump| jump.index(model.len()))) {
            let end = window.fetch(page, slot);
            prop_assert!(slot < end && end <= model.len());
            for (slot, (key, ..)) in model.iter().enumerate().take(end).skip(slot) {
                prop_assert_eq!(window.get(slot), key.as_slice());
            }
        }
        window.fetch(page, model.len());
        prop_assert_eq!(window.get(model.len()), b"");
    }

    #[test]
    fn a_builder_makes_the_same_page_as_inserts(setup in setup()) {
        let (shape, lower, upper) = (setup.0, setup.1.clone(), setup.2.clone());
        let (page, model) = run(setup);
        let spec = spec(shape, &lower, upper.as_deref());
        let mut builder = PageBuilder::new(shape.size, &spec);
        for entry in &model {
            let pushed = builder.push(&entry.0, as_record(entry));
            prop_assert!(pushed || has_history(shape.keys), "a builder refuses entries that inserts fit");
            if !pushed {
                break;
            }
        }
        let (used, count) = (builder.used(), builder.count());
        let built = format(shape, builder.finish());
        assert_holds(&built, &model[..count]);
        let group = Page::new(&built).used().checked_sub(used);
        prop_assert!(group == Some(0) || (has_best(shape.keys) && group.is_some()), "{group:?} more than reported");

        let mut builder = PageBuilder::new(shape.size, &spec);
        prop_assert!(builder.push_entries(Page::new(&page), 0..model.len(), None), "a builder refuses the entries");
        prop_assert!(builder.used() <= Page::new(&page).used());
        assert_holds(&format(shape, builder.finish()), &model);
    }

    #[test]
    fn unpacking_restores_the_page(setup in setup(), zeros in 0..=100usize) {
        let (page, _) = run(setup);
        let mut packed = Vec::new();
        Page::new(&page).packed_into(&mut packed);
        prop_assert_eq!(packed.len(), Page::new(&page).used());
        let mut back = vec![0xAA; page.len()];
        unpack(&packed, &mut back).unwrap();
        prop_assert_eq!(&back, &page);
        for cut in [0, packed.len() - 1] {
            prop_assert!(unpack(&packed[..cut], &mut back).is_err());
        }
        prop_assert_eq!(&back, &page);

        // Zeros between the lists do not count, wherever in the page the image is.
        let len = packed.len() + (page.len() - packed.len()) * zeros / 100;
        let mut longer = Vec::new();
        Page::new(&packed).packed_with_zeros_into(|_| len, &mut longer);
        prop_assert_eq!(longer.len(), len);
        back.fill(0xAA);
        unpack(&longer, &mut back).unwrap();
        prop_assert_eq!(&back, &page);
        for start in [0, page.len() - len] {
            back.fill(0xAA);
            back[start..start + len].copy_from_slice(&longer);
            unpack_within(&mut back, start..start + len).unwrap();
            prop_assert_eq!(&back, &page);
        }

        // Bytes of an older copy stay between the lists.
        let used = Page::new(&page).used();
        let mut copy = vec![0xAA; page.len()];
        Page::new(&page).copy_into(&mut copy);
        prop_assert_eq!(copy.iter().zip(&page).filter(|(copied, byte)| copied != byte).count(), page.len() - used);
        prop_assert_eq!(entries(Page::new(&copy)), entries(Page::new(&page)));
        let mut short = vec![0xAA; 7];
        Page::new(&page).copy_into(&mut short);
        prop_assert_eq!(short, page);
    }

    #[test]
    fn keeping_some_entries_lays_them_out_under_the_new_fences(setup in setup(), cuts: [prop::sample::Index; 2], widen: bool) {
        let (shape, lower, upper) = (setup.0, setup.1.clone(), setup.2.clone());
        let (mut page, model) = run(setup);
        let mut cuts = cuts.map(|cut| cut.index(model.len() + 1));
        cuts.sort();
        let [from, to] = cuts;
        let new_lower = if from < model.len() && !widen { model[from].0.clone() } else { lower };
        let new_upper = if to < model.len() && !widen { Some(model[to].0.clone()) } else { upper };
        prop_assume!(new_upper.as_ref().is_none_or(|upper| new_lower < *upper));
        let before = page.clone();
        let op = PageOp::Keep { from: from as u16, to: to as u16, lower: &new_lower, upper: new_upper.as_deref(), right: PageId(77) };
        if apply(&mut page, &op, Lsn(9)).unwrap() {
            assert_holds(&page, &model[from..to]);
            let view = Page::new(&page);
            prop_assert_eq!((view.right(), view.lsn(), view.lower_fence()), (PageId(77), Lsn(9), new_lower.as_slice()));
            prop_assert_eq!(view.has_upper_fence(), new_upper.is_some());
        } else {
            prop_assert_eq!(page, before);
            let mut builder = PageBuilder::new(shape.size, &spec(shape, &new_lower, new_upper.as_deref()));
            let fits = model[from..to].iter().all(|entry| builder.push(&entry.0, as_record(entry)));
            prop_assert!(!fits || builder.used() > shape.size || has_history(shape.keys), "it fits, but was refused");
        }
    }
}

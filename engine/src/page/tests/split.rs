//! Tests splits: both halves fit with the pending entry in one of them, the separator divides them, and it is as short
//! as the window allows.

use super::*;
use crate::page::separator::choose_split_without_pending;
use proptest::sample::{Index, select};

fn rules() -> impl Strategy<Value = SeparatorRule> {
    prop_oneof![Just(SeparatorRule::Full), Just(SeparatorRule::TAIL), Just(SeparatorRule::Tail { radius: 500 })]
}

type Setup = (Shape, Vec<u8>, Option<Vec<u8>>, Vec<Owned>, Owned, SeparatorRule);

fn setup() -> impl Strategy<Value = Setup> {
    shape().prop_flat_map(|shape| {
        let entries = proptest::collection::vec(entry(shape), 2..400);
        (fences(shape), entries, entry(shape), rules())
            .prop_map(move |((lower, upper), entries, pending, rule)| (shape, lower, upper, entries, pending, rule))
    })
}

/// Returns the largest sound page of these entries, and their number.
fn fill(shape: Shape, spec: &PageSpec<'_>, entries: &[Owned]) -> (Vec<u8>, usize) {
    let mut builder = PageBuilder::new(shape.size, spec);
    for entry in entries {
        if !builder.push(&entry.0, as_record(entry)) {
            break;
        }
    }
    let count = builder.count();
    (format(shape, builder.finish()), count)
}

/// Performs a split as the tree does: a new right page, the rest kept left, the pending entry inserted into its half.
fn halves(page: &[u8], split: &Split, upper: Option<&[u8]>, pending: Option<(usize, &Owned)>) -> [Vec<u8>; 2] {
    let view = Page::new(page);
    let (mut left, all) = (page.to_vec(), entries(view));
    let count = all.len() as u16;
    let spec = PageSpec {
        id: PageId(7),
        table: view.table(),
        kind: view.kind(),
        level: view.level(),
        keys: view.keys(),
        records: view.records(),
        lower: &split.separator,
        upper,
        right: PageId(0),
    };
    let mut builder = PageBuilder::new(page.len(), &spec);
    assert!(builder.push_entries(view, split.left_count..all.len(), None), "the right half does not fit");
    let mut right = vec![0; page.len()];
    unpack(&builder.finish(), &mut right).unwrap();
    let lower = view.lower_fence();
    let keep = PageOp::Keep {
        from: 0,
        to: (split.left_count as u16).min(count),
        lower,
        upper: Some(&split.separator),
        right: PageId(8),
    };
    assert!(apply(&mut left, &keep, Lsn(5)).unwrap(), "the left half does not fit");
    if let Some((slot, entry)) = pending {
        let left_gets_it = split.pending_left == Some(true);
        let (half, at) = if left_gets_it { (&mut left, slot) } else { (&mut right, slot - split.left_count) };
        let insert = PageOp::Insert { slot: at as u16, key: &entry.0, record: as_record(entry) };
        let done = apply(half, &insert, Lsn(6)).unwrap();
        // The exact cost of a key in a block is known only afterwards; the tree then splits again.
        assert!(done || view.keys().key_len().is_some(), "the pending entry does not fit its half");
    }
    [left, right]
}

/// Returns the bytes of keys and records alone.
fn key_bytes(model: &[Owned]) -> usize {
    model.iter().map(|entry| entry.0.len() + entry.1.len()).sum()
}

/// A separator that a dense list can hold.
fn short() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(b'1'..=b'9', 1..5)
}

/// The key lists for keys of any length whose pages have their keys.
fn free_lists() -> Vec<KeyListKind> {
    let free = |list: &KeyListKind| !list.has_one_length() && list.key_len().is_none() && !list.keys_are_out_of_line();
    KeyListKind::ALL.into_iter().filter(free).collect()
}

/// The length of a record in hundredths of the greatest.
fn record_share() -> impl Strategy<Value = usize> {
    prop_oneof![3 => Just(0), 2 => Just(100), 2 => 0usize..=100, 2 => 0usize..=5]
}

/// Divides a page of keys that are as long as they can be inside a page, and that differ in their last two bytes, for a
/// pending entry of the greatest length at each of the slots that `slots` returns for the number of entries. `shares`
/// are the lengths of the records in hundredths of the greatest.
fn divide_long_keys(
    keys: KeyListKind,
    size: usize,
    shares: &[usize],
    bounded: bool,
    rule: SeparatorRule,
    slots: impl FnOnce(usize) -> Vec<usize>,
) {
    let shape = Shape { size, keys, records: RecordListKind::Variable, key_len: 0, record_len: 0 };
    let len = limits::max_inline_key(size);
    let key = |number: usize| [&vec![b'k'; len - 2][..], &(number as u16).to_be_bytes()].concat();
    let greatest = limits::max_entry(size) - len;
    let entry = |number: usize, share: usize| (key(number), vec![7; greatest * share / 100], false);
    let all: Vec<Owned> = shares.iter().enumerate().map(|(slot, share)| entry(2 * slot + 1, *share)).collect();
    let (lower, upper) = (key(0), bounded.then(|| key(2 * all.len() + 1)));
    let (page, count) = fill(shape, &spec(shape, &lower, upper.as_deref()), &all);
    let pending = |slot: usize| entry(2 * slot, 100).0;
    let choose = |slot: usize| choose_split(Page::new(&page), Some((slot, &pending(slot), greatest)), rule).unwrap();
    let without_pending = || choose_split_without_pending(Page::new(&page), rule).unwrap();
    let slots = if count < 2 { Vec::new() } else { slots(count) };
    for split in slots.into_iter().map(choose).chain((count >= 2).then(without_pending)) {
        let [left, right] = halves(&page, &split, upper.as_deref(), None);
        assert_holds(&left, &all[..split.left_count]);
        assert_holds(&right, &all[split.left_count..count]);
        let has_left = split.left_count > 0 || split.pending_left == Some(true);
        assert!(has_left && (split.left_count < count || split.pending_left == Some(false)), "{split:?}");
    }
}

/// The two fences of a page have no common prefix, two of its entries and the pending one have the greatest length, and
/// a shorter one comes first. One cut alone divides them.
#[test]
fn entries_between_long_fences_without_a_common_prefix_can_be_divided() {
    for (keys, records) in free_lists().into_iter().flat_map(|keys| {
        [RecordListKind::Variable, RecordListKind::Fixed, RecordListKind::None].map(|records| (keys, records))
    }) {
        for shift in 8..15 {
            let shape = Shape { size: 1 << shift, keys, records, key_len: 0, record_len: 0 };
            let (len, fixed) = (limits::max_inline_key(shape.size), limits::max_entry(shape.size) / 4);
            let entry = |first: u8, last: u8, len: usize, percent: usize| {
                let greatest = limits::max_entry(shape.size) - len;
                let record = match records {
                    RecordListKind::Variable => greatest * percent / 100,
                    RecordListKind::Fixed => fixed,
                    RecordListKind::None => 0,
                };
                ([&vec![first; len - 1][..], &[last]].concat(), vec![7; record], false)
            };
            let upper = vec![b'z'; len];
            let spec = spec(shape, b"", Some(&upper));
            for first in 0..=100 {
                let all = [
                    entry(b'a', 0, (len * first / 100).max(2), first),
                    entry(b'b', 7, len, 100),
                    entry(b'b', 8, len, 100),
                ];
                let (page, count) = fill(shape, &spec, &all);
                let pending = entry(b'b', 6, len, 100);
                if count < all.len() || would_insert(Page::new(&page), 1, &pending.0, as_record(&pending)).unwrap() {
                    continue;
                }
                for rule in [SeparatorRule::Full, SeparatorRule::TAIL] {
                    let split = choose_split(Page::new(&page), Some((1, &pending.0, pending.1.len())), rule).unwrap();
                    let [left, right] = halves(&page, &split, Some(&upper), None);
                    assert_holds(&left, &all[..split.left_count]);
                    assert_holds(&right, &all[split.left_count..]);
                }
            }
        }
    }
}

/// One entry of the greatest length is among entries with short records, at different slots.
#[test]
fn a_long_entry_beside_a_long_one_can_be_divided_from_it() {
    for keys in free_lists() {
        for (bounded, rule) in [(false, SeparatorRule::Full), (true, SeparatorRule::Full), (false, SeparatorRule::TAIL)]
        {
            for (share, long) in [0, 3].into_iter().flat_map(|share| (0..60).step_by(6).map(move |long| (share, long)))
            {
                let shares: Vec<usize> = (0..120).map(|slot| if slot == long { 100 } else { share }).collect();
                divide_long_keys(keys, 2048, &shares, bounded, rule, |count| (0..=count).collect());
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_dense_inner_page_can_be_split_for_an_entry_that_makes_it_sparse(
        shift in 8usize..12, bounded: bool, all in proptest::collection::vec(short(), 100..900),
        pending in (short(), 0usize..400).prop_map(|(key, more)| [key, vec![b'5'; more]].concat()), zero: bool,
        rule in rules(),
    ) {
        let shape =
            Shape { size: 1 << shift, keys: KeyListKind::Head, records: RecordListKind::Fixed, key_len: 0, record_len: 4 };
        let upper = bounded.then_some(&b"\xFF"[..]);
        let child = |key: Vec<u8>| (key, vec![1, 0, 0, 7], false);
        let all = sorted(all.into_iter().map(child).collect(), b"", upper);
        let spec = PageSpec { kind: PageKind::Inner, level: 1, ..spec(shape, b"", upper) };
        let (page, count) = fill(shape, &spec, &all);
        let mut pending = child(pending);
        pending.0.truncate(limits::max_inline_key(shape.size) - 1);
        pending.0.extend(zero.then_some(0));
        let place = Page::new(&page).search(&pending.0).err().filter(|&slot| slot > 0);
        let place = place.filter(|_| upper.is_none_or(|upper| pending.0.as_slice() < upper));
        prop_assume!(count >= 3 && place.is_some());
        let choice = place.map(|slot| (slot, pending.0.as_slice(), 4));
        let split = choose_split(Page::new(&page), choice, rule).unwrap();
        let halves = halves(&page, &split, upper, place.map(|slot| (slot, &pending)));
        let held: usize = halves.iter().map(|half| Page::check(half, PageId(7)).unwrap().count()).sum();
        prop_assert_eq!(held, count + 1);
    }

    #[test]
    fn entries_of_the_greatest_length_can_be_divided(
        shift in 8usize..15, list in select(free_lists()), shares in proptest::collection::vec(record_share(), 1..300),
        bounded: bool, place: Index, rule in rules(),
    ) {
        divide_long_keys(list, 1 << shift, &shares, bounded, rule, |count| vec![place.index(count + 1)]);
    }

    #[test]
    fn both_halves_of_a_leaf_fit_and_the_separator_divides((shape, lower, upper, all, pending, rule) in setup()) {
        let all: Vec<Owned> = all.into_iter().filter(|entry| within_limits(shape, entry)).collect();
        let all = sorted(all, &lower, upper.as_deref());
        let spec = spec(shape, &lower, upper.as_deref());
        let (page, count) = fill(shape, &spec, &all);
        prop_assume!(count >= 2 && within_limits(shape, &pending));
        let in_fences = !sorted(vec![pending.clone()], &lower, upper.as_deref()).is_empty();
        let place = Page::new(&page).search(&pending.0).err().filter(|_| in_fences);
        let choice = place.map(|slot| (slot, pending.0.as_slice(), pending.1.len()));
        let split = choose_split(Page::new(&page), choice, rule).unwrap();
        let [left, right] = halves(&page, &split, upper.as_deref(), place.map(|slot| (slot, &pending)));

        let mut model = all[..count].to_vec();
        let held = Page::new(&left).count() + Page::new(&right).count();
        if let Some(slot) = place.filter(|_| held > count) {
            model.insert(slot, pending.clone());
        }
        prop_assume!(held == model.len() && (held > count || place.is_none()));
        let cut = split.left_count + usize::from(split.pending_left == Some(true));
        assert_holds(&left, &model[..cut]);
        assert_holds(&right, &model[cut..]);
        prop_assert!(cut > 0 && cut < model.len(), "a half is empty");
        prop_assert!(model[cut - 1].0 < split.separator && split.separator <= model[cut].0);
        prop_assert!(!split.long);
        if rule == SeparatorRule::Full {
            prop_assert_eq!(&split.separator, &model[cut].0);
        } else {
            let common = crate::base::bytes::common_prefix(&model[cut - 1].0, &model[cut].0);
            prop_assert_eq!(split.separator.len(), common + 1);
        }
        let appended = upper.is_none() && place == Some(count);
        let longest = model.iter().map(|entry| entry.0.len() + entry.1.len() + 14).max().unwrap_or(0);
        if !appended && rule == SeparatorRule::Full && longest * 8 < shape.size && key_bytes(&model) > shape.size / 3 {
            let sizes = [Page::new(&left).used(), Page::new(&right).used()];
            prop_assert!(sizes[0].abs_diff(sizes[1]) < shape.size / 2, "balanced: {sizes:?}");
        }
    }

    #[test]
    fn both_halves_of_an_inner_page_fit_and_its_shortest_key_moves_up(
        (shape, lower, upper, all, pending, rule) in setup()
    ) {
        prop_assume!(shape.keys.key_len().is_none());
        let shape = Shape { records: RecordListKind::Fixed, ..shape };
        let child = |entry: Owned| (entry.0, vec![1, 0, 0, 7], false);
        let mut all = sorted(all.into_iter().map(child).collect(), &lower, upper.as_deref());
        all.retain(|entry| entry.0 > lower);
        let spec = PageSpec { kind: PageKind::Inner, level: 1, ..spec(shape, &lower, upper.as_deref()) };
        let (page, count) = fill(shape, &spec, &all);
        prop_assume!(count >= 3);
        let pending = child(pending);
        let in_fences = pending.0 > lower && upper.as_ref().is_none_or(|upper| pending.0 < *upper);
        let place = Page::new(&page).search(&pending.0).err().filter(|&slot| in_fences && slot > 0);
        let choice = place.map(|slot| (slot, pending.0.as_slice(), 4));
        let split = choose_split(Page::new(&page), choice, rule).unwrap();
        prop_assert!(split.left_count > 0 && split.left_count < count);
        prop_assert_eq!(&split.separator, &all[split.left_count].0, "the right half's first key moves up");
        let halves = halves(&page, &split, upper.as_deref(), place.map(|slot| (slot, &pending)));
        for (half, count) in halves.iter().zip([split.left_count, count - split.left_count]) {
            let half = Page::check(half, PageId(7)).unwrap();
            prop_assert!(half.count() == count || half.count() == count + 1);
            let mut bare = Vec::new();
            half.key_into(0, &mut bare);
            prop_assert_eq!(bare, half.prefix(), "key 0 is the bare prefix");
            prop_assert_eq!(half.child_for(half.lower_fence()), 0);
        }
    }

    #[test]
    fn a_wider_window_never_lengthens_a_separator((shape, lower, upper, all, _, _) in setup()) {
        let all = sorted(all, &lower, upper.as_deref());
        let (page, count) = fill(shape, &spec(shape, &lower, upper.as_deref()), &all);
        prop_assume!(count >= 2);
        let len = |radius| {
            let split = choose_split(Page::new(&page), None, SeparatorRule::Tail { radius });
            split.map(|split| split.separator.len())
        };
        let narrow = choose_split(Page::new(&page), None, SeparatorRule::TAIL).unwrap();
        let left: usize = (0..narrow.left_count).map(|slot| Page::new(&page).entry_bytes(slot)).sum();
        let total: usize = (0..count).map(|slot| Page::new(&page).entry_bytes(slot)).sum();
        if (2 * left).abs_diff(total) * 1000 <= 2 * 167 * total {
            prop_assert!(len(500).unwrap() <= narrow.separator.len());
        }
    }
}

#[test]
fn sorted_input_fills_pages() {
    let shape =
        Shape { size: 4096, keys: KeyListKind::Head, records: RecordListKind::Variable, key_len: 0, record_len: 0 };
    let all: Vec<Owned> =
        (0..1000u32).map(|i| (format!("key{i:08}").into_bytes(), b"12345678".to_vec(), false)).collect();
    let (page, count) = fill(shape, &spec(shape, b"", None), &all);
    let pending = &all[count];
    let choice = Some((count, pending.0.as_slice(), pending.1.len()));
    for rule in [SeparatorRule::Full, SeparatorRule::TAIL] {
        let split = choose_split(Page::new(&page), choice, rule).unwrap();
        assert!(split.left_count >= count - 4 && split.pending_left != Some(true), "{} of {count}", split.left_count);
        halves(&page, &split, None, Some((count, pending)));
    }
}

#[test]
fn long_images_are_not_cut_within_their_common_head() {
    let shape = Shape { size: 512, keys: KeyListKind::Head, records: RecordListKind::None, key_len: 0, record_len: 0 };
    let image = |first: u8, tail: u8| {
        let mut image = vec![first; limits::long_key_head(512)];
        image.extend([tail; limits::LONG_KEY_TAIL]);
        (image, Vec::new(), false)
    };
    let mut all = vec![image(5, 9), image(5, 3)];
    let page = fill(shape, &spec(shape, b"", None), &all).0;
    let split = choose_split(Page::new(&page), None, SeparatorRule::TAIL).unwrap();
    assert_eq!((split.left_count, &split.separator, split.long), (1, &all[1].0, true));
    halves(&page, &split, None, None);

    all[1] = image(6, 3);
    let page = fill(shape, &spec(shape, b"", None), &all).0;
    let split = choose_split(Page::new(&page), None, SeparatorRule::TAIL).unwrap();
    assert_eq!((split.separator, split.long), (vec![6], false));
}

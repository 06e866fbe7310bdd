//! Replays the corpus of the fuzz targets of the page store `shadow`, and random histories.

use crate::{put, replay, seeds};
use duramen_fuzz::shadow::{damage_shadow, hostile_shadow};
use proptest::prelude::*;

/// Every page of these histories can be read.
const PAGES: usize = 8;

#[test]
fn histories_with_damage_never_give_a_wrong_page() {
    assert!(seeds("damage_shadow").iter().any(|seed| damage_shadow(seed) == PAGES));
    replay("damage_shadow", 1, damage_shadow);
}

#[test]
fn hostile_files_with_right_checksums_are_safe_to_read_and_to_write() {
    assert!(seeds("hostile_shadow").iter().any(|seed| hostile_shadow(seed) == PAGES));
    replay("hostile_shadow", 1, hostile_shadow);
}

/// Offsets after the superblocks. They hit headers more often than random offsets do.
fn places() -> impl Strategy<Value = u32> {
    let block = (2u32..60, prop_oneof![0u32..64, 4060u32..4096]).prop_map(|(block, at)| block * 4096 + at);
    prop_oneof![block, 8192u32..300_000]
}

fn histories() -> impl Strategy<Value = Vec<u8>> {
    let steps = proptest::collection::vec(0u8..255, 0..60);
    let damage = proptest::collection::vec((places(), any::<u8>()), 0..6);
    (0u8..6, steps, any::<bool>(), damage).prop_map(|(delta, steps, closed, damage)| {
        let mut data = [&[delta], &steps[..], &[255, u8::from(closed)]].concat();
        damage.into_iter().for_each(|(at, mask)| data.extend([(at >> 16) as u8, (at >> 8) as u8, at as u8, mask]));
        data
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn random_histories_with_damage_never_give_a_wrong_page(data in histories()) {
        damage_shadow(&data);
    }

    #[test]
    fn random_hostile_files_are_safe_to_read_and_to_write(data in histories()) {
        hostile_shadow(&data);
    }
}

#[test]
#[ignore = "changes the corpus"]
fn write_shadow_corpus() {
    // Places that fit at first, then those of the two targets.
    let fit = (0..8).chain([230]).chain(16..32);
    let steps: Vec<u8> = fit.chain(48..56).chain([230]).chain(60..64).chain(76..84).chain([150, 151]).collect();
    for (delta, name) in ["whole", "delta", "chain"].into_iter().enumerate() {
        for closed in [0, 1] {
            let history = [&[delta as u8], &steps[..], &[255, closed]].concat();
            let state = ["open", "closed"][usize::from(closed)];
            put("damage_shadow", &format!("{name}-{state}"), &history);
            put("hostile_shadow", &format!("{name}-{state}"), &history);
            // A bit of the first page, of the trailer of its first slot, and of the block after that.
            let damaged = [&history[..], &[0, 0x20, 0x60, 4, 0, 0x2f, 0xf8, 1, 0, 0x30, 0x0c, 1]].concat();
            put("damage_shadow", &format!("{name}-{state}-damaged"), &damaged);
            put("hostile_shadow", &format!("{name}-{state}-damaged"), &damaged);
        }
    }
    // With a dictionary: as it is, with damage to the first of its copies, and to both of them.
    let copies = [[2, 0x21, 0, 4], [3, 0x21, 0, 4], [3, 0x21, 0, 4]].concat();
    for (delta, name, closed, damage) in
        [(5, "chain", 1, &[][..]), (4, "delta", 0, &copies[8..12]), (3, "whole", 1, &copies[..8])]
    {
        let steps: Vec<u8> = [0, 16, 17, 230].into_iter().chain(48..52).chain([80, 150, 81]).collect();
        let history = [&[delta], &steps[..], &[255, closed], damage].concat();
        put("damage_shadow", &format!("{name}-dictionary"), &history);
        put("hostile_shadow", &format!("{name}-dictionary"), &history);
    }
}

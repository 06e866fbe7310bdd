//! Replays the corpus of the fuzz target of frames with dictionaries.

use crate::{put, replay, seeds};
use duramen_fuzz::dictionary::{frame, input};

#[test]
fn frames_and_dictionaries_cut_and_flipped_anywhere_are_safe_to_read() {
    assert!(seeds("frame").iter().any(|seed| frame(seed)));
    replay("frame", 7, frame);
}

#[test]
#[ignore = "changes the corpus"]
fn write_frames() {
    let sound = input();
    let end = 2 + usize::from(sound[0]) + 256 * usize::from(sound[1]);
    put("frame", "sound", &sound);
    let mut other = sound.clone();
    other[end - 1] ^= 1;
    put("frame", "other-content", &other);
    put("frame", "without-dictionary", &[&[0, 0][..], &sound[end..]].concat());
    // The dictionary takes in the frame.
    put("frame", "too-long", &[&[0xFF, 0xFF][..], &sound[2..]].concat());
}

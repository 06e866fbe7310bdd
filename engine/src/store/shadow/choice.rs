//! Decides from the contents of the two slots of a page which slot is valid.

use super::log_ends::{RECOVERY_STEP, RecoveredLogEnds};
use super::slot::{ImageStamp, SlotContent, SlotIndex};
use super::states::PageState;
use crate::base::Lsn;
use std::ops::Range;

/// The facts about a page that the store knows without reading its slots.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownPage {
    /// Images of earlier generations are synced.
    pub(super) generation: u32,
    /// The log that is being redone changes the page: the last writing of a slot may have been cut off.
    pub(super) in_log: bool,
    /// The LSN at which redo begins. An image of a generation that is not synced contains a change at or after this
    /// LSN.
    pub(super) redo: Lsn,
    /// The generation at opening, and the end of the log that was redone. The store rejects an image of this generation
    /// or a later one if the LSN of the image is greater than this end: the log has lost the rest of that commit.
    pub(super) lost: Option<(u32, Lsn)>,
    /// The same of earlier recoveries.
    pub(super) log_ends: RecoveredLogEnds,
    /// Any sound image is accepted.
    pub(super) accepts_any: bool,
}

impl KnownPage {
    /// For a page in a survey: every delta that fits the slot is accepted.
    pub(super) const SURVEY: KnownPage = KnownPage {
        generation: u32::MAX,
        in_log: true,
        redo: Lsn::ZERO,
        lost: None,
        log_ends: RecoveredLogEnds::NONE,
        accepts_any: true,
    };

    /// True if a recovery may have to repeat the last write of the page.
    pub(super) fn is_recovering(&self) -> bool {
        self.in_log || self.lost.is_some()
    }

    /// The generations that may not be synced: those of the process that has died.
    fn unsynced_generations(&self) -> Range<u32> {
        self.generation..self.generation.max(self.log_ends.generation()).saturating_add(RECOVERY_STEP)
    }

    /// True if an image or a delta whose write was cut off may say this of itself: it is of a generation that may not
    /// be synced, and the log has its change or has lost it.
    pub(super) fn may_be_unsynced(&self, stamp: ImageStamp, lsn: Lsn) -> bool {
        let has_change = self.in_log && lsn >= self.redo || self.lost.is_some_and(|(_, end)| lsn > end);
        self.unsynced_generations().contains(&stamp.generation) && has_change
    }

    /// True if an image or a delta has a change that the log has lost.
    pub(super) fn has_lost(&self, stamp: ImageStamp, lsn: Lsn) -> bool {
        self.log_ends.is_invalidated(stamp.generation, lsn)
            || self.lost.is_some_and(|(generation, end)| stamp.generation >= generation && lsn > end)
    }
}

/// The content of the slot that is not valid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Other {
    /// Zeros.
    Empty,
    /// An older image.
    Image,
    /// No sound image of the page.
    Invalid,
}

/// The result of reading the slots of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Choice {
    pub(super) state: PageState,
    pub(super) other: Other,
    /// True if it is possible that no sync has made the image durable yet.
    pub(super) unsynced: bool,
}

/// Chooses between the slots; an error says what is wrong.
///
/// A slot that holds no image is damaged, unless its writing was cut off. That is so only where the log changes the
/// page, and where the slot does not say that it was synced: redo then rebuilds the page from the image in the other
/// slot. Without such an image the page is damaged, too: if its first image was cut off, the log formats the page.
pub(super) fn choose(first: SlotContent, second: SlotContent, known: KnownPage) -> Result<Choice, String> {
    let slot_index = |content| if content == first { SlotIndex::First } else { SlotIndex::Second };
    let is_lost = |content| matches!(content, SlotContent::Image { stamp, lsn } if known.has_lost(stamp, lsn));
    match (first, second) {
        (image @ SlotContent::Image { stamp, .. }, other) | (other, image @ SlotContent::Image { stamp, .. })
            if is_lost(other) && !is_lost(image) =>
        {
            Ok(found(slot_index(image), stamp, known, Other::Invalid))
        }
        (a, b) if is_lost(a) || is_lost(b) => Err("its image has a change that the log has lost".into()),
        (SlotContent::Image { stamp: a, lsn: lsn_a }, SlotContent::Image { stamp: b, lsn: lsn_b }) => {
            let newer = match (
                ImageStamp::next_sequence(a.sequence) == b.sequence,
                ImageStamp::next_sequence(b.sequence) == a.sequence,
            ) {
                // After a failed sync an erased image may come back. Its sequence number can have any value.
                _ if a.generation < b.generation && lsn_a < lsn_b => (SlotIndex::Second, b),
                _ if b.generation < a.generation && lsn_b < lsn_a => (SlotIndex::First, a),
                (true, false) => (SlotIndex::Second, b),
                (false, true) => (SlotIndex::First, a),
                _ if known.accepts_any && lsn_b > lsn_a => (SlotIndex::Second, b),
                _ if known.accepts_any => (SlotIndex::First, a),
                _ => return Err(format!("its slots have the sequence numbers {} and {}", a.sequence, b.sequence)),
            };
            Ok(found(newer.0, newer.1, known, Other::Image))
        }
        (image @ SlotContent::Image { stamp, lsn }, other) | (other, image @ SlotContent::Image { stamp, lsn }) => {
            match other {
                SlotContent::Empty => Ok(found(slot_index(image), stamp, known, Other::Empty)),
                _ if known.accepts_any || counts_less(other, stamp, lsn, known) => {
                    Ok(found(slot_index(image), stamp, known, Other::Invalid))
                }
                _ => Err("one of its two slots is damaged, and may have had the newer image".into()),
            }
        }
        (SlotContent::Damaged { .. }, _) | (_, SlotContent::Damaged { .. }) => Err("its slots are damaged".into()),
        (SlotContent::Empty, SlotContent::Empty) => Ok(none(Other::Empty)),
        _ => Ok(none(Other::Invalid)),
    }
}

fn none(other: Other) -> Choice {
    Choice { state: PageState::EMPTY, other, unsynced: false }
}

/// The newest image was written only after the image in the other slot was synced, or when that image was not needed.
/// So an image without another one is not overwritten either, until the next one is synced.
fn found(slot_index: SlotIndex, stamp: ImageStamp, known: KnownPage, other: Other) -> Choice {
    let unsynced = stamp.generation >= known.generation;
    let state = PageState::present(slot_index, stamp, !unsynced || other != Other::Image);
    let state = if unsynced || other == Other::Empty { state } else { state.synced() };
    Choice { state, other, unsynced }
}

/// True if a slot without an image certainly does not contain the rest of a complete image that was newer than `image`.
/// The slot then contains one of two things: the rest of an older image that was partly trimmed, or a torn image. The
/// sectors of a torn image are partly new and partly those of the older image.
fn counts_less(other: SlotContent, image: ImageStamp, image_lsn: Lsn, known: KnownPage) -> bool {
    let SlotContent::Damaged { named, lsn, is_foreign } = other else { return true };
    if is_foreign {
        return false;
    }
    let is_before = |old: ImageStamp| {
        old.generation < image.generation
            || old.generation == image.generation && ImageStamp::next_sequence(old.sequence) == image.sequence
    };
    let is_older = named.is_none_or(is_before) && lsn.is_none_or(|lsn| lsn <= image_lsn);
    if is_older && (named.is_some() || lsn.is_some()) {
        return true;
    }
    // The log contains the last change of a torn image, or the log has lost this change.
    let may_be_torn = |lsn: Lsn| {
        lsn <= image_lsn || known.in_log && lsn >= known.redo || known.lost.is_some_and(|(_, end)| lsn > end)
    };
    known.is_recovering()
        && named.is_none_or(|stamp| is_before(stamp) || known.unsynced_generations().contains(&stamp.generation))
        && lsn.is_none_or(may_be_torn)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: KnownPage = KnownPage {
        generation: 5,
        in_log: true,
        redo: Lsn(100),
        lost: None,
        log_ends: RecoveredLogEnds::NONE,
        accepts_any: false,
    };

    fn image(sequence: u8, generation: u32, lsn: u64) -> SlotContent {
        SlotContent::Image { stamp: ImageStamp { sequence, rewrites: 0, generation }, lsn: Lsn(lsn) }
    }

    fn damaged(named: Option<(u8, u32)>, lsn: Option<u64>) -> SlotContent {
        let named = named.map(|(sequence, generation)| ImageStamp { sequence, rewrites: 0, generation });
        SlotContent::Damaged { named, lsn: lsn.map(Lsn), is_foreign: false }
    }

    /// The same for both orders of the slots: the slot with the first of the two, and the choice.
    fn both(a: SlotContent, b: SlotContent, known: KnownPage) -> [(SlotIndex, Result<Choice, String>); 2] {
        [(SlotIndex::First, choose(a, b, known)), (SlotIndex::Second, choose(b, a, known))]
    }

    #[test]
    fn an_image_is_accepted_beside_a_slot_that_cannot_be_newer() {
        let tears = [
            damaged(Some((4, 5)), Some(120)),
            damaged(Some((4, 5)), None),
            damaged(None, Some(120)),
            damaged(None, Some(20)),
            damaged(None, None),
            damaged(Some((2, 1)), Some(120)),
        ];
        let old = [SlotContent::Empty, SlotContent::Trimmed, damaged(Some((2, 1)), None), damaged(None, Some(20))];
        for (others, in_log) in [(&tears[..], true), (&old[..], true), (&old[..], false)] {
            for &other in others {
                for (slot_index, choice) in both(image(3, 4, 90), other, KnownPage { in_log, ..KNOWN }) {
                    let state = choice.unwrap().state;
                    assert_eq!(
                        (state.slot_index(), state.sequence(), state.is_synced()),
                        (slot_index, 3, true),
                        "{other:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn an_older_image_is_not_chosen_whatever_its_sequence() {
        for sequence in [0, 1, 4, 40, 63] {
            for (slot_index, choice) in both(image(0, 4, 90), image(sequence, 3, 80), KNOWN) {
                let choice = choice.unwrap();
                assert_eq!(
                    (choice.state.slot_index(), choice.state.sequence(), choice.other),
                    (slot_index, 0, Other::Image)
                );
            }
        }
    }

    #[test]
    fn an_image_is_not_accepted_beside_a_slot_that_may_have_been_newer() {
        let rotten = [
            // It was synced.
            (damaged(Some((4, 4)), None), true),
            (damaged(None, Some(95)), true),
            (damaged(Some((4, 7)), Some(95)), true),
            // It says that it is older in one place alone.
            (damaged(Some((2, 4)), Some(95)), true),
            (damaged(Some((2, 5)), Some(95)), true),
            (damaged(Some((4, 5)), Some(120)), false),
            (damaged(None, None), false),
        ];
        for (other, in_log) in rotten {
            for (_, choice) in both(image(3, 4, 90), other, KnownPage { in_log, ..KNOWN }) {
                assert!(choice.is_err(), "{other:?}");
            }
            for (slot_index, choice) in both(image(3, 4, 90), other, KnownPage { in_log, accepts_any: true, ..KNOWN }) {
                assert_eq!(choice.unwrap().state.slot_index(), slot_index);
            }
        }
        for other in [SlotContent::Empty, SlotContent::Trimmed, damaged(None, None)] {
            assert!(both(damaged(Some((0, 5)), Some(120)), other, KNOWN).iter().all(|(_, choice)| choice.is_err()));
        }
    }

    #[test]
    fn an_image_that_may_not_be_durable_is_written_over_only_beside_another() {
        let unsynced = image(3, 5, 120);
        for (other, synced) in [(image(2, 4, 90), false), (SlotContent::Empty, true), (damaged(None, Some(20)), true)] {
            for (slot_index, choice) in both(unsynced, other, KNOWN) {
                let Choice { state, unsynced, .. } = choice.unwrap();
                assert_eq!((state.slot_index(), state.is_synced(), unsynced), (slot_index, synced, true), "{other:?}");
            }
        }
    }

    #[test]
    fn a_change_that_the_log_has_lost_is_not_accepted() {
        let known = KnownPage { lost: Some((5, Lsn(150))), ..KNOWN };
        for (slot_index, choice) in both(image(2, 4, 90), image(3, 5, 151), known) {
            assert_eq!(choice.unwrap().state.slot_index(), slot_index);
        }
        for (_, choice) in both(SlotContent::Empty, image(3, 5, 151), known) {
            assert!(choice.is_err());
        }
        for (torn, is_torn) in [(Some(151), true), (None, true), (Some(120), false)] {
            for (_, choice) in both(image(2, 4, 90), damaged(Some((3, 5)), torn), KnownPage { in_log: false, ..known })
            {
                assert_eq!(choice.is_ok(), is_torn, "{torn:?}");
            }
        }
        assert!(both(image(2, 4, 160), image(3, 5, 150), known).iter().all(|(_, choice)| choice.is_ok()));
    }
}

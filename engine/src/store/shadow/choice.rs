//! Which of the two slots of a page counts, from what is in them. Nothing is read or written here.

use super::slot::{Content, Side, Stamp};
use super::states::PageState;

/// What is known of a page beside its slots.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    /// Images of earlier generations are synced.
    pub(super) generation: u32,
    /// The log that is being redone changes the page: the last writing of a slot may have been cut off.
    pub(super) in_log: bool,
}

/// What the slots of a page come to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Choice {
    pub(super) state: PageState,
    /// What is in the slot that does not count is neither zeros nor an image.
    pub(super) spoilt: bool,
}

/// Chooses between the slots; an error says what is wrong.
///
/// A slot that holds no image is damaged, unless its writing was cut off. That is so only where the log changes the page, and
/// where the slot does not say that it was synced: redo then makes the page anew from the image in the other slot.
pub(super) fn choose(first: Content, second: Content, known: Known) -> Result<Choice, String> {
    let side = |content| if content == first { Side::First } else { Side::Second };
    match (first, second) {
        (Content::Image { stamp: a, .. }, Content::Image { stamp: b, .. }) => {
            let newer = match (Stamp::next_turn(a.turn) == b.turn, Stamp::next_turn(b.turn) == a.turn) {
                (true, false) => (Side::Second, b),
                (false, true) => (Side::First, a),
                _ => return Err(format!("its slots have turns {} and {}", a.turn, b.turn)),
            };
            Ok(found(newer.0, newer.1, known, false))
        }
        (image @ Content::Image { stamp, lsn }, other) | (other, image @ Content::Image { stamp, lsn }) => {
            match other {
                Content::Empty => Ok(found(side(image), stamp, known, false)),
                Content::Trimmed => Ok(found(side(image), stamp, known, true)),
                Content::Damaged { named, .. } if may_be_cut_off(named, known) => {
                    Ok(found(side(image), stamp, known, true))
                }
                // The rest of the image before, some of which was trimmed.
                Content::Damaged { named: Some(old), .. } if Stamp::next_turn(old.turn) == stamp.turn => {
                    Ok(found(side(image), stamp, known, true))
                }
                Content::Damaged { named: None, lsn: Some(old) } if old <= lsn => {
                    Ok(found(side(image), stamp, known, true))
                }
                _ => Err("one of its two slots is damaged, and may have had the newer image".into()),
            }
        }
        (Content::Damaged { named, .. }, _) | (_, Content::Damaged { named, .. }) if !may_be_cut_off(named, known) => {
            Err("its slots are damaged".into())
        }
        (Content::Empty, Content::Empty) => Ok(Choice { state: PageState::EMPTY, spoilt: false }),
        _ => Ok(Choice { state: PageState::EMPTY, spoilt: true }),
    }
}

fn found(side: Side, stamp: Stamp, known: Known, spoilt: bool) -> Choice {
    let synced = stamp.generation < known.generation;
    Choice { state: PageState::present(side, stamp.turn, synced), spoilt }
}

fn may_be_cut_off(named: Option<Stamp>, known: Known) -> bool {
    known.in_log && named.is_none_or(|stamp| stamp.generation >= known.generation)
}

//! [`TargetFill`]: how full a bulk load fills leaves that must compress to the target of their table.

use crate::store::{Compression, Overflow, PagePolicy, Target};

/// How full leaves may be, so that most of them compress to the target of their table. Only a table whose leaves are split
/// otherwise needs it.
pub(super) struct TargetFill {
    /// Bytes of a place; `None` if leaves may miss the target.
    target: Option<u64>,
    /// The part of a page that certainly meets the target.
    least: f32,
    part: f32,
    /// Leaves in a row that met the target.
    met: u32,
}

impl TargetFill {
    /// By how much a leaf that misses the target reduces the part.
    const LESS: f32 = 0.97;
    /// By how much this number of leaves that meet it increases it.
    const MORE: f32 = 1.01;
    const MET: u32 = 32;

    /// `place_of` returns the bytes of a place that meets a target.
    pub(super) fn new(policy: PagePolicy, page_size: usize, place_of: impl Fn(u32) -> u64) -> TargetFill {
        let target = match policy {
            PagePolicy { compression: Compression::None, .. } | PagePolicy { overflow: Overflow::Spill, .. } => None,
            PagePolicy { target: Target::Fit, .. } => None,
            PagePolicy { target: Target::Bytes(bytes), .. } => Some(place_of(bytes)),
        };
        #[allow(clippy::cast_precision_loss)]
        let least = target.map_or(1.0, |bytes| bytes as f32 / page_size as f32);
        TargetFill { target, least, part: 1.0, met: 0 }
    }

    /// True if the places of leaves are to be noted.
    pub(super) fn is_adaptive(&self) -> bool {
        self.target.is_some()
    }

    /// The part of its usual bytes to which the next leaf is filled.
    pub(super) fn part(&self) -> f32 {
        self.part
    }

    /// Notes leaves that were written: the part to which each was filled, and the bytes of its place.
    pub(super) fn note(&mut self, leaves: impl Iterator<Item = (f32, u64)>) {
        let Some(target) = self.target else { return };
        for (part, place) in leaves {
            // Leaves that were filled before the last change say nothing about the present part, unless they met the target
            // although they were fuller.
            if place <= target && part >= self.part {
                self.met += 1;
            } else if place > target && part <= self.part {
                (self.part, self.met) = ((self.part * Self::LESS).max(self.least), 0);
            }
        }
        if self.met >= Self::MET {
            (self.part, self.met) = ((self.part * Self::MORE).min(1.0), 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_are_filled_until_most_meet_the_target() {
        let policy = |overflow| PagePolicy {
            compression: Compression::Lz4,
            target: Target::Bytes(8192),
            overflow,
            dictionary: false,
        };
        assert!(!TargetFill::new(policy(Overflow::Spill), 16_384, u64::from).is_adaptive());
        let mut fill = TargetFill::new(policy(Overflow::Split), 16_384, u64::from);
        let mut missed = 0;
        for leaf in 0..1000 {
            // Compression saves three tenths.
            let place = if fill.part() * 0.7 > 0.5 { 16_384 } else { 8192 };
            missed += u32::from(place > 8192 && leaf >= 100);
            fill.note([(fill.part(), place)].into_iter());
        }
        assert!((0.66..0.73).contains(&fill.part()) && missed < 50, "{} {missed}", fill.part());
        let part = fill.part();
        // Of leaves that were written together, one that misses is enough.
        fill.note([(part, 16_384); 16].into_iter());
        assert_eq!(fill.part(), part * TargetFill::LESS);
        fill.note([(part, 16_384); 16].into_iter());
        assert_eq!(fill.part(), part * TargetFill::LESS, "they were filled before");
        (0..100).for_each(|_| fill.note([(fill.part(), 16_384)].into_iter()));
        assert_eq!(fill.part(), 0.5, "half a page needs no compression");
    }
}

//! The ends of the log that the latest recoveries found, as the superblock keeps them. If the log had lost its end,
//! images of pages may contain changes of that end. Such an image stays in the file until its page is read or written,
//! and the log uses the LSNs of these changes again. So later processes must know which images to reject.

use crate::base::Lsn;
use crate::base::bytes::{get_u32, get_u64};

/// Recoveries that are kept. The next one takes the place of the oldest.
const MAX_RECOVERIES: usize = 32;
/// Bytes of one.
const RECOVERY_END_BYTES: usize = 12;
/// Bytes of all.
pub(super) const LOG_ENDS_BYTES: usize = MAX_RECOVERIES * RECOVERY_END_BYTES;
/// Generations between those of a process that has died and those of the process that recovers: more than checkpoints
/// that the dead process may have begun after its last superblock.
pub(super) const RECOVERY_STEP: u32 = 256;

/// Images and deltas of earlier generations with a greater LSN are invalidated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct RecoveryEnd {
    generation: u32,
    end: Lsn,
}

/// The ends of the latest recoveries, the last one last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RecoveredLogEnds([RecoveryEnd; MAX_RECOVERIES]);

impl RecoveredLogEnds {
    pub(super) const NONE: RecoveredLogEnds =
        RecoveredLogEnds([RecoveryEnd { generation: 0, end: Lsn::ZERO }; MAX_RECOVERIES]);

    pub(super) fn decode(bytes: &[u8]) -> RecoveredLogEnds {
        RecoveredLogEnds(std::array::from_fn(|at| RecoveryEnd {
            generation: get_u32(bytes, at * RECOVERY_END_BYTES),
            end: Lsn(get_u64(bytes, at * RECOVERY_END_BYTES + 4)),
        }))
    }

    pub(super) fn encode(&self) -> impl Iterator<Item = u8> {
        self.0.into_iter().flat_map(|recovery_end| {
            recovery_end.generation.to_le_bytes().into_iter().chain(recovery_end.end.0.to_le_bytes())
        })
    }

    /// The first generation that the latest recovery has written.
    pub(super) fn generation(&self) -> u32 {
        self.0.last().map_or(0, |last| last.generation)
    }

    /// Notes that the log ends there. Returns the first generation of the process that recovers; `latest` is one that
    /// the process before may have begun to write.
    pub(super) fn add(&mut self, latest: u32, end: Lsn) -> u32 {
        let generation = latest.max(self.generation()).saturating_add(RECOVERY_STEP);
        // This end covers the last one if the log has not grown since.
        if self.0.last().is_none_or(|last| last.generation == 0 || last.end != end) {
            self.0.rotate_left(1);
        }
        if let Some(last) = self.0.last_mut() {
            *last = RecoveryEnd { generation, end };
        }
        generation
    }

    /// True if a change with this LSN, of an image or a delta of this generation, is invalidated.
    pub(super) fn is_invalidated(&self, generation: u32, lsn: Lsn) -> bool {
        self.0.iter().any(|recovery_end| generation < recovery_end.generation && lsn > recovery_end.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_beyond_an_end_are_invalidated_unless_written_after_the_recovery() {
        let mut log_ends = RecoveredLogEnds::NONE;
        assert!(!log_ends.is_invalidated(0, Lsn::MAX));
        let first = log_ends.add(3, Lsn(100));
        assert!(log_ends.is_invalidated(3, Lsn(101)) && log_ends.is_invalidated(first - 1, Lsn(101)));
        assert!(!log_ends.is_invalidated(3, Lsn(100)) && !log_ends.is_invalidated(first, Lsn(101)));
        // A recovery that was cut off, and one of the writes since then.
        let again = log_ends.add(3, Lsn(100));
        let second = log_ends.add(3, Lsn(150));
        assert!(first < again && again < second);
        assert!(
            log_ends.is_invalidated(3, Lsn(101))
                && log_ends.is_invalidated(first, Lsn(101))
                && log_ends.is_invalidated(again, Lsn(151))
        );
        assert!(!log_ends.is_invalidated(again, Lsn(150)) && !log_ends.is_invalidated(second, Lsn::MAX));
        let bytes: Vec<u8> = log_ends.encode().collect();
        assert_eq!(RecoveredLogEnds::decode(&bytes), log_ends);
        for end in 0..MAX_RECOVERIES as u64 - 2 {
            log_ends.add(0, Lsn(200 + end));
        }
        assert!(log_ends.is_invalidated(3, Lsn(101)) && log_ends.0[0].generation != 0);
        log_ends.add(0, Lsn(300));
        assert!(!log_ends.is_invalidated(3, Lsn(101)) && log_ends.is_invalidated(3, Lsn(151)));
    }
}

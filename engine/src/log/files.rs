//! Decides from the segment headers which files of a volume belong to the log, and in which order. It reads no batches.
//!
//! A log can have segments of several epochs: each recovery continues in a new epoch, and the power may fail again
//! before its checkpoint allows the removal of the old segments. The rules:
//!
//! * Only segments of the epoch of the redo point, or of later epochs, count.
//! * The segments are ordered by (epoch, start LSN, number). A segment replaces the segments before it that start at
//!   the same LSN or later: a later epoch begins where its recovery found the end of the valid log, and nothing after
//!   that was ever acknowledged.
//! * So each segment is read up to the start of the next one, and must be valid up to there, with one exception: see
//!   `LogReader::proves_end`. A recovery syncs everything that it has read before it starts a new epoch.
//! * Reading begins in the last segment that starts at or before the redo point. Segments missing before it were
//!   removed.

use super::segment::{self, SegmentFile, SegmentHeader};
use super::{LogConfig, LogPosition};
use crate::base::Result;

/// The files of a log on a volume.
#[derive(Debug)]
pub(super) struct LogFiles {
    /// The valid segments of this database, in the order of (epoch, start LSN, number).
    pub(super) ours: Vec<SegmentHeader>,
    /// Files whose creation was interrupted. They never contained a batch.
    pub(super) cut: Vec<u32>,
    /// Spare files, whatever their number is.
    pub(super) spare: Vec<u32>,
    /// The highest number of a file whose header has been damaged.
    pub(super) damaged: Option<u32>,
    /// The highest number of any file.
    pub(super) highest: u32,
}

impl LogFiles {
    /// Reads the header of every file with the prefix.
    pub(super) fn read(config: &LogConfig) -> Result<LogFiles> {
        let mut files = LogFiles { ours: Vec::new(), cut: Vec::new(), spare: Vec::new(), damaged: None, highest: 0 };
        for number in segment::numbers(config)? {
            files.highest = number;
            match segment::inspect(config, number)? {
                SegmentFile::Ours(header) => files.ours.push(header),
                SegmentFile::Spare => files.spare.push(number),
                SegmentFile::Foreign | SegmentFile::Other => {}
                SegmentFile::Cut => files.cut.push(number),
                SegmentFile::Damaged => files.damaged = Some(number),
            }
        }
        files.ours.sort_unstable_by_key(|header| (header.epoch, header.start, header.number));
        Ok(files)
    }

    /// The segments to read from `from` on, in order; none if no segment contains `from`.
    pub(super) fn plan(&self, from: LogPosition) -> Vec<SegmentHeader> {
        let mut plan: Vec<SegmentHeader> = Vec::new();
        for header in self.ours.iter().filter(|header| header.epoch >= from.epoch) {
            while plan.pop_if(|last| last.start >= header.start).is_some() {}
            plan.push(*header);
        }
        let first = plan.iter().rposition(|header| header.start <= from.lsn);
        first.map_or_else(Vec::new, |first| plan.split_off(first))
    }

    /// The segments that are in no [`plan`](LogFiles::plan) from `from` or from a later redo point, because another
    /// segment of a later epoch replaces them.
    pub(super) fn replaced(&self, from: LogPosition) -> Vec<u32> {
        let replaces = |new: &SegmentHeader, old: &SegmentHeader| new.epoch > old.epoch && new.start <= old.start;
        let counted = self.ours.iter().filter(|header| header.epoch >= from.epoch);
        counted.filter(|old| self.ours.iter().any(|new| replaces(new, old))).map(|old| old.number).collect()
    }

    /// The epoch for a log that continues this one. It is greater than all epochs of the files, so that no remaining
    /// file is taken for a part of the new log.
    pub(super) fn next_epoch(&self, expected: u32) -> u32 {
        self.ours.iter().map(|header| header.epoch).fold(expected, u32::max).saturating_add(1)
    }

    /// The number of a file with a damaged header that is newer than all valid segments.
    pub(super) fn damaged_last(&self) -> Option<u32> {
        let newest = self.ours.iter().map(|header| header.number).max();
        self.damaged.filter(|number| newest.is_none_or(|newest| *number > newest))
    }
}

#[cfg(test)]
mod tests {
    use super::super::LogShape;
    use super::*;
    use crate::base::Lsn;

    fn segment(number: u32, (epoch, start): (u32, u64)) -> SegmentHeader {
        let (shape, start) = (LogShape::Packed, Lsn(start));
        SegmentHeader { epoch, number, previous: 0, shape, has_next: false, start, chain: 0 }
    }

    fn files(segments: &[(u32, u64)]) -> LogFiles {
        let mut ours: Vec<SegmentHeader> = (1..).zip(segments).map(|(number, &place)| segment(number, place)).collect();
        ours.sort_unstable_by_key(|header| (header.epoch, header.start, header.number));
        LogFiles { ours, cut: Vec::new(), spare: Vec::new(), damaged: None, highest: 0 }
    }

    fn plan(segments: &[(u32, u64)], from: (u64, u32)) -> Vec<(u32, u64)> {
        let plan = files(segments).plan(LogPosition { lsn: Lsn(from.0), epoch: from.1 });
        plan.iter().map(|header| (header.epoch, header.start.0)).collect()
    }

    #[test]
    fn reading_begins_in_the_segment_that_covers_the_redo_point() {
        let log = [(1, 0), (1, 100), (1, 200)];
        assert_eq!(plan(&log, (150, 1)), [(1, 100), (1, 200)]);
        assert_eq!(plan(&log, (200, 1)), [(1, 200)]);
        assert_eq!(plan(&log[1..], (99, 1)), []);
        assert_eq!(plan(&log, (150, 2)), [], "segments of an earlier epoch do not count");
    }

    #[test]
    fn a_later_epoch_replaces_the_tail_it_begins_in() {
        assert_eq!(plan(&[(1, 0), (1, 100), (2, 150)], (0, 1)), [(1, 0), (1, 100), (2, 150)]);
        assert_eq!(plan(&[(1, 0), (1, 100), (2, 100), (2, 130)], (0, 1)), [(1, 0), (2, 100), (2, 130)]);
        assert_eq!(plan(&[(1, 0), (1, 100), (2, 50), (3, 50)], (0, 1)), [(1, 0), (3, 50)]);
        assert_eq!(plan(&[(1, 0), (2, 50), (3, 70)], (60, 2)), [(2, 50), (3, 70)]);
    }

    #[test]
    fn only_a_later_epoch_replaces_a_segment() {
        let replaced = |segments, epoch| files(segments).replaced(LogPosition { lsn: Lsn(0), epoch });
        assert_eq!(replaced(&[(1, 0), (1, 100), (2, 150)], 1), [0; 0]);
        assert_eq!(replaced(&[(1, 0), (1, 100), (1, 100)], 1), [0; 0]);
        assert_eq!(replaced(&[(1, 0), (1, 100), (2, 100), (3, 100)], 1), [2, 3]);
        assert_eq!(replaced(&[(1, 0), (1, 100), (2, 100), (3, 100)], 2), [3]);
        assert_eq!(replaced(&[(1, 0), (1, 100), (2, 50), (3, 70)], 1), [2]);
    }
}

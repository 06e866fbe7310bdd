//! The options of a page store, which are set when a database is created.

use super::StoreKind;
use crate::base::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// How the page store [`Shadow`](StoreKind::Shadow) writes small changes of a page: into a delta block of 4 KiB beside
/// the page instead of the whole page. It is chosen when the database is created, with
/// [`Builder::delta`](crate::Builder::delta).
///
/// A delta block is zeros after the changes, so it is small on a drive that compresses. Each read of the page reads its
/// delta blocks, too.
///
/// The text form is `off`, or threshold, segment and blocks:
///
/// ```
/// use duramen::db::DeltaBlocks;
///
/// let paper: DeltaBlocks = "2048,128,1".parse()?;
/// assert_eq!(paper, DeltaBlocks { threshold: 2048, segment: 128, blocks: 1 });
/// assert_eq!("off".parse::<DeltaBlocks>()?, DeltaBlocks::OFF);
/// assert_eq!(paper.to_string(), "2048,128,1");
/// # Ok::<(), duramen::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeltaBlocks {
    /// The most bytes of changed segments that go into a delta block, the LSN of the page included. A page with more
    /// changes is written whole.
    pub threshold: u16,
    /// Bytes of a segment, a power of two from 16 to 256: a segment with a change goes into the delta block, all of it.
    /// There are at most 256 segments in a page, so that the segments of large pages are longer.
    pub segment: u16,
    /// How many delta blocks a page can have before it is written whole, at most [`DeltaBlocks::MOST`]. 0: none. With 1
    /// the delta block has all changes since the page was written whole, with more each has those since the block
    /// before.
    pub blocks: u8,
}

impl DeltaBlocks {
    /// The most delta blocks of a page.
    pub const MOST: u8 = 16;
    /// Every page is written whole.
    pub const OFF: DeltaBlocks = DeltaBlocks { threshold: 0, segment: 32, blocks: 0 };

    pub(crate) fn check(self) -> Result<()> {
        let is_right = self.blocks == 0
            || self.blocks <= DeltaBlocks::MOST
                && self.segment.is_power_of_two()
                && (16..=256).contains(&self.segment)
                && (1..=4096).contains(&self.threshold);
        if is_right { Ok(()) } else { Err(wrong(&self.to_string())) }
    }
}

impl Default for DeltaBlocks {
    fn default() -> DeltaBlocks {
        DeltaBlocks { threshold: 700, segment: 32, blocks: 1 }
    }
}

impl fmt::Display for DeltaBlocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.blocks {
            0 => f.write_str("off"),
            blocks => write!(f, "{},{},{blocks}", self.threshold, self.segment),
        }
    }
}

impl FromStr for DeltaBlocks {
    type Err = Error;

    fn from_str(text: &str) -> Result<DeltaBlocks> {
        if text == "off" {
            return Ok(DeltaBlocks::OFF);
        }
        let numbers: Option<Vec<u16>> = text.split(',').map(|number| number.parse().ok()).collect();
        let Some(&[threshold, segment, blocks @ 1..=16]) = numbers.as_deref() else { return Err(wrong(text)) };
        let delta = DeltaBlocks { threshold, segment, blocks: blocks.to_le_bytes()[0] };
        delta.check().map(|()| delta)
    }
}

fn wrong(value: &str) -> Error {
    Error::Option {
        option: "delta",
        value: value.to_owned(),
        expected: "`off`, or THRESHOLD,SEGMENT,BLOCKS: 1 to 4096 bytes, a power of two from 16 to 256 bytes, 1 to 16"
            .into(),
    }
}

/// The page store of a new database, and its options.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StoreOptions {
    /// The page store.
    pub kind: StoreKind,
    /// For [`StoreKind::Shadow`].
    pub delta: DeltaBlocks,
}

impl From<StoreKind> for StoreOptions {
    fn from(kind: StoreKind) -> StoreOptions {
        StoreOptions { kind, delta: DeltaBlocks::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_other_values_are_refused() {
        let wrong = ["", "on", "2048", "2048,128", "0,128,1", "4097,128,1", "2048,100,1", "2048,512,1", "2048,128,0"];
        for text in wrong.into_iter().chain(["2048,128,17", "2048,128,1,1", "70000,32,1", "2048, 128, 1"]) {
            assert!(matches!(text.parse::<DeltaBlocks>(), Err(Error::Option { option: "delta", .. })), "{text}");
        }
    }
}

//! Strategies of page compression: which tables to compress, after "A Selective Compression Strategy for Performance
//! Improvement of Database Compression", sections 3 and 4. Decides from the sizes of sampled pages.

use crate::base::{Error, Result};
use crate::store::{Compression, Overflow, PagePolicy, Target};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The choice of the tables that are compressed.
///
/// The text form is `none`, `all` or `selective`; the latter may have a delta and `strict`, such as
/// `selective:0.2:strict`:
///
/// ```
/// use duramen::db::Strategy;
///
/// assert_eq!("selective".parse::<Strategy>()?, Strategy::SELECTIVE);
/// assert_eq!(Strategy::Selective { delta: 0.2, strict: true }.to_string(), "selective:0.2:strict");
/// # Ok::<(), duramen::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Strategy {
    /// No table.
    None,
    /// Every table.
    All,
    /// The tables in which nearly all pages compress well. Let SS be the share of bytes that compression saves in all
    /// pages of a table, and CPss the share that it saves in the median page. A table is compressed if at least half of
    /// its pages become smaller, and (1 - delta) CPss <= SS. A table stays as it is if no page of it was sampled, or
    /// only one page, which does not become smaller.
    Selective {
        /// How far SS may be below CPss: from 0 to 1. The paper uses 0.1.
        delta: f64,
        /// Also SS <= CPss must hold: the saving of the table must not come from a few pages that save more than the
        /// median page.
        strict: bool,
    },
}

const DELTA: f64 = 0.1;
/// Shares that differ by less are equal.
const ROUNDING: f64 = 1e-9;

impl Strategy {
    /// The strategy of the paper, without the upper bound.
    pub const SELECTIVE: Strategy = Strategy::Selective { delta: DELTA, strict: false };

    pub(crate) fn check(self) -> Result<()> {
        match self {
            Strategy::Selective { delta, .. } if !(0.0..=1.0).contains(&delta) => Err(refused(&self.to_string())),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Strategy::None => f.pad("none"),
            Strategy::All => f.pad("all"),
            Strategy::Selective { delta, strict } => {
                f.pad(&format!("selective:{delta}{}", if *strict { ":strict" } else { "" }))
            }
        }
    }
}

impl FromStr for Strategy {
    type Err = Error;

    fn from_str(text: &str) -> Result<Strategy> {
        let (name, rest) = text.split_once(':').map_or((text, None), |(name, rest)| (name, Some(rest)));
        let strategy = match (name, rest) {
            ("none", None) => Strategy::None,
            ("all", None) => Strategy::All,
            ("selective", None) => Strategy::SELECTIVE,
            ("selective", Some("strict")) => Strategy::Selective { delta: DELTA, strict: true },
            ("selective", Some(rest)) => {
                let (delta, strict) = rest.strip_suffix(":strict").map_or((rest, false), |delta| (delta, true));
                Strategy::Selective { delta: delta.parse().map_err(|_| refused(text))?, strict }
            }
            _ => return Err(refused(text)),
        };
        strategy.check().map(|()| strategy)
    }
}

fn refused(value: &str) -> Error {
    let expected = "none, all, selective, selective:DELTA or selective:DELTA:strict, with DELTA from 0 to 1".into();
    Error::Option { option: "strategy", value: format!("\"{value}\""), expected }
}

/// A strategy, the compression of the tables that it chooses, and tables that are decided together.
///
/// ```
/// use duramen::db::{Compression, CompressionPlan, Strategy};
///
/// let plan = CompressionPlan::new("selective".parse()?, Compression::Zstd(3)).group(["orders", "orders_by_customer"]);
/// assert_eq!(plan.compression(), Compression::Zstd(3));
/// # Ok::<(), duramen::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct CompressionPlan {
    pub(super) strategy: Strategy,
    pub(super) policy: PagePolicy,
    pub(super) groups: Vec<Vec<String>>,
    /// Empty: the plan is for all tables.
    pub(super) tables: Vec<String>,
}

impl CompressionPlan {
    /// A plan for all tables, without groups.
    pub fn new(strategy: Strategy, compression: Compression) -> CompressionPlan {
        let policy = PagePolicy { compression, ..PagePolicy::default() };
        CompressionPlan { strategy, policy, groups: Vec::new(), tables: Vec::new() }
    }

    /// Limits the plan to this table. Call it again to add more tables. All other tables keep their compression, and
    /// [`Database::compact_with`](crate::Database::compact_with) does not rebuild them. If a group has such a table,
    /// the decision for the group still uses the pages of that table.
    ///
    /// ```
    /// use duramen::db::{Compression, CompressionPlan, Strategy};
    ///
    /// let fast = CompressionPlan::new(Strategy::All, Compression::Lz4).table("sessions");
    /// let small = CompressionPlan::new(Strategy::All, Compression::Zstd(9)).table("archive").table("index");
    /// # let _ = (fast, small);
    /// ```
    #[must_use]
    pub fn table(mut self, table: impl Into<String>) -> CompressionPlan {
        self.tables.push(table.into());
        self
    }

    /// True if the plan changes nothing in this table.
    pub(super) fn leaves_out(&self, table: &str) -> bool {
        !self.tables.is_empty() && !self.tables.iter().any(|name| name == table)
    }

    /// Sets the target of the tables that the strategy chooses. The default is [`Target::Fit`].
    #[must_use]
    pub fn target(mut self, target: Target) -> CompressionPlan {
        self.policy.target = target;
        self
    }

    /// Sets what happens to pages of these tables that miss the target. The default is [`Overflow::Spill`].
    #[must_use]
    pub fn overflow(mut self, overflow: Overflow) -> CompressionPlan {
        self.policy.overflow = overflow;
        self
    }

    /// Allows dictionaries for the tables that the strategy chooses; see
    /// [`TableDef::dictionary`](crate::TableDef::dictionary). The compression must be Zstandard. The default is false.
    #[must_use]
    pub fn dictionary(mut self, dictionary: bool) -> CompressionPlan {
        self.policy.dictionary = dictionary;
        self
    }

    /// The target of the tables that the strategy chooses.
    pub fn page_target(&self) -> Target {
        self.policy.target
    }

    /// The strategy decides once for all of these tables, such as a table and its indexes. A table can be in one group.
    #[must_use]
    pub fn group<S: Into<String>>(mut self, tables: impl IntoIterator<Item = S>) -> CompressionPlan {
        self.groups.push(tables.into_iter().map(Into::into).collect());
        self
    }

    /// The strategy.
    pub fn strategy(&self) -> Strategy {
        self.strategy
    }

    /// The compression of the tables that the strategy chooses.
    pub fn compression(&self) -> Compression {
        self.policy.compression
    }
}

/// Why a strategy compresses a table or does not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Reason {
    /// The strategy is [`Strategy::None`].
    StrategyNone,
    /// The strategy is [`Strategy::All`].
    StrategyAll,
    /// The plan is for other tables; see [`CompressionPlan::table`].
    LeftOut,
    /// At most one page of the table was sampled, and it does not become smaller. The table stays as it is.
    TooSmall,
    /// Fewer than half of its pages become smaller.
    NoSaving,
    /// SS < (1 - delta) CPss.
    BelowMedian,
    /// SS > CPss, and the strategy is strict.
    AboveMedian,
    /// The lower bound holds, and with a strict strategy also the upper one.
    Close,
}

impl Reason {
    /// True if the table is compressed.
    pub fn compresses(self) -> bool {
        matches!(self, Reason::StrategyAll | Reason::Close)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Reason::StrategyNone => "the strategy compresses no table",
            Reason::StrategyAll => "the strategy compresses every table of the plan",
            Reason::LeftOut => "the plan is for other tables",
            Reason::TooSmall => "it has so few pages that compression does not matter",
            Reason::NoSaving => "fewer than half of its pages become smaller",
            Reason::BelowMedian => "SS < (1 - delta) CPss",
            Reason::AboveMedian => "SS > CPss",
            Reason::Close => "SS is close to CPss",
        })
    }
}

/// The effect of a compression on the sampled pages of a table.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct MethodAnalysis {
    /// The compression.
    pub compression: Compression,
    /// The length of the places. A page that misses it counts with all of its bytes.
    pub target: Target,
    /// The decision of the strategy for the table with this compression and this target. For a table of a group it
    /// follows from SS and CPss of all tables of the group.
    pub reason: Reason,
    /// SS: the share of bytes that it saves in all sampled pages, from 0 to 1. It is negative if places for whole pages
    /// take more than the pages take now.
    pub saving: f64,
    /// CPss: the share of bytes that it saves in the median page.
    pub median_saving: f64,
    /// Bytes that it saves in the whole table, in comparison with no compression, estimated.
    pub saved_bytes: u64,
    /// The average time of compressing a page and checking the result.
    pub write_time: Duration,
    /// The average time of decompressing a page. A page that stays uncompressed takes none.
    pub read_time: Duration,
}

impl MethodAnalysis {
    /// True if the lower bound of SS holds, with a tolerance for rounding: (1 - `delta`) CPss <= SS. In the paper, SS
    /// is delta-close to CPss if this bound and the upper one hold.
    pub fn meets_lower_bound(&self, delta: f64) -> bool {
        meets_lower_bound(self.saving, self.median_saving, delta)
    }

    /// True if the upper bound of SS holds, with a tolerance for rounding: SS <= CPss.
    pub fn meets_upper_bound(&self) -> bool {
        meets_upper_bound(self.saving, self.median_saving)
    }
}

fn meets_lower_bound(saving: f64, median: f64, delta: f64) -> bool {
    (1.0 - delta) * median <= saving + ROUNDING
}

fn meets_upper_bound(saving: f64, median: f64) -> bool {
    saving <= median + ROUNDING
}

/// The effect of a strategy on a table.
#[derive(Clone, PartialEq, Debug)]
pub struct TableAnalysis {
    /// The name of the table.
    pub table: String,
    /// Its pages in the file, estimated.
    pub pages: u64,
    /// The pages that were sampled.
    pub sampled: u64,
    /// Bytes of its pages in the file without compression, estimated.
    pub bytes: u64,
    /// How it is compressed now.
    pub current: Compression,
    /// The length of its places now.
    pub current_target: Target,
    /// Bytes of its pages in the file now, estimated.
    pub current_bytes: u64,
    /// The effect of each compression.
    pub methods: Vec<MethodAnalysis>,
    /// The choice of the strategy.
    pub choice: Compression,
    /// The length of the places after that choice.
    pub choice_target: Target,
    /// Bytes of its pages in the file after that choice, estimated. The effect of a dictionary is not in it, except in
    /// a table that does not change.
    pub choice_bytes: u64,
    /// Why.
    pub reason: Reason,
    /// The effect of a dictionary for its pages, if the plan allows dictionaries and the table has enough pages.
    pub dictionary: Option<DictionaryAnalysis>,
}

/// The effect of a dictionary on the pages of a table, in comparison with the same compression without one.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DictionaryAnalysis {
    /// Bytes that the dictionary takes in the file, twice.
    pub bytes: u64,
    /// The share of the bytes of compressed pages that it saves, from 0 to 1.
    pub saving: f64,
    /// Bytes that it saves in the whole table, estimated. The bytes of the dictionary itself are not subtracted.
    pub saved_bytes: u64,
    /// True if it is worth it.
    pub pays: bool,
}

/// Sizes of the sampled pages of a table.
#[derive(Clone, Debug, Default)]
pub(super) struct TableSample {
    /// Bytes of each page in the file without compression.
    pub(super) plain: Vec<u64>,
    /// Bytes of all of them in the file now.
    pub(super) current: u64,
    /// The same with each compression that is measured.
    pub(super) methods: Vec<MethodSample>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct MethodSample {
    pub(super) stored: Vec<u64>,
    pub(super) write_time: Duration,
    pub(super) read_time: Duration,
}

impl TableSample {
    fn method(&self, index: usize) -> &[u64] {
        self.methods.get(index).map_or(&[], |method| &method.stored)
    }

    /// Bytes of the sampled pages with the compression with this number.
    pub(super) fn stored(&self, index: usize) -> u64 {
        self.method(index).iter().sum()
    }

    /// The effect of the compression with this number. `scale`: pages of the file for each sampled page.
    pub(super) fn analysis(&self, index: usize, policy: PagePolicy, reason: Reason, scale: f64) -> MethodAnalysis {
        let times = |of: fn(&MethodSample) -> Duration| {
            let pages = u32::try_from(self.plain.len()).unwrap_or(u32::MAX).max(1);
            self.methods.get(index).map(of).unwrap_or_default() / pages
        };
        let saved = self.plain.iter().sum::<u64>().saturating_sub(self.stored(index));
        let (saving, median_saving) = savings(&[self], index);
        MethodAnalysis {
            compression: policy.compression,
            target: policy.target,
            reason,
            saving,
            median_saving,
            saved_bytes: scaled(saved, scale),
            write_time: times(|method| method.write_time),
            read_time: times(|method| method.read_time),
        }
    }
}

/// An estimate for all pages from the sampled ones.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // estimates are not negative
pub(super) fn scaled(sampled: u64, scale: f64) -> u64 {
    (sampled as f64 * scale).round() as u64
}

/// SS and CPss of some tables together.
fn savings(samples: &[&TableSample], index: usize) -> (f64, f64) {
    let saving = |stored: u64, plain: u64| 1.0 - stored as f64 / plain.max(1) as f64;
    let (mut plain, mut stored, mut each) = (0, 0, Vec::new());
    for sample in samples {
        for (&page, &compressed) in sample.plain.iter().zip(sample.method(index)) {
            plain += page;
            stored += compressed;
            each.push(saving(compressed, page));
        }
    }
    each.sort_unstable_by(f64::total_cmp);
    let median = each.get(each.len() / 2).copied().unwrap_or(0.0);
    (if plain == 0 { 0.0 } else { saving(stored, plain) }, median)
}

/// Decides for some tables together. `index`: the compression that the strategy may choose.
pub(super) fn decide(strategy: Strategy, samples: &[&TableSample], index: usize) -> Reason {
    let Strategy::Selective { delta, strict } = strategy else {
        return if strategy == Strategy::All { Reason::StrategyAll } else { Reason::StrategyNone };
    };
    let (saving, median) = savings(samples, index);
    match () {
        () if median <= 0.0 && samples.iter().all(|sample| sample.plain.len() <= 1) => Reason::TooSmall,
        () if median <= 0.0 => Reason::NoSaving,
        () if !meets_lower_bound(saving, median, delta) => Reason::BelowMedian,
        () if strict && !meets_upper_bound(saving, median) => Reason::AboveMedian,
        () => Reason::Close,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages of 16 grains, each compressed to one of these numbers of grains.
    fn sample(stored: &[u64]) -> TableSample {
        let methods = vec![MethodSample { stored: stored.to_vec(), ..MethodSample::default() }];
        TableSample { plain: vec![16; stored.len()], methods, ..TableSample::default() }
    }

    #[test]
    fn the_bounds_of_the_paper_decide() {
        let selective = |delta, strict| Strategy::Selective { delta, strict };
        // CPss = 1/2, SS = 1/2.
        let even = sample(&[8; 10]);
        assert_eq!(decide(selective(0.1, true), &[&even], 0), Reason::Close);
        // CPss = 1/2, SS = .4 with two of ten pages that do not become smaller.
        let uneven = sample(&[8, 8, 8, 8, 8, 8, 8, 8, 16, 16]);
        assert_eq!(decide(selective(0.1, false), &[&uneven], 0), Reason::BelowMedian);
        assert_eq!(decide(selective(0.2, false), &[&uneven], 0), Reason::Close);
        // SS > CPss.
        let better = sample(&[8, 8, 8, 8, 8, 8, 8, 1, 1, 1]);
        assert_eq!(decide(selective(0.1, true), &[&better], 0), Reason::AboveMedian);
        assert_eq!(decide(selective(0.1, false), &[&better], 0), Reason::Close);
        // Most pages stay as they are.
        let poor = sample(&[8, 8, 8, 16, 16, 16, 16, 16, 16, 16]);
        assert_eq!(decide(selective(1.0, false), &[&poor], 0), Reason::NoSaving);
        // One page that does not become smaller is no reason to change the table. One page that becomes smaller is a
        // reason to compress it.
        for (stored, reason) in [(&[][..], Reason::TooSmall), (&[16], Reason::TooSmall), (&[15], Reason::Close)] {
            assert_eq!(decide(selective(0.1, false), &[&sample(stored)], 0), reason);
        }
        assert_eq!(decide(selective(0.1, false), &[&sample(&[16]), &sample(&[16, 16])], 0), Reason::NoSaving);
        // Together, the two tables have CPss = 1/2 and SS = .45.
        assert_eq!(decide(selective(0.1, false), &[&even, &uneven], 0), Reason::Close);
        assert_eq!(decide(Strategy::All, &[&poor], 0), Reason::StrategyAll);
        assert_eq!(decide(Strategy::None, &[&even], 0), Reason::StrategyNone);
    }

    #[test]
    fn strategies_are_read_as_they_are_written() {
        for text in ["none", "all", "selective:0.1", "selective:0:strict", "selective:1"] {
            assert_eq!(text.parse::<Strategy>().unwrap().to_string(), text);
        }
        for text in
            ["", "some", "all:1", "selective:2", "selective:-1", "selective:x", "selective:NaN", "selective:.1:no"]
        {
            assert!(matches!(text.parse::<Strategy>(), Err(Error::Option { option: "strategy", .. })), "{text}");
        }
    }
}

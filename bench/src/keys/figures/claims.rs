//! The form of a claim of the paper, and the test that holds the results against it. The claims must not be in this
//! file.

use super::experiments::Point;
use crate::keys::report::Row;
use crate::page::Finding;

/// What is asked of a layout in a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Measure {
    Insert,
    Search,
    /// Scans of the first and of the second length.
    Range10,
    Range100,
    /// Bytes of an entry in the key list: those of the key, and those beside it.
    KeptBytes,
    HeaderBytes,
    /// Bytes of a key and its header to what the layout keeps of them.
    Compression,
    Height,
    Fanout,
    Pages,
    InnerPages,
    /// Inner pages of all, in percent.
    InnerShare,
    /// Entries of a leaf.
    LeafEntries,
    /// Bytes that tell two keys apart in a search.
    ComparedBytes,
    /// The part of a search of whole keys that comparing takes, in percent.
    ComparingShare,
}

impl Measure {
    /// In words.
    pub(super) fn name(self) -> &'static str {
        match self {
            Measure::Insert => "inserts, K/s",
            Measure::Search => "searches, K/s",
            Measure::Range10 => "scans of 10, K/s",
            Measure::Range100 => "scans of 100, K/s",
            Measure::KeptBytes => "bytes of keys to an entry",
            Measure::HeaderBytes => "bytes beside them",
            Measure::Compression => "compression ratio",
            Measure::Height => "height",
            Measure::Fanout => "fan-out",
            Measure::Pages => "pages",
            Measure::InnerPages => "inner pages",
            Measure::InnerShare => "inner pages, % of all",
            Measure::LeafEntries => "entries of a leaf",
            Measure::ComparedBytes => "bytes compared",
            Measure::ComparingShare => "comparing, % of a search",
        }
    }

    pub(super) fn of(self, row: &Row) -> f64 {
        let (steps, sizes) = (&row.steps, &row.sizes);
        let range = |at: usize| steps.range.get(at).map_or(0.0, |speed| speed.kops);
        match self {
            Measure::Insert => steps.insert.kops,
            Measure::Search => steps.search.kops,
            Measure::Range10 => range(0),
            Measure::Range100 => range(1),
            Measure::KeptBytes => sizes.kept_bytes,
            Measure::HeaderBytes => sizes.list_bytes - sizes.kept_bytes,
            Measure::Compression => sizes.ratio,
            Measure::Height => sizes.height as f64,
            Measure::Fanout => sizes.fanout,
            Measure::Pages => sizes.pages as f64,
            Measure::InnerPages => sizes.inner_pages as f64,
            Measure::InnerShare => 100.0 * sizes.inner_pages as f64 / sizes.pages as f64,
            Measure::LeafEntries => sizes.leaf_entries,
            Measure::ComparedBytes => row.comparing.bytes,
            Measure::ComparingShare => 100.0 * row.comparing_share(),
        }
    }
}

/// Something that the paper says, as a question to the results.
#[derive(Clone, Copy, Debug)]
pub(super) enum Asked {
    /// One layout has so many times another's, by the paper; ours is to lie on the same side of 1, or within a twentieth.
    Times { measure: Measure, layout: &'static str, to: &'static str, paper: f64 },
    /// One layout has more than another.
    More { measure: Measure, layout: &'static str, than: &'static str },
    /// These have the most of all.
    Most { measure: Measure, layouts: &'static [&'static str] },
    /// From the first run of a series to the last, what a layout has (to another's, if one is named) grows or shrinks.
    Trend { measure: Measure, layout: &'static str, to: Option<&'static str>, grows: bool },
    /// From run to run it stays within a tenth.
    Flat { measure: Measure, layout: &'static str },
    /// It has about so much in the run of that number, by the paper; ours is to be within a quarter.
    About { measure: Measure, layout: &'static str, run: usize, paper: f64 },
}

/// A claim: in words, and as a question.
pub(super) struct Claim {
    pub(super) says: &'static str,
    pub(super) asked: Asked,
}

fn get(point: &Point, measure: Measure, layout: &str) -> Option<f64> {
    point.rows.iter().find(|row| row.name() == layout).map(|row| measure.of(row)).filter(|value| *value > 0.0)
}

/// Asks the results of a series.
pub(super) fn ask(asked: Asked, points: &[Point]) -> Finding {
    let found = match asked {
        Asked::Times { measure, layout, to, paper } => points.last().and_then(|point| {
            let ours = get(point, measure, layout)? / get(point, measure, to)?;
            let agrees = (ours - 1.0) * (paper - 1.0) > 0.0 || (ours - paper).abs() <= 0.05 * paper;
            Some((format!("{ours:.2} times {to} (paper {paper:.2})"), agrees))
        }),
        Asked::More { measure, layout, than } => points.last().and_then(|point| {
            let (ours, other) = (get(point, measure, layout)?, get(point, measure, than)?);
            Some((format!("{layout} {ours:.2}, {than} {other:.2}"), ours > other))
        }),
        Asked::Most { measure, layouts } => points.last().and_then(|point| {
            let mut all: Vec<(String, f64)> = point.rows.iter().map(|row| (row.name(), measure.of(row))).collect();
            all.sort_by(|a, b| b.1.total_cmp(&a.1));
            let first = all.get(..layouts.len())?;
            let agrees = first.iter().all(|(name, _)| layouts.contains(&name.as_str()));
            let first: Vec<String> = first.iter().map(|(name, value)| format!("{name} ({value:.2})")).collect();
            Some((format!("first: {}", first.join(", ")), agrees))
        }),
        Asked::Trend { measure, layout, to, grows } => points.first().zip(points.last()).and_then(|(first, last)| {
            let at = |point| {
                let whole = to.map_or(Some(1.0), |to| get(point, measure, to))?;
                Some(get(point, measure, layout)? / whole)
            };
            let (from, until) = (at(first)?, at(last)?);
            Some((format!("from {from:.2} to {until:.2}"), (until > from) == grows))
        }),
        Asked::Flat { measure, layout } => {
            let all: Option<Vec<f64>> = points.iter().map(|point| get(point, measure, layout)).collect();
            all.map(|all| {
                let (least, most) = all.iter().fold((f64::MAX, 0f64), |(a, b), v| (a.min(*v), b.max(*v)));
                (format!("between {least:.2} and {most:.2}"), most <= 1.1 * least)
            })
        }
        Asked::About { measure, layout, run, paper } => points.get(run).and_then(|point| {
            let ours = get(point, measure, layout)?;
            Some((format!("{ours:.2} (paper {paper})"), (ours - paper).abs() <= 0.25 * paper))
        }),
    };
    match found {
        Some((ours, agrees)) => Finding { ours, agrees: Some(agrees) },
        None => Finding { ours: "not measured".to_owned(), agrees: None },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::report::row_for_tests;

    fn point(rows: &[(&str, f64)]) -> Point {
        let rows = rows.iter().map(|(name, search)| row_for_tests(name, *search)).collect();
        Point { mark: String::new(), rows, lengths: Vec::new(), spread: Vec::new() }
    }

    #[test]
    fn claims_are_borne_out_or_not() {
        let measure = Measure::Search;
        let points =
            [point(&[("head/tail", 20.0), ("plain/full", 10.0)]), point(&[("head/tail", 30.0), ("plain/full", 20.0)])];
        let agrees = |asked| ask(asked, &points).agrees;
        let (layout, to, than) = ("head/tail", "plain/full", "plain/full");
        assert_eq!(agrees(Asked::Times { measure, layout, to, paper: 1.4 }), Some(true));
        assert_eq!(agrees(Asked::Times { measure, layout, to, paper: 0.9 }), Some(false));
        assert_eq!(agrees(Asked::Times { measure, layout: to, to, paper: 1.04 }), Some(true));
        assert_eq!(agrees(Asked::More { measure, layout, than }), Some(true));
        assert_eq!(agrees(Asked::More { measure, layout: "db2/full", than }), None);
        assert_eq!(agrees(Asked::Most { measure, layouts: &["head/tail"] }), Some(true));
        assert_eq!(agrees(Asked::Most { measure, layouts: &["plain/full"] }), Some(false));
        assert_eq!(agrees(Asked::Trend { measure, layout, to: None, grows: true }), Some(true));
        assert_eq!(agrees(Asked::Trend { measure, layout, to: Some(to), grows: true }), Some(false));
        assert_eq!(agrees(Asked::Flat { measure, layout }), Some(false));
        assert_eq!(agrees(Asked::About { measure, layout, run: 0, paper: 18.0 }), Some(true));
        assert_eq!(
            ask(Asked::Times { measure, layout, to, paper: 1.4 }, &points).ours,
            "1.50 times plain/full (paper 1.40)"
        );
    }
}

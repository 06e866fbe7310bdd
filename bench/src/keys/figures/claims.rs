//! The form of a claim of the paper, and its comparison with the results.

use super::experiments::Point;
use crate::keys::report::Row;
use crate::page::Finding;

/// A property of a layout in a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Measure {
    Insert,
    Search,
    /// Scans of the first and of the second length.
    Range10,
    Range100,
    /// Bytes of an entry in the key list: those of the key, and the others.
    KeptBytes,
    HeaderBytes,
    /// Bytes of a key and its header, divided by the bytes that the layout needs.
    Compression,
    Height,
    Fanout,
    Pages,
    InnerPages,
    /// The percentage of inner pages.
    InnerShare,
    /// Entries of a leaf.
    LeafEntries,
    /// Bytes that a search needs to distinguish two keys.
    ComparedBytes,
    /// The percentage of the time of a search that comparing whole keys needs.
    ComparingShare,
}

impl Measure {
    /// The name in charts and tables.
    pub(super) fn name(self) -> &'static str {
        match self {
            Measure::Insert => "inserts, K/s",
            Measure::Search => "searches, K/s",
            Measure::Range10 => "scans of 10, K/s",
            Measure::Range100 => "scans of 100, K/s",
            Measure::KeptBytes => "bytes of keys of an entry",
            Measure::HeaderBytes => "other bytes of an entry",
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

/// A claim of the paper in a form that can be compared with the results.
#[derive(Clone, Copy, Debug)]
pub(super) enum Test {
    /// According to the paper, the value of one layout is `paper` times that of another. Our ratio must be on the same
    /// side of 1, or within a twentieth.
    Times { measure: Measure, layout: &'static str, to: &'static str, paper: f64 },
    /// One layout has more than another.
    More { measure: Measure, layout: &'static str, than: &'static str },
    /// These layouts have the greatest values.
    Most { measure: Measure, layouts: &'static [&'static str] },
    /// From the first run of a series to the last, the value of a layout grows or shrinks; if `to` is given, the ratio
    /// to that layout.
    Trend { measure: Measure, layout: &'static str, to: Option<&'static str>, grows: bool },
    /// The value stays within a tenth in all runs.
    Flat { measure: Measure, layout: &'static str },
    /// According to the paper, the value in run `run` is about `paper`. Ours must be within a quarter.
    About { measure: Measure, layout: &'static str, run: usize, paper: f64 },
}

/// A claim as a text, and in a form that can be compared.
pub(super) struct Claim {
    pub(super) says: &'static str,
    pub(super) test: Test,
}

fn get(point: &Point, measure: Measure, layout: &str) -> Option<f64> {
    point.rows.iter().find(|row| row.name() == layout).map(|row| measure.of(row)).filter(|value| *value > 0.0)
}

/// Compares a claim with the results of a series.
pub(super) fn compare(test: Test, points: &[Point]) -> Finding {
    let found = match test {
        Test::Times { measure, layout, to, paper } => points.last().and_then(|point| {
            let ours = get(point, measure, layout)? / get(point, measure, to)?;
            let agrees = (ours - 1.0) * (paper - 1.0) > 0.0 || (ours - paper).abs() <= 0.05 * paper;
            Some((format!("{ours:.2} times {to} (paper {paper:.2})"), agrees))
        }),
        Test::More { measure, layout, than } => points.last().and_then(|point| {
            let (ours, other) = (get(point, measure, layout)?, get(point, measure, than)?);
            Some((format!("{layout} {ours:.2}, {than} {other:.2}"), ours > other))
        }),
        Test::Most { measure, layouts } => points.last().and_then(|point| {
            let mut all: Vec<(String, f64)> = point.rows.iter().map(|row| (row.name(), measure.of(row))).collect();
            all.sort_by(|a, b| b.1.total_cmp(&a.1));
            let first = all.get(..layouts.len())?;
            let agrees = first.iter().all(|(name, _)| layouts.contains(&name.as_str()));
            let first: Vec<String> = first.iter().map(|(name, value)| format!("{name} ({value:.2})")).collect();
            Some((format!("first: {}", first.join(", ")), agrees))
        }),
        Test::Trend { measure, layout, to, grows } => points.first().zip(points.last()).and_then(|(first, last)| {
            let at = |point| {
                let whole = to.map_or(Some(1.0), |to| get(point, measure, to))?;
                Some(get(point, measure, layout)? / whole)
            };
            let (from, until) = (at(first)?, at(last)?);
            Some((format!("from {from:.2} to {until:.2}"), (until > from) == grows))
        }),
        Test::Flat { measure, layout } => {
            let all: Option<Vec<f64>> = points.iter().map(|point| get(point, measure, layout)).collect();
            all.map(|all| {
                let (least, most) = all.iter().fold((f64::MAX, 0f64), |(a, b), v| (a.min(*v), b.max(*v)));
                (format!("between {least:.2} and {most:.2}"), most <= 1.1 * least)
            })
        }
        Test::About { measure, layout, run, paper } => points.get(run).and_then(|point| {
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
    fn claims_hold_or_do_not() {
        let measure = Measure::Search;
        let points =
            [point(&[("head/tail", 20.0), ("plain/full", 10.0)]), point(&[("head/tail", 30.0), ("plain/full", 20.0)])];
        let agrees = |test| compare(test, &points).agrees;
        let (layout, to, than) = ("head/tail", "plain/full", "plain/full");
        assert_eq!(agrees(Test::Times { measure, layout, to, paper: 1.4 }), Some(true));
        assert_eq!(agrees(Test::Times { measure, layout, to, paper: 0.9 }), Some(false));
        assert_eq!(agrees(Test::Times { measure, layout: to, to, paper: 1.04 }), Some(true));
        assert_eq!(agrees(Test::More { measure, layout, than }), Some(true));
        assert_eq!(agrees(Test::More { measure, layout: "db2/full", than }), None);
        assert_eq!(agrees(Test::Most { measure, layouts: &["head/tail"] }), Some(true));
        assert_eq!(agrees(Test::Most { measure, layouts: &["plain/full"] }), Some(false));
        assert_eq!(agrees(Test::Trend { measure, layout, to: None, grows: true }), Some(true));
        assert_eq!(agrees(Test::Trend { measure, layout, to: Some(to), grows: true }), Some(false));
        assert_eq!(agrees(Test::Flat { measure, layout }), Some(false));
        assert_eq!(agrees(Test::About { measure, layout, run: 0, paper: 18.0 }), Some(true));
        assert_eq!(
            compare(Test::Times { measure, layout, to, paper: 1.4 }, &points).ours,
            "1.50 times plain/full (paper 1.40)"
        );
    }
}

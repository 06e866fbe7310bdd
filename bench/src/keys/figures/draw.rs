//! Makes charts and CSV from results. Each figure defines what is drawn. Nothing is judged here.

use super::claims::{Measure, Test};
use super::experiments::Point;
use super::paper::{Figure, Sort};
use crate::Result;
use crate::bars::{Bar, Bars};
use crate::chart::Chart;
use crate::keys::report::Row;
use std::io::Write;

/// The charts of a figure by their names.
pub(super) fn charts(figure: &Figure, points: &[Point]) -> Vec<(String, String)> {
    let named = |(part, svg): (String, String)| (format!("{}{part}", figure.name()), svg);
    let charts: Vec<(String, String)> = match figure.sort {
        Sort::Series { scale, .. } => each(figure.sort.measures(), |measure| lines(figure, points, *measure, scale)),
        Sort::Overall { .. } => each(figure.sort.measures(), |measure| match measure {
            Measure::KeptBytes => split(figure, points).svg(),
            measure => overall(figure, points, *measure).svg(),
        }),
        Sort::Table { .. } => Vec::new(),
        Sort::Sets { .. } => each(figure.sort.measures(), |measure| sets(figure, points, *measure).svg()),
        Sort::Lengths => vec![(String::new(), distribution(figure, points, "bytes of a key", lengths))],
        Sort::Spread => vec![(String::new(), distribution(figure, points, "first two digits", spread))],
    };
    charts.into_iter().map(named).collect()
}

/// Letters for the charts of one figure, if there is more than one.
fn each(measures: &[Measure], chart: impl Fn(&Measure) -> String) -> Vec<(String, String)> {
    let letter = |i: usize| if measures.len() > 1 { ["a", "b", "c", "d"][i % 4] } else { "" };
    measures.iter().enumerate().map(|(i, measure)| (letter(i).to_owned(), chart(measure))).collect()
}

fn title(figure: &Figure, measure: Measure) -> String {
    format!("{}: {}", figure.title, measure.name())
}

/// A line for each layout, from run to run.
fn lines(figure: &Figure, points: &[Point], measure: Measure, scale: &str) -> String {
    let names: Vec<String> = points.first().map(|point| &point.rows).into_iter().flatten().map(Row::name).collect();
    let at = |(name, run): (&'_ String, usize)| {
        let row = points.get(run)?.rows.iter().find(|row| row.name() == *name)?;
        Some((run as f64, measure.of(row)))
    };
    let each = names.iter().flat_map(|name| (0..points.len()).map(move |run| (name, run)));
    let marks = points.iter().enumerate().map(|(run, point)| (run as f64, point.mark.clone()));
    let chart = Chart {
        title: &title(figure, measure),
        axis: scale,
        height: "",
        logarithmic: false,
        points: each.filter_map(|(name, run)| at((name, run)).map(|(x, y)| (name.as_str(), x, y))).collect(),
        marks: marks.collect(),
        palette: &[],
        paper: &[],
    };
    chart.svg()
}

/// The value in the paper for a layout in a run, if there is one.
fn claimed(figure: &Figure, measure: Measure, layout: &str, run: usize) -> Option<f64> {
    figure.claims.iter().find_map(|claim| match claim.test {
        Test::About { measure: of, layout: whose, run: when, paper } => {
            (of == measure && whose == layout && when == run).then_some(paper)
        }
        _ => None,
    })
}

/// A bar for each layout, in the last run.
fn overall(figure: &Figure, points: &[Point], measure: Measure) -> Bars {
    let rows = points.last().map(|point| point.rows.as_slice()).unwrap_or_default();
    let run = points.len().saturating_sub(1);
    let bar = |row: &Row| {
        let claimed = claimed(figure, measure, &row.name(), run);
        Bar { name: row.name(), parts: vec![measure.of(row)], claimed }
    };
    Bars {
        title: title(figure, measure),
        height: String::new(),
        parts: Vec::new(),
        bars: rows.iter().map(bar).collect(),
    }
}

/// The bytes of an entry: those of its key, and on top of them the others.
fn split(figure: &Figure, points: &[Point]) -> Bars {
    let parts = [Measure::KeptBytes, Measure::HeaderBytes];
    let rows = points.last().map(|point| point.rows.as_slice()).unwrap_or_default();
    let bar = |row: &Row| Bar { name: row.name(), parts: parts.map(|part| part.of(row)).to_vec(), claimed: None };
    let names = ["of the key", "others"].map(str::to_owned).to_vec();
    Bars {
        title: format!("{}: bytes of an entry", figure.title),
        height: String::new(),
        parts: names,
        bars: rows.iter().map(bar).collect(),
    }
}

/// A bar for each layout of each set of keys.
fn sets(figure: &Figure, points: &[Point], measure: Measure) -> Bars {
    let bars = points.iter().enumerate().flat_map(|(run, point)| {
        let bar = |row: &Row| {
            let name = format!("{} {}", point.mark, row.name().split('/').next().unwrap_or_default());
            Bar { name, parts: vec![measure.of(row)], claimed: claimed(figure, measure, &row.name(), run) }
        };
        point.rows.iter().map(bar).collect::<Vec<_>>()
    });
    Bars { title: title(figure, measure), height: String::new(), parts: Vec::new(), bars: bars.collect() }
}

fn distribution(figure: &Figure, points: &[Point], scale: &str, of: fn(&Point) -> Vec<(f64, f64)>) -> String {
    let all = points.iter().flat_map(|point| of(point).into_iter().map(|(x, y)| (point.mark.as_str(), x, y)));
    let all: Vec<(&str, f64, f64)> = all.collect();
    let (first, last) = all.iter().fold((f64::MAX, 0f64), |(first, last), (_, x, _)| (first.min(*x), last.max(*x)));
    let mark = |i| first + (last - first) * f64::from(i) / 8.0;
    let marks = (0..=8).map(|i| (mark(i), format!("{:.0}", mark(i)))).collect();
    Chart {
        title: figure.title,
        axis: scale,
        height: "",
        logarithmic: false,
        points: all,
        marks,
        palette: &[],
        paper: &[],
    }
    .svg()
}

/// The percentage of the keys with at most each length.
fn lengths(point: &Point) -> Vec<(f64, f64)> {
    let all: usize = point.lengths.iter().map(|(_, keys)| keys).sum();
    let mut sum = 0;
    let part = |&(len, keys): &(usize, usize)| {
        sum += keys;
        (len as f64, 100.0 * sum as f64 / all as f64)
    };
    point.lengths.iter().map(part).collect()
}

/// The percentage of the keys that begin with each two digits.
fn spread(point: &Point) -> Vec<(f64, f64)> {
    point.spread.iter().enumerate().map(|(digits, part)| (digits as f64, 100.0 * part)).collect()
}

/// The columns of every CSV.
const COLUMNS: [Measure; 15] = [
    Measure::Insert,
    Measure::Search,
    Measure::Range10,
    Measure::Range100,
    Measure::KeptBytes,
    Measure::HeaderBytes,
    Measure::Compression,
    Measure::Height,
    Measure::Fanout,
    Measure::Pages,
    Measure::InnerPages,
    Measure::InnerShare,
    Measure::LeafEntries,
    Measure::ComparedBytes,
    Measure::ComparingShare,
];

/// A line for each layout of each run.
pub(super) fn csv(points: &[Point], out: impl Write) -> Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(["run", "layout"].into_iter().chain(COLUMNS.iter().map(|measure| measure.name())))?;
    for point in points {
        for row in &point.rows {
            let cells = COLUMNS.iter().map(|measure| format!("{:.3}", measure.of(row)));
            writer.write_record([point.mark.clone(), row.name()].into_iter().chain(cells))?;
        }
    }
    Ok(writer.flush()?)
}

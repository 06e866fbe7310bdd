//! Draws charts and writes CSV from results.

use super::claims::{ALL, Measure};
use super::measure::Results;
use super::paper::{Axis, Figure, STORES};
use super::runs::{Population, Run, Store};
use crate::Result;
use crate::bars::{Bar, Bars};
use crate::chart::Chart;
use crate::claims::Measure as _;
use crate::page;
use std::collections::BTreeSet;
use std::io::Write;

/// Returns the charts of a figure with their names: one for each record size, page size and measure. Runs whose scale
/// or log flushes differ from those of the first run are used only for claims.
pub(super) fn charts(figure: &Figure, results: &Results) -> Vec<(String, String)> {
    let kind = |run: &Run| (run.population.scale, run.logging.flush());
    let all: Vec<&Run> = figure.runs.iter().filter(|run| figure.runs.first().map(kind) == Some(kind(run))).collect();
    let mut panels: Vec<(u64, u32)> = Vec::new();
    for run in &all {
        let panel = (run.population.page, run.population.record);
        if !panels.contains(&panel) {
            panels.push(panel);
        }
    }
    let mut charts = Vec::new();
    for (page, record) in panels {
        let runs: Vec<&Run> =
            all.iter().copied().filter(|run| (run.population.page, run.population.record) == (page, record)).collect();
        for (i, measure) in figure.measures.iter().enumerate() {
            let pages = page / 1024;
            let title = format!("{}: records of {record} B, pages of {pages} KiB", page::heading(figure.id));
            let svg = match figure.axis {
                Axis::Nothing => continue,
                Axis::Stores => bars(title, &runs, *measure, results),
                Axis::Threads => lines(&title, "threads", &runs, *measure, results, |run| {
                    Some((run.threads, run.population.store.to_string()))
                }),
                Axis::Thresholds => {
                    lines(&title, "threshold, bytes", &runs, *measure, results, |run| match run.population.store {
                        Store::Delta(threshold, segment, _) => {
                            Some((u32::from(threshold), format!("segments of {segment} B")))
                        }
                        _ => None,
                    })
                }
            };
            let letter = if figure.measures.len() > 1 { ["-a", "-b", "-c"][i % 3] } else { "" };
            charts.push((format!("{}-{record}-{pages}k{letter}", page::name(figure.id)), svg));
        }
    }
    charts
}

/// The values have a logarithmic axis if they differ by this factor.
const WIDE: f64 = 20.0;

/// Draws a line for each series. `place` returns the place of a run on the axis, which is logarithmic, and its series.
fn lines(
    title: &str,
    axis: &str,
    runs: &[&Run],
    measure: Measure,
    results: &Results,
    place: impl Fn(&Run) -> Option<(u32, String)>,
) -> String {
    let mut points: Vec<(String, u32, f64)> = Vec::new();
    for run in runs {
        if let (Some((at, series)), Some(height)) = (place(run), measure.of(run, results)) {
            points.push((series, at, height));
        }
    }
    let marks: BTreeSet<u32> = points.iter().map(|point| point.1).collect();
    let at = |mark: u32| f64::from(mark).log2();
    let lowest = points.iter().map(|point| point.2).fold(f64::INFINITY, f64::min);
    let highest = points.iter().map(|point| point.2).fold(0.0, f64::max);
    let palette = STORES.map(|store| store.to_string());
    let chart = Chart {
        title,
        axis,
        height: measure.axis(),
        logarithmic: lowest > 0.0 && highest > WIDE * lowest,
        points: points.iter().map(|(series, mark, height)| (series.as_str(), at(*mark), *height)).collect(),
        marks: marks.into_iter().map(|mark| (at(mark), mark.to_string())).collect(),
        palette: &palette.each_ref().map(String::as_str),
        paper: &[],
    };
    chart.svg()
}

/// Draws a bar for each run.
fn bars(title: String, runs: &[&Run], measure: Measure, results: &Results) -> String {
    let bar = |run: &&Run| {
        Some(Bar { name: run.population.store.to_string(), parts: vec![measure.of(run, results)?], claimed: None })
    };
    let bars = runs.iter().filter_map(bar).collect();
    Bars { title, height: measure.axis().to_owned(), parts: Vec::new(), bars }.svg()
}

/// Writes all measures of runs, one line for each run.
pub(super) fn csv(runs: &[Run], results: &Results, out: impl Write) -> Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    let about = ["store", "record", "page", "leaves", "frames", "flush", "log", "threads"];
    writer.write_record(about.into_iter().chain(ALL.iter().map(|measure| measure.name())))?;
    for run in runs {
        let Some(object) = results.get(run) else { continue };
        let Population { page, record, store, .. } = run.population;
        let value_at =
            |path: &str| object.pointer(path).map_or_else(String::new, |value| value.to_string().replace('"', ""));
        let about = [
            store.to_string(),
            record.to_string(),
            page.to_string(),
            value_at("/leaves"),
            value_at("/cache_pages"),
            run.logging.flush().to_owned(),
            run.logging.shape().to_owned(),
            run.threads.to_string(),
        ];
        let cells = ALL.iter().map(|measure| number(*measure, run, results));
        writer.write_record(about.into_iter().chain(cells))?;
    }
    Ok(writer.flush()?)
}

/// Returns a measure as text; empty if a run does not have it.
fn number(measure: Measure, run: &Run, results: &Results) -> String {
    let number = measure.of(run, results).filter(|number| number.is_finite());
    number.map_or_else(String::new, |number| format!("{number:.3}"))
}

/// Returns the numbers of a figure as an HTML table, with a row for each run.
pub(super) fn table(figure: &Figure, results: &Results) -> String {
    let mut html = String::from(
        "<table><tr><th>store</th><th>record, page, leaves for each page of the cache, flush of the log, threads</th>",
    );
    figure.measures.iter().for_each(|measure| html += &format!("<th>{}</th>", measure.name()));
    html += "</tr>\n";
    for run in &figure.runs {
        let Population { page, record, scale, store } = run.population;
        let (page, leaves, flush, threads) = (page / 1024, scale.leaves(), run.logging.flush(), run.threads);
        html += &format!("<tr><td>{store}</td><td>{record} B, {page} KiB, {leaves} leaves, {flush}, {threads}</td>");
        figure.measures.iter().for_each(|measure| html += &format!("<td>{}</td>", number(*measure, run, results)));
        html += "</tr>\n";
    }
    html + "</table>\n"
}

//! Regret: how much a layout loses to the best one of a setting. The best choice for all data is the layout whose
//! greatest regret is least.

use super::Point;
use super::settings::Setting;
use comfy_table::{CellAlignment, Table, presets};

/// The cost of a layout in one measure: less is better.
type Cost = fn(&Point) -> f64;

/// The measures that are compared.
const MEASURES: [(&str, Cost); 4] = [
    ("search", |point| 1.0 / point.search_kops),
    ("insert", |point| 1.0 / point.insert_kops),
    ("scan", |point| 1.0 / point.scan_kops),
    ("bytes", |point| point.bytes),
];

/// The greatest regret of a layout.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Worst {
    /// Its cost divided by that of the best layout.
    factor: f64,
    /// The measure and the set of keys.
    of: &'static str,
    data: String,
    setting: Setting,
}

/// The layouts, in the order of the points.
pub(super) fn layouts(points: &[Point]) -> Vec<&str> {
    let mut layouts: Vec<&str> = Vec::new();
    for point in points {
        if !layouts.contains(&point.layout.as_str()) {
            layouts.push(&point.layout);
        }
    }
    layouts
}

/// The greatest regret of a layout in each measure.
fn worst(layout: &str, points: &[Point]) -> Vec<Worst> {
    let of = |&(of, cost): &(&'static str, Cost)| {
        let regret = |point: &Point| {
            let rivals = points.iter().filter(|rival| rival.data == point.data && rival.setting == point.setting);
            let best = rivals.map(cost).fold(f64::INFINITY, f64::min);
            Worst { factor: cost(point) / best, of, data: point.data.clone(), setting: point.setting }
        };
        points.iter().filter(|point| point.layout == layout).map(regret).max_by(|a, b| a.factor.total_cmp(&b.factor))
    };
    MEASURES.iter().filter_map(of).collect()
}

/// A table of the greatest regrets in all settings, and one for each setting.
pub(super) fn tables(points: &[Point]) -> String {
    let of_setting = |setting: Setting| {
        let points: Vec<Point> = points.iter().filter(|point| point.setting == setting).cloned().collect();
        (!points.is_empty()).then(|| format!("\n{}\n{}", setting.name(), table(&points)))
    };
    table(points) + &Setting::ALL.into_iter().filter_map(of_setting).collect::<String>()
}

fn table(points: &[Point]) -> String {
    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN);
    let measures = MEASURES.iter().map(|(name, _)| (*name).to_owned());
    table.set_header(["layout".to_owned(), "worst".to_owned()].into_iter().chain(measures));
    for layout in layouts(points) {
        let worst = worst(layout, points);
        let cell = |worst: &Worst| format!("{:.2} ({}, {})", worst.factor, worst.data, worst.setting.name());
        let all = worst.iter().map(|worst| worst.factor).fold(0.0, f64::max);
        table.add_row([layout.to_owned(), format!("{all:.2}")].into_iter().chain(worst.iter().map(cell)));
    }
    table.column_iter_mut().skip(1).for_each(|column| column.set_cell_alignment(CellAlignment::Left));
    table.to_string() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_regret_is_found() {
        let point = |data: &str, layout: &str, search_kops, bytes| Point {
            data: data.to_owned(),
            setting: Setting::Memory,
            layout: layout.to_owned(),
            search_kops,
            insert_kops: 1.0,
            scan_kops: 1.0,
            bytes,
        };
        let points = [
            point("x", "a", 10.0, 50.0),
            point("x", "b", 8.0, 20.0),
            point("y", "a", 9.0, 40.0),
            point("y", "b", 9.0, 30.0),
        ];
        let of = |layout, measure: usize| worst(layout, &points)[measure].clone();
        assert!((of("b", 0).factor - 1.25).abs() < 1e-9 && of("b", 0).data == "x");
        assert!((of("a", 3).factor - 2.5).abs() < 1e-9 && of("b", 3).factor == 1.0);
        let tables = tables(&points);
        let lines: Vec<&str> = tables.lines().filter(|line| line.starts_with("| a") && line.contains("2.50")).collect();
        assert!(lines.len() == 2 && tables.contains(Setting::Memory.name()), "{tables}");
    }
}

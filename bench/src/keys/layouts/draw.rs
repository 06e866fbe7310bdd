//! Charts of size against speed.

use super::settings::Setting;
use super::{Point, regret};
use crate::chart::Chart;

/// A chart for each set of keys, with its name: searches over bytes of the file, a line for each layout from no
/// compression to Zstandard.
pub(super) fn charts(data: &[String], points: &[Point]) -> Vec<(String, String)> {
    let layouts = regret::layouts(points);
    let chart = |name: &String| {
        let mut of_data: Vec<&Point> =
            points.iter().filter(|point| point.data == *name && point.setting.is_on_disk()).collect();
        of_data.sort_by_key(|point| Setting::ALL.iter().position(|setting| *setting == point.setting));
        let last = of_data.iter().map(|point| point.bytes).fold(0.0, f64::max);
        let first = of_data.iter().map(|point| point.bytes).fold(last, f64::min);
        let marks = (0..=5).map(|i| first + (last - first) * f64::from(i) / 5.0);
        let chart = Chart {
            title: &format!("{name}: no compression, LZ4, Zstandard (from the right)"),
            axis: "bytes of the file an entry",
            height: "thousand searches a second",
            logarithmic: false,
            points: of_data.iter().map(|point| (point.layout.as_str(), point.bytes, point.search_kops)).collect(),
            marks: marks.map(|mark| (mark, format!("{mark:.0}"))).collect(),
            palette: &layouts,
            paper: &[],
        };
        let file: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        (file, chart.svg())
    };
    let is_measured = |name: &&String| points.iter().any(|point| point.data == **name && point.setting.is_on_disk());
    data.iter().filter(is_measured).map(chart).collect()
}

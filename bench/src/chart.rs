//! SVG line charts: several series over a common axis. What they show is not known here.

use std::fmt::Write;

pub(crate) const WIDTH: f64 = 640.0;
pub(crate) const HEIGHT: f64 = 400.0;
pub(crate) const LEFT: f64 = 60.0;
pub(crate) const RIGHT: f64 = 130.0;
pub(crate) const TOP: f64 = 36.0;
pub(crate) const BOTTOM: f64 = 44.0;
pub(crate) const COLOURS: [&str; 8] =
    ["#444444", "#c0392b", "#e67e22", "#b7950b", "#27ae60", "#2980b9", "#8e44ad", "#16a085"];

/// A chart of some points.
pub(crate) struct Chart<'a> {
    pub(crate) title: &'a str,
    /// What the axis below is.
    pub(crate) axis: &'a str,
    /// Series, place on the axis, height; those of a series in the order of its line.
    pub(crate) points: Vec<(&'a str, f64, f64)>,
    /// Marks of the axis below.
    pub(crate) marks: Vec<(f64, String)>,
    /// What the paper says: a dashed line at a height, for series that are shown.
    pub(crate) paper: &'a [(&'a str, f64)],
}

/// A round number of `top / 4` or a little more.
pub(crate) fn tick(top: f64) -> f64 {
    let scale = 10f64.powf((top / 4.0).log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().find(|step| step * scale * 4.0 >= top);
    step.unwrap_or(10.0) * scale
}

impl Chart<'_> {
    /// The chart as a file.
    pub(crate) fn svg(&self) -> String {
        let papers = self.paper.iter().map(|&(_, level)| level);
        let top = self.points.iter().map(|point| point.2).chain(papers).fold(f64::MIN_POSITIVE, f64::max);
        let step = tick(top);
        let first = self.points.iter().map(|point| point.1).fold(f64::INFINITY, f64::min);
        let last = self.points.iter().map(|point| point.1).fold(first, f64::max);
        let span = if last > first { last - first } else { 1.0 };
        let x = |at: f64| LEFT + (at - first) / span * (WIDTH - LEFT - RIGHT);
        let y = |value: f64| HEIGHT - BOTTOM - value / (4.0 * step) * (HEIGHT - TOP - BOTTOM);
        let mut svg = frame(self.title, self.axis, step, y);
        for (at, mark) in self.marks.iter().step_by(self.marks.len().div_ceil(12).max(1)) {
            let (x, y) = (x(*at), HEIGHT - BOTTOM + 16.0);
            let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\">{mark}</text>");
        }
        let mut series: Vec<&str> = Vec::new();
        for point in &self.points {
            if !series.contains(&point.0) {
                series.push(point.0);
            }
        }
        for (i, name) in series.iter().enumerate() {
            let colour = COLOURS[i % COLOURS.len()];
            let points: Vec<_> =
                self.points.iter().filter(|point| point.0 == *name).map(|point| (x(point.1), y(point.2))).collect();
            let line: Vec<_> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
            let line = line.join(" ");
            let _ = writeln!(svg, "<polyline points=\"{line}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>");
            if let [(x, y)] = points[..] {
                let _ = writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"{colour}\"/>");
            }
            let (x, y) = (WIDTH - RIGHT + 10.0, TOP + 18.0 * (i as f64 + 0.5));
            let _ = writeln!(svg, "<text x=\"{x}\" y=\"{y:.1}\" fill=\"{colour}\">{name}</text>");
        }
        for &(name, level) in self.paper {
            let Some(i) = series.iter().position(|&shown| shown == name) else { continue };
            svg += &paper_level(name, COLOURS[i % COLOURS.len()], level, y(level));
        }
        svg + "</svg>\n"
    }
}

/// The beginning of a chart: title, lines across and the names of the axes.
pub(crate) fn frame(title: &str, axis: &str, step: f64, y: impl Fn(f64) -> f64) -> String {
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"20\" font-size=\"14\">{title}</text>\n"
    );
    for i in 0..=4 {
        let mark = step * f64::from(i);
        let (y, right) = (y(mark), WIDTH - RIGHT);
        let _ = writeln!(svg, "<path d=\"M{LEFT} {y:.1}H{right}\" stroke=\"#dddddd\"/>");
        let text = (mark * 1e6).round() / 1e6;
        let _ = writeln!(svg, "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{text}</text>", LEFT - 6.0, y + 4.0);
    }
    let (middle, foot) = ((LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 10.0);
    let _ = writeln!(svg, "<text x=\"{middle}\" y=\"{foot}\" text-anchor=\"middle\">{axis}</text>");
    svg
}

/// A dashed line across the chart, named.
fn paper_level(name: &str, colour: &str, level: f64, y: f64) -> String {
    let (right, text) = (WIDTH - RIGHT, y - 4.0);
    format!(
        "<path d=\"M{LEFT} {y:.1}H{right}\" stroke=\"{colour}\" stroke-dasharray=\"5 4\"/>\n\
         <text x=\"{}\" y=\"{text:.1}\" fill=\"{colour}\" font-size=\"10\">paper: {name} {level}</text>\n",
        LEFT + 4.0
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_reach_the_top() {
        for (top, step) in [(4.0, 1.0), (7.9, 2.0), (33.0, 10.0), (0.9, 0.25), (95.0, 25.0)] {
            assert!((tick(top) - step).abs() < 1e-9, "{top}: {}", tick(top));
        }
    }

    #[test]
    fn a_series_of_one_point_is_seen_too() {
        let (points, marks) = (vec![("plain", 3.0, 4.02)], vec![(3.0, "1000".to_owned())]);
        let svg = Chart { title: "Size", axis: "keys", points, marks, paper: &[("plain", 4.02), ("for", 1.26)] }.svg();
        assert!(svg.contains("<circle") && svg.contains("paper: plain") && !svg.contains("paper: for"));
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}

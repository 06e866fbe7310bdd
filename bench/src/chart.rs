//! SVG line charts: several series over a common axis.

use std::fmt::Write;

pub(crate) const WIDTH: f64 = 640.0;
pub(crate) const HEIGHT: f64 = 400.0;
pub(crate) const LEFT: f64 = 60.0;
pub(crate) const RIGHT: f64 = 130.0;
pub(crate) const TOP: f64 = 36.0;
pub(crate) const BOTTOM: f64 = 44.0;
pub(crate) const COLOURS: [&str; 10] =
    ["#444444", "#c0392b", "#e67e22", "#b7950b", "#27ae60", "#2980b9", "#8e44ad", "#16a085", "#d63384", "#6d4c41"];

/// A chart of some points.
pub(crate) struct Chart<'a> {
    pub(crate) title: &'a str,
    /// The name of the horizontal axis.
    pub(crate) axis: &'a str,
    /// The meaning of the heights, if the title does not say it.
    pub(crate) height: &'a str,
    /// True if the vertical axis is logarithmic. Otherwise it begins with 0.
    pub(crate) logarithmic: bool,
    /// The series, the place on the axis and the height of each point. The points of a series are in the order of its
    /// line.
    pub(crate) points: Vec<(&'a str, f64, f64)>,
    /// Marks of the horizontal axis.
    pub(crate) marks: Vec<(f64, String)>,
    /// Series that have the first colours, in this order, even if this chart does not contain all of them.
    pub(crate) palette: &'a [&'a str],
    /// Values of the paper: dashed lines at these heights, for series that are shown.
    pub(crate) paper: &'a [(&'a str, f64)],
}

/// A round number that is `top / 4` or a little more.
pub(crate) fn tick(top: f64) -> f64 {
    let scale = 10f64.powf((top / 4.0).log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().find(|step| step * scale * 4.0 >= top);
    step.unwrap_or(10.0) * scale
}

/// Round numbers from 0 to the highest number or a little more.
pub(crate) fn linear(top: f64) -> Vec<f64> {
    (0..=4).map(|i| tick(top) * f64::from(i)).collect()
}

/// Round numbers from the lowest to the highest number or a little beyond, for a logarithmic axis.
fn logarithmic(lowest: f64, highest: f64) -> Vec<f64> {
    let round = (-9..12).flat_map(|power| [1.0, 2.0, 5.0].map(|step: f64| step * 10f64.powi(power)));
    let all: Vec<f64> = round.collect();
    let first = all.iter().rposition(|mark| *mark <= lowest).unwrap_or(0);
    let last = all.iter().position(|mark| *mark >= highest).unwrap_or(all.len() - 1).max(first + 1);
    all[first..=last].to_vec()
}

impl Chart<'_> {
    /// Marks of the vertical axis.
    fn ticks(&self) -> Vec<f64> {
        let heights = || self.points.iter().map(|point| point.2).chain(self.paper.iter().map(|&(_, level)| level));
        let top = heights().fold(f64::MIN_POSITIVE, f64::max);
        if self.logarithmic { logarithmic(heights().fold(top, f64::min), top) } else { linear(top) }
    }

    /// The chart as a file.
    pub(crate) fn svg(&self) -> String {
        let ticks = self.ticks();
        let place = |value: f64| if self.logarithmic { value.log10() } else { value };
        let (low, high) = (place(ticks[0]), place(ticks[ticks.len() - 1]));
        let first = self.points.iter().map(|point| point.1).fold(f64::INFINITY, f64::min);
        let last = self.points.iter().map(|point| point.1).fold(first, f64::max);
        let span = if last > first { last - first } else { 1.0 };
        let x = |at: f64| LEFT + (at - first) / span * (WIDTH - LEFT - RIGHT);
        let y = |value: f64| HEIGHT - BOTTOM - (place(value) - low) / (high - low) * (HEIGHT - TOP - BOTTOM);
        let mut svg = frame(self.title, self.axis, self.height, &ticks, y);
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
        let colour = |name: &str| {
            let fixed = self.palette.iter().position(|other| *other == name);
            let free = || series.iter().position(|other| *other == name).map(|i| self.palette.len() + i);
            COLOURS[fixed.or_else(free).unwrap_or_default() % COLOURS.len()]
        };
        for (i, name) in series.iter().enumerate() {
            let colour = colour(name);
            let points: Vec<_> =
                self.points.iter().filter(|point| point.0 == *name).map(|point| (x(point.1), y(point.2))).collect();
            let line: Vec<_> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
            let line = line.join(" ");
            let _ = writeln!(svg, "<polyline points=\"{line}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>");
            for (x, y) in points.iter().filter(|_| points.len() < 6) {
                let _ = writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"{colour}\"/>");
            }
            let (x, y) = (WIDTH - RIGHT + 10.0, TOP + 18.0 * (i as f64 + 0.5));
            let _ = writeln!(svg, "<text x=\"{x}\" y=\"{y:.1}\" fill=\"{colour}\">{name}</text>");
        }
        for &(name, level) in self.paper {
            if series.contains(&name) {
                svg += &paper_level(name, colour(name), level, y(level));
            }
        }
        svg + "</svg>\n"
    }
}

/// The beginning of a chart: the title, the horizontal lines and the names of the axes.
pub(crate) fn frame(title: &str, axis: &str, height: &str, ticks: &[f64], y: impl Fn(f64) -> f64) -> String {
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"20\" font-size=\"14\">{title}</text>\n"
    );
    for &mark in ticks {
        let (y, right) = (y(mark), WIDTH - RIGHT);
        let _ = writeln!(svg, "<path d=\"M{LEFT} {y:.1}H{right}\" stroke=\"#dddddd\"/>");
        let text = short(mark);
        let _ = writeln!(svg, "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{text}</text>", LEFT - 6.0, y + 4.0);
    }
    if !height.is_empty() {
        let middle = (TOP + HEIGHT - BOTTOM) / 2.0;
        let _ = writeln!(
            svg,
            "<text transform=\"translate(14 {middle}) rotate(-90)\" text-anchor=\"middle\">{height}</text>"
        );
    }
    let (middle, foot) = ((LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 10.0);
    let _ = writeln!(svg, "<text x=\"{middle}\" y=\"{foot}\" text-anchor=\"middle\">{axis}</text>");
    svg
}

/// A number in the form of a mark.
fn short(mark: f64) -> String {
    match mark {
        1e6.. => format!("{}M", mark / 1e6),
        1e4.. => format!("{}k", mark / 1e3),
        _ => ((mark * 1e6).round() / 1e6).to_string(),
    }
}

/// A dashed line across the chart, with a name.
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
        assert_eq!([0.25, 9_000.0, 10_000.0, 2_500_000.0].map(short), ["0.25", "9000", "10k", "2.5M"]);
        for (top, step) in [(4.0, 1.0), (7.9, 2.0), (33.0, 10.0), (0.9, 0.25), (95.0, 25.0)] {
            assert!((tick(top) - step).abs() < 1e-9, "{top}: {}", tick(top));
        }
    }

    #[test]
    fn a_logarithmic_axis_begins_and_ends_with_round_numbers() {
        assert_eq!(logarithmic(3.5, 320.0), [2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0]);
        assert_eq!(logarithmic(1.0, 1.0), [1.0, 2.0]);
        let (points, marks) = (vec![("a", 0.0, 1.0), ("a", 1.0, 100.0), ("a", 2.0, 10.0)], Vec::new());
        let chart = Chart {
            title: "",
            axis: "",
            height: "bytes",
            logarithmic: true,
            points,
            marks,
            palette: &["b", "a"],
            paper: &[],
        };
        let svg = chart.svg();
        assert!(svg.contains(COLOURS[1]) && !svg.contains(COLOURS[0]), "{svg}");
        assert!(svg.contains("cy=\"356.0\"") && svg.contains("cy=\"196.0\"") && svg.contains("cy=\"36.0\""), "{svg}");
        assert!(svg.contains(">bytes<"), "{svg}");
    }

    #[test]
    fn a_series_of_one_point_is_seen_too() {
        let (points, marks) = (vec![("plain", 3.0, 4.02)], vec![(3.0, "1000".to_owned())]);
        let paper: &[_] = &[("plain", 4.02), ("for", 1.26)];
        let chart =
            Chart { title: "Size", axis: "keys", height: "", logarithmic: false, points, marks, palette: &[], paper };
        let svg = chart.svg();
        assert!(svg.contains("<circle") && svg.contains("paper: plain") && !svg.contains("paper: for"));
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}

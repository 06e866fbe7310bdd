//! SVG bar charts.

use crate::chart::{BOTTOM, COLOURS, HEIGHT, LEFT, RIGHT, TOP, WIDTH, frame, linear};
use std::fmt::Write;

/// A bar of a chart, with one part or several parts on top of each other.
pub(crate) struct Bar {
    pub(crate) name: String,
    pub(crate) parts: Vec<f64>,
    /// The value from the paper, drawn as a dashed line across the bar.
    pub(crate) claimed: Option<f64>,
}

/// A bar chart.
pub(crate) struct Bars {
    pub(crate) title: String,
    /// The meaning of the heights, if the title does not say it.
    pub(crate) height: String,
    /// The names of the parts of the bars, from the bottom up. Empty if bars have one part.
    pub(crate) parts: Vec<String>,
    pub(crate) bars: Vec<Bar>,
}

/// Adds a text. `anchor` says which point of the text is at `place`.
fn text(svg: &mut String, place: (f64, f64), anchor: &str, fill: &str, text: &str) {
    let (x, y) = place;
    let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"{fill}\">{text}</text>");
}

impl Bars {
    /// The chart as a file.
    pub(crate) fn svg(&self) -> String {
        let whole = |bar: &Bar| bar.parts.iter().sum::<f64>().max(bar.claimed.unwrap_or(0.0));
        let ticks = linear(self.bars.iter().map(whole).fold(f64::MIN_POSITIVE, f64::max));
        let y = |value: f64| HEIGHT - BOTTOM - value / ticks[ticks.len() - 1] * (HEIGHT - TOP - BOTTOM);
        let mut svg = frame(&self.title, "", &self.height, &ticks, y);
        let room = (WIDTH - LEFT - RIGHT) / self.bars.len().max(1) as f64;
        for (i, bar) in self.bars.iter().enumerate() {
            let x = LEFT + room * (i as f64 + 0.15);
            let mut foot = 0.0;
            for (part, height) in bar.parts.iter().enumerate() {
                let colour = COLOURS[if self.parts.is_empty() { i } else { part } % COLOURS.len()];
                let (top, tall, wide) = (y(foot + height), y(foot) - y(foot + height), room * 0.7);
                let _ = writeln!(
                    svg,
                    "<rect x=\"{x:.1}\" y=\"{top:.1}\" width=\"{wide:.1}\" height=\"{tall:.1}\" fill=\"{colour}\"/>"
                );
                foot += height;
            }
            if let Some(claimed) = bar.claimed {
                let (y, from, to) = (y(claimed), x - room * 0.1, x + room * 0.8);
                let dashes = "stroke=\"black\" stroke-width=\"2\" stroke-dasharray=\"4 2\"";
                let _ = writeln!(svg, "<path d=\"M{from:.1} {y:.1}H{to:.1}\" {dashes}/>");
            }
            // The names of neighbours are on two lines, so that they do not overlap.
            let line = HEIGHT - BOTTOM + if i % 2 == 0 { 14.0 } else { 28.0 };
            text(&mut svg, (x + room * 0.35, line), "middle", "black", &bar.name);
        }
        let beside = WIDTH - RIGHT + 10.0;
        for (i, part) in self.parts.iter().enumerate() {
            text(&mut svg, (beside, TOP + 18.0 * (i as f64 + 0.5)), "start", COLOURS[i % COLOURS.len()], part);
        }
        if self.bars.iter().any(|bar| bar.claimed.is_some()) {
            text(&mut svg, (beside, HEIGHT - BOTTOM), "start", "black", "- - the paper's");
        }
        svg + "</svg>\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_bar_are_on_top_of_each_other() {
        let bar = |parts: &[f64], claimed| Bar { name: "b".to_owned(), parts: parts.to_vec(), claimed };
        let parts = vec!["lower".to_owned(), "upper".to_owned()];
        let bars = Bars {
            title: String::new(),
            height: String::new(),
            parts,
            bars: vec![bar(&[1.0, 3.0], None), bar(&[2.0], Some(4.0))],
        };
        let svg = bars.svg();
        assert!(svg.contains("y=\"276.0\" width=\"157.5\" height=\"80.0\""), "{svg}");
        assert!(svg.contains("y=\"36.0\" width=\"157.5\" height=\"240.0\""), "{svg}");
        assert!(svg.contains("the paper's"), "{svg}");
    }
}

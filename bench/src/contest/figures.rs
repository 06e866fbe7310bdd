//! The figures of a run, by name.

use crate::Result;
use crate::numbers::{index, rounded, whole};
use crate::stats::median;
use serde_json::{Map, Number, Value};
use std::collections::BTreeMap;

/// Figures by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures(BTreeMap<String, f64>);

impl Figures {
    /// Sets a figure.
    pub(crate) fn set(&mut self, name: impl Into<String>, value: f64) {
        self.0.insert(name.into(), value);
    }

    /// A figure.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.0.get(name).copied()
    }

    /// For each name the median of several runs.
    pub(crate) fn median(runs: &[Figures]) -> Figures {
        let mut all: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for (name, value) in runs.iter().flat_map(|run| &run.0) {
            all.entry(name.clone()).or_default().push(*value);
        }
        Figures(all.into_iter().map(|(name, values)| (name, median(values))).collect())
    }

    /// Each figure divided by the same figure of the other.
    pub(crate) fn over(&self, other: &Figures) -> Figures {
        let shared = self.0.iter().filter_map(|(name, ours)| Some((name, *ours, other.get(name)?)));
        Figures(
            shared
                .filter(|(.., theirs)| *theirs > 0.0)
                .map(|(name, ours, theirs)| (name.clone(), ours / theirs))
                .collect(),
        )
    }

    /// As a JSON object; whole numbers stay whole.
    pub(crate) fn to_json(&self) -> Value {
        let number = |value: f64| match value {
            whole if whole.fract() == 0.0 && whole.abs() < 1e15 => Some(Number::from(rounded(whole))),
            value => Number::from_f64((value * 1000.0).round() / 1000.0),
        };
        let entries =
            self.0.iter().map(|(name, value)| (name.clone(), number(*value).map_or(Value::Null, Value::Number)));
        Value::Object(entries.collect::<Map<_, _>>())
    }

    /// The inverse of [`Figures::to_json`].
    pub(crate) fn from_json(json: &Value) -> Result<Figures> {
        let entries = json.as_object().ok_or("figures are an object")?;
        let number = |(name, value): (&String, &Value)| {
            value.as_f64().map(|value| (name.clone(), value)).ok_or_else(|| format!("{name} is no number").into())
        };
        Ok(Figures(entries.iter().map(number).collect::<Result<_>>()?))
    }
}

/// The quantile of sorted numbers: the number below which a fraction of them is.
pub(crate) fn quantile(sorted: &[f64], fraction: f64) -> f64 {
    let rank = index(whole((sorted.len() as f64 * fraction).ceil()));
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(values: &[(&str, f64)]) -> Figures {
        Figures(values.iter().map(|(name, value)| (name.to_string(), *value)).collect())
    }

    #[test]
    fn medians_and_ratios_are_taken_name_by_name() {
        let runs = [figures(&[("a", 1.0), ("b", 9.0)]), figures(&[("a", 5.0)]), figures(&[("a", 2.0), ("b", 10.0)])];
        let median = Figures::median(&runs);
        assert_eq!(median, figures(&[("a", 2.0), ("b", 9.5)]));
        assert_eq!(median.over(&figures(&[("a", 4.0), ("b", 0.0), ("c", 1.0)])), figures(&[("a", 0.5)]));
        assert_eq!(Figures::from_json(&median.to_json()).unwrap(), median);
    }

    #[test]
    fn quantiles_are_found_by_rank() {
        let numbers: Vec<f64> = (1..=1000).map(f64::from).collect();
        assert_eq!([0.5, 0.99, 0.999, 1.0].map(|f| quantile(&numbers, f)), [500.0, 990.0, 999.0, 1000.0]);
        assert_eq!(quantile(&[], 0.5), 0.0);
    }
}

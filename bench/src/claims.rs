//! The form of a claim of a paper, and the test that compares it with results.

use crate::page::Finding;
use serde_json::Value;
use std::collections::BTreeMap;

/// The results of runs, each an object.
pub(crate) type Results<R> = BTreeMap<R, Value>;

/// A value that is computed from the result of a run.
pub(crate) trait Measure<R>: Copy {
    /// Returns the value for a run, if the run was measured.
    fn of(self, run: &R, results: &Results<R>) -> Option<f64>;
}

/// A number that is computed from the results.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Number<M, R> {
    /// The measure of one run.
    One(M, R),
    /// The quotient of the first run's measure and the second run's.
    Ratio(M, R, R),
    /// A number that needs no run.
    Value(f64),
}

impl<R, M: Measure<R>> Number<M, R> {
    /// Returns the number if its runs were measured.
    pub(crate) fn of(&self, results: &Results<R>) -> Option<f64> {
        match self {
            Number::One(measure, run) => measure.of(run, results),
            Number::Ratio(measure, run, to) => Some(measure.of(run, results)? / measure.of(to, results)?),
            Number::Value(value) => Some(*value),
        }
        .filter(|number| number.is_finite())
    }

    /// Returns the runs that the number needs.
    pub(crate) fn runs(&self) -> Vec<&R> {
        match self {
            Number::One(_, run) => vec![run],
            Number::Ratio(_, run, to) => vec![run, to],
            Number::Value(_) => Vec::new(),
        }
    }
}

/// A statement of a paper, as a question about the results.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Asked<M, R> {
    /// The number is within a quarter of this value.
    About(Number<M, R>, f64),
    /// The number is at most a twentieth above this value.
    Most(Number<M, R>, f64),
    /// The number is at most a twentieth below this value.
    Least(Number<M, R>, f64),
    /// The number differs from this value by at most so much.
    Within(Number<M, R>, f64, f64),
    /// The first number is nearer to 1 than the second.
    Nearer(Number<M, R>, Number<M, R>),
    /// The first number is greater than the second.
    Greater(Number<M, R>, Number<M, R>),
}

impl<M, R> Asked<M, R> {
    /// Returns the numbers that the question is about.
    fn numbers(&self) -> Vec<&Number<M, R>> {
        match self {
            Asked::About(number, _) | Asked::Most(number, _) | Asked::Least(number, _) | Asked::Within(number, ..) => {
                vec![number]
            }
            Asked::Nearer(number, than) | Asked::Greater(number, than) => vec![number, than],
        }
    }

    /// Returns the runs that the question needs.
    pub(crate) fn runs(&self) -> Vec<&R>
    where
        M: Measure<R>,
    {
        self.numbers().into_iter().flat_map(Number::runs).collect()
    }
}

/// A claim: in text, and as a question.
pub(crate) struct Claim<M, R> {
    pub(crate) says: &'static str,
    pub(crate) asked: Asked<M, R>,
}

/// Answers a question from the results.
pub(crate) fn ask<R, M: Measure<R>>(asked: &Asked<M, R>, results: &Results<R>) -> Finding {
    let one = |number: &Number<M, R>, words: String, agrees: &dyn Fn(f64) -> bool| {
        number.of(results).map(|ours| (format!("{ours:.2} ({words})"), agrees(ours)))
    };
    let two = |number: &Number<M, R>, than: &Number<M, R>, agrees: &dyn Fn(f64, f64) -> bool| {
        let both = number.of(results).zip(than.of(results));
        both.map(|(ours, other)| (format!("{ours:.2}, and {other:.2}"), agrees(ours, other)))
    };
    let found = match asked {
        Asked::About(number, paper) => {
            one(number, format!("paper {paper}"), &|ours| (ours - paper).abs() <= 0.25 * paper)
        }
        Asked::Most(number, paper) => one(number, format!("at most {paper}"), &|ours| ours <= 1.05 * paper),
        Asked::Least(number, paper) => one(number, format!("at least {paper}"), &|ours| ours >= 0.95 * paper),
        Asked::Within(number, paper, by) => {
            one(number, format!("paper {paper}, within {by}"), &|ours| (ours - paper).abs() <= *by)
        }
        Asked::Nearer(number, than) => {
            let far = |ratio: f64| ratio.ln().abs();
            two(number, than, &|ours, other| far(ours) < far(other))
        }
        Asked::Greater(number, than) => two(number, than, &|ours, other| ours > other),
    };
    match found {
        Some((ours, agrees)) => Finding { ours, agrees: Some(agrees) },
        None => Finding { ours: "not measured".to_owned(), agrees: None },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[derive(Clone, Copy)]
    struct Total;

    impl Measure<u8> for Total {
        fn of(self, run: &u8, results: &Results<u8>) -> Option<f64> {
            results.get(run)?["total"].as_f64()
        }
    }

    #[test]
    fn claims_are_borne_out_or_not() {
        let results: Results<u8> = (1..).zip([40.0, 80.0, 30.0]).map(|(run, t)| (run, json!({ "total": t }))).collect();
        let (one, ratio) = (|run| Number::One(Total, run), |run, to| Number::Ratio(Total, run, to));
        let agrees = |asked| ask(&asked, &results).agrees;
        assert_eq!([32.0, 31.0].map(|paper| agrees(Asked::About(one(1), paper))), [Some(true), Some(false)]);
        assert_eq!([38.5, 38.0].map(|paper| agrees(Asked::Most(one(1), paper))), [Some(true), Some(false)]);
        assert_eq!([42.0, 43.0].map(|paper| agrees(Asked::Least(one(1), paper))), [Some(true), Some(false)]);
        assert_eq!([48.0, 49.0].map(|paper| agrees(Asked::Within(one(1), paper, 8.0))), [Some(true), Some(false)]);
        let (far, near) = (ratio(1, 2), ratio(3, 1));
        assert_eq!(agrees(Asked::Nearer(near, far)), Some(true));
        assert_eq!(agrees(Asked::Nearer(far, near)), Some(false));
        assert_eq!(agrees(Asked::Greater(near, far)), Some(true));
        assert_eq!(agrees(Asked::Greater(far, near)), Some(false));
        assert_eq!(agrees(Asked::Nearer(far, ratio(3, 4))), None);
        assert_eq!(ask(&Asked::About(one(2), 81.0), &results).ours, "80.00 (paper 81)");
        assert_eq!(Asked::Nearer(far, near).runs(), [&1, &2, &3, &1]);
    }
}

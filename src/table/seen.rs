//! What a column of a table is like: numbers or texts, steps, time stamps, repetitions, measured values.

use std::collections::BTreeSet;

use super::ColumnSample;
use super::cell::is_missing;
use super::names::Reading;

/// Words of columns that number repetitions.
const REPEATS: &[&str] = &[
    "run",
    "rep",
    "reps",
    "repeat",
    "repetition",
    "repetition_index",
    "trial",
    "iter",
    "iters",
    "iteration",
    "iterations",
    "iteration_count",
    "sample",
    "samples",
    "seed",
    "fold",
    "attempt",
    "index",
    "idx",
    "id",
    "row",
    "cnt",
    "count",
    "block",
    "order",
    "visit",
    "pid",
    "wrong",
    "unnamed_0",
    "warmup",
    "outlier",
    "disturbed",
    "witness",
    "others",
    "status",
    "in",
    "out",
];
/// Words in the name of the column that best represents several similar columns, and words of columns that represent them less well.
pub(super) const TYPICAL: &[&str] = &["avg", "average", "mean", "typical"];
pub(super) const EXTREME: &[&str] = &[
    "min",
    "max",
    "peak",
    "best",
    "worst",
    "p50",
    "p90",
    "p95",
    "p99",
    "p75",
    "p10",
    "p20",
    "p80",
    "p25",
    "percentile",
    "first",
    "last",
    "median",
    "low",
    "high",
];

impl ColumnSample {
    /// Whether most cells that hold anything hold a number.
    pub(super) fn is_numeric(&self) -> bool {
        let held = self.texts.iter().filter(|text| !is_missing(text)).count();
        let numbers = self.numbers.iter().filter(|number| number.is_finite()).count();
        numbers > 0 && 2 * numbers >= held
    }

    pub(super) fn distinct(&self) -> usize {
        self.texts.iter().collect::<BTreeSet<_>>().len()
    }

    pub(super) fn varies(&self) -> bool {
        let mut numbers = self.numbers.iter().filter(|number| number.is_finite());
        numbers.next().is_some_and(|first| numbers.any(|number| number != first))
    }

    pub(super) fn is_whole(&self) -> bool {
        self.numbers.iter().filter(|number| number.is_finite()).all(|number| number.fract() == 0.0 && *number >= 0.0)
    }

    pub(super) fn is_sorted(&self) -> bool {
        self.numbers.is_sorted_by(|a, b| a <= b)
    }

    /// Seconds or milliseconds since 1970, in the order of the rows.
    pub(super) fn is_time_stamp(&self) -> bool {
        let plain = plain(&self.name);
        let named = ["timestamp", "wall_time", "wall time", "date", "started", "_timestamp"]
            .iter()
            .any(|word| plain.contains(word));
        let known = self.numbers.iter().filter(|number| number.is_finite());
        let since_1970 = |number: &f64| {
            (1e9..1e10).contains(number) || (1e12..1e13).contains(number) || (1e18..1e19).contains(number)
        };
        named && self.is_sorted() && self.varies() || known.clone().all(since_1970) && known.count() > 0
    }

    /// Whether it holds the numbers of a column of texts.
    pub(super) fn is_derived(&self) -> bool {
        self.name.ends_with(" (number)")
    }

    /// Whether its name says that it was measured, or computed from measured values.
    pub(super) fn is_value(&self) -> bool {
        if self.is_derived() {
            return false;
        }
        let reading = Reading::of(&self.name);
        let statistic = |word: &str| TYPICAL.contains(&word) || EXTREME.contains(&word);
        reading.kind.is_some()
            || reading.is_time()
            || reading.is_scatter()
            || self.is_share()
            || reading.stem.split('_').any(statistic)
    }

    /// Whether it is in percent of something.
    pub(super) fn is_share(&self) -> bool {
        self.name.contains('%')
    }

    pub(super) fn is_repeat(&self) -> bool {
        let plain = plain(&self.name);
        REPEATS.contains(&plain.trim_start_matches(['n', '_', '#'])) || REPEATS.contains(&&plain[..])
    }
}

pub(super) fn plain(name: &str) -> String {
    let plain = name.trim_matches(|letter: char| letter == '#' || letter.is_whitespace()).to_lowercase();
    plain.replace([' ', '-', '.', ':'], "_")
}

//! The meaning of a column's name: a time or a rate, and its unit.

use super::units::{TimeOrRate, UNITS, Unit};
use crate::foreign;

/// Any item per second.
const PER_SECOND: &[&str] = &["_per_s", "_per_sec", "_per_second"];
/// Names of rates without a unit.
const RATES: &[&str] = &[
    "throughput",
    "bandwidth",
    "busbw",
    "algbw",
    "bw",
    "rate",
    "msgrate",
    "perf",
    "performance",
    "speed",
    "speedup",
    "flops",
    "flop_s",
    "tops",
    "gops",
    "mops",
    "kops",
    "ops",
    "iops",
    "nps",
    "ts",
    "mfu",
    "hfu",
    "goodput",
    "hz",
    "mpps",
];
/// Rates of other things than work.
const NO_RATES: &[&str] = &["learning_rate", "error_rate", "hit_rate", "miss_rate", "sampling_rate", "acceptance_rate"];
/// Libraries and languages of kernels.
const PROVIDERS: &[&str] = &[
    "cublas",
    "cublaslt",
    "cudnn",
    "cutlass",
    "rocblas",
    "hipblaslt",
    "triton",
    "torch",
    "pytorch",
    "naive",
    "flash",
    "fa2",
    "fa3",
    "cute",
    "tilelang",
    "liger",
    "apex",
    "xformers",
    "jax",
];
/// Words in the names of times that are not usual names of a step time.
const TIMES: &[&str] = &["time", "latency", "duration", "elapsed", "runtime", "walltime", "ttft", "tpot", "itl"];
/// Words in the names of columns that describe the scatter of others, or compare them.
const SCATTER: &[&str] = &[
    "std",
    "stddev",
    "stdev",
    "sd",
    "sem",
    "stderr",
    "var",
    "variance",
    "cv",
    "error",
    "err",
    "ratio",
    "spread",
    "ci",
    "ci95",
    "iqr",
    "mad",
    "allocated",
    "deviation",
    "speedup",
    "relative",
    "delta",
    "diff",
    "difference",
    "change",
    "improvement",
    "gain",
    "percent",
    "pct",
];

/// Words in the names of columns that hold what a model says.
const FORECASTS: &[&str] = &["forecast", "predicted", "prediction"];

/// The name of a column, read.
#[derive(Debug, PartialEq)]
pub struct Reading {
    /// In lower case, with `_` for all that is no letter or digit, and without the unit.
    pub stem: String,
    /// Empty where the name has none.
    pub unit: String,
    /// `None` where the name says nothing.
    pub kind: Option<TimeOrRate>,
}

impl Reading {
    /// Reads the whole name, without the prefix of W&B (`run - name`). If that says nothing, reads the text in its brackets, then the text before
    /// them, then its first word: `TFLOPS (cuBLAS)`.
    pub fn of(name: &str) -> Self {
        if let Some((_, name)) = name.rsplit_once(" - ") {
            let named = Self::of(name);
            if named.kind.is_some() || named.may_be(TimeOrRate::Time) {
                return named;
            }
        }
        let whole = Self::of_part(name);
        if whole.kind.is_some() {
            return whole;
        }
        let plain = whole.stem.clone();
        let brackets = brackets(name);
        let outside = brackets.map(|(before, _)| before);
        let front = plain.split('_').next().filter(|front| front.len() > 1 && plain.len() > front.len());
        let front = front.filter(|_| !whole.may_be(TimeOrRate::Time));
        let apart = apart(name);
        let parts = [brackets.map(|(_, inside)| inside), outside, front, Some(&apart[..])];
        let found = parts.into_iter().flatten().map(Self::of_part).find(|part| part.kind.is_some());
        let stem = outside.map_or(whole.stem, plain_of);
        match found {
            Some(part) => Self { stem, ..part },
            None => Self { stem, ..whole },
        }
    }

    fn of_part(name: &str) -> Self {
        let plain = plain_of(name);
        // `Gbps` and `Gb/s` mean bits to those who write the letters with care.
        if name.contains("Gb/s") || name.contains("Gbps") {
            return Self { stem: plain, unit: "Gbit/s".into(), kind: Some(TimeOrRate::Rate) };
        }
        let ends = |(_, ending): &(&'static Unit, &&str)| {
            plain == **ending || plain.strip_suffix(**ending).is_some_and(|stem| stem.ends_with('_'))
        };
        let endings = UNITS.iter().flat_map(|unit| unit.endings.iter().map(move |ending| (unit, ending)));
        // `images_s` ends in `s` as well.
        let unit = endings.filter(ends).max_by_key(|(_, ending)| ending.len());
        let slash = by_slash(name);
        let per_second = PER_SECOND.iter().find_map(|ending| plain.strip_suffix(ending));
        match (unit, slash, per_second) {
            (Some((unit, ending)), slash, _)
                if unit.kind == TimeOrRate::Rate
                    || (per_second.is_none() && !matches!(slash, Some((_, TimeOrRate::Rate)))) =>
            {
                let stem = plain[..plain.len() - ending.len()].trim_matches('_').to_string();
                // A column that is called `seconds` is the time itself.
                let stem = if stem.is_empty() { plain.clone() } else { stem };
                Self { stem, unit: unit.name.to_string(), kind: Some(unit.kind) }
            }
            (_, Some((unit, kind)), _) => Self { stem: plain, unit, kind: Some(kind) },
            (_, _, Some(items)) => {
                let item = items.rsplit('_').next().unwrap_or(items);
                let unit = foreign::name(&format!("{item}/s"));
                Self { stem: items.to_string(), unit, kind: Some(TimeOrRate::Rate) }
            }
            _ => {
                let is_time = says(&plain, TIMES);
                let is_other = says(&plain, NO_RATES);
                let is_rate = !is_time && !is_other && says(&plain, RATES);
                Self { stem: plain, unit: String::new(), kind: is_rate.then_some(TimeOrRate::Rate) }
            }
        }
    }

    /// Whether the name is that of a kernel, which in a table of Triton's `perf_report` is the header of a rate.
    pub fn is_provider(&self) -> bool {
        says(&self.stem, PROVIDERS)
    }

    /// Whether it describes the scatter of another column.
    pub fn is_scatter(&self) -> bool {
        says(&self.stem, SCATTER)
    }

    /// Whether the values are forecast and not measured.
    pub fn is_forecast(&self) -> bool {
        says(&self.stem, FORECASTS)
    }

    /// Whether the name is a usual one of a time, or may mean one.
    pub fn is_time(&self) -> bool {
        self.may_be(TimeOrRate::Time) || STEP_TIMES.contains(&&self.stem[..])
    }

    /// Whether the name may mean the measured time or rate, although it is not a usual name.
    pub fn may_be(&self, kind: TimeOrRate) -> bool {
        let says = match (self.kind, kind) {
            (Some(said), wanted) => said == wanted,
            (None, TimeOrRate::Time) => says(&self.stem, TIMES),
            (None, TimeOrRate::Rate) => false,
        };
        says && !self.is_scatter()
    }
}

/// Whether one of the `words` is among those of `stem`, or several of them in a row.
pub(super) fn says(stem: &str, words: &[&str]) -> bool {
    words.iter().any(|word| format!("_{stem}_").contains(&format!("_{word}_")))
}

/// The unit by a slash, or the word `per`, between what is counted and what for: of a rate `t/s`, `Mops/sec`, `ops/ms`; of a time `ms/op`, `s/it`,
/// and of physics `time/s`.
fn by_slash(name: &str) -> Option<(String, TimeOrRate)> {
    let name = brackets(name).map_or(name, |(_, inside)| inside).trim();
    let (above, below) = name.rsplit_once('/').or_else(|| name.rsplit_once(" per "))?;
    let above = above.trim().rsplit([' ', '_', '(', '[']).next().unwrap_or(above);
    let time = |word: &str| {
        let word = word.trim().to_lowercase();
        let is_own = |unit: &&Unit| unit.kind == TimeOrRate::Time && unit.endings.contains(&&word[..]);
        let unit = UNITS.iter().find(is_own).map(|unit| unit.name);
        if word == "second" { Some("s") } else { unit }
    };
    match (time(above), time(below)) {
        (_, Some(below)) if TIMES.contains(&&above.to_lowercase()[..]) || above == "t" && below != "s" => {
            Some((below.to_string(), TimeOrRate::Time))
        }
        (_, Some(below)) if !above.is_empty() => Some((foreign::name(&format!("{above}/{below}")), TimeOrRate::Rate)),
        (Some(above), None) => Some((above.to_string(), TimeOrRate::Time)),
        _ => None,
    }
}

/// What stands before the last pair of brackets of a name, and in it.
pub(super) fn brackets(name: &str) -> Option<(&str, &str)> {
    let name = name.trim();
    let inside = name.strip_suffix([')', ']'])?;
    let at = inside.rfind(['(', '['])?;
    Some((&inside[..at], &inside[at + 1..]))
}

pub(super) fn plain_of(name: &str) -> String {
    let letters = name.to_lowercase();
    letters
        .split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join("_")
}

/// `batchSize` and `SamplesPerSec` with blanks between their words.
pub(super) fn apart(name: &str) -> String {
    let mut apart = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && apart.ends_with(char::is_lowercase) {
            apart.push(' ');
        }
        apart.push(letter);
    }
    apart
}

/// Names of the time under which others write it, in order of preference.
pub(super) const STEP_TIMES: &[&str] = &[
    "step_time",
    "time",
    "batch_time",
    "iteration_time",
    "iter_time",
    "train_time",
    "latency",
    "duration",
    "elapsed",
    "wall_time",
    "real",
    "seconds",
    "mean",
    "median",
];

#[cfg(test)]
mod tests {
    use super::super::units::unit;
    use super::*;

    fn read(name: &str) -> (String, String, Option<TimeOrRate>) {
        let Reading { stem, unit, kind } = Reading::of(name);
        (stem, unit, kind)
    }

    #[test]
    fn times_are_read_with_their_units() {
        for (name, stem, unit) in [
            ("Time (ms)", "time", "ms"),
            ("latency_us", "latency", "us"),
            ("seconds", "seconds", "s"),
            ("step_time_s", "step_time", "s"),
            ("elapsed [ns]", "elapsed", "ns"),
        ] {
            assert_eq!(read(name), (stem.to_string(), unit.to_string(), Some(TimeOrRate::Time)), "{name}");
        }
        assert_eq!(read("time"), ("time".to_string(), String::new(), None));
    }

    #[test]
    fn a_forecast_says_so_in_its_name() {
        let forecasts = ["forecast_time_s", "Predicted time (ms)", "step_time_s", "broadcast_ms"]
            .map(|name| Reading::of(name).is_forecast());
        assert_eq!(forecasts, [true, true, false, false]);
    }

    #[test]
    fn rates_are_read_with_their_units() {
        for (name, unit) in [
            ("gbps", "GB/s"),
            ("GB/s", "GB/s"),
            ("Bandwidth (GB/s)", "GB/s"),
            ("Throughput [Gb/s]", "Gbit/s"),
            ("triton_tflops", "TFLOP/s"),
            ("TFLOP/s", "TFLOP/s"),
            ("gflops", "GFLOP/s"),
            ("images_per_s", "images/s"),
            ("images/sec", "images/s"),
            ("tokens_per_second", "tokens/s"),
            ("walks_per_s", "walks/s"),
            ("tok/s", "tokens/s"),
            ("throughput", ""),
            ("bus_bandwidth", ""),
        ] {
            let found = Reading::of(name);
            assert_eq!((found.unit.as_str(), found.kind), (unit, Some(TimeOrRate::Rate)), "{name}");
        }
        assert_eq!(unit("GiB/s").map(|unit| (unit.base, unit.factor)), Some(("B/s", 1_073_741_824.0)));
    }
}

//! The size from which one series is faster than another: where their step times cross.
//!
//! The logarithm of the ratio of two medians is interpolated over the logarithm of the size, by the cubic through the four sizes around a change of
//! its sign. The last such change is the crossover: at all larger measured sizes the second series is faster. Its interval comes from a bootstrap of
//! the visits of every cell (Efron & Tibshirani 1993), in which a resample without a crossover counts as a crossover beyond the measured sizes. A few
//! visits resample to hardly anything but themselves, so that the interval is open above unless Student's t shows the order at the largest size, on
//! the ratios of the blocks and for all pairs together.
//!
//! The crossover for a whole training is another one, since the setup counts as well. It is computed for [`TRAINING_STEPS`] steps and the setup of
//! each cell, which is measured once; the interval covers only the steps.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Serialize;

use super::columns::FOLLOW_THE_ENGINE;
pub use super::setup::Setup;
use super::setup::setups;
use super::{Series, TimeOrRate};
use crate::error::Result;
use crate::random::Rng;
use crate::stats::bootstrap::percentiles;
use crate::stats::quantile::median;
use crate::stats::repetitions::paired_ratio;

const RESAMPLES: usize = 1000;
const CONFIDENCE: f64 = 0.95;
const SEED: u64 = 1;
/// The steps of a whole training: the full-batch epochs of the study that asked when a GPU pays.
pub const TRAINING_STEPS: usize = 2000;

/// Two series that differ only in the engine or only in the number of threads.
#[derive(Clone, Debug, PartialEq)]
pub struct Crossover {
    pub first: String,
    pub second: String,
    /// The larger of two times over the smaller at both ends, above 1 where the first is slower.
    pub ratio_at_smallest: f64,
    pub ratio_at_largest: f64,
    pub smallest: f64,
    pub largest: f64,
    /// `None` where one is the faster at all sizes.
    pub at: Option<Crossing>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Crossing {
    pub size: f64,
    /// The 95 % interval; `None`: beyond the sizes that were measured, or not known, as one of them was visited once. The high end is also `None` where the
    /// order at the largest size is not shown.
    pub low: Option<f64>,
    pub high: Option<f64>,
    /// How often the sign of the difference changes; above 1 the series cross back.
    pub crossings: usize,
}

impl Crossover {
    /// The series that is faster at the largest size.
    pub fn faster_at_largest(&self) -> &str {
        if self.ratio_at_largest > 1.0 { &self.second } else { &self.first }
    }
}

/// The crossovers of a run or file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Crossovers {
    pub steps: Vec<Crossover>,
    /// The crossovers of setup and [`TRAINING_STEPS`] steps; empty where the data contain no setup.
    pub trainings: Vec<Crossover>,
    /// For each series that has crossovers, its setup at the smallest and at the largest size.
    pub setups: Vec<SeriesSetup>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SeriesSetup {
    pub series: String,
    pub smallest: Setup,
    pub largest: Setup,
}

impl Crossovers {
    /// The crossovers of all pairs of `series` that share at least two sizes, with the setup times stored in `path`.
    ///
    /// # Errors
    /// As [`super::series`].
    pub fn of(path: &Path, series: &[&Series]) -> Result<Self> {
        let cells: Vec<VisitMedians> = series.iter().copied().map(VisitMedians::of).collect();
        let steps = pairs(series, &cells);
        if steps.is_empty() {
            return Ok(Self::default());
        }
        let known = setups(path)?;
        let own: Vec<Vec<Setup>> = series.iter().map(|series| setups_of(series, &known)).collect();
        let trained: Vec<VisitMedians> =
            series.iter().zip(&cells).zip(&own).map(|((s, c), own)| c.trained(s, own)).collect();
        let ends = |(series, own): (&&Series, &Vec<Setup>)| {
            let (smallest, largest) = (*own.first()?, *own.last()?);
            Some(SeriesSetup { series: series.label(), smallest, largest })
        };
        let setups = series.iter().zip(&own).filter_map(ends).collect();
        Ok(Self { trainings: pairs(series, &trained), steps, setups })
    }

    pub fn any(&self) -> bool {
        self.steps.iter().chain(&self.trainings).any(|pair| pair.at.is_some())
    }
}

/// By size.
fn setups_of(series: &Series, known: &BTreeMap<i64, Setup>) -> Vec<Setup> {
    let is_time = series.kind == TimeOrRate::Time && series.y == "step_time_s";
    let mut own: Vec<Setup> =
        series.cells.iter().filter(|_| is_time).filter_map(|cell| known.get(cell).copied()).collect();
    own.sort_by(|a, b| a.size.total_cmp(&b.size));
    own
}

/// The crossovers of all pairs of series that share at least two sizes.
fn pairs(series: &[&Series], cells: &[VisitMedians]) -> Vec<Crossover> {
    let all = (0..series.len()).flat_map(|first| (first + 1..series.len()).map(move |second| [first, second]));
    let alike: Vec<[usize; 2]> = all.filter(|[a, b]| differ_in_one(series[*a], series[*b])).collect();
    let of = |pair: &[usize; 2]| {
        let [first, second] = pair.map(|place| &cells[place]);
        crossover(pair.map(|place| series[place].label()), first, second, alike.len())
    };
    alike.iter().filter_map(of).collect()
}

/// Whether the groups differ only in the engine or only in the number of threads.
fn differ_in_one(first: &Series, second: &Series) -> bool {
    let names: BTreeSet<&str> = first.group.iter().chain(&second.group).map(|(name, _)| name.as_str()).collect();
    let value = |series: &Series, name: &str| {
        series.value(name).filter(|value| !["", "null"].contains(value)).map(str::to_owned)
    };
    let differs = |name: &&str| value(first, name).zip(value(second, name)).is_some_and(|(one, other)| one != other);
    let differing: Vec<&str> =
        names.into_iter().filter(|name| !FOLLOW_THE_ENGINE.contains(name)).filter(differs).collect();
    matches!(differing[..], ["engine"] | ["threads"])
}

/// For each size the medians of its visits by their block; of rates, the times of one unit of work.
struct VisitMedians(BTreeMap<u64, BTreeMap<i64, f64>>);

impl VisitMedians {
    fn of(series: &Series) -> Self {
        let mut sizes: BTreeMap<u64, BTreeMap<i64, Vec<f64>>> = BTreeMap::new();
        for seen in series.observations() {
            let time = if series.kind == TimeOrRate::Rate { seen.y.recip() } else { seen.y };
            // Sizes are above 0, so their bits are in their order.
            let visits = sizes.entry(seen.x.to_bits()).or_default();
            // Without blocks each value is a visit, and the n-th values of all sizes are a block.
            let block = seen.block.map_or(-1 - visits.len() as i64, i64::from);
            visits.entry(block).or_default().push(time);
        }
        let medians = |visits: BTreeMap<i64, Vec<f64>>| {
            visits.into_iter().map(|(block, mut times)| (block, median(&mut times))).collect()
        };
        Self(sizes.into_iter().map(|(size, visits)| (size, medians(visits))).collect())
    }

    /// The times of whole trainings with their setup, for the sizes whose setup is known. A setup is measured once and counts for every visit.
    fn trained(&self, series: &Series, setups: &[Setup]) -> Self {
        let seconds = series.seconds_per_unit().unwrap_or(1.0);
        let whole = |setup: &Setup| {
            let steps = self.0.get(&setup.size.to_bits())?;
            let of = |step: &f64| setup.seconds() + TRAINING_STEPS as f64 * step * seconds;
            Some((setup.size.to_bits(), steps.iter().map(|(block, step)| (*block, of(step))).collect()))
        };
        Self(setups.iter().filter_map(whole).collect())
    }
}

/// A size that both were measured at, with the times of their visits.
struct SharedSize {
    size: f64,
    first: Vec<f64>,
    second: Vec<f64>,
    /// The times of the first over those of the second, in the blocks that both have.
    ratios: Vec<f64>,
}

impl SharedSize {
    fn of(size: f64, first: &BTreeMap<i64, f64>, second: &BTreeMap<i64, f64>) -> Self {
        let ratios = first.iter().filter_map(|(block, time)| Some(time / second.get(block)?));
        let times = |visits: &BTreeMap<i64, f64>| visits.values().copied().collect();
        Self { size, first: times(first), second: times(second), ratios: ratios.collect() }
    }

    /// Whether one is shown to be faster, where `pairs` are judged together.
    fn is_decided(&self, pairs: usize) -> bool {
        let interval = paired_ratio(&self.ratios, 1.0 - (1.0 - CONFIDENCE) / pairs as f64);
        interval.is_some_and(|ratio| ratio.low > 1.0 || ratio.high < 1.0)
    }
}

/// A size and the logarithm of the ratio of the two times there.
#[derive(Clone, Copy, Debug)]
struct LogRatio {
    log_size: f64,
    log_ratio: f64,
}

fn crossover([first, second]: [String; 2], a: &VisitMedians, b: &VisitMedians, pairs: usize) -> Option<Crossover> {
    let shared: Vec<SharedSize> =
        a.0.iter()
            .filter_map(|(x, times)| Some(SharedSize::of(f64::from_bits(*x), times, b.0.get(x)?)))
            .filter(|shared| shared.size > 0.0)
            .collect();
    if shared.len() < 2 {
        return None;
    }
    let points = log_ratios(&shared, <[f64]>::to_vec);
    if points.iter().any(|point| !point.log_ratio.is_finite()) {
        return None;
    }
    let (smallest, largest) = (shared[0].size, shared[shared.len() - 1].size);
    let ratio = |point: &LogRatio| point.log_ratio.exp();
    let at = last_crossing(&points).map(|log_size| {
        let mut rng = Rng::new(SEED);
        let mut logs: Vec<f64> = (0..RESAMPLES).map(|_| resampled(&shared, &mut rng, &points)).collect();
        let (low, high) = percentiles(&mut logs, CONFIDENCE);
        // A single visit says nothing of how far the next one lies from it.
        let repeated = shared.iter().all(|at| at.first.len().min(at.second.len()) > 1);
        let inside = |log: f64| (repeated && log > smallest.ln() && log < largest.ln()).then(|| log.exp());
        let decided = shared.last().is_some_and(|at| at.is_decided(pairs));
        let crossings = points.windows(2).filter(|pair| changes(pair)).count();
        Crossing { size: log_size.exp(), low: inside(low), high: inside(high).filter(|_| decided), crossings }
    });
    Some(Crossover {
        first,
        second,
        ratio_at_smallest: points.first().map_or(1.0, ratio),
        ratio_at_largest: points.last().map_or(1.0, ratio),
        smallest,
        largest,
        at,
    })
}

/// The ratio at each size: of the medians of the times that `of` picks or draws.
fn log_ratios(shared: &[SharedSize], mut of: impl FnMut(&[f64]) -> Vec<f64>) -> Vec<LogRatio> {
    let mut middle = |times: &[f64]| median(&mut of(times));
    let point =
        |at: &SharedSize| LogRatio { log_size: at.size.ln(), log_ratio: (middle(&at.first) / middle(&at.second)).ln() };
    shared.iter().map(point).collect()
}

fn changes(pair: &[LogRatio]) -> bool {
    (pair[0].log_ratio > 0.0) != (pair[1].log_ratio > 0.0)
}

/// The logarithm of the last crossing of a resample; beyond the end at which the resample lies where it has none.
fn resampled(shared: &[SharedSize], rng: &mut Rng, points: &[LogRatio]) -> f64 {
    let sample = log_ratios(shared, |times| (0..times.len()).map(|_| times[rng.below(times.len())]).collect());
    let end = |point: Option<&LogRatio>| point.map_or(0.0, |point| point.log_ratio);
    let ends_alike = (end(sample.last()) > 0.0) == (end(points.last()) > 0.0);
    match last_crossing(&sample) {
        Some(log_size) if ends_alike => log_size,
        // The order at the largest size is open: the crossover may lie beyond it.
        _ if !ends_alike => f64::INFINITY,
        _ => f64::NEG_INFINITY,
    }
}

fn last_crossing(points: &[LogRatio]) -> Option<f64> {
    let place = points.windows(2).rposition(changes)?;
    Some(root(points, place))
}

/// Where the cubic through the four points around `place` and the next one is 0, by bisection between those two, which have different signs.
fn root(points: &[LogRatio], place: usize) -> f64 {
    let start = place.saturating_sub(1).min(points.len().saturating_sub(4));
    let near = &points[start..(start + 4).min(points.len())];
    let value = |x: f64| -> f64 {
        let term = |own: &LogRatio| {
            let others = near.iter().filter(|other| other.log_size != own.log_size);
            others
                .fold(own.log_ratio, |product, other| product * (x - other.log_size) / (own.log_size - other.log_size))
        };
        near.iter().map(term).sum()
    };
    let (mut low, mut high) = (points[place].log_size, points[place + 1].log_size);
    let below = points[place].log_ratio > 0.0;
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        *if (value(middle) > 0.0) == below { &mut low } else { &mut high } = middle;
    }
    0.5 * (low + high)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::detect::Observation;

    /// The crossovers of the steps, as for a file without setup.
    pub(crate) fn crossovers(series: &[Series]) -> Vec<Crossover> {
        pairs(&Vec::from_iter(series), &series.iter().map(VisitMedians::of).collect::<Vec<_>>())
    }

    const SIZES: [f64; 10] = [25.0, 100.0, 250.0, 1000.0, 2500.0, 5000.0, 10_000.0, 25_000.0, 100_000.0, 250_000.0];

    /// Six blocks of a step time of `fixed` seconds and `each` for an example, with 1 % of noise.
    pub(crate) fn series(engine: &str, fixed: f64, each: f64, seed: u64) -> Series {
        let mut rng = Rng::new(seed);
        let time = |_, x| (fixed + each * x) * (1.0 + 0.01 * rng.normal());
        Series::in_blocks(&[("engine", engine), ("device", engine)], 6, &SIZES, time)
    }

    /// Rates have the crossover of their times, and without blocks every value is a visit.
    #[test]
    fn rates_cross_where_their_times_do() {
        let all = [series("cpu", 1e-3, 1e-6, 1), series("cuda", 5e-3, 5e-7, 2)];
        let rates = all.clone().map(|mut one| {
            one.kind = TimeOrRate::Rate;
            let steps = one.measurements.iter_mut().map(|step| &mut step.observation);
            steps.for_each(|step| *step = Observation { y: step.x / step.y, block: None, ..*step });
            one
        });
        let (of_times, of_rates) = (crossovers(&all), crossovers(&rates));
        // A rate of examples over x: the times per example cross where those of steps do.
        let [time, rate] = [&of_times[0], &of_rates[0]];
        assert_eq!((time.faster_at_largest(), rate.faster_at_largest()), ("cuda, cuda", "cuda, cuda"));
        let [time, rate] = [time, rate].map(|one| one.at.expect("they cross"));
        assert!((time.size / rate.size - 1.0).abs() < 1e-9 && rate.low.is_some(), "{time:?} {rate:?}");
    }

    #[test]
    fn the_planted_crossover_is_found_and_its_interval_covers_it() {
        // 1 ms + 1 us x against 5 ms + 0.5 us x: equal at 8,000.
        let mut covered = 0;
        for seed in 0..40 {
            let found =
                crossovers(&[series("cpu", 1e-3, 1e-6, 2 * seed + 1), series("cuda", 5e-3, 5e-7, 2 * seed + 2)]);
            let place = found[0].at.expect("they cross");
            assert!((place.size / 8000.0 - 1.0).abs() < 0.08 && place.crossings == 1, "{place:?}");
            let (low, high) = (place.low.expect("inside"), place.high.expect("inside"));
            assert!(low < place.size && place.size < high && high / low < 1.2, "{place:?}");
            covered += usize::from(low <= 8000.0 && 8000.0 <= high);
            assert_eq!(found[0].faster_at_largest(), found[0].second);
        }
        // Binomial(40, 0.95): fewer than 32 has a probability of 3e-4; a bootstrap of six visits is a little too narrow.
        assert!(covered >= 32, "{covered} of 40");
    }

    #[test]
    fn setup_moves_the_crossover_of_a_training() {
        // 1 ms + 1 us x against 5 ms + 0.5 us x and 2 s of setup: with 2,000 steps 1 ms more for a step, equal at 10,000.
        let series = [series("cpu", 1e-3, 1e-6, 1), series("cuda", 5e-3, 5e-7, 2)];
        let setup =
            |seconds: f64| SIZES.map(|size| Setup { size, prepare_s: seconds, first_step_s: 0.0, step_s: 1e-3 });
        let trained = [0.0, 2.0].into_iter().zip(&series);
        let trained: Vec<VisitMedians> =
            trained.map(|(s, series)| VisitMedians::of(series).trained(series, &setup(s))).collect();
        let place = pairs(&series.each_ref(), &trained)[0].at.expect("they cross");
        assert!((place.size / 10_000.0 - 1.0).abs() < 0.08, "{place:?}");
    }

    #[test]
    fn series_that_do_not_cross_have_no_crossover() {
        let found = crossovers(&[series("cpu", 1e-3, 1e-6, 1), series("torch", 2e-3, 2e-6, 2)]);
        assert_eq!((found.len(), found[0].at), (1, None));
        assert!((found[0].ratio_at_largest - 0.5).abs() < 0.03 && found[0].faster_at_largest() == found[0].first);
    }

    #[test]
    fn a_size_that_was_visited_once_leaves_the_interval_open() {
        let mut pair = [series("cpu", 1e-3, 1e-6, 1), series("cuda", 5e-3, 5e-7, 2)];
        pair[1].measurements.retain(|m| m.observation.x != 25.0 || m.observation.block == Some(0));
        let place = crossovers(&pair)[0].at.expect("they cross");
        assert!((place.size / 8000.0 - 1.0).abs() < 0.08, "{place:?}");
        assert_eq!((place.low, place.high), (None, None));
    }

    #[test]
    fn an_interval_that_reaches_the_largest_size_is_open_there() {
        // Equal at 240,000 of 250,000: in many resamples the order at the largest size is reversed.
        let found = crossovers(&[series("cpu", 1e-3, 1e-6, 1), series("cuda", 1e-3 + 240_000.0 * 2e-9, 0.998e-6, 2)]);
        assert!(found[0].at.is_none_or(|place| place.high.is_none()), "{found:?}");
    }

    #[test]
    fn a_crossover_is_open_above_unless_the_order_at_the_largest_size_is_shown() {
        // The blocks' times at the smaller and at the larger size.
        let of = |engine: &str, small: f64, large: &[f64]| {
            let time = |block, x| if x == 100.0 { small } else { large[block as usize] };
            Series::in_blocks(&[("engine", engine)], large.len() as u32, &[100.0, 1000.0], time)
        };
        let slower = [1.00, 1.01, 1.05];
        let faster = [0.99, 0.98, 0.97];
        let high = |all: &[Series]| crossovers(all)[0].at.expect("they cross").high;
        let twice = |times: [f64; 3]| [times, times].concat();
        // Every visit of one is slower than every visit of the other, so that all resamples agree. By hand: logs of the ratios of mean 0.03982 and
        // sd 0.03560. Three blocks: t = 1.94 of the 4.30 that it takes. The same six: 3.06 of 2.57, and of 3.53 where three pairs are judged.
        assert_eq!(high(&[of("cpu", 0.5, &slower), of("candle", 0.6, &faster)]), None);
        let pair = [of("cpu", 0.5, &twice(slower)), of("candle", 0.6, &twice(faster))];
        assert!(high(&pair).is_some_and(|high| high < 1000.0));
        let [first, second] = pair;
        assert_eq!(high(&[first, second, of("torch", 2.0, &[3.0; 6])]), None);
    }

    #[test]
    fn only_series_that_differ_in_one_thing_are_paired() {
        let with = |engine: &str, threads: &str| {
            let mut series = series(engine, 1e-3, 1e-6, 3);
            series.group.push(("threads".into(), threads.into()));
            series
        };
        let found = crossovers(&[with("cpu", "1"), with("cpu", "2"), with("torch", "1"), with("torch", "2")]);
        assert_eq!(found.len(), 4, "cpu and torch with 1 and with 2 threads, 1 and 2 threads of each");
    }
}

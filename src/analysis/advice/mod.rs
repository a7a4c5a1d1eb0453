//! Which size to use and which to avoid, by the examples (or tokens, bytes) per second that each size was shown to reach.
//!
//! - The best: every size that is not shown to be worse than the best one. Hsu's multiple comparisons with the best, within blocks, by a
//!   bootstrap over blocks ([`comparison`]); the set holds the truly best size with a probability of at least 95 %.
//! - Enough: the smallest size whose rate is within a margin of the best one's, by the lower end of the interval of their ratio.
//! - Rising: the largest size is among the best, and is shown to be better than every size up to three quarters of it; no larger one failed.
//! - Avoid: behind a proven jump, the sizes whose rate is proven lower than that of the size just before it.
//! - Memory: a line through the measured peaks, unless it reaches a size that failed.
//!
//! What the data do not show is not said: [`Silence`] names the reason. Method and simulation: `docs/method.md`.

mod comparison;
mod memory;
mod rates;
mod work;

use std::fmt;
use std::path::Path;

use super::{Analysed, Series, TimeOrRate};
use crate::detect::Jump;
use crate::stats::distribution::t_upper_quantile;
use crate::units::Seconds;
use comparison::Comparison;
pub use memory::{BestSizeMemory, Fits, MARGIN};
use rates::Rates;
pub use work::Formula;

/// What a person wants of a size.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The loss of rate, relative, that a smaller size may have.
    pub within: f64,
    /// The longest step, in seconds.
    pub latency_s: Option<f64>,
    /// The work of a step; by default the size itself, where it counts work.
    pub work: Option<Formula>,
}

impl Default for Options {
    fn default() -> Self {
        Self { within: 0.05, latency_s: None, work: None }
    }
}

/// A size with its rate, in [`Advice::unit`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rated {
    pub x: f64,
    pub rate: f64,
}

/// The sizes behind one jump whose rate is proven lower than that of the size before it.
#[derive(Clone, Debug, PartialEq)]
pub struct Avoided {
    /// The size before the jump.
    pub after: f64,
    /// Ascending; never empty.
    pub sizes: Vec<f64>,
}

/// What one series shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Advice {
    /// What a size counts: `examples`, `tokens`, `MB`, or the formula that was asked for.
    pub counted: String,
    /// The unit of the rates: `examples/s`.
    pub unit: String,
    pub options: Options,
    /// All sizes that were judged, ascending.
    pub sizes: Vec<f64>,
    /// Sizes that were left out for want of visits.
    pub too_few: Vec<f64>,
    pub best: Rated,
    /// All sizes not shown to be worse than the best one, `best` among them, ascending.
    pub not_worse: Vec<f64>,
    /// The smallest size that is shown to be within the margin.
    pub enough: Option<Rated>,
    pub avoid: Vec<Avoided>,
    /// Whether the rate still rises where the sweep ends, so that a larger size may be better.
    pub rising: bool,
    /// Whether the sizes were measured in blocks; else what the machine did over time may be in the rates.
    pub blocks: bool,
    pub memory: Option<BestSizeMemory>,
}

/// Why there is no advice.
#[derive(Clone, Debug, PartialEq)]
pub enum Silence {
    /// More visits would bring it.
    Visits,
    Because(String),
}

impl fmt::Display for Silence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Visits => write!(
                f,
                "fewer than two sizes were measured {0} times (in {0} blocks, where blocks are known), and a comparison needs two",
                rates::FEWEST_VISITS
            ),
            Self::Because(why) => f.write_str(why),
        }
    }
}

fn because<T>(why: impl Into<String>) -> Result<T, Silence> {
    Err(Silence::Because(why.into()))
}

/// The advice for each series of a run or file, in their order.
pub fn of_run(path: &Path, found: &[Analysed], options: &Options) -> Vec<Result<Advice, Silence>> {
    let total = |series: &Series| memory::total(path, series);
    found.iter().map(|found| advise(found, options, total(&found.series))).collect()
}

/// The advice for one series. `total` is the memory of its device in bytes, where that is known.
///
/// # Errors
/// [`Silence`] where the data do not show enough.
pub fn advise(found: &Analysed, options: &Options, total: Option<u64>) -> Result<Advice, Silence> {
    let series = &found.series;
    let work = RateConversion::of(series, options.work.as_ref())?;
    let rates = Rates::of(series, &found.findings.factor, &work)?;
    let allowed = allowed(series, &work, &rates, options)?;
    let every = Comparison::new(&rates, &(0..rates.x.len()).collect::<Vec<_>>());
    let avoid = avoided(&found.findings.jumps, series.kind, &every);
    let among = if allowed.len() == rates.x.len() { every } else { Comparison::new(&rates, &allowed) };
    let rated = |at: usize| Rated { x: among.x[at], rate: among.level[at].exp() };
    let best = among.best();
    let not_worse: Vec<f64> = among.not_worse().into_iter().map(|at| among.x[at]).collect();
    let last = rates.x.last();
    // A larger size without a time was tried, and mostly did not fit.
    let too_large = series.failed.iter().copied().find(|x| Some(x) > last);
    let rising = too_large.is_none() && among.x.last() == last && not_worse.last() == last && among.still_rises();
    let enough = among.enough(options.within).map(rated);
    let smaller = enough.map(|enough| enough.x);
    Ok(Advice {
        counted: work.counted,
        unit: work.unit,
        options: options.clone(),
        best: rated(best),
        enough,
        memory: BestSizeMemory::of(&series.peaks, among.x[best], smaller, total, too_large),
        sizes: rates.x,
        too_few: rates.too_few,
        blocks: rates.blocks,
        not_worse,
        avoid,
        rising,
    })
}

/// How the values of a series make work per second.
struct RateConversion {
    counted: String,
    unit: String,
    inverse: bool,
    /// The work of a step, which multiplies the rate of steps; `None` if the values already count the work.
    step: Option<Formula>,
    /// What a value in the series' unit is in that of the rate.
    factor: f64,
}

/// Rates whose values count the work itself. `requests/s` is missing: a request may be an example or a batch.
const OF_WORK: [&str; 6] = ["images/s", "samples/s", "examples/s", "tokens/s", "items/s", "frames/s"];
const OF_STEPS: [&str; 2] = ["iterations/s", "steps/s"];

impl RateConversion {
    fn of(series: &Series, asked: Option<&Formula>) -> Result<Self, Silence> {
        if series.is_forecast() {
            return because("the values are forecast and not measured");
        }
        let column = &series.size.column;
        let (counted, step) = match (asked, series.size.counted()) {
            (Some(work), _) if work.name().eq_ignore_ascii_case(column) => (work.to_string(), work.clone()),
            (Some(work), _) => {
                return because(format!("the work is named in `{}`, and the sizes are in `{column}`", work.name()));
            }
            (None, Some(counted)) => (counted, Formula::of_size(column)),
            (None, None) => {
                return because(format!(
                    "`{column}` counts no examples, tokens or bytes, so there is no rate to compare; `advise --work '{column}^3'` names the work of a step"
                ));
            }
        };
        let y = series.y.to_lowercase();
        if asked.is_none() && series.kind == TimeOrRate::Time && y.contains("epoch") && !y.contains("step") {
            let why = "is the time of an epoch, so that the size of a batch does not say how many examples it had";
            return because(format!("`{}` {why}", series.y));
        }
        if series.facts.contains_key("executed_batch_size") {
            return because("an A/A run executes one size under many names");
        }
        if let Some(early) = series.early() {
            return because(early.to_string());
        }
        let (base, per_second, known) = (series.base_unit(), format!("{counted}/s"), series.unit.as_str());
        let (unit, inverse, step, factor) = match (series.kind, series.seconds_per_unit()) {
            (TimeOrRate::Time, Some(seconds)) => (per_second, false, Some(step), seconds),
            (TimeOrRate::Time, None) => (format!("{counted} per unit of `{}`", series.y), false, Some(step), 1.0),
            (TimeOrRate::Rate, _) if OF_STEPS.contains(&known) => (per_second, true, Some(step), 1.0),
            (TimeOrRate::Rate, _) if OF_WORK.contains(&known) || base.name == "B/s" && series.size.is_bytes() => {
                (series.unit.clone(), true, None, 1.0)
            }
            (TimeOrRate::Rate, _) if known.is_empty() => return because("the unit of the rate is not known"),
            (TimeOrRate::Rate, _) => {
                return because(format!("a rate in {known} does not say how many examples a second has"));
            }
        };
        Ok(Self { counted, unit, inverse, step, factor })
    }

    /// ln of the work per second of a time in the unit of the series, or of an inverted rate.
    fn rate(&self, x: f64, time: f64) -> f64 {
        let work = self.step.as_ref().map_or(1.0, |work| work.at(x));
        work.ln() - time.ln() - self.factor.ln()
    }
}

/// The sizes that keep to the latency, by the upper end of the 95 % interval of their step time; all sizes if no latency is asked for.
fn allowed(series: &Series, work: &RateConversion, rates: &Rates, options: &Options) -> Result<Vec<usize>, Silence> {
    let Some(limit) = options.latency_s else { return Ok((0..rates.x.len()).collect()) };
    if series.kind != TimeOrRate::Time || series.seconds_per_unit().is_none() {
        return because(format!("`{}` holds no times in a known unit, which a latency needs", series.y));
    }
    let keeps = |at: &usize| {
        let reach = t_upper_quantile(0.025, (rates.visits[*at] - 1) as f64);
        let error = (rates.variance[*at] + rates.between_blocks).sqrt();
        // The rate of a step that takes the limit.
        rates.level[*at] - reach * error >= work.rate(rates.x[*at], limit / work.factor)
    };
    let allowed: Vec<usize> = (0..rates.x.len()).filter(keeps).collect();
    match allowed.is_empty() {
        true => because(format!("no size is shown to keep a step within {}", Seconds(limit))),
        false => Ok(allowed),
    }
}

/// Behind each jump that makes steps slower, up to the next one. Where the size before a jump is
/// itself to be avoided, the sizes behind are compared with the one before the earlier jump.
fn avoided(jumps: &[Jump], kind: TimeOrRate, rates: &Comparison) -> Vec<Avoided> {
    let slows = |jump: &&Jump| (jump.size > 0.0) == (kind == TimeOrRate::Time);
    let mut places: Vec<f64> = jumps.iter().filter(slows).map(|jump| jump.after).collect();
    places.sort_by(f64::total_cmp);
    let up_to = |x: f64| rates.x.partition_point(|other| *other <= x);
    let mut found: Vec<Avoided> = Vec::new();
    for (at, after) in places.iter().enumerate() {
        let Some(before) = up_to(*after).checked_sub(1) else { continue };
        let end = places.get(at + 1).map_or(rates.x.len(), |next| up_to(*next));
        let earlier = found.last_mut().filter(|earlier| earlier.sizes.contains(&rates.x[before]));
        let reference = earlier.as_ref().map_or(before, |earlier| up_to(earlier.after) - 1);
        let critical = rates.critical(reference);
        let lower = (before + 1..end).filter(|later| rates.is_lower(*later, reference, critical));
        let proven = lower.map(|later| rates.x[later]);
        match earlier {
            Some(earlier) => earlier.sizes.extend(proven),
            None => found.push(Avoided { after: rates.x[before], sizes: proven.collect() }),
        }
    }
    found.retain(|avoided| !avoided.sizes.is_empty());
    found
}

#[cfg(test)]
mod tests;

//! Finds the x after which a measured curve jumps, and tells jumps from all that looks like one.
//!
//! [`detect`] takes single measured steps (batch size, seconds, and where known the order, block and clock) and answers with
//! jumps, their sizes, intervals and p-values, kinks, a period, bad points, and notes on what it could not exclude. It knows
//! nothing of files or devices.
//!
//! A **jump after k** means: the value at the next x leaves the trend that held up to k. Its size is the signed departure at
//! the next x from that trend.
//!
//! ```
//! use batchstep::detect::{Observation, Settings, detect};
//! // Four repetitions at each batch size; half a millisecond more after 16.
//! let wobble = [1.001, 0.999, 1.0005, 0.9995];
//! let steps: Vec<Observation> = (1..=40)
//!     .flat_map(|b| wobble.map(|w| (f64::from(b), w * (5e-3 + 1e-4 * f64::from(b) + if b > 16 { 5e-4 } else { 0.0 }))))
//!     .map(|(x, y)| Observation::new(x, y))
//!     .collect();
//! let findings = detect(&steps, &Settings::default());
//! assert_eq!(findings.jumps.len(), 1);
//! assert_eq!(findings.jumps[0].after, 16.0);
//! assert!((findings.jumps[0].size - 5e-4).abs() < 2e-5);
//! ```
//!
//! # Method
//!
//! Methods for change points look for another level or another line, and take a bend, a tooth or one bad batch size for a
//! change. Here a model has a name for each thing a step-time curve does, and a jump is what none of the other names explains
//! more briefly.
//!
//! 1. **Reduction** (`reduce`). For each x the repetitions of ln y become Tukey's biweight location and a standard error
//!    `1.026 s / sqrt(w)`, where s is the root of the median variance (from the MAD) within seven neighbours on each side and w
//!    the sum of the biweights over its expectation. Without repetitions s comes from second differences along x.
//! 2. **Drift** (`drift`). Where order does not follow x (it explains less than 80 % of the variance of order), effects of x
//!    and of order are fitted in turn; the latter is a polyline through robust locations of bins of 35, broken at most once
//!    where the run changes suddenly. It is removed only if an F test gives p < 1e-4. Where order follows x, or is unknown, a
//!    note says that drift cannot be excluded.
//! 3. **Model** (`dictionary`, `model`). `y_i = a + b x_i + sum_j c_j f_j(x_i) + e_i`, `var e_i = phi (s_i^2)`, with terms f:
//!    steps, hinges, single bad points, bumps of two, soft hinges, powers, logarithm, exponential start-up, teeth of 2, 4, 8, 16, and whole
//!    staircases of every period and phase as one term each. The fit is linear in y (times add up) with relative errors.
//! 4. **Selection** (`search`, `segment`, `refine`, `stairs`). The description length
//!    `L = n ln phi + RSS / phi + sum_j cost_j`, with `phi = max(floor, RSS / n)`, is minimised. A place costs `2 ln n`, a size
//!    `ln n`: a step or hinge costs 3 ln n, a staircase `ln n + 2 ln(periods) + 2 ln(phases)`. The unknown dispersion phi makes
//!    a rough curve raise the bar by itself. Starts: the straight line, the best continuous curve, and exact segmentations into separate lines by
//!    dynamic programming at four penalties; then the best addition, removal or exchange until none helps; then doubtful steps
//!    are tried without, and close pairs of terms tried as one step or one bend. A staircase must beat free steps by 10 units,
//!    and its risers must agree in height; a comb of unequal risers starts from it. In a second pass the roughness is added to the
//!    errors (`s_i^2 + tau^2 y_i^2`, tau from the residuals) and the soft hinges are made finer.
//! 5. **Verification** (`boundary`). Each step must (a) reach a size of `t` standard errors with
//!    `P(|T| > t) = rate / (n D)`, D the terms of the dictionary, T normal where the errors are known and Student's t where the
//!    dispersion was estimated (5.2 and 5.8 for 70 points at 1 %); (b) stand out by 3.5 standard errors from two separate lines over at most
//!    sixteen points on each side; (c) be larger than `smallest_jump`. The spread is widened where neighbouring residuals are
//!    alike. Weak steps (under 12 standard errors) must beat a curve that wanders, an autoregressive process under the noise,
//!    by 20 units (`wander`). Steps have three points at least on each side. Risers of a staircase are tested together, by (a),
//!    with the common height as their size.
//! 6. **Sizes and intervals** (`sizes`, `effects`, `blocks`, `interval`). A size is averaged over designs, the model and what comes
//!    of leaving out or replacing its bends, curves and doubtful steps, with weights `exp(-L / 2)`; in each, another slope at each
//!    jump, a slight bend anywhere and unequal risers are random effects whose widths are learned from the series. The interval
//!    is a bootstrap with resamples shared by all jumps, of whole blocks where the run has four or more, else of the residuals;
//!    it is widened to Student's t and to the doubt about the design. On simulated series that no choice was
//!    made on, the 95 % intervals hold 95.5 % (development generator) and 94.6 % (a harsher variant of it) of the true sizes, each
//!    series counted once; 89 to 99 % in single families of 30 to 160 series.
//! 7. **p-values** (`boundary`, `chance`, `gaps`). A *series* has one: the chance that a series without a jump, on the same curve and
//!    with the same noise, shows a step as strong as its strongest. The curve is the model less its steps, searched on
//!    without any; the statistic is the largest gap at any boundary, between two lines on that curve, over the root of the residual
//!    sum of squares; its distribution comes from up to 1,000 permutations of the residuals, ended early where the answer is
//!    clear. It is uniform without a jump: over 8 curves and 9 kinds of noise, 400 series each (`cargo run --release
//!    --example null_p_values`), 1.2 % are at or below 0.01, 4.7 % below 0.05, 9.3 % below 0.10 and 47.6 % below 0.50. What remains: a rounded
//!    kink is fitted too well by the best of many shapes (40 % below 0.50); noise that grows sixfold along x is
//!    not quite exchangeable (1.9 % below 0.01); errors that neighbours share are told from noise only where they are beyond
//!    chance (3.9 % below 0.01 for a process of half the noise with correlation 0.5).
//!
//!    A *jump's* own p-value is two-sided and corrected, as the threshold is, for all pairs of a boundary and a term (Sidak):
//!    `1 - (1 - p)^(n D)`; a jump at the threshold has the false-positive rate for its p-value. It asks more than the series' does: not whether
//!    anything steps, but whether this boundary does, whatever else the search looked at. So it is conservative and cannot be uniform: a
//!    description without a step has no candidate. Of
//!    1,500 simulated series without a jump for each of twelve kinds (line, power, kink and start-up; 1, 3 and 12 repetitions),
//!    95.7 to 99.5 % have none at all, 0 to 1.4 % have one below 0.05, and 0 to 0.7 % have a jump reported. The series' p-value is
//!    never above that of its surest jump, which goes far below what permutations can count. A series
//!    may well have a small one and no jump: then something steps, and it cannot be said where.
//! 8. **Period** (`period`). A staircase in the model, or hypergeometric: more jumps on a comb than chance puts there, corrected
//!    for all combs: periods from 2 to half the range, with every offset. The risk is dealt beforehand, three quarters to combs through
//!    the multiples of the period, in proportion to the largest power of two (or number of the hardware times one) that divides
//!    it; so two jumps after 32 and 64 of 70 prove a period of 32 (p = 0.002), and two at most other places prove none.
//!    [`coincidences`] names the numbers of the hardware that it is in a small ratio with.
//! 9. **Verdict** (`verdict`). Cycles are y times clock. Work: the jump is there in cycles with at least half its relative
//!    size; clock: that much is excluded in cycles; else ambiguous.
//!
//! Even/odd teeth and a staircase of period 2 are the same curve; it is read as a staircase where the treads are flat
//! (slope between -0.15 and 0.3 of the riser).
//!
//! # Cost
//!
//! All products of a vector with a thousand terms follow from one pass of suffix sums, and the orthonormal basis prices every
//! addition, removal and exchange without a refit, in loops over wide vectors (`simd`); exchanges and designs that a bound rules out
//! are not computed. 70 points of 10 to 24 repetitions take 0.8 ms in the median of the development series, 1.7 ms in the
//! 95th percentile and 2.9 ms at most (the fastest of nine runs each, with the program's allocator), 1,000 resamples and the series'
//! p-value included; the slowest are those of many jumps beside many bends.
//! Above 200 points staircases keep to multiples of the period and must be shorter at once, exchanges are tried only when nothing
//! else helps, segments are at most 400 long, bends at their borders are left out from the start where two lines do not show them,
//! and a removal is a few plane rotations: O(n m) for each change with m terms. 1,000 points with ten jumps take some 10 ms, 5,000
//! some 0.1 s with ten jumps and 0.15 s with forty.
//!
//! # What it does not do
//!
//! A jump within three points of an end is not told from bad points there. Two jumps less than three points apart are one. Blocks of
//! more than two disturbed neighbours are two jumps. Drift in a run measured in order of x stays in the curve. A period that the grid of x
//! does not hold (84 on x that are multiples of 8) is not named, though its jumps are found.
//!
//! # References
//!
//! Bai & Perron 1998, 2003 (segmented regression); Rissanen 1978, Davis, Lee & Rodriguez-Yam 2006 (description length);
//! Mosteller & Tukey 1977 (biweight); Fearnhead, Maidstone & Letchford 2019, Baranowski, Chen & Fryzlewicz 2019 (changes in
//! slope); Muggeo 2003 (hinges); Zhao et al. 2019 (combs of shapes and steps); Davison & Hinkley 1997 (bootstrap);
//! Burnham & Anderson 2002 (averaging over models); Worsley 1983 (two-phase regression);
//! Freedman & Lane 1983 (permuted residuals); Besag & Clifford 1991 (sequential p-values);
//! Robinson 1991 (random effects); Satterthwaite 1946; Sidak 1967.

pub mod baseline;
mod explain;
mod findings;
mod input;
mod interpret;
mod model;
mod prepare;
pub mod score;
mod search;
mod size;
mod verify;

pub use findings::{Candidate, Findings, Jump, Kink, Note, Period, Point, Verdict};
pub use input::{FEWEST_POINTS, HardwareNumbers, Observation, Settings};
pub use interpret::coincidence::coincidences;

use interpret::verdict;
use prepare::{drift, series, unfitted};

/// Finds the jumps, kinks and the period of one series. Never panics; what could not be used is said in the notes.
pub fn detect(observations: &[Observation], settings: &Settings) -> Findings {
    let series = series::Series::new(observations);
    let mut findings = Findings { false_positive_rate: settings.false_positive_rate, ..Findings::default() };
    if series.dropped > 0 {
        findings.notes.push(Note::Dropped { count: series.dropped });
    }
    if series.x.len() < FEWEST_POINTS {
        findings.notes.push(Note::TooFewPoints { count: series.x.len() });
        findings.points = unfitted::points(&series, settings);
        return findings;
    }
    let (log, reduced, note) = drift::without(&series);
    findings.notes.extend(note);
    if !reduced.repeated {
        findings.notes.push(Note::NoRepetitions);
    }
    if too_wide(&series.x, &reduced.center) {
        findings.notes.push(Note::TooWide);
        findings.points = unfitted::points(&series, settings);
        return findings;
    }
    explain::explain((&series, &log), &reduced, settings, &mut findings);
    verdict::judge(&series, &mut findings.jumps);
    findings
}

/// Whether x or ln y span more than double precision can tell apart in one fit.
fn too_wide(x: &[f64], log: &[f64]) -> bool {
    let span = x[x.len() - 1] - x[0];
    let closest = x.windows(2).map(|w| w[1] - w[0]).fold(f64::INFINITY, f64::min);
    let (low, high) = log.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(*v), b.max(*v)));
    !span.is_finite() || closest < 1e-9 * span || high - low > WIDEST
}

/// Largest ln of the ratio of two step times in one series.
const WIDEST: f64 = 16.0;

#[cfg(test)]
mod tests;

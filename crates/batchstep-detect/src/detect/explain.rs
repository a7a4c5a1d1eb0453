//! From reduced values to findings: fit, test each boundary on its own, and collect what was found.

use super::findings::{Candidate, Findings, Jump, Kink, Multiples, Point};
use super::input::Settings;
use super::interpret::period;
use super::interpret::slope::KinkSlopes;
use super::logarithms;
use super::model::boundary::{self, Boundary};
use super::model::candidates::{CandidateTerms, EDGE, Term};
use super::model::fit::Model;
use super::model::neighbourhood::{self, Local};
use super::model::place::{self, Places};
use super::model::problem::Problem;
use super::prepare::factor::Undisturbed;
use super::prepare::prepared::Prepared;
use super::prepare::reduce::Reduced;
use super::prepare::scaled::Scaled;
use super::prepare::unfitted;
use super::rejection::Rejection;
use super::search;
use super::search::{cliffs, levels, segment};
use super::size::blocks::SizesByBlock;
use super::size::{interval, sizes};
use super::unexplained::{self, Place};
use super::verify::examination::{
    BESIDE_IF_DELAYED, BY_DELAYS, Examination, LEAST_UNITS, straightened, without_alternation,
};
use super::verify::{autoregressive, p_value, power, threshold};
use crate::stats::distribution;
use crate::stats::quantile::median;

/// A cliff is at least this many standard errors high.
const CLIFF: f64 = 6.0;
/// Descriptions whose lengths differ by less are about as likely: by less than a factor of 20.
const AS_LIKELY: f64 = 6.0;

/// Errors to which a roughness of the curve is added, as a share of the level, so that they match the residuals of
/// `model`; `None` if the repetitions explain the residuals.
fn roughened(model: &Model, level: &[f64], error: &[f64]) -> Option<Vec<f64>> {
    let freedom = model.freedom();
    if model.rss <= 1.2 * freedom {
        return None;
    }
    let residual: Vec<f64> = model.residual.iter().zip(error).map(|(r, e)| r * e).collect();
    let ratio = |tau: f64| -> f64 {
        residual.iter().zip(error).zip(level).map(|((r, e), level)| r * r / (e * e + (tau * level).powi(2))).sum()
    };
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..40 {
        let middle = 0.5 * (low + high);
        if ratio(middle) > freedom { low = middle } else { high = middle }
    }
    Some(error.iter().zip(level).map(|(e, level)| e.hypot(high * level)).collect())
}

/// The points, jumps, kinks, period and rejected candidates of a series.
///
/// A time y and a rate 1 / y are one measurement, and a curve that has a short description as one of them may need a long one as the other. So both are described, and the
/// shorter description counts, whichever was given; of two that are about as likely, one without jumps, or else without kinks. A rate is also described as x / y: a step in the time of
/// x examples is none in their rate where x grows by a factor from one to the next. Where x grows so, logarithms are described too, in which a power of x is a line. There
/// the description counts that leaves the fewest changes unnamed, then one of a time, then the shortest.
pub(super) fn explain(series: &Prepared, undisturbed: &Undisturbed, settings: &Settings) -> Findings {
    let as_it_is = || fitted(series, undisturbed, &Scaled::new(&undisturbed.reduced), settings);
    let turned = |other: Undisturbed, times: &dyn Fn(f64) -> f64| {
        let (mut findings, length) = fitted(series, &other, &Scaled::new(&other.reduced), settings);
        findings.points.iter().all(|point| point.fit > 0.0).then(|| {
            findings.turn(times);
            findings.kinks.retain(|kink| kink.share() >= LEAST_BEND);
            (findings, length)
        })
    };
    let reciprocal = || turned(undisturbed.reciprocal(), &|_| 1.0);
    let of_steps = || undisturbed.of_steps(series).and_then(|other| turned(other, &|x| x));
    let steps = || settings.is_rate.then(of_steps).flatten();
    let Some(x) = logarithms::of(&series.x) else {
        let all = [Some(as_it_is()), reciprocal(), steps()];
        return all.into_iter().flatten().reduce(shorter).map(|(findings, _)| findings).unwrap_or_default();
    };
    let scaled = Scaled::logarithms(&undisturbed.reduced);
    let mut own = fitted(&Prepared { x, ..series.clone() }, undisturbed, &scaled, settings);
    own.0.raise(&series.x);
    // Whether each is a rate: near zero, a rate of a few long times is any line, so a time counts for more.
    let mut all = vec![(false, Some(own))];
    if unfitted::can_be_resolved(&series.x) {
        all.extend([(settings.is_rate, Some(as_it_is())), (!settings.is_rate, reciprocal()), (false, steps())]);
    }
    let ranked = all.into_iter().filter_map(|(is_rate, one)| {
        let (findings, length) = one?;
        Some((unnamed(&findings), is_rate, length, findings))
    });
    let best = ranked.min_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)).then(a.2.total_cmp(&b.2)));
    best.map(|(.., findings)| findings).unwrap_or_default()
}

/// The number of changes that anyone sees and nothing names.
fn unnamed(findings: &Findings) -> usize {
    unexplained::unexplained(findings).iter().filter(|change| change.place == Place::Between).count()
}

/// The shorter one of two descriptions with their lengths; if they are about as likely, the one that claims less.
fn shorter(one: (Findings, f64), other: (Findings, f64)) -> (Findings, f64) {
    let claims = |one: &Findings| (!one.jumps.is_empty(), !one.kinks.is_empty() && one.jumps.is_empty());
    let (own, others) = (claims(&one.0), claims(&other.0));
    let about_as_likely = (one.1 - other.1).abs() < AS_LIKELY && own != others;
    let is_better = if about_as_likely { others < own } else { other.1 < one.1 };
    if is_better { other } else { one }
}

/// The findings, and the length of the description from which they follow.
fn fitted(series: &Prepared, undisturbed: &Undisturbed, scaled: &Scaled, settings: &Settings) -> (Findings, f64) {
    let mut findings = Findings::default();
    let Undisturbed { log, reduced, .. } = undisturbed;
    let terms_of = if scaled.is_logarithms() { CandidateTerms::of_logarithms } else { CandidateTerms::new };
    let candidates = terms_of(&series.x);
    let least = |k: usize| {
        let noise = if reduced.repeated { CLIFF * scaled.error[k].hypot(scaled.error[k + 1]) } else { 0.0 };
        noise.max(settings.smallest_jump * scaled.level[k]).max(LEAST_UNITS * scaled.tick[k])
    };
    let kept = cliffs::cliffs(&candidates, &scaled.y, &scaled.level, least);
    let spikes = reduced.spikes.clone();
    let initial = Problem { kept, spikes, ..Problem::new(&candidates, &scaled.y, &scaled.error, scaled.floor) };
    let first = search::search(&initial, &scaled.y);
    // The error of single values is their own scatter; any excess is in the dispersion.
    let rough = roughened(&first, &scaled.level, &scaled.error).filter(|_| reduced.repeated);
    let finer = candidates.finer(&series.x, &first.terms);
    let floor = if reduced.repeated { scaled.floor } else { segment::least_dispersion(&first, &scaled.y) };
    let changed = floor > scaled.floor || rough.is_some() || finer.is_some();
    let (error, finer) = (rough.as_ref().unwrap_or(&scaled.error), finer.as_ref().unwrap_or(&candidates));
    let (kept, spikes) = (initial.kept.clone(), initial.spikes.clone());
    let estimated = rough.is_some();
    let problem = Problem { estimated, kept, spikes, ..Problem::new(finer, &scaled.y, error, floor) };
    let terms: Vec<usize> = first.terms.iter().map(|&j| finer.index(candidates.term(j))).collect();
    let model = if changed { search::anew(Model::new(&problem, &terms)) } else { first };
    let looks = candidates.n * candidates.len;
    let limit = threshold::threshold(looks, model.error_freedom(), settings.false_positive_rate);
    let in_turn = series.order.is_none() || series.in_turn();
    let (model, likelier) = levels::sorted(model, in_turn, limit);
    let curve = model.fitted(|term| !matches!(term, Term::Off { .. }));
    let examination = Examination {
        model: &model,
        level: curve.iter().map(|fit| scaled.level_of(*fit)).collect(),
        measured: without_alternation(&model, &scaled.y),
        straightened: straightened(&model, &scaled.y),
        smallest: settings.smallest_jump,
        tick: &scaled.tick,
        limit,
        delays: series.by_fastest.map_or(0.0, |scatter| BY_DELAYS * scatter.of_middles),
        likelier,
        explained_below: autoregressive::explained_below(&model),
    };
    let report = Report { series, reduced, scaled, settings, model: &model, curve, examination, looks };
    findings.points = report.points();
    findings.detectable = power::detectable(&report.examination, &report.curve);
    let bends = report.jumps(&mut findings, SizesByBlock::new(series, log, reduced, scaled).as_ref());
    findings.detectable = findings.detectable.map(|seen| seen.max(report.doubted(&findings.rejected, seen)));
    findings.kinks = report.kinks(bends);
    findings.multiples = report.multiples();
    let surest = findings.jumps.iter().map(|jump| jump.p_value).reduce(f64::min);
    findings.p_value = p_value::p_value(&model, surest, settings);
    findings.period = period::period(&model, &series.x, &findings.jumps, settings);
    (findings, model.length())
}

/// Fewer multiples of a number are points off the curve by themselves.
const FEWEST_MULTIPLES: usize = 4;
/// A pattern of multiples that are not spikes has less than one spike among this many of them; else two thirds of them are spikes.
const SELDOM_SPIKES: usize = 6;
/// A bend by a smaller share of the steeper slope is slight. Beside a compiler, an engine that computes in proportion to the batch had bends of up to 6.4 % in 8 of 10 runs, and none
/// without (`scripts/under-load`): what is in the caches depends on the other program.
const LEAST_BEND: f64 = 0.1;

/// How many times the smallest jump that would have been seen a rejected change must be to doubt that.
const FAR_ABOVE: f64 = 2.0;

/// The fewest further points on each side of a kink, up to an end or a step.
const BESIDE_KINK: usize = 4;

/// A fitted model, and everything else from which its findings follow.
struct Report<'a, 'b, 'c> {
    series: &'a Prepared,
    reduced: &'a Reduced,
    scaled: &'a Scaled,
    settings: &'a Settings,
    model: &'a Model<'b, 'c>,
    /// The fit without the terms of bad points.
    curve: Vec<f64>,
    examination: Examination<'a, 'b, 'c>,
    /// The number of looks for which a p-value is corrected, so that the p-value at the limit is the false-positive
    /// rate.
    looks: usize,
}

impl Report<'_, '_, '_> {
    /// The p-value of a size of `z` standard errors.
    fn p_value(&self, z: f64) -> f64 {
        threshold::p_value(z, self.model.error_freedom(), self.looks)
    }

    fn points(&self) -> Vec<Point> {
        let tail = 0.5 * (1.0 - self.settings.confidence.clamp(0.0, 0.9999));
        let normal = distribution::normal_upper_quantile(tail);
        let quantile = |freedom: f64| {
            if freedom.is_finite() { distribution::t_upper_quantile(tail, freedom) } else { normal }
        };
        let off = self.off();
        let point = |i: usize| {
            let (center, error) = (self.reduced.center[i], self.reduced.error[i]);
            let z = quantile(self.reduced.freedom[i]);
            Point {
                x: self.series.x[i],
                count: self.series.groups[i].len(),
                center: center.exp(),
                low: (center - z * error).exp(),
                high: (center + z * error).exp(),
                fit: self.scaled.value(self.curve[i]),
                off: off[i],
            }
        };
        (0..self.series.x.len()).map(point).collect()
    }

    /// Points that clearly deviate from the curve, by themselves or with their neighbours. A point on the curve does not count, whatever its neighbours do.
    fn off(&self) -> Vec<bool> {
        let mut off = vec![false; self.curve.len()];
        for (place, (term, size)) in self.model.sized().enumerate() {
            if let Term::Off { at, length } = term
                && self.model.z(place) > self.examination.limit
            {
                let is_off = |i: usize| (self.scaled.y[i] - self.curve[i]).abs() > 0.5 * size.abs();
                (at..at + length).for_each(|i| off[i] |= is_off(i));
            }
        }
        off
    }

    /// Also the bends that looked like jumps.
    fn jumps(&self, findings: &mut Findings, blocks: Option<&SizesByBlock>) -> Vec<Kink> {
        let (x, unit, examination) = (&self.series.x, self.scaled.unit, &self.examination);
        let mut accepted = Vec::new();
        let all = boundary::boundaries(self.model);
        let objections = examination.objections(&all);
        for (found, objection) in all.iter().zip(&objections) {
            match *objection {
                None => accepted.push(found.clone()),
                Some(reason) => findings.rejected.push(Candidate {
                    after: x[found.k],
                    size: found.size * unit,
                    p_value: self.p_value(found.z()),
                    reason,
                }),
            }
        }
        let is_bend = |(_, objection): &(&Boundary, &Option<Rejection>)| matches!(objection, Some(Rejection::Bend));
        let bends = all.iter().zip(&objections).filter(is_bend).filter_map(|(found, _)| {
            let bend = neighbourhood::bend(self.model, &examination.straightened, found.k, f64::INFINITY)?;
            let (from, to) = (x[found.k], x[found.k + 1]);
            let span = x[x.len() - 1] - x[0];
            let [slope_before, slope_after] = bend.slopes.map(|slope| slope / span * unit);
            let at = from + bend.share * (to - from);
            Some(Kink { at, slope_before, slope_after, p_value: self.p_value(found.z()) })
        });
        let bends = bends.collect();
        let mut sizes = sizes::sizes(self.model, &accepted);
        for (found, size) in accepted.iter().zip(&mut sizes) {
            let local = examination.nearby(found).filter(|_| !found.in_staircase);
            // Where their lines are less certain than the jump is high, they say nothing about it.
            if let Some(local) = local.filter(|local| local.error < size.value.abs()) {
                size.doubt((local.size, local.error));
            }
            size.rounded(examination.tick[found.k]);
        }
        let intervals = interval::intervals(self.model, self.settings, &accepted, &sizes, blocks);
        for ((found, size), (low, high)) in accepted.iter().zip(&sizes).zip(intervals) {
            let p_value = self.p_value(found.z());
            // Where the neighbours disagree with the whole curve by that much, they must show the jump by themselves.
            let among_neighbours = || neighbourhood::local_z(self.model, &examination.straightened, found.k);
            let is_known = low >= 0.0 || high <= 0.0 || examination.is_cliff(found.k);
            if !is_known && among_neighbours() < examination.limit {
                let (after, size, reason) = (x[found.k], size.value * unit, Rejection::SizeUnknown);
                findings.rejected.push(Candidate { after, size, p_value, reason });
                continue;
            }
            let Places { first, likeliest, last } = place::places(self.model, &examination.straightened, found);
            // Its sign is proven.
            let [low, high] = if size.value > 0.0 { [low.max(0.0), high] } else { [low, high.min(0.0)] };
            findings.jumps.push(Jump {
                after: x[likeliest],
                after_low: x[first],
                after_high: x[last],
                size: size.value * unit,
                low: low * unit,
                high: high * unit,
                relative: size.value / examination.level[found.k],
                p_value,
                nearby_p_value: examination
                    .nearby(found)
                    .map(|Local { size, error, freedom }| threshold::p_value(size.abs() / error, freedom, x.len() - 1)),
                verdict: None,
            });
        }
        findings.rejected.sort_by(|a, b| a.after.total_cmp(&b.after));
        bends
    }

    /// The largest change in the middle third, as a share of the level, that is far above the smallest jump that would have been `seen`, and was rejected for
    /// what its neighbours do: of such a size another jump might have been missed too.
    fn doubted(&self, rejected: &[Candidate], seen: f64) -> f64 {
        let (n, level) = (self.series.x.len(), &self.examination.level);
        let is_doubt = |reason: &Rejection| {
            use Rejection::{CorrelatedErrors, NotAmongNeighbours, Rough, SizeUnknown, TooSteep};
            matches!(reason, CorrelatedErrors | NotAmongNeighbours { .. } | Rough { .. } | SizeUnknown | TooSteep)
        };
        let share = |candidate: &Candidate| {
            let k = self.series.x.partition_point(|x| *x < candidate.after);
            let share = candidate.size.abs() / self.scaled.unit / level[k];
            (k + 1 >= n / 3 && k < n - n / 3 && share > FAR_ABOVE * seen && is_doubt(&candidate.reason))
                .then_some(share)
        };
        rejected.iter().filter_map(share).fold(0.0, f64::max)
    }

    fn multiples(&self) -> Vec<Multiples> {
        let candidates = self.model.problem.candidates;
        let of = |place: usize| candidates.multiples_of(self.model.terms[place]);
        let mut numbers: Vec<f64> = (0..self.model.terms.len()).filter_map(of).collect();
        numbers.sort_by(f64::total_cmp);
        numbers.dedup();
        let found = numbers.into_iter().filter_map(|number| {
            let places = (0..self.model.terms.len()).filter(|place| of(*place) == Some(number));
            let z = places.map(|place| self.model.z(place)).fold(0.0, f64::max);
            let others = self.model.fitted(|term| {
                !matches!(term, Term::Off { .. }) && candidates.multiples_of(candidates.index(term)) != Some(number)
            });
            let shares: Vec<f64> = self.curve.iter().zip(&others).map(|(with, without)| with / without - 1.0).collect();
            let is_multiple = |i: &usize| self.series.x[*i].rem_euclid(number) == 0.0;
            let mut theirs: Vec<f64> = (0..shares.len()).filter(is_multiple).map(|i| shares[i]).collect();
            let spikes = self.reduced.spikes.iter().filter(|i| is_multiple(i)).count();
            let p_value = self.p_value(z);
            let seen = theirs.len() >= FEWEST_MULTIPLES
                // Where some of them are spikes, the others have something else in common, if anything.
                && (SELDOM_SPIKES * spikes < theirs.len() || 3 * spikes > 2 * theirs.len())
                && z >= self.examination.limit
                && others.iter().all(|other| *other > 0.0);
            seen.then(|| Multiples { of: number, relative: median(&mut theirs), shares, p_value })
        });
        found.collect()
    }

    /// Those of the model's bends, and those of `bends` that are none of them. A bend that is nowhere as much as the smallest jump that counts is none, and neither is a slight one.
    fn kinks(&self, bends: Vec<Kink>) -> Vec<Kink> {
        let (x, examination) = (&self.series.x, &self.examination);
        let slopes = KinkSlopes::new(self.model, x);
        // With fewer points between a bend and a step, the slope there is not known either.
        let steps = self.model.at(Term::step);
        let beside_a_step = |k: usize| steps.iter().any(|(at, _)| at.abs_diff(k) < BESIDE_KINK);
        let mut kinks: Vec<Kink> = Vec::new();
        for (place, (term, _)) in self.model.sized().enumerate() {
            let Some(k) = term.hinge() else { continue };
            let z = self.model.z(place);
            // With fewer points on one side, the slope there is that of one disturbed point.
            let departure = slopes.departure(k) / examination.level[k];
            let is_small = departure < self.settings.smallest_jump;
            let beside = if departure < examination.delays { BESIDE_IF_DELAYED } else { BESIDE_KINK };
            let near_an_end = k < beside || k + beside >= x.len();
            if z < examination.limit || near_an_end || is_small || beside_a_step(k) {
                continue;
            }
            let [slope_before, slope_after] = [slopes.before(k), slopes.after(k)].map(|slope| slope * self.scaled.unit);
            kinks.push(Kink { at: x[k], slope_before, slope_after, p_value: self.p_value(z) });
        }
        let place = |at: f64| x.partition_point(|x| *x < at);
        for bend in bends {
            let is_other = |kink: &Kink| place(kink.at).abs_diff(place(bend.at)) >= EDGE;
            if kinks.iter().all(is_other) {
                kinks.push(bend);
            }
        }
        kinks.retain(|kink| kink.share() >= LEAST_BEND);
        kinks.sort_by(|a, b| a.at.total_cmp(&b.at));
        kinks
    }
}

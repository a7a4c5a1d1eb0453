//! From reduced values to findings: fit, test each boundary by itself, and collect the findings.

use super::findings::{Candidate, Findings, Jump, Kink, Note, Point, Rejection, Verdict};
use super::input::Settings;
use super::interpret::period;
use super::interpret::slope::Slopes;
use super::model::boundary::{self, Boundary};
use super::model::candidates::{CandidateTerms, Term};
use super::model::fit::Model;
use super::model::problem::Problem;
use super::prepare::factor::Undisturbed;
use super::prepare::prepared::Prepared;
use super::prepare::reduce::Reduced;
use super::prepare::scaled::Scaled;
use super::search;
use super::search::staircase;
use super::size::blocks::Blocks;
use super::size::interval::BlocksInUnit;
use super::size::{interval, sizes};
use super::verify::{autoregressive, p_value, power, threshold};
use crate::stats::distribution;

/// Roughness beyond this many times what the repetitions explain is worth a note.
const ROUGH: f64 = 3.0;

/// Errors with a roughness of the curve added, as a share of the level, so that the residuals of `model` are as large as they
/// say; `None` where the repetitions explain them.
fn roughened(model: &Model, y: &[f64], error: &[f64]) -> Option<Vec<f64>> {
    let freedom = model.freedom();
    if model.rss <= 1.2 * freedom {
        return None;
    }
    let residual: Vec<f64> = model.residual.iter().zip(error).map(|(r, e)| r * e).collect();
    let ratio = |tau: f64| -> f64 {
        residual.iter().zip(error).zip(y).map(|((r, e), y)| r * r / (e * e + (tau * y).powi(2))).sum()
    };
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..40 {
        let middle = 0.5 * (low + high);
        if ratio(middle) > freedom { low = middle } else { high = middle }
    }
    Some(error.iter().zip(y).map(|(e, y)| (e * e + (high * y).powi(2)).sqrt()).collect())
}

/// Standard errors by which a step of a staircase must stand out among its own neighbours.
const CONFIRMED: f64 = 2.5;

/// Adds points, jumps, kinks, period, rejected candidates and notes to `findings`.
pub(super) fn explain(series: &Prepared, undisturbed: &Undisturbed, settings: &Settings, findings: &mut Findings) {
    let Undisturbed { log, reduced, .. } = undisturbed;
    let candidates = CandidateTerms::new(&series.x);
    let scaled = Scaled::new(reduced);
    let initial = Problem::new(&candidates, &scaled.y, &scaled.error, scaled.floor);
    let (first, settled) = search::search(&initial, &scaled.y);
    let rough = roughened(&first, &scaled.y, &scaled.error);
    let finer = candidates.finer(&first.terms);
    let changed = rough.is_some() || finer.is_some() || !settled;
    let (error, finer) = (rough.as_ref().unwrap_or(&scaled.error), finer.as_ref().unwrap_or(&candidates));
    let problem = Problem { estimated: rough.is_some(), ..Problem::new(finer, &scaled.y, error, scaled.floor) };
    let terms: Vec<usize> = first.terms.iter().map(|&j| finer.index(candidates.term(j))).collect();
    let mut model = if changed { search::anew(Model::new(&problem, &terms)) } else { first };
    if let Some(same) = staircase::from_alternation(&model, &series.x, &scaled.y) {
        model = same;
    }
    if reduced.repeated && model.dispersion() > ROUGH * ROUGH {
        findings.notes.push(Note::Rough { factor: model.dispersion().sqrt() });
    }
    let limit = threshold::threshold(&candidates, model.error_freedom(), settings.false_positive_rate);
    let report = Report {
        series,
        reduced,
        scaled: &scaled,
        settings,
        model: &model,
        limit,
        looks: threshold::looks(&candidates),
        blocks: Blocks::new(series, log, reduced),
        autoregressive: autoregressive::explains_weak_steps(&model),
    };
    findings.points = report.points();
    findings.detectable = power::detectable(&model, &report.curve(), limit, settings);
    report.jumps(findings);
    findings.kinks = report.kinks();
    let surest = findings.jumps.iter().map(|jump| jump.p_value).reduce(f64::min);
    findings.p_value = p_value::p_value(&model, surest, settings);
    findings.period = period::period(&model, &series.x, &findings.jumps, settings);
}

/// A fitted model and all that its findings follow from.
struct Report<'a, 'b, 'c> {
    series: &'a Prepared,
    reduced: &'a Reduced,
    scaled: &'a Scaled,
    settings: &'a Settings,
    model: &'a Model<'b, 'c>,
    /// The smallest size in standard errors that counts.
    limit: f64,
    /// What a p-value is corrected for, so that the limit has the false-positive rate for its p-value.
    looks: usize,
    blocks: Option<Blocks>,
    /// The autoregressive alternative explains the weak steps as well.
    autoregressive: bool,
}

impl Report<'_, '_, '_> {
    /// The fit without the terms of bad points.
    fn curve(&self) -> Vec<f64> {
        self.model.fitted(|term| !matches!(term, Term::Spike(_) | Term::Bump(_)))
    }

    fn points(&self) -> Vec<Point> {
        let z = distribution::normal_upper_quantile(0.5 * (1.0 - self.settings.confidence.clamp(0.0, 0.9999)));
        let fit = self.curve();
        let off = self.off();
        let unit = self.scaled.unit;
        let point = |i: usize| {
            let (center, error) = (self.reduced.center[i], self.reduced.error[i]);
            Point {
                x: self.series.x[i],
                count: self.series.groups[i].len(),
                center: center.exp(),
                low: (center - z * error).exp(),
                high: (center + z * error).exp(),
                fit: fit[i] * unit,
                off: off[i],
            }
        };
        (0..self.series.x.len()).map(point).collect()
    }

    /// Points that stand off by themselves, clearly.
    fn off(&self) -> Vec<bool> {
        let candidates = self.model.problem.candidates;
        let mut off = vec![false; candidates.n];
        let (limit, spread) = (self.limit, self.model.spread());
        for (place, &j) in self.model.terms.iter().enumerate() {
            if let Term::Spike(k) = candidates.term(j) {
                off[k] = self.model.direction(place).1.abs() > limit * spread;
            }
        }
        off
    }

    fn jumps(&self, findings: &mut Findings) {
        let x = &self.series.x;
        let unit = self.scaled.unit;
        let fit = self.curve();
        let freedom = self.model.error_freedom();
        let straightened = self.straightened();
        let mut accepted = Vec::new();
        for found in boundary::boundaries(self.model) {
            let relative = found.size / fit[found.k].abs().max(f64::MIN_POSITIVE);
            match self.objection(&found, relative, &straightened) {
                None => accepted.push(found),
                Some(reason) => findings.rejected.push(Candidate {
                    after: x[found.k],
                    size: found.size * unit,
                    p_value: threshold::p_value(found.z(), freedom, self.looks),
                    reason,
                }),
            }
        }
        let sizes = sizes::sizes(self.model, &accepted);
        let blocks = self.blocks.as_ref().map(|blocks| BlocksInUnit { blocks, unit });
        let intervals = interval::intervals(self.model, self.settings, &sizes, blocks);
        findings.jumps = accepted
            .iter()
            .zip(&sizes)
            .zip(intervals)
            .map(|((found, size), (low, high))| Jump {
                after: x[found.k],
                after_low: x[found.k],
                after_high: x[found.k],
                size: size.value * unit,
                low: low * unit,
                high: high * unit,
                relative: size.value / fit[found.k].abs().max(f64::MIN_POSITIVE),
                p_value: threshold::p_value(found.z(), freedom, self.looks),
                verdict: Verdict::Ambiguous,
            })
            .collect();
    }

    /// Why a boundary is not a jump, if it is not.
    fn objection(&self, found: &Boundary, relative: f64, straightened: &[f64]) -> Option<Rejection> {
        let limit = self.limit;
        let z = found.z();
        if relative.abs() < self.settings.smallest_jump {
            return Some(Rejection::BelowSmallestJump { relative: relative.abs() });
        }
        if z < limit {
            return Some(Rejection::BelowThreshold { size: z, needed: limit });
        }
        // The steps of a staircase were tested together and support each other; but each of them has to be there as well.
        if found.in_staircase {
            if staircase::lacks(self.model, found) {
                return Some(Rejection::NoStepOfTheStaircase);
            }
            return match self.own_step(found, straightened) {
                Some(own) if own >= CONFIRMED => None,
                Some(local) => Some(Rejection::OfThePeriodAlone { local }),
                None if self.staircase_is_regular(straightened) => None,
                None => Some(Rejection::NearTheEnd),
            };
        }
        if self.autoregressive && autoregressive::is_weak(z) {
            return Some(Rejection::CorrelatedErrors);
        }
        let local = boundary::local_z(self.model, straightened, found.k);
        (local < threshold::LOCAL_Z).then_some(Rejection::NotAmongNeighbours { local })
    }

    /// The step at a place of a staircase from its own neighbours, in standard errors, negative where it goes the other way. `None` at an
    /// end, where there are too few of them for a line.
    fn own_step(&self, found: &Boundary, straightened: &[f64]) -> Option<f64> {
        let (rest, error) = boundary::local_size(self.model, straightened, found.k)?;
        let height = staircase::height(self.model, found.k);
        Some((rest + height) / error * found.size.signum())
    }

    /// Whether at least three in four of the staircase's steps that have neighbours are confirmed by them, so that one at an end is believed.
    fn staircase_is_regular(&self, straightened: &[f64]) -> bool {
        let steps = boundary::boundaries(self.model).into_iter().filter(|found| found.in_staircase);
        let own: Vec<f64> = steps.filter_map(|found| self.own_step(&found, straightened)).collect();
        let confirmed = own.iter().filter(|own| **own >= CONFIRMED).count();
        !own.is_empty() && 4 * confirmed >= 3 * own.len()
    }

    /// The values less alternation, staircases and smooth shapes, so that straight lines fit them between events.
    fn straightened(&self) -> Vec<f64> {
        let curved = self.model.fitted(|term| matches!(term, Term::Shape(_) | Term::Staircase(_)));
        let straight = self.model.fitted(|_| false);
        self.scaled.y.iter().zip(curved.iter().zip(&straight)).map(|(y, (c, s))| y - (c - s)).collect()
    }

    fn kinks(&self) -> Vec<Kink> {
        let candidates = self.model.problem.candidates;
        let x = &self.series.x;
        let (limit, spread, freedom) = (self.limit, self.model.spread(), self.model.error_freedom());
        let slopes = Slopes::new(self.model, x);
        let stepped = |k: usize| self.model.terms.contains(&candidates.index(Term::Step(k)));
        let mut kinks: Vec<Kink> = Vec::new();
        for (place, &j) in self.model.terms.iter().enumerate() {
            let Term::Hinge(k) = candidates.term(j) else { continue };
            let z = self.model.direction(place).1.abs() / spread;
            if z < limit || stepped(k) || stepped(k - 1) {
                continue;
            }
            let [slope_before, slope_after] = [slopes.before(k), slopes.after(k)].map(|slope| slope * self.scaled.unit);
            let p_value = threshold::p_value(z, freedom, self.looks);
            kinks.push(Kink { at: x[k], slope_before, slope_after, p_value });
        }
        kinks.sort_by(|a, b| a.at.total_cmp(&b.at));
        kinks
    }
}

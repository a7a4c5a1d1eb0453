//! What speaks for a mechanism at a jump, and what against it.

use super::predict::Predictions;
use super::{Answer, Candidate, Case, Place, Verdict};
use crate::detect::Jump;
use crate::mechanism::Mechanism;
use crate::settings::AXES;

/// A setting takes a mechanism's step away where it leaves less than this part of it.
const GONE: f64 = 0.25;

/// A jump of another series is the same one where it is at least this part of it.
const SAME: f64 = 0.5;

/// Other layers make a jump where their own steps are at least this part of it, and those of the mechanism's layers do not show.
const MOST: f64 = 0.5;

pub(super) fn jump(at: usize, jump: &Jump, cases: &[Case], predictions: &[Predictions]) -> Answer {
    let case = &cases[at];
    let next = next(case, jump.after);
    let candidate = |mechanism: Mechanism| {
        let (places, predicted) = predictions[at].candidate(mechanism, jump.after, next?)?;
        let verdict = intervention(at, mechanism, jump, cases, predictions)
            .or_else(|| other_layers(case, jump, &places))
            .unwrap_or(Verdict::Consistent);
        let unseen = unseen(case, mechanism, &predictions[at]);
        Some(Candidate { mechanism, places, predicted, unseen, verdict })
    };
    let mut candidates: Vec<Candidate> = match jump.size > 0.0 {
        true => Mechanism::ALL.into_iter().filter_map(candidate).collect(),
        // More work makes no step shorter.
        false => candidate(Mechanism::OtherAlgorithm).into_iter().collect(),
    };
    let order = |verdict: &Verdict| match verdict {
        Verdict::Shown { .. } => 0,
        Verdict::Consistent => 1,
        Verdict::Contradicted(_) => 2,
    };
    candidates.sort_by(|a, b| {
        let size = |candidate: &Candidate| candidate.predicted.unwrap_or(0.0);
        order(&a.verdict).cmp(&order(&b.verdict)).then(size(b).total_cmp(&size(a)))
    });
    Answer { after: jump.after, relative: jump.relative, candidates }
}

/// The next batch size of the series.
fn next(case: &Case, after: f64) -> Option<f64> {
    case.findings.points.iter().map(|point| point.x).find(|x| *x > after)
}

/// Where it predicts what would have been seen, and nothing was.
fn unseen(case: &Case, mechanism: Mechanism, predictions: &Predictions) -> Vec<f64> {
    let Some(smallest) = case.findings.detectable else { return Vec::new() };
    let expected = |pair: &[crate::detect::Point]| {
        let found = case.findings.jumps.iter().any(|jump| jump.after == pair[0].x);
        let sum = predictions.step(mechanism, pair[0].x, pair[1].x).1;
        (!found && sum.is_some_and(|sum| sum >= smallest)).then_some(pair[0].x)
    };
    case.findings.points.windows(2).filter_map(expected).collect()
}

/// What another series of the run says, in which one setting is changed and the mechanism predicts no step there.
fn intervention(
    at: usize,
    mechanism: Mechanism,
    jump: &Jump,
    cases: &[Case],
    predictions: &[Predictions],
) -> Option<Verdict> {
    let (case, next) = (&cases[at], next(&cases[at], jump.after)?);
    let predicted = predictions[at].step(mechanism, jump.after, next).1?;
    let mut shown = None;
    for (other_at, other) in cases.iter().enumerate() {
        let Some((setting, value)) = one_change(case, other) else { continue };
        let left = predictions[other_at].step(mechanism, jump.after, next).1.unwrap_or(0.0);
        let measured = |x: f64| other.findings.points.iter().find(|point| point.x == x);
        let (Some(before), Some(_)) = (measured(jump.after), measured(next)) else { continue };
        if left >= GONE * predicted {
            continue;
        }
        let there = other.findings.jumps.iter().find(|found| found.after == jump.after);
        match there {
            Some(found) if found.size * jump.size.signum() >= SAME * jump.size.abs() => {
                let why = format!("with {setting} = {value} it predicts no step there, and the jump stays");
                return Some(Verdict::Contradicted(why));
            }
            // What is left of it may be another mechanism's: it counts as gone where the intervals are apart.
            Some(found) => {
                let [most, least] = [found.low.abs().max(found.high.abs()), jump.low.abs().min(jump.high.abs())];
                if most < least {
                    shown = Some(Verdict::Shown { setting, value });
                }
            }
            None if other.findings.detectable.is_some_and(|smallest| smallest * before.fit <= jump.size.abs()) => {
                shown = Some(Verdict::Shown { setting, value });
            }
            None => {}
        }
    }
    shown
}

/// The one axis in which two series of a network on an engine differ, and its value in the other.
fn one_change(case: &Case, other: &Case) -> Option<(String, String)> {
    let (own, others) = (case.setup?, other.setup?);
    if own.engine != others.engine || own.network != others.network {
        return None;
    }
    let mut changed = AXES.iter().filter(|axis| (axis.get)(own.settings) != (axis.get)(others.settings));
    let (axis, more) = (changed.next()?, changed.next());
    more.is_none().then(|| (axis.key.to_owned(), axis.value_label((axis.get)(others.settings))))
}

/// Contradicted where the layers were timed, others make the jump, and none of the mechanism's does.
fn other_layers(case: &Case, jump: &Jump, places: &[Place]) -> Option<Verdict> {
    let explained = case.causes.iter().find(|explanation| explanation.after == jump.after && explanation.timed)?;
    let is_own = |layer: &str, direction: &str| places.iter().any(|p| p.layer == layer && p.direction == direction);
    let (mut own, mut others) = (false, 0.0);
    for cause in &explained.layers {
        let Some(step) = cause.step else { continue };
        match is_own(&cause.layer, &cause.direction) {
            true => own |= step.share > 0.0,
            false => others += step.share,
        }
    }
    (!own && others >= MOST)
        .then(|| Verdict::Contradicted("other layers make the jump, and its own show no step".to_owned()))
}

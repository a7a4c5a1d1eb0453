//! The evidence for and against a mechanism at a jump.

use super::predict::Predictions;
use super::{AffectedLayer, Candidate, Intervention, JumpCandidates, KnownSeries, Verdict};
use crate::analysis::mechanisms::formulas::Mechanism;
use crate::detect::{Candidate as Boundary, Findings, Jump, Rejection};
use crate::settings::AXES;

/// A setting removes a mechanism's step where less than this part of the step is left.
const GONE: f64 = 0.25;

/// A jump of another series counts as the same jump where it has at least this part of its size.
const SAME: f64 = 0.5;

/// Other layers cause a jump where their own steps add up to at least this part of it and the mechanism's layers show
/// no step. A mechanism whose upper bound is below this part of the jump does not cause it.
const MOST: f64 = 0.5;

/// Points that a place needs on each side to be judged.
const SIDE: usize = 4;

/// A place this near to one that the detector doubts is doubtful too.
const NEAR: f64 = 2.0;

pub(super) fn jump(at: usize, jump: &Jump, cases: &[KnownSeries], predictions: &[Predictions]) -> JumpCandidates {
    let case = &cases[at];
    let next = next(case, jump.after);
    let candidate = |mechanism: Mechanism| {
        let (places, predicted) = predictions[at].candidate(mechanism, jump.after, next?)?;
        let verdict = intervention(at, mechanism, jump, cases, predictions)
            .or_else(|| too_small(mechanism, predicted, jump))
            .or_else(|| other_layers(case, jump, &places))
            .unwrap_or(Verdict::Consistent);
        let (unseen, unjudged) = elsewhere(case, mechanism, &predictions[at]);
        Some(Candidate { mechanism, places, predicted, unseen, unjudged, verdict })
    };
    let candidates = Mechanism::ALL.into_iter().filter(|mechanism| jump.size > 0.0 || mechanism.may_be_faster());
    let mut candidates: Vec<Candidate> = candidates.filter_map(candidate).collect();
    let order = |verdict: &Verdict| match verdict {
        Verdict::Shown { .. } => 0,
        Verdict::Consistent => 1,
        Verdict::Contradicted(_) => 2,
    };
    // Expected sizes come before upper bounds.
    candidates.sort_by(|a, b| {
        let size = |candidate: &Candidate| candidate.predicted.unwrap_or(0.0);
        let rank = |candidate: &Candidate| (order(&candidate.verdict), candidate.mechanism.is_bound());
        rank(a).cmp(&rank(b)).then(size(b).total_cmp(&size(a)))
    });
    JumpCandidates { after: jump.after, relative: jump.relative, candidates }
}

/// The next batch size of the series.
fn next(case: &KnownSeries, after: f64) -> Option<f64> {
    case.findings.points.iter().map(|point| point.x).find(|x| *x > after)
}

/// The places where it predicts a step that would have been seen but was not, and the places that the detector could
/// not judge.
fn elsewhere(case: &KnownSeries, mechanism: Mechanism, predictions: &Predictions) -> (Vec<f64>, Vec<f64>) {
    let Some(smallest) = case.findings.detectable.filter(|_| !mechanism.is_bound()) else { return Default::default() };
    let (mut unseen, mut unjudged) = (Vec::new(), Vec::new());
    for pair in case.findings.points.windows(2) {
        let (after, next) = (pair[0].x, pair[1].x);
        let sum = predictions.step(mechanism, after, next).1;
        let Some(sum) = sum.filter(|sum| *sum >= smallest) else { continue };
        if case.findings.jumps.iter().any(|jump| jump.after == after) {
            continue;
        }
        match can_be_judged(case.findings, after, sum * pair[0].fit) {
            true => unseen.push(after),
            false => unjudged.push(after),
        }
    }
    (unseen, unjudged)
}

/// Whether "no jump of about `size` was found" says something about the place after `after`. It says nothing near an
/// end; where a boundary looked like a jump and failed a test other than that of its size, since it may be a smaller
/// step; beside something about as large (such a boundary, a point off the curve, or a place of the period that its
/// neighbours do not confirm); and among the possible places of such a jump.
fn can_be_judged(findings: &Findings, after: f64, size: f64) -> bool {
    let before = findings.points.iter().filter(|point| point.x <= after).count();
    let near = |x: f64| (x - after).abs() <= NEAR;
    let as_large = |other: f64| other.abs() >= SAME * size;
    let beside = |one: &Boundary| one.after == after || near(one.after) && as_large(one.size);
    let doubted = findings.rejected.iter().any(|one| beside(one) && !is_small(&one.reason));
    let off = findings.points.iter().any(|point| point.off && near(point.x) && as_large(point.center - point.fit));
    let within = |jump: &Jump| (jump.after_low..=jump.after_high).contains(&after) && as_large(jump.size);
    let unconfirmed = findings.period.as_ref().is_some_and(|period| {
        let of_it = |jump: &&Jump| period.explains.contains(&jump.after);
        let largest = findings.jumps.iter().filter(of_it).map(|jump| jump.size.abs()).fold(0.0, f64::max);
        as_large(largest) && period.unconfirmed.iter().any(|&x| near(x))
    });
    let has_sides = before >= SIDE && findings.points.len() - before >= SIDE;
    has_sides && !doubted && !off && !unconfirmed && !findings.jumps.iter().any(within)
}

/// Whether the boundary was judged and its step is too small to count.
fn is_small(reason: &Rejection) -> bool {
    matches!(reason, Rejection::BelowSmallestJump { .. } | Rejection::Rounded { .. } | Rejection::BelowThreshold { .. })
}

/// What is left of a jump in another series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    /// No jump, where one of that size would have been seen.
    Nothing,
    /// Less than half of it, with an interval that does not overlap the jump's.
    Part,
    Most,
    /// It cannot be judged.
    Unknown,
}

fn left(jump: &Jump, next: f64, other: &Findings) -> Left {
    let measured = |x: f64| other.points.iter().find(|point| point.x == x);
    let (Some(before), Some(_)) = (measured(jump.after), measured(next)) else { return Left::Unknown };
    match other.jumps.iter().find(|found| found.after == jump.after) {
        Some(found) if found.size * jump.size.signum() >= SAME * jump.size.abs() => Left::Most,
        // The rest may come from another mechanism: it counts as a part where the intervals do not overlap.
        Some(found) => {
            let [most, least] = [found.low.abs().max(found.high.abs()), jump.low.abs().min(jump.high.abs())];
            if most < least { Left::Part } else { Left::Unknown }
        }
        None => {
            let seen = other.detectable.is_some_and(|smallest| smallest * before.fit <= jump.size.abs());
            if seen && can_be_judged(other, jump.after, jump.size.abs()) { Left::Nothing } else { Left::Unknown }
        }
    }
}

/// The evidence of another series of the run, in which one setting is changed so that the mechanism predicts no step
/// there.
fn intervention(
    at: usize,
    mechanism: Mechanism,
    jump: &Jump,
    cases: &[KnownSeries],
    predictions: &[Predictions],
) -> Option<Verdict> {
    let (case, next) = (&cases[at], next(&cases[at], jump.after)?);
    let mut shown = None;
    for (other_at, other) in cases.iter().enumerate() {
        let Some((setting, value)) = one_change(case, other) else { continue };
        if !takes_away([&predictions[at], &predictions[other_at]], mechanism, jump.after, next) {
            continue;
        }
        match left(jump, next, other.findings) {
            Left::Most => {
                let why = format!("with {setting} = {value} it predicts no step there, and the jump stays");
                return Some(Verdict::Contradicted(why));
            }
            Left::Nothing | Left::Part => shown = Some(Verdict::Shown { setting, value }),
            Left::Unknown => {}
        }
    }
    shown
}

/// Whether the mechanism predicts a step in the first series, and none or only a small part of it in the second. Where
/// it predicts no size, no layer of the second series may have a step.
fn takes_away(of: [&Predictions; 2], mechanism: Mechanism, after: f64, next: f64) -> bool {
    let [(places, own), (others, other)] = of.map(|predictions| predictions.step(mechanism, after, next));
    match own {
        Some(own) => other.unwrap_or(0.0) < GONE * own,
        None => !places.is_empty() && others.is_empty(),
    }
}

/// What is left of a series' jumps in each other series of the run that differs in one setting.
pub(super) fn interventions(at: usize, cases: &[KnownSeries]) -> Vec<Intervention> {
    let case = &cases[at];
    let of = |other: &KnownSeries| {
        let (setting, value) = one_change(case, other)?;
        let mut made = Intervention { setting, value, gone: vec![], smaller: vec![], stay: vec![], unjudged: vec![] };
        for jump in &case.findings.jumps {
            let left = next(case, jump.after).map_or(Left::Unknown, |next| left(jump, next, other.findings));
            let of_kind = match left {
                Left::Nothing => &mut made.gone,
                Left::Part => &mut made.smaller,
                Left::Most => &mut made.stay,
                Left::Unknown => &mut made.unjudged,
            };
            of_kind.push(jump.after);
        }
        (!case.findings.jumps.is_empty()).then_some(made)
    };
    cases.iter().filter_map(of).collect()
}

/// The one axis in which two series of the same network and engine differ, and its value in the other series.
fn one_change(case: &KnownSeries, other: &KnownSeries) -> Option<(String, String)> {
    let (own, others) = (case.setup?, other.setup?);
    if own.engine != others.engine || own.network != others.network {
        return None;
    }
    let mut changed = AXES.iter().filter(|axis| (axis.get)(own.settings) != (axis.get)(others.settings));
    let (axis, more) = (changed.next()?, changed.next());
    more.is_none().then(|| (axis.key.to_owned(), axis.value_label((axis.get)(others.settings))))
}

/// Contradicted where the mechanism can cause at most a small part of the jump.
fn too_small(mechanism: Mechanism, at_most: Option<f64>, jump: &Jump) -> Option<Verdict> {
    let small = mechanism.is_bound() && at_most? < MOST * jump.relative.abs();
    small.then(|| Verdict::Contradicted("the most that it can make is less than half of the jump".to_owned()))
}

/// Contradicted where the layers were timed, other layers cause the jump, and none of the mechanism's layers does.
fn other_layers(case: &KnownSeries, jump: &Jump, places: &[AffectedLayer]) -> Option<Verdict> {
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

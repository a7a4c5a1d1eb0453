//! The evidence for and against a mechanism at a jump.

use super::predict::Predictions;
use super::{AffectedLayer, Candidate, Intervention, JumpCandidates, KnownSeries, LEAST, Verdict};
use crate::analysis::mechanisms::formulas::Mechanism;
use crate::detect::{Candidate as Boundary, Findings, Jump, Rejection};
use crate::settings::{AXES, Text, Value, members};

/// A setting removes a mechanism's step where less than this part of the step is left.
const GONE: f64 = 0.25;

/// A jump of another series counts as the same jump where it has at least this part of its size, and at most its inverse.
const SAME: f64 = 0.5;

/// The same for the sizes as parts of the step time, which a setting leaves alone if it makes the whole step faster or slower.
/// It must fit better: in this measure jumps of different causes are less far apart.
const SAME_PART: f64 = 2.0 / 3.0;

/// Other layers cause a jump where their own steps add up to at least this part of it and the mechanism's layers show
/// no step, or next to none. A mechanism whose size or upper bound is below this part of the jump does not cause it.
const MOST: f64 = 0.5;

/// Points that a place needs on each side to be judged.
const SIDE: usize = 4;

/// A place this near to one that the detector doubts is doubtful too.
const NEAR: f64 = 2.0;

pub(super) fn jump(at: usize, jump: &Jump, cases: &[KnownSeries], predictions: &[Predictions]) -> JumpCandidates {
    let case = &cases[at];
    let next = next(case, jump.after);
    let candidate = |mechanism: Mechanism| {
        let (places, predicted) = predictions[at].step(mechanism, jump.after, next?);
        if places.is_empty() || predicted.is_some_and(|sum| sum < LEAST) {
            return None;
        }
        let steps = measured(case, jump.after, &places);
        let verdict = intervention(at, mechanism, jump, cases, predictions)
            .or_else(|| too_small(mechanism, predicted, jump))
            .or_else(|| other_layers(mechanism, predicted, steps?, jump))
            .unwrap_or(Verdict::Consistent);
        let (unseen, unjudged) = elsewhere(case, mechanism, &predictions[at]);
        let may_make_most = may_make_most(predicted, steps, jump);
        Some(Candidate { mechanism, places, predicted, may_make_most, unseen, unjudged, verdict })
    };
    let mut candidates: Vec<Candidate> = mechanisms(jump).filter_map(candidate).collect();
    let order = |verdict: &Verdict| match verdict {
        Verdict::Shown { .. } => 0,
        Verdict::Consistent => 1,
        Verdict::Contradicted(_) => 2,
    };
    // Those that are too small for the jump come last, and expected sizes before upper bounds.
    candidates.sort_by(|a, b| {
        let size = |candidate: &Candidate| candidate.predicted.unwrap_or(0.0);
        let rank = |candidate: &Candidate| {
            (order(&candidate.verdict), !candidate.may_make_most, candidate.mechanism.is_bound())
        };
        rank(a).cmp(&rank(b)).then(size(b).total_cmp(&size(a)))
    });
    JumpCandidates { after: jump.after, relative: jump.relative, candidates }
}

/// The mechanisms that may make such a jump.
fn mechanisms(jump: &Jump) -> impl Iterator<Item = Mechanism> {
    let is_slower = jump.size > 0.0;
    Mechanism::ALL.iter().copied().filter(move |mechanism| is_slower || mechanism.may_be_faster())
}

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
    /// The same jump.
    Most,
    /// A larger one, which is not known to be the same.
    Larger,
    /// It cannot be judged.
    Unknown,
}

fn left(jump: &Jump, next: f64, other: &Findings) -> Left {
    let measured = |x: f64| other.points.iter().find(|point| point.x == x);
    let (Some(before), Some(_)) = (measured(jump.after), measured(next)) else { return Left::Unknown };
    if let Some(found) = other.jumps.iter().find(|found| found.after == jump.after) {
        return left_of(jump, found);
    }
    // If the setting makes the whole step faster, so it does the jump.
    let size = jump.size.abs().min(jump.relative.abs() * before.fit);
    let seen = other.detectable.is_some_and(|smallest| smallest * before.fit <= size);
    if seen && can_be_judged(other, jump.after, size) { Left::Nothing } else { Left::Unknown }
}

/// What is left of a jump where the other series has one too. They are the same jump if they agree as times or as parts of the
/// step time. A part is less than half of it by both, since the rest may come from another mechanism, and the intervals do not
/// overlap by either.
fn left_of(jump: &Jump, found: &Jump) -> Left {
    let [time, part] = [found.size / jump.size, found.relative / jump.relative];
    let most = found.low.abs().max(found.high.abs()) * (part / time).max(1.0);
    let least = jump.low.abs().min(jump.high.abs());
    if (SAME..=1.0 / SAME).contains(&time) || (SAME_PART..=1.0 / SAME_PART).contains(&part) {
        Left::Most
    } else if time.min(part) > 1.0 {
        Left::Larger
    } else if time.abs().max(part.abs()) < SAME && most < least {
        Left::Part
    } else {
        Left::Unknown
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
        let of = [&predictions[at], &predictions[other_at]];
        if !takes_away(of, mechanism, jump.after, next) {
            continue;
        }
        match left(jump, next, other.findings) {
            Left::Most if !brings_another(of, mechanism, other, [jump.after, next]) => {
                let why = format!("with {setting} = {value} it predicts no step there, and the jump stays");
                return Some(Verdict::Contradicted(why));
            }
            Left::Nothing | Left::Part => shown = Some(Verdict::Shown { setting, value }),
            Left::Most | Left::Larger | Left::Unknown => {}
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

/// Whether the setting brings the jump of the second series: another mechanism whose step there grows by half of that jump or more,
/// or, if it predicts no size, is in a layer that has no such step in the first series.
fn brings_another(of: [&Predictions; 2], mechanism: Mechanism, other: &KnownSeries, [after, next]: [f64; 2]) -> bool {
    let Some(found) = other.findings.jumps.iter().find(|found| found.after == after) else { return false };
    let brings = |another: Mechanism| {
        let [(known, before), (mut places, size)] = of.map(|predictions| predictions.step(another, after, next));
        if size.is_none() {
            places.retain(|place| !contains(&known, &place.layer, &place.direction));
        }
        let grown = size.map(|size| size - before.unwrap_or(0.0));
        !places.is_empty() && may_make_most(grown, measured(other, after, &places), found)
    };
    mechanisms(found).filter(|another| *another != mechanism).any(brings)
}

/// What is left of a series' jumps in each other series of the run that differs in one setting.
pub(super) fn interventions(at: usize, cases: &[KnownSeries]) -> Vec<Intervention> {
    let case = &cases[at];
    let of = |other: &KnownSeries| {
        let (setting, value) = one_change(case, other)?;
        let mut made = Intervention { setting, value, ..Intervention::default() };
        for jump in &case.findings.jumps {
            let left = next(case, jump.after).map_or(Left::Unknown, |next| left(jump, next, other.findings));
            let of_kind = match left {
                Left::Nothing => &mut made.gone,
                Left::Part => &mut made.smaller,
                Left::Most => &mut made.stay,
                Left::Larger => &mut made.larger,
                Left::Unknown => &mut made.unjudged,
            };
            of_kind.push(jump.after);
        }
        (!case.findings.jumps.is_empty()).then_some(made)
    };
    cases.iter().filter_map(of).collect()
}

/// The one setting in which two series of the same network and engine differ, and its value in the other series: an axis, or one
/// of the arguments or of the variables of a step of one's own.
fn one_change(case: &KnownSeries, other: &KnownSeries) -> Option<(String, String)> {
    let (own, others) = (case.setup?, other.setup?);
    if own.engine != others.engine || own.network != others.network {
        return None;
    }
    let mut changed = AXES.iter().filter(|axis| (axis.get)(own.settings) != (axis.get)(others.settings));
    let (axis, more) = (changed.next()?, changed.next());
    if more.is_some() {
        return None;
    }
    match [own, others].map(|of| (axis.get)(of.settings)) {
        [Value::Text(own), Value::Text(others)] => one_member(own, others),
        [_, value] => Some((axis.key.to_owned(), axis.value_label(value))),
    }
}

/// The one member in which two objects of the same names differ, and its value in the second.
fn one_member(own: Text, others: Text) -> Option<(String, String)> {
    let [own, others] = [own, others].map(|text| members(text.as_str()));
    let same_names = own.iter().map(|(name, _)| name).eq(others.iter().map(|(name, _)| name));
    let mut changed = others.into_iter().filter(|member| !own.contains(member));
    let ((name, value), more) = (changed.next()?, changed.next());
    let value = match value {
        serde_json::Value::Null => "not set".to_owned(),
        serde_json::Value::String(text) => text,
        number => number.to_string(),
    };
    (same_names && more.is_none()).then_some((name, value))
}

/// Whether its steps may be half of the jump or more: by its own prediction, and by the measured steps of its layers where those of
/// other layers are.
fn may_make_most(predicted: Option<f64>, steps: Option<[f64; 2]>, jump: &Jump) -> bool {
    let is_large = predicted.is_none_or(|size| size >= MOST * jump.relative.abs());
    is_large && steps.is_none_or(|[own, others]| own >= MOST || others < MOST)
}

/// Contradicted where the mechanism can cause at most a small part of the jump.
fn too_small(mechanism: Mechanism, at_most: Option<f64>, jump: &Jump) -> Option<Verdict> {
    let small = mechanism.is_bound() && at_most? < MOST * jump.relative.abs();
    small.then(|| Verdict::Contradicted("the most that it can make is less than half of the jump".to_owned()))
}

/// The parts of a jump that the measured steps of the layers at `places` and of all others make up; `None` where the layers were
/// not timed.
fn measured(case: &KnownSeries, after: f64, places: &[AffectedLayer]) -> Option<[f64; 2]> {
    let explained = case.causes.iter().find(|explanation| explanation.after == after && explanation.timed)?;
    let mut steps = [0.0; 2];
    for cause in &explained.layers {
        let is_other = !contains(places, &cause.layer, &cause.direction);
        steps[usize::from(is_other)] += cause.step.map_or(0.0, |step| step.share);
    }
    Some(steps)
}

fn contains(places: &[AffectedLayer], layer: &str, direction: &str) -> bool {
    places.iter().any(|place| place.layer == layer && place.direction == direction)
}

/// Contradicted where other layers cause the jump, and the mechanism's layers show no step, or a small part of the one that it
/// predicts. Where it predicts no size, or only the most, that is the jump.
fn other_layers(mechanism: Mechanism, predicted: Option<f64>, [own, others]: [f64; 2], jump: &Jump) -> Option<Verdict> {
    let predicted = predicted.filter(|_| !mechanism.is_bound());
    let expected = predicted.map_or(1.0, |size| (size / jump.relative.abs()).min(1.0));
    let why = "other layers make the jump, and its own show no step or a small one";
    (others >= MOST && own < GONE * expected).then(|| Verdict::Contradicted(why.to_owned()))
}

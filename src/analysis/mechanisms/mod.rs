//! Which mechanisms predict a step where a jump was found, and what speaks for and against each.
//!
//! A mechanism's work for a layer is compared from one batch size to the next. What it grows by beyond the share of one
//! example is the step that the mechanism predicts in that layer; multiplied by the layer's share of the step time, it
//! is the predicted step of the whole. It is an assumption that the time follows the work, so a mechanism whose
//! prediction fits is only [`Verdict::Consistent`]. It is [`Verdict::Shown`] where the same run has the series again
//! with one setting changed that removes the mechanism's step, and the jump is gone; [`Verdict::Contradicted`] where
//! the jump is still there and no other mechanism has taken the place of this one, or where other layers cause it.

pub mod copying;
pub mod formulas;
mod judge;
mod machine;
mod of_run;
mod predict;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::Serialize;

use super::Series;
use super::causes::Explanation;
use crate::analysis::mechanisms::formulas::Mechanism;
use crate::detect::{Early, Findings};
use crate::network::Network;
use crate::settings::{EngineName, Settings};
use crate::store::LayerRow;
use copying::Copying;
pub use machine::MachineMemory;
pub use of_run::of_run;

/// A predicted step below this part of the step time counts as none.
pub const LEAST: f64 = 0.005;

/// What a series ran.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'a> {
    pub engine: EngineName,
    pub network: &'a Network,
    pub settings: &'a Settings,
    pub machine: &'a MachineMemory,
}

/// A series with everything that is known about it.
#[derive(Clone, Copy, Debug)]
pub struct KnownSeries<'a> {
    pub series: &'a Series,
    pub findings: &'a Findings,
    /// `None` where the run's plan does not say it; then nothing is predicted.
    pub setup: Option<Setup<'a>>,
    /// The measured steps of its layers, for each jump.
    pub causes: &'a [Explanation],
}

/// A layer in one direction in which a mechanism predicts a step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AffectedLayer {
    pub layer: String,
    pub direction: String,
    /// The layer's share of the step time before the jump: measured, or by arithmetic where the layers were not timed.
    pub share: f64,
    /// The layer's step, as a part of the whole step time; an upper bound where the mechanism is one; `None` where it
    /// predicts no size.
    pub predicted: Option<f64>,
    /// The numbers behind the prediction, where the formula does not give all of them.
    pub detail: Option<String>,
}

/// A mechanism that predicts a step at a jump.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    pub mechanism: Mechanism,
    /// The largest first.
    pub places: Vec<AffectedLayer>,
    /// The sum over all places, as a part of the step time; `None` where no size is predicted.
    pub predicted: Option<f64>,
    /// Whether its steps may be half of the jump or more, by its prediction and by what was measured of the layers.
    pub may_make_most: bool,
    /// Batch sizes after which it predicts a step that is large enough to be seen but was not found.
    pub unseen: Vec<f64>,
    /// Such batch sizes at which the detector cannot say that there is no jump: near the ends, beside disturbed points,
    /// or where a boundary looked like a jump but was not confirmed.
    pub unjudged: Vec<f64>,
    pub verdict: Verdict,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// With one setting changed, the mechanism's step is gone, and so is the jump, or all of it except a part whose
    /// interval does not overlap the jump's.
    Shown { setting: String, value: String },
    /// It predicts a step there, and nothing speaks against it.
    Consistent,
    /// The reason, as a clause.
    Contradicted(String),
}

impl Verdict {
    pub fn name(&self) -> &'static str {
        match self {
            Self::Shown { .. } => "shown by intervention",
            Self::Consistent => "consistent",
            Self::Contradicted(_) => "contradicted",
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct JumpCandidates {
    pub after: f64,
    pub relative: f64,
    /// The candidates, those with more evidence first.
    pub candidates: Vec<Candidate>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Answers {
    pub jumps: Vec<JumpCandidates>,
    /// The mechanisms that predict a step at jumps of the period, and at how many.
    pub period: Vec<PeriodAnswer>,
    /// What is left of the jumps in each other series of the run that differs in one setting.
    pub interventions: Vec<Intervention>,
    /// Whether the layers' shares were measured.
    pub timed: bool,
    /// Layers with weights for which no mechanism predicts anything.
    pub unknown: Vec<String>,
    /// How the copies of the batch relate to the jumps, where the batch crosses a link.
    pub copying: Option<Copying>,
    /// Why nothing was searched, where too little has been measured so far.
    pub early: Option<Early>,
}

/// What changing one setting does to the jumps of a series (given by their `after`), whatever their mechanism.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Intervention {
    /// The key of an axis, or the name of an argument or of a variable of the environment.
    pub setting: String,
    /// The setting's value in the other series.
    pub value: String,
    /// No jump is left there, and one of that size would have been seen.
    pub gone: Vec<f64>,
    /// Less than half is left, as a time and as a part of the step time, and the intervals do not overlap.
    pub smaller: Vec<f64>,
    /// Half to twice of the time is left, or two thirds to one and a half of the part of the step time.
    pub stay: Vec<f64>,
    /// There is a larger one.
    pub larger: Vec<f64>,
    /// Jumps that cannot be judged there.
    pub unjudged: Vec<f64>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct PeriodAnswer {
    pub mechanism: Mechanism,
    /// Jumps of the period at which it predicts a step. Among these: the jumps at which an intervention has shown it, and
    /// the jumps at which something contradicts it.
    pub jumps: usize,
    pub shown: usize,
    pub contradicted: usize,
    /// As [`Candidate::unseen`] and [`Candidate::unjudged`].
    pub unseen: Vec<f64>,
    pub unjudged: Vec<f64>,
}

/// The answers for each case. The cases of one run are compared with each other. `copies` are the seconds that each
/// cell's batch took to copy.
pub fn explain(cases: &[KnownSeries], layers: &[LayerRow], copies: &BTreeMap<i64, f64>) -> Vec<Answers> {
    let predictions: Vec<predict::Predictions> = cases.iter().map(|case| predict::of(case, layers)).collect();
    let answers = |at: usize| {
        let case = &cases[at];
        let answer = |jump| judge::jump(at, jump, cases, &predictions);
        let jumps: Vec<JumpCandidates> = case.findings.jumps.iter().map(answer).collect();
        let period = period(case.findings, &jumps);
        let interventions = judge::interventions(at, cases);
        let predict::Predictions { timed, ref unknown, .. } = predictions[at];
        let early = case.findings.early;
        let setup = case.setup.filter(|_| early.is_none());
        let copying = setup.and_then(|setup| copying::of(case.series, case.findings, setup, copies));
        Answers { jumps, period, interventions, timed, unknown: unknown.clone(), copying, early }
    };
    (0..cases.len()).map(answers).collect()
}

fn period(findings: &Findings, jumps: &[JumpCandidates]) -> Vec<PeriodAnswer> {
    let Some(period) = &findings.period else { return Vec::new() };
    let mut found: BTreeMap<Mechanism, PeriodAnswer> = BTreeMap::new();
    for answer in jumps.iter().filter(|answer| period.explains.contains(&answer.after)) {
        for candidate in &answer.candidates {
            let mechanism = candidate.mechanism;
            let (unseen, unjudged) = (candidate.unseen.clone(), candidate.unjudged.clone());
            let entry = found.entry(mechanism).or_insert(PeriodAnswer {
                mechanism,
                jumps: 0,
                shown: 0,
                contradicted: 0,
                unseen,
                unjudged,
            });
            entry.jumps += 1;
            entry.shown += usize::from(matches!(candidate.verdict, Verdict::Shown { .. }));
            entry.contradicted += usize::from(matches!(candidate.verdict, Verdict::Contradicted(_)));
        }
    }
    let mut found: Vec<PeriodAnswer> = found.into_values().collect();
    found.sort_by_key(|answer| (std::cmp::Reverse(answer.shown), std::cmp::Reverse(answer.jumps)));
    found
}

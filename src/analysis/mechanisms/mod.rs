//! Which mechanisms predict a step where a jump was found, and what speaks for and against each.
//!
//! A mechanism's work for a layer is compared from one batch size to the next; what it grows by beyond its share for one example is the
//! step that it predicts in that layer, and with the layer's share of the step time the step that it predicts in the whole. That the
//! time follows the work is an assumption, so a mechanism whose prediction fits is no more than [`Verdict::Consistent`]. It is
//! [`Verdict::Shown`] where the same run has the series once more, with one setting changed that takes the mechanism's step away, and
//! the jump is gone; [`Verdict::Contradicted`] where the jump is there all the same, or where other layers make it.

pub mod copying;
mod judge;
mod machine;
mod predict;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::Series;
use super::causes::Explanation;
use crate::detect::{Early, Findings};
use crate::mechanism::Mechanism;
use crate::network::Network;
use crate::settings::{EngineName, Settings};
use crate::store::LayerRow;
use copying::Copying;
pub use machine::Machine;

/// A predicted step that is a smaller part of the step time is none.
pub const LEAST: f64 = 0.005;

/// What a series executed.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'a> {
    pub engine: EngineName,
    pub network: &'a Network,
    pub settings: &'a Settings,
    pub machine: &'a Machine,
}

/// A series with all that is known of it.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    pub series: &'a Series,
    pub findings: &'a Findings,
    /// `None` where the plan of the run does not say it: nothing is predicted then.
    pub setup: Option<Setup<'a>>,
    /// The measured steps of its layers, for each jump.
    pub causes: &'a [Explanation],
}

/// A layer in one direction in which a mechanism predicts a step.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    pub layer: String,
    pub direction: String,
    /// Of the step time before the jump, as measured; by arithmetic where the layers were not timed.
    pub share: f64,
    /// The step in it, as a part of the whole step time, the most of it where the mechanism is a bound; `None` where it predicts no size.
    pub predicted: Option<f64>,
    /// The numbers behind it, where they are not those of the formula alone.
    pub detail: Option<String>,
}

/// A mechanism that predicts a step at a jump.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    pub mechanism: Mechanism,
    /// The largest first.
    pub places: Vec<Place>,
    /// All places together, as a part of the step time; `None` where no size is predicted.
    pub predicted: Option<f64>,
    /// Batch sizes after which it predicts a step as large as the smallest that would have been seen, and none was found.
    pub unseen: Vec<f64>,
    /// The same where the detector cannot say that there is no jump: near the ends, beside disturbed points, or where a boundary looked
    /// like a jump and was not confirmed.
    pub unjudged: Vec<f64>,
    pub verdict: Verdict,
}

/// What is known of a mechanism at a jump.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// With one setting changed, its step is gone, and so is the jump, or all but a part of it whose interval is apart from the jump's.
    Shown { setting: String, value: String },
    /// It predicts a step there, and nothing speaks against it.
    Consistent,
    /// The reason, as a clause.
    Contradicted(String),
}

impl Verdict {
    /// The stable name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Shown { .. } => "shown by intervention",
            Self::Consistent => "consistent",
            Self::Contradicted(_) => "contradicted",
        }
    }
}

/// One jump with its candidates.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    pub after: f64,
    pub relative: f64,
    /// Those with more evidence first.
    pub candidates: Vec<Candidate>,
}

/// One series.
#[derive(Clone, Debug, PartialEq)]
pub struct Answers {
    pub jumps: Vec<Answer>,
    /// For the period, the mechanisms that predict a step at jumps of it, and at how many.
    pub period: Vec<PeriodAnswer>,
    /// What became of the jumps in each other series of the run that differs in one setting.
    pub interventions: Vec<Intervention>,
    /// Whether the layers' shares were measured.
    pub timed: bool,
    /// Layers with weights that no mechanism predicts anything for.
    pub unknown: Vec<String>,
    /// What the copies of the batch have to do with the jumps, where it crosses a link.
    pub copying: Option<Copying>,
    /// Why nothing was searched, where too little is measured yet.
    pub early: Option<Early>,
}

/// What one setting, changed, does to the jumps of a series, by their `after`: whatever their mechanism.
#[derive(Clone, Debug, PartialEq)]
pub struct Intervention {
    pub setting: String,
    /// In the other series.
    pub value: String,
    /// No jump is left there, and one of that size would have been seen.
    pub gone: Vec<f64>,
    /// Less than half is left, with an interval apart.
    pub smaller: Vec<f64>,
    /// Half or more is left.
    pub stay: Vec<f64>,
    /// That cannot be judged there.
    pub unjudged: Vec<f64>,
}

/// A mechanism beside a period.
#[derive(Clone, Debug, PartialEq)]
pub struct PeriodAnswer {
    pub mechanism: Mechanism,
    /// Jumps of the period at which it predicts a step, and those of them at which an intervention has shown it, or something
    /// contradicts it.
    pub jumps: usize,
    pub shown: usize,
    pub contradicted: usize,
    /// As [`Candidate::unseen`] and [`Candidate::unjudged`].
    pub unseen: Vec<f64>,
    pub unjudged: Vec<f64>,
}

/// For each case its answers. The cases of one run are compared with each other. `copies` are the seconds that each cell's batch was
/// copied for, as [`copying::times`] reads them.
pub fn explain(cases: &[Case], layers: &[LayerRow], copies: &BTreeMap<i64, f64>) -> Vec<Answers> {
    let predictions: Vec<predict::Predictions> = cases.iter().map(|case| predict::of(case, layers)).collect();
    let answers = |at: usize| {
        let case = &cases[at];
        let answer = |jump| judge::jump(at, jump, cases, &predictions);
        let jumps: Vec<Answer> = case.findings.jumps.iter().map(answer).collect();
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

fn period(findings: &Findings, jumps: &[Answer]) -> Vec<PeriodAnswer> {
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

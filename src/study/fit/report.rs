//! A study of fits in the terminal: errors, setup and step times, and whether the engines agree.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::FitRow;
use super::results::{Agreement, FitCurve, Results, SAME};
use crate::report::{Answer, Column, Document, Ground, Table, Warning};
use crate::study::warning::{failed, not_finite};
use crate::units::human;

/// Everything that a study says. Empty without fits.
pub fn document(study: &Results) -> Document {
    let mut document = Document::default();
    if study.fits.is_empty() {
        return document;
    }
    document.heading("Fits (measured here)");
    document.table(table(study));
    document.text(
        "  setup: until the first step was ready (parameters, data, memory, compilation, search for algorithms), and what the first step took \
         longer than the median. Starting the engine itself is not in it.",
    );
    if !study.agreements.is_empty() {
        let mut agreements = Document::default();
        agreements.heading("Losses of the same seed (measured here)");
        study.agreements.iter().map(sentence).for_each(|line| agreements.text(format!("  {line}")));
        document.append(agreements);
    }
    document
}

fn table(study: &Results) -> Table {
    let mut table = Table::new([
        Column::left("fit"),
        Column::right("points"),
        Column::right("updates"),
        Column::right("error (MSE)"),
        Column::right("setup"),
        Column::right("step"),
        Column::right("all"),
        Column::right("setup's share"),
    ]);
    for fit in &study.fits {
        table.row([
            fit.name.clone(),
            human::count(fit.points as u64),
            human::count(fit.epochs() as u64),
            human::digits(fit.error()),
            human::seconds(fit.setup_s),
            human::seconds(fit.step_s),
            human::seconds(fit.total_s),
            human::percent(fit.setup_s / fit.total_s.max(f64::MIN_POSITIVE)),
        ]);
    }
    table
}

/// What the fits of each number of points end at. Errors of different training sets say nothing of one another.
pub fn answers(study: &Results) -> Vec<Answer> {
    let points: BTreeSet<usize> = study.fits.iter().map(|fit| fit.points).collect();
    points.into_iter().filter_map(|points| answer(study, points)).collect()
}

/// Only between tasks, such as optimizers, is one the best: a loss jumps from update to update, so that chance says which fit of one task ends lowest.
fn answer(study: &Results, points: usize) -> Option<Answer> {
    let mut tasks: BTreeMap<&str, Vec<&FitCurve>> = BTreeMap::new();
    for fit in study.fits.iter().filter(|fit| fit.points == points && fit.error().is_finite()) {
        tasks.entry(&fit.task).or_default().push(fit);
    }
    let mut tasks: Vec<FitTask> = tasks.into_values().map(FitTask::of).collect();
    tasks.sort_by(|a, b| a.highest.total_cmp(&b.highest));
    let (best, others) = tasks.split_first()?;
    let lowest = others.iter().map(|other| other.lowest).fold(f64::INFINITY, f64::min);
    let said = if others.is_empty() {
        best.sentence(study, points, "")
    } else if best.highest < lowest {
        best.sentence(study, points, ", the smallest of all settings")
    } else {
        let highest = tasks[tasks.len() - 1].highest;
        let [low, high] = [best.lowest.min(lowest), highest].map(human::digits);
        format!("no setting fits best: the errors at the end overlap, {low} to {high}")
    };
    let ground = |text| Ground { grade: "measured here".to_owned(), text };
    let grounds = study.agreements.iter().filter(|own| own.points == points).map(sentence).map(ground).collect();
    Some(Answer { sentence: format!("{}: {said}.", human::counted(points as u64, "point")), grounds })
}

/// The fits of one task to the same points.
struct FitTask<'a> {
    fits: Vec<&'a FitCurve>,
    /// Of their errors at the end.
    lowest: f64,
    highest: f64,
}

impl<'a> FitTask<'a> {
    fn of(fits: Vec<&'a FitCurve>) -> Self {
        let errors = || fits.iter().map(|fit| fit.error());
        Self { lowest: errors().fold(f64::INFINITY, f64::min), highest: errors().fold(0.0, f64::max), fits }
    }

    /// `cpu and torch have the same losses over 20 updates; errors at the end 0.182 to 0.189; cpu was the quickest, 267 ms`.
    fn sentence(&self, study: &Results, points: usize, remark: &str) -> String {
        let names: Vec<String> = self.fits.iter().map(|fit| fit.name.clone()).collect();
        let updates = |number: usize| human::counted(number as u64, "update");
        let (first, names) = (self.fits[0], human::listed(&names));
        let errors = match [self.lowest, self.highest].map(human::digits) {
            [low, high] if low == high => low,
            [low, high] => format!("{low} to {high}"),
        };
        if self.fits.len() == 1 {
            let (after, time) = (updates(first.epochs()), human::seconds(first.total_s));
            return format!("{names} ends at an error of {errors}{remark}, after {after}, in {time}");
        }
        let same = study.agreements.iter().filter(|own| {
            own.holds()
                && own.points == points
                && own.first == first.name
                && self.fits.iter().any(|fit| fit.name == own.second)
        });
        let same: Vec<usize> = same.map(|own| own.epochs).collect();
        let said = match same[..] {
            [epochs, ..] if same.len() + 1 == self.fits.len() => {
                format!("{names} have the same losses over {}; errors at the end {errors}{remark}", updates(epochs))
            }
            _ => format!("{names} end at errors of {errors}{remark}, after {}", updates(first.epochs())),
        };
        let quickest = self.fits.iter().copied().min_by(|a, b| a.total_s.total_cmp(&b.total_s)).unwrap_or(first);
        format!("{said}; {} was the quickest, {}", quickest.name, human::seconds(quickest.total_s))
    }
}

fn sentence(agreement: &Agreement) -> String {
    let Agreement { first, second, points, epochs, largest, errors } = agreement;
    let verdict = if agreement.holds() { "the same" } else { "NOT the same" };
    format!(
        "{second} and {first}, {}: {verdict} over {}: they differ by at most {} (allowed: {}). Errors at the end: {} and {}.",
        human::counted(*points as u64, "point"),
        human::counted(*epochs as u64, "update"),
        scientific(*largest),
        scientific(SAME),
        human::digits(errors[1]),
        human::digits(errors[0]),
    )
}

fn scientific(value: f64) -> String {
    format!("{value:.0e}")
}

/// The same as a document, version 1: `fit.json` of a run.
pub fn json(study: &Results) -> Value {
    let fit = |fit: &FitCurve| -> Value {
        json!({
            "fit": fit.name, "points": fit.points, "updates": fit.epochs(), "error": fit.error(),
            "setup_s": fit.setup_s, "step_s": fit.step_s, "total_s": fit.total_s,
        })
    };
    let agreement = |agreement: &Agreement| -> Value {
        json!({
            "first": agreement.first, "second": agreement.second, "points": agreement.points, "updates": agreement.epochs,
            "largest_difference": agreement.largest, "allowed": SAME, "same": agreement.holds(), "errors": agreement.errors,
        })
    };
    json!({
        "version": 1,
        "fits": study.fits.iter().map(fit).collect::<Vec<Value>>(),
        "agreements": study.agreements.iter().map(agreement).collect::<Vec<Value>>(),
    })
}

/// What a user should know about the study.
pub fn warnings(study: &Results) -> Vec<Warning> {
    let diverged = study.fits.iter().filter(|fit| !fit.error().is_finite()).count();
    [failed::<FitRow>(&study.failed), parted(study), not_finite(diverged)].into_iter().flatten().collect()
}

/// That losses part early from those of the same seed, and the first of them.
fn parted(study: &Results) -> Option<Warning> {
    let first = sentence(study.disagreements().next()?);
    let fits = match study.disagreements().count() {
        1 => "a fit".to_owned(),
        several => format!("{several} fits"),
    };
    let message = format!("the losses of {fits} differ from those of the same seed; the first: {first}");
    let remedy = "`batchstep selftest` finds an operator that is wrong; candle passes a rectifier's gradient on where its input is exactly 0, as in the \
                  middle of a grid with an odd side while biases are 0: fit an even number of points to a side";
    Some(Warning::OfStudy { message, remedy: remedy.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Style;

    fn study(largest: f64) -> Results {
        let fit = |name: &str, error: f64| FitCurve {
            name: name.into(),
            task: "adam".into(),
            points: 1600,
            losses: vec![3.0, 1.0, error],
            setup_s: 1.5,
            step_s: 0.25,
            total_s: 2.0,
        };
        let agreement = Agreement {
            first: "cpu".into(),
            second: "torch".into(),
            points: 1600,
            epochs: 2,
            largest,
            errors: [0.021, 0.022],
        };
        let fits = vec![fit("cpu", 0.021), fit("torch", 0.022)];
        Results { fits, agreements: vec![agreement], ..Results::default() }
    }

    #[test]
    fn setup_is_drawn_beside_the_step_and_curves_beside_each_other() {
        let text = document(&study(2e-6)).render(&Style::PLAIN);
        let tidy: Vec<String> = text.lines().map(|l| l.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert!(tidy.iter().any(|line| line == "torch 1,600 2 0.0220 1.50 s 250 ms 2.00 s 75 %"), "{text}");
        assert!(text.contains("torch and cpu, 1,600 points: the same over 2 updates"), "{text}");
        assert!(warnings(&study(2e-6)).is_empty());
        let document = json(&study(2e-6));
        assert_eq!((&document["agreements"][0]["same"], &document["fits"][1]["setup_s"]), (&json!(true), &json!(1.5)));
    }

    #[test]
    fn each_number_of_points_has_its_answer_and_a_best_only_between_tasks() {
        let said = |study: &Results| answers(study).into_iter().map(|answer| answer.sentence).collect::<Vec<_>>();
        let mut two = study(2e-6);
        two.fits[1].total_s = 1.0;
        let ends = "errors at the end 0.0210 to 0.0220; torch was the quickest, 1.00 s.";
        let alike = format!("1,600 points: cpu and torch have the same losses over 2 updates; {ends}");
        assert_eq!(said(&two), std::slice::from_ref(&alike));
        // Another training set with a smaller error.
        let alone = FitCurve { points: 16, losses: vec![3.0, 0.01], ..two.fits[0].clone() };
        two.fits.push(alone);
        assert_eq!(
            said(&two),
            ["16 points: cpu ends at an error of 0.0100, after 1 update, in 2.00 s.".to_owned(), alike]
        );
        // Losses that part are not called the same.
        let parted = "1,600 points: cpu and torch end at errors of 0.0210 to 0.0220, after 2 updates; cpu was the quickest, 2.00 s.";
        assert_eq!(said(&study(0.2)), [parted]);
        let with = |error: f64| {
            let mut both = study(2e-6);
            let sgd = FitCurve {
                name: "cpu, sgd".into(),
                task: "sgd".into(),
                losses: vec![3.0, 1.0, error],
                ..both.fits[0].clone()
            };
            both.fits.push(sgd);
            said(&both).remove(0)
        };
        assert!(
            with(0.05).contains("errors at the end 0.0210 to 0.0220, the smallest of all settings; cpu was"),
            "{}",
            with(0.05)
        );
        assert_eq!(
            with(0.0215),
            "1,600 points: no setting fits best: the errors at the end overlap, 0.0210 to 0.0220."
        );
        let third = "1,600 points: cpu, sgd ends at an error of 0.0150, the smallest of all settings, after 2 updates, in 2.00 s.";
        assert_eq!(with(0.015), third);
    }

    #[test]
    fn curves_that_part_early_are_a_warning() {
        let warnings = warnings(&study(0.2));
        let said = warnings[0].to_string();
        assert_eq!(warnings.len(), 1);
        assert!(
            ["the losses of a fit differ", "NOT the same", "torch and cpu"].iter().all(|part| said.contains(part)),
            "{said}"
        );
    }
}

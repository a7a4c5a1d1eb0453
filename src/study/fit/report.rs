//! A study of fits in the terminal: errors, setup and step times, and whether the engines agree.

use serde_json::{Value, json};

use super::results::{Agreement, Results, SAME};
use crate::report::{Answer, Column, Document, Ground, Table, Warning};
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

/// The fit with the smallest error at its end; `None` without fits.
pub fn answer(study: &Results) -> Option<Answer> {
    let best =
        study.fits.iter().filter(|fit| fit.error().is_finite()).min_by(|a, b| a.error().total_cmp(&b.error()))?;
    let sentence = format!(
        "{} fits {} best: error {} after {}, in {}.",
        best.name,
        human::counted(best.points as u64, "point"),
        human::digits(best.error()),
        human::counted(best.epochs() as u64, "update"),
        human::seconds(best.total_s)
    );
    let ground = |text| Ground { grade: "measured here".to_owned(), text };
    Some(Answer { sentence, grounds: study.agreements.iter().map(self::sentence).map(ground).collect() })
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
    let fit = |fit: &crate::study::fit::results::FitCurve| -> Value {
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
    let mut warnings = Vec::new();
    if let Some(first) = study.failed.first() {
        warnings.push(Warning::FailedFits { cells: study.failed.len(), first: first.clone() });
    }
    if let Some(first) = study.disagreements().next() {
        warnings.push(Warning::LossesDiffer { fits: study.disagreements().count(), first: sentence(first) });
    }
    let diverged = study.fits.iter().filter(|fit| !fit.error().is_finite()).count();
    if diverged > 0 {
        warnings.push(Warning::NanEpochs { epochs: diverged });
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Style;
    use crate::study::fit::results::FitCurve;

    fn study(largest: f64) -> Results {
        let fit = |name: &str, error: f64| FitCurve {
            name: name.into(),
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
        Results {
            device: "CPU".into(),
            fits: vec![fit("cpu", 0.021), fit("torch", 0.022)],
            failed: Vec::new(),
            agreements: vec![agreement],
            surface: None,
        }
    }

    #[test]
    fn setup_is_drawn_beside_the_step_and_curves_beside_each_other() {
        let text = document(&study(2e-6)).render(&Style::PLAIN);
        let tidy: Vec<String> = text.lines().map(|l| l.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert!(tidy.iter().any(|line| line == "torch 1,600 2 0.0220 1.50 s 250 ms 2.00 s 75 %"), "{text}");
        assert!(text.contains("torch and cpu, 1,600 points: the same over 2 updates"), "{text}");
        let answer = answer(&study(2e-6)).expect("fits");
        assert!(answer.sentence.contains("1,600 points best: error"), "{}", answer.sentence);
        assert!(warnings(&study(2e-6)).is_empty());
        let document = json(&study(2e-6));
        assert_eq!((&document["agreements"][0]["same"], &document["fits"][1]["setup_s"]), (&json!(true), &json!(1.5)));
    }

    #[test]
    fn curves_that_part_early_are_a_warning() {
        let warnings = warnings(&study(0.2));
        assert!(matches!(&warnings[..], [Warning::LossesDiffer { fits: 1, first }] if first.contains("NOT the same")));
        assert!(warnings[0].to_string().contains("torch and cpu"), "{}", warnings[0]);
    }
}

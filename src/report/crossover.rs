//! Crossovers in the terminal: from which size on one series is the faster one.

use serde_json::{Value, json};

use super::{Answer, Document, Ground, Table};
use crate::analysis::crossover::{Crossing, Crossover, Crossovers, SeriesSetup, TRAINING_STEPS};
use crate::units::human;
use crate::words::crossover::{from_size, size};
use crate::words::crossover_sentence;

/// The tables of all pairs: of single steps, of whole trainings with their setup, and that setup. Empty where no pair crosses.
pub fn crossover(found: &Crossovers) -> Document {
    if !found.any() {
        return Document::default();
    }
    let mut document = Document::of_table("Crossovers of a step, without setup", pairs(&found.steps));
    document.text(
        "ratio: how many times faster, at the smallest and at the largest size measured; below 1, slower. An open interval ends beyond the \
         sizes measured, or a size was visited once; above also where the order at the largest size is not shown.",
    );
    if found.trainings.is_empty() {
        return document;
    }
    let steps = human::count(TRAINING_STEPS as u64);
    let heading = format!("Crossovers of a training of {steps} steps, with setup (steps times their number)");
    document.append(Document::of_table(heading, pairs(&found.trainings)));
    document.append(Document::of_table("Setup (measured once)", setups(&found.setups)));
    document.text(
        "setup: until the first step is ready (parameters, data, memory, compilation, search), plus how much longer the first step takes, in the \
         first visit to a cell. Starting an engine is not included. In steps: how many steps take as long.",
    );
    document
}

/// A sentence for each pair that crosses in single steps: the size from which one series is faster. `origin` is the grade of the
/// measurement.
pub fn crossover_answers(found: &Crossovers, origin: &str) -> Vec<Answer> {
    let answer = |pair: &Crossover| {
        let text = format!("95 % interval {}, without setup", interval(&pair.at?));
        let sentence = format!("{}.", crossover_sentence(pair, str::to_owned)?);
        Some(Answer { sentence, grounds: vec![Ground { grade: origin.to_owned(), text }] })
    };
    found.steps.iter().filter_map(answer).collect()
}

fn setups(found: &[SeriesSetup]) -> Table {
    let mut table = Table::of(&["series"], &["at size", "ready after", "first step", "step", "setup in steps"]);
    for SeriesSetup { series, smallest, largest } in found {
        for (name, setup) in [(series.as_str(), smallest), ("", largest)] {
            table.row([
                name.to_owned(),
                size(setup.size),
                human::seconds(setup.prepare_s),
                format!("+{}", human::seconds(setup.first_step_s)),
                human::seconds(setup.step_s),
                human::digits(setup.seconds() / setup.step_s.max(f64::MIN_POSITIVE)),
            ]);
        }
    }
    table
}

fn pairs(found: &[Crossover]) -> Table {
    let numbers = ["from size", "95 % interval", "ratio at smallest", "ratio at largest"];
    let mut table = Table::of(&["faster from there on", "than"], &numbers);
    for pair in found {
        let faster = pair.faster_at_largest();
        let other = if faster == pair.first { &pair.second } else { &pair.first };
        let (from, interval) = match pair.at {
            Some(place) => (from_size(&place), interval(&place)),
            None => ("all sizes".to_owned(), String::new()),
        };
        // How many times faster this one is than the other.
        let ratio = |ratio: f64| if faster == pair.second { ratio } else { 1.0 / ratio };
        let ratios = [pair.ratio_at_smallest, pair.ratio_at_largest].map(|value| format!("{:.2}", ratio(value)));
        table.row([faster.to_owned(), other.clone(), from, interval, ratios[0].clone(), ratios[1].clone()]);
    }
    table
}

/// In whole sizes around it.
fn interval(place: &Crossing) -> String {
    let end = |end: Option<f64>| end.map_or_else(|| "open".to_owned(), size);
    let [low, high] = [place.low.map(f64::floor), place.high.map(f64::ceil)];
    let back = if place.crossings > 1 { format!(" ({} crossings)", place.crossings) } else { String::new() };
    format!("{} to {}{back}", end(low), end(high))
}

/// The same as a document, version 1: `crossover.json` of a run.
pub fn crossover_json(found: &Crossovers) -> String {
    let pair = |pair: &Crossover| -> Value {
        json!({
            "first": pair.first, "second": pair.second, "faster_at_largest": pair.faster_at_largest(),
            "smallest": pair.smallest, "largest": pair.largest,
            "ratio_at_smallest": pair.ratio_at_smallest, "ratio_at_largest": pair.ratio_at_largest,
            "crossover": pair.at,
        })
    };
    let pairs = |found: &[Crossover]| found.iter().map(pair).collect::<Vec<Value>>();
    let document = json!({
        "version": 1,
        "pairs": pairs(&found.steps),
        "training": {"steps": TRAINING_STEPS, "pairs": pairs(&found.trainings)},
        "setups": found.setups,
    });
    format!("{document:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::crossover::Setup;
    use crate::report::{Style, assert_lines};
    use crate::words::crossover::tests::pair;

    #[test]
    fn the_faster_one_is_named_with_the_size_and_its_interval() {
        let place = Crossing { size: 8123.0, low: Some(7900.0), high: None, crossings: 1 };
        let setup = |size, prepare_s| Setup { size, prepare_s, first_step_s: 0.5, step_s: 0.25 };
        let own = SeriesSetup { series: "cuda".into(), smallest: setup(25.0, 2.0), largest: setup(40_000.0, 3.0) };
        let found = |at| {
            let pairs = || vec![pair(0.25, at)];
            Crossovers { steps: pairs(), trainings: pairs(), setups: vec![own.clone()] }
        };
        let text = crossover(&found(Some(place))).render(&Style::PLAIN);
        assert_lines(&text, &["cuda cpu 8,123 7,900 to open 0.25 8.00", "cuda 25 2.00 s +500 ms 250 ms 10.0"]);
        let document: Value = serde_json::from_str(&crossover_json(&found(Some(place)))).expect("JSON");
        assert_eq!(document["pairs"][0]["crossover"]["size"], 8123.0);
        assert_eq!(document["training"]["steps"], 2000);
        assert_eq!(document["setups"][0]["largest"]["prepare_s"], 3.0);
        let near = Crossing { size: 8.2, low: Some(8.1), high: Some(8.4), crossings: 1 };
        assert_eq!(interval(&near), "8 to 9");
        let answers = crossover_answers(&found(Some(place)), "from a.csv");
        assert_eq!(answers[0].grounds[0].grade, "from a.csv");
        assert!(crossover(&found(None)).is_empty() && crossover_answers(&found(None), "from a.csv").is_empty());
    }
}

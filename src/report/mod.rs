//! What batchstep says in a terminal: tables, sentences, warnings. Everything is returned as text; nothing is printed here.
//!
//! [`human`] is the one place that turns numbers into words, for the charts as well.

mod advice;
mod answer;
mod causes;
mod comparison;
mod copying;
mod crossover;
mod disagreement;
mod document;
mod entries;
mod explanation;
mod forecast;
pub mod json;
mod jumps;
mod kernels;
mod nodes;
mod parallel;
mod plan;
mod prediction;
mod repeated;
mod roofline;
mod run_warnings;
mod scaling;
mod side_by_side;
pub mod slow;
mod style;
mod switches;
mod table;
mod transfer;
mod unexplained;
mod warning;

pub use advice::{size_advice_json, size_advices};
pub use answer::{Answer, Ground, Question, answer};
pub use causes::causes;
pub use comparison::{comparison, comparison_json, comparison_of_several};
pub use crossover::{crossover, crossover_answers, crossover_json, crossover_sentence, first_size};
pub use disagreement::disagreement;
pub use document::{Block, Document};
pub use entries::position;
pub use explanation::{brief_explanation, explanation, explanation_json, interventions, likely_causes};
pub use forecast::{Forecasts, forecast, forecast_json};
pub use jumps::{JumpTable, has_too_few_points, is_too_steep, summary, too_few_points};
pub use kernels::kernels;
pub use nodes::{machines, nodes};
pub use parallel::parallel;
pub use plan::plan_summary;
pub use prediction::{Predictions, called, predictions, predictions_json};
pub use repeated::Repeated;
pub use roofline::roofline;
pub use run_warnings::{kept_warnings, run_warnings, table_warnings, warnings};
pub use scaling::scaling;
pub use side_by_side::{side_by_side, side_by_side_answers};
pub use style::Style;
pub use switches::switches;
pub use table::{Column, Table};
pub use transfer::transfers;
pub use warning::Warning;

/// Each value once, in the order in which they first appear.
pub(crate) fn distinct<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    values.fold(Vec::new(), |mut found, value| {
        if !found.contains(&value) {
            found.push(value);
        }
        found
    })
}

/// The lines of a text, with one space between its words.
#[cfg(test)]
pub(crate) fn tidy(text: &str) -> Vec<String> {
    text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

/// Each of these is a line of the text, but for the spaces between its words.
#[cfg(test)]
pub(crate) fn assert_lines(text: &str, wanted: &[&str]) {
    let lines = tidy(text);
    wanted.iter().for_each(|line| assert!(lines.iter().any(|found| found == line), "{text}\nlacks: {line}"));
}

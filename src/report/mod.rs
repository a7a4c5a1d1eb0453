//! What batchstep says in a terminal: tables, sentences, warnings. Everything is returned as text; nothing is printed here.

mod advice;
mod answer;
mod causes;
mod comparison;
mod copying;
mod crossover;
mod document;
mod entries;
mod explanation;
mod forecast;
pub mod json;
mod jumps;
mod kernels;
mod nodes;
mod plan;
mod prediction;
mod roofline;
mod run_warnings;
mod scaling;
mod side_by_side;
mod slow;
mod style;
mod table;
mod transfer;
mod warning;

pub use advice::{size_advice_json, size_advices};
pub use answer::{Answer, Ground, Question, answer};
pub use causes::causes;
pub use comparison::{comparison, comparison_json, comparison_of_several};
pub use crossover::{crossover, crossover_answers, crossover_json};
pub use document::{Block, Document};
pub use entries::position;
pub use explanation::{brief_explanation, explanation, explanation_json, interventions, likely_causes};
pub use forecast::{Forecasts, forecast, forecast_json};
pub use jumps::{JumpTable, too_few_points};
pub use kernels::{kernels, switches};
pub use nodes::nodes;
pub use plan::plan_summary;
pub use prediction::{Predictions, predictions, predictions_json};
pub use roofline::roofline;
pub use run_warnings::{disagreement, kept_warnings, run_warnings, table_warnings, warnings};
pub use scaling::{parallel, scaling};
pub use side_by_side::{side_by_side, side_by_side_answers};
pub use style::Style;
pub use table::{Column, Table};
pub use transfer::transfers;
pub use warning::Warning;

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

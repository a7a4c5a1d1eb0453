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
pub use comparison::{Rows, comparison, comparison_json, comparison_of_several};
pub use crossover::{crossover, crossover_answers, crossover_json, crossover_sentence};
pub use disagreement::disagreement;
pub use document::{Block, Document};
pub use explanation::{Entry, brief_explanation, explanation, explanation_json, interventions, likely_causes};
pub use forecast::{Forecasts, forecast, forecast_json};
pub use jumps::{Axes, JumpTable, has_too_few_points, jump_table, summary, too_few_points};
pub use kernels::kernels;
pub use nodes::{machines, nodes};
pub use parallel::parallel;
pub use plan::{PlanFacts, plan_summary};
pub use prediction::{Predictions, predictions, predictions_json};
pub use repeated::Repeated;
pub use roofline::roofline;
pub use run_warnings::{kept_warnings, run_warnings, table_warnings, warnings};
pub use scaling::scaling;
pub use side_by_side::{side_by_side, side_by_side_answers};
pub use style::Style;
pub use switches::switches;
pub use table::{Column, Heading, Table};
pub use transfer::transfers;
pub use warning::Warning;

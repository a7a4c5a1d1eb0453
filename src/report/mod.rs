//! What batchstep says in a terminal: tables, sentences, warnings. Everything is returned as text; nothing is printed here.
//!
//! [`human`] is the one place that turns numbers into words, for the charts as well.

mod answer;
mod causes;
mod comparison;
mod copying;
mod crossover;
mod disagreement;
mod document;
mod explanation;
mod feeding;
mod fits;
mod forecast;
pub mod human;
mod hyperfine;
pub mod json;
mod jumps;
mod nodes;
mod parallel;
mod plan;
mod prediction;
mod repeated;
mod roofline;
mod run_warnings;
mod scaling;
mod side_by_side;
mod style;
mod table;
mod training;
mod warning;

pub use answer::{Answer, Ground, Question, answer};
pub use causes::causes;
pub use comparison::{comparison, comparison_of_several};
pub use crossover::{crossover, crossover_json};
pub use disagreement::disagreement;
pub use document::{Block, Document};
pub use explanation::{Entry, explanation, explanation_json};
pub use feeding::{feeding, feeding_json, feeding_warnings};
pub use fits::{fit_warnings, fits, fits_json};
pub use forecast::{Forecasts, forecast, forecast_json};
pub use hyperfine::hyperfine_json;
pub use jumps::{Axes, JumpTable, jump_table, summary};
pub use nodes::{machines, nodes};
pub use parallel::parallel;
pub use plan::{PlanFacts, plan_summary};
pub use prediction::{Predictions, predictions, predictions_json};
pub use repeated::Repeated;
pub use roofline::roofline;
pub use run_warnings::run_warnings;
pub use scaling::scaling;
pub use side_by_side::{side_by_side, side_by_side_answers};
pub use style::Style;
pub use table::{Column, Heading, Table};
pub use training::{advice, sentence, training, training_answer, training_warnings};
pub use warning::Warning;

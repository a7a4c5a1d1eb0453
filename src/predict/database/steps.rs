//! Training steps that others measured and published, each with source and licence.

use std::path::Path;

use crate::error::{Error, Result};
use crate::settings::Precision;
use crate::store::{CollectedStep, Table};

const TEXTS: [&str; 6] = ["device_name", "model", "framework", "precision", "source", "licence"];
const NUMBERS: [&str; 4] = ["flops_per_s", "bytes_per_s", "batch_size", EXAMPLES];
/// The column that distinguishes such a table from others.
const EXAMPLES: &str = "examples_per_s";

pub(super) fn is_table(path: &Path) -> Result<bool> {
    Ok(Table::names(path)?.iter().any(|name| name == EXAMPLES))
}

/// Reads such a table.
///
/// # Errors
/// [`crate::error::Kind::Data`] where a column is missing, or a row has no source, no licence, or a number that a step
/// cannot have.
pub(super) fn read(path: &Path) -> Result<Vec<CollectedStep>> {
    rows(path)
        .map_err(|error| error.hint("experiments/predict/published_steps.csv is such a table, with all its columns"))
}

fn rows(path: &Path) -> Result<Vec<CollectedStep>> {
    let table = Table::read(path, &[&TEXTS[..], &NUMBERS].concat())?;
    let texts: Vec<Vec<String>> = TEXTS.iter().map(|name| table.texts(name)).collect::<Result<_>>()?;
    let numbers: Vec<Vec<f64>> = NUMBERS.iter().map(|name| table.numbers(name)).collect::<Result<_>>()?;
    let row = |row: usize| {
        let [device_name, model, framework, precision, source, licence] =
            [0, 1, 2, 3, 4, 5].map(|column: usize| texts[column][row].clone());
        let [flops_per_s, bytes_per_s, batch_size, examples_per_s] =
            [0, 1, 2, 3].map(|column: usize| numbers[column][row]);
        let wrong = |what: String| Err(Error::data(format!("row {}: {what}", row + 1)).at(path.display().to_string()));
        if source.is_empty() || licence.is_empty() {
            return wrong(
                "it does not say both who measured and under which licence: fill in `source` and `licence`".to_owned(),
            );
        }
        if Precision::from_name(&precision).is_none() {
            return wrong(format!("no precision is called `{precision}`"));
        }
        for (name, number) in NUMBERS.iter().zip([flops_per_s, bytes_per_s, batch_size, examples_per_s]) {
            if !(number.is_finite() && number > 0.0) {
                return wrong(format!("`{name}` is {number}, and must be above 0"));
            }
        }
        Ok(CollectedStep {
            source,
            licence,
            device_name,
            flops_per_s,
            bytes_per_s,
            model,
            framework,
            precision,
            batch_size: batch_size as i64,
            step_time_s: batch_size / examples_per_s,
        })
    };
    (0..table.rows()).map(row).collect()
}

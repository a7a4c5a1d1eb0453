//! A training study in the JSON that hyperfine exports, so that its scripts read it.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::study::training::results::{CellEpochs, Results};

/// The document of `--export-json`: an entry for each cell, with one time for each epoch.
pub fn json(study: &Results) -> Value {
    let results: Vec<Value> = study.cells.iter().map(|cell| entry(cell, study)).collect();
    json!({ "results": results })
}

fn entry(cell: &CellEpochs, study: &Results) -> Value {
    let times: Vec<f64> = cell.rows.iter().filter_map(|row| row.epoch_time_s).collect();
    let memory: Option<Vec<i64>> = cell.rows.iter().map(|row| row.memory_used_bytes).collect();
    let mut entry = json!({
        "command": cell.name(),
        "mean": cell.times.mean,
        "stddev": cell.times.sd,
        "median": cell.times.median,
        "user": cell.mean(|row| row.user_time_s),
        "system": cell.mean(|row| row.system_time_s),
        "min": cell.times.min,
        "max": cell.times.max,
        "times": times,
        "exit_codes": vec![0; cell.rows.len()],
    });
    if let (Some(memory), Some(object)) = (memory, entry.as_object_mut()) {
        object.insert("memory_usage_byte".to_owned(), json!(memory));
    }
    let parameters = parameters(cell, study);
    if let (false, Some(object)) = (parameters.is_empty(), entry.as_object_mut()) {
        object.insert("parameters".to_owned(), Value::Object(parameters));
    }
    entry
}

/// What varies, as texts: hyperfine's own parameters are texts, and its scripts take the only one there is.
fn parameters(cell: &CellEpochs, study: &Results) -> Map<String, Value> {
    let values = |cell: &CellEpochs| {
        [
            ("series", cell.series.clone()),
            ("batch_size", cell.batch_size.to_string()),
            ("workers", cell.workers.to_string()),
        ]
    };
    let varies = |own: &(&str, String)| study.cells.iter().any(|other| !values(other).contains(own));
    let varied = values(cell).into_iter().filter(varies);
    let mut parameters: Map<String, Value> =
        varied.map(|(name, value)| (name.to_owned(), Value::String(value))).collect();
    // A cell without workers has no depth; an empty text would be no number for hyperfine's scripts.
    let depths: BTreeSet<usize> = study.cells.iter().filter_map(|cell| cell.prefetch).collect();
    if let Some(depth) = cell.prefetch.filter(|_| depths.len() > 1) {
        parameters.insert("prefetch".to_owned(), Value::String(depth.to_string()));
    }
    parameters
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::training::results::tests::row;

    #[test]
    fn the_document_has_the_fields_of_hyperfines() {
        let rows = [row(64, 0, 0, 19.0), row(64, 0, 1, 20.0), row(128, 0, 0, 13.0)];
        let document = json(&Results::of(&rows));
        let first = &document["results"][0];
        assert_eq!((&first["mean"], &first["times"]), (&json!(19.5), &json!([19.0, 20.0])));
        assert_eq!((&first["exit_codes"], &first["parameters"]), (&json!([0, 0]), &json!({"batch_size": "64"})));
        assert_eq!(document["results"][1]["stddev"], Value::Null);
        assert!(first.get("memory_usage_byte").is_none());
    }

    /// What scripts/plot_parametrized.py of hyperfine reads: each value of a parameter through `float`.
    #[test]
    fn parameters_are_numbers_but_for_the_name_of_a_series() {
        let mut deeper = row(64, 2, 0, 9.0);
        (deeper.prefetch, deeper.cell) = (Some(4), 999);
        let rows = [row(64, 0, 0, 19.0), row(64, 2, 0, 10.0), deeper];
        let document = json(&Results::of(&rows));
        let parameters: Vec<&Value> =
            document["results"].as_array().expect("a list").iter().map(|result| &result["parameters"]).collect();
        assert_eq!(
            parameters,
            [
                &json!({"workers": "0"}),
                &json!({"workers": "2", "prefetch": "2"}),
                &json!({"workers": "2", "prefetch": "4"})
            ]
        );
    }
}

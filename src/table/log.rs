//! Logs of tools that print no table.

use serde_json::Value;

use super::cell::is_bare_number;
use super::grid::{Grid, NamedValues, pair};
use super::members::{member, said};

/// The table in a log; `None` in any other text.
pub(super) fn grid(text: &str) -> Option<Grid> {
    mlperf(text).or_else(|| trtexec(text)).or_else(|| serving(text))
}

/// MLPerf's `:::MLLOG`: the throughput at each global batch size, or the duration of each epoch.
fn mlperf(text: &str) -> Option<Grid> {
    let entries: Vec<Value> =
        text.lines().filter_map(|line| serde_json::from_str(line.split_once(":::MLLOG")?.1.trim()).ok()).collect();
    let (mut batch, mut epoch_began) = (String::new(), None);
    let (mut rates, mut epochs): (Vec<NamedValues>, Vec<NamedValues>) = (Vec::new(), Vec::new());
    for entry in &entries {
        let (key, value) = (member(entry, "key"), entry.get("value"));
        let time = entry.get("time_ms").and_then(Value::as_f64);
        let epoch = || {
            entry
                .get("metadata")
                .and_then(|facts| facts.get("epoch_num").or(facts.get("step")).or(facts.get("samples_count")))
                .map(said)
                .unwrap_or_default()
        };
        let throughput =
            value.and_then(|value| value.get("throughput").or(Some(value).filter(|_| key == "throughput")));
        match (&key[..], throughput) {
            ("global_batch_size", _) => batch = value.map(said).unwrap_or_default(),
            ("epoch_start" | "block_start", _) => epoch_began = time,
            ("epoch_stop" | "block_stop", _) => {
                if let (Some(began), Some(ended)) = (epoch_began.take(), time) {
                    let time = (ended - began).to_string();
                    epochs.push(vec![pair("batch_size", &batch), pair("epoch", epoch()), pair("time_ms", time)]);
                }
            }
            (_, Some(rate)) => {
                rates.push(vec![pair("batch_size", &batch), pair("step", epoch()), pair("samples/s", said(rate))]);
            }
            _ => {}
        }
    }
    let rows = if rates.is_empty() { epochs } else { rates };
    Grid::of_tool(rows, &["batch_size", "epoch", "step"], &[])
}

/// trtexec: for each run, the size in its command and the mean GPU time.
fn trtexec(text: &str) -> Option<Grid> {
    let (mut size, mut rows) = (String::new(), Vec::new());
    for line in text.lines() {
        if line.contains("RUNNING TensorRT.trtexec") {
            let option =
                |name: &str| line.split_whitespace().find_map(|word| word.strip_prefix(name)).map(str::to_string);
            size = option("--batch=")
                .or_else(|| option("--shapes="))
                .or_else(|| option("--optShapes="))
                .unwrap_or_default();
        } else if let Some((_, times)) = line.split_once("GPU Compute Time:") {
            let mean = times.split(',').find_map(|part| part.trim().strip_prefix("mean = ")).unwrap_or_default();
            rows.push(vec![pair("size", &size), pair("GPU compute time", mean.trim())]);
        }
    }
    Grid::of_tool(rows, &["size", "size (number)"], &["GPU compute time"]).filter(|_| text.contains("trtexec"))
}

/// What vLLM's and SGLang's benchmarks print of one load, once for each load.
fn serving(text: &str) -> Option<Grid> {
    let blocks = text.split("Serving Benchmark Result").skip(1);
    let value = |line: &str| {
        let (name, value) = line.split_once(':')?;
        let value = value.trim();
        is_bare_number(value).then(|| pair(name.trim(), value))
    };
    let rows: Vec<NamedValues> = blocks.map(|block| block.lines().filter_map(value).collect()).collect();
    const X: &[&str] = &[
        "Max request concurrency",
        "Maximum request concurrency",
        "Traffic request rate",
        "Request rate configured (RPS)",
        "Successful requests",
        "Total input tokens",
    ];
    Grid::of_tool(rows, X, &["Output token throughput"])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without a throughput; the recorded samples are of throughputs, and of trtexec.
    #[test]
    fn epochs_of_mlperf_are_a_table() {
        let line = |key: &str, time: u32, value: &str| {
            format!(
                ":::MLLOG {{\"key\": \"{key}\", \"time_ms\": {time}, \"value\": {value}, \"metadata\": {{\"epoch_num\": 3}}}}\n"
            )
        };
        let epochs = line("global_batch_size", 1, "64")
            + "noise\n"
            + &line("epoch_start", 10, "null")
            + &line("epoch_stop", 35, "null");
        let found = grid(&epochs).expect("a table").joined();
        assert_eq!(found, ("batch_size,epoch,time_ms".to_string(), vec!["64,3,25".to_string()]));
    }
}

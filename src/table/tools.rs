//! The JSON that benchmark tools write, as rows.

use serde_json::Value;

use super::Hints;
use super::grid::{Grid, NamedValues, pair};
use super::members::{flat, member, said};
use crate::error::{Error, Result};

/// The table in a document of a known tool; `None` of any other.
///
/// # Errors
/// [`crate::error::Kind::Data`] where its tool is known, and it holds no sizes.
pub(super) fn grid(value: &Value) -> Result<Option<Grid>> {
    for (is_known, what, remedy) in [
        (
            value.get("traceEvents").is_some(),
            "this is a trace of a profiler, which is not read",
            "give a table with a row for each size and its time",
        ),
        (
            value.get("nbformat").is_some(),
            "this is a notebook, which is not read",
            "write its table with `frame.to_csv`",
        ),
        (
            value
                .as_array()
                .is_some_and(|items| items.first().is_some_and(|item| item.get("startComputeMs").is_some())),
            "these are trtexec's times of one run, which contain no size",
            "give trtexec's log, or the logs of all sizes one after the other",
        ),
    ] {
        if is_known {
            return Err(Error::data(what).hint(remedy));
        }
    }
    Ok([hyperfine, google, nvbench, pytest, jmh, dotnet, criterion, llama, fio, asv]
        .into_iter()
        .find_map(|read| read(value)))
}

/// The known meaning of columns with these names, for results that are flat lists.
pub(super) fn hints(names: &[String]) -> Hints {
    let has = |name: &str| names.iter().any(|own| own == name);
    match () {
        // vLLM and SGLang: the load is what is set.
        () if has("request_throughput") && has("output_throughput") => {
            Hints { x: &["max_concurrency", "concurrency", "request_rate", "num_prompts"], y: &["output_throughput"] }
        }
        () if has("overall_throughput") && has("prefill_latency") => {
            Hints { x: &["batch_size", "input_len", "output_len"], y: &["overall_throughput"] }
        }
        () => Hints::default(),
    }
}

fn list<'v>(value: &'v Value, name: &str) -> Option<&'v Vec<Value>> {
    value.get(name)?.as_array().filter(|items| !items.is_empty())
}

/// The members of an object in `value`, such as the parameters of a benchmark.
fn object(value: &Value, name: &str) -> NamedValues {
    value.get(name).and_then(Value::as_object).map(flat).unwrap_or_default()
}

/// The repetitions in a list, or their mean where the list is missing or empty.
fn repetitions(value: &Value, all: &str, mean: &str) -> Vec<String> {
    list(value, all)
        .map_or_else(|| value.get(mean).into_iter().map(said).collect(), |all| all.iter().map(said).collect())
}

/// The table of results that are repeated: `read` says what describes one of them, and its values.
fn repeated(
    found: &[Value],
    x: &'static [&'static str],
    y: &'static [&'static str; 1],
    read: impl Fn(&Value) -> Option<(NamedValues, Vec<String>)>,
) -> Option<Grid> {
    let mut rows = Vec::new();
    for one in found {
        let (head, values) = read(one)?;
        rows.extend(rows_of(&head, y[0], values));
    }
    Grid::of_tool(rows, x, y)
}

/// A row for each repetition, behind what they have in common.
fn rows_of(head: &[(String, String)], name: &str, values: impl IntoIterator<Item = String>) -> Vec<NamedValues> {
    values.into_iter().map(|value| head.iter().cloned().chain([pair(name, value)]).collect()).collect()
}

/// `hyperfine --export-json`: parameters are sizes, times are repetitions.
fn hyperfine(value: &Value) -> Option<Grid> {
    let results = list(value, "results")?;
    results[0].get("command")?;
    repeated(results, &[], &["time_s"], |result| {
        let mut head = object(result, "parameters");
        if head.is_empty() {
            head.push(pair("command", said(result.get("command")?)));
        }
        Some((head, repetitions(result, "times", "mean")))
    })
}

/// Google Benchmark: single repetitions where they are there, the sizes in the names.
fn google(value: &Value) -> Option<Grid> {
    let found = list(value, "benchmarks")?;
    found[0].get("real_time")?;
    let is_single = |one: &&Value| {
        one.get("run_type").is_none_or(|kind| kind == "iteration") && one.get("error_occurred").is_none()
    };
    let is_mean = |one: &&Value| one.get("aggregate_name").is_some_and(|name| name == "mean");
    let single: Vec<&Value> = found.iter().filter(is_single).collect();
    let chosen: Vec<&Value> = if single.is_empty() { found.iter().filter(is_mean).collect() } else { single };
    let row = |one: &&Value| {
        let name = one.get("run_name").or(one.get("name")).map(said).unwrap_or_default();
        let ends = ["/real_time", "/process_time", "/manual_time"];
        let name = ends.iter().fold(&name[..], |name, end| name.trim_end_matches(end));
        vec![
            pair("name", name),
            pair("real_time", format!("{} {}", member(one, "real_time"), member(one, "time_unit"))),
        ]
    };
    Grid::of_tool(chosen.iter().map(row).collect(), &["name (number)"], &["real_time"])
}

/// nvbench: axes are sizes; the mean time of the GPU. A state that was skipped has none.
fn nvbench(value: &Value) -> Option<Grid> {
    let benchmarks = list(value, "benchmarks")?;
    let devices = value.get("devices").and_then(Value::as_array);
    let device = |id: &Value| {
        let name = devices?.iter().find(|device| device.get("id") == Some(id))?.get("name")?;
        // Two devices may be of one kind.
        let alike = devices?.iter().filter(|device| device.get("name") == Some(name)).count();
        Some(if alike > 1 { format!("{} ({})", said(name), said(id)) } else { said(name) })
    };
    let mut rows = Vec::new();
    for benchmark in benchmarks {
        let name = said(benchmark.get("name")?);
        for state in list(benchmark, "states")? {
            let is_skipped = state.get("is_skipped").and_then(Value::as_bool) == Some(true);
            let mut row = vec![pair("benchmark", name.clone())];
            row.extend(state.get("device").map(|id| pair("device", device(id).unwrap_or_else(|| said(id)))));
            for axis in state.get("axis_values").and_then(Value::as_array).into_iter().flatten() {
                row.push((member(axis, "name"), member(axis, "value")));
            }
            let summaries = state.get("summaries").and_then(Value::as_array);
            let time = |tag: &str| {
                let summary = summaries?.iter().find(|summary| summary.get("tag").is_some_and(|own| own == tag))?;
                let mut data = summary.get("data")?.as_array()?.iter();
                data.find(|data| data.get("name").is_some_and(|name| name == "value"))?.get("value").map(said)
            };
            let gpu = ["nv/cold/time/gpu/mean", "nv/batch/time/gpu/mean", "nv/cpu_only/time/cpu/mean"];
            let gpu = gpu.into_iter().find_map(time);
            row.push(pair("time_s", gpu.filter(|_| !is_skipped).unwrap_or_default()));
            rows.push(row);
        }
    }
    Grid::of_tool(rows, &[], &["time_s"])
}

/// pytest-benchmark: parameters are sizes, `data` are repetitions.
fn pytest(value: &Value) -> Option<Grid> {
    let found = list(value, "benchmarks")?;
    found[0].get("stats")?;
    repeated(found, &[], &["time_s"], |one| {
        let mut head = object(one, "params");
        let name = member(one, "name");
        let bare = name.split('[').next().unwrap_or_default();
        head.push(pair("name", if head.is_empty() { &name } else { bare }));
        Some((head, repetitions(one.get("stats")?, "data", "mean")))
    })
}

/// JMH: parameters are sizes, the raw data are repetitions.
fn jmh(value: &Value) -> Option<Grid> {
    let found = value.as_array()?;
    found.first()?.get("primaryMetric")?;
    repeated(found, &[], &["score"], |one| {
        let metric = one.get("primaryMetric")?;
        let mut head = object(one, "params");
        head.push(pair("benchmark", member(one, "benchmark")));
        let raw = metric.get("rawData").and_then(Value::as_array).into_iter().flatten();
        let raw = raw.filter_map(Value::as_array).flatten().filter(|score| score.is_number());
        let mut scores: Vec<&Value> = raw.collect();
        if scores.is_empty() {
            scores.extend(metric.get("score"));
        }
        let unit = member(metric, "scoreUnit");
        Some((head, scores.into_iter().map(|score| format!("{} {unit}", said(score))).collect()))
    })
}

/// BenchmarkDotNet: parameters are sizes, the original values are repetitions, in nanoseconds.
fn dotnet(value: &Value) -> Option<Grid> {
    repeated(list(value, "Benchmarks")?, &[], &["time_ns"], |one| {
        let parameters = member(one, "Parameters");
        let parameters = parameters.split(['&', ',']).filter_map(|one| one.trim().split_once('='));
        let mut head: NamedValues = parameters.map(|(name, value)| pair(name, value)).collect();
        head.push(pair("Method", member(one, "Method")));
        Some((head, repetitions(one.get("Statistics")?, "OriginalValues", "Mean")))
    })
}

/// `cargo criterion --message-format json`: the size in the name.
fn criterion(value: &Value) -> Option<Grid> {
    let lines = value.as_array()?;
    let complete = |line: &&Value| line.get("reason").is_some_and(|reason| reason == "benchmark-complete");
    let mut rows = Vec::new();
    for line in lines.iter().filter(complete) {
        let id = member(line, "id");
        let unit = line.get("unit").or_else(|| line.get("typical")?.get("unit")).map(said).unwrap_or_default();
        let numbers = |name: &str| -> Vec<f64> {
            line.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_f64).collect()
        };
        let (times, counts) = (numbers("measured_values"), numbers("iteration_count"));
        let mut each: Vec<f64> =
            times.iter().zip(&counts).filter(|(_, count)| **count > 0.0).map(|(time, count)| time / count).collect();
        if each.is_empty() {
            let typical = line.get("typical").or(line.get("mean"));
            each.extend(typical.and_then(|typical| typical.get("estimate")?.as_f64()));
        }
        rows.extend(each.iter().map(|time| vec![pair("id", id.clone()), pair("time", format!("{time} {unit}"))]));
    }
    Grid::of_tool(rows, &["id (number)"], &["time"])
}

/// `llama-bench -o json` and `jsonl`: `samples_ts` are repetitions of the tokens in a second.
fn llama(value: &Value) -> Option<Grid> {
    let found = value.as_array()?;
    found.first()?.get("avg_ts")?;
    const KEPT: &[&str] = &[
        "n_prompt",
        "n_gen",
        "n_depth",
        "n_batch",
        "n_ubatch",
        "n_threads",
        "n_gpu_layers",
        "model_type",
        "backends",
        "type_k",
        "flash_attn",
    ];
    repeated(found, &[], &["t/s"], |one| {
        let head = KEPT.iter().filter_map(|name| Some(pair(name, said(one.get(*name)?)))).collect();
        Some((head, repetitions(one, "samples_ts", "avg_ts")))
    })
}

/// `fio --output-format=json`: the block size, the depth of the queue or the jobs of each job, and its operations in a second.
fn fio(value: &Value) -> Option<Grid> {
    value.get("fio version")?;
    let (jobs, shared) = (list(value, "jobs")?, value.get("global options"));
    let mut rows = Vec::new();
    for job in jobs {
        let option = |name: &str| job.get("job options").and_then(|own| own.get(name)).or_else(|| shared?.get(name));
        let mut head: NamedValues = ["bs", "iodepth", "numjobs", "rw"]
            .iter()
            .filter_map(|name| Some(pair(name, said(option(name)?))))
            .collect();
        head.push(pair("jobname", member(job, "jobname")));
        for way in ["read", "write"] {
            let rate = job.get(way).and_then(|way| way.get("iops"));
            let rate = rate.filter(|rate| rate.as_f64().is_some_and(|rate| rate > 0.0));
            head.push(pair("way", way));
            rows.extend(rows_of(&head, "iops", rate.map(said)));
            head.pop();
        }
    }
    Grid::of_tool(rows, &["bs", "bs (k)", "iodepth", "numjobs"], &["iops"])
}

/// A result of asv: for each benchmark, the values over all its parameters; the last parameter changes first.
fn asv(value: &Value) -> Option<Grid> {
    let columns: Vec<String> = list(value, "result_columns")?.iter().map(said).collect();
    let place = |name: &str| columns.iter().position(|own| own == name);
    let (result, params) = (place("result")?, place("params")?);
    let mut rows = Vec::new();
    for (name, found) in value.get("results")?.as_object()? {
        let (Some(values), Some(lists)) =
            (found.get(result).and_then(Value::as_array), found.get(params).and_then(Value::as_array))
        else {
            continue;
        };
        let lists: Vec<&Vec<Value>> = lists.iter().filter_map(Value::as_array).collect();
        for (at, value) in values.iter().enumerate() {
            let mut row = vec![pair("benchmark", name.clone())];
            let mut left = at;
            for (place, list) in lists.iter().enumerate().rev().filter(|(_, list)| !list.is_empty()) {
                row.push(pair(&format!("param {}", place + 1), said(&list[left % list.len()])));
                left /= list.len();
            }
            row.push(pair("time_s", said(value)));
            rows.push(row);
        }
    }
    let params = rows.iter().map(NamedValues::len).max()?;
    rows.retain(|row| params > 2 && row.len() == params);
    Grid::of_tool(rows, &["param 1", "param 2", "param 3"], &["time_s"])
}

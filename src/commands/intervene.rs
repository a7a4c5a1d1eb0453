//! `batchstep explain --intervene`: measures a step of one's own again with and without the likeliest cause of a jump.

use std::path::{Path, PathBuf};

use batchstep::analysis::mechanisms;
use batchstep::analysis::switches::{self, Switch};
use batchstep::analysis::{Analysed, Query, analyse};
use batchstep::error::{Error, Result};
use batchstep::os::look;
use batchstep::report;
use batchstep::run::environment::RunEnvironment;
use batchstep::spec::Experiment;
use batchstep::spec::plan::Plan;
use batchstep::store::files;
use serde_json::Value;

use super::findings::explain;
use super::jumps::labelled;
use super::{Exit, notice, print, run, seconds_of};
use crate::cli::ExplainArgs;

/// Sizes on each side of the jump that are measured again: enough for a jump to be told from a slope, and few, so that each has many visits.
const BESIDE: usize = 8;

pub fn intervene(args: &ExplainArgs) -> Result<Exit> {
    let [path] = &args.runs[..] else {
        return Err(Error::spec("`--intervene` needs exactly one run")
            .at("--intervene")
            .hint("`batchstep explain RUN --intervene`"));
    };
    let limit = seconds_of(&args.time, "time limit", "--time", "2min")?;
    let mut experiment = Experiment::read(&path.join(files::SPEC))?;
    if experiment.own.is_none() {
        return Err(Error::spec("only a step of your own has environment variables to try")
            .at(path.display().to_string())
            .hint("for batchstep's networks, make the setting an axis of the spec, as experiments/cpu/why_sixteen_cpu.toml does"));
    }
    experiment.measure.time_limit_s = limit;
    let found = analyse(path, &Query::default(), None)?;
    let suggested = switches::of_run(path, &found)?;
    let Some((series, switch)) = likeliest(&found, &suggested) else {
        return Err(Error::data("no jump of this run has a cause that an environment variable would take away")
            .at(path.display().to_string())
            .hint("`batchstep jumps RUN --details` says what was found; `batchstep run my_step.py --env NAME=A,B` tries a variable of your choice"));
    };
    let again = beside(&experiment, series, switch)?;
    notice(format!("measures again with `--env '{}'`: {}", switch.env, switch.sign));
    let begun = path.join(files::ENVIRONMENT);
    let text =
        look::text(&begun)?.ok_or_else(|| Error::data("there is no such file").at(begun.display().to_string()))?;
    let begun = RunEnvironment::from_json(&text).map_err(|error| error.at(path.display().to_string()))?;
    let folder = free(path)?;
    let exit = run::again(&again, &begun, &folder)?;
    print(&verdicts(&folder)?);
    Ok(exit)
}

/// What became of the jumps with each value of the variable.
fn verdicts(folder: &Path) -> Result<String> {
    let found = analyse(folder, &Query::default(), None)?;
    let answers = mechanisms::of_run(folder, &found, &explain(folder, &found)).unwrap_or_default();
    let document = report::interventions(&labelled(found.iter().zip(&answers)));
    Ok(format!("\n{}", document.render(&report::Style::of_terminal())))
}

/// The first whose sign was seen, else the first.
fn likeliest<'a>(found: &'a [Analysed], suggested: &'a [Vec<Switch>]) -> Option<(&'a Analysed, &'a Switch)> {
    let all = || found.iter().zip(suggested).flat_map(|(found, of)| of.iter().map(move |switch| (found, switch)));
    all().find(|(_, switch)| switch.is_seen).or_else(|| all().next())
}

/// The sizes beside the jump that the switch is about, or beside the largest.
fn beside(experiment: &Experiment, found: &Analysed, switch: &Switch) -> Result<Experiment> {
    let jumps = &found.findings.jumps;
    let largest = || jumps.iter().max_by(|a, b| a.size.abs().total_cmp(&b.size.abs())).map(|jump| jump.after);
    let after = switch.after.or_else(largest).unwrap_or(0.0);
    let measured = &experiment.batch_sizes;
    let next = measured.partition_point(|&size| size as f64 <= after);
    let sizes = measured[next.saturating_sub(BESIDE)..measured.len().min(next + BESIDE)].to_vec();
    let plan = Plan::new(experiment)?;
    let cell = plan.cells.iter().find(|cell| found.series.cells.contains(&(cell.index as i64)));
    let changed = cell.and_then(|cell| {
        let workload = &cell.workload;
        experiment.with_variable(&workload.network.name, &workload.settings, variable(switch.env), sizes)
    });
    changed
        .ok_or_else(|| Error::data("the run's spec has no step that fits this series").at(found.series.source.clone()))
}

/// `NAME=,1`: not set, and 1.
fn variable(env: &str) -> (String, Vec<Value>) {
    let (name, values) = env.split_once('=').unwrap_or((env, ""));
    let value = |value: &str| if value.is_empty() { Value::Null } else { Value::from(value) };
    (name.to_owned(), values.split(',').map(value).collect())
}

/// `results/mine-with-and-without`, or the next of that name that is free.
fn free(path: &Path) -> Result<PathBuf> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut number = 1;
    loop {
        let suffix = if number == 1 { String::new() } else { format!("-{number}") };
        let folder = path.with_file_name(format!("{name}-with-and-without{suffix}"));
        if !look::is_there(&folder)? {
            return Ok(folder);
        }
        number += 1;
    }
}

//! How far predicted step times are from measured ones: with batch sizes left out, networks left out, a device left out. Tables for
//! docs/prediction.md.
//!
//! ```text
//! batchstep run experiments/generated_cpu.toml
//! batchstep run experiments/generated_dense_cpu.toml
//! batchstep run experiments/generated_dense_cpu.toml --out results/generated_dense_cpu_again
//! cargo run --release --example prediction_error -- results/generated_cpu results/generated_dense_cpu results/generated_dense_cpu_again
//! ```
//!
//! `--four RUN` adds networks by name, such as those of experiments/predict_four_cpu.toml; `--chart FILE` draws predicted against measured; `--features FILE` writes the work of the steps as CSV for
//! scripts/prediction-baseline, a gradient-boosted tree.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::path::{Path, PathBuf};

use batchstep::analysis::{self, Query, Series};
use batchstep::chart::{self, Chart, PredictedPoint, Prediction};
use batchstep::costing::learnable;
use batchstep::database::{self, Database};
use batchstep::detect::{Findings, Settings, detect};
use batchstep::prediction::Estimate;
use batchstep::prediction::curve::{Breaks, Curve, Level};
use batchstep::prediction::layers::{LayerWork, StepModel, StepWork};
use batchstep::prediction::rates::{RateModel, Rates, Work};
use batchstep::prediction::repeats::{Pooled, between_runs, pooled};
use batchstep::random::Rng;
use batchstep::settings::EngineName;
use batchstep::stats::quantile::{median, quantile};
use batchstep::stats::regression::line;
use batchstep::store::AxisValues;

type Failure = Box<dyn Error>;

/// Parts that the batch sizes are dealt into; each is left out in turn.
const FOLDS: usize = 5;
/// The share of the batch sizes that is known where a range beyond is left out.
const KNOWN: f64 = 2.0 / 3.0;

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let (mut runs, mut features, mut chart, mut four) = (Vec::new(), None, None, None);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--four" => four = arguments.next().map(PathBuf::from),
            "--chart" => chart = arguments.next().map(PathBuf::from),
            "--features" => features = arguments.next().map(PathBuf::from),
            _ => runs.push(PathBuf::from(argument)),
        }
    }
    let [networks, dense, again] = &runs[..] else {
        return Err("give three runs: of many networks, of every batch size, and of every batch size again".into());
    };
    let folder = std::env::temp_dir().join(format!("prediction-error-{}", std::process::id()));
    let collected: Vec<PathBuf> = runs.iter().cloned().chain(four.clone()).collect();
    let mut refused = Vec::new();
    database::collect(&collected, &folder, &mut |taken| {
        if let database::Outcome::Refused(error) = taken.outcome {
            refused.push(error.to_string());
        }
    })?;
    if !refused.is_empty() {
        return Err(refused.join("\n").into());
    }
    let database = Database::open(&folder)?;
    batch_sizes(dense, again)?;
    let mut against = Vec::new();
    let steps = other_networks(&database, networks, &mut against)?;
    if let Some(run) = four {
        named_networks(&database, &run)?;
    }
    if let Some(path) = chart {
        draw(against, &path)?;
    }
    if let Some(path) = features {
        std::fs::write(path, table_of(&steps))?;
    }
    threads(&steps, networks)?;
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}

/// One prediction and what was measured.
#[derive(Clone, Copy)]
struct Case {
    estimate: Estimate,
    truth: f64,
}

/// A line of a table: count, median and 90th percentile of the error, its signed median, coverage.
fn row(name: &str, cases: &[Case], has_interval: bool) {
    if cases.is_empty() {
        println!("| {name} | 0 | | | | |");
        return;
    }
    let mut absolute: Vec<f64> = cases.iter().map(|case| (case.estimate.seconds / case.truth - 1.0).abs()).collect();
    let mut signed: Vec<f64> = cases.iter().map(|case| case.estimate.seconds / case.truth - 1.0).collect();
    let held = cases.iter().filter(|case| case.estimate.holds(case.truth)).count() as f64 / cases.len() as f64;
    let coverage = if has_interval { format!("{:.0} %", 100.0 * held) } else { String::new() };
    println!(
        "| {name} | {} | {:.1} % | {:.1} % | {:+.1} % | {coverage} |",
        cases.len(),
        100.0 * median(&mut absolute),
        100.0 * quantile(&mut absolute, 0.9),
        100.0 * median(&mut signed),
    );
}

fn head(title: &str) {
    println!(
        "\n### {title}\n\n| prediction | steps | median error | 90th percentile | signed median | in the interval |"
    );
    println!("|---|---:|---:|---:|---:|---:|");
}

fn plain(seconds: f64) -> Estimate {
    Estimate::around(seconds, 0.0)
}

/// The level of each batch size: the median over its visits of the fastest step.
fn levels(series: &Series) -> Vec<Level> {
    let mut visits: BTreeMap<(u64, u32), f64> = BTreeMap::new();
    for observation in series.observations() {
        let visit = visits.entry((observation.x as u64, observation.block.unwrap_or(0))).or_insert(f64::INFINITY);
        *visit = visit.min(observation.y);
    }
    let mut by_batch: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    visits.into_iter().for_each(|((batch, _), fastest)| by_batch.entry(batch).or_default().push(fastest));
    let level = |(batch, mut fastest): (u64, Vec<f64>)| Level { batch: batch as f64, seconds: median(&mut fastest) };
    by_batch.into_iter().map(level).collect()
}

fn breaks(found: &Findings) -> Breaks {
    Breaks {
        jumps: found.jumps.iter().map(|jump| jump.after).collect(),
        kinks: found.kinks.iter().map(|kink| kink.at).collect(),
        period: found.period.as_ref().map(|period| period.value),
    }
}

/// The curve that would be known without some batch sizes: the detector does not see their steps either.
fn without(series: &Series, levels: &[Level], out: &BTreeSet<u64>, noise: f64) -> Option<Curve> {
    let kept: Vec<_> = series.observations().into_iter().filter(|o| !out.contains(&(o.x as u64))).collect();
    let found = detect(&kept, &Settings { hardware: series.hardware(), ..Settings::default() });
    let known = levels.iter().copied().filter(|level| !out.contains(&(level.batch as u64))).collect();
    Curve::new(known, breaks(&found), noise)
}

/// A straight line through all known levels, by their relative errors.
fn straight(levels: &[Level], out: &BTreeSet<u64>, batch: f64) -> f64 {
    let known: Vec<&Level> = levels.iter().filter(|level| !out.contains(&(level.batch as u64))).collect();
    let x: Vec<f64> = known.iter().map(|level| level.batch).collect();
    let y: Vec<f64> = known.iter().map(|level| level.seconds).collect();
    let weights: Vec<f64> = y.iter().map(|y| y.powi(-2)).collect();
    let line = line(&x, &y, &weights);
    line.intercept + line.slope * batch
}

/// Time in proportion to the batch, as FLOPs are, at the best rate seen.
fn proportional(levels: &[Level], out: &BTreeSet<u64>, batch: f64) -> f64 {
    let known = levels.iter().filter(|level| !out.contains(&(level.batch as u64)));
    known.map(|level| level.seconds / level.batch).fold(f64::INFINITY, f64::min) * batch
}

fn batch_sizes(dense: &Path, again: &Path) -> Result<(), Failure> {
    let (first, second) = (analysis::series(dense, &Query::default())?, analysis::series(again, &Query::default())?);
    let engines: BTreeSet<&str> = first.iter().filter_map(engine).collect();
    for name in engines {
        let of = |all: &[Series]| all.iter().filter(|series| engine(series) == Some(name)).cloned().collect::<Vec<_>>();
        println!("\n## The engine `{name}`\n");
        batch_sizes_of(&of(&first), &of(&second));
    }
    Ok(())
}

fn engine(series: &Series) -> Option<&str> {
    let varied = series.group.iter().find(|(column, _)| column == "engine").map(|(_, value)| value.as_str());
    varied.or_else(|| series.facts.get("engine").map(String::as_str))
}

fn batch_sizes_of(first: &[Series], second: &[Series]) {
    let curves: Vec<Pooled> = first.iter().zip(second).map(|(a, b)| pooled(&[levels(a), levels(b)])).collect();
    let noise = between_runs(curves.iter()).unwrap_or(0.0);
    let mut repeated: Vec<f64> = curves.iter().flat_map(|curve| curve.repeated.clone()).map(f64::exp_m1).collect();
    println!(
        "Networks: {}. The noise of the machine, from the same run done twice: levels of the same cell differ by {:.1} % (median) and {:.1} % (90th percentile); \
         runs as a whole by {:.1} % (standard deviation). No prediction of a single measurement can be better.",
        first.iter().map(Series::label).collect::<Vec<_>>().join(", "),
        100.0 * median(&mut repeated),
        100.0 * quantile(&mut repeated, 0.9),
        100.0 * noise,
    );
    let mut tables: BTreeMap<&str, [Vec<Case>; 4]> = BTreeMap::new();
    for (series, other) in first.iter().zip(second) {
        let (own, others) = (levels(series), levels(other));
        let jumps = breaks(&series.find(&Settings::default())).jumps;
        let mut take = |name: &'static str, out: &BTreeSet<u64>| {
            // The same run: its own noise; the other run: with the noise between runs.
            let (Some(same), Some(repeat)) = (without(series, &own, out, 0.0), without(series, &own, out, noise))
            else {
                return;
            };
            for level in own.iter().filter(|level| out.contains(&(level.batch as u64))) {
                let cases = tables.entry(name).or_default();
                cases[0].push(Case { estimate: same.at(level.batch), truth: level.seconds });
                if let Some(other) = others.iter().find(|other| other.batch == level.batch) {
                    cases[1].push(Case { estimate: repeat.at(level.batch), truth: other.seconds });
                }
                cases[2].push(Case { estimate: plain(straight(&own, out, level.batch)), truth: level.seconds });
                cases[3].push(Case { estimate: plain(proportional(&own, out, level.batch)), truth: level.seconds });
                if name == "random" && jumps.contains(&(level.batch - 1.0)) {
                    let case = Case { estimate: same.at(level.batch), truth: level.seconds };
                    tables.entry("jump").or_default()[0].push(case);
                }
            }
        };
        let mut batches: Vec<u64> = own[1..own.len() - 1].iter().map(|level| level.batch as u64).collect();
        Rng::new(1).shuffle(&mut batches);
        for fold in 0..FOLDS {
            take("random", &batches.iter().copied().skip(fold).step_by(FOLDS).collect());
        }
        let known = own[(KNOWN * own.len() as f64) as usize - 1].batch;
        take("beyond", &own.iter().filter(|level| level.batch > known).map(|level| level.batch as u64).collect());
    }
    for (name, title) in [
        ("random", "Batch sizes left out: a fifth of them, at random, five times"),
        ("beyond", "Batch sizes left out: the upper third"),
    ] {
        head(title);
        let cases = tables.remove(name).unwrap_or_default();
        row("curve, the same run", &cases[0], true);
        row("curve, a repeated run", &cases[1], true);
        if name == "random" {
            row("curve, just after a jump", &tables.remove("jump").unwrap_or_default()[0], true);
        }
        row("straight line in the batch", &cases[2], false);
        row("FLOPs over the best rate seen", &cases[3], false);
    }
}

/// The steps of a device, an engine and one set of settings.
struct Learned {
    label: String,
    engine: EngineName,
    threads: usize,
    steps: Vec<StepWork>,
    names: Vec<String>,
}

/// Predicted against measured step times of networks that were left out.
fn draw(against: Vec<Case>, path: &Path) -> Result<(), Failure> {
    let point = |case: Case| {
        let Estimate { seconds, low, high } = case.estimate;
        PredictedPoint { x: case.truth, value: seconds, low, high, ..PredictedPoint::default() }
    };
    let held = against.iter().filter(|case| case.estimate.holds(case.truth)).count();
    let chart = Prediction {
        title: "Networks that were left out".to_owned(),
        summary: format!("{held} of {} measured step times lie in the interval of 90 %.", against.len()),
        against: against.into_iter().map(point).collect(),
        caption: vec!["cargo run --release --example prediction_error -- RUN RUN RUN --chart FILE".to_owned()],
        ..Prediction::default()
    };
    Ok(chart::write(&Chart::Prediction(chart), path)?)
}

fn name_of(engine: &str) -> Result<EngineName, Failure> {
    Ok(EngineName::from_name(engine).ok_or_else(|| format!("no engine is called `{engine}`"))?)
}

fn other_networks(database: &Database, run: &Path, against: &mut Vec<Case>) -> Result<Vec<Learned>, Failure> {
    let run_id = run_id(run)?;
    let mut all = Vec::new();
    for device in &database.devices {
        let mut ways: Vec<(EngineName, AxisValues)> = Vec::new();
        let mut own = BTreeSet::new();
        for network in database.networks(device)? {
            for cell in database.cells(device, &network)?.into_iter().filter(|cell| cell.run_id == run_id) {
                own.insert(network.clone());
                let way = (name_of(&cell.engine)?, cell.axes);
                if !ways.contains(&way) {
                    ways.push(way);
                }
            }
        }
        for (engine, way) in ways {
            let found = learnable(database, device, engine, &way)?;
            let steps: Vec<StepWork> =
                found.steps.into_iter().filter(|step| own.contains(&found.names[step.network])).collect();
            let threads = batchstep::settings::AXES.iter().position(|axis| axis.key == "threads");
            let threads =
                threads.and_then(|place| way.get(place)).map_or(0, |value| value.to_string().parse().unwrap_or(0));
            let networks: BTreeSet<usize> = steps.iter().map(|step| step.network).collect();
            let label = format!("{engine} on {device}, {threads} threads, {} networks", networks.len());
            head(&format!("Networks left out, one by one: {label}"));
            against.extend(evaluate(&steps));
            all.push(Learned { label, engine, threads, steps, names: found.names });
        }
    }
    Ok(all)
}

fn evaluate(steps: &[StepWork]) -> Vec<Case> {
    let networks: BTreeSet<usize> = steps.iter().map(|step| step.network).collect();
    let flops = |step: &StepWork| step.layers.iter().map(|layer| layer.flops).sum::<f64>();
    let [mut layers, mut rate] = [const { Vec::new() }; 2];
    for out in networks {
        let (unknown, known): (Vec<StepWork>, Vec<StepWork>) =
            steps.iter().cloned().partition(|step| step.network == out);
        let fastest = known.iter().map(|step| step.seconds / flops(step)).fold(f64::INFINITY, f64::min);
        rate.extend(unknown.iter().map(|step| Case { estimate: plain(flops(step) * fastest), truth: step.seconds }));
        layers.extend(predicted(&known, unknown));
    }
    row("sum over layers", &layers, true);
    row("FLOPs over the best rate seen", &rate, false);
    layers
}

/// Each network of a run, from all others of the database, the generated ones too.
fn named_networks(database: &Database, run: &Path) -> Result<(), Failure> {
    let run_id = run_id(run)?;
    for device in &database.devices {
        let mut own: BTreeMap<String, (AxisValues, BTreeSet<String>)> = BTreeMap::new();
        for network in database.networks(device)? {
            for cell in database.cells(device, &network)?.into_iter().filter(|cell| cell.run_id == run_id) {
                own.entry(cell.engine).or_insert((cell.axes, BTreeSet::new())).1.insert(network.clone());
            }
        }
        for (engine, (way, names)) in own {
            let found = learnable(database, device, name_of(&engine)?, &way)?;
            head(&format!("Larger networks left out, from the others and the generated ones: {engine} on {device}"));
            for name in names {
                let (unknown, known): (Vec<StepWork>, Vec<StepWork>) =
                    found.steps.iter().cloned().partition(|step| found.names[step.network] == name);
                row(&name, &predicted(&known, unknown), true);
            }
        }
    }
    Ok(())
}

/// Steps of networks that the model has not seen.
fn predicted(known: &[StepWork], unknown: Vec<StepWork>) -> Vec<Case> {
    let Some(model) = StepModel::fit(known) else { return Vec::new() };
    let case = |mut step: StepWork| {
        // A network that nobody measured has no measured layers.
        step.layers.iter_mut().for_each(|layer| layer.seconds = None);
        Case { estimate: model.at(&step), truth: step.seconds }
    };
    unknown.into_iter().map(case).collect()
}

/// The measured rates of a device with so many threads.
fn rates(run: &Path, threads: usize) -> Result<Rates, Failure> {
    let text = std::fs::read_to_string(run.join("environment.json"))?;
    let environment: serde_json::Value = serde_json::from_str(&text)?;
    let peaks = environment["peaks"].as_array().ok_or("no peaks")?;
    let peak = peaks.iter().find(|peak| peak["threads"].as_u64() == Some(threads as u64)).ok_or("no such peak")?;
    let number = |name: &str| peak[name].as_f64().ok_or("no number");
    Ok(Rates { flops_per_s: number("flops_per_s")?, bytes_per_s: number("bytes_per_s")? })
}

fn run_id(run: &Path) -> Result<String, Failure> {
    let environment: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(run.join("environment.json"))?)?;
    Ok(environment["run_id"].as_str().ok_or("no run_id")?.to_owned())
}

/// Two threads from one: measured steps, scaled by the two devices' rates.
fn threads(learned: &[Learned], run: &Path) -> Result<(), Failure> {
    for two in learned.iter().filter(|learned| learned.threads == 2) {
        let is_other = |other: &&Learned| other.engine == two.engine && other.threads == 1;
        if let Some(one) = learned.iter().find(is_other) {
            two_threads(one, two, rates(run, 1)?, rates(run, 2)?);
        }
    }
    Ok(())
}

fn two_threads(one: &Learned, two: &Learned, from: Rates, to: Rates) {
    head(&format!("A device left out: {} with two threads, from its steps with one and the two rates", two.engine));
    let [mut scaled, mut same] = [const { Vec::new() }; 2];
    for step in &two.steps {
        let name = &two.names[step.network];
        let other = one.steps.iter().find(|other| one.names[other.network] == *name && other.batch == step.batch);
        let Some(other) = other else { continue };
        let layers: Vec<Work> =
            step.layers.iter().map(|layer| Work { flops: layer.flops, bytes: layer.bytes }).collect();
        let ratio = RateModel::FORMULA.step(&layers, to) / RateModel::FORMULA.step(&layers, from);
        scaled.push(Case { estimate: plain(other.seconds * ratio), truth: step.seconds });
        same.push(Case { estimate: plain(other.seconds), truth: step.seconds });
    }
    row("scaled by the rates", &scaled, false);
    row("the time of one thread as it is", &same, false);
}

/// The work of every step, for another program's models.
fn table_of(learned: &[Learned]) -> String {
    let kinds: BTreeSet<usize> =
        learned.iter().flat_map(|l| &l.steps).flat_map(|step| &step.layers).map(|layer| layer.kind).collect();
    let mut text = String::from("device,network,batch_size,layers,flops,bytes,seconds");
    kinds.iter().for_each(|kind| text.push_str(&format!(",flops_{kind},bytes_{kind}")));
    for learned in learned {
        for step in &learned.steps {
            let sum = |of: &dyn Fn(&LayerWork) -> f64| step.layers.iter().map(of).sum::<f64>();
            let (flops, bytes) = (sum(&|layer| layer.flops), sum(&|layer| layer.bytes));
            text.push_str(&format!(
                "\n\"{}\",{},{},{},{flops},{bytes},{}",
                learned.label,
                learned.names[step.network],
                step.batch,
                step.layers.len(),
                step.seconds
            ));
            for kind in &kinds {
                let of =
                    |value: fn(&LayerWork) -> f64| sum(&|layer| if layer.kind == *kind { value(layer) } else { 0.0 });
                text.push_str(&format!(",{},{}", of(|layer| layer.flops), of(|layer| layer.bytes)));
            }
        }
    }
    text + "\n"
}

//! Networks left out, and a device.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use batchstep::network::Cost;
use batchstep::predict::database::Database;
use batchstep::predict::learnable;
use batchstep::predict::model::layers::{LayerWork, StepModel, StepWork};
use batchstep::predict::model::rates::{RateModel, Rates};
use batchstep::settings::EngineName;
use batchstep::store::AxisValues;

use super::Failure;
use super::table::{Case, head, plain, row};

/// The steps of a device, an engine and one set of settings.
pub struct Learned {
    pub label: String,
    pub engine: EngineName,
    pub threads: usize,
    pub steps: Vec<StepWork>,
    pub names: Vec<String>,
}

fn name_of(engine: &str) -> Result<EngineName, Failure> {
    Ok(EngineName::from_name(engine).ok_or_else(|| format!("no engine is called `{engine}`"))?)
}

pub fn other_networks(database: &Database, run: &Path, against: &mut Vec<Case>) -> Result<Vec<Learned>, Failure> {
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
    let flops = |step: &StepWork| step.layers.iter().map(|layer| layer.work.flops).sum::<f64>();
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
pub fn named_networks(database: &Database, run: &Path) -> Result<(), Failure> {
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
        // A network that was not measured has no measured layers.
        step.layers.iter_mut().for_each(|layer| layer.seconds = None);
        Case { estimate: model.at(&step), truth: step.seconds }
    };
    unknown.into_iter().map(case).collect()
}

/// The measured rates of a device with `threads` threads.
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
pub fn threads(learned: &[Learned], run: &Path) -> Result<(), Failure> {
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
        let layers: Vec<Cost> = step.layers.iter().map(|layer| layer.work).collect();
        let ratio = RateModel::FORMULA.step(&layers, to) / RateModel::FORMULA.step(&layers, from);
        scaled.push(Case { estimate: plain(other.seconds * ratio), truth: step.seconds });
        same.push(Case { estimate: plain(other.seconds), truth: step.seconds });
    }
    row("scaled by the rates", &scaled, false);
    row("the time of one thread as it is", &same, false);
}

/// The work of every step, for another program's models.
pub fn table_of(learned: &[Learned]) -> String {
    let kinds: BTreeSet<u64> =
        learned.iter().flat_map(|l| &l.steps).flat_map(|step| &step.layers).map(|layer| layer.kind).collect();
    let mut text = String::from("device,network,batch_size,layers,flops,bytes,seconds");
    kinds.iter().for_each(|kind| text.push_str(&format!(",flops_{kind},bytes_{kind}")));
    for learned in learned {
        for step in &learned.steps {
            let sum = |of: &dyn Fn(&LayerWork) -> f64| step.layers.iter().map(of).sum::<f64>();
            let (flops, bytes) = (sum(&|layer| layer.work.flops), sum(&|layer| layer.work.bytes));
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
                text.push_str(&format!(",{},{}", of(|layer| layer.work.flops), of(|layer| layer.work.bytes)));
            }
        }
    }
    text + "\n"
}

//! Does an engine compute, on this machine, what a plan is about to time? Asked before the first timed step, and remembered.
//!
//! The step of each network and setting of the plan runs three times from its own parameters, as it will be measured: the same shapes, precision,
//! layout, launch, streams and algorithms. Output, gradients, update and losses are held against those of the CPU engine in float32, which `selftest`
//! holds against double precision, with the selftest's limits. Two batch sizes, one of them odd: the largest of the plan whose steps the CPU engine
//! computes in seconds. The first step is then prepared once more and has to give the same bits: algorithms that add in no fixed order are never chosen, so that a difference
//! is a race or memory that nothing wrote.
//!
//! What passed is remembered by everything that it depends on: the device, the libraries and the driver, this program, the network, the settings
//! and the batch sizes. What failed is tried again.

#[cfg(test)]
mod tests;

use crate::cache::{Cache, Key};
use crate::engine::open::Engines;
use crate::engine::{Engine, Settings, Workload};
use crate::error::{Error, Kind, Result};
use crate::network::{Direction, Network};
use crate::plan::{Cell, Plan};
use crate::selftest::{Check, FirstSteps, first_steps};
use crate::settings::EngineName;

/// Which engines are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// batchstep's own on a GPU.
    Gpu,
    /// The CPU's as well, against the reference in double precision, and candle's.
    Every,
    None,
}

/// The arithmetic that a reference may be asked for, in FLOP: some ten seconds of two cores on the CPU engine, and of one core in the reference of
/// plain loops in double precision.
const AFFORDABLE: f64 = 1e12;
const AFFORDABLE_IN_DOUBLE: f64 = 1e10;
/// Steps of a comparison.
const STEPS: f64 = 3.0;

/// What is known of each cell of a plan, in its order: `None` where the engine is not one that is asked.
pub type Qualified = Vec<Option<bool>>;

/// What the user should see while it happens.
pub trait Witness {
    /// A comparison begins that is not remembered.
    fn begins(&mut self, what: &str);
    /// Something that is allowed, and worth knowing.
    fn notes(&mut self, what: &str);
}

/// Asks the engines about every network and setting of the plan.
///
/// # Errors
/// [`Kind::Device`] where an engine computes something else than it should: what, by how much, and what to do.
pub fn qualify(
    plan: &Plan,
    engines: &mut Engines,
    asked: Asked,
    cache: &Cache,
    witness: &mut dyn Witness,
) -> Result<Qualified> {
    let mut known: Vec<(Subject, bool)> = Vec::new();
    let mut qualified = Vec::with_capacity(plan.cells.len());
    for cell in &plan.cells {
        let name = engines.resolve(cell.engine);
        if !asked.includes(name) {
            qualified.push(is_computed_here(name).then_some(false));
            continue;
        }
        let subject = Subject::of(cell, name, engines)?;
        let found = match known.iter().find(|(before, _)| *before == subject) {
            Some((_, found)) => *found,
            None => {
                let affordable = if name == EngineName::Cpu { AFFORDABLE_IN_DOUBLE } else { AFFORDABLE };
                let sizes = sizes(plan, cell, affordable);
                let found = subject.passes(&sizes, engines, cache, witness)?;
                known.push((subject, found));
                found
            }
        };
        qualified.push(Some(found));
    }
    Ok(qualified)
}

impl Asked {
    fn includes(self, engine: EngineName) -> bool {
        match self {
            Self::Gpu => engine == EngineName::Cudnn,
            Self::Every => [EngineName::Cudnn, EngineName::Cpu, EngineName::Candle].contains(&engine),
            Self::None => false,
        }
    }
}

/// An engine whose steps must not be recorded without a word on whether they were checked.
fn is_computed_here(engine: EngineName) -> bool {
    engine == EngineName::Cudnn
}

/// What is compared: everything but the batch size.
#[derive(Clone, PartialEq)]
struct Subject {
    engine: EngineName,
    network: std::sync::Arc<Network>,
    /// In force.
    settings: Settings,
}

impl Subject {
    fn of(cell: &Cell, engine: EngineName, engines: &mut Engines) -> Result<Self> {
        let settings = engines.get(engine)?.in_force(&cell.workload.settings)?;
        Ok(Self { engine, network: cell.workload.network.clone(), settings })
    }

    /// Whether it passed, now or before. False where there is no memory for it, or an engine refuses it.
    fn passes(&self, sizes: &[usize], engines: &mut Engines, cache: &Cache, witness: &mut dyn Witness) -> Result<bool> {
        let mut reference = match self.engine {
            EngineName::Cpu => Engines::reference(),
            _ => Engines::cpu_reference(),
        };
        let engine = engines.get(self.engine)?;
        let facts = self.facts(engine, sizes);
        let key = Key(facts.iter().map(String::as_str).collect());
        if cache.get(&key).is_some() {
            return Ok(true);
        }
        let list = sizes.iter().map(usize::to_string).collect::<Vec<_>>().join(" and ");
        let against = &reference.device().name;
        let name = format!("{}'s step of {}", self.engine, self.network.name);
        witness.begins(&format!(
            "checking {name} at batch sizes {list} against {against}, once for this machine and program"
        ));
        for &batch_size in sizes {
            let workload = Workload { network: self.network.clone(), batch_size, settings: self.settings.clone() };
            match first_steps(engine, reference.as_mut(), &workload) {
                Ok(FirstSteps { check, .. }) if !check.passed() => return Err(wrong(self.engine, &check)),
                Ok(FirstSteps { repeats: false, check }) => {
                    let Check { way, batch_size, .. } = check;
                    let what =
                        format!("{name} ({way}) gives other bits when it is repeated, at batch size {batch_size}");
                    return Err(Error::device(format!("{what}; nothing was timed")).hint(REMEDY));
                }
                Ok(_) => {}
                // The run itself says so, in the cells that it concerns, and goes on with the others.
                Err(error) if [Kind::OutOfMemory, Kind::Engine].contains(&error.kind()) => {
                    witness
                        .notes(&format!("{name} is not checked: {}; its rows say `qualified` = false", error.clause()));
                    return Ok(false);
                }
                Err(error) => return Err(error),
            }
        }
        cache.put(&key, b"passed");
        Ok(true)
    }

    /// Everything that the result depends on.
    fn facts(&self, engine: &dyn Engine, sizes: &[usize]) -> Vec<String> {
        let device = engine.device();
        vec![
            program(),
            format!("{} {}", device.id, device.name),
            engine.version().unwrap_or_default(),
            format!("{} {sizes:?}", self.engine),
            format!("{:?}", self.network),
            format!("{:?}", self.settings),
        ]
    }
}

const REMEDY: &str = "`batchstep selftest` finds the operator; PyTorch measures the same network with `name = \"torch\"` in [engine]; \
                      `--qualify never` measures all the same, with `qualified` = false in every row";

fn wrong(engine: EngineName, check: &Check) -> Error {
    let Check { name, way, batch_size, errors, limits } = check;
    let pairs = [
        ("the output is", errors.output, limits.output),
        ("gradients are", errors.gradients, limits.gradients),
        ("an update is", errors.updates, limits.updates),
        ("losses are", errors.losses, limits.losses),
    ];
    let beyond = pairs.iter().filter(|(_, found, most)| found > most);
    let said: Vec<String> =
        beyond.map(|(what, found, most)| format!("{what} off by {found:.1e} (allowed: {most:.0e})")).collect();
    let what = format!(
        "{engine} computes {name} ({way}) wrongly at batch size {batch_size}, and nothing was timed: {}",
        said.join(", ")
    );
    Error::device(what).hint(REMEDY)
}

/// Two neighbouring batch sizes: the larger is the plan's largest for the cell's network that the reference can afford, and at least 3.
fn sizes(plan: &Plan, cell: &Cell, affordable: f64) -> [usize; 2] {
    let network = &cell.workload.network;
    let most = (affordable / (STEPS * flops(network))) as usize;
    let own = plan.cells.iter().filter(|other| other.workload.network == *network).map(|cell| cell.workload.batch_size);
    let largest = own.filter(|size| *size <= most).max().unwrap_or(0).max(3);
    [largest - 1, largest]
}

/// Of a training step with one example.
fn flops(network: &Network) -> f64 {
    let layers = (0..network.layers.len()).flat_map(|index| Direction::ALL.map(|direction| (index, direction)));
    layers.filter_map(|(index, direction)| Some(network.cost(index, 1, direction, 4)?.flops)).sum()
}

/// This build: two builds of a version need not compute the same.
fn program() -> String {
    let built = || {
        let file = std::env::current_exe().ok()?.metadata().ok()?;
        let since = file.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
        Some(format!("{} bytes, {} s", file.len(), since.as_secs()))
    };
    format!("batchstep {}, {}", env!("CARGO_PKG_VERSION"), built().unwrap_or_default())
}

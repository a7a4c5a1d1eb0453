//! Does an engine compute, on this machine, what a plan is about to time? Checked before the first timed step, and remembered.
//!
//! First the step of each network and setting of the plan is taken apart into parts: each layer with everything that is computed together with it, forward
//! and backward, at the plan's own shapes, precision, layout and algorithms. Its values and gradients are compared with those that the CPU engine computes in
//! float32 from the same operands ([`parts`]). Then the whole step runs three times
//! as it will be measured, with the launch and the streams of the plan. Its output, gradients, update and losses are compared, within the limits of
//! `selftest`, with a step of the CPU engine, which `selftest` compares with double precision. This is done at two batch sizes, one of them odd: the largest
//! of the plan whose steps the CPU engine computes in seconds. The first step is then prepared once more and has to give the same bits: algorithms that add
//! in no fixed order are never chosen, so a difference means a race or unwritten memory. At the other batch sizes, the parts of a layer are checked if another
//! algorithm computes it there ([`later`]).
//!
//! If anything fails, the engine is refused, and nothing of it is timed.
//!
//! A pass is remembered together with everything that it depends on: the device, the libraries and the driver, this program, the network, the settings,
//! the batch sizes and the algorithms of the layers. Failed checks are repeated.

mod fault;
mod later;
mod parts;
#[cfg(test)]
mod tests;

use crate::check::selftest::{self, FirstSteps, first_steps};
use crate::device::nvml;
use crate::engine::open::Engines;
use crate::engine::{Engine, Settings, Workload, part};
use crate::error::{Error, Kind, Result};
use crate::network::Network;
use crate::os::cache::{Cache, program};
use crate::settings::EngineName;
use crate::spec::plan::{Cell, Plan};
use fault::{Fault, REMEDY, of_part, of_step};
use later::{CheckedSoFar, flops};

/// Which engines are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// batchstep's own and candle's on a GPU.
    Gpu,
    /// The CPU's as well, against the reference in double precision, and candle's.
    Every,
    None,
}

/// The arithmetic that a reference may be asked for, in FLOP: some ten seconds of two cores on the CPU engine, and of one core in the reference of
/// plain loops in double precision.
const AFFORDABLE: f64 = 1e12;
const AFFORDABLE_IN_DOUBLE: f64 = 1e10;
/// Steps of a comparison: three whole ones, and the parts of one, whose gradients take their layers' outputs again.
const STEPS: f64 = 3.0 + 4.0 / 3.0;

/// Checks every network and setting of the plan on its engines. Gives for each cell, in the plan's order, whether it was checked; `None` if its engine is
/// not checked. `say` hears what the user should see while it happens: a comparison begins that is not remembered; something is allowed, and worth knowing.
///
/// # Errors
/// [`Kind::Device`] if an engine computes wrong values, or if `auto` took an engine that refuses
/// every step of the plan: what, by how much, and what to do.
pub fn qualify(
    plan: &Plan,
    engines: &mut Engines,
    asked: Asked,
    cache: &Cache,
    say: &mut dyn FnMut(&str),
) -> Result<Vec<Option<bool>>> {
    Checking { plan, engines, cache, say }.cells(asked)
}

struct Checking<'a> {
    plan: &'a Plan,
    engines: &'a mut Engines,
    cache: &'a Cache,
    say: &'a mut dyn FnMut(&str),
}

impl Checking<'_> {
    /// See [`qualify`].
    fn cells(&mut self, asked: Asked) -> Result<Vec<Option<bool>>> {
        let mut known: Vec<(ComparedStep, Option<CheckedSoFar>)> = Vec::new();
        let mut cells = Vec::with_capacity(self.plan.cells.len());
        let mut refusal = None;
        let plan = self.plan;
        for cell in &plan.cells {
            let name = self.engines.resolve(cell.engine);
            let is_on_gpu = self.engines.get(name)?.device().id.starts_with("cuda");
            if !asked.includes(name, is_on_gpu) {
                // Steps of our own kernels must not be recorded without a word on whether they were checked.
                cells.push((name == EngineName::Cudnn).then_some(false));
                continue;
            }
            let settings = self.engines.get(name)?.in_force(&cell.workload.settings)?;
            let network = cell.workload.network.clone();
            let is_it = |(step, _): &(ComparedStep, _)| {
                step.engine == name && step.network == network && step.settings == settings
            };
            let place = match known.iter().position(is_it) {
                Some(place) => place,
                None => {
                    let affordable = if name == EngineName::Cpu { AFFORDABLE_IN_DOUBLE } else { AFFORDABLE };
                    let subject =
                        ComparedStep { engine: name, network, settings, sizes: sizes(plan, cell, affordable) };
                    let answer = self.answer(&subject)?;
                    let passed = self.judge(cell, &subject, answer, &mut refusal)?;
                    let seen = if passed { Some(self.seen(&subject)?) } else { None };
                    known.push((subject, seen));
                    known.len() - 1
                }
            };
            let (subject, seen) = &mut known[place];
            let found = match seen {
                None => false,
                Some(seen) => {
                    let answer = self.later(subject, seen, cell.workload.batch_size)?;
                    self.judge(cell, subject, answer, &mut None)?
                }
            };
            cells.push(Some(found));
        }
        for (subject, seen) in &known {
            if let Some(seen) = seen {
                self.say_unchecked(subject, seen);
            }
        }
        match refusal {
            Some(error) if known.iter().all(|(_, seen)| seen.is_none()) => {
                let what = format!("no step of this plan can be computed here: {}", error.clause());
                Err(Error::device(what).hint(error.remedy().unwrap_or(REMEDY)))
            }
            _ => Ok(cells),
        }
    }

    /// Whether that is good enough for a row that says `qualified`.
    fn judge(
        &mut self,
        cell: &Cell,
        subject: &ComparedStep,
        answer: CheckResult,
        refusal: &mut Option<Error>,
    ) -> Result<bool> {
        if let CheckResult::Fails(fault) = &answer {
            self.cache.put(&[LAST_FAILURE], format!("{}: {}", program(), fault.why).as_bytes());
        }
        Ok(match answer {
            CheckResult::Passed => true,
            CheckResult::Unchecked => false,
            CheckResult::Fails(Fault { error, .. }) if error.kind() != Kind::Engine => return Err(error),
            // The run itself says so, in the cells that it concerns, and goes on with the others.
            CheckResult::Fails(Fault { error, why, .. }) => {
                let name = subject.name();
                (self.say)(&format!("{name} is not checked: {why}; its rows say `qualified` = false"));
                *refusal = (cell.engine == EngineName::Auto).then_some(error);
                false
            }
        })
    }

    /// Whether a step passes, now or in a remembered check.
    fn answer(&mut self, subject: &ComparedStep) -> Result<CheckResult> {
        let engine = self.engines.get(subject.engine)?;
        if remembers(self.cache, subject.facts_of_step(engine)) {
            return Ok(CheckResult::Passed);
        }
        let reference = || match subject.engine {
            EngineName::Cpu => Engines::reference(),
            _ => Engines::cpu_reference(),
        };
        let against = &reference().device().name.clone();
        let list = subject.sizes.map(|size| size.to_string()).join(" and ");
        let name = subject.name();
        (self.say)(&format!(
            "checking {name} at batch sizes {list} against {against}, once for this machine and program"
        ));
        for batch_size in subject.sizes {
            let workload = subject.workload(batch_size);
            let room = selftest::room_for_first_steps(engine, subject.engine == EngineName::Cpu, &workload);
            let apart = room.map_err(part::Fault::from).and_then(|()| engine.take_apart(&workload, &mut parts::check));
            match apart.and_then(|()| Ok(first_steps(engine, reference(), &workload)?)) {
                Ok(FirstSteps { repeats: true, check }) if check.passed() => {}
                Ok(FirstSteps { check, .. }) => return Ok(CheckResult::Fails(of_step(subject.engine, &check))),
                Err(part::Fault { error, .. }) if error.kind() == Kind::OutOfMemory => {
                    let why = error.clause();
                    (self.say)(&format!("{name} is not checked: {why}; its rows say `qualified` = false"));
                    return Ok(CheckResult::Unchecked);
                }
                Err(fault) => return of_part(subject, &workload, fault).map(CheckResult::Fails),
            }
        }
        // An algorithm may have been refused when it ran, and another one was checked in its place.
        remember(self.cache, subject.facts_of_step(engine));
        Ok(CheckResult::Passed)
    }
}

/// The last failure that was found with this cache, for a report: the program, the layer or the step, the operator and the number. A run says it once, and
/// stores nothing where it is refused.
pub fn last_failure(cache: &Cache) -> Option<String> {
    cache.get(&[LAST_FAILURE]).map(|text| String::from_utf8_lossy(&text).into_owned())
}

/// What the last run of several engines said of them, one sentence a line: how their times, their first losses and their jumps compare.
pub fn last_comparison(cache: &Cache) -> Option<String> {
    cache.get(&[LAST_COMPARISON]).map(|text| String::from_utf8_lossy(&text).into_owned())
}

/// Keeps what a run of several engines said of them, for a report.
pub fn keep_comparison(cache: &Cache, sentences: &[String]) {
    cache.put(&[LAST_COMPARISON], format!("{}\n{}", program(), sentences.join("\n")).as_bytes());
}

const LAST_COMPARISON: &str = "the last comparison";
const LAST_FAILURE: &str = "the last failure";

enum CheckResult {
    Passed,
    /// There is too little memory for it.
    Unchecked,
    Fails(Fault),
}

impl Asked {
    fn includes(self, engine: EngineName, is_on_gpu: bool) -> bool {
        match self {
            Self::Gpu => engine == EngineName::Cudnn || engine == EngineName::Candle && is_on_gpu,
            Self::Every => [EngineName::Cudnn, EngineName::Cpu, EngineName::Candle].contains(&engine),
            Self::None => false,
        }
    }
}

struct ComparedStep {
    engine: EngineName,
    network: std::sync::Arc<Network>,
    /// In force.
    settings: Settings,
    sizes: [usize; 2],
}

impl ComparedStep {
    fn name(&self) -> String {
        format!("{}'s step of {}", self.engine, self.network.name)
    }

    fn workload(&self, batch_size: usize) -> Workload {
        Workload { network: self.network.clone(), batch_size, settings: self.settings.clone() }
    }

    /// Everything on which the result of the step at its two batch sizes depends, with the algorithms in force now; `None` if there is no step.
    fn facts_of_step(&self, engine: &mut dyn Engine) -> Option<Vec<String>> {
        let mut algorithms = Vec::new();
        for size in self.sizes {
            algorithms.extend(engine.algorithms(&self.workload(size)).ok()?);
        }
        Some(self.facts(engine, &self.sizes, &algorithms))
    }

    /// Everything that the result at these batch sizes, by these algorithms of its layers, depends on.
    fn facts<'a>(
        &self,
        engine: &dyn Engine,
        sizes: &[usize],
        algorithms: impl IntoIterator<Item = &'a (usize, String)>,
    ) -> Vec<String> {
        let device = engine.device();
        let mut facts = vec![
            program(),
            format!("{} {}", device.id, device.name),
            engine.version().unwrap_or_default(),
            nvml::driver().version.unwrap_or_default(),
            format!("{} {sizes:?}", self.engine),
            format!("{:?}", self.network),
            format!("{:?}", self.settings),
        ];
        facts.extend(algorithms.into_iter().map(|(layer, algorithm)| format!("{layer} {algorithm}")));
        facts
    }
}

/// Whether a step with these facts has passed before; false without facts.
fn remembers(cache: &Cache, facts: Option<Vec<String>>) -> bool {
    facts.is_some_and(|facts| cache.get(&facts).is_some())
}

fn remember(cache: &Cache, facts: Option<Vec<String>>) {
    if let Some(facts) = facts {
        cache.put(&facts, b"passed");
    }
}

/// Two neighbouring batch sizes: the larger is the plan's largest for the cell's network that the reference can afford, and at least 3.
fn sizes(plan: &Plan, cell: &Cell, affordable: f64) -> [usize; 2] {
    let network = &cell.workload.network;
    let most = (affordable / (STEPS * flops(network, 1, 0..network.layers.len()))) as usize;
    let own = plan.cells.iter().filter(|other| other.workload.network == *network).map(|cell| cell.workload.batch_size);
    let largest = own.filter(|size| *size <= most).max().unwrap_or(0).max(3);
    [largest - 1, largest]
}

//! Does this machine compute what it should? Every operator, and whole steps of every network, by an engine and by the
//! reference: the definition of each operator in double precision, which shares no arithmetic with any engine.
//!
//! One step is run on random data; its output and the gradient of each parameter are held against the reference's. The change of
//! each parameter is held against what the reference's optimizer makes of the engine's own gradients: the first updates of RMSprop
//! and Adam are nearly the signs of the gradients, so that a rounding that turns the sign of a tiny gradient turns a whole update.
//! A network around an operator has trained layers before it and after it, so that what the
//! operator gives, and the gradient that it passes on, are among the numbers compared. Two more steps then give two more
//! losses, which depend on everything.

mod cases;
mod failure;
#[cfg(test)]
mod tests;
mod trace;
#[cfg(test)]
mod wrong_engines;

#[cfg(test)]
pub(crate) use cases::{all_settings, workloads};

use std::ops::ControlFlow;

use crate::engine::{Engine, Settings, Workload, memory};
use crate::error::{Error, Result};
use crate::settings::{AXES, Axis, EngineName, Optimizer, Precision, Role};
pub(crate) use cases::Depth;
pub use failure::first_failure;
use trace::{Detail, Expected, Trace, taken};

/// Steps of each comparison.
const STEPS: usize = 3;
const CLASSES: usize = 5;

/// The limit of an update: every engine computes it in float32, whatever the precision of the step.
const UPDATE_LIMIT: f64 = 2e-4;

#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// The operator or the network, and what is special about it.
    pub name: String,
    /// How it was computed: `tf32 nhwc rmsprop graph`; what is usual is left out.
    pub way: String,
    pub batch_size: usize,
    pub errors: Errors,
    /// The largest errors that pass; infinite where nothing can be asked.
    pub limits: Errors,
}

/// How far an engine is from the reference: the norm of the difference over the norm of the reference's values; for
/// parameters, the largest of all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Errors {
    pub output: f64,
    pub gradients: f64,
    /// The error of one update of the parameters, given the engine's own gradients.
    pub updates: f64,
    /// The error of the loss of the first step, which comes before any update.
    pub first_loss: f64,
    /// The error of the later losses, each relative to itself or to the first.
    pub losses: f64,
}

impl Check {
    /// Each error by its name, with the largest that passes.
    pub fn parts(&self) -> [(&'static str, f64, f64); 5] {
        let (found, most) = (self.errors, self.limits);
        [
            ("output", found.output, most.output),
            ("gradients", found.gradients, most.gradients),
            ("updates", found.updates, most.updates),
            ("first_loss", found.first_loss, most.first_loss),
            ("losses", found.losses, most.losses),
        ]
    }

    /// True where the engine agrees with the reference.
    pub fn passed(&self) -> bool {
        self.parts().iter().all(|(_, found, most)| found <= most)
    }
}

/// The engine of that name, if it reports what it computes: PyTorch's process reports only times, and the synthetic engine
/// computes nothing.
///
/// # Errors
/// [`crate::error::Kind::Spec`] for any other name.
pub fn engine(name: &str) -> Result<EngineName> {
    let silent = [EngineName::Torch, EngineName::Synthetic];
    let mut checkable = EngineName::ALL.iter().filter(|engine| !silent.contains(engine));
    checkable.clone().find(|engine| engine.name() == name).copied().ok_or_else(|| {
        let names = checkable.by_ref().map(|engine| engine.name()).collect::<Vec<_>>();
        Error::spec(format!("`{name}` is no engine that can be checked")).hint(format!("one of: {}", names.join(", ")))
    })
}

/// Which checks to run, by the words of their lines: `resnet50`, `fp32 nhwc`, `conv2d 1x1 tf32`, `batch 17`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckFilter {
    /// Only checks whose lines contain any of these; empty for all.
    pub only: Vec<String>,
    /// Skips checks whose lines contain any of these.
    pub skip: Vec<String>,
}

impl CheckFilter {
    fn takes(&self, workload: &Workload) -> bool {
        let line = format!(" {} ", label(workload));
        let has = |words: &String| line.contains(&format!(" {} ", words.trim()));
        (self.only.is_empty() || self.only.iter().any(has)) && !self.skip.iter().any(has)
    }
}

/// Runs every chosen check; `seen` is called with each when it is done.
///
/// # Errors
/// What the reference refuses; [`crate::error::Kind::Spec`] where nothing is chosen; [`crate::error::Kind::Device`] where the
/// device does not work any more, as a GPU after a kernel that reads where nothing is. A wrong number, or a workload that
/// the engine refuses, is no error but a failed check.
pub fn run(
    engine: &mut dyn Engine,
    reference: &mut dyn Engine,
    choice: &CheckFilter,
    mut seen: impl FnMut(&Check),
) -> Result<Vec<Check>> {
    let mut checks = Vec::new();
    each(engine, reference, choice, &mut |_, Compared { check, .. }| {
        seen(&check);
        checks.push(check);
        ControlFlow::Continue(())
    })?;
    Ok(checks)
}

/// The checks one after another, until `seen` breaks off.
///
/// # Errors
/// As [`run`].
fn each(engine: &mut dyn Engine, reference: &mut dyn Engine, choice: &CheckFilter, seen: CheckReceiver) -> Result<()> {
    let mut nothing = true;
    let mut known = Vec::new();
    for settings in cases::supported(engine) {
        for workload in cases::workloads(&settings)?.into_iter().filter(|workload| choice.takes(workload)) {
            let expected = remembered(&mut known, reference, &workload)?;
            let check = compare(engine, expected, &workload);
            let refused = check.errors.output.is_infinite();
            nothing = false;
            if seen(engine, Compared { check, workload: &workload, expected }).is_break() {
                return Ok(());
            }
            if refused {
                still_works(engine, &workload)?;
            }
        }
    }
    if nothing {
        return Err(Error::spec("no check has these words").hint("`batchstep selftest` lists them all as it runs them"));
    }
    Ok(())
}

/// What the reference makes of a workload, which it computes once for all ways to compute it.
fn remembered<'a>(
    known: &'a mut Vec<(Workload, Expected)>,
    reference: &mut dyn Engine,
    workload: &Workload,
) -> Result<&'a Expected> {
    let plain = cases::of_reference(workload);
    let place = match known.iter().position(|(known, _)| *known == plain) {
        Some(place) => place,
        None => {
            let expected = Expected::of(reference, &plain)?;
            known.push((plain, expected));
            known.len() - 1
        }
    };
    Ok(&known[place].1)
}

/// Receives each check when it is done, with its engine; breaks off if no further check is wanted.
type CheckReceiver<'a> = &'a mut dyn FnMut(&mut dyn Engine, Compared) -> ControlFlow<()>;

struct Compared<'a> {
    check: Check,
    workload: &'a Workload,
    expected: &'a Expected,
}

/// See [`Engine::still_works`].
fn still_works(engine: &mut dyn Engine, last: &Workload) -> Result<()> {
    let Err(error) = engine.still_works() else { return Ok(()) };
    let Workload { network, settings, .. } = last;
    let (name, precision, layout) = (&network.name, settings.precision, settings.layout);
    let what = format!("nothing runs any more after {}: {error}", label(last));
    Err(Error::device(what).hint(format!("begin again without it: `--skip '{name} {precision} {layout}'`")))
}

/// A check of each workload, against the reference's own run of it.
///
/// # Errors
/// What the reference refuses.
#[cfg(test)]
pub(crate) fn checks(
    engine: &mut dyn Engine,
    reference: &mut dyn Engine,
    workloads: &[Workload],
) -> Result<Vec<Check>> {
    let mut known = Vec::new();
    let check = |workload| Ok(compare(engine, remembered(&mut known, reference, workload)?, workload));
    workloads.iter().map(check).collect()
}

/// The first steps of a workload as it is, from its own seed, against those of another engine, and whether the first one gives the same bits when it
/// is prepared again. A network of tens of millions of parameters takes four times its parameters in double precision: [`room_for_first_steps`].
///
/// # Errors
/// What either engine refuses.
pub fn first_steps(engine: &mut dyn Engine, mut reference: Box<dyn Engine>, workload: &Workload) -> Result<FirstSteps> {
    let Settings { optimizer, learning_rate, loss, seed, examples, .. } = workload.settings;
    let settings =
        Settings { optimizer, learning_rate, loss, seed, examples, ..cases::of_reference(workload).settings };
    let expected = Expected::of(reference.as_mut(), &Workload { settings, ..workload.clone() })?;
    // With the memory of its last step.
    drop(reference);
    let found = Trace::of(engine, workload, Detail::First)?;
    let depth = cases::depth(&workload.network).max(Depth::Network);
    let errors = found.errors(&expected, &workload.settings);
    let check = judged(workload, workload.network.name.clone(), errors, depth);
    drop(expected);
    let (output, gradients) = (found.first.output, found.first.gradients);
    let again = taken(engine.prepare(workload)?.as_mut(), workload)?.1;
    Ok(FirstSteps { check, repeats: again.output == output && again.gradients == gradients })
}

/// Refuses the comparison of [`first_steps`] if this machine has too little memory for it: a process that is killed prints no message. `double`:
/// the reference computes in double precision.
///
/// # Errors
/// [`crate::error::Kind::OutOfMemory`], with the memory that it takes and the memory that is free.
pub fn room_for_first_steps(engine: &dyn Engine, double: bool, workload: &Workload) -> Result<()> {
    let of_reference = memory::step_bytes(workload, if double { 8 } else { 4 });
    let is_here = engine.device().id == "cpu";
    let own = if is_here { memory::step_bytes(workload, 4) } else { 0 };
    memory::check("comparing its first steps takes", trace::bytes(workload, of_reference, own))
}

/// See [`first_steps`].
#[derive(Clone, Debug, PartialEq)]
pub struct FirstSteps {
    pub check: Check,
    /// Bit for bit.
    pub repeats: bool,
}

fn compare(engine: &mut dyn Engine, expected: &Expected, workload: &Workload) -> Check {
    let all = f64::INFINITY;
    let failed = Errors { output: all, gradients: all, updates: all, first_loss: all, losses: all };
    let found = Trace::of(engine, workload, Detail::EachStep);
    let name = match &found {
        Ok(_) => workload.network.name.clone(),
        Err(error) => format!("{}: {error}", workload.network.name),
    };
    let errors = found.map_or(failed, |found| found.errors(expected, &workload.settings));
    judged(workload, name, errors, cases::depth_of(workload))
}

fn judged(workload: &Workload, name: String, errors: Errors, depth: Depth) -> Check {
    let limits = limits(&workload.settings, depth);
    Check { name, way: way(workload), batch_size: workload.batch_size, errors, limits }
}

/// What [`CheckFilter`] looks at.
fn label(workload: &Workload) -> String {
    format!("{} {} batch {}", workload.network.name, way(workload), workload.batch_size)
}

/// `tf32 nhwc rmsprop graph 2 streams`: the layout, and every other axis of the method that is not at its
/// default.
pub fn way(workload: &Workload) -> String {
    let settings = &workload.settings;
    let value = |axis: &Axis| (axis.get)(settings);
    let is_method = |axis: &&Axis| axis.role == Role::Method && axis.column != "layout";
    let unusual = AXES.iter().filter(is_method).filter(|axis| value(axis) != axis.default_value());
    let named: String =
        unusual.filter_map(|axis| axis.annotation(&value(axis).to_string())).map(|text| format!(" {text}")).collect();
    format!("{} {} {}{named}", settings.precision, settings.layout, settings.optimizer)
}

/// The rounding of the arithmetic in force, times the growth of rounding errors in the layers of a network. Where a rounding
/// error moves a number across the corner of a rectifier, or makes another value the maximum of a window, the gradient flows
/// elsewhere: gradients of whole networks differ by much more than outputs do. Behind tens of batch norms the gradients have no
/// limit at low precision, and the losses after the first update have none at any precision. Where RMSprop or Adam make signs of
/// the gradients, a loss after an update has a limit only for an operator in float32: the sign of a tiny gradient is rounding. In bf16,
/// gradients that are 0.21 apart made losses 1.1 apart; in float32, a millionth in the convolutions of a VGG makes up to 1.7e-3. The first loss comes before any update and always has a limit; behind tens of batch norms it is that of the output. The operators are
/// checked one by one.
pub(crate) fn limits(settings: &Settings, depth: Depth) -> Errors {
    let parts = |output: f64, gradients, losses: f64| {
        let first_loss = if losses.is_finite() { losses } else { output };
        Errors { output, gradients, updates: UPDATE_LIMIT, first_loss, losses }
    };
    let all = |most: f64| parts(most, most, most);
    let Settings { precision, optimizer, .. } = *settings;
    let makes_signs = !matches!(optimizer, Optimizer::Sgd | Optimizer::Momentum);
    let most = match (precision, depth) {
        (Precision::Fp32, Depth::Operator) => all(2e-4),
        (Precision::Fp32, Depth::Network) => parts(1e-3, 0.05, 1e-3),
        (Precision::Fp32, Depth::Steep) => parts(1e-3, 0.3, f64::INFINITY),
        (Precision::Tf32, Depth::Operator) => all(1e-2),
        (Precision::Tf32, Depth::Network) => parts(2e-2, 0.3, 1e-2),
        (Precision::Tf32, Depth::Steep) => parts(0.3, f64::INFINITY, f64::INFINITY),
        (Precision::Bf16 | Precision::Fp16, Depth::Operator) => all(5e-2),
        (Precision::Bf16 | Precision::Fp16, Depth::Network) => parts(0.1, 0.6, 5e-2),
        (Precision::Bf16 | Precision::Fp16, Depth::Steep) => parts(0.7, f64::INFINITY, f64::INFINITY),
    };
    match makes_signs && (precision, depth) != (Precision::Fp32, Depth::Operator) {
        true => Errors { losses: f64::INFINITY, ..most },
        false => most,
    }
}

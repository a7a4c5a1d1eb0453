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
mod difference;
#[cfg(test)]
mod wrong_engines;

#[cfg(test)]
pub(crate) use cases::{comparable, operators, workloads};

use crate::engine::reference::UpdateRule;
use crate::engine::{Computed, Engine, Settings, Step, Workload};
use crate::error::{Error, Result};
use crate::settings::{AXES, Axis, EngineName, Optimizer, Precision, Role};
use cases::Depth;
use difference::{largest, relative, relative_change};

/// Steps of each comparison.
const STEPS: usize = 3;
const CLASSES: usize = 5;
/// Steps in float16 until the loss scale is low enough that no gradient overflows: 65536 halved to 1.
const MOST_SKIPPED: usize = 17;

/// Of an update: every engine computes it in float32, whatever the precision of the step.
const UPDATE_LIMIT: f64 = 2e-4;

/// One comparison.
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

/// How far an engine is from the reference: the norm of the difference over the norm of what the reference has; for
/// parameters, the largest of all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Errors {
    /// Of the network's output.
    pub output: f64,
    /// Of the gradients.
    pub gradients: f64,
    /// Of what one update changed the parameters by, given the engine's own gradients.
    pub updates: f64,
    /// Of the losses of consecutive steps, relative to the first.
    pub losses: f64,
}

impl Check {
    /// True where the engine agrees with the reference.
    pub fn passed(&self) -> bool {
        let (found, most) = (self.errors, self.limits);
        let pairs = [
            (found.output, most.output),
            (found.gradients, most.gradients),
            (found.updates, most.updates),
            (found.losses, most.losses),
        ];
        pairs.iter().all(|(found, most)| found <= most)
    }
}

/// The engine of that name, if it reports what it computes: PyTorch's process reports times alone, and the synthetic engine
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
pub struct Choice {
    /// Those that have any of these; empty for all.
    pub only: Vec<String>,
    /// But none that has any of these.
    pub skip: Vec<String>,
}

impl Choice {
    fn takes(&self, workload: &Workload) -> bool {
        let line = format!(" {} ", label(workload));
        let has = |words: &String| line.contains(&format!(" {} ", words.trim()));
        (self.only.is_empty() || self.only.iter().any(has)) && !self.skip.iter().any(has)
    }
}

/// Runs every chosen check; `seen` is called with each as it is done.
///
/// # Errors
/// What the reference refuses; [`crate::error::Kind::Spec`] where nothing is chosen; [`crate::error::Kind::Device`] where the
/// device does not work any more, as a GPU after a kernel that reads where nothing is. A wrong number, or a workload that
/// the engine refuses, is no error but a failed check.
pub fn run(
    engine: &mut dyn Engine,
    reference: &mut dyn Engine,
    choice: &Choice,
    mut seen: impl FnMut(&Check),
) -> Result<Vec<Check>> {
    let mut checks = Vec::new();
    let mut expected: Vec<(Workload, Trace)> = Vec::new();
    for settings in cases::supported(engine) {
        for workload in cases::workloads(&settings)?.into_iter().filter(|workload| choice.takes(workload)) {
            let plain = cases::of_reference(&workload);
            if !expected.iter().any(|(known, _)| *known == plain) {
                let trace = Trace::of(reference, &plain, Detail::EachStep)?;
                expected.push((plain.clone(), trace));
            }
            let Some((_, trace)) = expected.iter().find(|(known, _)| *known == plain) else { continue };
            let check = compare(engine, trace, &workload, Detail::EachStep);
            seen(&check);
            let refused = check.errors.output.is_infinite();
            checks.push(check);
            if refused {
                still_works(engine, &workload)?;
            }
        }
    }
    match checks.is_empty() {
        true => {
            Err(Error::spec("no check has these words").hint("`batchstep selftest` lists them all as it runs them"))
        }
        false => Ok(checks),
    }
}

/// See [`Engine::still_works`].
fn still_works(engine: &mut dyn Engine, last: &Workload) -> Result<()> {
    let Err(error) = engine.still_works() else { return Ok(()) };
    let Workload { network, settings, .. } = last;
    let (name, precision, layout) = (&network.name, settings.precision, settings.layout);
    let what = format!("nothing runs any more after {}: {error}", label(last));
    Err(Error::device(what).hint(format!("begin again without it: `--skip '{name} {precision} {layout}'`")))
}

/// One check, against the reference's own run of the workload.
///
/// # Errors
/// What the reference refuses.
#[cfg(test)]
pub(crate) fn check(engine: &mut dyn Engine, reference: &mut dyn Engine, workload: &Workload) -> Result<Check> {
    let expected = Trace::of(reference, &cases::of_reference(workload), Detail::EachStep)?;
    Ok(compare(engine, &expected, workload, Detail::EachStep))
}

/// The first steps of a workload as it is, from its own seed, against those of another engine, and whether the first one gives the same bits when it
/// is prepared again. A network of tens of millions of parameters takes four times its parameters in double precision.
///
/// # Errors
/// What either engine refuses.
pub fn first_steps(engine: &mut dyn Engine, reference: &mut dyn Engine, workload: &Workload) -> Result<FirstSteps> {
    let Settings { optimizer, learning_rate, loss, seed, .. } = workload.settings;
    let settings = Settings { optimizer, learning_rate, loss, seed, ..cases::of_reference(workload).settings };
    let mut expected = Trace::of(reference, &Workload { settings, ..workload.clone() }, Detail::First)?;
    expected.initial = Computed::default();
    expected.first.parameters = Vec::new();
    let found = Trace::of(engine, workload, Detail::First)?;
    let depth = cases::depth(&workload.network).max(Depth::Network);
    let check = Check {
        name: workload.network.name.clone(),
        way: way(workload),
        batch_size: workload.batch_size,
        errors: found.errors(&expected, &workload.settings),
        limits: limits(&workload.settings, depth),
    };
    let Trace { first, .. } = found;
    drop(expected);
    let again = taken(engine.prepare(workload)?.as_mut(), workload)?.1;
    Ok(FirstSteps { check, repeats: again.output == first.output && again.gradients == first.gradients })
}

/// See [`first_steps`].
#[derive(Clone, Debug, PartialEq)]
pub struct FirstSteps {
    pub check: Check,
    /// Bit for bit.
    pub repeats: bool,
}

fn compare(engine: &mut dyn Engine, expected: &Trace, workload: &Workload, detail: Detail) -> Check {
    let nothing = f64::INFINITY;
    let failed = Errors { output: nothing, gradients: nothing, updates: nothing, losses: nothing };
    let found = Trace::of(engine, workload, detail);
    Check {
        name: match &found {
            Ok(_) => workload.network.name.clone(),
            Err(error) => format!("{}: {error}", workload.network.name),
        },
        way: way(workload),
        batch_size: workload.batch_size,
        errors: found.map_or(failed, |found| found.errors(expected, &workload.settings)),
        limits: limits(&workload.settings, cases::depth(&workload.network)),
    }
}

/// What [`Choice`] looks at.
fn label(workload: &Workload) -> String {
    format!("{} {} batch {}", workload.network.name, way(workload), workload.batch_size)
}

/// `tf32 nhwc rmsprop graph 2 streams`: every axis of the method that is not at its default is named.
fn way(workload: &Workload) -> String {
    let settings = &workload.settings;
    let value = |axis: &Axis| (axis.get)(settings);
    let unusual = AXES.iter().filter(|axis| axis.role == Role::Method && value(axis) != axis.default_value());
    let named: String =
        unusual.filter_map(|axis| axis.annotation(&value(axis).to_string())).map(|text| format!(" {text}")).collect();
    format!("{} {} {}{named}", settings.precision, settings.layout, settings.optimizer)
}

/// The rounding of the arithmetic in force, times the growth of rounding errors in the layers of a network. Where a rounding
/// error moves a number across the corner of a rectifier, or makes another value the maximum of a window, the gradient flows
/// elsewhere: gradients of whole networks differ by much more than outputs do. Behind tens of batch norms the gradients have no
/// limit at low precision, and the losses after the first update have none at any precision. Where RMSprop or Adam make signs of
/// the gradients, a loss after an update has a limit in float32 alone: in bf16, gradients that are 0.21 apart made losses 1.1
/// apart. The operators are checked one by one.
fn limits(settings: &Settings, depth: Depth) -> Errors {
    let parts = |output, gradients, losses| Errors { output, gradients, updates: UPDATE_LIMIT, losses };
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
    match makes_signs && precision != Precision::Fp32 {
        true => Errors { losses: f64::INFINITY, ..most },
        false => most,
    }
}

/// What an engine made of a workload.
#[derive(Clone, Debug)]
struct Trace {
    initial: Computed,
    first: Computed,
    /// After each further step that is kept.
    further: Vec<Computed>,
    losses: Vec<f64>,
}

/// The steps whose parameters and gradients are kept.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Detail {
    First,
    /// Each, where the optimizer keeps a state: without one, a second update shows nothing that the first does not.
    EachStep,
}

impl Trace {
    fn of(engine: &mut dyn Engine, workload: &Workload, detail: Detail) -> Result<Self> {
        let mut step = engine.prepare(workload)?;
        let initial = computed(step.as_ref(), workload)?;
        let (loss, first) = taken(step.as_mut(), workload)?;
        let (mut losses, mut further) = (vec![loss], Vec::new());
        for _ in 1..STEPS {
            if detail == Detail::First || workload.settings.optimizer == Optimizer::Sgd {
                losses.push(step.run()?.loss.unwrap_or(f64::NAN));
            } else {
                let (loss, computed) = taken(step.as_mut(), workload)?;
                losses.push(loss);
                further.push(computed);
            }
        }
        Ok(Self { initial, first, further, losses })
    }

    fn errors(&self, expected: &Self, settings: &Settings) -> Errors {
        let pairs = self.losses.iter().zip(&expected.losses);
        // Relative to the first loss: a later one may be near zero, where every rounding is large.
        let losses = pairs.map(|(a, b)| (a - b).abs() / expected.losses[0].abs());
        Errors {
            output: relative(&[&self.first.output], &[&expected.first.output]),
            gradients: relative(&self.first.gradients, &expected.first.gradients),
            updates: self.update_error(settings),
            losses: largest(losses),
        }
    }

    /// The largest error of the updates, each from the engine's own parameters and gradients.
    fn update_error(&self, settings: &Settings) -> f64 {
        let mut rule = UpdateRule::new(settings);
        let mut before = &self.initial;
        let steps = std::iter::once(&self.first).chain(&self.further);
        largest(steps.map(|after| {
            let expected = rule.updated(&before.parameters, &after.gradients);
            let error = relative_change([&before.parameters, &after.parameters], [&before.parameters, &expected]);
            before = after;
            error
        }))
    }
}

fn computed(step: &dyn Step, workload: &Workload) -> Result<Computed> {
    let silent = || Error::engine("the engine does not report what it computes");
    let mut computed = step.computed()?.ok_or_else(silent)?;
    cases::leave_idle_out(&workload.network, &mut computed);
    Ok(computed)
}

/// Runs a step until its update is taken: one whose float16 gradients overflow changes nothing but the loss scale. Gives its
/// loss and what it computed.
fn taken(step: &mut dyn Step, workload: &Workload) -> Result<(f64, Computed)> {
    let mut attempts = 0;
    loop {
        let loss = step.run()?.loss.unwrap_or(f64::NAN);
        let computed = computed(step, workload)?;
        let finite = computed.gradients.iter().flatten().all(|value| value.is_finite());
        attempts += 1;
        if finite || workload.settings.precision != Precision::Fp16 || attempts == MOST_SKIPPED {
            return Ok((loss, computed));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::cpu::CpuEngine;
    use crate::engine::open::Engines;
    use crate::engine::{DeviceName, LayerExecution, StepTimes};

    /// An engine that takes updates of half the size: the first output and its gradients are right, all else is wrong.
    struct Halved(CpuEngine);

    impl Engine for Halved {
        fn device(&self) -> &DeviceName {
            self.0.device()
        }

        fn in_force(&self, asked: &Settings) -> Result<Settings> {
            self.0.in_force(asked)
        }

        fn prepare(&mut self, workload: &Workload) -> Result<Box<dyn Step>> {
            let mut workload = workload.clone();
            workload.settings.learning_rate *= 0.5;
            self.0.prepare(&workload)
        }
    }

    #[test]
    fn a_right_engine_passes_and_a_wrong_update_does_not() {
        let supported = cases::supported(&CpuEngine::cpu(None));
        for workload in
            cases::workloads(&supported[0]).unwrap().into_iter().filter(|workload| workload.batch_size == 17)
        {
            let expected =
                Trace::of(Engines::reference().as_mut(), &cases::of_reference(&workload), Detail::EachStep).unwrap();
            let right = compare(&mut CpuEngine::cpu(None), &expected, &workload, Detail::EachStep);
            assert!(right.passed(), "{right:?}");
            let wrong = compare(&mut Halved(CpuEngine::cpu(None)), &expected, &workload, Detail::EachStep);
            assert!(!wrong.passed() && (wrong.errors.updates - 0.5).abs() < 0.01, "{wrong:?}");
            assert!(wrong.errors.gradients <= wrong.limits.gradients);
        }
    }

    /// The reference, but for a rounding that turns the sign of the two smallest gradients of each tensor of 64 and more, and for
    /// an update that is `scale` times what RMSprop makes of them.
    struct Flipped {
        engine: Box<dyn Engine>,
        scale: f64,
    }

    struct FlippedStep {
        step: Box<dyn Step>,
        rate: f64,
        computed: Computed,
        /// RMSprop's mean squares.
        squares: Vec<Vec<f64>>,
    }

    impl Engine for Flipped {
        fn device(&self) -> &DeviceName {
            self.engine.device()
        }

        fn in_force(&self, asked: &Settings) -> Result<Settings> {
            Ok(asked.clone())
        }

        fn prepare(&mut self, workload: &Workload) -> Result<Box<dyn Step>> {
            let step = self.engine.prepare(workload)?;
            let computed = step.computed()?.unwrap();
            let squares = computed.parameters.iter().map(|tensor| vec![0.0; tensor.len()]).collect();
            let rate = workload.settings.learning_rate * self.scale;
            Ok(Box::new(FlippedStep { step, rate, computed, squares }))
        }
    }

    impl Step for FlippedStep {
        /// The rule is that of PyTorch's documentation of `torch.optim.RMSprop`.
        fn run(&mut self) -> Result<StepTimes> {
            let times = self.step.run()?;
            let Computed { output, gradients, .. } = self.step.computed()?.unwrap();
            (self.computed.output, self.computed.gradients) = (output, gradients);
            for (number, gradients) in self.computed.gradients.iter_mut().enumerate() {
                let mut order: Vec<usize> = (0..gradients.len()).collect();
                order.sort_by(|a, b| gradients[*a].abs().total_cmp(&gradients[*b].abs()));
                order.iter().take(if order.len() < 64 { 0 } else { 2 }).for_each(|&at| gradients[at] = -gradients[at]);
                let parameters = self.computed.parameters[number].iter_mut().zip(&mut self.squares[number]);
                for ((w, square), g) in parameters.zip(&*gradients) {
                    *square = 0.99 * *square + 0.01 * g * g;
                    *w -= self.rate * g / (square.sqrt() + 1e-8);
                }
            }
            Ok(times)
        }

        fn layers(&self) -> Vec<LayerExecution> {
            Vec::new()
        }

        fn computed(&self) -> Result<Option<Computed>> {
            Ok(Some(self.computed.clone()))
        }
    }

    /// In a tensor of 64 numbers two turned signs are an error of 2 sqrt(2 / 64) = 0.35 of an update of equal numbers, and no
    /// fault of the optimizer; an update that is a thousandth too large is one.
    #[test]
    fn a_turned_sign_of_a_tiny_gradient_is_no_wrong_update() {
        let plain = cases::supported(&CpuEngine::cpu(None)).remove(0);
        let settings = Settings { precision: Precision::Tf32, ..plain };
        let is_it = |workload: &Workload| {
            workload.network.name == "mnist_cnn" && workload.settings.optimizer == Optimizer::RmsProp
        };
        let workload = cases::workloads(&settings).unwrap().into_iter().find(is_it).unwrap();
        let expected =
            Trace::of(Engines::reference().as_mut(), &cases::of_reference(&workload), Detail::EachStep).unwrap();
        let checked = |scale| {
            compare(&mut Flipped { engine: Engines::reference(), scale }, &expected, &workload, Detail::EachStep)
        };
        let found =
            Trace::of(&mut Flipped { engine: Engines::reference(), scale: 1.0 }, &workload, Detail::EachStep).unwrap();
        let [flipped, own] = [&found, &expected].map(|trace| [&*trace.initial.parameters, &*trace.first.parameters]);
        let against_the_reference = relative_change(flipped, own);
        assert!(against_the_reference > 0.3, "{against_the_reference}");
        let right = checked(1.0);
        assert!(right.passed() && right.errors.gradients > 0.0, "{right:?}");
        let wrong = checked(1.001);
        assert!(!wrong.passed() && (wrong.errors.updates - 1e-3).abs() < 1e-4, "{wrong:?}");
    }

    /// An engine that works until it meets a batch norm, and never again.
    struct Faulty(CpuEngine, bool);

    impl Engine for Faulty {
        fn device(&self) -> &DeviceName {
            self.0.device()
        }

        fn in_force(&self, asked: &Settings) -> Result<Settings> {
            self.0.in_force(asked)
        }

        fn prepare(&mut self, workload: &Workload) -> Result<Box<dyn Step>> {
            self.1 |= workload.network.name == "batch_norm";
            if self.1 { Err(Error::engine("an illegal address")) } else { self.0.prepare(workload) }
        }
    }

    #[test]
    fn a_device_that_is_lost_ends_the_test_and_says_how_to_go_on() {
        let only: Vec<String> = ["relu", "batch_norm", "dropout"].map(|name| format!("{name} fp32 nchw")).into();
        let test = |skip: &[&str]| {
            let choice = Choice { only: only.clone(), skip: skip.iter().map(ToString::to_string).collect() };
            let mut names = Vec::new();
            let mut engine = Faulty(CpuEngine::cpu(None), false);
            let ended =
                run(&mut engine, Engines::reference().as_mut(), &choice, |check| names.push(check.name.clone()));
            (ended.map(|checks| checks.len()), names)
        };
        let (lost, names) = test(&[]);
        assert_eq!(names, ["batch_norm: an illegal address"]);
        let error = lost.unwrap_err().to_string();
        assert!(error.contains("batch_norm fp32 nchw sgd batch 1") && error.contains("--skip 'batch_norm fp32 nchw'"));
        let (whole, names) = test(&["batch_norm fp32 nchw", "batch 70"]);
        // Two operators at two batch sizes, with Winograd's algorithm and without.
        assert_eq!((whole.unwrap(), names.len()), (8, 8));
        assert!(test(&["sgd"]).0.unwrap_err().to_string().contains("no check has these words"));
    }

    #[test]
    fn engines_that_compute_nothing_cannot_be_checked() {
        assert_eq!(engine("cpu").unwrap(), EngineName::Cpu);
        for name in ["torch", "synthetic", "gpu"] {
            let error = engine(name).unwrap_err().to_string();
            assert!(error.contains(name) && error.contains("one of: auto, cpu, candle, cudnn"), "{error}");
        }
    }

    #[test]
    fn a_processor_is_checked_in_float32_alone() {
        let supported = cases::supported(&CpuEngine::cpu(None));
        // With Winograd's algorithm and without.
        assert_eq!(supported.len(), 2);
        assert!(supported.iter().all(|settings| settings.precision == Precision::Fp32));
    }

    #[test]
    fn what_an_engine_refuses_is_a_failed_check_that_says_why() {
        let supported = cases::supported(&CpuEngine::cpu(None));
        let workload = cases::workloads(&supported[0]).unwrap().remove(0);
        let expected = Trace::of(&mut CpuEngine::cpu(None), &workload, Detail::EachStep).unwrap();
        let mut half = workload;
        half.settings.precision = Precision::Bf16;
        let check = compare(&mut CpuEngine::cpu(None), &expected, &half, Detail::EachStep);
        assert!(!check.passed() && check.name.contains("bf16"), "{check:?}");
    }
}

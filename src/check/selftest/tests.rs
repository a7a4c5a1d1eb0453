//! A right engine passes, wrong ones do not.

mod memory;

use super::wrong_engines::{expected, mnist};
use super::*;
use crate::engine::cpu::CpuEngine;
use crate::engine::cpu::op::product::bf16;
use crate::engine::difference::{TensorDistance, worst};
use crate::engine::open::Engines;
use crate::engine::refusing::preparing;
use crate::engine::{Computed, Step, StepTimes};

/// An engine that takes updates of half the size: the first output and its gradients are right, all else is wrong.
fn halved() -> impl Engine {
    preparing(|cpu, workload| {
        let mut workload = workload.clone();
        workload.settings.learning_rate *= 0.5;
        cpu.prepare(&workload)
    })
}

#[test]
fn a_right_engine_passes_and_a_wrong_update_does_not() {
    let supported = cases::supported(&CpuEngine::cpu(None));
    for workload in cases::workloads(&supported[0]).unwrap().into_iter().filter(|workload| workload.batch_size == 17) {
        let expected = expected(&workload);
        let right = compare(&mut CpuEngine::cpu(None), &expected, &workload);
        assert!(right.passed(), "{right:?}");
        let wrong = compare(&mut halved(), &expected, &workload);
        assert!(!wrong.passed() && (wrong.errors.updates - 0.5).abs() < 0.01, "{wrong:?}");
        assert!(wrong.errors.gradients <= wrong.limits.gradients);
    }
}

struct FlippedStep {
    step: Box<dyn Step>,
    rate: f64,
    computed: Computed,
    squares: Vec<Vec<f64>>,
}

/// The reference, except that a rounding flips the sign of the two smallest gradients of each tensor with 64 or more, and that
/// the update is `scale` times the update of RMSprop.
fn flipped(scale: f64) -> impl Engine {
    let mut reference = Engines::reference();
    preparing(move |_, workload| {
        let step = reference.prepare(workload)?;
        let computed = step.computed()?.unwrap();
        let squares = computed.parameters.iter().map(|tensor| vec![0.0; tensor.len()]).collect();
        Ok(Box::new(FlippedStep { step, rate: workload.settings.learning_rate * scale, computed, squares }))
    })
}

impl Step for FlippedStep {
    /// The rule comes from PyTorch's documentation of `torch.optim.RMSprop`.
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

    fn computed(&self) -> Result<Option<Computed>> {
        Ok(Some(self.computed.clone()))
    }
}

/// In a tensor of 64 numbers two turned signs are an error of 2 sqrt(2 / 64) = 0.35 of an update of equal numbers, and no
/// fault of the optimizer; an update that is a thousandth too large is one.
#[test]
fn a_turned_sign_of_a_tiny_gradient_is_no_wrong_update() {
    let plain = cases::supported(&CpuEngine::cpu(None)).remove(0);
    let workload = mnist(&Settings { precision: Precision::Tf32, ..plain }, Optimizer::RmsProp);
    let expected = expected(&workload);
    let checked = |scale| compare(&mut flipped(scale), &expected, &workload);
    let found = Trace::of(&mut flipped(1.0), &workload, Detail::First).unwrap();
    let own = Trace::of(Engines::reference().as_mut(), &cases::of_reference(&workload), Detail::First).unwrap();
    let tensors = found.initial.iter().zip(&found.first.parameters).zip(&own.first.parameters);
    let apart = tensors.map(|((before, found), own)| {
        TensorDistance::of_change(
            before.iter().zip(found).zip(own).map(|((before, found), own)| [*before, *found, *own]),
        )
    });
    let against_the_reference = worst(&apart.collect::<Vec<_>>());
    assert!(against_the_reference > 0.3, "{against_the_reference}");
    let right = checked(1.0);
    assert!(right.passed() && right.errors.gradients > 0.0, "{right:?}");
    let wrong = checked(1.001);
    assert!(!wrong.passed() && (wrong.errors.updates - 1e-3).abs() < 1e-4, "{wrong:?}");
}

/// An engine that works until it meets a batch norm, and never again.
fn faulty() -> impl Engine {
    let mut is_lost = false;
    preparing(move |cpu, workload| {
        is_lost |= workload.network.name == "batch_norm";
        if is_lost { Err(Error::engine("an illegal address")) } else { cpu.prepare(workload) }
    })
}

#[test]
fn a_device_that_is_lost_ends_the_test_and_says_how_to_go_on() {
    let only: Vec<String> = ["relu", "batch_norm", "dropout"].map(|name| format!("{name} fp32 nchw")).into();
    let test = |skip: &[&str]| {
        let choice = CheckFilter { only: only.clone(), skip: skip.iter().map(ToString::to_string).collect() };
        let mut names = Vec::new();
        let ended = run(&mut faulty(), Engines::reference().as_mut(), &choice, |check| names.push(check.name.clone()));
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
fn a_processor_is_checked_in_float32_and_in_bf16_where_it_has_that() {
    let supported = cases::supported(&CpuEngine::cpu(None));
    let count = |precision| supported.iter().filter(|settings| settings.precision == precision).count();
    // With Winograd's algorithm and without.
    assert_eq!(count(Precision::Fp32), 2);
    assert_eq!(count(Precision::Bf16), usize::from(bf16::is_there()));
    assert_eq!(supported.len(), 2 + usize::from(bf16::is_there()));
}

#[test]
fn what_an_engine_refuses_is_a_failed_check_that_says_why() {
    let supported = cases::supported(&CpuEngine::cpu(None));
    let workload = cases::workloads(&supported[0]).unwrap().remove(0);
    let expected = Expected::of(&mut CpuEngine::cpu(None), &workload).unwrap();
    let mut half = workload;
    half.settings.precision = Precision::Fp16;
    let check = compare(&mut CpuEngine::cpu(None), &expected, &half);
    assert!(!check.passed() && check.name.contains("fp16"), "{check:?}");
}

#[test]
fn the_first_failure_has_its_inputs_and_a_right_engine_has_none() {
    // With Winograd's algorithm and without; the other optimizers have tests of their own.
    let choice = CheckFilter { only: vec!["mnist_cnn fp32 nchw sgd".into()], skip: Vec::new() };
    let first =
        |engine: &mut dyn Engine| first_failure(engine, Engines::reference().as_mut(), &choice, &mut || false).unwrap();
    let (passed, failure) = first(&mut CpuEngine::cpu(None));
    assert!(passed > 1 && failure.is_none(), "{failure:?}");
    let (passed, failure) = first(&mut halved());
    let failure = failure.unwrap();
    assert_eq!((passed, &failure["name"], &failure["batch_size"]), (0, &"mnist_cnn".into(), &8.into()));
    assert!(
        failure["errors"]["updates"]["found"].as_f64().is_some_and(|error| (error - 0.5).abs() < 0.01),
        "{failure}"
    );
    assert!(failure["errors"]["losses"]["allowed"].is_f64(), "{failure}");
    assert_eq!((&failure["settings"]["optimizer"], &failure["settings"]["seed"]), (&"sgd".into(), &"3".into()));
    assert!(failure["network"].as_str().is_some_and(|network| network.contains("Conv2d")), "{failure}");
    assert!(failure["numbers"].as_array().is_some_and(|numbers| !numbers.is_empty()), "{failure}");
}

/// Time is up after the first of two checks.
#[test]
fn looking_for_a_failure_ends_when_time_is_over() {
    let choice = CheckFilter { only: vec!["mlp fp32".into()], skip: Vec::new() };
    let mut engine = CpuEngine::cpu(None);
    let whole = first_failure(&mut engine, Engines::reference().as_mut(), &choice, &mut || false).unwrap();
    assert_eq!(whole, (2, None));
    let found = first_failure(&mut engine, Engines::reference().as_mut(), &choice, &mut || true).unwrap();
    assert_eq!(found, (1, None));
}

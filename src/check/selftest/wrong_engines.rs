//! Engines with one mistake each, which the selftest must find.

use super::*;
use crate::engine::cpu::CpuEngine;
use crate::engine::open::Engines;
use crate::engine::refusing::preparing;
use crate::engine::{Computed, LayerExecution, Settings, Step, StepTimes};
use crate::network::{Operation, Padding};

/// Three rows and columns as padding of one on each side gives them, but a row and a column too early.
const SHIFTED: Padding = Padding { top: 2, bottom: 0, left: 2, right: 0 };

/// The CPU engine on layers that a mistake has changed, whose steps report other numbers than they have computed.
fn mistaken(mistake: Mistake, gradient: f64, wrong_loss: Option<usize>) -> impl Engine {
    preparing(move |cpu, workload| {
        let mut network = (*workload.network).clone();
        network.layers.iter_mut().for_each(|layer| mistake(&mut layer.operation));
        let own = cpu.prepare(&Workload { network: network.into(), ..workload.clone() })?;
        Ok(Box::new(Misreporting { own, gradient, wrong_loss, steps: 0 }))
    })
}

struct Misreporting {
    own: Box<dyn Step>,
    /// The factor on the gradient of the first parameter.
    gradient: f64,
    /// The step whose loss is a tenth too large.
    wrong_loss: Option<usize>,
    steps: usize,
}

impl Step for Misreporting {
    fn run(&mut self) -> Result<StepTimes> {
        let times = self.own.run()?;
        let factor = if self.wrong_loss == Some(self.steps) { 1.1 } else { 1.0 };
        self.steps += 1;
        Ok(StepTimes { loss: times.loss.map(|loss| factor * loss), ..times })
    }

    fn layers(&self) -> Vec<LayerExecution> {
        self.own.layers()
    }

    fn computed(&self) -> Result<Option<Computed>> {
        let mut computed = self.own.computed()?;
        if let Some(gradient) = computed.as_mut().and_then(|computed| computed.gradients.first_mut()) {
            gradient.iter_mut().for_each(|value| *value *= self.gradient);
        }
        Ok(computed)
    }
}

/// The checks of one network at one batch size.
fn checked(mistake: Mistake, gradient: f64, name: &str) -> Check {
    let mut engine = mistaken(mistake, gradient, None);
    let mut workloads = cases::workloads(&cases::supported(&engine)[0]).unwrap().into_iter();
    let workload = workloads.find(|workload| workload.network.name == name && workload.batch_size == 17).unwrap();
    checks(&mut engine, Engines::reference().as_mut(), &[workload]).unwrap().remove(0)
}

/// Makes an operation compute something else.
type Mistake = fn(&mut Operation);

#[test]
fn a_mistake_in_an_operator_is_found() {
    let mistakes: [(&str, Mistake); 7] = [
        ("max_pool2d 3x3 stride 2", |operation| {
            if let Operation::MaxPool2d(pool) = operation {
                pool.padding = SHIFTED;
            }
        }),
        ("conv2d 3x3", |operation| {
            if let Operation::Conv2d(conv) = operation {
                conv.padding = SHIFTED;
            }
        }),
        ("depthwise_conv2d 3x3", |operation| {
            if let Operation::Conv2d(conv) = operation
                && conv.groups > 1
            {
                conv.padding = SHIFTED;
            }
        }),
        ("batch_norm", |operation| {
            if let Operation::BatchNorm(norm) = operation {
                norm.epsilon = 1e-3;
            }
        }),
        ("dropout", |operation| {
            if let Operation::Dropout { rate } = operation {
                *rate = 0.31;
            }
        }),
        ("relu6 of large inputs", |operation| {
            if *operation == Operation::Relu6 {
                *operation = Operation::Relu;
            }
        }),
        ("relu", |operation| {
            if *operation == Operation::Relu {
                *operation = Operation::Dropout { rate: 0.0 };
            }
        }),
    ];
    for (name, mistake) in mistakes {
        let right = checked(|_| (), 1.0, name);
        assert!(right.passed(), "{right:?}");
        let wrong = checked(mistake, 1.0, name);
        assert!(wrong.errors.output.is_finite() && !wrong.passed(), "{wrong:?}");
    }
}

#[test]
fn a_gradient_that_is_off_by_a_thousandth_is_found_and_so_is_an_update_by_another_gradient() {
    let wrong = checked(|_| (), 1.001, "dense");
    let (errors, limits) = (wrong.errors, wrong.limits);
    assert!(!wrong.passed() && (errors.gradients - 1e-3).abs() < 1e-4, "{wrong:?}");
    assert!(errors.updates > limits.updates, "{wrong:?}");
    assert!(errors.output <= limits.output && errors.first_loss <= limits.first_loss && errors.losses <= limits.losses);
}

/// What the reference makes of a workload.
pub(super) fn expected(workload: &Workload) -> Expected {
    Expected::of(Engines::reference().as_mut(), &cases::of_reference(workload)).unwrap()
}

/// Two examples: what counts are the tensors' sizes, and the reference takes its time for each example.
pub(super) fn mnist(settings: &Settings, optimizer: Optimizer) -> Workload {
    let is_it = |workload: &Workload| workload.network.name == "mnist_cnn" && workload.settings.optimizer == optimizer;
    Workload { batch_size: 2, ..cases::workloads(settings).unwrap().into_iter().find(is_it).unwrap() }
}

/// No update precedes the first loss, so that it is asked for whatever the optimizer makes of a gradient's sign.
#[test]
fn a_wrong_first_loss_is_found_in_every_precision_and_with_every_optimizer() {
    let plain = cases::supported(&CpuEngine::cpu(None)).remove(0);
    for optimizer in [Optimizer::Sgd, Optimizer::RmsProp, Optimizer::Adam] {
        let of_optimizer = |precision| mnist(&Settings { precision, ..plain.clone() }, optimizer);
        // It knows one precision.
        let expected = expected(&of_optimizer(Precision::Fp32));
        let of_reference = cases::of_reference(&of_optimizer(Precision::Fp32));
        for precision in [Precision::Fp32, Precision::Tf32] {
            let workload = of_optimizer(precision);
            assert_eq!(cases::of_reference(&workload), of_reference);
            let of = |step| compare(&mut mistaken(|_| (), 1.0, Some(step)), &expected, &workload);
            let wrong = of(0);
            assert!(!wrong.passed() && (wrong.errors.first_loss - 0.1).abs() < 1e-3, "{wrong:?}");
            assert!(wrong.errors.losses <= wrong.limits.losses, "{wrong:?}");
            // One after an update is compared where no update follows the sign of a gradient.
            let is_free = optimizer != Optimizer::Sgd;
            assert_eq!(of(1).passed(), is_free);
        }
    }
}

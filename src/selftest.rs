//! Does this machine compute what it should? Every operator, and one whole training of a few steps of every network, by an
//! engine and by the reference: the candle engine in double precision.
//!
//! The comparison is on the losses of consecutive steps. The first one depends on every value of the forward pass; the
//! later ones on every gradient and on the optimizer as well, since a wrong update leads to another loss.

use std::sync::Arc;

use crate::engine::settings::{Algorithms, Compile, DataPath, Launch, Layout, Loss, Optimizer, Precision};
use crate::engine::{Engine, Settings, Workload};
use crate::error::Result;
use crate::network::build::Builder;
use crate::network::{BatchNorm, Conv2d, Dense, MaxPool2d, NAMES, Network, Operation, Padding, Shape};

/// Steps of each comparison.
const STEPS: usize = 3;
const CLASSES: usize = 5;

/// One comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// The operator or the network, and what is special about it.
    pub name: String,
    pub batch_size: usize,
    /// The largest difference of a loss from the reference's, relative to the first one.
    pub error: f64,
    pub tolerance: f64,
    /// How far the losses went over the steps, relative: without it the later ones would prove nothing.
    pub progress: f64,
}

impl Check {
    /// True where the engine agrees with the reference.
    pub fn passed(&self) -> bool {
        self.error <= self.tolerance && self.progress > 10.0 * self.error
    }
}

/// Runs every check; `seen` is told of each as it is done.
///
/// # Errors
/// What an engine refuses; a wrong number is no error but a failed check.
pub fn run(engine: &mut dyn Engine, reference: &mut dyn Engine, mut seen: impl FnMut(&Check)) -> Result<Vec<Check>> {
    let mut checks = Vec::new();
    let operators = operators()?.into_iter().flat_map(|network| [1, 17, 70].map(|batch| (Arc::clone(&network), batch)));
    // Enough examples that batch norm has something to normalise over, down to the last maps.
    let networks = networks()?.into_iter().map(|network| (network, 8));
    for (network, batch) in operators.chain(networks) {
        let check = compare(engine, reference, workload(network, batch))?;
        seen(&check);
        checks.push(check);
    }
    Ok(checks)
}

fn compare(engine: &mut dyn Engine, reference: &mut dyn Engine, workload: Workload) -> Result<Check> {
    let expected = losses(reference, &workload)?;
    let found = losses(engine, &workload)?;
    // Relative to the first loss: a later one may be near zero, where every rounding is large.
    let apart = found.iter().zip(&expected).map(|(a, b)| (a - b).abs() / expected[0].abs());
    let error = apart.fold(0.0, |worst: f64, e| if e.is_nan() { f64::INFINITY } else { worst.max(e) });
    Ok(Check {
        name: workload.network.name.clone(),
        batch_size: workload.batch_size,
        error,
        tolerance: tolerance(engine, &workload)?,
        progress: (expected[STEPS - 1] - expected[0]).abs() / expected[0].abs(),
    })
}

/// Rounding of the arithmetic in force, times what tens of layers and three updates make of it.
fn tolerance(engine: &dyn Engine, workload: &Workload) -> Result<f64> {
    let operator = match engine.in_force(&workload.settings)?.precision {
        Precision::Fp32 => 1e-4,
        Precision::Tf32 => 5e-3,
        Precision::Bf16 | Precision::Fp16 => 5e-2,
    };
    Ok(if is_steep(&workload.network) { 10.0 * operator } else { operator })
}

/// Tens of batch norms make a fresh network so steep that updates amplify each rounding to another loss.
fn is_steep(network: &Network) -> bool {
    network.layers.iter().filter(|layer| matches!(layer.operation, Operation::BatchNorm(_))).count() > 20
}

fn losses(engine: &mut dyn Engine, workload: &Workload) -> Result<Vec<f64>> {
    let mut step = engine.prepare(workload)?;
    (0..STEPS).map(|_| Ok(step.run()?.loss.unwrap_or(f64::NAN))).collect()
}

fn workload(network: Arc<Network>, batch_size: usize) -> Workload {
    let settings = Settings {
        optimizer: Optimizer::Sgd,
        learning_rate: if is_steep(&network) { 1e-7 } else { 1e-3 },
        loss: Loss::CategoricalCrossEntropy,
        precision: Precision::Fp32,
        layout: Layout::Nchw,
        data: DataPath::Resident,
        algorithms: Algorithms::Heuristic,
        compile: Compile::None,
        launch: Launch::Eager,
        threads: None,
        seed: 3,
    };
    Workload { network, batch_size, settings }
}

/// A small network around each operator, with odd sizes.
fn operators() -> Result<Vec<Arc<Network>>> {
    let each = |n| Padding { top: n, bottom: n, left: n, right: n };
    let conv = |kernel, stride, padding, groups| {
        let (kernel, stride) = ((kernel, kernel), (stride, stride));
        Operation::Conv2d(Conv2d { out_channels: 6, kernel, stride, padding, groups, bias: true })
    };
    let pool = |kernel, stride, padding| {
        Operation::MaxPool2d(MaxPool2d { kernel: (kernel, kernel), stride: (stride, stride), padding })
    };
    let lone_side = Padding { bottom: 1, right: 1, ..Padding::NONE };
    let cases = [
        ("conv2d 3x3", conv(3, 1, each(1), 1)),
        ("conv2d 1x1", conv(1, 1, Padding::NONE, 1)),
        ("conv2d 3x3 stride 2, padded on one side", conv(3, 2, lone_side, 1)),
        ("conv2d 7x7 stride 2", conv(7, 2, each(3), 1)),
        ("conv2d 3x3 in 3 groups", conv(3, 1, each(1), 3)),
        ("depthwise_conv2d 3x3", conv(3, 1, each(1), 6)),
        ("batch_norm", Operation::BatchNorm(BatchNorm::default())),
        ("relu", Operation::Relu),
        ("relu6", Operation::Relu6),
        ("max_pool2d 2x2", pool(2, 2, Padding::NONE)),
        ("max_pool2d 3x3 stride 2", pool(3, 2, each(1))),
        ("dropout", Operation::Dropout { rate: 0.3 }),
        ("global_average_pool", Operation::GlobalAveragePool),
        ("dense", Operation::Flatten),
    ];
    cases.into_iter().map(|(name, operation)| around(name, operation).map(Arc::new)).collect()
}

/// A convolution before the operator, so that its input's gradient is needed; a dense layer after it.
fn around(name: &str, operation: Operation) -> Result<Network> {
    let mut b = Builder::new(name, Shape::Maps { channels: 3, height: 13, width: 11 })?;
    b.then("before", Conv2d { padding: Padding { top: 1, bottom: 1, left: 1, right: 1 }, ..Conv2d::square(6, 3) })?;
    b.then("operator", operation)?;
    if matches!(b.output(b.last()), Shape::Maps { .. }) {
        b.then("flatten", Operation::Flatten)?;
    }
    b.then("after", Dense { out_features: CLASSES, bias: true })?;
    b.finish()
}

/// Every network on small inputs.
fn networks() -> Result<Vec<Arc<Network>>> {
    let small = Shape::Maps { channels: 3, height: 64, width: 64 };
    let shape = |name: &str| match name {
        "mlp" => Shape::Flat(2),
        "mnist_cnn" => Shape::Maps { channels: 1, height: 28, width: 28 },
        _ => small,
    };
    NAMES.iter().map(|name| Ok(Arc::new(Network::by_name(name, shape(name), CLASSES)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::candle::CandleEngine;
    use crate::engine::open::Engines;
    use crate::engine::{DeviceName, Step};

    /// An engine that takes updates of half the size: every first loss is right, every later one wrong.
    struct Halved(CandleEngine);

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
        for network in operators().expect("networks") {
            let workload = workload(network, 17);
            let mut reference = Engines::reference();
            let right = compare(&mut CandleEngine::cpu(None), reference.as_mut(), workload.clone()).expect("runs");
            assert!(right.passed(), "{right:?}");
            let wrong = compare(&mut Halved(CandleEngine::cpu(None)), reference.as_mut(), workload).expect("runs");
            assert!(!wrong.passed(), "{wrong:?}");
        }
    }

    #[test]
    fn losses_that_do_not_move_prove_nothing() {
        let check = Check { name: "stuck".into(), batch_size: 1, error: 0.0, tolerance: 1e-4, progress: 0.0 };
        assert!(!check.passed());
        assert!(!Check { error: f64::INFINITY, progress: 1.0, ..check }.passed());
    }
}

//! What is compared: a small network around each operator, and every network on small inputs, with all settings that an
//! engine supports.

use std::sync::Arc;

use super::CLASSES;
use crate::engine::{Computed, Engine, Settings, Workload};
use crate::error::Result;
use crate::network::build::Builder;
use crate::network::{BatchNorm, Conv2d, Dense, Extent, Layer, MaxPool2d, NAMES, Network, Operation, Padding, Shape};
use crate::settings::{Launch, Layout, Optimizer, Precision, Winograd};

/// Every set of settings that is checked; the first is what the reference computes.
pub fn all_settings() -> Vec<Settings> {
    let plain = Settings {
        optimizer: Optimizer::Sgd,
        learning_rate: 1e-3,
        precision: Precision::Fp32,
        seed: 3,
        ..Settings::default()
    };
    let with = |precision, layout| Settings { precision, layout, ..plain.clone() };
    let graph = |settings: Settings| Settings { launch: Launch::Graph, ..settings };
    let precisions = [Precision::Fp32, Precision::Tf32, Precision::Bf16, Precision::Fp16];
    let mut all: Vec<Settings> = precisions
        .into_iter()
        .flat_map(|precision| Layout::ALL.iter().map(move |&layout| (precision, layout)))
        .map(|(precision, layout)| with(precision, layout))
        .collect();
    all.push(graph(plain.clone()));
    all.push(graph(with(Precision::Tf32, Layout::Nhwc)));
    all.push(Settings { streams: 2, ..plain.clone() });
    all.push(Settings { streams: 2, ..graph(with(Precision::Tf32, Layout::Nhwc)) });
    all.push(Settings { winograd: Winograd::Never, ..plain.clone() });
    all
}

/// The settings that an engine supports without a substitute.
pub fn supported(engine: &dyn Engine) -> Vec<Settings> {
    let as_asked = |asked: &Settings| engine.in_force(asked).is_ok_and(|in_force| in_force == *asked);
    all_settings().into_iter().filter(as_asked).collect()
}

/// The comparisons of one set of settings: every operator at odd batch sizes, every network, every optimizer. For a single
/// operator almost nothing else runs in the step.
///
/// # Errors
/// None that a correct build of batchstep meets.
pub fn workloads(asked: &Settings) -> Result<Vec<Workload>> {
    let is_first = *asked == all_settings()[0];
    let mut workloads = Vec::new();
    let mut push = |network: &Arc<Network>, batch_size, optimizer| {
        let mut settings = Settings { optimizer, ..asked.clone() };
        if depth(network) == Depth::Steep {
            settings.learning_rate = 1e-6;
        }
        workloads.push(Workload { network: network.clone(), batch_size, settings });
    };
    let alone = if asked.streams == 1 { operators()? } else { Vec::new() };
    for network in &alone {
        [1, 17, 70].into_iter().for_each(|batch| push(network, batch, Optimizer::Sgd));
    }
    // The first settings go through all networks; the others through one of each kind.
    let again = ["vgg16", "mobilenet", "resnet50", "mnist_cnn", "mlp"];
    for network in networks()?.iter().filter(|network| is_first || again.contains(&network.name.as_str())) {
        // Enough examples that batch norm has something to normalise over, down to the last maps.
        push(network, 8, Optimizer::Sgd);
        if network.name == "mnist_cnn" {
            Optimizer::ALL.iter().skip(1).for_each(|&optimizer| push(network, 8, optimizer));
        }
    }
    Ok(workloads)
}

/// As the reference computes it.
pub fn of_reference(workload: &Workload) -> Workload {
    let Settings { optimizer, learning_rate, loss, .. } = workload.settings;
    let settings = Settings { optimizer, learning_rate, loss, ..all_settings()[0].clone() };
    Workload { settings, ..workload.clone() }
}

/// How far a rounding can grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// A few layers around an operator.
    Operator,
    Network,
    /// Tens of batch norms, which make a fresh network so steep that each rounding grows to another gradient.
    Steep,
}

/// How deep the network of a workload is in the arithmetic of its settings. In 16 bits a number near 6 (within 1/64 in bf16, 1/512 in fp16) is rounded to 6
/// or not, and passes its gradient on or does not, in a network of one operator too: 6.4 % of the gradients' norm on the emulator, in both precisions.
pub fn depth_of(workload: &Workload) -> Depth {
    let depth = depth(&workload.network);
    match workload.settings.precision {
        Precision::Bf16 | Precision::Fp16 if workload.network.name == LARGE => depth.max(Depth::Network),
        _ => depth,
    }
}

/// How deep a network is in that sense.
pub fn depth(network: &Network) -> Depth {
    let is_norm = |layer: &&Layer| matches!(layer.operation, Operation::BatchNorm(_));
    match network.layers.iter().filter(is_norm).count() {
        21.. => Depth::Steep,
        _ if NAMES.contains(&network.name.as_str()) => Depth::Network,
        _ => Depth::Operator,
    }
}

/// Leaves out the biases that a batch norm makes idle: their gradients are rounding errors around zero, which some
/// optimizers make into whole updates.
pub fn leave_idle_out(network: &Network, computed: &mut Computed) {
    let trainable = network.parameters().filter(|(_, parameter)| parameter.trainable);
    let kept: Vec<bool> = trainable.map(|(layer, p)| p.name != "bias" || !network.has_idle_bias(layer)).collect();
    for tensors in [&mut computed.parameters, &mut computed.gradients] {
        let mut kept = kept.iter();
        tensors.retain(|_| kept.next().copied().unwrap_or(true));
    }
}

const LARGE: &str = "relu6 of large inputs";

/// A small network around each operator, with odd sizes.
pub fn operators() -> Result<Vec<Arc<Network>>> {
    let each = |n| Padding { top: n, bottom: n, left: n, right: n };
    let conv = |kernel, stride, padding, groups| {
        let (kernel, stride) = (Extent::square(kernel), Extent::square(stride));
        Operation::Conv2d(Conv2d { out_channels: 6, kernel, stride, padding, groups, bias: true })
    };
    let pool = |kernel, stride, padding| {
        Operation::MaxPool2d(MaxPool2d { kernel: Extent::square(kernel), stride: Extent::square(stride), padding })
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
    let alone = cases.into_iter().map(|(name, operation)| around(name, &[operation]));
    // What a dropout keeps is ten times as large, and a good part of it is above 6.
    let large = [Operation::Dropout { rate: 0.9 }, Operation::Relu6];
    alone.chain([around(LARGE, &large)]).map(|network| network.map(Arc::new)).collect()
}

/// A convolution before the operators, so that their input's gradient is needed; a dense layer after them.
fn around(name: &str, operations: &[Operation]) -> Result<Network> {
    let mut b = Builder::new(name, Shape::Maps { channels: 3, height: 13, width: 11 })?;
    b.then("before", Conv2d { padding: Padding { top: 1, bottom: 1, left: 1, right: 1 }, ..Conv2d::square(6, 3) })?;
    for (number, operation) in operations.iter().enumerate() {
        let name = if number == 0 { "operator".to_owned() } else { format!("operator_{}", number + 1) };
        b.then(&name, *operation)?;
    }
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

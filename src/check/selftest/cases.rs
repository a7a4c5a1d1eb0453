//! What is compared: a small network around each operator, and every network on small inputs, with all settings that an
//! engine supports.

use std::sync::Arc;

use super::CLASSES;
use crate::engine::{Computed, Engine, Settings, Workload};
use crate::error::Result;
use crate::network::operators::{LARGE, operators};
use crate::network::{Layer, NAMES, Network, Operation, Shape};
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

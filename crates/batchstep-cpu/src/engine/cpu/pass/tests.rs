//! The pass against the reference.

use std::sync::Arc;

use super::*;
use crate::engine::cpu::data::Batch;
use crate::engine::cpu::thread_team::by_three;
use crate::engine::reference::ReferenceEngine;
use crate::engine::{Engine, Settings, Workload};
use crate::network::{BatchNorm, Builder, Conv2d, Dense, Extent, MaxPool2d, Operation, Padding, Shape};
use crate::settings::*;

fn workload(network: Network, batch_size: usize) -> Workload {
    let settings = Settings {
        optimizer: Optimizer::Sgd,
        learning_rate: 0.01,
        loss: Loss::MeanSquaredError,
        precision: Precision::Fp32,
        seed: 5,
        ..Settings::default()
    };
    Workload { network: Arc::new(network), batch_size, settings }
}

/// Compares loss and gradients of the pass and of the reference, for several batch sizes one after the other in the same
/// memory.
fn agrees_with_the_reference(network: Network, batches: &[usize]) {
    by_three(|| compare(network, batches));
}

fn compare(network: Network, batches: &[usize]) {
    let mut pass = Pass::<f64>::new(&network);
    for &batch in batches {
        let workload = workload(network.clone(), batch);
        let Batch { inputs, targets, .. } = &Batch::new(&workload);
        let parameters = Parameters::new(&network, 5);
        let mut reference = ReferenceEngine::default().prepare(&workload).unwrap();
        let expected = reference.run().unwrap().loss.unwrap();
        let gradients = reference.computed().unwrap().unwrap().gradients;

        let (masks, loss) = (Some(Masks { seed: 5, step: 0 }), Loss::MeanSquaredError);
        let task = Task { network: &network, parameters: &parameters, inputs, targets, masks, loss, watch: None };
        let loss = pass.forward(task).unwrap();
        pass.backward(task);
        assert!((loss - expected).abs() <= 1e-12 * expected.abs(), "{}: {loss} {expected}", network.name);
        assert_eq!(gradients.len(), pass.gradients().count());
        // What is left of terms that cancel has the rounding errors of the terms: in a batch of one, the mean over a normalised plane does not
        // depend on the layers before.
        let largest = gradients.iter().flatten().fold(0.0f64, |largest, value| largest.max(value.abs()));
        let trained = network.parameters().filter(|(_, parameter)| parameter.trainable);
        let names: Vec<(usize, &str)> = trained.map(|(index, parameter)| (index, parameter.name)).collect();
        for (number, (expected, got)) in gradients.iter().zip(pass.gradients()).enumerate() {
            let idle = names[number].1 == "bias" && network.has_idle_bias(names[number].0);
            let expected = if idle { vec![0.0; got.len()] } else { expected.clone() };
            let scale = expected.iter().fold(1e-3 * largest, |scale, value| scale.max(value.abs()));
            assert_eq!(expected.len(), got.len());
            for (got, expected) in got.iter().zip(&expected) {
                let what = format!("{}, batch {batch}, parameter {number}", network.name);
                assert!((got - expected).abs() <= 1e-9 * scale, "{what}: {got} {expected}");
            }
        }
    }
}

fn conv(channels: usize) -> Conv2d {
    Conv2d { padding: Padding::all(1), ..Conv2d::square(channels, 3) }
}

#[test]
fn a_network_of_every_operation_and_many_readers_agrees_with_the_reference() {
    let mut b = Builder::new("tangle", Shape::Maps { channels: 2, height: 8, width: 8 }).unwrap();
    let first = b.then("relu0", Operation::Relu).unwrap();
    b.then("bn0", BatchNorm::default()).unwrap();
    let stem = b.then("conv1", conv(4)).unwrap();
    let relu = b.then("relu1", Operation::Relu6).unwrap();
    let side = b.add("conv2", conv(4), &[stem]).unwrap();
    let sum = b.add("sum1", Operation::Add, &[relu, side]).unwrap();
    b.add("sum2", Operation::Add, &[sum, sum]).unwrap();
    b.then("relu2", Operation::Relu).unwrap();
    let input = b.add("conv3", conv(4), &[first]).unwrap();
    b.add("sum3", Operation::Add, &[b.find("relu2").unwrap(), input]).unwrap();
    b.then("pool", MaxPool2d::square(2)).unwrap();
    b.then("relu3", Operation::Relu).unwrap();
    let pooled = b.then("relu4", Operation::Relu6).unwrap();
    b.then("mean", Operation::GlobalAveragePool).unwrap();
    let mean = b.then("drop", Operation::Dropout { rate: 0.25 }).unwrap();
    b.add("flatten", Operation::Flatten, &[pooled]).unwrap();
    b.then("keep", Operation::Dropout { rate: 0.0 }).unwrap();
    let flat = b.then("fc1", Dense { out_features: 4, bias: false }).unwrap();
    b.add("sum4", Operation::Add, &[mean, flat]).unwrap();
    b.then("relu5", Operation::Relu).unwrap();
    b.then("fc2", Dense { out_features: 3, bias: true }).unwrap();
    agrees_with_the_reference(b.finish().unwrap(), &[3, 1, 5]);
}

/// Small maps, and larger ones, for which the first batch norm's output exists only for some channels at a time.
#[test]
fn layers_that_go_channel_by_channel_agree_with_the_reference() {
    go_channel_by_channel([9, 7], false);
    go_channel_by_channel([11, 13], true);
}

/// Depthwise convolutions with both strides between batch norms; one of them is read twice, and one output is read by
/// other layers too.
fn go_channel_by_channel([height, width]: [usize; 2], passes: bool) {
    let depthwise = |stride: usize| Conv2d {
        padding: Padding::all(1),
        groups: 20,
        stride: Extent::square(stride),
        bias: false,
        ..Conv2d::square(20, 3)
    };
    let mut b = Builder::new("chains", Shape::Maps { channels: 2, height, width }).unwrap();
    b.then("conv", conv(20)).unwrap();
    b.then("bn1", BatchNorm::default()).unwrap();
    b.then("relu1", Operation::Relu6).unwrap();
    b.then("dw1", depthwise(1)).unwrap();
    b.then("bn2", BatchNorm::default()).unwrap();
    b.then("relu2", Operation::Relu).unwrap();
    b.then("dw2", depthwise(2)).unwrap();
    let shared = b.then("bn3", BatchNorm::default()).unwrap();
    b.then("dw3", depthwise(1)).unwrap();
    let end = b.then("bn4", BatchNorm::default()).unwrap();
    b.add("sum", Operation::Add, &[shared, end]).unwrap();
    b.then("bn5", BatchNorm::default()).unwrap();
    b.then("dw5", depthwise(1)).unwrap();
    b.then("relu5", Operation::Relu).unwrap();
    b.then("mean", Operation::GlobalAveragePool).unwrap();
    b.then("fc", Dense { out_features: 3, bias: true }).unwrap();
    let network = b.finish().unwrap();

    let mut pass = Pass::<f64>::new(&network);
    pass.fit(&network, 2).unwrap();
    let name = |index: &usize| network.layers[*index].name.as_str();
    let chains = pass.chains.iter().map(|chain| [name(chain.layers.start()), name(chain.layers.end())]);
    assert_eq!(chains.collect::<Vec<_>>(), [["bn1", "relu2"], ["dw2", "bn3"], ["dw3", "bn4"], ["bn5", "dw5"]]);
    assert_eq!(pass.chains[0].passing, [passes, false, false]);
    agrees_with_the_reference(network, &[3, 1, 5]);
}

#[test]
fn a_network_that_ends_in_a_rectifier_or_a_view_agrees_with_the_reference() {
    let mut b = Builder::new("rectified", Shape::Flat(6)).unwrap();
    b.then("fc", Dense { out_features: 5, bias: true }).unwrap();
    b.then("relu", Operation::Relu).unwrap();
    agrees_with_the_reference(b.finish().unwrap(), &[2, 7]);

    let mut b = Builder::new("flattened", Shape::Maps { channels: 2, height: 4, width: 3 }).unwrap();
    b.then("conv", conv(3)).unwrap();
    b.then("flatten", Operation::Flatten).unwrap();
    agrees_with_the_reference(b.finish().unwrap(), &[4]);
}

#[test]
fn the_next_step_allocates_nothing() {
    let network = Network::by_name("mnist_cnn", Shape::Maps { channels: 1, height: 28, width: 28 }, 10).unwrap();
    let mut pass = Pass::<f32>::new(&network);
    pass.fit(&network, 6).unwrap();
    let addresses = |pass: &Pass<f32>| -> Vec<usize> {
        let buffers = pass.buffers.outputs.iter().chain(&pass.buffers.slots);
        buffers.map(|buffer| buffer.as_ptr() as usize).collect()
    };
    let before = (addresses(&pass), pass.bytes());
    pass.fit(&network, 2).unwrap();
    pass.fit(&network, 6).unwrap();
    assert_eq!((addresses(&pass), pass.bytes()), before);
}

#[test]
fn a_batch_that_is_not_of_this_network_is_refused() {
    let network = Network::by_name("mlp", Shape::Flat(2), 1).unwrap();
    let parameters = Parameters::<f32>::new(&network, 1);
    let refused = |inputs: usize, targets: usize| {
        let (inputs, targets) = (&vec![0.0; inputs][..], &vec![0.0; targets][..]);
        let (masks, loss) = (Some(Masks { seed: 1, step: 0 }), Loss::MeanSquaredError);
        let task = Task { network: &network, parameters: &parameters, inputs, targets, masks, loss, watch: None };
        Pass::<f32>::new(&network).forward(task).unwrap_err().to_string()
    };
    assert!(refused(9, 4).contains("9 inputs and 4 targets are no batch: an example has 2 and 1"));
    assert!(refused(8, 3).contains("8 inputs and 3 targets"));
    assert!(refused(0, 0).starts_with("mlp: "));
}

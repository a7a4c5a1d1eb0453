//! Steps against the reference: the CPU engine in double precision, the plain definitions of the operators.

use super::*;
use crate::check::selftest;
use crate::engine::open::Engines;
use crate::network::operators::operators;
use crate::network::{BatchNorm, Builder, Conv2d, Dense, Extent, MaxPool2d, Operation, Padding};

fn check(workload: &Workload) {
    let workload = std::slice::from_ref(workload);
    let checks = selftest::checks(&mut CandleEngine::cpu(), Engines::reference().as_mut(), workload).unwrap();
    assert!(checks[0].passed(), "{checks:?}");
}

#[test]
fn every_operator_agrees_at_odd_batch_sizes() {
    for network in operators().unwrap() {
        for batch_size in [1, 5] {
            check(&Workload { network: network.clone(), batch_size, settings: settings() });
        }
    }
}

#[test]
#[ignore = "slow"]
fn every_optimizer_and_loss_agrees() {
    let input = Shape::Maps { channels: 1, height: 12, width: 12 };
    let network = Arc::new(Network::by_name("mnist_cnn", input, 10).unwrap());
    for &optimizer in Optimizer::ALL {
        for &loss in Loss::ALL {
            let settings = Settings { optimizer, loss, learning_rate: 1e-3, ..settings() };
            check(&Workload { network: network.clone(), batch_size: 4, settings });
        }
    }
}

/// Cases that candle's own operators refuse or get wrong: different padding on each side, different strides and kernels
/// for each axis, rows and columns that no window reaches, overlapping windows.
#[test]
fn odd_windows_agree() {
    let conv = |kernel: [usize; 2], stride: [usize; 2], padding| -> Operation {
        let (kernel, stride) = (kernel.into(), stride.into());
        Conv2d { out_channels: 4, kernel, stride, padding, groups: 1, bias: true }.into()
    };
    let pool = |kernel: [usize; 2], stride: [usize; 2], padding| -> Operation {
        MaxPool2d { kernel: kernel.into(), stride: stride.into(), padding }.into()
    };
    let sides = Padding { top: 0, bottom: 2, left: 1, right: 0 };
    let odd = [
        conv([3, 3], [2, 2], Padding::NONE),
        conv([2, 3], [2, 2], sides),
        conv([3, 2], [1, 3], sides),
        conv([1, 1], [3, 2], Padding::NONE),
        pool([3, 3], [2, 2], Padding { top: 1, bottom: 1, left: 1, right: 1 }),
        pool([3, 2], [1, 3], Padding { top: 0, bottom: 2, left: 1, right: 0 }),
        pool([1, 2], [2, 1], Padding::NONE),
        pool([2, 2], [2, 2], Padding::NONE),
    ];
    for operation in odd {
        let mut b = Builder::new("odd", Shape::Maps { channels: 2, height: 9, width: 8 }).unwrap();
        b.then("before", Conv2d::square(3, 2)).unwrap();
        b.then("operator", operation).unwrap();
        b.then("flatten", Operation::Flatten).unwrap();
        b.then("after", Dense { out_features: 3, bias: false }).unwrap();
        let network = Arc::new(b.finish().unwrap());
        check(&Workload { network, batch_size: 3, settings: settings() });
    }
}

#[test]
fn flat_features_are_normalised_and_a_layer_can_be_read_twice() {
    let mut b = Builder::new("flat", Shape::Flat(6)).unwrap();
    b.then("fc", Dense { out_features: 5, bias: true }).unwrap();
    let norm = b.then("bn", BatchNorm::default()).unwrap();
    let relu = b.then("relu6", Operation::Relu6).unwrap();
    b.add("sum", Operation::Add, &[norm, relu]).unwrap();
    let sum = b.last();
    b.add("twice", Operation::Add, &[sum, sum]).unwrap();
    b.then("out", Dense { out_features: 3, bias: true }).unwrap();
    let network = Arc::new(b.finish().unwrap());
    check(&Workload { network, batch_size: 7, settings: settings() });
}

/// candle's own max-pooling passes on a quarter of the gradient here (`backprop.rs`, MaxPool2D). This is the reason for
/// [`super::super::op::max_pool`]: if this test fails, that module can be removed.
#[test]
fn the_gradient_of_candles_own_pooling_is_wrong() {
    use candle_core::{Device, Tensor, Var};
    let x = Var::from_tensor(&Tensor::new(&[[[[1f32, 2.0], [3.0, 4.0]]]], &Device::Cpu).unwrap()).unwrap();
    let gradient = |y: Tensor| -> Vec<f32> {
        y.sum_all().unwrap().backward().unwrap().get(&x).unwrap().flatten_all().unwrap().to_vec1().unwrap()
    };
    assert_eq!(gradient(x.max_pool2d(2).unwrap()), [0.0, 0.0, 0.0, 0.25]);
    let ours = super::super::op::max_pool::MaxPool::new(&MaxPool2d::square(2), Extent::square(2));
    assert_eq!(gradient(ours.forward(&x).unwrap()), [0.0, 0.0, 0.0, 1.0]);
}

use std::sync::Arc;

use super::*;
use crate::engine::cpu::parameters::Parameters;
use crate::engine::cudnn::emulated::{EmulatedMemory, emulator, rounded, to_nchw};
use crate::engine::numbers::Number;
use crate::engine::{Workload, data};
use crate::network::{Network, Shape};
use crate::random::{Purpose, Stream};
use crate::settings::{self, Examples, Settings};

fn network() -> Network {
    Network::by_name("mobilenet", Shape::Maps { channels: 3, height: 32, width: 32 }, 7).unwrap()
}

fn settings(loss: settings::Loss) -> Settings {
    Settings { loss, seed: 9, ..Settings::default() }
}

#[test]
fn weights_match_the_cpu_engine_in_either_order() {
    let Some(emulator) = emulator() else { return };
    let network = network();
    let parameters = Parameters::<f32>::new(&network, 9);
    for name in ["conv1", "conv_pw_1"] {
        let layer = network.layers.iter().position(|layer| layer.name == name).unwrap();
        let expected = &parameters.of_layer(layer)[0][..];
        let dims = network.parameters_of(layer).remove(0).dims;
        let (channels, positions) = (dims[1], dims[2] * dims[3]);
        let limit = (6.0 / (positions * (dims[0] + channels)) as f64).sqrt() as f32;
        let key = Stream::new(9, Purpose::Parameters, [layer as u64, 0]).key();
        for (element, channels_last) in Element::ALL.into_iter().flat_map(|e| [false, true].map(|last| (e, last))) {
            let mut memory = EmulatedMemory::new();
            let count = expected.len();
            let dst = memory.empty(Element::F32, count);
            let working = (element != Element::F32).then(|| memory.empty(element, count));
            let uniform = Uniform { element, dst, working, count, key, limit, channels, positions, channels_last };
            emulator.check_all(&mut memory, [uniform.launch()]);
            let order = |values: Vec<f32>| -> Vec<f32> {
                if channels_last { f32::transposed(&values, positions, channels) } else { values }
            };
            assert_eq!(order(memory.read(dst, Element::F32)), expected, "{name} {element:?} {channels_last}");
            if let Some(working) = working {
                let expected: Vec<f32> = expected.iter().map(|w| rounded(element, *w)).collect();
                assert_eq!(order(memory.read(working, element)), expected, "{name} {element:?} {channels_last}");
            }
        }
    }
}

#[test]
fn a_batch_matches_the_cpu_engine() {
    let Some(emulator) = emulator() else { return };
    let (batch, classes) = (5, 7);
    for loss in settings::Loss::ALL {
        let workload = Workload { network: Arc::new(network()), batch_size: batch, settings: settings(*loss) };
        let key = Stream::new(9, Purpose::Targets, [0, 0]).key();
        let mut memory = EmulatedMemory::new();
        let dst = memory.empty(Element::F32, batch * classes);
        let launch = match loss {
            settings::Loss::CategoricalCrossEntropy => one_hot(dst, classes, key),
            settings::Loss::MeanSquaredError | settings::Loss::BinaryCrossEntropy => uniform_targets(dst, key),
        };
        emulator.check_all(&mut memory, [launch]);
        assert_eq!(memory.read(dst, Element::F32), data::targets(&workload), "{loss}");

        let key = Stream::new(9, Purpose::Inputs, [0, 0]).key();
        for (element, layout) in Element::ALL.into_iter().flat_map(|e| Layout::ALL.iter().map(move |l| (e, *l))) {
            let maps = FeatureMaps::new(batch, workload.network.input(), layout);
            let dst = memory.empty(element, maps.count());
            emulator.check_all(&mut memory, [inputs(element, maps, dst, key)]);
            let expected: Vec<f32> = data::inputs(&workload).iter().map(|x| rounded(element, *x)).collect();
            assert_eq!(to_nchw(&memory.read(dst, element), maps), expected, "{element:?} {layout}");
        }
    }
}

#[test]
fn the_points_of_a_surface_match_the_cpu_engine() {
    let Some(emulator) = emulator() else { return };
    let network = Arc::new(Network::by_name("mlp", Shape::Flat(2), 1).unwrap());
    for batch in [1, 16, 1000] {
        let settings = Settings { examples: Examples::Peaks, ..settings(settings::Loss::MeanSquaredError) };
        let workload = Workload { network: network.clone(), batch_size: batch, settings };
        let mut memory = EmulatedMemory::new();
        for element in Element::ALL {
            let dst = memory.empty(element, 2 * batch);
            emulator.check_all(&mut memory, [points(element, dst, batch)]);
            let expected: Vec<f32> = data::inputs(&workload).iter().map(|x| rounded(element, *x)).collect();
            assert_eq!(memory.read(dst, element), expected, "{element:?}");
        }
        let dst = memory.empty(Element::F32, batch);
        emulator.check_all(&mut memory, [heights(dst, batch)]);
        // Two libraries' exp may differ in the last bit of a double, and so, rarely, in the last bit of a float.
        for (own, expected) in memory.read(dst, Element::F32).iter().zip(data::targets(&workload)) {
            assert!((own - expected).abs() <= 1e-6 * expected.abs().max(1e-3), "{own} {expected}");
        }
    }
}

#[test]
fn a_constant_fills_the_whole_slice() {
    let Some(emulator) = emulator() else { return };
    for count in [1, 256, 1000] {
        let mut memory = EmulatedMemory::new();
        let dst = memory.empty(Element::F32, count);
        emulator.check_all(&mut memory, [fill(dst, 1.0)]);
        assert_eq!(memory.read(dst, Element::F32), vec![1.0; count]);
    }
}

//! The kernels of this program that change with the batch size, from the functions that choose them.

use crate::engine::cpu;
use crate::engine::cudnn::op::batch_norm;
use crate::network::{Network, Operation};
use crate::settings::{EngineName, Settings};

/// The kernel of a layer at a batch size, where this program itself chooses among several. On the CPU engine this is
/// the algorithm of a convolution, as `layers.parquet` names it, and whether a dense layer is one product or many. On
/// the GPU engine it is whether a batch norm takes one launch, whose blocks hold a channel in registers, or several.
/// `None` for all others.
pub fn kernel(
    engine: EngineName,
    network: &Network,
    layer: usize,
    batch: usize,
    settings: &Settings,
) -> Option<&'static str> {
    match (engine, network.layers.get(layer)?.operation) {
        (EngineName::Cpu, Operation::Conv2d(_) | Operation::Dense(_)) => {
            cpu::chosen_kernel(network, layer, batch, settings)
        }
        (EngineName::Cudnn, Operation::BatchNorm(_)) => {
            let shape = network.sources(layer).next()?;
            Some(if batch_norm::holds_a_channel(batch, shape, settings) { "one launch" } else { "several launches" })
        }
        _ => None,
    }
}

/// Why a kernel is faster from some batch size on; `None` where nothing general can be said.
pub fn why(kernel: &str) -> Option<&'static str> {
    match kernel {
        "winograd_4x4_3x3" => Some("it multiplies a quarter as often, and transforms its filters once for the batch"),
        "gemm" => Some("nothing is copied"),
        "product by blocks of examples" => Some("the weights stay in the nearest cache while the examples go by"),
        "several launches" => Some("a channel no longer fits in the registers of one block"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Shape;
    use crate::settings::{Layout, Precision, Winograd};

    fn changes(engine: EngineName, network: &Network, layer: &str, settings: &Settings) -> Vec<usize> {
        let index = network.layers.iter().position(|known| known.name == layer).expect("a layer");
        let at = |batch| kernel(engine, network, index, batch, settings);
        (1..100).filter(|&batch| at(batch).is_some() && at(batch) != at(batch + 1)).collect()
    }

    // 14 x 14 images of 512 channels: cd(14, 4)^2 = 16 tiles of 36 products for 14 * 14 * 9 multiplications. That saves
    // a factor of 1764 / 576 = 3.06, and the filters' transforms, 36 * 512^2 numbers, pay off from 16 B (3.06 - 1) >=
    // 40 on: after B = 1.
    #[test]
    fn the_cpu_engine_changes_from_unfolding_to_winograd() {
        let network = Network::by_name("vgg16", Shape::Maps { channels: 3, height: 224, width: 224 }, 1000).unwrap();
        let settings = Settings::default();
        assert_eq!(changes(EngineName::Cpu, &network, "block5_conv1", &settings), [1]);
        assert!(changes(EngineName::Cpu, &network, "block1_conv1", &settings).is_empty());
        let never = Settings { winograd: Winograd::Never, ..settings };
        assert!(changes(EngineName::Cpu, &network, "block5_conv1", &never).is_empty());
    }

    // Layers of up to 64 features and outputs are processed in blocks of 256 examples, from two blocks on.
    #[test]
    fn the_cpu_engine_changes_the_product_of_narrow_dense_layers() {
        let network = Network::by_name("mlp", Shape::Flat(2), 1).unwrap();
        let index = network.layers.iter().position(|layer| matches!(layer.operation, Operation::Dense(_))).unwrap();
        let at = |batch| kernel(EngineName::Cpu, &network, index, batch, &Settings::default());
        assert_eq!([at(1), at(512)], [at(511), at(4096)]);
        assert_ne!(at(511), at(512));
    }

    // docs/gpu-engine.md: in NCHW, maps of 14 x 14 and 7 x 7 change after 83, those of 28 x 28 after 20 and those of 56 x 56 after 5: 1024 threads
    // keep 4 bundles of 4 numbers each, 16384 of a channel's: 83 * 196 = 16268, 84 * 196 = 16464; 20 * 784 = 15680, 21 * 784 = 16464.
    #[test]
    fn the_gpu_engines_batch_norm_changes_where_a_channel_no_longer_fits_in_registers() {
        let network = Network::by_name("resnet50", Shape::Maps { channels: 3, height: 224, width: 224 }, 1000).unwrap();
        let settings = Settings { precision: Precision::Fp32, layout: Layout::Nchw, ..Settings::default() };
        let of = |layer| changes(EngineName::Cudnn, &network, layer, &settings);
        assert_eq!([of("conv4_block1_1_bn"), of("conv3_block1_1_bn"), of("conv2_block1_1_bn")], [[83], [20], [5]]);
    }
}

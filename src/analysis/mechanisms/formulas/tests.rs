//! Grids by hand, for the forms that names take. `tests/program/published_kernels.rs` tests the published launches themselves.

use super::*;

fn convolution(inputs: usize, outputs: usize, size: usize) -> LayerSizes {
    LayerSizes { product: KnownOperation::Convolution3x3, inputs, outputs, height: size, width: size }
}

#[test]
fn fused_winograd_takes_the_images_that_its_name_says() {
    let name = |tile: &str| format!("cudnn_infer_volta_scudnn_winograd_128x128_ldg1_ldg4_relu_{tile}_nt_v1");
    let kernel = |tile: &str| Kernel::of(KnownOperation::Convolution3x3, &name(tile), "").expect("known");
    // 33 channels are 2 blocks; 24 rows are 3 of 8, 24 columns 2 of 16.
    assert_eq!(kernel("tile148t").grid(&convolution(8, 33, 24), 5), [10, 3, 2]);
    // Two images at a time: 5 are 3; 24 columns are 3 of 8.
    assert_eq!(kernel("tile244n").grid(&convolution(8, 33, 24), 5), [6, 3, 3]);
    assert_eq!(Kernel::of(KnownOperation::Convolution3x3, &name("tiles"), ""), None);
    assert_eq!(Kernel::of(KnownOperation::Convolution3x3, &name("tile108t"), ""), None);
}

#[test]
fn dense_products_have_the_tile_that_their_name_says() {
    let dense = LayerSizes { product: KnownOperation::Dense, inputs: 512, outputs: 1000, height: 1, width: 1 };
    let kernel = Kernel::of(KnownOperation::Dense, "volta_sgemm_32x32_sliced1x4_tn", "").expect("known");
    assert_eq!(kernel.grid(&dense, 33), [32, 2, 1]);
    let long = Kernel::of(KnownOperation::Dense, "maxwell_sgemm_largek_lds64_128x64_tn", "").expect("known");
    assert_eq!(long.grid(&dense, 33), [8, 1, 1]);
}

#[test]
fn other_kernels_have_no_formula() {
    for name in ["volta_gcgemm_64x32_nt", "void implicit_convolve_sgemm<float, float, 128>", "", "scudnn_0x32"] {
        assert_eq!(Kernel::of(KnownOperation::Convolution3x3, name, name), None, "{name}");
    }
}

#[test]
fn only_layers_that_a_formula_knows_have_sizes() {
    let known = |name: &str| {
        let (input, classes) = Network::default_input(name).expect("a network");
        let network = Network::by_name(name, input, classes).expect("a network");
        let sizes: Vec<LayerSizes> = (1..network.layers.len()).filter_map(|i| LayerSizes::of(&network, i)).collect();
        let convolutions = sizes.iter().filter(|sizes| sizes.product == KnownOperation::Convolution3x3).count();
        (convolutions, sizes.len() - convolutions)
    };
    // VGG16: 13 convolutions and 3 dense layers. MobileNet: its 3x3 convolutions are depthwise, or have a stride of 2. ResNet50
    // (v1): a 3x3 convolution with stride 1 in each of 3 + 4 + 6 + 3 blocks.
    assert_eq!(known("vgg16"), (13, 3));
    assert_eq!(known("mobilenet").0, 0);
    assert_eq!(known("resnet50"), (16, 1));
}

#[test]
fn bytes_are_those_of_input_output_and_weights() {
    // 2 images of 8 and of 16 channels at 4 x 4, and 16 x 8 filters of 3 x 3.
    let layer = LayerSizes { outputs: 16, ..convolution(8, 8, 4) };
    assert_eq!(layer.bytes(2), (4 * (2 * (8 + 16) * 16 + 16 * 8 * 9)) as f64);
}

#[test]
fn a_round_that_is_not_full_counts() {
    assert_eq!([rounds(40, 40), rounds(41, 40), rounds(80, 40), rounds(7, 0)], [1, 2, 2, 7]);
}

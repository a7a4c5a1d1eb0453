//! The catalogue against published figures, and what every network has to obey.

use super::*;

pub(super) fn published(name: &str) -> Network {
    let (input, classes) = Network::default_input(name).unwrap();
    Network::by_name(name, input, classes).unwrap()
}

fn image(channels: usize, height: usize, width: usize) -> Shape {
    Shape::Maps { channels, height, width }
}

fn output(network: &Network, layer: &str) -> Shape {
    network.layers.iter().find(|l| l.name == layer).unwrap_or_else(|| panic!("no layer `{layer}`")).output
}

fn convolution(network: &Network, layer: &str) -> Conv2d {
    match network.layers.iter().find(|l| l.name == layer).map(|l| l.operation) {
        Some(Operation::Conv2d(conv)) => conv,
        other => panic!("`{layer}` is {other:?}"),
    }
}

// "Total params" and "Trainable params" of `model.summary()` of keras.applications' VGG16, VGG19, MobileNet, ResNet50 with
// their ImageNet classifiers; torchvision's documentation of `resnet50` for the trainable count of v1.5, to which its
// 53,120 running statistics (the same as those of v1) are added.
#[test]
fn parameter_counts_are_those_that_were_published() {
    let counts = |name| (published(name).parameter_count(), published(name).trainable_count());
    assert_eq!(counts("vgg16"), (138_357_544, 138_357_544));
    assert_eq!(counts("vgg19"), (143_667_240, 143_667_240));
    assert_eq!(counts("mobilenet"), (4_253_864, 4_231_976));
    assert_eq!(counts("resnet50"), (25_636_712, 25_583_592));
    assert_eq!(counts("resnet50_v1_5"), (25_557_032 + 53_120, 25_557_032));
}

// Convolutions 1 * 32 * 9 + 32, 32 * 64 * 9 + 64, 64 * 128 * 9 + 128; batch norms 4 * (32 + 64 + 128), half of it trainable;
// dense 1152 * 256 + 256, 256 * 128 + 128, 128 * 10 + 10. And 2 * 20 + 20 + 20 * 5 + 5 + 5 + 1.
#[test]
fn parameter_counts_of_the_small_networks_match_a_hand_calculation() {
    let cnn = published("mnist_cnn");
    assert_eq!(cnn.parameter_count(), 320 + 18_496 + 73_856 + 896 + 295_168 + 32_896 + 1_290);
    assert_eq!(cnn.trainable_count(), cnn.parameter_count() - 448);
    assert_eq!(published("mlp").parameter_count(), 171);
}

/// VGG by its table: the sides of the maps, the channels and the number of 3x3 convolutions of each block.
fn vgg_multiply_adds(convolutions: [usize; 5]) -> usize {
    let (mut total, mut channels) = (0, 3);
    for ((side, out), count) in [224, 112, 56, 28, 14].into_iter().zip([64, 128, 256, 512, 512]).zip(convolutions) {
        total += side * side * 9 * out * (channels + (count - 1) * out);
        channels = out;
    }
    total + 7 * 7 * 512 * 4096 + 4096 * 4096 + 4096 * 1000
}

/// ResNet50 by its table; in v1.5 the first convolution of a block that shrinks still sees the larger maps.
fn resnet50_multiply_adds(first_stride_later: bool) -> usize {
    let (mut total, mut channels, mut side_before) = (112 * 112 * 49 * 3 * 64, 64, 56);
    for (c, blocks, side) in [(64, 3, 56), (128, 4, 28), (256, 6, 14), (512, 3, 7)] {
        let reduce_side = if first_stride_later { side_before } else { side };
        total += reduce_side * reduce_side * channels * c;
        total += side * side * (channels * 4 * c + 9 * c * c + c * 4 * c);
        total += (blocks - 1) * side * side * (4 * c * c + 9 * c * c + c * 4 * c);
        (channels, side_before) = (4 * c, side);
    }
    total + 2048 * 1000
}

// Published: 15.47 G, 19.63 G and (v1.5) 4.09 G in torchvision's table of classification weights; 3.8 x 10^9 for ResNet50 v1
// in table 1 of He et al.
#[test]
fn multiply_adds_match_the_papers_tables() {
    assert_eq!(published("vgg16").multiply_adds(), vgg_multiply_adds([2, 2, 3, 3, 3]) as f64);
    assert_eq!(published("vgg19").multiply_adds(), vgg_multiply_adds([2, 2, 4, 4, 4]) as f64);
    assert_eq!(published("resnet50").multiply_adds(), resnet50_multiply_adds(false) as f64);
    assert_eq!(published("resnet50_v1_5").multiply_adds(), resnet50_multiply_adds(true) as f64);

    let billions = |name| (published(name).multiply_adds() / 1e7).round() / 100.0;
    assert_eq!(["vgg16", "vgg19", "resnet50", "resnet50_v1_5"].map(billions), [15.47, 19.63, 3.86, 4.09]);
}

// "569 million mult-adds" in tables 4, 6 and 8 of Howard et al. In full: 112^2 * 27 * 32 for conv1, the sum over the blocks
// of side^2 * (9 * in + in * out) for the rest, and 1024 * 1000 for the classifier.
#[test]
fn mobilenet_does_569_million_multiply_adds() {
    let blocks = [
        (112, 32, 64),
        (56, 64, 128),
        (56, 128, 128),
        (28, 128, 256),
        (28, 256, 256),
        (14, 256, 512),
        (14, 512, 512),
        (14, 512, 512),
        (14, 512, 512),
        (14, 512, 512),
        (14, 512, 512),
        (7, 512, 1024),
        (7, 1024, 1024),
    ];
    let separable: usize = blocks.iter().map(|(side, from, to)| side * side * (9 * from + from * to)).sum();
    let total = 112 * 112 * 27 * 32 + separable + 1024 * 1000;
    assert_eq!(total, 568_740_352);
    assert_eq!(published("mobilenet").multiply_adds(), total as f64);
}

/// Every network as published, and on small, odd and oblong images.
fn everything() -> Vec<Network> {
    let mut networks: Vec<Network> = NAMES.iter().map(|name| published(name)).collect();
    for name in NAMES.iter().filter(|name| **name != "mlp") {
        for shape in [image(3, 32, 32), image(1, 64, 40), image(4, 33, 57)] {
            networks.push(Network::by_name(name, shape, 10).unwrap());
        }
    }
    networks.push(Network::by_name("mlp", Shape::Flat(7), 3).unwrap());
    networks
}

#[test]
fn in_every_network_only_the_first_parametrised_layer_gets_no_gradient_through() {
    for network in everything() {
        let without: Vec<usize> = (0..network.layers.len()).filter(|&index| !network.passes_gradient(index)).collect();
        assert_eq!(without, [0, 1], "{}", network.name);
        assert_eq!(network.cost(1, 1, Direction::BackwardData, 4), None);
    }
}

#[test]
fn other_inputs_and_classes_give_the_right_output() {
    let vgg = Network::by_name("vgg16", image(3, 32, 32), 10).unwrap();
    assert_eq!((output(&vgg, "flatten"), vgg.output()), (Shape::Flat(512), Shape::Flat(10)));
    let oblong = Network::by_name("vgg16", image(1, 96, 64), 7).unwrap();
    assert_eq!(output(&oblong, "block5_pool"), image(512, 3, 2));
    let resnet = Network::by_name("resnet50", image(3, 32, 32), 10).unwrap();
    assert_eq!(output(&resnet, "conv5_block3_out"), image(2048, 1, 1));
    // Keras' `same` on an odd map pads both sides: 33 rows to 17, 57 columns to 29.
    let mobilenet = Network::by_name("mobilenet", image(4, 33, 57), 10).unwrap();
    assert_eq!(output(&mobilenet, "conv1"), image(32, 17, 29));
    assert_eq!(convolution(&mobilenet, "conv1").padding, Padding::all(1));
}

// VGG16, SGD without momentum, fp32: 138.4 M weights and as many gradients are 1.107 GB; the outputs of all layers of one
// image are 28.8 M numbers (the twins of convolution and ReLU 13.5 M each), 115 MB; the largest gradients together are two
// of 64x224x224, 25.7 MB.
#[test]
fn the_memory_of_vgg16_matches_a_hand_calculation() {
    let network = published("vgg16");
    let convolutions =
        2 * (2 * 64 * 224 * 224 + 2 * 128 * 112 * 112 + 3 * 256 * 56 * 56 + 3 * 512 * (28 * 28 + 14 * 14));
    let pools = 64 * 112 * 112 + 128 * 56 * 56 + 256 * 28 * 28 + 512 * (14 * 14 + 7 * 7);
    let activations = 3 * 224 * 224 + convolutions + pools + 4 * 4096 + 1000;
    assert_eq!(network.activation_bytes(8), 4 * 8 * activations);
    let expected = 4 * (2 * 138_357_544 + 8 * (activations + 2 * 64 * 224 * 224));
    assert_eq!(network.training_bytes(8, 0), expected);
}

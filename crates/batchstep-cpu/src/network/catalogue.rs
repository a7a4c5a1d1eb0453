//! The networks that batchstep knows by name.

use super::generated::Generated;
use super::layer::Shape;
use super::{Network, mobilenet, resnet, small, vgg};
use crate::error::{Error, Result};

/// The names that [`Network::by_name`] takes.
pub const NAMES: &[&str] = &["vgg16", "vgg19", "mobilenet", "resnet50", "resnet50_v1_5", "mnist_cnn", "mlp"];

const IMAGENET: Shape = Shape::Maps { channels: 3, height: 224, width: 224 };
const MNIST: Shape = Shape::Maps { channels: 1, height: 28, width: 28 };

fn construct(name: &str, input: Shape, classes: usize) -> Result<Network> {
    match name {
        "vgg16" => vgg::vgg("vgg16", [2, 2, 3, 3, 3], input, classes),
        "vgg19" => vgg::vgg("vgg19", [2, 2, 4, 4, 4], input, classes),
        "mobilenet" => mobilenet::mobilenet(input, classes),
        "resnet50" => resnet::resnet50(input, classes),
        "resnet50_v1_5" => resnet::resnet50_v1_5(input, classes),
        "mnist_cnn" => small::mnist_cnn(input, classes),
        "mlp" => small::mlp(input, classes),
        _ => generated(name)?.build(input, classes),
    }
}

fn generated(name: &str) -> Result<Generated> {
    Generated::parse(name).ok_or_else(|| {
        Error::spec(format!("no network is called `{name}`"))
            .hint(format!("use one of {}, or describe your own in `[[model.layers]]`", NAMES.join(", ")))
    })
}

impl Network {
    /// The network of that name, for another input or number of classes than it was published with where asked for.
    ///
    /// # Errors
    /// [`crate::error::Kind::Spec`] where there is no such network, where `input` has the wrong kind of shape or is too
    /// small for its windows (the hint names the smallest that fits), or where `classes` is 0.
    pub fn by_name(name: &str, input: Shape, classes: usize) -> Result<Self> {
        let (default, _) = Self::default_input(name)?;
        match (default, input) {
            (Shape::Maps { .. }, Shape::Flat(_)) => {
                return Err(Error::spec(format!("the input is a flat vector of {input}, and {name} takes images"))
                    .at(name)
                    .hint(format!("give channels, height and width, for instance {default}")));
            }
            (Shape::Flat(_), Shape::Maps { .. }) => {
                return Err(Error::spec(format!("the input is maps of {input}, and {name} takes a flat vector"))
                    .at(name)
                    .hint(format!("give the number of features, for instance {default}")));
            }
            _ => {}
        }
        construct(name, input, classes).map_err(|error| match smallest_side(name, input) {
            Some(side) => error.hint(format!("{name} needs an input of at least {side}x{side}")),
            None => error,
        })
    }

    /// The input shape and the number of classes that the network of that name was published with.
    ///
    /// # Errors
    /// [`crate::error::Kind::Spec`] where there is no such network.
    pub fn default_input(name: &str) -> Result<(Shape, usize)> {
        Ok(match name {
            "mnist_cnn" => (MNIST, 10),
            "mlp" => (Shape::Flat(2), 1),
            _ if NAMES.contains(&name) => (IMAGENET, 1000),
            _ => generated(name)?.default_input(),
        })
    }
}

/// The side of the smallest square image that a network takes, with the channels of `input`.
fn smallest_side(name: &str, input: Shape) -> Option<usize> {
    let Shape::Maps { channels, .. } = input else { return None };
    (1..=256).find(|&side| construct(name, Shape::Maps { channels, height: side, width: side }, 1).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(name: &str, input: Shape, classes: usize) -> String {
        Network::by_name(name, input, classes).unwrap_err().to_string()
    }

    #[test]
    fn every_name_builds_with_its_default_input() {
        for name in NAMES {
            let (input, classes) = Network::default_input(name).unwrap();
            let network = Network::by_name(name, input, classes).unwrap();
            assert_eq!((network.name.as_str(), network.input()), (*name, input));
            assert_eq!(network.output(), Shape::Flat(classes), "{name}");
        }
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let message = refusal("vgg", IMAGENET, 10);
        assert!(message.contains("`vgg`") && message.contains("vgg16, vgg19, mobilenet"), "{message}");
        assert!(Network::default_input("alexnet").is_err());
    }

    // VGG halves five times and needs a row left: 2^5. MobileNet's conv1 rounds up, its four strided depthwise windows
    // of 3 on a map padded by one round down: ceil(31 / 2) = 16 -> 8 -> 4 -> 2 -> 1. The MNIST network halves three times.
    #[test]
    fn an_input_too_small_is_refused_with_the_smallest_that_fits() {
        for (name, side) in [("vgg16", 32), ("vgg19", 32), ("mobilenet", 31), ("mnist_cnn", 8)] {
            let message = refusal(name, Shape::Maps { channels: 3, height: side - 1, width: 64 }, 10);
            assert!(message.contains(&format!("at least {side}x{side}")), "{message}");
            assert!(message.contains("too small for its"), "{message}");
            assert!(Network::by_name(name, Shape::Maps { channels: 3, height: side, width: side }, 10).is_ok());
        }
    }

    #[test]
    fn the_wrong_kind_of_input_is_refused() {
        assert!(refusal("vgg16", Shape::Flat(100), 10).contains("takes images"));
        assert!(refusal("mlp", MNIST, 1).contains("takes a flat vector"));
        assert!(refusal("resnet50", Shape::Maps { channels: 3, height: 0, width: 32 }, 10).contains("at least 1"));
    }

    #[test]
    fn no_classes_are_refused() {
        for name in NAMES {
            let (input, _) = Network::default_input(name).unwrap();
            assert!(refusal(name, input, 0).contains("no output"), "{name}");
        }
    }
}

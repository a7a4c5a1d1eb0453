//! A network of one's own, from a list of layers: what the `[[model.layers]]` tables of a spec are decoded into.
//!
//! ```toml
//! [[model.layers]]
//! type = "conv2d"
//! name = "conv"
//! out_channels = 16
//! kernel = 3            # or [height, width]
//! padding = "same"
//!
//! [[model.layers]]
//! type = "batch_norm"
//!
//! [[model.layers]]
//! type = "add"
//! from = ["conv", "batch_norm_2"]
//! ```

use super::Network;
use super::build::Builder;
use super::layer::{BatchNorm, Conv2d, Dense, Extent, MaxPool2d, Operation, Padding, Shape};
use crate::error::{Error, Result};

/// One `[[model.layers]]` table.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerSpec {
    /// Key `name`, optional. Default: the type and the place in the list, counted from 1, as in `conv2d_1`.
    pub name: Option<String>,
    /// Key `from`, optional: the name of the layer that feeds this one, or a list of names; `input` is the network's
    /// input. Empty: the layer before it in the list, for the first one the input.
    pub from: Vec<String>,
    /// Key `type`, and the keys that go with it.
    pub operation: OperationSpec,
}

/// Key `type`, and the keys that go with each type. An extent is one integer for both, or `[height, width]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OperationSpec {
    /// `conv2d`: `out_channels`, `kernel`, `stride` (default 1), `padding` (default `"valid"`), `groups` (default 1),
    /// `bias` (default true).
    Conv2d { out_channels: usize, kernel: Extent, stride: Extent, padding: PaddingSpec, groups: usize, bias: bool },
    /// `depthwise_conv2d`: `kernel`, `stride` (default 1), `padding` (default `"valid"`), `bias` (default true). Gives as
    /// many channels as it gets.
    DepthwiseConv2d { kernel: Extent, stride: Extent, padding: PaddingSpec, bias: bool },
    /// `batch_norm`: `epsilon` (default 1e-5), `momentum` (default 0.9, the share of the running value that stays).
    BatchNorm(BatchNorm),
    /// `relu`: no keys.
    Relu,
    /// `relu6`: no keys.
    Relu6,
    /// `max_pool2d`: `kernel`, `stride` (default, here `None`: the kernel), `padding` (default `"valid"`).
    MaxPool2d { kernel: Extent, stride: Option<Extent>, padding: PaddingSpec },
    /// `global_average_pool`: no keys.
    GlobalAveragePool,
    /// `flatten`: no keys.
    Flatten,
    /// `dense`: `out_features`, `bias` (default true).
    Dense(Dense),
    /// `dropout`: `rate`, at least 0 and less than 1.
    Dropout { rate: f64 },
    /// `add`: no keys, but two names in `from`.
    Add,
}

/// Key `padding`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PaddingSpec {
    /// `"valid"`: none.
    #[default]
    Valid,
    /// `"same"`: TensorFlow's rule, see [`Padding::same`].
    Same,
    /// An integer: that many on each of the four sides.
    Each(usize),
}

impl OperationSpec {
    /// Every value of the key `type`, with the keys that go with it beside `type`, `name` and `from`.
    pub const TYPES: &'static [(&'static str, &'static [&'static str])] = &[
        ("conv2d", &["out_channels", "kernel", "stride", "padding", "groups", "bias"]),
        ("depthwise_conv2d", &["kernel", "stride", "padding", "bias"]),
        ("batch_norm", &["epsilon", "momentum"]),
        ("relu", &[]),
        ("relu6", &[]),
        ("max_pool2d", &["kernel", "stride", "padding"]),
        ("global_average_pool", &[]),
        ("flatten", &[]),
        ("dense", &["out_features", "bias"]),
        ("dropout", &["rate"]),
        ("add", &[]),
    ];

    /// The value of the key `type`.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::DepthwiseConv2d { .. } => "depthwise_conv2d",
            other => other.on(Shape::Flat(1)).name(),
        }
    }

    /// The operation on `source`, which `same` padding and depthwise convolutions depend on.
    fn on(self, source: Shape) -> Operation {
        match self {
            Self::Conv2d { out_channels, kernel, stride, padding, groups, bias } => {
                let padding = padding.on(source, kernel, stride);
                Conv2d { out_channels, kernel, stride, padding, groups, bias }.into()
            }
            Self::DepthwiseConv2d { kernel, stride, padding, bias } => {
                let (channels, padding) = (source.channels(), padding.on(source, kernel, stride));
                Conv2d { out_channels: channels, kernel, stride, padding, groups: channels, bias }.into()
            }
            Self::BatchNorm(norm) => norm.into(),
            Self::Relu => Operation::Relu,
            Self::Relu6 => Operation::Relu6,
            Self::MaxPool2d { kernel, stride, padding } => {
                let stride = stride.unwrap_or(kernel);
                MaxPool2d { kernel, stride, padding: padding.on(source, kernel, stride) }.into()
            }
            Self::GlobalAveragePool => Operation::GlobalAveragePool,
            Self::Flatten => Operation::Flatten,
            Self::Dense(dense) => dense.into(),
            Self::Dropout { rate } => Operation::Dropout { rate },
            Self::Add => Operation::Add,
        }
    }
}

impl PaddingSpec {
    fn on(self, source: Shape, kernel: Extent, stride: Extent) -> Padding {
        match (self, source) {
            (Self::Same, Shape::Maps { height, width, .. }) => Padding::same(Extent { height, width }, kernel, stride),
            (Self::Each(n), _) => Padding::all(n),
            _ => Padding::NONE,
        }
    }
}

impl Network {
    /// The network `name` of those layers, from `input` to a flat vector of `classes`.
    ///
    /// # Errors
    /// [`crate::error::Kind::Spec`] where a `from` names no earlier layer, where the last layer does not give `classes`
    /// features, where nothing can be trained, and as [`Builder::add`] and [`Builder::finish`]; each with the network and the layer.
    pub fn from_layers(name: &str, input: Shape, classes: usize, layers: &[LayerSpec]) -> Result<Self> {
        let mut b = Builder::new(name, input)?;
        for (spec, place) in layers.iter().zip(1..) {
            let layer = spec.name.clone().unwrap_or_else(|| format!("{}_{place}", spec.operation.type_name()));
            let sources = sources(&b, &spec.from).map_err(|error| error.at(format!("{name}: layer `{layer}`")))?;
            let operation = spec.operation.on(b.output(sources[0]));
            // Only a map too small for its window comes without a remedy.
            b.add(layer, operation, &sources).map_err(|error| {
                error.hint("enlarge the input, pad with `padding = \"same\"`, or take this layer out")
            })?;
        }
        let network = b.finish()?;
        if network.output() != Shape::Flat(classes) {
            let last = network.layers[network.layers.len() - 1].name.clone();
            return Err(Error::spec(format!(
                "the network gives {}, and {classes} classes are asked for",
                network.output()
            ))
            .at(format!("{name}: layer `{last}`"))
            .hint(format!("end with a `dense` layer with `out_features = {classes}`")));
        }
        if network.trainable_count() == 0 {
            let error = Error::spec("no layer has parameters, so there is nothing to train").at(name);
            return Err(error.hint("add a `conv2d` or a `dense` layer"));
        }
        Ok(network)
    }
}

/// The indices of the layers called `from`, or of the newest layer if `from` is empty.
fn sources(b: &Builder, from: &[String]) -> Result<Vec<usize>> {
    if from.is_empty() {
        return Ok(vec![b.last()]);
    }
    let find = |name: &String| {
        b.find(name).ok_or_else(|| {
            Error::spec(format!("`from` names `{name}`, and no layer before this one is called so"))
                .hint("name an earlier layer, or `input`")
        })
    };
    from.iter().map(find).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const INPUT: Shape = Shape::Maps { channels: 4, height: 9, width: 6 };

    fn layer(operation: OperationSpec) -> LayerSpec {
        LayerSpec { name: None, from: Vec::new(), operation }
    }

    fn named(name: &str, from: &[&str], operation: OperationSpec) -> LayerSpec {
        let from = from.iter().map(ToString::to_string).collect();
        LayerSpec { name: Some(name.into()), from, operation }
    }

    fn conv(out_channels: usize, kernel: usize, padding: PaddingSpec) -> OperationSpec {
        OperationSpec::Conv2d {
            out_channels,
            kernel: Extent::square(kernel),
            stride: Extent::square(1),
            padding,
            groups: 1,
            bias: true,
        }
    }

    fn head(classes: usize) -> [LayerSpec; 2] {
        let dense = Dense { out_features: classes, bias: true };
        [layer(OperationSpec::GlobalAveragePool), layer(OperationSpec::Dense(dense))]
    }

    fn refusal(classes: usize, layers: &[LayerSpec]) -> String {
        Network::from_layers("mine", INPUT, classes, layers).unwrap_err().to_string()
    }

    #[test]
    fn a_residual_network_of_ones_own_builds() {
        let mut layers = vec![
            named("stem", &[], conv(4, 3, PaddingSpec::Same)),
            layer(OperationSpec::BatchNorm(BatchNorm::default())),
            layer(OperationSpec::Relu6),
            named("sum", &["input", "relu6_3"], OperationSpec::Add),
        ];
        layers.extend(head(3));
        let network = Network::from_layers("mine", INPUT, 3, &layers).unwrap();
        let names: Vec<&str> = network.layers.iter().map(|layer| layer.name.as_str()).collect();
        assert_eq!(names, ["input", "stem", "batch_norm_2", "relu6_3", "sum", "global_average_pool_5", "dense_6"]);
        assert_eq!(network.layers[4].sources, [0, 3]);
        assert_eq!(network.layers[4].output, INPUT);
        assert_eq!(network.output(), Shape::Flat(3));
    }

    #[test]
    fn same_padding_and_depthwise_follow_the_input() {
        let (kernel, stride, padding) = (Extent::square(3), Extent::square(2), PaddingSpec::Same);
        let mut layers = vec![
            layer(OperationSpec::DepthwiseConv2d { kernel, stride, padding, bias: false }),
            layer(OperationSpec::MaxPool2d { kernel: Extent::square(2), stride: None, padding: PaddingSpec::Valid }),
        ];
        layers.extend(head(3));
        let network = Network::from_layers("mine", INPUT, 3, &layers).unwrap();
        // 9 rows: 4 * 2 + 3 - 9 = 2, one each; 6 columns: 2 * 2 + 3 - 6 = 1, at the right.
        let padding = Padding { top: 1, bottom: 1, left: 0, right: 1 };
        let expected = Conv2d { out_channels: 4, kernel, stride, padding, groups: 4, bias: false };
        assert_eq!(network.layers[1].operation, expected.into());
        assert_eq!(network.layers[1].output, Shape::Maps { channels: 4, height: 5, width: 3 });
        assert_eq!(network.operation_name(1), "depthwise_conv2d");
        assert_eq!(network.layers[2].output, Shape::Maps { channels: 4, height: 2, width: 1 });
    }

    #[test]
    fn an_unknown_source_is_named() {
        let message = refusal(3, &[named("a", &["b"], OperationSpec::Relu)]);
        assert!(message.starts_with("mine: layer `a`: `from` names `b`"), "{message}");
    }

    #[test]
    fn a_window_that_does_not_fit_comes_with_a_remedy() {
        let message = refusal(3, &[layer(conv(8, 7, PaddingSpec::Valid))]);
        let expected =
            "mine: layer `conv2d_1`: conv2d gets 4x9x6, too small for its 7x7 window\n  help: enlarge the input";
        assert!(message.starts_with(expected), "{message}");
    }

    #[test]
    fn the_output_has_to_match_the_classes() {
        assert!(refusal(10, &head(3)).contains("gives 3, and 10 classes are asked for"));
        assert!(refusal(10, &[layer(OperationSpec::Relu)]).contains("`out_features = 10`"));
        assert!(refusal(10, &[]).contains("no layers"));
        assert!(refusal(4, &[layer(OperationSpec::GlobalAveragePool)]).contains("nothing to train"));
    }

    #[test]
    fn a_stride_of_zero_with_same_padding_is_refused_and_does_not_divide() {
        let (kernel, stride, padding) = (Extent::square(3), Extent::square(0), PaddingSpec::Same);
        let operation = OperationSpec::DepthwiseConv2d { kernel, stride, padding, bias: false };
        assert!(refusal(3, &[layer(operation)]).contains("stride of 0"));
    }

    #[test]
    fn the_list_of_types_matches_the_operations() {
        let names: Vec<&str> = OperationSpec::TYPES.iter().map(|(name, _)| *name).collect();
        let (kernel, padding) = (Extent::square(1), PaddingSpec::Valid);
        let operations = [
            conv(1, 1, padding),
            OperationSpec::DepthwiseConv2d { kernel, stride: Extent::square(1), padding, bias: true },
            OperationSpec::BatchNorm(BatchNorm::default()),
            OperationSpec::Relu,
            OperationSpec::Relu6,
            OperationSpec::MaxPool2d { kernel, stride: None, padding },
            OperationSpec::GlobalAveragePool,
            OperationSpec::Flatten,
            OperationSpec::Dense(Dense { out_features: 1, bias: true }),
            OperationSpec::Dropout { rate: 0.0 },
            OperationSpec::Add,
        ];
        assert_eq!(names, operations.map(|operation| operation.type_name()));
    }
}

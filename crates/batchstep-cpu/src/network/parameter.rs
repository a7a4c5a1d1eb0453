//! Which tensors a layer holds, and how many scalars they are.

use super::Network;
use super::layer::{Layer, Operation, Parameter, Shape};

impl Layer {
    /// The parameters and the state of this layer, where `source` goes in. Empty for a layer that has none.
    ///
    /// - convolution: `weight` (out x in / groups x kernel height x kernel width), `bias` (out)
    /// - dense: `weight` (out x in), `bias` (out)
    /// - batch norm: `gamma`, `beta`, `running_mean`, `running_variance` (channels each; the running pair not trainable)
    pub fn parameters(&self, source: Shape) -> Vec<Parameter> {
        let tensor = |name, dims: &[usize], trainable| Parameter { name, dims: dims.to_vec(), trainable };
        let (weight, out, bias) = match self.operation {
            Operation::Conv2d(conv) => {
                let dims = vec![
                    conv.out_channels,
                    source.channels() / conv.groups.max(1),
                    conv.kernel.height,
                    conv.kernel.width,
                ];
                (dims, conv.out_channels, conv.bias)
            }
            Operation::Dense(dense) => (vec![dense.out_features, source.count()], dense.out_features, dense.bias),
            Operation::BatchNorm(_) => {
                let channels = [source.channels()];
                return vec![
                    tensor("gamma", &channels, true),
                    tensor("beta", &channels, true),
                    tensor("running_mean", &channels, false),
                    tensor("running_variance", &channels, false),
                ];
            }
            _ => return Vec::new(),
        };
        let mut parameters = vec![Parameter { name: "weight", dims: weight, trainable: true }];
        if bias {
            parameters.push(tensor("bias", &[out], true));
        }
        parameters
    }
}

impl Network {
    /// The parameters and the state of layer `index`; see [`Layer::parameters`].
    pub fn parameters_of(&self, index: usize) -> Vec<Parameter> {
        self.sources(index).next().map(|source| self.layers[index].parameters(source)).unwrap_or_default()
    }

    /// Those of them that training changes by their gradient.
    pub fn trainable_of(&self, index: usize) -> impl Iterator<Item = Parameter> + use<> {
        self.parameters_of(index).into_iter().filter(|parameter| parameter.trainable)
    }

    /// Every parameter tensor with the index of its layer, in the order of the layers.
    pub fn parameters(&self) -> impl Iterator<Item = (usize, Parameter)> + '_ {
        (0..self.layers.len()).flat_map(|index| self.parameters_of(index).into_iter().map(move |p| (index, p)))
    }

    /// Whether the bias of layer `index` changes nothing, because only a batch norm reads the layer: it subtracts every
    /// constant again, and the bias's gradient is zero.
    pub fn has_idle_bias(&self, index: usize) -> bool {
        let has_bias = self.trainable_of(index).any(|parameter| parameter.name == "bias");
        let mut readers = self.layers.iter().filter(|layer| layer.sources.contains(&index));
        let is_norm = |layer: &Layer| matches!(layer.operation, Operation::BatchNorm(_));
        has_bias && readers.next().is_some_and(is_norm) && readers.next().is_none()
    }

    /// The number of scalars in all parameters, running statistics included: what Keras calls "total params".
    pub fn parameter_count(&self) -> usize {
        self.parameters().map(|(_, parameter)| parameter.count()).sum()
    }

    /// The number of scalars that training changes by their gradient: what PyTorch's `model.parameters()` holds.
    pub fn trainable_count(&self) -> usize {
        (0..self.layers.len()).flat_map(|index| self.trainable_of(index)).map(|parameter| parameter.count()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Builder;
    use super::super::layer::{BatchNorm, Conv2d, Dense};
    use super::super::tests::published;
    use super::*;

    #[test]
    fn a_bias_in_front_of_a_batch_norm_is_idle() {
        let network = published("mnist_cnn");
        let idle = (0..network.layers.len()).filter(|&index| network.has_idle_bias(index));
        let names: Vec<&str> = idle.map(|index| network.layers[index].name.as_str()).collect();
        assert_eq!(names, ["block1_conv", "block2_conv", "block3_conv"]);
    }

    #[test]
    fn each_layer_lists_its_tensors_with_their_dims() {
        let mut b = Builder::new("test", Shape::Maps { channels: 6, height: 4, width: 4 }).unwrap();
        b.then("grouped", Conv2d { groups: 2, kernel: [3, 2].into(), ..Conv2d::square(8, 1) }).unwrap();
        b.then("bn", BatchNorm::default()).unwrap();
        b.then("relu", Operation::Relu).unwrap();
        b.then("pool", Operation::GlobalAveragePool).unwrap();
        b.then("fc", Dense { out_features: 5, bias: false }).unwrap();
        let network = b.finish().unwrap();

        let listed: Vec<(usize, &str, Vec<usize>, bool)> =
            network.parameters().map(|(layer, p)| (layer, p.name, p.dims, p.trainable)).collect();
        let expected = [
            (1, "weight", vec![8, 3, 3, 2], true),
            (1, "bias", vec![8], true),
            (2, "gamma", vec![8], true),
            (2, "beta", vec![8], true),
            (2, "running_mean", vec![8], false),
            (2, "running_variance", vec![8], false),
            (5, "weight", vec![5, 8], true),
        ];
        assert_eq!(listed, expected);
        assert_eq!(network.parameter_count(), 144 + 8 + 32 + 40);
        assert_eq!(network.trainable_count(), 144 + 8 + 16 + 40);
    }
}

//! Builds a network layer by layer, with every shape computed and checked as it comes.

use super::Network;
use super::layer::{Layer, Operation, Shape};
use super::shape::MOST_SCALARS;
use crate::error::{Error, Result};

/// A network under construction.
///
/// ```
/// use batchstep_cpu::network::{Builder, Conv2d, Dense, Operation, Shape};
///
/// let mut b = Builder::new("tiny", Shape::Maps { channels: 3, height: 8, width: 8 })?;
/// b.then("conv", Conv2d::square(4, 3))?;
/// b.then("relu", Operation::Relu)?;
/// b.then("pool", Operation::GlobalAveragePool)?;
/// b.then("predictions", Dense { out_features: 10, bias: true })?;
/// let network = b.finish()?;
/// assert_eq!(network.layers[1].output, Shape::Maps { channels: 4, height: 6, width: 6 });
/// # Ok::<(), batchstep_cpu::error::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Builder {
    network: Network,
}

impl Builder {
    /// Begins with the layer `input`.
    ///
    /// # Errors
    /// [`crate::error::Kind::Spec`] where an extent of `input` is 0, or their product exceeds any memory.
    pub fn new(network: impl Into<String>, input: Shape) -> Result<Self> {
        let name = network.into();
        if !(1..=MOST_SCALARS).contains(&input.count()) {
            let what = format!("the input is {input}, which is {} numbers", input.count());
            return Err(Error::spec(what)
                .at(name)
                .hint("every extent must be at least 1, and the whole fit in memory"));
        }
        let first = Layer { name: "input".into(), operation: Operation::Input, sources: Vec::new(), output: input };
        Ok(Self { network: Network { name, layers: vec![first] } })
    }

    /// The index of the newest layer.
    pub fn last(&self) -> usize {
        self.network.layers.len() - 1
    }

    /// The shape that layer `index` gives; panics where there is no such layer.
    pub fn output(&self, index: usize) -> Shape {
        self.network.layers[index].output
    }

    /// The index of the layer of that name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.network.layers.iter().position(|layer| layer.name == name)
    }

    /// Appends a layer that is fed by the newest one, and gives its index.
    ///
    /// # Errors
    /// As [`Builder::add`].
    pub fn then(&mut self, name: impl Into<String>, operation: impl Into<Operation>) -> Result<usize> {
        self.add(name, operation, &[self.last()])
    }

    /// Appends a layer that is fed by the layers `sources`, and gives its index.
    ///
    /// # Errors
    /// [`crate::error::Kind::Spec`], with the network and the layer, where the name is taken, a source does not exist, a
    /// second input is asked for, a shape does not fit ([`Operation::output`]), or a tensor exceeds any memory.
    pub fn add(
        &mut self,
        name: impl Into<String>,
        operation: impl Into<Operation>,
        sources: &[usize],
    ) -> Result<usize> {
        let (name, operation) = (name.into(), operation.into());
        let layer = self.checked(name.clone(), operation, sources);
        self.network.layers.push(layer.map_err(|e| e.at(format!("{}: layer `{name}`", self.network.name)))?);
        Ok(self.last())
    }

    fn checked(&self, name: String, operation: Operation, sources: &[usize]) -> Result<Layer> {
        if self.find(&name).is_some() {
            return Err(Error::spec("another layer has this name").hint("give each layer a name of its own"));
        }
        if operation == Operation::Input {
            return Err(Error::spec("a network has one input, its first layer").hint("take this layer out"));
        }
        let shapes: Option<Vec<Shape>> =
            sources.iter().map(|&source| self.network.layers.get(source).map(|layer| layer.output)).collect();
        let Some(shapes) = shapes else {
            return Err(Error::spec("it is fed by a layer that does not exist yet").hint("put its sources before it"));
        };
        let output = operation.output(&shapes)?;
        let layer = Layer { name, operation, sources: sources.to_vec(), output };
        let parameters = layer.parameters(shapes[0]);
        let largest = parameters.iter().map(|p| p.dims.iter().fold(1, |n: usize, &dim| n.saturating_mul(dim)));
        if largest.chain([output.count()]).any(|count| count > MOST_SCALARS) {
            return Err(Error::spec(format!("its output of {output}, or its weights, exceed any memory"))
                .hint("use fewer channels or features"));
        }
        Ok(layer)
    }

    /// The network; its output is the output of the newest layer.
    ///
    /// # Errors
    /// [`crate::error::Kind::Spec`] where there is no layer after the input, or one whose output nothing uses.
    pub fn finish(self) -> Result<Network> {
        let network = self.network;
        if network.layers.len() == 1 {
            return Err(Error::spec("it has no layers").at(network.name).hint("add at least one layer"));
        }
        let unused = network.readers().iter().position(|&readers| readers == 0);
        if let Some(index) = unused.filter(|&index| index + 1 < network.layers.len()) {
            let place = format!("{}: layer `{}`", network.name, network.layers[index].name);
            return Err(Error::spec("nothing uses its output")
                .at(place)
                .hint("name it in the `from` of a later layer, or take it out"));
        }
        Ok(network)
    }
}

#[cfg(test)]
mod tests {
    use super::super::layer::{Conv2d, Dense};
    use super::*;

    const INPUT: Shape = Shape::Maps { channels: 3, height: 8, width: 8 };

    #[test]
    fn an_error_names_the_network_the_layer_the_shape_and_the_remedy() {
        let mut b = Builder::new("net", INPUT).unwrap();
        let error = b.then("fc", Dense { out_features: 2, bias: true }).unwrap_err();
        let expected = "net: layer `fc`: dense takes a flat vector, and gets maps of 3x8x8\n  \
                        help: put a `flatten` or a `global_average_pool` before it";
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn two_layers_cannot_share_a_name() {
        let mut b = Builder::new("net", INPUT).unwrap();
        b.then("a", Operation::Relu).unwrap();
        assert!(b.then("a", Operation::Relu).unwrap_err().to_string().contains("another layer"));
        assert!(b.then("input", Operation::Relu).is_err());
    }

    #[test]
    fn sources_come_before_the_layer() {
        let mut b = Builder::new("net", INPUT).unwrap();
        assert!(b.add("a", Operation::Relu, &[1]).unwrap_err().to_string().contains("does not exist yet"));
        assert!(b.add("a", Operation::Input, &[]).unwrap_err().to_string().contains("one input"));
    }

    #[test]
    fn a_layer_that_nothing_uses_is_refused() {
        let mut b = Builder::new("net", INPUT).unwrap();
        b.then("dead", Operation::Relu).unwrap();
        b.add("live", Operation::Relu, &[0]).unwrap();
        assert!(b.finish().unwrap_err().to_string().starts_with("net: layer `dead`: nothing uses its output"));
        assert!(Builder::new("net", INPUT).unwrap().finish().unwrap_err().to_string().contains("no layers"));
    }

    #[test]
    fn sizes_beyond_every_memory_are_refused_rather_than_overflow() {
        assert!(Builder::new("net", Shape::Flat(0)).is_err());
        assert!(Builder::new("net", Shape::Maps { channels: usize::MAX, height: 2, width: 2 }).is_err());
        let mut b = Builder::new("net", INPUT).unwrap();
        assert!(b.then("wide", Conv2d::square(usize::MAX, 1)).is_err());
        b.then("flat", Operation::Flatten).unwrap();
        assert!(b.then("heavy", Dense { out_features: 1 << 40, bias: false }).is_err());
    }
}

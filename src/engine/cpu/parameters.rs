//! The parameters of a network as candle variables, with the values of [`Initial`].

use candle_core::{CpuStorage, DType, Device, InplaceOp1, Layout, Result, Tensor, Var, bail};

use super::op::RunningStats;
use super::op::huge_pages::advise;
use super::op::parallel::for_each_piece;
use super::op::scalar::vectorised;
use crate::engine::initial::Initial;
use crate::engine::train::Learnt;
use crate::network::{Network, Parameter};

/// Scalars that one task fills: enough to outweigh the task, few enough to share the work evenly.
const CHUNK: usize = 1 << 15;

/// One trainable tensor.
#[derive(Debug)]
struct NamedVariable {
    name: &'static str,
    var: Var,
}

/// What one layer holds.
#[derive(Debug, Default)]
struct LayerParameters {
    entries: Vec<NamedVariable>,
    stats: Option<RunningStats>,
}

/// Every parameter of a network, found by layer and name.
#[derive(Debug)]
pub struct Parameters {
    layers: Vec<LayerParameters>,
}

impl Parameters {
    /// Allocates the parameters of `network` and gives them the values of `seed`.
    ///
    /// # Errors
    /// candle's, where memory cannot be had or `dtype` is neither f32 nor f64.
    pub fn new(network: &Network, seed: u64, dtype: DType) -> Result<Self> {
        let mut layers: Vec<LayerParameters> = network.layers.iter().map(|_| LayerParameters::default()).collect();
        for (layer, Parameter { name, dims, trainable }) in network.parameters() {
            if trainable {
                let var = Var::zeros(dims, dtype, &Device::Cpu)?;
                layers[layer].entries.push(NamedVariable { name, var });
            }
        }
        let mut parameters = Self { layers };
        parameters.reset(network, seed)?;
        Ok(parameters)
    }

    /// Gives every parameter and running statistic its initial value again, in the same memory.
    ///
    /// # Errors
    /// As [`Parameters::new`].
    pub fn reset(&mut self, network: &Network, seed: u64) -> Result<()> {
        for (index, layer) in self.layers.iter_mut().enumerate() {
            let (trainable, state): (Vec<_>, Vec<_>) =
                network.parameters_of(index).into_iter().partition(|p| p.trainable);
            for (number, (entry, parameter)) in layer.entries.iter().zip(&trainable).enumerate() {
                entry.var.inplace_op1(&Fill(Initial::of(parameter, seed, index, number)))?;
            }
            layer.stats = state.first().map(|parameter| RunningStats::new(parameter.count()));
        }
        Ok(())
    }

    /// Overwrites all parameters and running statistics.
    ///
    /// # Errors
    /// Where their names or sizes differ.
    pub fn take_over(&mut self, learnt: &Learnt) -> Result<()> {
        let vars = self.vars();
        let stats: Vec<&RunningStats> = self.layers.iter().filter_map(|layer| layer.stats.as_ref()).collect();
        if (vars.len(), stats.len()) != (learnt.parameters.len(), learnt.running.len()) {
            bail!(
                "{} parameters and {} running statistics, where the network has {} and {}",
                learnt.parameters.len(),
                learnt.running.len(),
                vars.len(),
                stats.len()
            );
        }
        for (var, values) in vars.iter().zip(&learnt.parameters) {
            var.inplace_op1(&OverwriteTensor(values))?;
        }
        for (stats, running) in stats.into_iter().zip(&learnt.running) {
            stats.set(running)?;
        }
        Ok(())
    }

    /// The parameter `name` of layer `layer`, where it has one.
    pub fn get(&self, layer: usize, name: &str) -> Option<&Tensor> {
        let entry = self.layers[layer].entries.iter().find(|entry| entry.name == name)?;
        Some(entry.var.as_tensor())
    }

    /// The parameter `name` of layer `layer`.
    ///
    /// # Errors
    /// If the layer has no parameter of that name.
    pub fn tensor(&self, layer: usize, name: &str) -> Result<&Tensor> {
        match self.get(layer, name) {
            Some(tensor) => Ok(tensor),
            None => bail!("layer {layer} has no parameter {name}"),
        }
    }

    /// The running statistics of layer `layer`, where it is a batch norm.
    pub fn stats(&self, layer: usize) -> Option<&RunningStats> {
        self.layers[layer].stats.as_ref()
    }

    /// Every trainable tensor, in the order of the layers.
    pub fn vars(&self) -> Vec<Var> {
        self.layers.iter().flat_map(|layer| &layer.entries).map(|entry| entry.var.clone()).collect()
    }

    /// The bytes that the trainable tensors hold.
    pub fn bytes(&self) -> u64 {
        let entries = self.layers.iter().flat_map(|layer| &layer.entries);
        entries.map(|NamedVariable { var, .. }| (var.elem_count() * var.dtype().size_in_bytes()) as u64).sum()
    }
}

/// Overwrites a tensor with these numbers.
struct OverwriteTensor<'a>(&'a [f64]);

impl InplaceOp1 for OverwriteTensor<'_> {
    fn name(&self) -> &'static str {
        "take over"
    }

    fn cpu_fwd(&self, storage: &mut CpuStorage, layout: &Layout) -> Result<()> {
        match (storage, layout.contiguous_offsets()) {
            (CpuStorage::F32(to), Some((start, end))) if end - start == self.0.len() => {
                to[start..end].iter_mut().zip(self.0).for_each(|(to, from)| *to = *from as f32);
            }
            (CpuStorage::F64(to), Some((start, end))) if end - start == self.0.len() => {
                to[start..end].copy_from_slice(self.0);
            }
            _ => bail!("take over: the tensor does not have {} contiguous numbers", self.0.len()),
        }
        Ok(())
    }
}

/// Overwrites a tensor.
struct Fill(Initial);

impl Fill {
    fn fill<T: From<f32> + Copy + Send>(&self, values: &mut [T]) {
        advise(values);
        for_each_piece(values, CHUNK, |number, chunk| match self.0 {
            Initial::Constant(value) => chunk.fill(value.into()),
            initial => vectorised(
                #[inline(always)]
                || {
                    let first = (number * CHUNK) as u64;
                    for (index, value) in (first..).zip(chunk) {
                        *value = initial.value(index).into();
                    }
                },
            ),
        });
    }
}

impl InplaceOp1 for Fill {
    fn name(&self) -> &'static str {
        "fill"
    }

    fn cpu_fwd(&self, storage: &mut CpuStorage, layout: &Layout) -> Result<()> {
        let Some((start, end)) = layout.contiguous_offsets() else { bail!("fill: the tensor is not contiguous") };
        match storage {
            CpuStorage::F32(values) => self.fill(&mut values[start..end]),
            CpuStorage::F64(values) => self.fill(&mut values[start..end]),
            _ => bail!("fill: neither f32 nor f64"),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::cpu::thread_team::Team;
    use crate::network::Shape;

    fn small(dtype: DType) -> (Network, Parameters) {
        let input = Shape::Maps { channels: 3, height: 32, width: 32 };
        let network = Network::by_name("mobilenet", input, 4).unwrap();
        let parameters = Parameters::new(&network, 7, dtype).unwrap();
        (network, parameters)
    }

    fn values(tensor: &Tensor) -> Vec<f64> {
        tensor.to_dtype(DType::F64).unwrap().flatten_all().unwrap().to_vec1().unwrap()
    }

    #[test]
    fn weights_fill_the_interval_of_glorot_and_biases_are_zero() {
        let (network, parameters) = small(DType::F32);
        let layer = network.layers.iter().position(|layer| layer.name == "conv_pw_13").unwrap();
        let weight = values(parameters.get(layer, "weight").unwrap());
        // 1024 channels in and out, kernel 1: sqrt(6 / 2048) = 0.054127; the variance of the law is limit^2 / 3.
        let limit = 0.054127;
        let extreme = weight.iter().fold(0.0f64, |extreme, w| extreme.max(w.abs()));
        assert!(extreme < limit && extreme > 0.9999 * limit, "{extreme}");
        let variance = weight.iter().map(|w| w * w).sum::<f64>() / weight.len() as f64;
        assert!((variance / (limit * limit / 3.0) - 1.0).abs() < 0.01, "{variance}");
        let last = network.layers.len() - 1;
        assert!(values(parameters.get(last, "bias").unwrap()).iter().all(|&b| b == 0.0));
        assert!(values(parameters.get(2, "gamma").unwrap()).iter().all(|&g| g == 1.0));
    }

    #[test]
    fn both_element_types_start_from_the_same_numbers() {
        let (_, single) = small(DType::F32);
        let (_, double) = small(DType::F64);
        for (a, b) in single.vars().iter().zip(double.vars()) {
            assert_eq!(values(a), values(&b));
        }
    }

    #[test]
    fn a_reset_brings_the_initial_values_back_in_the_same_memory() {
        let (network, mut parameters) = small(DType::F32);
        let vars = parameters.vars();
        let before: Vec<_> = vars.iter().map(|var| values(var)).collect();
        for var in &vars {
            var.inplace_op1(&Fill(Initial::Constant(9.0))).unwrap();
        }
        parameters.reset(&network, 7).unwrap();
        let after = parameters.vars();
        assert!(vars.iter().zip(&after).all(|(a, b)| a.id() == b.id()));
        assert!(after.iter().zip(&before).all(|(var, old)| values(var) == *old));
    }

    #[test]
    fn the_number_of_threads_does_not_change_the_values() {
        let (network, parameters) = small(DType::F32);
        let team = Team::new(3).unwrap();
        let single = team.install(|| Parameters::new(&network, 7, DType::F32)).unwrap();
        assert!(single.vars().iter().zip(parameters.vars()).all(|(a, b)| values(a) == values(&b)));
    }
}

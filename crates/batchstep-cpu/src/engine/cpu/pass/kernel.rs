//! The computation of a layer at one batch size, on slices.

use std::ops::DerefMut;

use crate::engine::Workload;
use crate::engine::cpu::algorithm_choice::WinogradThreshold;
use crate::engine::cpu::blocking::{Blocking, Factors};
use crate::engine::cpu::op::batch_norm::{Moments, Norm, Planes};
use crate::engine::cpu::op::conv2d::{Convolution, Gradients};
use crate::engine::cpu::op::dense::{Sizes, is_narrow};
use crate::engine::cpu::op::filters::Filters;
use crate::engine::cpu::op::max_pool2d::Windows;
use crate::engine::cpu::op::scalar::Scalar;
use crate::engine::cpu::op::{activation, batch_norm, dense, dropout, global_average_pool, max_pool2d};
use crate::engine::dropout::Masks;
use crate::error::Result;
use crate::network::{BatchNorm, Direction, Network, Operation};
use crate::settings::{Precision, Settings, Winograd};

/// How the operators compute, as far as the settings decide it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choices {
    pub winograd: Winograd,
    pub blocking: Blocking,
    pub threshold: WinogradThreshold,
}

impl From<&Settings> for Choices {
    fn from(settings: &Settings) -> Self {
        Self { winograd: settings.winograd, blocking: settings.into(), threshold: WinogradThreshold::default() }
    }
}

/// A layer's operation with all of its sizes.
#[derive(Clone, Copy, Debug)]
pub enum Kernel {
    /// The batch itself, or the same numbers in another shape.
    View,
    Convolution(Convolution),
    Normalisation(Planes, BatchNorm),
    Rectifier,
    MaxPool(Windows),
    /// The mean over this number of pixels.
    Average(usize),
    Dense(Sizes),
    /// The masks of a layer drop a share of the numbers.
    Dropout(usize, f64),
    Sum,
}

/// The gradients that a layer's backward pass reads and writes.
pub struct LayerSlopes<'a, T, P> {
    /// The gradient of its output; afterwards the gradient of its source, where that is computed in place.
    pub dy: &'a mut [T],
    /// The gradient of its source, where that is wanted and not computed in place.
    pub dx: Option<&'a mut [T]>,
    /// The gradients of its parameters that are wanted.
    pub parameters: &'a mut [P],
}

/// The algorithm of this engine for a convolution or a dense layer at a batch size, by its name in `layers.parquet`;
/// `None` for other layers.
pub fn chosen_kernel(network: &Network, layer: usize, batch: usize, settings: &Settings) -> Option<&'static str> {
    match Kernel::new(network, layer, batch, settings.into()).ok()? {
        Kernel::Convolution(convolution) => Some(convolution.algorithm()),
        Kernel::Dense(sizes) if is_narrow(sizes) => Some("product by blocks of examples"),
        Kernel::Dense(_) => Some("one product"),
        _ => None,
    }
}

/// Whether a machine's [`WinogradThreshold`] can change how a step is computed.
pub fn depends_on_threshold(workload: &Workload) -> bool {
    let Workload { network, batch_size, settings } = workload;
    let kernel = |index: usize, least: f64| {
        let choices = Choices { threshold: WinogradThreshold([least; 2]), ..settings.into() };
        Kernel::new(network, index, *batch_size, choices).ok().map(|kernel| kernel.algorithm())
    };
    (1..network.layers.len()).any(|index| kernel(index, 0.0) != kernel(index, f64::INFINITY))
}

/// [`Convolution::examples_of_the_busiest`] of a layer; `None` for other layers.
pub fn examples_of_the_busiest(
    network: &Network,
    layer: usize,
    batch: usize,
    settings: &Settings,
    (direction, threads): (Direction, usize),
) -> Option<f64> {
    match Kernel::new(network, layer, batch, settings.into()).ok()? {
        Kernel::Convolution(convolution) => convolution.examples_of_the_busiest(direction, threads),
        _ => None,
    }
}

impl Kernel {
    /// The algorithm of a layer as `layers.parquet` names it: the convolution's own, a matrix product (`gemm`), or a plain
    /// loop (`direct`).
    pub fn algorithm(&self) -> &'static str {
        match self {
            Self::Convolution(convolution) => convolution.algorithm(),
            Self::Dense(_) => "gemm",
            _ => "direct",
        }
    }

    /// The arithmetic of a layer's products.
    pub fn precision(&self) -> Precision {
        let factors = match self {
            Self::Convolution(convolution) => convolution.factors(),
            Self::Dense(sizes) => sizes.factors(),
            _ => Factors::Exact,
        };
        match factors {
            Factors::Exact => Precision::Fp32,
            Factors::Bf16 => Precision::Bf16,
        }
    }

    /// The kernel of layer `index` for batches of `batch` examples.
    ///
    /// # Errors
    /// [`crate::error::Kind::Engine`] where an operator refuses the sizes.
    pub fn new(network: &Network, index: usize, batch: usize, choices: Choices) -> Result<Self> {
        let layer = &network.layers[index];
        // The input has no source, and does nothing with it.
        let source = network.sources(index).next().unwrap_or(layer.output);
        Ok(match layer.operation {
            Operation::Input | Operation::Flatten => Self::View,
            Operation::Conv2d(conv) => {
                let convolution = Convolution::new(batch, source, &conv, choices.winograd, choices.threshold)?;
                Self::Convolution(convolution.cut(choices.blocking))
            }
            Operation::BatchNorm(norm) => {
                let planes = Planes { batch, channels: source.channels(), size: source.extent().area() };
                Self::Normalisation(planes, norm)
            }
            Operation::Relu | Operation::Relu6 => Self::Rectifier,
            Operation::MaxPool2d(pool) => Self::MaxPool(Windows::new(source.extent(), &pool)?),
            Operation::GlobalAveragePool => Self::Average(source.extent().area()),
            Operation::Dense(dense) => {
                let (features, outputs) = (source.count(), dense.out_features);
                Self::Dense(Sizes { batch, features, outputs, blocking: choices.blocking })
            }
            Operation::Dropout { rate } if rate > 0.0 => Self::Dropout(index, rate),
            Operation::Dropout { .. } => Self::View,
            Operation::Add => Self::Sum,
        })
    }

    /// Writes the output `y` of a layer with one source, `x`, and what its backward pass needs besides: the moments of a
    /// batch norm, the winners of a max-pooling. Without masks nothing is dropped.
    pub fn forward<T: Scalar>(
        &self,
        x: &[T],
        filters: Filters<'_, T>,
        masks: Option<Masks>,
        y: &mut [T],
        (moments, winners): (&mut [Moments], &mut [u32]),
    ) {
        match *self {
            Self::View | Self::Sum => y.copy_from_slice(x),
            Self::Convolution(convolution) => convolution.forward(x, filters, y),
            Self::Dense(sizes) => dense::forward(sizes, x, filters, y),
            Self::Normalisation(planes, p) => batch_norm::forward(planes, x, Norm::new(filters, p), y, moments),
            Self::Rectifier => activation::forward(filters.rectifier, x, y),
            Self::MaxPool(windows) => max_pool2d::forward(&windows, x, y, winners),
            Self::Average(pixels) => global_average_pool::forward(x, pixels, y),
            Self::Dropout(layer, rate) => {
                y.copy_from_slice(x);
                masks.into_iter().for_each(|masks| dropout::apply(masks.of(layer, rate), y));
            }
        }
    }

    /// The wanted gradients of a layer with source `x` and output `y`, and with what its forward pass kept.
    pub fn backward<T: Scalar, P: DerefMut<Target = [T]>>(
        &self,
        (x, y): (&[T], &[T]),
        filters: Filters<'_, T>,
        masks: Option<Masks>,
        LayerSlopes { dy, dx, parameters }: LayerSlopes<'_, T, P>,
        (moments, winners): (&[Moments], &[u32]),
    ) {
        match (*self, dx, parameters) {
            (Self::Convolution(convolution), dx, parameters) => {
                let mut parameters = parameters.iter_mut();
                let into = Gradients { x: dx, weight: parameters.next().map(|dw| &mut **dw) };
                parameters.for_each(|db| convolution.bias_gradient(dy, db));
                convolution.backward(x, filters.weight, dy, into);
            }
            (Self::Dense(sizes), dx, parameters) => {
                if let [dw, db @ ..] = parameters {
                    db.iter_mut().for_each(|db| dense::bias_gradient(sizes, dy, db));
                    dense::weight_gradient(sizes, x, dy, dw);
                }
                dx.into_iter().for_each(|dx| dense::input_gradient(sizes, filters.weight, dy, dx));
            }
            (Self::Normalisation(planes, p), _, [dgamma, dbeta]) => {
                batch_norm::backward(planes, x, Norm::new(filters, p), moments, dy, [dgamma, dbeta]);
            }
            (Self::Rectifier, ..) => activation::backward(filters.rectifier, y, dy),
            (Self::MaxPool(windows), Some(dx), _) => max_pool2d::backward(&windows, dy, winners, dx),
            (Self::Average(pixels), Some(dx), _) => global_average_pool::backward(dy, pixels, dx),
            (Self::Dropout(layer, rate), ..) => {
                masks.into_iter().for_each(|masks| dropout::apply(masks.of(layer, rate), dy));
            }
            _ => {}
        }
    }
}

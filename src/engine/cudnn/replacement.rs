//! Calls of cuDNN that replace those of our own kernels that fail on the present GPU.
//!
//! | operator | computed by |
//! |---|---|
//! | `batch_norm` | `cudnnBatchNormalizationForwardTraining` and `...Backward`; the sum and the rectifier after it by kernels of their own |
//! | `depthwise_conv2d` | a convolution with a group for each channel, as any other convolution |
//! | `global_average_pool` | `cudnnPoolingForward` and `...Backward` with a window of the whole map |
//! | `max_pool2d` | the same with the maximum; bias and rectifier before it by kernels of their own |
//!
//! The other operators cannot be replaced ([`ALONE`] says why). A replacement is not trusted either: before a step is
//! timed, it is compared with the reference (`crate::qualification`).

use crate::engine::cudnn::call::Slice;
use crate::engine::cudnn::element::Element;
use crate::engine::cudnn::feature_maps::FeatureMaps;
use crate::network::Extent;

/// Operators by their folders' names in [`super::op`].
pub const BATCH_NORM: &str = "batch_norm";
pub const DEPTHWISE: &str = "depthwise_conv2d";
pub const AVERAGE: &str = "global_average_pool";
pub const MAX_POOL: &str = "max_pool2d";

/// The operators that calls of cuDNN can compute.
pub const REPLACEABLE: [&str; 4] = [BATCH_NORM, DEPTHWISE, AVERAGE, MAX_POOL];

/// Why no call of cuDNN or cuBLASLt can replace an operator.
pub const ALONE: [(&str, &str); 6] = [
    ("advance", "the step's own numbers: the count of steps, the loss and its scale"),
    ("bias", "biases and their gradients are float32 beside maps of 16 bits, which cuDNN's older calls do not mix"),
    ("elementwise", "dropout's mask is defined by batchstep's own generator"),
    ("initial", "parameters and batches are defined by batchstep's own generator"),
    ("loss", "cuDNN has a softmax, and no loss of it, nor a gradient with a scale"),
    ("optimizer", "no library has a call for an update"),
];

/// An operator whose own kernels are not used, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replacement {
    pub operator: &'static str,
    /// What was wrong with its kernels, as a clause.
    pub why: String,
}

/// The operators that calls of cuDNN compute in a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replaced(pub Vec<Replacement>);

impl Replaced {
    /// Whether that operator is among them.
    pub fn has(&self, operator: &str) -> bool {
        self.0.iter().any(|replacement| replacement.operator == operator)
    }

    /// `batch_norm: an update is off by ...`, for the operator's rows in `layers.parquet`.
    pub fn text(&self, operator: &str) -> Option<String> {
        let found = self.0.iter().find(|replacement| replacement.operator == operator)?;
        Some(format!("{operator}: {}", found.why))
    }
}

/// One such call, as data; a convolution with groups is a [`super::call::Convolution`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LibraryCall {
    Pool(Pool, PoolTask),
    Norm(Norm, NormTask),
}

/// The value that a pooling takes from each window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    Maximum,
    Mean,
}

/// The sizes of a pooling. Padding is the same on both sides, and never chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pool {
    pub element: Element,
    pub taken: Taken,
    pub input: FeatureMaps,
    /// The output, of the same batch, channels and layout.
    pub output: FeatureMaps,
    pub window: Extent,
    pub stride: Extent,
    pub padding: Extent,
}

/// Its operands, all of the element type: `Slice`s of a plan, or addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolTask<A = Slice> {
    Forward { x: A, y: A },
    Backward { x: A, y: A, dy: A, dx: A },
}

/// A batch norm in training mode: with the batch's biased variance, and the unbiased one in the running variance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Norm {
    /// The type of x, y and their gradients.
    pub element: Element,
    pub maps: FeatureMaps,
    pub epsilon: f32,
    /// As in Keras: `running = momentum * running + (1 - momentum) * batch`.
    pub momentum: f32,
}

/// Its operands; those with one number for each channel are float32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NormTask<A = Slice> {
    Forward {
        x: A,
        gamma: A,
        beta: A,
        running_mean: A,
        running_variance: A,
        mean: A,
        /// `1 / sqrt(variance + epsilon)`.
        inverse_deviation: A,
        y: A,
    },
    Backward {
        x: A,
        dy: A,
        gamma: A,
        mean: A,
        inverse_deviation: A,
        dgamma: A,
        dbeta: A,
        dx: A,
    },
}

impl<A: Copy> PoolTask<A> {
    /// The same on other operands.
    ///
    /// # Errors
    /// The first that `place` fails with.
    pub fn map<B, E>(self, mut place: impl FnMut(A) -> Result<B, E>) -> Result<PoolTask<B>, E> {
        Ok(match self {
            Self::Forward { x, y } => PoolTask::Forward { x: place(x)?, y: place(y)? },
            Self::Backward { x, y, dy, dx } => {
                PoolTask::Backward { x: place(x)?, y: place(y)?, dy: place(dy)?, dx: place(dx)? }
            }
        })
    }
}

impl<A: Copy> NormTask<A> {
    /// The same on other operands.
    ///
    /// # Errors
    /// The first that `place` fails with.
    pub fn map<B, E>(self, mut place: impl FnMut(A) -> Result<B, E>) -> Result<NormTask<B>, E> {
        Ok(match self {
            Self::Forward { x, gamma, beta, running_mean, running_variance, mean, inverse_deviation, y } => {
                NormTask::Forward {
                    x: place(x)?,
                    gamma: place(gamma)?,
                    beta: place(beta)?,
                    running_mean: place(running_mean)?,
                    running_variance: place(running_variance)?,
                    mean: place(mean)?,
                    inverse_deviation: place(inverse_deviation)?,
                    y: place(y)?,
                }
            }
            Self::Backward { x, dy, gamma, mean, inverse_deviation, dgamma, dbeta, dx } => NormTask::Backward {
                x: place(x)?,
                dy: place(dy)?,
                gamma: place(gamma)?,
                mean: place(mean)?,
                inverse_deviation: place(inverse_deviation)?,
                dgamma: place(dgamma)?,
                dbeta: place(dbeta)?,
                dx: place(dx)?,
            },
        })
    }
}

impl LibraryCall {
    /// The operator whose kernels it replaces.
    pub fn operator(&self) -> &'static str {
        match self {
            Self::Pool(Pool { taken: Taken::Maximum, .. }, _) => MAX_POOL,
            Self::Pool(Pool { taken: Taken::Mean, .. }, _) => AVERAGE,
            Self::Norm(..) => BATCH_NORM,
        }
    }

    /// The function that is called.
    pub fn function(&self) -> &'static str {
        match self {
            Self::Pool(_, PoolTask::Forward { .. }) => "cudnnPoolingForward",
            Self::Pool(_, PoolTask::Backward { .. }) => "cudnnPoolingBackward",
            Self::Norm(_, NormTask::Forward { .. }) => "cudnnBatchNormalizationForwardTraining",
            Self::Norm(_, NormTask::Backward { .. }) => "cudnnBatchNormalizationBackward",
        }
    }

    /// What it reads.
    pub fn reads(&self) -> Vec<Slice> {
        match *self {
            Self::Pool(_, PoolTask::Forward { x, .. }) => vec![x],
            Self::Pool(_, PoolTask::Backward { x, y, dy, .. }) => vec![x, y, dy],
            Self::Norm(_, NormTask::Forward { x, gamma, beta, running_mean, running_variance, .. }) => {
                vec![x, gamma, beta, running_mean, running_variance]
            }
            Self::Norm(_, NormTask::Backward { x, dy, gamma, mean, inverse_deviation, .. }) => {
                vec![x, dy, gamma, mean, inverse_deviation]
            }
        }
    }

    /// What it writes.
    pub fn writes(&self) -> Vec<Slice> {
        match *self {
            Self::Pool(_, PoolTask::Forward { y, .. }) => vec![y],
            Self::Pool(_, PoolTask::Backward { dx, .. }) => vec![dx],
            Self::Norm(_, NormTask::Forward { running_mean, running_variance, mean, inverse_deviation, y, .. }) => {
                vec![running_mean, running_variance, mean, inverse_deviation, y]
            }
            Self::Norm(_, NormTask::Backward { dgamma, dbeta, dx, .. }) => vec![dgamma, dbeta, dx],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::cudnn::source::OPERATORS;

    #[test]
    fn every_operator_says_whether_it_can_be_replaced() {
        let mut named: Vec<&str> = REPLACEABLE.into_iter().chain(ALONE.map(|(operator, _)| operator)).collect();
        named.sort_unstable();
        let mut known: Vec<&str> = OPERATORS.iter().map(|operator| operator.name).collect();
        known.sort_unstable();
        assert_eq!(named, known);
    }
}

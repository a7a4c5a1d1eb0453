//! The initial values of parameters, the same for every engine.

use super::Parameter;
use crate::random::{Purpose, Stream};

/// The law of one parameter tensor's initial values: weights are Glorot's, biases and `beta` 0, `gamma` 1. The value at an
/// index is a hash of seed, layer, parameter and index (see [`crate::random`]), so it does not depend on the batch size, the
/// element type or the number of threads.
#[derive(Clone, Copy, Debug)]
pub enum Initial {
    Constant(f32),
    /// Uniform on [-limit, limit).
    Uniform {
        stream: Stream,
        limit: f32,
    },
}

impl Initial {
    /// The law of trainable parameter `number` of layer `layer`.
    pub fn of(parameter: &Parameter, seed: u64, layer: usize, number: usize) -> Self {
        match parameter.name {
            "weight" => Self::Uniform {
                stream: Stream::new(seed, Purpose::Parameters, [layer as u64, number as u64]),
                limit: glorot_limit(&parameter.dims),
            },
            "gamma" => Self::Constant(1.0),
            _ => Self::Constant(0.0),
        }
    }

    /// The value at an index.
    #[inline(always)]
    pub fn value(&self, index: u64) -> f32 {
        match *self {
            Self::Constant(value) => value,
            Self::Uniform { stream, limit } => (2.0 * stream.uniform(index) - 1.0) * limit,
        }
    }
}

/// The limit of Glorot's uniform law, sqrt(6 / (fan in + fan out)), for weights of out x in (x height x width): Glorot and
/// Bengio, "Understanding the difficulty of training deep feedforward neural networks", AISTATS 2010; Keras' default. A
/// depthwise weight, C x 1 x h x w, gets the limit that Keras gives to its own h x w x C x 1: the two fans change places.
///
/// ```
/// // 1024 channels in and out, a window of one: sqrt(6 / 2048).
/// assert!((batchstep_cpu::network::initial::glorot_limit(&[1024, 1024, 1, 1]) - 0.054127).abs() < 1e-6);
/// ```
pub fn glorot_limit(dims: &[usize]) -> f32 {
    let fans = dims.iter().take(2).sum::<usize>();
    let window: usize = dims.iter().skip(2).product();
    (6.0 / (window * fans) as f64).sqrt() as f32
}

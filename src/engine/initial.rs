//! The law of a weight's initial values.

/// The limit of Glorot's uniform law, sqrt(6 / (fan in + fan out)), for weights of out x in (x height x width): Glorot and
/// Bengio, "Understanding the difficulty of training deep feedforward neural networks", AISTATS 2010; Keras' default. A
/// depthwise weight, C x 1 x h x w, gets the limit that Keras gives to its own h x w x C x 1: the two fans change places.
///
/// ```
/// // 1024 channels in and out, a window of one: sqrt(6 / 2048).
/// assert!((batchstep::engine::initial::glorot_limit(&[1024, 1024, 1, 1]) - 0.054127).abs() < 1e-6);
/// ```
pub fn glorot_limit(dims: &[usize]) -> f32 {
    let fans = dims.iter().take(2).sum::<usize>();
    let window: usize = dims.iter().skip(2).product();
    (6.0 / (window * fans) as f64).sqrt() as f32
}

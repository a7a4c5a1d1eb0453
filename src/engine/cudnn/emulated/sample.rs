//! Numbers for tests, and the tolerance of their results.

use super::numbers::rounded;
use crate::engine::cpu::op::activation::Rectifier;
use crate::engine::cudnn::element::Element;
use crate::random::{Purpose, Stream};

pub const RECTIFIERS: [Rectifier; 3] = [Rectifier::Identity, Rectifier::Relu, Rectifier::Relu6];

/// `count` values of the element type, uniform on [-1, 1), different for each `seed`.
pub fn sample(element: Element, seed: u64, count: usize) -> Vec<f32> {
    let stream = Stream::new(seed, Purpose::Noise, [0, 0]);
    (0..count as u64).map(|index| rounded(element, 2.0 * stream.uniform(index) - 1.0)).collect()
}

/// The largest relative error that one rounding to the element type makes: 2^-24, 2^-11, 2^-8.
pub fn rounding(element: Element) -> f64 {
    match element {
        Element::F32 => 0.5f64.powi(24),
        Element::F16 => 0.5f64.powi(11),
        Element::Bf16 => 0.5f64.powi(8),
    }
}

/// Compares with the truth.
///
/// # Panics
/// Where a value is off by more than `tolerance` times the largest true one.
#[track_caller]
pub fn assert_close(got: &[f32], truth: &[f64], tolerance: f64, what: &str) {
    let scale = truth.iter().fold(0.0f64, |scale, value| scale.max(value.abs()));
    assert_each(got, truth, |_| tolerance * scale, what);
}

/// Compares with the truth.
///
/// # Panics
/// Where a value is off by more than `most` gives for the size of its own true value.
#[track_caller]
pub fn assert_each(got: &[f32], truth: &[f64], most: impl Fn(f64) -> f64, what: &str) {
    assert_eq!(got.len(), truth.len(), "{what}: lengths differ");
    for (i, (got, truth)) in got.iter().zip(truth).enumerate() {
        let (error, most) = ((f64::from(*got) - truth).abs(), most(truth.abs()));
        assert!(error <= most, "{what}: element {i} is {got}, not {truth}, and may be off by {most}");
    }
}

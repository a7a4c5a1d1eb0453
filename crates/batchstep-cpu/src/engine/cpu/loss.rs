//! The losses of a batch, means over its examples, and their gradients.

use super::op::parallel::{GRAIN, for_each_piece, part, piece};
use super::op::scalar::{Scalar, largest, set_each, sum, sum_of_pairs, vectorised};
use super::op::scratch::List;
use crate::settings::Loss;

/// The loss of `batch` examples: `output` and `targets` have one length. The parts that are summed do not depend on the
/// number of threads.
pub fn loss<T: Scalar>(loss: Loss, output: &[T], targets: &[T], batch: usize) -> T {
    let classes = output.len() / batch;
    // The values of each sum, the number by which all are divided, and how many sums a task has: an exponential costs
    // about as much as moving four scalars.
    let (len, count, together) = match loss {
        Loss::CategoricalCrossEntropy => (classes, batch, piece(batch, 4 * classes)),
        Loss::MeanSquaredError | Loss::BinaryCrossEntropy => (GRAIN, output.len(), 1),
    };
    let mut sums = List::repeat(0.0, output.len().div_ceil(len));
    for_each_piece(&mut sums, together, |number, sums| {
        for (place, sum) in (number * together..).zip(sums) {
            let (x, t) = (part(output, place, len), part(targets, place, len));
            *sum = match loss {
                Loss::CategoricalCrossEntropy => vectorised(
                    #[inline(always)]
                    || cross_entropy(x, t),
                ),
                Loss::MeanSquaredError => vectorised(
                    #[inline(always)]
                    || sum_of_pairs(x, t, |x, t| (x - t) * (x - t)).to_f64(),
                ),
                Loss::BinaryCrossEntropy => x.iter().zip(t).map(|(x, t)| binary_cross_entropy(*x, *t)).sum(),
            };
        }
    });
    T::from_f64(sums.iter().sum::<f64>() / count as f64)
}

/// Its gradient, as long as `output`.
pub fn loss_gradient<T: Scalar>(loss: Loss, output: &[T], targets: &[T], batch: usize, dx: &mut [T]) {
    let count = output.len() as f64;
    match loss {
        Loss::CategoricalCrossEntropy => {
            let (classes, scale) = (output.len() / batch, T::ONE / T::from_f64(batch as f64));
            let len = piece(batch, 4 * classes) * classes;
            for_each_piece(dx, len, |number, dx| {
                let [logits, targets] = [output, targets].map(|values| part(values, number, len).chunks(classes));
                for (dx, (logits, targets)) in dx.chunks_mut(classes).zip(logits.zip(targets)) {
                    vectorised(
                        #[inline(always)]
                        || cross_entropy_gradient(dx, logits, targets, scale),
                    );
                }
            });
        }
        Loss::MeanSquaredError => {
            let scale = T::from_f64(2.0 / count);
            set_each(dx, 1, [output, targets], |_, x, t| scale * (x - t));
        }
        // `(s(x) - t) / n` with the logistic function s.
        Loss::BinaryCrossEntropy => {
            let scale = T::from_f64(1.0 / count);
            set_each(dx, 16, [output, targets], |_, x, t| {
                let e = decay(x);
                let above = if x < T::ZERO { e } else { T::ONE };
                scale * (above / (T::ONE + e) - t)
            });
        }
    }
}

/// `-sum over classes of target * ln(softmax(logits))` of an example, as `torch.nn.functional.cross_entropy` with
/// probabilities for targets, which need not sum to 1; by a log-sum-exp that neither overflows nor loses small terms. A
/// class whose target is 0 does not count, even when its probability is 0 (0 * infinity).
#[inline(always)]
fn cross_entropy<T: Scalar>(logits: &[T], targets: &[T]) -> f64 {
    let largest = largest(logits);
    let log_sum = sum_of_pairs(logits, logits, |x, _| (x - largest).exp()).ln();
    let wanted = logits.iter().zip(targets).filter(|(_, t)| **t != T::ZERO);
    wanted.map(|(x, t)| (*t * (log_sum - (*x - largest))).to_f64()).sum()
}

/// `dx = (softmax(logits) * sum(targets) - targets) * scale`.
#[inline(always)]
fn cross_entropy_gradient<T: Scalar>(dx: &mut [T], logits: &[T], targets: &[T], scale: T) {
    let largest = largest(logits);
    dx.iter_mut().zip(logits).for_each(|(dx, x)| *dx = (*x - largest).exp());
    let share = sum(targets) / sum(dx);
    dx.iter_mut().zip(targets).for_each(|(dx, t)| *dx = (*dx * share - *t) * scale);
}

/// `max(x, 0) - x t + ln(1 + exp(-|x|))`, which is `-t ln s(x) - (1 - t) ln(1 - s(x))` of the logistic function s, as
/// `torch.nn.functional.binary_cross_entropy_with_logits`.
fn binary_cross_entropy<T: Scalar>(x: T, t: T) -> f64 {
    let positive = if x > T::ZERO { x } else { T::ZERO };
    (positive - x * t).to_f64() + decay(x).to_f64().ln_1p()
}

/// `exp(-|x|)`, which never overflows.
fn decay<T: Scalar>(x: T) -> T {
    if x < T::ZERO { x.exp() } else { (-x).exp() }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::engine::cpu::op::cases::{assert_values_close, central_differences, expected, reals};
    use crate::engine::cpu::op::scalar::doubles;
    use crate::random::Rng;
    use Loss::{BinaryCrossEntropy, CategoricalCrossEntropy, MeanSquaredError};

    /// The cases of `tests/fixtures/operators.safetensors`.
    pub(crate) const CASES: [(&str, Loss); 3] = [
        ("cross_entropy", CategoricalCrossEntropy),
        ("cross_entropy_large", CategoricalCrossEntropy),
        ("squared_error", MeanSquaredError),
    ];

    /// Logits and targets of 2 x 3, and what PyTorch 2.15 makes of them in float64:
    /// `loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, targets); loss.backward()`
    pub(crate) const LOGITS: [f64; 6] = [0.5, -1.25, 3.0, -40.0, 0.0, 900.0];
    pub(crate) const TARGETS: [f64; 6] = [1.0, 0.25, 0.0, 0.0, 0.5, 1.0];
    pub(crate) const LOSS: f64 = 0.7967067662765278;
    pub(crate) const GRADIENT: [f64; 6] =
        [-0.0629234447996909, -0.0045499768624485265, 0.15876235447040557, 7.080590425485981e-19, 0.0, 0.0];

    /// Compares value and gradient for `batch` examples.
    fn compare<T: Scalar>(
        kind: Loss,
        operands: [&[f64]; 2],
        batch: usize,
        (value, slopes): (f64, &[f64]),
        tolerance: f64,
    ) {
        let [output, targets] =
            operands.map(|values| values.iter().map(|value| T::from_f64(*value)).collect::<Vec<T>>());
        let mut gradient = vec![T::ZERO; output.len()];
        loss_gradient(kind, &output, &targets, batch, &mut gradient);
        assert_values_close(&[loss(kind, &output, &targets, batch).to_f64()], &[value], tolerance, kind.name());
        assert_values_close(&doubles(&gradient), slopes, tolerance, kind.name());
    }

    #[test]
    fn values_and_gradients_agree_with_pytorch() {
        for (case, kind) in CASES {
            let [output, targets, value, gradient] =
                ["input", "target", "y", "dinput"].map(|name| expected(case, name));
            let (operands, batch) = ([&output.values[..], &targets.values], output.dims[0]);
            compare::<f64>(kind, operands, batch, (value.values[0], &gradient.values), 1e-10);
            compare::<f32>(kind, operands, batch, (value.values[0], &gradient.values), 1e-4);
        }
        compare::<f64>(BinaryCrossEntropy, [&LOGITS, &TARGETS], 2, (LOSS, &GRADIENT), 1e-15);
        compare::<f32>(BinaryCrossEntropy, [&LOGITS, &TARGETS], 2, (LOSS, &GRADIENT), 1e-7);
    }

    #[test]
    fn gradients_match_finite_differences() {
        for kind in [CategoricalCrossEntropy, MeanSquaredError, BinaryCrossEntropy] {
            let mut random = Rng::new(1);
            let (output, targets) = (reals(&mut random, 120), reals(&mut random, 120));
            let mut gradient = vec![0.0; output.len()];
            loss_gradient(kind, &output, &targets, 4, &mut gradient);
            let differences = central_differences(&output, |output| loss(kind, output, &targets, 4));
            assert_values_close(&gradient, &differences, 1e-8, kind.name());
        }
    }

    /// Equal logits cost the logarithm of the number of classes; an impossible class that is not wanted costs nothing;
    /// many elements are summed without loss.
    #[test]
    fn simple_losses_are_exact() {
        let mut targets = [0.0; 20];
        (targets[3], targets[14]) = (1.0, 1.0);
        let value: f64 = loss(CategoricalCrossEntropy, &[0.0; 20], &targets, 2);
        assert!((value - 10f64.ln()).abs() < 1e-14);
        assert_eq!(loss(CategoricalCrossEntropy, &[0.0f32, f32::NEG_INFINITY], &[1.0, 0.0], 1), 0.0);
        assert_eq!(loss(MeanSquaredError, &vec![4f32; 100_100], &vec![1.0; 100_100], 100), 9.0);
    }
}

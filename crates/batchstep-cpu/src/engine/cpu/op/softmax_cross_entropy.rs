//! The mean over the batch of `-sum over classes of target * ln(softmax(logits))`, a scalar, as
//! `torch.nn.functional.cross_entropy` with probabilities for targets. Both are N x K; targets need not sum to 1. It is computed
//! row by row, by a log-sum-exp that neither overflows nor loses small terms.

use crate::engine::cpu::op::parallel::{for_each_piece, part, piece};
use crate::engine::cpu::op::scalar::{Scalar, largest, sum, sum_of_pairs, vectorised};
use crate::engine::cpu::op::scratch::List;

/// The largest logit of a row, and `ln(sum(exp(logit - largest)))`.
#[inline(always)]
fn log_sum_exp<T: Scalar>(logits: &[T]) -> (T, T) {
    let largest = largest(logits);
    (largest, sum_of_pairs(logits, logits, |x, _| (x - largest).exp()).ln())
}

/// The cross-entropy of a row. A class whose target is 0 does not count, even when its probability is 0 (0 * infinity).
#[inline(always)]
fn loss<T: Scalar>(logits: &[T], targets: &[T]) -> f64 {
    let (largest, log_sum) = log_sum_exp(logits);
    let wanted = logits.iter().zip(targets).filter(|(_, t)| **t != T::ZERO);
    wanted.map(|(x, t)| (*t * (log_sum - (*x - largest))).to_f64()).sum()
}

#[inline(always)]
fn gradient<T: Scalar>(dx: &mut [T], logits: &[T], targets: &[T], scale: T) {
    let largest = largest(logits);
    dx.iter_mut().zip(logits).for_each(|(dx, x)| *dx = (*x - largest).exp());
    let share = sum(targets) / sum(dx);
    dx.iter_mut().zip(targets).for_each(|(dx, t)| *dx = (*dx * share - *t) * scale);
}

/// Rows for one task: an exponential costs about as much as moving four scalars.
fn rows_per_task(elements: usize, classes: usize) -> usize {
    piece(elements / classes, 4 * classes)
}

/// The mean over the rows of `-sum(target * log_softmax(logits))`.
pub fn forward<T: Scalar>(logits: &[T], targets: &[T], classes: usize) -> T {
    let mut losses = List::repeat(0.0, logits.len() / classes);
    let rows = rows_per_task(logits.len(), classes);
    for_each_piece(&mut losses, rows, |number, losses| {
        let [logits, targets] = [logits, targets].map(|values| part(values, number, rows * classes));
        for (own, (logits, targets)) in losses.iter_mut().zip(logits.chunks(classes).zip(targets.chunks(classes))) {
            *own = vectorised(
                #[inline(always)]
                || loss(logits, targets),
            );
        }
    });
    T::from_f64(losses.iter().sum::<f64>() / losses.len() as f64)
}

/// `dx = (softmax(logits) * sum(targets) - targets) / rows`.
pub fn backward<T: Scalar>(logits: &[T], targets: &[T], classes: usize, dx: &mut [T]) {
    let scale = T::ONE / T::from_f64((logits.len() / classes) as f64);
    let len = rows_per_task(logits.len(), classes) * classes;
    for_each_piece(dx, len, |number, dx| {
        let [logits, targets] = [logits, targets].map(|values| part(values, number, len).chunks(classes));
        for (dx, (logits, targets)) in dx.chunks_mut(classes).zip(logits.zip(targets)) {
            vectorised(
                #[inline(always)]
                || gradient(dx, logits, targets, scale),
            );
        }
    });
}

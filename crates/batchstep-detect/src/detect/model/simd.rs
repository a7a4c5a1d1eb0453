//! Loops over slices.
//!
//! The compiler turns them into vector code. Each value is computed by the same operations in the same order everywhere, so the findings do not
//! depend on the machine.

/// The inner product of two vectors of one length.
///
/// Uses eight partial sums: a single sum cannot be vectorised, since addition of floats is not associative.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; 8];
    let (a_whole, a_rest) = a.as_chunks::<8>();
    let (b_whole, b_rest) = b.as_chunks::<8>();
    for (a, b) in a_whole.iter().zip(b_whole) {
        for i in 0..8 {
            sums[i] += a[i] * b[i];
        }
    }
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f64>() + rest
}

/// Adds to `sum` the vectors with `weights`.
pub(crate) fn combine<'a>(vectors: impl IntoIterator<Item = &'a [f64]>, weights: &[f64], sum: &mut [f64]) {
    for (vector, weight) in vectors.into_iter().zip(weights).filter(|(_, weight)| **weight != 0.0) {
        for (sum, v) in sum.iter_mut().zip(vector) {
            *sum += weight * v;
        }
    }
}

/// Subtracts the squares of `v` from `sums`.
pub(crate) fn less_squares(sums: &mut [f64], v: &[f64]) {
    for (sum, v) in sums.iter_mut().zip(v) {
        *sum -= v * v;
    }
}

/// The largest of `values`, or zero where none is above zero.
pub(crate) fn largest(values: &[f64]) -> f64 {
    let larger = |a: f64, b: f64| if b > a { b } else { a };
    let (eights, rest) = values.as_chunks::<8>();
    let mut most = [0.0; 8];
    for eight in eights {
        for i in 0..8 {
            most[i] = larger(most[i], eight[i]);
        }
    }
    most.into_iter().chain(rest.iter().copied()).fold(0.0, larger)
}

/// The plane rotation of two vectors, in place: cos a + sin b, and cos b - sin a.
pub(crate) fn rotate(a: &mut [f64], b: &mut [f64], cos: f64, sin: f64) {
    for (a, b) in a.iter_mut().zip(b) {
        (*a, *b) = (cos * *a + sin * *b, cos * *b - sin * *a);
    }
}

/// Writes the gain of each candidate into `gains`: its squared inner product with the residual, divided by its squared
/// norm outside the basis.
///
/// The direction `without` is removed from the basis first: the parts of the data and of each candidate along it.
pub(crate) fn gains(norms: &[f64], inner: &[f64], without: Option<(f64, &[f64])>, gains: &mut Vec<f64>) {
    gains.clear();
    let each = norms.iter().zip(inner);
    match without {
        None => gains.extend(each.map(|(norm, inner)| inner * inner / norm)),
        Some((along, products)) => gains.extend(each.zip(products).map(|((norm, inner), p)| {
            let inner = inner + p * along;
            inner * inner / (norm + p * p)
        })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Rng;

    fn random(n: usize, rng: &mut Rng) -> Vec<f64> {
        (0..n).map(|_| rng.normal()).collect()
    }

    #[test]
    fn wide_loops_match_simple_ones() {
        let mut rng = Rng::new(5);
        for n in [0, 1, 3, 8, 13, 70] {
            let (a, b, c) = (random(n, &mut rng), random(n, &mut rng), random(n, &mut rng));
            let plain: f64 = a.iter().zip(&b).map(|(a, b)| a * b).sum();
            assert!((dot(&a, &b) - plain).abs() < 1e-12, "{n}");
            assert_eq!(largest(&a), a.iter().copied().fold(0.0, f64::max), "{n}");
            let mut found = Vec::new();
            gains(&a, &b, Some((0.7, &c[..])), &mut found);
            let expected = (0..n).map(|i| (b[i] + c[i] * 0.7).powi(2) / (a[i] + c[i] * c[i]));
            assert!(found.iter().zip(expected).all(|(a, b)| a == &b), "{n}");
            let vectors = [a.clone(), b.clone()];
            let mut sum = vec![0.0; n];
            combine(vectors.iter().map(Vec::as_slice), &[2.0, -3.0], &mut sum);
            assert!((0..n).all(|i| sum[i] == 2.0 * a[i] - 3.0 * b[i]), "{n}");
        }
    }

    #[test]
    fn rows_are_weighed_by_hand() {
        // five rows of width two: 1 10, 2 20, 3 30, 4 40, 5 50 with weights 1 0 -1 2 3 sum to 21 and 210
        let table: Vec<f64> = (1..=5).flat_map(|i| [f64::from(i), f64::from(10 * i)]).collect();
        let mut sums = [0.0; 2];
        combine(table.chunks(2), &[1.0, 0.0, -1.0, 2.0, 3.0], &mut sums);
        assert_eq!(sums, [21.0, 210.0]);
    }
}

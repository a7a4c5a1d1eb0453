//! Compares the model with slow, obvious refits.

use super::candidates::{CandidateTerms, Term};
use super::fit::Model;
use super::problem::Problem;
use crate::random::Rng;
use crate::stats::regression;

fn sample() -> (CandidateTerms, Vec<f64>, Vec<f64>) {
    let mut rng = Rng::new(6);
    let x: Vec<f64> = (1..=30).map(f64::from).collect();
    let step = |x: f64, k: f64| if x > k { 1.0 } else { 0.0 };
    let y = x.iter().map(|&x| 1.0 + 0.1 * x + step(x, 9.0) - 0.7 * step(x, 20.0) + 0.1 * rng.normal()).collect();
    let error = x.iter().map(|_| 0.05 + 0.1 * rng.uniform()).collect();
    (CandidateTerms::new(&x), y, error)
}

/// Residual sum of squares and coefficients by the normal equations: the slow, obvious way.
fn directly(candidates: &CandidateTerms, y: &[f64], error: &[f64], terms: &[usize]) -> (f64, Vec<f64>) {
    let mut columns = vec![vec![1.0; y.len()], candidates.t.clone()];
    columns.extend(terms.iter().map(|&j| candidates.column(j)));
    let product = |a: &[f64], b: &[f64]| (0..y.len()).map(|i| a[i] * b[i] / error[i].powi(2)).sum::<f64>();
    let a: Vec<Vec<f64>> = columns.iter().map(|p| columns.iter().map(|q| product(p, q)).collect()).collect();
    let b: Vec<f64> = columns.iter().map(|p| product(p, y)).collect();
    let solved = regression::solve(&a, &b).expect("independent columns");
    let fit = |i: usize| columns.iter().zip(&solved).map(|(c, b)| c[i] * b).sum::<f64>();
    ((0..y.len()).map(|i| ((y[i] - fit(i)) / error[i]).powi(2)).sum(), solved)
}

#[test]
fn the_fit_equals_the_normal_equations() {
    let (candidates, y, error) = sample();
    let problem = Problem::new(&candidates, &y, &error, 1.0);
    let terms: Vec<usize> = [Term::Step(8), Term::Hinge(14), Term::Step(19), Term::Off { at: 3, length: 1 }]
        .map(|t| candidates.index(t))
        .to_vec();
    let model = Model::new(&problem, &terms);
    let (rss, coefficients) = directly(&candidates, &y, &error, &terms);
    assert!((model.rss / rss - 1.0).abs() < 1e-9);
    for (a, b) in model.coefficients().iter().zip(&coefficients) {
        assert!((a - b).abs() < 1e-8);
    }
}

#[test]
fn the_best_move_is_the_best_of_all_refits() {
    let (candidates, y, error) = sample();
    let problem = Problem::new(&candidates, &y, &error, 1.0).with_staircases();
    let start = [Term::Step(12), Term::Hinge(20)].map(|t| candidates.index(t)).to_vec();
    let model = Model::new(&problem, &start);
    let priced = model.best_move(0..0);
    let mut best = model.length();
    for removed in [None, Some(0), Some(1)] {
        let mut kept = start.clone();
        if let Some(place) = removed {
            kept.remove(place);
        }
        let barred = model.barred(0..0, removed);
        best = best.min(Model::new(&problem, &kept).length());
        for j in (0..candidates.len).filter(|&j| !barred.forbids(&candidates, j)) {
            let rival = Model::new(&problem, &[&kept[..], &[j]].concat());
            if candidates.may_fall(j) || rival.coefficients().last() >= Some(&0.0) {
                best = best.min(rival.length());
            }
        }
    }
    assert!((priced.length - best).abs() < 1e-6, "priced {}, best refit {best}", priced.length);
    let mut moved = model.clone();
    moved.make(priced);
    assert!((moved.length() - priced.length).abs() < 1e-6);
}

#[test]
fn standard_errors_match_the_normal_equations() {
    // A step in 4 + 4 points with unit errors, with unknown level and slope: by hand the variance of the step next to a
    // level without slope would be 1/4 + 1/4; here the direction's own norm must equal the error of the unit weight.
    let (candidates, y, error) = sample();
    let problem = Problem::new(&candidates, &y, &error, 1.0);
    let model = Model::new(&problem, &[candidates.index(Term::Step(8)), candidates.index(Term::Step(19))]);
    let (along, own) = model.along(1);
    assert!((model.error_of(&[0.0, 0.0, 0.0, 1.0]) / own - 1.0).abs() < 1e-9);
    assert!((along * own - model.coefficients()[3]).abs() < 1e-9);
}

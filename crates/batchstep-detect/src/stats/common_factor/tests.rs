use super::*;
use crate::random::Rng;
use crate::stats::regression::Triangle;

/// A simulated run of randomised blocks: levels 0, with own deviations and changes of the factor from the given
/// distributions.
struct Simulated {
    visits: Vec<Visit>,
    factor: Vec<f64>,
}

const CELLS: usize = 40;

fn simulated(seed: u64, blocks: usize, own: f64, sd: f64, rho: f64, heavy: bool) -> Simulated {
    let mut rng = Rng::new(seed);
    let mut student = |freedom: usize| {
        let chi: f64 = (0..freedom).map(|_| rng.normal().powi(2)).sum();
        let normal = rng.normal();
        if heavy { normal / (chi / freedom as f64).sqrt() } else { normal }
    };
    let mut factor = vec![sd * student(3)];
    while factor.len() < blocks * CELLS {
        factor.push(rho * factor[factor.len() - 1] + sd * (1.0 - rho * rho).sqrt() * student(3));
    }
    let noise: Vec<f64> = factor.iter().map(|_| own * student(4)).collect();
    let mut order: Vec<usize> = Vec::new();
    for _ in 0..blocks {
        let mut block: Vec<usize> = (0..CELLS).collect();
        rng.shuffle(&mut block);
        order.extend(block);
    }
    let visit =
        |(v, cell): (usize, &usize)| Visit { cell: *cell, value: factor[v] + noise[v], together: false, anew: false };
    Simulated { visits: order.iter().enumerate().map(visit).collect(), factor }
}

/// The inverse of a symmetric positive matrix.
fn inverse(a: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let triangle = Triangle::of(a.len(), |i, j| a[i][j]).expect("positive");
    let column = |j: usize| {
        let mut unit: Vec<f64> = (0..a.len()).map(|i| f64::from(i == j)).collect();
        triangle.solve(&mut unit);
        unit
    };
    (0..a.len()).map(column).collect()
}

/// The slow oracle: the full covariance matrix of all visits, and its inverse. There are fewer visits than the number
/// from which changes are weighted, so the weights of all changes are 1.
#[test]
fn predictions_and_levels_match_generalised_least_squares() {
    let simulated = simulated(3, 5, 0.02, 0.05, 0.9, true);
    let mut fit = Fit::new(&simulated.visits, CELLS, CELLS);
    (0..ROUNDS).for_each(|_| {
        fit.smooth();
        fit.maximise();
    });
    fit.smooth();
    let n = simulated.visits.len();
    let covariance: Vec<Vec<f64>> = (0..n)
        .map(|i| {
            let entry = |j: usize| fit.sd.powi(2) * fit.rho.powi(i.abs_diff(j) as i32);
            (0..n).map(|j| entry(j) + if i == j { fit.own_variance(i) } else { 0.0 }).collect()
        })
        .collect();
    let precision = inverse(&covariance);
    let of = |row: &[f64]| row.iter().enumerate().map(|(j, p)| p * fit.residual(j)).sum::<f64>();
    for v in [0, 1, 57, n - 1] {
        // E[f_v | the others] = r_v - [P r]_v / P_vv, with the variance 1 / P_vv less that of its own deviation.
        let expected = fit.residual(v) - of(&precision[v]) / precision[v][v];
        let others = fit.others(v);
        assert!((others.value - expected).abs() < 1e-12, "visit {v}: {} and {expected}", others.value);
        let variance = 1.0 / precision[v][v] - fit.own_variance(v);
        assert!((others.sd.powi(2) / variance - 1.0).abs() < 1e-8);
    }
    // X' P r = 0 up to a shift that all levels share.
    let mut score = vec![0.0; CELLS];
    let (mut shift, mut information) = (vec![0.0; CELLS], vec![0.0; CELLS]);
    for (v, row) in precision.iter().enumerate() {
        let cell = simulated.visits[v].cell;
        score[cell] += of(row);
        shift[cell] += row.iter().sum::<f64>();
        information[cell] +=
            row.iter().zip(&simulated.visits).filter(|(_, w)| w.cell == cell).map(|(p, _)| p).sum::<f64>();
    }
    let share = score.iter().sum::<f64>() / shift.iter().sum::<f64>();
    for ((score, shift), information) in score.iter().zip(&shift).zip(&information) {
        // In standard errors of the level.
        assert!((score - share * shift).abs() < 5e-3 * information.sqrt(), "{score} and {}", share * shift);
    }
}

#[test]
fn the_scales_of_the_simulation_are_found() {
    for (seed, heavy) in [(1, false), (2, true)] {
        let simulated = simulated(seed, 25, 0.03, 0.06, 0.95, heavy);
        let found = fit(&simulated.visits, CELLS).expect("enough visits");
        // Student's t with 4 degrees of freedom and the scale 1 has the central part of a normal distribution of 1.1 or so.
        let own = if heavy { 0.03 } else { 0.03 / 1.15 };
        assert!((found.own / own - 1.0).abs() < 0.15, "{heavy}: own {}", found.own);
        assert!((found.rho - 0.95).abs() < 0.03, "{heavy}: rho {}", found.rho);
        // The mean of the factor cannot be distinguished from the levels.
        let mean = simulated.factor.iter().sum::<f64>() / simulated.factor.len() as f64;
        let errors = found.smoothed.iter().zip(&simulated.factor).map(|(e, f)| (e.value - f + mean) / e.sd);
        let ratio = scale(&errors.collect::<Vec<_>>());
        // The standard deviations leave out the error of the levels, which 25 visits each determine.
        assert!((0.8..1.35).contains(&ratio), "{heavy}: {ratio}");
    }
}

/// The purpose of the differences: levels whose scatter is known.
#[test]
fn the_differences_know_their_levels() {
    let (mut squares, mut plain, mut count) = (0.0, 0.0, 0.0);
    let mut standardised = 0.0;
    for seed in 0..12 {
        let simulated = simulated(100 + seed, 12, 0.03, 0.10, 0.96, true);
        let found = fit(&simulated.visits, CELLS).expect("enough visits");
        let medians = medians(&simulated.visits, CELLS);
        let mut weights = vec![0.0; CELLS];
        for (visit, others) in simulated.visits.iter().zip(&found.others) {
            weights[visit.cell] += 1.0 / (2.0 * found.own.powi(2) + others.sd.powi(2));
        }
        for cell in 1..CELLS {
            let difference = found.level[cell] - found.level[cell - 1];
            squares += difference.powi(2);
            standardised += difference.powi(2) / (1.0 / weights[cell] + 1.0 / weights[cell - 1]);
            plain += (medians[cell] - medians[cell - 1]).powi(2);
            count += 1.0;
        }
    }
    // Two to four times as precise as the medians of the cells.
    let gain = (plain / squares).sqrt();
    assert!((1.8..6.0).contains(&gain), "{gain}");
    let ratio = (standardised / count).sqrt();
    assert!((0.75..1.15).contains(&ratio), "{ratio}");
}

/// Independent visits are recognised as such. At most 1 of 2,000 by the normal distribution; 5 allows for heavy tails.
#[test]
fn without_a_factor_none_is_seen() {
    let seen = (0..2000)
        .filter(|&seed| {
            let simulated = simulated(seed, 6, 0.03, 0.0, 0.9, seed % 2 == 0);
            let medians = medians(&simulated.visits, CELLS);
            let residuals: Vec<f64> = simulated.visits.iter().map(|v| v.value - medians[v.cell]).collect();
            let scale = scale(&residuals);
            is_there(&residuals.iter().map(|r| r / scale).collect::<Vec<_>>())
        })
        .count();
    assert!(seen <= 5, "{seen} of 2000");
}

#[test]
fn too_few_visits_have_no_factor() {
    let visit = |cell| Visit { cell, value: 0.0, together: false, anew: false };
    assert_eq!(fit(&[], 3), None);
    assert_eq!(fit(&[visit(0), visit(1), visit(2)], 3), None);
    // A cell that was never visited has no level, and does not affect the others.
    let found = fit(&[visit(0), visit(2), visit(0), visit(2)], 3).expect("two visits each");
    assert!(found.level[1].is_nan() && found.level[0].abs() < 1e-6);
}

/// numpy: the posterior variance at the middle of 401 visits from the dense covariance matrix, once with the other visits (variance 7/5 own^2), once with
/// these and a reference at each visit.
#[test]
fn the_worth_of_a_reference_step_matches_the_dense_covariance_matrix() {
    let limit = |own: f64, sd: f64, rho: f64| {
        let (others, smoothed, level) = (Vec::new(), Vec::new(), Vec::new());
        CommonFactor { others, smoothed, level, own, sd, rho }.reference_limit()
    };
    for (found, expected) in [
        (limit(0.04, 0.11, 0.97), 0.120_749),
        (limit(0.035, 0.09, 0.7), 0.799_716),
        (limit(0.01, 0.05, 0.3), 7.285_022),
    ] {
        assert!((found - expected).abs() < 1e-5, "{found} and {expected}");
    }
}

use super::*;
use crate::random::Rng;
use crate::stats::regression;

/// ln y of visits, sorted by x, with the machine of each.
#[derive(Default)]
struct Data {
    groups: Vec<Range<usize>>,
    log: Vec<f64>,
    node: Vec<usize>,
}

impl Data {
    /// `count(x, machine)` visits, whose ln y is `value(x, machine, visit)`.
    fn new(
        xs: usize,
        nodes: usize,
        count: impl Fn(usize, usize) -> usize,
        mut value: impl FnMut(usize, usize) -> f64,
    ) -> Self {
        let mut data = Self::default();
        for x in 0..xs {
            let start = data.log.len();
            for node in 0..nodes {
                for _ in 0..count(x, node) {
                    data.log.push(value(x, node));
                    data.node.push(node);
                }
            }
            data.groups.push(start..data.log.len());
        }
        data
    }

    fn fit(&self) -> Fitted {
        Fitted::new(&self.groups, &self.log, &self.node, self.node.iter().max().expect("machines") + 1)
    }
}

/// By hand. Two machines that differ by 0.1, and by 0.02 more or less at every other of six x: the squared residuals
/// are 0.01^2 at each, which is (1 - 1/2)(1 - 1/6) of the variance of a mean, so tau^2 = 0.01^2 / (5/12) / 0.97756
/// without any scatter of the visits, and the error of a level, the mean of two, is sqrt(tau^2 / 2), known with five
/// degrees of freedom.
#[test]
fn two_machines_by_hand() {
    let sign = |x: usize| if x.is_multiple_of(2) { 1.0 } else { -1.0 };
    let value =
        |x: usize, node: usize| x as f64 + if node == 0 { 0.05 + 0.01 * sign(x) } else { -0.05 - 0.01 * sign(x) };
    let fitted = Data::new(6, 2, |_, _| 3, value).fit();
    let expected = 0.01 * (2.4f64 / 0.977_56).sqrt();
    // FLOOR^2 is the lower bound on the scatter of visits.
    assert!((fitted.between.sqrt() / expected - 1.0).abs() < 1e-4, "{} {expected}", fitted.between.sqrt());
    assert!((fitted.added[0] - 0.05).abs() < 1e-9 && (fitted.added[1] + 0.05).abs() < 1e-9, "{:?}", fitted.added);
    for (x, level) in fitted.levels().expect("levels").iter().enumerate() {
        assert!((level.center - x as f64).abs() < 1e-9, "{level:?}");
        assert!((level.error / (expected / 2f64.sqrt()) - 1.0).abs() < 1e-4, "{level:?}");
        assert!((level.freedom - 5.0).abs() < 1e-6, "{level:?}");
    }
}

/// A number with about the standard normal distribution, the same in every language.
fn normal(k: usize) -> f64 {
    let uniform = |j: usize| {
        let value = ((4 * k + j + 1) as f64 * 12.9898).sin() * 43_758.545_3;
        value - value.floor()
    };
    3f64.sqrt() * ((0..4).map(uniform).sum::<f64>() - 2.0)
}

/// Two or three machines that visit twelve x unequally often: two to eight times.
fn unequal(nodes: usize) -> Data {
    let (mut visit, count) = (1000, |x: usize, node: usize| 2 + (x * (node + 1) + 2 * node) % 7);
    let value = |x: usize, node: usize| {
        visit += 1;
        0.1 * x as f64 + [0.0, 0.08, -0.05][node] + 0.02 * normal(3 * x + node) + 0.01 * normal(visit)
    };
    Data::new(12, nodes, count, value)
}

/// For each x of [`unequal`] how far the level is from the expected one, in standard errors, and the ratio of the errors.
/// Expected are the levels minus their mean, and the standard errors of these differences, by restricted maximum
/// likelihood: statsmodels 0.15.0, `MixedLM.from_formula("y ~ 0 + C(x) + C(machine)", groups="pair",
/// data=visits).fit(reml=True)`, with a pair for each x and machine.
fn against(nodes: usize, centers: [f64; 12], errors: [f64; 12]) -> Vec<[f64; 2]> {
    let levels = unequal(nodes).fit().levels().expect("levels");
    let mean = levels.iter().map(|level| level.center).sum::<f64>() / 12.0;
    let one =
        |((level, center), error): ((&Level, f64), f64)| [(level.center - mean - center) / error, level.error / error];
    levels.iter().zip(centers).zip(errors).map(one).collect()
}

#[test]
fn two_machines_agree_with_a_mixed_model() {
    let found = against(
        2,
        [
            -0.555350, -0.425926, -0.349714, -0.222237, -0.144539, -0.073556, 0.027366, 0.156666, 0.235248, 0.338793,
            0.460257, 0.552992,
        ],
        [
            0.009403, 0.009126, 0.008982, 0.009163, 0.008974, 0.008879, 0.009234, 0.009405, 0.009122, 0.008981,
            0.009163, 0.008974,
        ],
    );
    assert!(found.iter().all(|[off, ratio]| off.abs() < 0.15 && (ratio - 1.0).abs() < 0.15), "{found:?}");
}

/// The biweight of three is not their mean: with 95 % of its information it differs by 0.23 standard errors on average.
#[test]
fn three_machines_agree_with_a_mixed_model() {
    let found = against(
        3,
        [
            -0.549341, -0.431064, -0.351174, -0.235019, -0.165335, -0.073976, 0.026702, 0.170234, 0.241347, 0.357829,
            0.455265, 0.554533,
        ],
        [
            0.012075, 0.012111, 0.011932, 0.011967, 0.011950, 0.011868, 0.012092, 0.012076, 0.012112, 0.011932,
            0.011967, 0.011950,
        ],
    );
    let off = (found.iter().map(|[off, _]| off * off).sum::<f64>() / 12.0).sqrt();
    let ratio = found.iter().map(|[_, ratio]| ratio).sum::<f64>() / 12.0;
    assert!(off < 0.35 && (ratio - 1.0).abs() < 0.12, "{off} {ratio} {found:?}");
}

/// Weighted least squares with the same precisions, all levels and machines at once, by normal equations.
#[test]
fn levels_match_the_normal_equations() {
    let fitted = unequal(3).fit();
    let (xs, nodes) = (12, 3);
    let n = xs + nodes;
    let (mut matrix, mut right) = (vec![vec![0.0; n]; n], vec![0.0; n]);
    for mean in &fitted.means {
        for i in [mean.x, xs + mean.node] {
            right[i] += mean.weight * mean.value;
            for j in [mean.x, xs + mean.node] {
                matrix[i][j] += mean.weight;
            }
        }
    }
    // Machines sum to zero: a sum of squares that the levels are free to satisfy.
    for row in &mut matrix[xs..] {
        row[xs..].iter_mut().for_each(|entry| *entry += 1e6);
    }
    let right = regression::solve(&matrix, &right).expect("positive definite");
    let off = fitted.level[0] - right[0];
    for (level, right) in fitted.level.iter().zip(&right) {
        assert!((level - right - off).abs() < 1e-6, "{level} {right}");
    }
}

/// The ratio of a level's true error to its stated error, over many experiments, has Student's t distribution: 95 % lie within its 97.5 % point.
#[test]
fn levels_of_two_machines_are_known_as_well_as_stated() {
    let (mut inside, mut all) = (0, 0);
    for seed in 0..400 {
        let mut random = Rng::new(seed);
        let own: Vec<f64> = (0..20).map(|_| 0.02 * random.normal()).collect();
        let value = |x: usize, node: usize| x as f64 + own[2 * x + node] + 0.1 * node as f64 + 0.005 * random.normal();
        let fitted = Data::new(10, 2, |x, node| 4 + (3 * x + 5 * node) % 11, value).fit();
        let levels = fitted.levels().expect("levels");
        let off: Vec<f64> = levels.iter().enumerate().map(|(x, level)| level.center - x as f64).collect();
        let common = off.iter().sum::<f64>() / 10.0;
        for (off, level) in off.iter().zip(&levels) {
            let t = crate::stats::distribution::t_upper_quantile(0.025, level.freedom);
            inside += usize::from((off - common).abs() < t * level.error);
            all += 1;
        }
    }
    let share = inside as f64 / all as f64;
    // 4,000 intervals, ten of which share an estimate of tau.
    assert!((0.93..0.97).contains(&share), "{share}");
}

/// One of five machines was disturbed by 30 % at one x.
#[test]
fn a_machine_that_was_disturbed_at_one_x_has_no_say_there() {
    let mut random = Rng::new(5);
    let value = |x: usize, node: usize| {
        let disturbed = if (x, node) == (7, 3) { 0.3 } else { 0.0 };
        x as f64 + disturbed + 0.005 * random.normal()
    };
    let levels = Data::new(20, 5, |_, _| 4, value).fit().levels().expect("levels");
    assert!((levels[7].center - 7.0).abs() < 0.005 && levels[7].error < 0.003, "{:?}", levels[7]);
    assert_eq!(levels[7].shares.iter().filter(|share| share.weight == 0.0).count(), 1);
}

#[test]
fn single_visits_leave_tau_to_the_scatter() {
    let mut random = Rng::new(6);
    let fitted = Data::new(10, 6, |_, _| 1, |x, node| x as f64 + 0.1 * node as f64 + 0.001 * random.normal()).fit();
    assert!(fitted.levels().is_none());
    assert!((fitted.added[5] - fitted.added[0] - 0.5).abs() < 0.005, "{:?}", fitted.added);
}

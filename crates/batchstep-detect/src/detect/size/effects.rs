//! Slight bends at jumps, and unequal steps of a staircase, as random effects.
//!
//! They are in every design as effects u with a prior `u ~ N(0, tau^2)` whose width tau is learned from the series: the
//! whitened design is `y = X b + Z u + e, var e = phi`, with a hinge in Z for each jump (another slope from there on)
//! and a step for each step. With D the diagonal of tau^2 / phi, `Z~` the part of Z outside X, `C = (D^-1 + Z~'Z~)^-1`
//! and r the residual of the design,
//!
//! ```text
//! u = C Z~'r,    size = w'b + v'u,    var size = phi (|x_w|^2 + c'C c),    c = v - Z'x_w
//! ```
//!
//! where `x_w` is the influence of w and v names the effects that are part of the size (Henderson 1975; Robinson 1991).

use super::design::Design;
use crate::detect::model::basis::COLLINEAR;
use crate::detect::model::boundary::Boundary;
use crate::detect::model::candidates::Term;
use crate::detect::model::moves::LEAST_GAIN;
use crate::detect::model::problem::Problem;
use crate::detect::model::simd::dot;
use crate::stats::{quantile::median, regression::Triangle};

/// Widths of the changes of slope, in units of the curve's own slope.
const BENDS: [f64; 5] = [0.0, 0.05, 0.15, 0.5, 1.5];
/// Widths of the deviations of steps, in units of the staircase's height.
const STEP_WIDTHS: [f64; 5] = [0.0, 0.03, 0.1, 0.25, 0.6];

/// Widths of the changes of slope at knots along the whole curve, in the same units.
const CURVES: [f64; 4] = [0.0, 0.05, 0.2, 0.8];
/// Knots at which the whole curve may bend slightly.
const KNOTS: usize = 7;

/// The kind of an effect.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// Another slope from a jump on.
    Bend,
    /// A step's deviation from the height of its staircase, which is given.
    StaircaseStep(f64),
    /// A slight bend anywhere.
    Curve,
}

/// A random effect.
struct Effect {
    /// The whitened column.
    column: Vec<f64>,
    kind: Kind,
}

/// The random effects that are in every design.
pub(crate) struct Offered {
    effects: Vec<Effect>,
    /// For each jump, the effect that is part of its size.
    own: Vec<Option<usize>>,
    /// The root of the dispersion.
    unit: f64,
}

impl Offered {
    /// An effect for each jump at `found`; `unit` is the root of the dispersion.
    pub fn new(problem: &Problem, found: &[Boundary], unit: f64) -> Self {
        let mut offered = Self { effects: vec![], own: vec![], unit };
        for boundary in found {
            let added = if boundary.in_staircase {
                offered.add(problem, Term::Step(boundary.k), Kind::StaircaseStep(boundary.size.abs()))
            } else {
                offered.add(problem, Term::Hinge(boundary.k + 1), Kind::Bend);
                None
            };
            offered.own.push(added);
        }
        // A staircase shows each bend many times, so the search does not miss any that would matter.
        let knots = if found.iter().any(|b| b.in_staircase) { 0 } else { KNOTS };
        for knot in (1..=knots).map(|i| i * problem.candidates.n / (KNOTS + 1)) {
            offered.add(problem, Term::Hinge(knot), Kind::Curve);
        }
        offered
    }

    /// The place of `term` among the effects; `None` if the term is not allowed.
    fn add(&mut self, problem: &Problem, term: Term, kind: Kind) -> Option<usize> {
        let j = problem.candidates.index(term);
        if !problem.candidates.allowed(j) {
            return None;
        }
        self.effects.push(Effect { column: problem.whitened(&problem.candidates.column(j)), kind });
        Some(self.effects.len() - 1)
    }
}

/// The random effects in addition to one design.
pub(crate) struct Effects<'o> {
    offered: &'o Offered,
    /// The parts of the columns outside the design.
    outside: Vec<Vec<f64>>,
    products: Products,
}

/// Products of the parts outside the design: the price of its effects follows from them.
pub(crate) struct Products {
    /// Products with each other; zero for an effect that the design already has.
    inner: Vec<Vec<f64>>,
    /// Products with the residual.
    with_residual: Vec<f64>,
}

/// The effects in addition to a design with one column fewer.
pub(crate) struct Priced {
    /// The parts of all effects along the unit vector that was removed.
    parts: Vec<f64>,
    pub products: Products,
}

/// The effects at one combination of widths.
pub(crate) struct Fit {
    /// Description length of the design with these widths.
    pub length: f64,
    pub dispersion: f64,
    /// The effects whose width is not zero, with their widths.
    width: Vec<(usize, f64)>,
    /// The triangle of 1 + D^1/2 Z~'Z~ D^1/2 over those effects.
    triangle: Triangle,
}

impl Products {
    /// The products after a unit vector was removed from the basis. `parts` has its products with the columns; `along` is its product with the data.
    fn without(&self, parts: &[f64], along: f64) -> Self {
        let row = |(own, a): (&Vec<f64>, &f64)| own.iter().zip(parts).map(|(inner, b)| inner + a * b).collect();
        let with_residual = self.with_residual.iter().zip(parts).map(|(own, part)| own + part * along).collect();
        Self { inner: self.inner.iter().zip(parts).map(row).collect(), with_residual }
    }

    /// A lower bound on the length of all fits of a design with `rss` and `cost`: the length with effects of any width,
    /// at no cost.
    pub fn shortest(&self, offered: &Offered, problem: &Problem, rss: f64, cost: f64) -> f64 {
        let present: Vec<usize> = (0..self.with_residual.len()).filter(|&e| self.is_present(offered, e)).collect();
        let mut inner_products: Vec<f64> = present.iter().map(|&e| self.with_residual[e]).collect();
        let explained = match Triangle::of(inner_products.len(), |i, j| self.inner[present[i]][present[j]]) {
            Some(triangle) => {
                triangle.half_solve(&mut inner_products);
                dot(&inner_products, &inner_products)
            }
            None => rss,
        };
        problem.misfit((rss - explained).max(0.0)) + cost - LEAST_GAIN
    }

    fn is_present(&self, offered: &Offered, e: usize) -> bool {
        self.inner[e][e] > COLLINEAR * dot(&offered.effects[e].column, &offered.effects[e].column)
    }
}

impl<'o> Effects<'o> {
    pub fn new(offered: &'o Offered, design: &Design) -> Self {
        let outside: Vec<Vec<f64>> =
            offered.effects.iter().map(|effect| design.basis.outside(&effect.column)).collect();
        let inner = outside.iter().map(|a| outside.iter().map(|b| dot(a, b)).collect()).collect();
        let with_residual = outside.iter().map(|a| dot(a, &design.residual)).collect();
        Self { offered, outside, products: Products { inner, with_residual } }
    }

    /// The parts of all effects along the unit vector `v`, which is removed from the basis, and the products for a
    /// design without it; the data have `along` along it.
    pub fn priced_without(&self, v: &[f64], along: f64) -> Priced {
        let parts: Vec<f64> = self.offered.effects.iter().map(|effect| dot(&effect.column, v)).collect();
        let products = self.products.without(&parts, along);
        Priced { parts, products }
    }

    /// The effects in addition to the priced design, without the unit vector `v`.
    pub fn beside(&self, priced: Priced, v: &[f64]) -> Self {
        let outside = self.outside.iter().zip(&priced.parts);
        let moved = |(o, part): (&Vec<f64>, &f64)| o.iter().zip(v).map(|(o, v)| o + part * v).collect();
        Self { offered: self.offered, outside: outside.map(moved).collect(), products: priced.products }
    }

    /// For each effect, the unit of its width divided by the root of the dispersion; zero if the design already has it.
    fn scales(&self, design: &Design) -> Vec<f64> {
        let slope = typical_slope(design);
        let scale = |(e, effect): (usize, &Effect)| match effect.kind {
            _ if !self.products.is_present(self.offered, e) => 0.0,
            Kind::StaircaseStep(height) => height / self.offered.unit,
            _ => slope / self.offered.unit,
        };
        self.offered.effects.iter().enumerate().map(scale).collect()
    }

    /// The fits, at every combination of widths, that are at most `margin` longer than the shortest.
    pub fn fits(&self, design: &Design, margin: f64) -> Vec<Fit> {
        let scales = self.scales(design);
        let offered = |kind: fn(&Kind) -> bool, widths: &'static [f64]| {
            let any =
                self.offered.effects.iter().zip(&scales).any(|(effect, scale)| kind(&effect.kind) && *scale > 0.0);
            if any { widths } else { &widths[..1] }
        };
        let mut fits: Vec<Fit> = Vec::new();
        for &bend in offered(|kind| *kind == Kind::Bend, &BENDS) {
            for &step in offered(|kind| matches!(kind, Kind::StaircaseStep(_)), &STEP_WIDTHS) {
                for &curve in offered(|kind| *kind == Kind::Curve, &CURVES) {
                    fits.extend(self.fit(design, &scales, [bend, step, curve]));
                }
            }
        }
        let shortest = fits.iter().map(|fit| fit.length).fold(f64::INFINITY, f64::min);
        fits.retain(|fit| fit.length < shortest + margin);
        fits
    }

    /// The fit with widths `scales` times those of bends, steps and the whole curve; `None` if they are too wide to be
    /// determined.
    fn fit(&self, design: &Design, scales: &[f64], [bend, step, curve]: [f64; 3]) -> Option<Fit> {
        let Products { inner, with_residual } = &self.products;
        let relative = |kind: &Kind| match kind {
            Kind::Bend => bend,
            Kind::StaircaseStep(_) => step,
            Kind::Curve => curve,
        };
        let widths =
            self.offered.effects.iter().zip(scales).map(|(effect, scale)| scale * relative(&effect.kind)).enumerate();
        let width: Vec<(usize, f64)> = widths.filter(|(_, width)| *width > 0.0).collect();
        // D^1/2 (1 + D^1/2 Z~'Z~ D^1/2)^-1 D^1/2 = C also if a width is zero: such an effect contributes nothing.
        let entry = |i: usize, j: usize| {
            let ((e, a), (f, b)) = (width[i], width[j]);
            a * inner[e][f] * b + f64::from(i == j)
        };
        let triangle = Triangle::of(width.len(), entry)?;
        let mut inner_products: Vec<f64> = width.iter().map(|&(e, width)| width * with_residual[e]).collect();
        triangle.half_solve(&mut inner_products);
        let rss = (design.rss - dot(&inner_products, &inner_products)).max(0.0);
        Some(Fit {
            length: design.problem.misfit(rss) + triangle.log_determinant() + design.cost,
            dispersion: (rss / design.freedom()).max(design.problem.floor),
            width,
            triangle,
        })
    }

    /// The part c of the effects in the size of the `i`-th jump, whose fixed part has the influence `fixed`.
    pub fn part(&self, fixed: &[f64], i: usize) -> Vec<f64> {
        let own = |e: usize| f64::from(self.offered.own[i] == Some(e));
        self.offered.effects.iter().enumerate().map(|(e, effect)| own(e) - dot(&effect.column, fixed)).collect()
    }

    /// The effects' contribution to a size with part `c`, and to its variance at dispersion one.
    pub fn contribution(&self, moved: &[f64], c: &[f64]) -> (f64, f64) {
        (dot(moved, &self.products.with_residual), dot(moved, c))
    }

    /// Adds to `influence` the effects' influence on the data, weighted by `moved`.
    pub fn influence(&self, moved: &[f64], influence: &mut [f64]) {
        for (outside, moved) in self.outside.iter().zip(moved) {
            for (influence, o) in influence.iter_mut().zip(outside) {
                *influence += moved * o;
            }
        }
    }
}

impl Fit {
    /// C c.
    pub fn moved(&self, c: &[f64]) -> Vec<f64> {
        let mut own: Vec<f64> = self.width.iter().map(|&(e, width)| width * c[e]).collect();
        self.triangle.solve(&mut own);
        let mut moved = vec![0.0; c.len()];
        for (&(e, width), own) in self.width.iter().zip(&own) {
            moved[e] = width * own;
        }
        moved
    }
}

/// The slope of the curve between its steps, per unit of t: the median over all pieces.
fn typical_slope(design: &Design) -> f64 {
    let candidates = design.problem.candidates;
    let b = design.basis.coefficients(&design.problem.target);
    let mut curve: Vec<f64> = candidates.t.iter().map(|t| b[1] * t).collect();
    for (&j, b) in design.terms.iter().zip(&b[crate::detect::model::fit::FREE..]) {
        if matches!(candidates.term(j), Term::Hinge(_) | Term::Shape(_)) {
            curve.iter_mut().zip(candidates.column(j)).for_each(|(curve, c)| *curve += b * c);
        }
    }
    let pieces = candidates.t.windows(2).zip(curve.windows(2));
    median(&mut pieces.map(|(t, y)| ((y[1] - y[0]) / (t[1] - t[0])).abs()).collect::<Vec<f64>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::model::candidates::CandidateTerms;
    use crate::random::Rng;

    /// Generalised least squares with the full covariance matrix 1 + Z D Z': the slow, obvious way. Returns the step's
    /// coefficient and its variance.
    fn directly(columns: &[Vec<f64>], y: &[f64], effects: &[(Vec<f64>, f64)], place: usize) -> (f64, f64) {
        let covariance = |i: usize, j: usize| {
            f64::from(i == j) + effects.iter().map(|(z, width)| z[i] * z[j] * width * width).sum::<f64>()
        };
        let triangle = Triangle::of(y.len(), covariance).expect("positive definite");
        let weighted = |v: &[f64]| {
            let mut v = v.to_vec();
            triangle.solve(&mut v);
            v
        };
        let a: Vec<Vec<f64>> = columns.iter().map(|c| columns.iter().map(|d| dot(&weighted(c), d)).collect()).collect();
        let b: Vec<f64> = columns.iter().map(|c| dot(&weighted(c), y)).collect();
        let inner = Triangle::of(a.len(), |i, j| a[i][j]).expect("independent");
        let mut row: Vec<f64> = (0..a.len()).map(|i| f64::from(i == place)).collect();
        inner.solve(&mut row);
        (dot(&row, &b), row[place])
    }

    #[test]
    fn sizes_and_variances_match_generalised_least_squares() {
        let mut rng = Rng::new(12);
        let x: Vec<f64> = (1..=30).map(f64::from).collect();
        let candidates = CandidateTerms::new(&x);
        let y: Vec<f64> =
            x.iter().map(|&x| 1.0 + 0.02 * x + if x > 15.0 { 0.4 } else { 0.0 } + 0.05 * rng.normal()).collect();
        let problem = Problem::new(&candidates, &y, &[0.05; 30], 1.0);
        let terms = vec![candidates.index(Term::Step(14))];
        let design = Design::new(&problem, terms.clone()).expect("independent columns");
        let found = [Boundary { k: 14, in_staircase: false, size: 0.4, error: 0.01 }];
        let offered = Offered::new(&problem, &found, 1.0);
        let effects = Effects::new(&offered, &design);
        let fit = effects.fit(&design, &effects.scales(&design), [0.5, 0.0, 0.2]).expect("positive definite");
        let fixed = design.basis.influence(&[0.0, 0.0, 1.0], 30);
        let c = effects.part(&fixed, 0);
        let (shift, variance) = effects.contribution(&fit.moved(&c), &c);

        let slope = typical_slope(&design);
        let mut random: Vec<(Vec<f64>, f64)> =
            offered.effects.iter().map(|effect| (effect.column.clone(), 0.2 * slope)).collect();
        random[0].1 = 0.5 * slope;
        let columns: Vec<Vec<f64>> = [vec![1.0; 30], candidates.t.clone(), candidates.column(terms[0])]
            .iter()
            .map(|column| problem.whitened(column))
            .collect();
        let (size, expected) = directly(&columns, &problem.target, &random, 2);
        assert!((dot(&fixed, &problem.target) + shift - size).abs() < 1e-9);
        assert!(((dot(&fixed, &fixed) + variance) / expected - 1.0).abs() < 1e-7);
        let mut influence = fixed.clone();
        effects.influence(&fit.moved(&c), &mut influence);
        assert!((dot(&influence, &problem.target) - size).abs() < 1e-9);
    }
}

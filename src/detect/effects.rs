//! Slight bends at jumps, and unequal risers of a staircase, as random effects.
//!
//! They stand in every design as effects u with a prior `u ~ N(0, tau^2)` whose width tau is learned from the series: the
//! whitened design is `y = X b + Z u + e, var e = phi`, with a hinge in Z for each jump (another slope from there on) and a step
//! for each riser. With D the diagonal of tau^2 / phi, `Z~` the part of Z outside X, `C = (D^-1 + Z~'Z~)^-1` and r the residual
//! of the design,
//!
//! ```text
//! u = C Z~'r,    size = w'b + v'u,    var size = phi (|x_w|^2 + c'C c),    c = v - Z'x_w
//! ```
//!
//! where `x_w` is the influence of w and v names the effects that are part of the size (Henderson 1975; Robinson 1991).

use super::basis::COLLINEAR;
use super::boundary::Boundary;
use super::dictionary::Term;
use super::lanes::dot;
use super::model::LEAST_GAIN;
use super::sizes::Design;
use crate::stats::{quantile::median, regression::Triangle};

/// Widths of the changes of slope, in units of the curve's own slope.
const BENDS: [f64; 5] = [0.0, 0.05, 0.15, 0.5, 1.5];
/// Widths of the departures of risers, in units of the staircase's height.
const RISERS: [f64; 5] = [0.0, 0.03, 0.1, 0.25, 0.6];

/// Widths of the changes of slope at knots along the whole curve, in the same units.
const CURVES: [f64; 3] = [0.0, 0.05, 0.2];
/// Knots at which the whole curve may bend slightly.
const KNOTS: usize = 7;

/// What an effect is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Another slope from a jump on.
    Bend,
    /// A riser's departure from the height of its staircase.
    Riser,
    /// A slight bend anywhere.
    Curve,
}

/// The random effects of one design.
pub(super) struct Effects {
    /// Columns, whitened, and what of them is outside the design.
    columns: Vec<Vec<f64>>,
    outside: Vec<Vec<f64>>,
    /// Products of `outside` with each other and with the residual.
    inner: Vec<Vec<f64>>,
    pull: Vec<f64>,
    /// For each effect, the unit of its width over the root of the dispersion.
    scale: Vec<(f64, Kind)>,
    /// For each jump, the effect that is part of its size.
    own: Vec<Option<usize>>,
}

/// The effects at one combination of widths.
pub(super) struct Fit {
    /// Description length of the design with these widths.
    pub length: f64,
    pub dispersion: f64,
    /// The effects whose width is not zero, with their widths.
    width: Vec<(usize, f64)>,
    /// Of 1 + D^1/2 Z~'Z~ D^1/2 over those effects.
    triangle: Triangle,
}

impl Effects {
    /// An effect for each jump at `found`; `unit` is the root of the dispersion.
    pub fn new(design: &Design, found: &[Boundary], unit: f64) -> Self {
        let mut effects =
            Self { columns: vec![], outside: vec![], inner: vec![], pull: vec![], scale: vec![], own: vec![] };
        let slope = typical_slope(design);
        for boundary in found {
            let added = if boundary.riser {
                effects.add(design, Term::Step(boundary.k), (boundary.size.abs() / unit, Kind::Riser))
            } else {
                effects.add(design, Term::Hinge(boundary.k + 1), (slope / unit, Kind::Bend));
                None
            };
            effects.own.push(added);
        }
        // A staircase shows each bend many times over: there the search does not miss any that would matter.
        let knots = if found.iter().any(|b| b.riser) { 0 } else { KNOTS };
        for knot in (1..=knots).map(|i| i * design.problem.dictionary.n / (KNOTS + 1)) {
            effects.add(design, Term::Hinge(knot), (slope / unit, Kind::Curve));
        }
        effects.inner = effects.outside.iter().map(|a| effects.outside.iter().map(|b| dot(a, b)).collect()).collect();
        effects.pull = effects.outside.iter().map(|a| dot(a, &design.residual)).collect();
        effects
    }

    /// The place of `term` among the effects; `None` where the design has it already.
    fn add(&mut self, design: &Design, term: Term, scale: (f64, Kind)) -> Option<usize> {
        let dictionary = design.problem.dictionary;
        let j = dictionary.index(term);
        if !dictionary.allowed(j) {
            return None;
        }
        let column = design.problem.whitened(&dictionary.column(j));
        let outside = design.basis.outside(&column);
        if dot(&outside, &outside) <= COLLINEAR * dot(&column, &column) {
            return None;
        }
        self.columns.push(column);
        self.outside.push(outside);
        self.scale.push(scale);
        Some(self.columns.len() - 1)
    }

    /// A length that no fit is below: that of effects of any width, at no cost.
    pub fn shortest(&self, design: &Design) -> f64 {
        let mut pulls = self.pull.clone();
        let explained = match Triangle::of(pulls.len(), |i, j| self.inner[i][j]) {
            Some(triangle) => {
                triangle.half_solve(&mut pulls);
                dot(&pulls, &pulls)
            }
            None => design.rss,
        };
        design.problem.misfit((design.rss - explained).max(0.0)) + design.cost - LEAST_GAIN
    }

    /// The fits, at every combination of widths, that are at most `margin` longer than the shortest.
    pub fn fits(&self, design: &Design, margin: f64) -> Vec<Fit> {
        let offered = |kind: Kind, widths: &'static [f64]| {
            if self.scale.iter().any(|s| s.1 == kind) { widths } else { &widths[..1] }
        };
        let mut fits: Vec<Fit> = Vec::new();
        for &bend in offered(Kind::Bend, &BENDS) {
            for &riser in offered(Kind::Riser, &RISERS) {
                for &curve in offered(Kind::Curve, &CURVES) {
                    fits.extend(self.fit(design, bend, riser, curve));
                }
            }
        }
        let shortest = fits.iter().map(|fit| fit.length).fold(f64::INFINITY, f64::min);
        fits.retain(|fit| fit.length < shortest + margin);
        fits
    }

    fn fit(&self, design: &Design, bend: f64, riser: f64, curve: f64) -> Option<Fit> {
        let relative = |kind: Kind| match kind {
            Kind::Bend => bend,
            Kind::Riser => riser,
            Kind::Curve => curve,
        };
        let widths = self.scale.iter().map(|&(unit, kind)| unit * relative(kind)).enumerate();
        let width: Vec<(usize, f64)> = widths.filter(|(_, width)| *width > 0.0).collect();
        // D^1/2 (1 + D^1/2 Z~'Z~ D^1/2)^-1 D^1/2 = C also where a width is zero: nothing of such an effect is in it.
        let entry = |i: usize, j: usize| {
            let ((e, a), (f, b)) = (width[i], width[j]);
            a * self.inner[e][f] * b + f64::from(i == j)
        };
        let triangle = Triangle::of(width.len(), entry)?;
        let mut pulls: Vec<f64> = width.iter().map(|&(e, width)| width * self.pull[e]).collect();
        triangle.half_solve(&mut pulls);
        let rss = (design.rss - dot(&pulls, &pulls)).max(0.0);
        Some(Fit {
            length: design.problem.misfit(rss) + triangle.log_determinant() + design.cost,
            dispersion: (rss / design.freedom()).max(design.problem.floor),
            width,
            triangle,
        })
    }

    /// What the effects have to do with the size of the `i`-th jump, whose fixed part has the influence `fixed`: c.
    pub fn part(&self, fixed: &[f64], i: usize) -> Vec<f64> {
        let own = |e: usize| f64::from(self.own[i] == Some(e));
        self.columns.iter().enumerate().map(|(e, column)| own(e) - dot(column, fixed)).collect()
    }

    /// What the effects add to a size with part `c`, and to its variance at dispersion one.
    pub fn contribution(&self, moved: &[f64], c: &[f64]) -> (f64, f64) {
        (dot(moved, &self.pull), dot(moved, c))
    }

    /// Adds to `influence` what the effects do with the data, weighted by `moved`.
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
    let dictionary = design.problem.dictionary;
    let b = design.basis.coefficients(&design.problem.target);
    let mut curve: Vec<f64> = dictionary.t.iter().map(|t| b[1] * t).collect();
    for (&j, b) in design.terms.iter().zip(&b[super::model::FREE..]) {
        if matches!(dictionary.term(j), Term::Hinge(_) | Term::Shape(_)) {
            curve.iter_mut().zip(dictionary.column(j)).for_each(|(curve, c)| *curve += b * c);
        }
    }
    let pieces = dictionary.t.windows(2).zip(curve.windows(2));
    median(&mut pieces.map(|(t, y)| ((y[1] - y[0]) / (t[1] - t[0])).abs()).collect::<Vec<f64>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::{dictionary::Dictionary, problem::Problem};
    use crate::stats::bootstrap::Rng;

    /// Generalised least squares with the covariance 1 + Z D Z' written out: the slow, obvious way. Returns the step's
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
    fn sizes_and_variances_are_those_of_generalised_least_squares() {
        let mut rng = Rng::new(12);
        let x: Vec<f64> = (1..=30).map(f64::from).collect();
        let dictionary = Dictionary::new(&x);
        let y: Vec<f64> =
            x.iter().map(|&x| 1.0 + 0.02 * x + if x > 15.0 { 0.4 } else { 0.0 } + 0.05 * rng.normal()).collect();
        let problem = Problem::new(&dictionary, &y, &[0.05; 30], 1.0);
        let terms = vec![dictionary.index(Term::Step(14))];
        let design = Design::new(&problem, terms.clone()).expect("independent columns");
        let found = [Boundary { k: 14, riser: false, size: 0.4, error: 0.01 }];
        let effects = Effects::new(&design, &found, 1.0);
        let fit = effects.fit(&design, 0.5, 0.0, 0.2).expect("positive definite");
        let fixed = design.basis.influence(&[0.0, 0.0, 1.0], 30);
        let c = effects.part(&fixed, 0);
        let (shift, variance) = effects.contribution(&fit.moved(&c), &c);

        let slope = typical_slope(&design);
        let mut random: Vec<(Vec<f64>, f64)> =
            effects.columns.iter().map(|column| (column.clone(), 0.2 * slope)).collect();
        random[0].1 = 0.5 * slope;
        let columns: Vec<Vec<f64>> = [vec![1.0; 30], dictionary.t.clone(), dictionary.column(terms[0])]
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

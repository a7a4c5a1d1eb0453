//! All terms that a curve may consist of, and their inner products with any vector.
//!
//! A fit needs, for each candidate term c, the products c'v with a few vectors v. Steps, hinges, bumps and staircases
//! are sums over suffixes, so one pass of suffix sums gives the products of *all* of them in O(1) each. A search over a
//! thousand candidates costs a few microseconds, and no matrix is ever built.

use std::ops::Range;

use super::grid::{Ruler, grid_unit, periods};
use super::shapes::{Form, alternations, smooth, smooth_logarithms, soft_hinge};
use super::simd::combine;

/// One term of the model, by position in the sorted distinct x.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Term {
    /// 1 beyond position k.
    Step(usize),
    /// x - x_k beyond position k.
    Hinge(usize),
    /// 1 at `length` positions (one to four) from `at` on: a bad point, or neighbours that were disturbed together.
    Off { at: usize, length: usize },
    /// A tabulated shape: see [`CandidateTerms::shapes`].
    Shape(usize),
    /// A whole staircase: see [`CandidateTerms::staircases`].
    Staircase(usize),
}

/// A staircase: a step of the same height after each x that leaves one remainder when divided by `period`.
#[derive(Clone, Debug)]
pub(crate) struct Staircase {
    pub period: f64,
    /// Positions after which it rises, ascending; repeated where a gap in x hides several steps.
    pub steps: Vec<usize>,
}

/// Candidates of the same cost, in units of -2 log likelihood.
#[derive(Clone, Debug)]
pub(crate) struct Class {
    pub range: Range<usize>,
    pub cost: f64,
}

/// All candidate terms for one set of x.
#[derive(Clone, Debug)]
pub(crate) struct CandidateTerms {
    pub n: usize,
    /// x mapped to [0, 1].
    pub t: Vec<f64>,
    pub shapes: Vec<Vec<f64>>,
    /// The shapes ordered by x: all shapes at the first x, then all at the second.
    table: Vec<f64>,
    pub staircases: Vec<Staircase>,
    pub classes: Vec<Class>,
    pub len: usize,
    /// The unit of the staircases' periods.
    unit: f64,
    /// The form of each shape.
    forms: Vec<Form>,
}

/// The most neighbours that may be disturbed together.
pub(crate) const MOST_OFF: usize = 4;
/// Kinds of local terms: steps, hinges and [`MOST_OFF`] lengths of disturbances, one of each for every x.
const LOCAL: usize = 2 + MOST_OFF;
/// Points that a step needs on each side to be more than an edge effect.
pub(crate) const EDGE: usize = 3;
/// Widths of the soft hinges, in strides of their knots.
const WIDTHS: [f64; 3] = [1.5, 3.0, 6.0];
/// Positions from one knot of the soft hinges to the next.
const STRIDE: usize = 2;
/// Longest period, in units, of a staircase that goes down.
const LONGEST_TOOTH: f64 = 8.0;
/// The place of the class of smooth shapes, after the classes of local terms.
const SMOOTH: usize = 2;

impl Term {
    pub fn step(self) -> Option<usize> {
        if let Self::Step(k) = self { Some(k) } else { None }
    }

    pub fn hinge(self) -> Option<usize> {
        if let Self::Hinge(k) = self { Some(k) } else { None }
    }
}

impl CandidateTerms {
    /// The candidate terms for at least eight ascending, distinct `x`.
    pub fn new(x: &[f64]) -> Self {
        Self::with(x, smooth(x))
    }

    /// Those of logarithms over logarithms `x`.
    pub fn of_logarithms(x: &[f64]) -> Self {
        Self::with(x, smooth_logarithms(x))
    }

    fn with(x: &[f64], smooth: Vec<Form>) -> Self {
        let n = x.len();
        let span = x[n - 1] - x[0];
        let t: Vec<f64> = x.iter().map(|v| (v - x[0]) / span).collect();
        let mut candidates = Self {
            n,
            t,
            shapes: Vec::new(),
            table: Vec::new(),
            staircases: Vec::new(),
            classes: Vec::new(),
            len: 0,
            unit: 1.0,
            forms: Vec::new(),
        };
        let ln_n = (n as f64).ln();
        let long = (MOST_OFF - EDGE + 1) * n;
        candidates.class(LOCAL * n - long, 3.0 * ln_n);
        candidates.class(long, 4.0 * ln_n);
        candidates.add_shapes(x, smooth);
        candidates.tabulate();
        candidates.add_staircases(x);
        candidates
    }

    fn class(&mut self, count: usize, cost: f64) {
        self.classes.push(Class { range: self.len..self.len + count, cost });
        self.len += count;
    }

    fn add_shapes(&mut self, x: &[f64], smooth: Vec<Form>) {
        let n = self.n;
        let ln_n = (n as f64).ln();
        for form in smooth {
            self.shapes.push(form.column(x, &self.t));
            self.forms.push(form);
        }
        let count = self.shapes.len();
        self.class(count, ln_n + 2.0 * (count as f64).ln());
        let before = self.shapes.len();
        for (form, column) in grid_unit(x).map(|unit| alternations(x, unit)).unwrap_or_default() {
            self.shapes.push(column);
            self.forms.push(form);
        }
        let count = self.shapes.len() - before;
        if count > 0 {
            self.class(count, ln_n + 2.0 * (count as f64).ln());
        }
        let before = self.shapes.len();
        let even = x.windows(3).all(|x| x[2] - x[1] == x[1] - x[0]);
        for knot in (2..n.saturating_sub(2)).step_by(STRIDE) {
            let spacing = 0.5 * (self.t[knot + 1] - self.t[knot - 1]);
            for width in WIDTHS {
                let (knot_t, width) = (self.t[knot], width * spacing);
                // On an even grid each shape is the previous knot's shape, shifted. This saves exp and ln, which are
                // most of the cost of the candidate terms.
                let moved = if even && knot > 2 { STRIDE } else { n };
                let mut shape = soft_hinge(&self.t[..moved], knot_t, width);
                shape.extend_from_slice(&self.shapes[self.shapes.len() - WIDTHS.len()][..n - moved]);
                self.forms.push(Form::Soft { knot: knot_t, width });
                self.shapes.push(shape);
            }
        }
        let count = self.shapes.len() - before;
        self.class(count, 3.0 * ln_n + 2.0 * (WIDTHS.len() as f64).ln());
    }

    /// The same terms, with finer variants of the smooth shapes among `terms`, whose parameters lie between the offered ones. `None` if there are none.
    ///
    /// The coarse shapes are for finding; if the noise is small, steps would have to compensate for their misfit.
    pub fn finer(&self, x: &[f64], terms: &[usize]) -> Option<Self> {
        let variants = terms.iter().flat_map(|&j| match self.term(j) {
            Term::Shape(s) => self.forms[s].finer(),
            _ => Vec::new(),
        });
        let forms: Vec<Form> = variants.collect();
        if forms.is_empty() {
            return None;
        }
        let mut finer = self.clone();
        let (added, start) = (forms.len(), self.staircase_range().start);
        let offered =
            self.forms.iter().filter(|form| matches!(form, Form::Decay(_) | Form::Power(_) | Form::Sum { .. })).count();
        let dearer = 2.0 * ((offered + added) as f64 / offered as f64).ln();
        let at = self.classes.len() - self.staircases.len();
        finer.classes.insert(at, Class { range: start..start + added, cost: self.classes[SMOOTH].cost + dearer });
        finer.shapes.extend(forms.iter().map(|form| form.column(x, &finer.t)));
        finer.forms.extend(forms);
        for class in &mut finer.classes[at + 1..] {
            class.range = class.range.start + added..class.range.end + added;
        }
        finer.tabulate();
        finer.len += added;
        Some(finer)
    }

    fn add_staircases(&mut self, x: &[f64]) {
        let Some((unit, longest)) = periods(x) else { return };
        self.unit = unit;
        let ln_n = (x.len() as f64).ln();
        let ruler = Ruler::new(x, unit);
        for q in 2..=longest {
            for phase in 0..q {
                let period = q as f64 * unit;
                let steps = ruler.positions(q, phase);
                let free = 2.0 * (longest as f64).ln() + if phase > 0 { 2.0 * (q as f64).ln() } else { 0.0 };
                if steps.len() >= 3 {
                    self.staircases.push(Staircase { period, steps });
                    self.class(1, ln_n + free);
                }
            }
        }
    }

    /// The term with number `j`.
    pub fn term(&self, j: usize) -> Term {
        let (n, shapes) = (self.n, self.shapes.len());
        match j / n {
            0 => Term::Step(j),
            1 => Term::Hinge(j - n),
            kind if kind < LOCAL => Term::Off { at: j % n, length: kind - 1 },
            _ if j < LOCAL * n + shapes => Term::Shape(j - LOCAL * n),
            _ => Term::Staircase(j - LOCAL * n - shapes),
        }
    }

    /// The number of `term`.
    pub fn index(&self, term: Term) -> usize {
        let n = self.n;
        match term {
            Term::Step(k) => k,
            Term::Hinge(k) => n + k,
            Term::Off { at, length } => (length + 1) * n + at,
            Term::Shape(k) => LOCAL * n + k,
            Term::Staircase(k) => LOCAL * n + self.shapes.len() + k,
        }
    }

    /// Whether term `j` is an alternation.
    pub fn alternates(&self, j: usize) -> bool {
        self.multiples_of(j).is_some()
    }

    /// The number over whose multiples term `j` is an alternation.
    pub fn multiples_of(&self, j: usize) -> Option<f64> {
        match self.term(j) {
            Term::Shape(s) => match self.forms[s] {
                Form::Alternation { of } => Some(of),
                _ => None,
            },
            _ => None,
        }
    }

    /// The numbers of the staircases.
    pub fn staircase_range(&self) -> Range<usize> {
        self.len - self.staircases.len()..self.len
    }

    /// False for numbers without a term: steps and hinges at the very edge.
    pub fn allowed(&self, j: usize) -> bool {
        let n = self.n;
        match self.term(j) {
            Term::Step(k) => k + 1 >= EDGE && k + EDGE < n,
            Term::Hinge(k) => k >= 2 && k + 3 <= n,
            // At an end, a disturbance with as many points as a step needs is a step.
            Term::Off { at, length } if length >= EDGE => at > 0 && at + length < n,
            Term::Off { at, length } => at + length <= n,
            Term::Shape(_) | Term::Staircase(_) => true,
        }
    }

    /// Whether the coefficient of term `j` may be negative: not if it is a staircase with a period of more than eight
    /// units.
    pub fn may_fall(&self, j: usize) -> bool {
        match self.term(j) {
            Term::Staircase(s) => self.staircases[s].period <= LONGEST_TOOTH * self.unit,
            _ => true,
        }
    }

    /// The cost of term `j`, in units of -2 log likelihood.
    pub fn cost(&self, j: usize) -> f64 {
        self.classes.iter().find(|c| c.range.contains(&j)).map_or(f64::INFINITY, |c| c.cost)
    }

    /// The column of term `j` over all x.
    pub fn column(&self, j: usize) -> Vec<f64> {
        let n = self.n;
        match self.term(j) {
            Term::Step(k) => (0..n).map(|i| f64::from(i > k)).collect(),
            Term::Hinge(k) => self.t.iter().map(|t| (t - self.t[k]).max(0.0)).collect(),
            Term::Off { at, length } => (0..n).map(|i| f64::from((at..at + length).contains(&i))).collect(),
            Term::Shape(s) => self.shapes[s].clone(),
            Term::Staircase(s) => {
                let steps = &self.staircases[s].steps;
                (0..n).map(|i| steps.partition_point(|r| *r < i) as f64).collect()
            }
        }
    }

    /// The products of the columns of the first `count` terms with `v`, into `out`; `count` includes or excludes
    /// staircases.
    pub fn products(&self, v: &[f64], count: usize, out: &mut Vec<f64>) {
        let n = self.n;
        out.clear();
        out.resize(LOCAL * n, 0.0);
        let (mut sum, mut moment) = (0.0, 0.0);
        for i in (0..n).rev() {
            // At this point the sums run over i + 1.., the range of the terms of knot i.
            out[i] = sum;
            out[n + i] = moment - self.t[i] * sum;
            add_up(v, i, n, out);
            sum += v[i];
            moment += v[i] * self.t[i];
        }
        self.shapes_along(v, out);
        if count == self.len {
            for staircase in &self.staircases {
                let product: f64 = staircase.steps.iter().map(|&r| out[r]).sum();
                out.push(product);
            }
        }
    }

    /// Appends the products of the shapes with `v`.
    fn shapes_along(&self, v: &[f64], out: &mut Vec<f64>) {
        let start = out.len();
        out.resize(start + self.shapes.len(), 0.0);
        combine(self.table.chunks(self.shapes.len().max(1)), v, &mut out[start..]);
    }

    /// Stores the shapes ordered by x as well.
    fn tabulate(&mut self) {
        self.table = (0..self.n).flat_map(|i| self.shapes.iter().map(move |shape| shape[i])).collect();
    }

    /// The squared norms of every term's column under the weights `w` (squares of the whitening factors).
    pub fn norms(&self, w: &[f64]) -> Vec<f64> {
        let n = self.n;
        let mut out = vec![0.0; LOCAL * n];
        let mut sums = [0.0; 3];
        for i in (0..n).rev() {
            let t = self.t[i];
            out[i] = sums[0];
            out[n + i] = sums[2] - 2.0 * t * sums[1] + t * t * sums[0];
            add_up(w, i, n, &mut out);
            sums[0] += w[i];
            sums[1] += w[i] * t;
            sums[2] += w[i] * t * t;
        }
        out.extend(self.shapes.iter().map(|s| s.iter().zip(w).map(|(c, w)| c * c * w).sum::<f64>()));
        // |sum of steps|^2: a pair of steps a <= b meets in the suffix beyond b, and the r-th step is the later one
        // of 2 r - 1 ordered pairs.
        for staircase in &self.staircases {
            let norm: f64 = staircase.steps.iter().enumerate().map(|(r, &k)| (2 * r + 1) as f64 * out[k]).sum();
            out.push(norm);
        }
        out
    }
}

/// Writes the sums of the one to four values from `i` on to the places of the disturbances that begin there.
fn add_up(values: &[f64], i: usize, n: usize, out: &mut [f64]) {
    let mut sum = 0.0;
    for length in 1..=MOST_OFF {
        sum += values.get(i + length - 1).copied().unwrap_or(0.0);
        out[(length + 1) * n + i] = sum;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::model::simd::dot;
    use crate::random::Rng;

    #[test]
    fn products_and_norms_equal_those_of_the_columns() {
        let mut rng = Rng::new(2);
        for gaps in [1usize, 3] {
            let x: Vec<f64> = (0..24).map(|i| (1 + i * gaps + (i % 3) * (gaps - 1) / 2) as f64).collect();
            let candidates = CandidateTerms::new(&x);
            let v: Vec<f64> = x.iter().map(|_| rng.normal()).collect();
            let w: Vec<f64> = x.iter().map(|_| 0.2 + rng.uniform()).collect();
            let mut products = Vec::new();
            candidates.products(&v, candidates.len, &mut products);
            let norms = candidates.norms(&w);
            assert_eq!((products.len(), norms.len()), (candidates.len, candidates.len));
            for j in 0..candidates.len {
                assert_eq!(candidates.index(candidates.term(j)), j);
                let column = candidates.column(j);
                let norm: f64 = column.iter().zip(&w).map(|(c, w)| c * c * w).sum();
                assert!((products[j] - dot(&column, &v)).abs() < 1e-10, "{:?}", candidates.term(j));
                assert!((norms[j] - norm).abs() < 1e-9 * norm.max(1.0), "{:?}", candidates.term(j));
            }
        }
    }
}

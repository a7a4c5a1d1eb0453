//! A factor common to all cells of a run: the machine's drift over time, estimated together with the cells' levels.
//!
//! A *visit* v measures cell c(v) once. On the logarithmic scale, in the order of the run,
//!
//! ```text
//! y_v = mu_c(v) + f_v + e_v,    f_v = rho f_(v-1) + h_v,    var h_v = s^2 (1 - rho^2)
//! ```
//!
//! f is a first-order autoregressive process with the standard deviation s: neighbours on the host, heat, clocks. e
//! belongs only to the visit. Both have heavy tails, e of Student's t with 4 degrees of freedom and h with 3, so that a
//! spike is not mistaken for the machine's level, and a sudden change of the level is followed at once. They are fitted
//! by expectation maximisation over their weights (Lange, Little & Taylor 1989), with a Kalman filter and the
//! Rauch-Tung-Striebel smoother for f (Harvey 1989, 3.6), in time proportional to the number of visits.
//!
//! The factor that is subtracted from a visit is predicted from *all other* visits. With the weights held fixed, the
//! levels that leave the weighted mean of these differences at zero are those of generalised least squares, since row v
//! of the inverse covariance matrix times the residuals is (r_v - E[r_v | the others]) / var(r_v | the others). The
//! differences of one cell are nearly independent, and their scatter equals their real uncertainty, so they need no
//! further correction.

use super::quantile::median;
use super::robust::scale;

/// Degrees of freedom of a visit's own deviation.
const OWN: f64 = 4.0;
/// Degrees of freedom of a change of the factor; normal below [`MANY`] visits, which are too few to show its tails.
const CHANGE: f64 = 3.0;
const MANY: usize = 500;
/// Rounds of expectation maximisation. A fixed number, so that the same visits give the same result on every machine.
const ROUNDS: usize = 40;
/// Steps of conjugate gradients in each round, and the mean square, in standard errors, of the remaining shifts at
/// which they end.
const SHIFTS: usize = 12;
const CLOSE: f64 = 1e-6;
/// Half-widths, in visits, of the neighbourhoods with which a visit is correlated.
const REACHES: [usize; 4] = [1, 3, 10, 30];
/// Standard deviations at which residuals are clipped in that correlation.
const CLIP: f64 = 3.0;
/// Correlation, in standard errors, from which a factor is accepted. The largest of four normal values is above it with
/// a probability of about 1e-4.
const BELIEVED: f64 = 4.0;
/// Lower bound of all standard deviations.
const LEAST: f64 = 1e-7;
/// Bounds on the correlation of neighbouring visits.
const RHO: (f64, f64) = (0.2, 0.9995);

/// One visit, in the order of the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Visit {
    /// The index of its cell.
    pub cell: usize,
    /// ln of the step time.
    pub value: f64,
    /// Whether it was measured, as far as is known, at the same time as the visit before; then the factor is the same.
    pub together: bool,
    /// Whether another machine begins here, whose factor is independent of the visit before.
    pub anew: bool,
}

/// A fitted factor.
#[derive(Clone, Debug, PartialEq)]
pub struct CommonFactor {
    /// For each visit, the factor predicted by all other visits, and the standard deviation of that prediction.
    pub others: Vec<Estimate>,
    /// For each visit, the factor estimated from all visits.
    pub smoothed: Vec<Estimate>,
    /// ln of each cell's step time; `NaN` for a cell without visits.
    pub level: Vec<f64>,
    /// The scale of a visit's own deviation: Student's t with 4 degrees of freedom times this.
    pub own: f64,
    /// The factor's standard deviation.
    pub sd: f64,
    /// The correlation of the factor at neighbouring visits.
    pub rho: f64,
}

impl CommonFactor {
    /// The most that a step of a fixed reference with each visit may cost to be worthwhile, as a share of the visit. It
    /// is the share by which the reference would lower the variance of a visit minus the factor. The reference's own
    /// deviation is assumed to be as large as that of any visit, since most of it belongs to the visit rather than the
    /// step.
    ///
    /// In the stationary state, with the observations' variance r, the factor is predicted from the visits before with the variance P that solves
    /// `P = rho^2 P r / (P + r) + s^2 (1 - rho^2)`, likewise from those after it, and from both with `1 / (2 / P - 1 /
    /// s^2)`: what both know about a stationary process without any observation counts only once (the two-filter
    /// formula, Fraser & Potter 1969). References halve r, and add an observation at the visit itself.
    pub fn reference_limit(&self) -> f64 {
        // The information of Student's t about its centre is (OWN + 1) / (OWN + 3) times that of a normal value of this
        // scale.
        let visit = self.own.powi(2) * (OWN + 3.0) / (OWN + 1.0);
        let factor = self.sd.powi(2);
        let from_others = |r: f64| {
            let change = factor * (1.0 - self.rho.powi(2));
            // The positive root of P^2 + (r - rho^2 r - change) P - change r = 0.
            let half = 0.5 * (r - self.rho.powi(2) * r - change);
            let predicted = (half * half + change * r).sqrt() - half;
            1.0 / (2.0 / predicted - 1.0 / factor)
        };
        let with = 1.0 / (1.0 / from_others(0.5 * visit) + 1.0 / visit);
        (visit + from_others(visit)) / (visit + with) - 1.0
    }
}

/// A value and its standard deviation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    pub value: f64,
    pub sd: f64,
}

/// How strongly residuals, in the order of the run, are correlated with the mean of their neighbours: the largest of four widths
/// of the neighbourhood, in standard errors. Residuals are in units of their own standard deviation.
fn correlation(residuals: &[f64]) -> f64 {
    let n = residuals.len();
    let clipped: Vec<f64> = residuals.iter().map(|r| r.clamp(-CLIP, CLIP)).collect();
    let power = clipped.iter().map(|r| r * r).sum::<f64>() / n as f64;
    let lagged = |lag: usize| clipped.iter().zip(&clipped[lag..]).map(|(a, b)| a * b).sum::<f64>();
    let of_reach = |reach: usize| {
        let pairs: f64 = (1..=reach).map(|lag| (n - lag) as f64).sum();
        (1..=reach).map(lagged).sum::<f64>() / (power * pairs.sqrt())
    };
    REACHES.into_iter().filter(|reach| *reach < n / 2).map(of_reach).fold(0.0, f64::max)
}

/// Whether visits with these residuals, in units of their standard deviation, share a factor.
pub fn is_there(residuals: &[f64]) -> bool {
    correlation(residuals) > BELIEVED
}

/// Fits the factor to visits of `cells` cells. `None` with fewer than twice as many visits as cells.
pub fn fit(visits: &[Visit], cells: usize) -> Option<CommonFactor> {
    let mut seen = vec![false; cells];
    visits.iter().for_each(|visit| seen[visit.cell] = true);
    let used = seen.iter().filter(|seen| **seen).count();
    if used == 0 || visits.len() < 2 * used {
        return None;
    }
    let mut fit = Fit::new(visits, cells, used);
    for _ in 0..ROUNDS {
        fit.smooth();
        fit.maximise();
    }
    fit.smooth();
    Some(fit.finish())
}

/// The state of a fit between two rounds.
struct Fit<'a> {
    visits: &'a [Visit],
    /// Cells with visits.
    used: usize,
    level: Vec<f64>,
    own: f64,
    sd: f64,
    rho: f64,
    states: Vec<State>,
}

/// The state of one visit.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// The weight of its own deviation, and of the change of the factor before it: below 1 in the tails.
    own_weight: f64,
    change_weight: f64,
    /// The variance of the factor given the visits before, and given this one too; the share of a surprise that is the factor's.
    predicted: f64,
    filtered: f64,
    gain: f64,
    /// The share of a change of the next smoothed mean that belongs to this one.
    back: f64,
    /// The factor given all visits, and its covariance with that of the visit before.
    mean: f64,
    variance: f64,
    shared: f64,
}

impl<'a> Fit<'a> {
    fn new(visits: &'a [Visit], cells: usize, used: usize) -> Self {
        let level = medians(visits, cells);
        let residuals: Vec<f64> = visits.iter().map(|visit| visit.value - level[visit.cell]).collect();
        let scale = scale(&residuals).max(LEAST);
        let state = State { own_weight: 1.0, change_weight: 1.0, ..State::default() };
        // Half of the variance for each, and a factor that lasts twenty visits: the rounds make this choice nearly
        // irrelevant.
        let half = scale * 0.5f64.sqrt();
        Self { visits, used, level, own: half, sd: half, rho: 0.95, states: vec![state; visits.len()] }
    }

    fn residual(&self, v: usize) -> f64 {
        self.visits[v].value - self.level[self.visits[v].cell]
    }

    /// The correlation with the visit before.
    fn step(&self, v: usize) -> f64 {
        match self.visits[v] {
            Visit { anew: true, .. } => 0.0,
            Visit { together: true, .. } => 1.0,
            _ => self.rho,
        }
    }

    fn own_variance(&self, v: usize) -> f64 {
        self.own * self.own / self.states[v].own_weight
    }

    /// The variances of the Kalman filter and of the smoother, which do not depend on the values.
    fn determine_variances(&mut self) {
        let n = self.visits.len();
        let mut last = self.sd * self.sd;
        for v in 0..n {
            let step = if v == 0 { 1.0 } else { self.step(v) };
            let change = self.sd * self.sd * (1.0 - step * step) / self.states[v].change_weight;
            let predicted = step * step * last + change;
            let gain = predicted / (predicted + self.own_variance(v));
            last = predicted * (1.0 - gain);
            let state = &mut self.states[v];
            (state.gain, state.filtered, state.predicted) = (gain, last, predicted);
        }
        self.states[n - 1].variance = last;
        for v in (0..n - 1).rev() {
            let next = self.states[v + 1];
            let filtered = self.states[v].filtered;
            let back = filtered * self.step(v + 1) / next.predicted.max(f64::MIN_POSITIVE);
            self.states[v + 1].shared = back * next.variance;
            self.states[v].back = back;
            self.states[v].variance = filtered + back * back * (next.variance - next.predicted);
        }
    }

    /// The mean of the factor, given `values` of the visits that include it: filtered forward, smoothed backward.
    /// Linear in the values.
    fn factor_in(&self, values: &[f64]) -> Vec<f64> {
        let mut means = Vec::with_capacity(values.len());
        let mut last = 0.0;
        for (v, (value, state)) in values.iter().zip(&self.states).enumerate() {
            let predicted = if v == 0 { 0.0 } else { self.step(v) * last };
            last = predicted + state.gain * (value - predicted);
            means.push(last);
        }
        for v in (0..values.len().saturating_sub(1)).rev() {
            means[v] += self.states[v].back * (means[v + 1] - self.step(v + 1) * means[v]);
        }
        means
    }

    /// For each cell the sum of V^-1 `values`, where V is the covariance matrix of all visits: a value minus the
    /// factor, divided by the variance of its own deviation.
    fn cell_sums(&self, values: &[f64]) -> Vec<f64> {
        let factor = self.factor_in(values);
        let mut sums = vec![0.0; self.level.len()];
        for (v, visit) in self.visits.iter().enumerate() {
            sums[visit.cell] += (values[v] - factor[v]) / self.own_variance(v);
        }
        sums
    }

    /// The levels of generalised least squares, by conjugate gradients (Hestenes & Stiefel 1952) from the present ones. The unknowns are the
    /// shifts of the levels; each step costs one pass over the visits. Cells that are visited together for a while
    /// share an error; single updates of the levels would take hundreds of rounds to find it.
    fn solve_levels(&mut self) {
        let scales = self.precisions();
        let residuals: Vec<f64> = (0..self.visits.len()).map(|v| self.residual(v)).collect();
        let mut rest = self.cell_sums(&residuals);
        let scaled = |rest: &[f64]| -> Vec<f64> {
            rest.iter().zip(&scales).map(|(r, s)| if *s > 0.0 { r / s } else { 0.0 }).collect()
        };
        let mut toward = scaled(&rest);
        let mut reached = dot(&rest, &toward);
        for _ in 0..SHIFTS {
            if reached <= CLOSE * self.used as f64 {
                break;
            }
            let along: Vec<f64> = self.visits.iter().map(|visit| toward[visit.cell]).collect();
            let image = self.cell_sums(&along);
            let step = reached / dot(&toward, &image);
            self.level.iter_mut().zip(&toward).for_each(|(level, toward)| *level += step * toward);
            rest.iter_mut().zip(&image).for_each(|(rest, image)| *rest -= step * image);
            let next = scaled(&rest);
            let now = dot(&rest, &next);
            toward = next.iter().zip(&toward).map(|(next, toward)| next + now / reached * toward).collect();
            reached = now;
        }
    }

    /// For each cell the precision that its visits would have without the error of other levels.
    fn precisions(&self) -> Vec<f64> {
        let mut sums = vec![0.0; self.level.len()];
        for (v, visit) in self.visits.iter().enumerate() {
            let own = self.own_variance(v);
            sums[visit.cell] += (1.0 - self.states[v].variance / own).max(0.0) / own;
        }
        sums
    }

    /// The factor and the levels for the present weights and scales.
    fn smooth(&mut self) {
        self.determine_variances();
        self.solve_levels();
        let residuals: Vec<f64> = (0..self.visits.len()).map(|v| self.residual(v)).collect();
        let means = self.factor_in(&residuals);
        self.states.iter_mut().zip(means).for_each(|(state, mean)| state.mean = mean);
    }

    /// Weights, scales and correlation from the smoothed factor.
    fn maximise(&mut self) {
        self.weigh_deviations();
        self.weigh_changes();
    }

    fn weigh_deviations(&mut self) {
        let mut sum = 0.0;
        for v in 0..self.visits.len() {
            let State { mean, variance, .. } = self.states[v];
            let square = (self.residual(v) - mean).powi(2) + variance;
            let weight = (OWN + 1.0) / (OWN + square / (self.own * self.own));
            self.states[v].own_weight = weight;
            sum += weight * square;
        }
        // Fitted levels absorb part of the scatter.
        let freedom = (self.visits.len() - self.used).max(1) as f64;
        self.own = (sum / freedom).sqrt().max(LEAST);
    }

    fn weigh_changes(&mut self) {
        let heavy = self.visits.len() >= MANY;
        let rest = 1.0 - self.rho * self.rho;
        let (mut squares, mut product, mut power, mut count) = (0.0, 0.0, 0.0, 0.0);
        for v in (1..self.visits.len()).filter(|&v| !self.visits[v].together && !self.visits[v].anew) {
            let (before, now) = (self.states[v - 1], self.states[v]);
            let square =
                (now.mean - self.rho * before.mean).powi(2) + now.variance + self.rho * self.rho * before.variance
                    - 2.0 * self.rho * now.shared;
            let weight = if heavy { (CHANGE + 1.0) / (CHANGE + square / (self.sd * self.sd * rest)) } else { 1.0 };
            self.states[v].change_weight = weight;
            squares += weight * square;
            product += weight * (now.mean * before.mean + now.shared);
            power += weight * (before.mean * before.mean + before.variance);
            count += 1.0;
        }
        if count > 0.0 && power > 0.0 {
            let change = squares / count;
            self.rho = (product / power).clamp(RHO.0, RHO.1);
            self.sd = (change / (1.0 - self.rho * self.rho)).sqrt().max(LEAST);
        }
    }

    /// The smoothed factor without the information of its own visit: the visit's precision and precision-weighted mean
    /// are subtracted.
    fn others(&self, v: usize) -> Estimate {
        let (State { mean, variance, .. }, own) = (self.states[v], self.own_variance(v));
        let precision = (1.0 / variance - 1.0 / own).max(1.0 / (self.sd * self.sd));
        let mean = (mean / variance - self.residual(v) / own) / precision;
        Estimate { value: mean, sd: precision.sqrt().recip() }
    }

    fn finish(self) -> CommonFactor {
        let smoothed = |state: &State| Estimate { value: state.mean, sd: state.variance.sqrt() };
        CommonFactor {
            others: (0..self.visits.len()).map(|v| self.others(v)).collect(),
            smoothed: self.states.iter().map(smoothed).collect(),
            level: self.level,
            own: self.own,
            sd: self.sd,
            rho: self.rho,
        }
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The median of each cell's visits; `NaN` for a cell without any.
pub fn medians(visits: &[Visit], cells: usize) -> Vec<f64> {
    let mut values = vec![Vec::new(); cells];
    visits.iter().for_each(|visit| values[visit.cell].push(visit.value));
    values.iter_mut().map(|values| if values.is_empty() { f64::NAN } else { median(values) }).collect()
}

#[cfg(test)]
mod tests;

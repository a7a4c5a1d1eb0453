//! The data of a fit, and the likelihood of its residuals.

use super::candidates::CandidateTerms;

/// The data of a fit: whitened values, whitening factors, and the lower bound on the dispersion.
#[derive(Clone, Debug)]
pub(crate) struct Problem<'a> {
    pub candidates: &'a CandidateTerms,
    /// The reciprocal of the standard error at each x.
    pub factor: Vec<f64>,
    /// y times `factor`.
    pub target: Vec<f64>,
    pub norms: Vec<f64>,
    pub floor: f64,
    /// Whether the errors include a roughness that was estimated from residuals, and therefore have their degrees of
    /// freedom.
    pub estimated: bool,
    /// Terms that a search keeps.
    pub kept: Vec<usize>,
    /// Points that are far off their neighbours: a search begins with a term for each.
    pub spikes: Vec<usize>,
    /// How many of the candidate terms are offered to a search: all, or all except the staircases.
    pub offered: usize,
}

impl<'a> Problem<'a> {
    /// Values `y` with standard errors `error`, both over all x of `candidates`.
    pub fn new(candidates: &'a CandidateTerms, y: &[f64], error: &[f64], floor: f64) -> Self {
        let factor: Vec<f64> = error.iter().map(|e| 1.0 / e).collect();
        let weight: Vec<f64> = factor.iter().map(|f| f * f).collect();
        let target = y.iter().zip(&factor).map(|(y, f)| y * f).collect();
        Self {
            candidates,
            factor,
            target,
            norms: candidates.norms(&weight),
            floor,
            estimated: false,
            kept: Vec::new(),
            spikes: Vec::new(),
            offered: candidates.staircase_range().start,
        }
    }

    /// The same problem with staircases offered.
    pub fn with_staircases(&self) -> Self {
        Self { offered: self.candidates.len, ..self.clone() }
    }

    /// A column in units of the standard errors.
    pub fn whitened(&self, column: &[f64]) -> Vec<f64> {
        column.iter().zip(&self.factor).map(|(c, f)| c * f).collect()
    }

    /// -2 log likelihood of a residual sum of squares, at the most likely dispersion.
    pub fn misfit(&self, rss: f64) -> f64 {
        let n = self.candidates.n as f64;
        let phi = (rss / n).max(self.floor);
        n * phi.ln() + rss / phi
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_misfit_uses_the_most_likely_dispersion() {
        let x: Vec<f64> = (1..=10).map(f64::from).collect();
        let candidates = CandidateTerms::new(&x);
        let problem = Problem::new(&candidates, &x, &[1.0; 10], 1.0);
        // below the floor phi = 1: 10 ln 1 + 5; above it phi = 40 / 10: 10 ln 4 + 10
        assert!((problem.misfit(5.0) - 5.0).abs() < 1e-12);
        assert!((problem.misfit(40.0) - (10.0 * 4f64.ln() + 10.0)).abs() < 1e-12);
    }
}

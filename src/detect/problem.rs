//! The data of a fit, and the likelihood of what a fit leaves over.

use super::dictionary::{Dictionary, MANY};

/// The data of a fit: whitened values, whitening factors, and the least dispersion that is believed.
#[derive(Clone, Debug)]
pub(super) struct Problem<'a> {
    pub dictionary: &'a Dictionary,
    /// One over the standard error at each x.
    pub factor: Vec<f64>,
    /// y times `factor`.
    pub target: Vec<f64>,
    pub norms: Vec<f64>,
    pub floor: f64,
    /// The errors hold a roughness that was estimated from residuals, and with it their degrees of freedom.
    pub estimated: bool,
    /// How many terms of the dictionary are offered to a search: all, or all but the staircases.
    pub offered: usize,
}

impl Problem<'_> {
    /// So many points that a search has to save on each change.
    pub fn is_long(&self) -> bool {
        self.dictionary.n > MANY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_misfit_is_that_of_the_most_likely_dispersion() {
        let x: Vec<f64> = (1..=10).map(f64::from).collect();
        let dictionary = Dictionary::new(&x);
        let problem = Problem::new(&dictionary, &x, &[1.0; 10], 1.0);
        // below the floor phi = 1: 10 ln 1 + 5; above it phi = 40 / 10: 10 ln 4 + 10
        assert!((problem.misfit(5.0) - 5.0).abs() < 1e-12);
        assert!((problem.misfit(40.0) - (10.0 * 4f64.ln() + 10.0)).abs() < 1e-12);
    }
}

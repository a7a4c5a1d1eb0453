//! Even and odd: a staircase of period 2 and an alternation are the same curve, and only the treads tell them apart.
//!
//! With slope s per unit of x and odd x higher by a, the curve is at once a line with teeth of height a and a staircase with
//! risers of 2a and treads of slope s - a. It is read as a staircase where the treads are flat against the risers.

use super::dictionary::Term;
use super::model::{FREE, Model};
use crate::stats::quantile::median;

/// Slope of the treads over the height of the risers, between which they count as flat.
const FLAT: std::ops::RangeInclusive<f64> = -0.15..=0.3;

/// The same model with its even/odd term read as a staircase, where that is what it is.
pub(super) fn as_stairs<'a, 'b>(model: &Model<'a, 'b>, x: &[f64], y: &[f64]) -> Option<Model<'a, 'b>> {
    let dictionary = model.problem.dictionary;
    let is_even = |j: &usize| matches!(dictionary.term(*j), Term::Shape(s) if Some(s) == dictionary.even);
    let place = model.terms.iter().position(is_even)?;
    let height = model.coefficients()[place + FREE];
    let mut slopes: Vec<f64> = x.windows(3).zip(y.windows(3)).map(|(x, y)| (y[2] - y[0]) / (x[2] - x[0])).collect();
    let riser = 2.0 * height.abs();
    if !FLAT.contains(&((median(&mut slopes) - height.abs()) / riser)) {
        return None;
    }
    let phase = if height < 0.0 { 0.0 } else { 1.0 };
    let stairs = dictionary.stairs.iter().position(|s| s.period == 2.0 && s.phase == phase)?;
    let mut terms = model.terms.clone();
    terms[place] = dictionary.index(Term::Stairs(stairs));
    Some(Model::new(model.problem, &terms))
}

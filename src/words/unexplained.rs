//! Changes that anyone sees and that no jump, bend or ramp names, in words.

use crate::detect::{Unexplained, UnexplainedPlace};
use crate::units::human;

/// The most changes that a sentence names.
const MOST: usize = 3;

/// `+205 % from 118 to 177 and +65 % after 6348`, of those between the ends; `None` without one.
pub fn between(found: &[Unexplained], x: &[f64]) -> Option<String> {
    let mut between: Vec<&Unexplained> = found.iter().filter(|one| one.place == UnexplainedPlace::Between).collect();
    // By size, and then in their order along the curve.
    between.sort_by(|a, b| b.relative.ln_1p().abs().total_cmp(&a.relative.ln_1p().abs()));
    between.truncate(MOST);
    between.sort_by(|a, b| a.from.total_cmp(&b.from));
    let are_neighbours = |one: &Unexplained| !x.iter().any(|&x| one.from < x && x < one.to);
    let text = |one: &&Unexplained| {
        let (change, from) = (human::signed_percent(one.relative), human::batch_size(one.from));
        if are_neighbours(one) {
            format!("{change} after {from}")
        } else {
            format!("{change} from {from} to {}", human::batch_size(one.to))
        }
    };
    (!between.is_empty()).then(|| human::listed(&between.iter().map(text).collect::<Vec<_>>()))
}

/// A sentence for each end whose points are far off the curve: `the last point, 33, is 95 % above the trend: a size or two more decides`.
pub fn at_the_ends(found: &[Unexplained]) -> Vec<String> {
    let text = |one: &Unexplained| {
        let which = match one.place {
            UnexplainedPlace::Start => "first",
            UnexplainedPlace::End => "last",
            UnexplainedPlace::Between => return None,
        };
        let [from, to] = [one.from, one.to].map(human::batch_size);
        let points = if one.from == one.to {
            format!("the {which} point, {from}, is")
        } else {
            format!("the {which} two points, {from} and {to}, are")
        };
        let side = if one.relative > 0.0 { "above" } else { "below" };
        let far = human::percent(one.relative.abs());
        Some(format!("{points} {far} {side} the trend: a size or two more decides"))
    };
    found.iter().filter_map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(from: f64, to: f64, relative: f64, place: UnexplainedPlace) -> Unexplained {
        Unexplained { from, to, relative, place }
    }

    #[test]
    fn neighbours_are_a_place_and_others_a_range() {
        let found = [
            change(16.0, 17.0, 0.5, UnexplainedPlace::Between),
            change(30.0, 32.0, -0.5, UnexplainedPlace::Between),
            change(40.0, 40.0, 0.95, UnexplainedPlace::End),
        ];
        let x: Vec<f64> = (1..=40).map(f64::from).collect();
        assert_eq!(between(&found, &x).as_deref(), Some("+50 % after 16 and -50 % from 30 to 32"));
        assert_eq!(at_the_ends(&found), ["the last point, 40, is 95 % above the trend: a size or two more decides"]);
        assert_eq!(between(&found[2..], &x), None);
    }
}

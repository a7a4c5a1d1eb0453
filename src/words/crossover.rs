//! From which size on one series is the faster one, in a sentence.

use crate::analysis::crossover::{Crossing, Crossover};
use crate::units::human;

/// Which of a pair is faster from which size on, and which is faster at the smallest, without a full stop; `None` if they do not cross. `name`
/// gives the name of a series as the reader knows it.
///
/// Both ends are named: series may cross more than once, and the series that wins at large sizes may win at the smallest by far more.
pub fn crossover_sentence(pair: &Crossover, name: impl Fn(&str) -> String) -> Option<String> {
    let place = pair.at?;
    let faster = pair.faster_at_largest();
    let other = if faster == pair.first { &pair.second } else { &pair.first };
    // The larger time over the smaller.
    let times = |ratio: f64| format!("{:.2} times", ratio.max(1.0 / ratio));
    let (smallest, largest) = (size(pair.smallest), size(pair.largest));
    let (at_smallest, at_largest) = (times(pair.ratio_at_smallest), times(pair.ratio_at_largest));
    let (verb, shown) = match place.high {
        Some(_) => ("is", ""),
        None => ("may be", ", not shown"),
    };
    let (faster, other) = (name(faster), name(other));
    let same_at_both_ends = (pair.ratio_at_smallest > 1.0) == (pair.ratio_at_largest > 1.0);
    let below = match (same_at_both_ends, place.crossings) {
        (true, crossings) => {
            format!("it is also faster at {smallest} ({at_smallest}), and in between they cross {crossings} times")
        }
        (false, 1) => format!("below that, {other} is faster ({at_smallest} at {smallest})"),
        (false, crossings) => {
            format!("at {smallest}, {other} is faster ({at_smallest}), and they cross {crossings} times")
        }
    };
    let from = from_size(&place);
    Some(format!("{faster} {verb} faster than {other} from size {from} on ({at_largest} at {largest}{shown}); {below}"))
}

/// A size as a whole number.
pub fn size(value: f64) -> String {
    human::count(value.round().max(0.0) as u64)
}

/// The first whole size from which on the other series is faster; a billionth beside a whole one is arithmetic.
pub fn first_size(place: &Crossing) -> f64 {
    (place.size * (1.0 - 1e-9)).ceil()
}

/// [`first_size`] as a number.
pub fn from_size(place: &Crossing) -> String {
    size(first_size(place))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// `cpu` against `cuda`, which is 8 times faster at the largest size.
    pub(crate) fn pair(ratio_at_smallest: f64, at: Option<Crossing>) -> Crossover {
        let (first, second, ratio_at_largest) = ("cpu".into(), "cuda".into(), 8.0);
        Crossover { first, second, ratio_at_smallest, ratio_at_largest, smallest: 25.0, largest: 40_000.0, at }
    }

    #[test]
    fn a_crossover_names_both_ends_and_the_open_questions() {
        let place = Crossing { size: 8123.0, low: Some(7900.0), high: Some(8300.0), crossings: 1 };
        let said = |ratio_at_smallest: f64, place: Crossing| {
            crossover_sentence(&pair(ratio_at_smallest, Some(place)), str::to_owned).expect("they cross")
        };
        let from = "cuda is faster than cpu from size 8,123 on (8.00 times at 40,000); ";
        assert_eq!(said(0.25, place), format!("{from}below that, cpu is faster (4.00 times at 25)"));
        let thrice = Crossing { crossings: 3, ..place };
        assert_eq!(said(0.25, thrice), format!("{from}at 25, cpu is faster (4.00 times), and they cross 3 times"));
        let twice = Crossing { crossings: 2, ..place };
        assert_eq!(
            said(14.0, twice),
            format!("{from}it is also faster at 25 (14.00 times), and in between they cross 2 times")
        );
        // By hand: between 8 and 9 the first is faster at 8, so "from 8 on" would contradict "faster at 8".
        let near = Crossing { size: 8.2, low: Some(8.1), high: Some(8.4), crossings: 1 };
        let sentence = said(0.25, near);
        assert!(sentence.starts_with("cuda is faster than cpu from size 9 on ("), "{sentence}");
        assert_eq!(first_size(&Crossing { size: 8.0 + 1e-12, ..near }), 8.0);
        // An interval that is open above: the scatter allows either order at the largest size.
        let open = said(0.25, Crossing { high: None, ..place });
        assert!(
            open.starts_with("cuda may be faster than cpu from size 8,123 on (8.00 times at 40,000, not shown); "),
            "{open}"
        );
    }
}

//! Sizes that are slow by themselves, in words and as JSON.

use serde_json::{Value, json};

use super::entries::position;
use super::shortened;
use crate::analysis::size_class::{Class, Common, SlowSize};
use crate::analysis::slow::SlowSizes;
use crate::units::human;

/// Up to this many sizes are named one by one.
const NAMED: usize = 8;

/// `multiples of 64: +50 % (5 of 5, p < 0.0001); also 72 (+9 %)`.
pub fn text(found: &SlowSizes) -> String {
    let class = found.class.as_ref().map(|Class { common, relative, slow, of, p_value }| {
        let (relative, p) = (human::signed_percent(*relative), human::p_equals(*p_value));
        format!("{}: {relative} ({slow} of {of}, {p})", common.text())
    });
    let others: Vec<&SlowSize> = found.sizes.iter().filter(|size| !found.is_explained(size)).collect();
    let named = shortened(others.into_iter().map(one), NAMED);
    match (class, named.is_empty()) {
        (Some(class), true) => class,
        (Some(class), false) => format!("{class}; also {}", human::listed(&named)),
        (None, _) => format!("off the curve by themselves: {}", human::listed(&named)),
    }
}

fn one(size: &SlowSize) -> String {
    format!("{} ({})", human::batch_size(size.x), human::signed_percent(size.relative))
}

/// The sizes, and their class or null.
pub(super) fn json(found: &SlowSizes) -> Value {
    let sizes: Vec<Value> =
        found.sizes.iter().map(|size| json!({"at": position(size.x), "relative": size.relative})).collect();
    let class = found.class.as_ref().map(|class| {
        let divisor = match class.common {
            Common::MultiplesOf(divisor) => Some(divisor),
            Common::Primes => None,
        };
        json!({
            "name": class.common.text(), "divisor": divisor, "relative": class.relative, "slow": class.slow,
            "of": class.of, "p_value": class.p_value,
        })
    });
    json!({"sizes": sizes, "class": class})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_named_before_single_sizes() {
        let size = |x: f64, relative: f64| SlowSize { x, relative };
        let class = Class { common: Common::MultiplesOf(48), relative: 0.25, slow: 2, of: 3, p_value: 0.0021 };
        let sizes = vec![size(48.0, 0.25), size(50.0, 0.09), size(96.0, 0.25)];
        let mut found = SlowSizes { sizes, class: Some(class) };
        assert_eq!(text(&found), "multiples of 48: +25 % (2 of 3, p = 0.002); also 50 (+9.0 %)");
        assert_eq!(json(&found)["class"]["divisor"], 48);
        found.class = None;
        assert_eq!(text(&found), "off the curve by themselves: 48 (+25 %), 50 (+9.0 %) and 96 (+25 %)");
        assert_eq!(json(&found)["sizes"][1]["at"], 50);
        assert!(json(&found)["class"].is_null());
    }
}

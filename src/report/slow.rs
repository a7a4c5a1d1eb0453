//! Sizes that are slow by themselves, as JSON.

use serde_json::{Value, json};

use super::entries::position;
use crate::analysis::size_class::Common;
use crate::analysis::slow::SlowSizes;

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
    use crate::analysis::size_class::{Class, SlowSize};
    use crate::words::slow;

    #[test]
    fn a_class_is_named_before_single_sizes() {
        let size = |x: f64, relative: f64| SlowSize { x, relative };
        let class = Class { common: Common::MultiplesOf(48), relative: 0.25, slow: 2, of: 3, p_value: 0.0021 };
        let sizes = vec![size(48.0, 0.25), size(50.0, 0.09), size(96.0, 0.25)];
        let mut found = SlowSizes { sizes, class: Some(class) };
        assert_eq!(slow(&found), "multiples of 48: +25 % (2 of 3, p = 0.002); also 50 (+9.0 %)");
        assert_eq!(json(&found)["class"]["divisor"], 48);
        found.class = None;
        assert_eq!(slow(&found), "off the curve by themselves: 48 (+25 %), 50 (+9.0 %) and 96 (+25 %)");
        assert_eq!(json(&found)["sizes"][1]["at"], 50);
        assert!(json(&found)["class"].is_null());
    }
}

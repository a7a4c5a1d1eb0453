//! Sizes that are slow by themselves, in words.

use super::shortened;
use crate::analysis::size_class::{Class, SlowSize};
use crate::analysis::slow::SlowSizes;
use crate::units::human;

/// Up to this many sizes are named one by one.
const NAMED: usize = 8;

/// `multiples of 64: +50 % (5 of 5, p < 0.0001); also 72 (+9 %)`.
pub fn slow(found: &SlowSizes) -> String {
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

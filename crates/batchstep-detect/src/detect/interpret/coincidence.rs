//! Numbers of the hardware that a period equals, or is in a small whole ratio with: coincidences to test, not causes.
//!
//! A period of 16 equals the lanes of a PCIe link, half a warp and a quarter of a tile of 64 at once: such a match
//! proves nothing. Only a run with another value of one of these numbers can separate them.

use crate::detect::input::HardwareNumbers;

/// Threads of a warp, on every NVIDIA GPU so far (CUDA C++ Programming Guide, 4.1).
const WARP: u32 = 32;
/// Edges of the output tiles that matrix kernels commonly work in (cuBLAS, CUTLASS).
const TILES: [u32; 2] = [64, 128];
/// Ratios beyond this are not worth reporting: every number is some multiple of another.
const LARGEST_RATIO: u32 = 8;

/// How `period` relates to the numbers of the hardware: those it equals first, then those it is a multiple of, then those it
/// divides, each as a phrase such as `equals the PCIe link width (16)`. Empty where the period is not a whole number above one.
///
/// Warp and tile sizes count only where there is a GPU, that is a multiprocessor count or a link width.
///
/// ```
/// use batchstep_detect::detect::{HardwareNumbers, coincidences};
/// let a100 = HardwareNumbers { multiprocessors: Some(108), ..HardwareNumbers::default() };
/// assert_eq!(coincidences(216.0, &a100), ["is 2 times the number of multiprocessors (108)"]);
/// ```
pub fn coincidences(period: f64, numbers: &HardwareNumbers) -> Vec<String> {
    if period.fract() != 0.0 || !(2.0..=f64::from(u32::MAX)).contains(&period) {
        return Vec::new();
    }
    let period = period as u32;
    let mut known = vec![
        ("the number of multiprocessors", numbers.multiprocessors),
        ("the PCIe link width", numbers.link_width),
        ("the number of threads", numbers.threads),
    ];
    if numbers.multiprocessors.is_some() || numbers.link_width.is_some() {
        known.push(("the warp size", Some(WARP)));
        known.extend(TILES.map(|tile| ("a tile size of matrix kernels", Some(tile))));
    }
    // One multiprocessor, lane or thread divides everything.
    let known: Vec<(&str, u32)> =
        known.into_iter().filter_map(|(name, n)| Some((name, n.filter(|n| *n > 1)?))).collect();
    let small = |larger: u32, smaller: u32| {
        let ratio = larger / smaller;
        (larger.is_multiple_of(smaller) && (2..=LARGEST_RATIO).contains(&ratio)).then_some(ratio)
    };
    let equal = known.iter().filter(|(_, n)| *n == period).map(|(name, n)| format!("equals {name} ({n})"));
    let multiple =
        known.iter().filter_map(|(name, n)| small(period, *n).map(|ratio| format!("is {ratio} times {name} ({n})")));
    let divisor =
        known.iter().filter_map(|(name, n)| small(*n, period).map(|ratio| format!("is 1/{ratio} of {name} ({n})")));
    equal.chain(multiple).chain(divisor).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_period_has_many_coincidences() {
        // the 2022 study: a period of 16 on a link of 16 lanes, on a GPU of 82 multiprocessors (RTX 3090)
        let numbers = HardwareNumbers { multiprocessors: Some(82), link_width: Some(16), ..HardwareNumbers::default() };
        let expected = [
            "equals the PCIe link width (16)",
            "is 1/2 of the warp size (32)",
            "is 1/4 of a tile size of matrix kernels (64)",
            "is 1/8 of a tile size of matrix kernels (128)",
        ];
        assert_eq!(coincidences(16.0, &numbers), expected);
        assert_eq!(coincidences(82.0, &numbers), ["equals the number of multiprocessors (82)"]);
    }

    #[test]
    fn a_cpu_has_threads_and_no_warps() {
        let numbers = HardwareNumbers { threads: Some(4), ..HardwareNumbers::default() };
        assert_eq!(coincidences(4.0, &numbers), ["equals the number of threads (4)"]);
        assert_eq!(coincidences(32.0, &numbers), ["is 8 times the number of threads (4)"]);
        assert!(coincidences(64.0, &numbers).is_empty());
    }

    #[test]
    fn nothing_known_and_no_whole_period_give_nothing() {
        assert!(coincidences(16.0, &HardwareNumbers::default()).is_empty());
        let numbers = HardwareNumbers { link_width: Some(1), threads: Some(1), multiprocessors: None };
        assert!(coincidences(3.0, &numbers).is_empty());
        assert!(coincidences(2.5, &numbers).is_empty() && coincidences(f64::NAN, &numbers).is_empty());
    }
}

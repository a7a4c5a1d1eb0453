//! The step time on a device without measured steps: from its rates, and from kernels that others measured on other
//! devices. Rough: a device is more than two numbers.
//!
//! A layer takes `a FLOPs / F + b bytes / B + c`, with the device's rates F of arithmetic and B of memory, and factors >= 0 fitted to kernels
//! on other devices. A step is the sum over its layers. If the same step was measured on another device with known
//! rates, its time there is scaled by the ratio of the two sums; this includes effects that the sum leaves out.

use super::conformal::radius;
use super::{fitted, sum};
use crate::network::Cost;
use crate::stats::quantile::median;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    pub flops_per_s: f64,
    pub bytes_per_s: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeasuredKernel {
    /// A number for each device.
    pub device: usize,
    pub rates: Rates,
    pub work: Cost,
    pub seconds: f64,
}

/// Factors of arithmetic, traffic and start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateModel {
    factors: [f64; 3],
}

/// The errors of kernels on a device that was left out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeviceErrors {
    pub device: usize,
    pub kernels: usize,
    /// `exp(median(|ln(measured / predicted)|)) - 1`.
    pub median: f64,
    /// The radius, in the logarithm, that holds nine of ten errors.
    pub radius: f64,
}

/// The start of a kernel: the unit of its factor.
const START_S: f64 = 1e-5;

impl RateModel {
    /// For devices without known kernels: each term counts once, like a roofline model that adds its terms instead of
    /// taking the larger.
    pub const FORMULA: Self = Self { factors: [1.0, 1.0, 1.0] };

    /// Fitted to kernels by their relative errors.
    pub fn fit(kernels: impl Iterator<Item = MeasuredKernel>) -> Self {
        let rows: Vec<[f64; 3]> = kernels.map(|k| terms(k.work, k.rates).map(|term| term / k.seconds)).collect();
        Self { factors: fitted(&rows) }
    }

    pub fn seconds(&self, work: Cost, rates: Rates) -> f64 {
        sum(&terms(work, rates), &self.factors)
    }

    pub fn step(&self, layers: &[Cost], rates: Rates) -> f64 {
        layers.iter().map(|work| self.seconds(*work, rates)).sum()
    }
}

fn terms(work: Cost, rates: Rates) -> [f64; 3] {
    [work.flops / rates.flops_per_s, work.bytes / rates.bytes_per_s, START_S]
}

/// For each device, the errors on its kernels, with factors fitted to the other devices' kernels.
pub fn left_out(kernels: &[MeasuredKernel]) -> Vec<DeviceErrors> {
    let devices = kernels.iter().map(|kernel| kernel.device).max().map_or(0, |most| most + 1);
    let errors = |device: usize| {
        let model = RateModel::fit(kernels.iter().filter(|kernel| kernel.device != device).copied());
        let own = kernels.iter().filter(|kernel| kernel.device == device);
        let error = |k: &MeasuredKernel| (k.seconds / model.seconds(k.work, k.rates)).ln().abs();
        let mut errors: Vec<f64> = own.map(error).collect();
        let kernels = errors.len();
        DeviceErrors { device, kernels, median: median(&mut errors).exp_m1(), radius: radius(&mut errors) }
    };
    (0..devices).map(errors).filter(|errors| errors.kernels > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Rng;

    const FAST: Rates = Rates { flops_per_s: 2e13, bytes_per_s: 1e12 };
    const SLOW: Rates = Rates { flops_per_s: 5e12, bytes_per_s: 2e11 };

    fn kernels(device: usize, rates: Rates, extra: f64) -> impl Iterator<Item = MeasuredKernel> {
        let mut rng = Rng::new(device as u64);
        (0..200).map(move |_| {
            let (flops, bytes) = (10f64.powf(7.0 + 3.0 * rng.uniform()), 10f64.powf(5.0 + 3.0 * rng.uniform()));
            let seconds = extra * (2.0 * flops / rates.flops_per_s + 1.5 * bytes / rates.bytes_per_s + 5e-6);
            MeasuredKernel { device, rates, work: Cost { flops, bytes }, seconds }
        })
    }

    // Both devices follow the same law, so either predicts the other.
    #[test]
    fn devices_of_one_law_predict_each_other() {
        let all: Vec<MeasuredKernel> = kernels(0, FAST, 1.0).chain(kernels(1, SLOW, 1.0)).collect();
        assert!(left_out(&all).iter().all(|errors| errors.kernels == 200 && errors.radius < 1e-6));
    }

    // The second device is half as fast as its rates promise: each deviates from the other's law by a factor of 2.
    #[test]
    fn a_device_that_does_not_keep_its_promise_shows() {
        let all: Vec<MeasuredKernel> = kernels(0, FAST, 1.0).chain(kernels(1, SLOW, 2.0)).collect();
        for errors in left_out(&all) {
            assert!((errors.median - 1.0).abs() < 1e-6 && (errors.radius - 2f64.ln()).abs() < 1e-6, "{errors:?}");
        }
    }
}

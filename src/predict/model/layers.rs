//! The step time of an unmeasured network, on a device where other networks were measured: a sum over its layers.
//!
//! Each layer's time comes from the measured layers of the same kind: a start, its arithmetic and its traffic with factors >= 0, then
//! corrected by boosted trees ([`super::trees`]) of its batch size, sides, FLOPs and bytes. A step is these sums, a
//! fixed cost for each layer and each step, and the update of the parameters, with factors >= 0 fitted to whole
//! measured steps. The interval comes from steps of networks left out one by one.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;

use super::conformal::radius;
use super::trees::{Features, Trees};
use super::{Estimate, fitted, sum};
use crate::network::{Cost, Sides};

/// One layer in one direction at one batch size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LayerWork {
    /// Its operation, direction and algorithm: a number for each kind, the same in all steps that are compared.
    pub kind: u64,
    /// The same without the algorithm, for cases in which no layer was measured with it.
    pub wider: u64,
    /// Whether it is a convolution or a dense layer.
    pub multiplies: bool,
    pub work: Cost,
    pub sides: Sides,
    pub seconds: Option<f64>,
}

/// One step: its layers, and its time if that was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct StepWork {
    /// A number for each network.
    pub network: usize,
    pub batch: f64,
    pub layers: Vec<LayerWork>,
    /// Bytes that the update of the parameters reads and writes.
    pub update_bytes: f64,
    /// `NaN` for a step that is to be predicted.
    pub seconds: f64,
}

impl StepWork {
    fn flops(&self) -> f64 {
        self.layers.iter().map(|layer| layer.work.flops).sum()
    }
}

/// With fewer networks nothing is fitted: an interval of 90 % needs nine left-out networks.
pub const FEWEST_NETWORKS: usize = 9;

/// The most measured layers of a kind that are kept.
const MOST_SAMPLES: usize = 1500;
/// The most of these to which trees are fitted.
const MOST_FITTED: usize = 500;
/// The number of nearest layers that further correct a prediction.
const NEAREST: usize = 8;
/// The squared distance, in logarithms of sizes, below which neighbours count equally.
const CLOSE: f64 = 0.05;
/// The weight of no correction at all.
const NONE: f64 = 0.3;
/// The parts into which the networks are divided: the layers of each part are predicted from those of the others.
const FOLDS: usize = 5;
/// No layer takes less than this: the clock's resolution.
const SHORTEST_S: f64 = 1e-9;

/// The terms: a constant; the number of layers; the times of layers that multiply, and of the others; the update; and
/// for kinds without times, the FLOPs and bytes of layers that multiply, and the bytes of the others.
const TERMS: usize = 8;

/// The step times of a device as a function of the layers.
#[derive(Clone, Debug)]
pub struct StepModel {
    kinds: BTreeMap<u64, KindModel>,
    factors: [f64; TERMS],
    radius: f64,
    /// The number of networks to whose steps it was fitted.
    pub networks: usize,
    /// The largest of those steps.
    most_flops: f64,
    /// The kinds of their layers, timed or not.
    seen: BTreeSet<u64>,
}

#[derive(Clone, Debug)]
struct KindModel {
    /// The factors of a layer's start, its FLOPs and its bytes.
    factors: [f64; 3],
    /// `ln(measured / by the factors)`.
    correction: Trees,
    /// The remaining errors of measured layers: trees are coarse, and a layer that was measured in another network has
    /// a known time.
    samples: Vec<Sample>,
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    place: Features,
    left: f64,
}

impl StepModel {
    /// Fitted to measured steps; `None` with fewer than [`FEWEST_NETWORKS`] networks.
    pub fn fit(steps: &[StepWork]) -> Option<Self> {
        let networks: BTreeSet<usize> = steps.iter().map(|step| step.network).collect();
        if networks.len() < FEWEST_NETWORKS {
            return None;
        }
        // As for an unmeasured network: without its own layers.
        let part: BTreeMap<usize, usize> =
            networks.iter().enumerate().map(|(i, network)| (*network, i % FOLDS)).collect();
        let of_parts: Vec<_> = (0..FOLDS).map(|out| kinds(steps, |step| part[&step.network] != out)).collect();
        let rows: Vec<[f64; TERMS]> = steps.iter().map(|step| terms(&of_parts[part[&step.network]], step)).collect();
        let mut errors = Vec::with_capacity(steps.len());
        for &out in &networks {
            let factors = factors(steps, &rows, |step| step.network != out);
            let held = steps.iter().zip(&rows).filter(|(step, _)| step.network == out);
            errors.extend(held.map(|(step, row)| (step.seconds / seconds(row, &factors)).ln().abs()));
        }
        let factors = factors(steps, &rows, |_| true);
        let most_flops = steps.iter().map(StepWork::flops).fold(0.0, f64::max);
        let seen = steps.iter().flat_map(|step| &step.layers).map(|layer| layer.kind).collect();
        let kinds = kinds(steps, |_| true);
        Some(Self { kinds, factors, radius: radius(&mut errors), networks: networks.len(), most_flops, seen })
    }

    /// Whether the step has the sizes and kinds of layers to which the model was fitted. Outside of them the interval
    /// is too narrow, because the left-out networks were of these sizes and kinds.
    pub fn covers(&self, step: &StepWork) -> bool {
        step.flops() <= self.most_flops && step.layers.iter().all(|layer| self.seen.contains(&layer.kind))
    }

    /// The time of a step of a network to which the model was not fitted.
    pub fn at(&self, step: &StepWork) -> Estimate {
        Estimate::around(seconds(&terms(&self.kinds, step), &self.factors), self.radius)
    }
}

/// A measured layer and its batch size.
struct Timed<'a> {
    batch: f64,
    layer: &'a LayerWork,
    seconds: f64,
}

fn kinds(steps: &[StepWork], used: impl Fn(&StepWork) -> bool) -> BTreeMap<u64, KindModel> {
    let mut timed: BTreeMap<u64, Vec<Timed>> = BTreeMap::new();
    for step in steps.iter().filter(|step| used(step)) {
        for layer in &step.layers {
            let Some(seconds) = layer.seconds.filter(|seconds| *seconds > 0.0) else { continue };
            let kinds = if layer.kind == layer.wider { vec![layer.kind] } else { vec![layer.kind, layer.wider] };
            for kind in kinds {
                timed.entry(kind).or_default().push(Timed { batch: step.batch, layer, seconds });
            }
        }
    }
    timed.into_par_iter().map(|(kind, all)| (kind, KindModel::fit(&all))).collect()
}

fn work(layer: &LayerWork) -> [f64; 3] {
    [1.0, layer.work.flops, layer.work.bytes]
}

/// Logarithms of the batch size, the sides, the FLOPs and the bytes.
fn features(layer: &LayerWork, batch: f64) -> Features {
    let LayerWork { work: Cost { flops, bytes }, sides: Sides { terms, channels, places }, .. } = *layer;
    [batch, terms, channels, places, flops + 1.0, bytes + 1.0].map(f64::ln)
}

impl KindModel {
    fn fit(all: &[Timed]) -> Self {
        let every = all.len().div_ceil(MOST_SAMPLES).max(1);
        let kept: Vec<&Timed> = all.iter().step_by(every).collect();
        let rows: Vec<[f64; 3]> = kept.iter().map(|timed| work(timed.layer).map(|term| term / timed.seconds)).collect();
        let factors = fitted(&rows);
        let rows: Vec<Features> = kept.iter().map(|timed| features(timed.layer, timed.batch)).collect();
        let left: Vec<f64> =
            kept.iter().map(|timed| (timed.seconds / seconds(&work(timed.layer), &factors)).ln()).collect();
        let every = rows.len().div_ceil(MOST_FITTED).max(1);
        let fitted = rows.iter().copied().zip(left.iter().copied()).step_by(every);
        let (some_rows, some_left): (Vec<Features>, Vec<f64>) = fitted.unzip();
        let correction = Trees::fit(&some_rows, &some_left);
        let sample = |(place, left): (Features, f64)| Sample { place, left: left - correction.at(&place) };
        let samples = rows.into_iter().zip(left).map(sample).collect();
        Self { factors, correction, samples }
    }

    fn seconds(&self, layer: &LayerWork, batch: f64) -> f64 {
        let here = features(layer, batch);
        seconds(&work(layer), &self.factors) * (self.correction.at(&here) + self.left_nearby(&here)).exp()
    }

    /// The remaining error of the nearest measured layers, weighted less the farther they are.
    fn left_nearby(&self, here: &Features) -> f64 {
        let mut nearest = [(f64::INFINITY, 0.0); NEAREST];
        for sample in &self.samples {
            let found: f64 = sample.place.iter().zip(here).map(|(a, b)| (a - b) * (a - b)).sum();
            if found < nearest[NEAREST - 1].0 {
                let at = nearest.partition_point(|(known, _)| *known <= found);
                nearest[at..].rotate_right(1);
                nearest[at] = (found, sample.left);
            }
        }
        let (mut total, mut weights) = (0.0, NONE);
        for (distance, left) in nearest.iter().filter(|(distance, _)| distance.is_finite()) {
            let weight = 1.0 / (distance + CLOSE);
            total += weight * left;
            weights += weight;
        }
        total / weights
    }
}

fn terms(kinds: &BTreeMap<u64, KindModel>, step: &StepWork) -> [f64; TERMS] {
    let [mut multiplying, mut others, mut flops, mut bytes, mut other_bytes] = [0.0; 5];
    for layer in &step.layers {
        match kinds.get(&layer.kind).or_else(|| kinds.get(&layer.wider)) {
            Some(kind) if layer.multiplies => multiplying += kind.seconds(layer, step.batch),
            Some(kind) => others += kind.seconds(layer, step.batch),
            None if layer.multiplies => {
                flops += layer.work.flops;
                bytes += layer.work.bytes;
            }
            None => other_bytes += layer.work.bytes,
        }
    }
    [1.0, step.layers.len() as f64, multiplying, others, step.update_bytes, flops, bytes, other_bytes]
}

fn factors(steps: &[StepWork], rows: &[[f64; TERMS]], used: impl Fn(&StepWork) -> bool) -> [f64; TERMS] {
    let used = steps.iter().zip(rows).filter(|(step, _)| used(step));
    fitted(&used.map(|(step, row)| row.map(|term| term / step.seconds)).collect::<Vec<_>>())
}

fn seconds<const N: usize>(terms: &[f64; N], factors: &[f64; N]) -> f64 {
    sum(terms, factors).max(SHORTEST_S)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Rng;

    /// Networks of layers whose times follow a law with a cliff: twice as slow above a million FLOPs. Each step takes 20 us, each
    /// layer 1 us, and the layers' times, plus noise.
    fn steps(networks: usize, noise: f64, seed: u64) -> Vec<StepWork> {
        let mut rng = Rng::new(seed);
        let mut steps = Vec::new();
        for network in 0..networks {
            let sizes: Vec<f64> = (0..2 + rng.below(6)).map(|_| 10f64.powf(3.0 + 3.0 * rng.uniform())).collect();
            for batch in [1.0, 2.0, 4.0, 8.0, 16.0] {
                let layer = |size: &f64| {
                    let (flops, bytes) = (size * batch, 100.0 + size.sqrt() * batch);
                    let seconds = (1e-6 + flops / 1e11 + bytes / 1e10) * if flops > 1e6 { 2.0 } else { 1.0 };
                    let (work, sides) = (Cost { flops, bytes }, Sides { terms: 1.0, channels: 1.0, places: 1.0 });
                    LayerWork { kind: 0, wider: 0, multiplies: true, work, sides, seconds: Some(seconds) }
                };
                let layers: Vec<LayerWork> = sizes.iter().map(layer).collect();
                let known: f64 = layers.iter().filter_map(|layer| layer.seconds).sum();
                let seconds = (20e-6 + 1e-6 * layers.len() as f64 + known) * (noise * rng.normal()).exp();
                steps.push(StepWork { network, batch, layers, update_bytes: 0.0, seconds });
            }
        }
        steps
    }

    #[test]
    fn steps_of_other_networks_follow_from_their_layers_and_the_interval_holds_them() {
        let all = steps(40, 0.02, 1);
        let (known, unknown): (Vec<StepWork>, Vec<StepWork>) = all.into_iter().partition(|step| step.network < 20);
        let model = StepModel::fit(&known).unwrap();
        let mut errors: Vec<f64> =
            unknown.iter().map(|step| (step.seconds / model.at(step).seconds).ln().abs()).collect();
        let held = unknown.iter().filter(|step| model.at(step).holds(step.seconds)).count() as f64;
        let middle = crate::stats::quantile::median(&mut errors);
        assert!(middle < 0.03, "{middle}");
        assert!((0.8..=0.98).contains(&(held / unknown.len() as f64)), "{held} of {}", unknown.len());
        let mut other = unknown[0].clone();
        assert!(model.covers(&other));
        other.layers[0].kind = 7;
        assert!(!model.covers(&other));
        other.layers[0] = LayerWork { work: Cost { flops: 1e12, bytes: 1.0 }, ..unknown[0].layers[0] };
        assert!(!model.covers(&other));
    }

    #[test]
    fn untimed_layers_count_by_their_work() {
        let mut all = steps(12, 0.0, 2);
        all.iter_mut().flat_map(|step| &mut step.layers).for_each(|layer| layer.seconds = None);
        let model = StepModel::fit(&all).unwrap();
        let errors = all.iter().map(|step| (step.seconds / model.at(step).seconds).ln().abs());
        assert!(errors.fold(0.0, f64::max) < 0.5);
    }

    #[test]
    fn eight_networks_are_too_few() {
        assert!(StepModel::fit(&steps(8, 0.0, 3)).is_none() && StepModel::fit(&[]).is_none());
    }
}

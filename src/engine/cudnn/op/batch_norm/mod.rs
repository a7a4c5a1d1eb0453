//! Batch normalisation in training mode, and after it the sum with a residual and a rectifier.
//!
//! The formulas are those of [`crate::engine::cpu::op::batch_norm()`]: the batch is normalised with its biased variance,
//! the running variance takes the unbiased one, and a channel with one value gives beta and no gradient for x.
//!
//! Where a channel's values fit into the registers of one block, one launch computes everything and reads x once.
//! Otherwise a first launch computes partial sums of channels; in a second one, every block adds up those of its
//! channels and computes its part of the output.

mod cut;
#[cfg(test)]
mod tests;

use super::rectifier::Rectifier;
use crate::engine::cudnn::call::{Arg, Kernel, Launch, Slice};
use crate::engine::cudnn::element::Element;
use crate::engine::cudnn::feature_maps::FeatureMaps;
use crate::network::Shape;
use crate::settings::Settings;
use cut::{ChannelLayout, Cut};

/// Whether one launch computes it, whose blocks hold a channel of the batch in registers: at small batches.
pub fn holds_a_channel(batch: usize, shape: Shape, settings: &Settings) -> bool {
    let maps = FeatureMaps::new(batch, shape, settings.layout);
    let cut = Cut::new(Element::of(settings.precision), maps);
    matches!(cut.kind, ChannelLayout::HeldPlanes | ChannelLayout::HeldRows { .. })
}

/// Bytes of `partials` of either direction; it may be 0.
pub fn scratch_bytes(element: Element, maps: FeatureMaps) -> usize {
    Cut::new(element, maps).partial_bytes()
}

/// `y = rectifier(gamma * (x - mean) / sqrt(variance + epsilon) + beta + residual)`, with the moments of each channel over
/// batch and positions. A channel has fewer than 2^31 values.
#[derive(Clone, Copy, Debug)]
pub struct BatchNormForward {
    /// The type of x, residual and y.
    pub element: Element,
    pub maps: FeatureMaps,
    pub rectifier: Rectifier,
    pub epsilon: f32,
    /// As in Keras: `running = momentum * running + (1 - momentum) * batch`.
    pub momentum: f32,
    pub x: Slice,
    /// Like x.
    pub residual: Option<Slice>,
    /// This and all following slices, except y and partials, have a float for each channel.
    pub gamma: Slice,
    pub beta: Slice,
    pub running_mean: Slice,
    pub running_variance: Slice,
    /// The mean of this batch, for the backward pass.
    pub mean: Slice,
    /// `1 / sqrt(variance + epsilon)`, for the backward pass.
    pub inverse_deviation: Slice,
    /// The output; must not be the slice of x or of the residual.
    pub y: Slice,
    /// [`scratch_bytes`].
    pub partials: Slice,
}

impl BatchNormForward {
    /// One launch or two.
    pub fn launches(&self) -> Vec<Launch> {
        let cut = Cut::new(self.element, self.maps);
        let mut args = vec![
            Arg::Read(self.x),
            self.residual.map_or(Arg::Null, Arg::Read),
            Arg::Read(self.gamma),
            Arg::Read(self.beta),
            Arg::Update(self.running_mean),
            Arg::Update(self.running_variance),
            Arg::Write(self.mean),
            Arg::Write(self.inverse_deviation),
            Arg::Write(self.y),
            Arg::I32(self.rectifier as i32),
            Arg::F32(self.epsilon),
            Arg::F32(self.momentum),
        ];
        let names = match cut.kind {
            ChannelLayout::HeldPlanes => return vec![launch(self.element, "plane_normalise_held", &cut, args)],
            ChannelLayout::HeldRows { .. } => return vec![launch(self.element, "row_normalise_held", &cut, args)],
            ChannelLayout::Planes { .. } => ["plane_moments", "plane_normalise"],
            ChannelLayout::Rows { .. } => ["row_moments", "row_normalise"],
        };
        args.push(Arg::Read(self.partials));
        let sums = vec![Arg::Read(self.x), Arg::Write(self.partials)];
        vec![launch(self.element, names[0], &cut, sums), launch(self.element, names[1], &cut, args)]
    }
}

/// The gradients of [`BatchNormForward`]. With g = `dy + dy_other` where the rectifier let y through, else 0, and z the normalised x: `dx = gamma / deviation * (g - mean(g) - z * mean(g * z))`, `dgamma = sum(g * z)`,
/// `dbeta = sum(g)`.
#[derive(Clone, Copy, Debug)]
pub struct BatchNormBackward {
    /// The type of x, y and the gradients like them.
    pub element: Element,
    pub maps: FeatureMaps,
    pub rectifier: Rectifier,
    pub x: Slice,
    /// Needed where there are both a residual and a rectifier. Without a residual, y is recomputed from x, which saves
    /// a pass over memory; y is then best left out.
    pub y: Option<Slice>,
    /// This and the next three: a float for each channel.
    pub beta: Slice,
    pub gamma: Slice,
    pub mean: Slice,
    pub inverse_deviation: Slice,
    pub dy: Slice,
    /// A second gradient of y; it is added, and the sum is rounded to the element type.
    pub dy_other: Option<Slice>,
    /// It may be dy, or dy_other.
    pub dx: Slice,
    /// Receives g. It may be dy or dy_other, but not dx.
    pub d_residual: Option<Slice>,
    /// A float for each channel, like the next one.
    pub dgamma: Slice,
    pub dbeta: Slice,
    /// [`scratch_bytes`].
    pub partials: Slice,
}

/// The slices from which g is computed.
#[derive(Clone, Copy)]
struct Gradient {
    dy: Slice,
    other: Option<Slice>,
    y: Option<Slice>,
    /// Needed where the rectifier's mask is recomputed from x.
    beta: Option<Slice>,
}

impl BatchNormBackward {
    /// One launch or two.
    pub fn launches(&self) -> Vec<Launch> {
        let cut = Cut::new(self.element, self.maps);
        let (y, beta) = match (self.rectifier, self.y) {
            (Rectifier::Identity, _) => (None, None),
            (_, Some(y)) => (Some(y), None),
            (_, None) => (None, Some(self.beta)),
        };
        let gradient = Gradient { dy: self.dy, other: self.dy_other, y, beta };
        let names = match cut.kind {
            ChannelLayout::HeldPlanes => return vec![self.held("plane_gradient_held", &cut, gradient)],
            ChannelLayout::HeldRows { .. } => return vec![self.held("row_gradient_held", &cut, gradient)],
            ChannelLayout::Planes { .. } => ["plane_gradient_sums", "plane_gradient"],
            ChannelLayout::Rows { .. } => ["row_gradient_sums", "row_gradient"],
        };
        // Writing g once costs no more than reading y again, and less than reading y and another gradient.
        let passed = self.d_residual.or(gradient.y.map(|_| self.dx));
        let sums = self.sums(names[0], &cut, gradient, passed);
        let gradient = passed.map_or(gradient, |passed| Gradient { dy: passed, other: None, y: None, beta: None });
        vec![sums, self.gradient(names[1], &cut, gradient)]
    }

    fn held(&self, name: &'static str, cut: &Cut, gradient: Gradient) -> Launch {
        let written = [Some(self.dx), self.d_residual];
        let mut args = self.maps(gradient, written);
        args.push(gradient.y.map_or(Arg::Null, Arg::Read));
        args.extend(self.channels(gradient));
        args.extend(written.map(|slice| gradient.output(slice)));
        args.extend([Arg::Write(self.dgamma), Arg::Write(self.dbeta), Arg::I32(self.rectifier as i32)]);
        launch(self.element, name, cut, args)
    }

    fn sums(&self, name: &'static str, cut: &Cut, gradient: Gradient, passed: Option<Slice>) -> Launch {
        let mut args = self.maps(gradient, [passed, None]);
        args.push(gradient.y.map_or(Arg::Null, Arg::Read));
        args.extend(self.channels(gradient));
        args.extend([gradient.output(passed), Arg::I32(self.rectifier as i32), Arg::Write(self.partials)]);
        launch(self.element, name, cut, args)
    }

    /// The second launch. It takes no y, since the first one has applied the mask.
    fn gradient(&self, name: &'static str, cut: &Cut, gradient: Gradient) -> Launch {
        let mut args = self.maps(gradient, [Some(self.dx), None]);
        args.extend(self.channels(gradient));
        args.extend([gradient.output(Some(self.dx)), Arg::Write(self.dgamma), Arg::Write(self.dbeta)]);
        args.extend([Arg::I32(self.rectifier as i32), Arg::Read(self.partials)]);
        launch(self.element, name, cut, args)
    }

    /// x, dy and the other dy, some of which may be written as well.
    fn maps(&self, gradient: Gradient, written: [Option<Slice>; 2]) -> Vec<Arg> {
        let operand = |slice: Option<Slice>| match slice {
            Some(slice) if written.contains(&Some(slice)) => Arg::Update(slice),
            Some(slice) => Arg::Read(slice),
            None => Arg::Null,
        };
        [Some(self.x), Some(gradient.dy), gradient.other].map(operand).to_vec()
    }

    /// The values of each channel: beta where the mask is recomputed from x, and the statistics that x was normalised
    /// with.
    fn channels(&self, gradient: Gradient) -> [Arg; 4] {
        let beta = gradient.beta.map_or(Arg::Null, Arg::Read);
        [beta, Arg::Read(self.gamma), Arg::Read(self.mean), Arg::Read(self.inverse_deviation)]
    }
}

impl Gradient {
    fn output(&self, slice: Option<Slice>) -> Arg {
        match slice {
            Some(slice) if slice == self.dy || Some(slice) == self.other => Arg::Update(slice),
            Some(slice) => Arg::Write(slice),
            None => Arg::Null,
        }
    }
}

/// A launch for that cut, with the cut's sizes as the last arguments.
fn launch(element: Element, name: &'static str, cut: &Cut, mut args: Vec<Arg>) -> Launch {
    args.extend(cut.sizes());
    let kernel = Kernel { operator: "batch_norm", name, element };
    Launch { kernel, grid: cut.grid(), block: [cut.threads as u32, 1, 1], shared_bytes: 0, args }
}

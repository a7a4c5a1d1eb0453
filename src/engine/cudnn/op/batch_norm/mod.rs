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

use super::grid::kind;
use crate::engine::cpu::op::activation::Rectifier;
use crate::engine::cudnn::call::{Arg, Kernel, Launch, Slice};
use crate::engine::cudnn::element::Element;
use crate::engine::cudnn::feature_maps::FeatureMaps;
use crate::network::{BatchNorm, Shape};
use crate::settings::Settings;
use cut::{ChannelLayout, Cut};

/// Whether one launch computes it, whose blocks hold a channel of the batch in registers: at small batches.
pub fn holds_a_channel(batch: usize, shape: Shape, settings: &Settings) -> bool {
    let maps = FeatureMaps::new(batch, shape, settings.layout);
    let cut = Cut::new(Element::of(settings.precision), maps);
    matches!(cut.kind, ChannelLayout::HeldPlanes | ChannelLayout::HeldRows { .. })
}

/// A batch norm whose output is `y = rectifier(gamma * z + beta + residual)`, with `z = (x - mean) / sqrt(variance +
/// epsilon)` by the moments of each channel over batch and positions. A channel has fewer than 2^31 values.
#[derive(Clone, Copy, Debug)]
pub struct BatchNormOp {
    /// The type of x, residual, y and their gradients.
    pub element: Element,
    pub maps: FeatureMaps,
    pub rectifier: Rectifier,
    /// This and the next three have a float for each channel.
    pub gamma: Slice,
    pub beta: Slice,
    /// The mean of this batch, which the forward pass writes for the backward pass.
    pub mean: Slice,
    /// `1 / sqrt(variance + epsilon)`, likewise.
    pub inverse_deviation: Slice,
    /// [`scratch_bytes`].
    pub partials: Slice,
}

/// The gradients of a batch norm. With g = `dy + dy_other` where the rectifier let y through, else 0:
/// `dx = gamma / sqrt(variance + epsilon) * (g - mean(g) - z * mean(g * z))`, `dgamma = sum(g * z)`, `dbeta = sum(g)`.
#[derive(Clone, Copy, Debug)]
pub struct Gradients {
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
}

/// Bytes of [`BatchNormOp::partials`] in either direction; it may be 0.
pub fn scratch_bytes(element: Element, maps: FeatureMaps) -> usize {
    Cut::new(element, maps).partial_bytes()
}

impl BatchNormOp {
    /// One launch or two; y must be the slice of neither x nor the residual. As in Keras, `running = momentum * running +
    /// (1 - momentum) * batch`, of the mean and the variance of each channel.
    pub fn forward(
        &self,
        norm: BatchNorm,
        running: [Slice; 2],
        x: Slice,
        residual: Option<Slice>,
        y: Slice,
    ) -> Vec<Launch> {
        let cut = Cut::new(self.element, self.maps);
        let mut args = vec![Arg::Read(x), read(residual), Arg::Read(self.gamma), Arg::Read(self.beta)];
        args.extend(running.map(Arg::Update));
        args.extend([self.mean, self.inverse_deviation, y].map(Arg::Write));
        args.extend([kind(self.rectifier), Arg::F32(norm.epsilon as f32), Arg::F32(norm.momentum as f32)]);
        let names = match cut.kind {
            ChannelLayout::HeldPlanes => return vec![self.launch("plane_normalise_held", &cut, args)],
            ChannelLayout::HeldRows { .. } => return vec![self.launch("row_normalise_held", &cut, args)],
            ChannelLayout::Planes { .. } => ["plane_moments", "plane_normalise"],
            ChannelLayout::Rows { .. } => ["row_moments", "row_normalise"],
        };
        args.push(Arg::Read(self.partials));
        let sums = vec![Arg::Read(x), Arg::Write(self.partials)];
        vec![self.launch(names[0], &cut, sums), self.launch(names[1], &cut, args)]
    }

    /// One launch or two. `y` is needed where there are both a residual and a rectifier. Without a residual, y is
    /// recomputed from x, which saves a pass over memory; y is then best left out.
    pub fn backward(&self, x: Slice, y: Option<Slice>, gradients: Gradients) -> Vec<Launch> {
        let Gradients { dy, dy_other, dx, d_residual, dgamma, dbeta } = gradients;
        let cut = Cut::new(self.element, self.maps);
        // What the mask is computed from.
        let (y, beta) = match (self.rectifier, y) {
            (Rectifier::Identity, _) => (None, None),
            (_, Some(y)) => (Some(y), None),
            (_, None) => (None, Some(self.beta)),
        };
        let channels =
            |beta| [read(beta), Arg::Read(self.gamma), Arg::Read(self.mean), Arg::Read(self.inverse_deviation)];
        let (given, to_parameters) = ([Some(dy), dy_other], [Arg::Write(dgamma), Arg::Write(dbeta)]);
        let names = match cut.kind {
            ChannelLayout::HeldPlanes | ChannelLayout::HeldRows { .. } => {
                let planes = cut.kind == ChannelLayout::HeldPlanes;
                let (mut args, written) = operands(x, given, &[Some(dx), d_residual]);
                args.push(read(y));
                args.extend(channels(beta).into_iter().chain(written).chain(to_parameters));
                args.push(kind(self.rectifier));
                return vec![self.launch(if planes { "plane_gradient_held" } else { "row_gradient_held" }, &cut, args)];
            }
            ChannelLayout::Planes { .. } => ["plane_gradient_sums", "plane_gradient"],
            ChannelLayout::Rows { .. } => ["row_gradient_sums", "row_gradient"],
        };
        // Writing g once costs no more than reading y again, and less than reading y and another gradient.
        let passed = d_residual.or(y.map(|_| dx));
        let (mut sums, written) = operands(x, given, &[passed]);
        sums.push(read(y));
        sums.extend(channels(beta).into_iter().chain(written));
        sums.extend([kind(self.rectifier), Arg::Write(self.partials)]);
        // The second launch takes no y, since the first one has applied the mask.
        let (given, beta) = if passed.is_some() { ([passed, None], None) } else { (given, beta) };
        let (mut args, written) = operands(x, given, &[Some(dx)]);
        args.extend(channels(beta).into_iter().chain(written).chain(to_parameters));
        args.extend([kind(self.rectifier), Arg::Read(self.partials)]);
        vec![self.launch(names[0], &cut, sums), self.launch(names[1], &cut, args)]
    }

    /// A launch for that cut, with the cut's sizes as the last arguments.
    fn launch(&self, name: &'static str, cut: &Cut, mut args: Vec<Arg>) -> Launch {
        args.extend(cut.sizes());
        let kernel = Kernel { operator: "batch_norm", name, element: self.element };
        Launch { kernel, grid: cut.grid(), block: [cut.threads as u32, 1, 1], shared_bytes: 0, args }
    }
}

fn read(slice: Option<Slice>) -> Arg {
    slice.map_or(Arg::Null, Arg::Read)
}

/// x and the gradients of y, some of which may be written as well; and what is written, some of which may be read as well.
fn operands(x: Slice, given: [Option<Slice>; 2], written: &[Option<Slice>]) -> (Vec<Arg>, Vec<Arg>) {
    let from = |slice: Option<Slice>| match slice {
        Some(slice) if written.contains(&Some(slice)) => Arg::Update(slice),
        slice => read(slice),
    };
    let to = |slice: &Option<Slice>| match *slice {
        Some(slice) if given.contains(&Some(slice)) => Arg::Update(slice),
        slice => slice.map_or(Arg::Null, Arg::Write),
    };
    ([Some(x), given[0], given[1]].map(from).to_vec(), written.iter().map(to).collect())
}

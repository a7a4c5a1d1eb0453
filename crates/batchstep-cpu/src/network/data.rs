//! The numbers of a batch, from a seed: the same for every engine.
//!
//! With `examples = "peaks"` they are points of a surface to fit instead of random numbers: MATLAB's `peaks`
//! (<https://www.mathworks.com/help/matlab/ref/peaks.html>): a square grid on [-3, 3]^2, its edges included, and the
//! heights there.

use super::{Shape, Workload};
use crate::random::{Purpose, Stream};
use crate::settings::{Examples, Loss};

/// Fewer numbers are made faster than a thread starts: about 0.2 ms.
const WORTH_A_THREAD: usize = 1 << 16;

/// A place on the surface `peaks`, rounded to single precision as the network sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PeaksPoint {
    pub x: f32,
    pub y: f32,
}

impl PeaksPoint {
    /// The point of an example, row by row on the smallest square grid that has room for the batch. If the batch size
    /// is not a square number, the last rows stay partly empty.
    ///
    /// ```
    /// use batchstep_cpu::network::data::{PeaksPoint, side};
    /// assert_eq!(side(40_000), 200);
    /// assert_eq!((PeaksPoint::of(0, 200), PeaksPoint::of(39_999, 200)), (PeaksPoint { x: -3.0, y: -3.0 }, PeaksPoint { x: 3.0, y: 3.0 }));
    /// ```
    pub fn of(example: usize, side: usize) -> Self {
        let along = |place: usize| (6.0 * place as f64 / side.saturating_sub(1).max(1) as f64 - 3.0) as f32;
        Self { x: along(example % side), y: along(example / side) }
    }

    /// The surface's height, computed in double precision.
    ///
    /// ```
    /// // 3 e^-1 - e^-1 / 3 at the origin.
    /// let height = batchstep_cpu::network::data::PeaksPoint { x: 0.0, y: 0.0 }.height();
    /// assert!((height - 0.981_011_8).abs() < 1e-6);
    /// ```
    pub fn height(self) -> f32 {
        let (x, y) = (f64::from(self.x), f64::from(self.y));
        let first = 3.0 * (1.0 - x) * (1.0 - x) * (-x * x - (y + 1.0) * (y + 1.0)).exp();
        let second = 10.0 * (x / 5.0 - x * x * x - y * y * y * y * y) * (-x * x - y * y).exp();
        let third = (-(x + 1.0) * (x + 1.0) - y * y).exp() / 3.0;
        (first - second - third) as f32
    }
}

/// The points along a side of the smallest square grid with room for a batch.
pub fn side(batch_size: usize) -> usize {
    batch_size.saturating_sub(1).isqrt() + 1
}

/// The inputs, N x the network's input: uniform on [0, 1), where example `n` is the same in every batch size; or points.
pub fn inputs(workload: &Workload) -> Vec<f32> {
    if workload.settings.examples == Examples::Peaks {
        let side = side(workload.batch_size);
        return numbers(2 * workload.batch_size, |place| {
            let point = PeaksPoint::of(place / 2, side);
            if place % 2 == 0 { point.x } else { point.y }
        });
    }
    let stream = Stream::new(workload.settings.seed, Purpose::Inputs, [0, 0]);
    uniform(stream, workload.batch_size, workload.network.input())
}

/// The targets, N x the network's output: one-hot with labels of equal probability for a categorical cross-entropy, uniform
/// on [0, 1) for a squared error and for a binary cross-entropy; or heights.
pub fn targets(workload: &Workload) -> Vec<f32> {
    let output = workload.network.output();
    if workload.settings.examples == Examples::Peaks {
        let side = side(workload.batch_size);
        return numbers(workload.batch_size, |example| PeaksPoint::of(example, side).height());
    }
    match workload.settings.loss {
        Loss::CategoricalCrossEntropy => {
            let mut targets = vec![0.0; workload.batch_size * output.count()];
            let rows = targets.chunks_mut(output.count());
            rows.zip(labels(workload)).for_each(|(row, label)| row[label as usize] = 1.0);
            targets
        }
        Loss::MeanSquaredError | Loss::BinaryCrossEntropy => {
            uniform(Stream::new(workload.settings.seed, Purpose::Targets, [0, 0]), workload.batch_size, output)
        }
    }
}

/// The class of each example, for a cross-entropy.
pub fn labels(workload: &Workload) -> impl Iterator<Item = u32> + use<> {
    let stream = Stream::new(workload.settings.seed, Purpose::Targets, [0, 0]);
    let classes = workload.network.output().count() as u64;
    (0..workload.batch_size as u64).map(move |example| (stream.bits(example) % classes) as u32)
}

/// The dims of a batch of `shape`.
pub fn batch_dims(batch_size: usize, shape: Shape) -> Vec<usize> {
    match shape {
        Shape::Maps { channels, height, width } => vec![batch_size, channels, height, width],
        Shape::Flat(features) => vec![batch_size, features],
    }
}

fn uniform(stream: Stream, batch_size: usize, shape: Shape) -> Vec<f32> {
    numbers(batch_size * shape.count(), |index| stream.uniform(index as u64))
}

/// The value at each place, on all cores. The threads end with their work: those of a pool look for more of it for a while, which disturbs the steps that follow.
fn numbers(count: usize, value: impl Fn(usize) -> f32 + Sync) -> Vec<f32> {
    let mut numbers = vec![0.0; count];
    let piece = count.div_ceil(std::thread::available_parallelism().map_or(1, usize::from)).max(WORTH_A_THREAD);
    let fill = &|start: usize, numbers: &mut [f32]| {
        numbers.iter_mut().zip(start..).for_each(|(number, place)| *number = value(place));
    };
    std::thread::scope(|scope| {
        let mut pieces = numbers.chunks_mut(piece).enumerate();
        let own = pieces.next();
        for (at, numbers) in pieces {
            scope.spawn(move || fill(at * piece, numbers));
        }
        own.into_iter().for_each(|(_, numbers)| fill(0, numbers));
    });
    numbers
}

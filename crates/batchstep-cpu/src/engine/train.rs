//! Training on changing batches: what a loader supplies, and what an engine computes from it.

use std::path::PathBuf;

use serde::Deserialize;

use super::{Settings, StepTimes, Workload};
use crate::error::{Error, Result};
use crate::network::Shape;
use crate::settings::{DataPath, EngineName, Loss};

/// Some examples, decoded and normalised.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// N x the network's input, in the layout `nchw`.
    pub inputs: &'a [f32],
    /// The class of each of the N examples.
    pub labels: &'a [u32],
}

/// How well a network classifies some examples.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Score {
    pub examples: usize,
    pub correct: usize,
    /// The sum of the losses of the examples.
    pub loss: f64,
}

impl Score {
    /// Counts the rows of `output` (N x classes) whose largest number is that of their label.
    ///
    /// The loss is the cross-entropy of the softmax, computed in float64.
    pub fn of(output: &[f64], labels: &[u32]) -> Self {
        let classes = output.len() / labels.len().max(1);
        let mut score = Self { examples: labels.len(), ..Self::default() };
        for (row, &label) in output.chunks_exact(classes.max(1)).zip(labels) {
            let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let own = row.get(label as usize).copied().unwrap_or(f64::NAN);
            // If outputs are equal, the first counts, as with argmax.
            let first = row.iter().position(|value| *value == largest);
            score.correct += usize::from(first == Some(label as usize));
            score.loss += row.iter().map(|value| (value - largest).exp()).sum::<f64>().ln() + largest - own;
        }
        score
    }

    /// The scores of both sets of examples together.
    pub fn and(self, other: Self) -> Self {
        Self {
            examples: self.examples + other.examples,
            correct: self.correct + other.correct,
            loss: self.loss + other.loss,
        }
    }

    /// The share of the examples that are classified correctly; `None` without examples.
    pub fn accuracy(&self) -> Option<f64> {
        (self.examples > 0).then(|| self.correct as f64 / self.examples as f64)
    }

    /// `None` without examples.
    pub fn mean_loss(&self) -> Option<f64> {
        (self.examples > 0).then(|| self.loss / self.examples as f64)
    }
}

/// The trained parameters and statistics of a network, in the order of its definition.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Learnt {
    /// Each trainable parameter.
    pub parameters: Vec<Vec<f64>>,
    /// The running statistics of each batch norm.
    pub running: Vec<Running>,
}

/// The running statistics of a batch norm: a number for each channel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Running {
    pub mean: Vec<f64>,
    /// The unbiased variance.
    pub variance: Vec<f64>,
}

/// A network in training, fed from outside.
pub trait Trainer {
    /// One training step on a batch; [`StepTimes::h2d_s`] is the time of its copy into the engine's memory.
    ///
    /// # Errors
    /// [`crate::error::Kind::Engine`] where the batch is not one of this network, or the step fails.
    fn step(&mut self, batch: Batch<'_>) -> Result<StepTimes>;

    /// Classifies a batch without training: running statistics in batch norms, no dropout.
    ///
    /// # Errors
    /// As [`Trainer::step`].
    fn evaluate(&mut self, batch: Batch<'_>) -> Result<Score>;

    /// Back to the initial parameters.
    ///
    /// # Errors
    /// As [`Trainer::step`].
    fn reset(&mut self) -> Result<()>;
}

/// Examples in two files that another process maps into its memory: bytes of N x C x H x W, and N bytes of labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawExamples {
    pub pixels: PathBuf,
    pub labels: PathBuf,
    pub count: usize,
}

/// What an engine that feeds itself should read, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Feed {
    pub train: RawExamples,
    pub test: Option<RawExamples>,
    pub shape: Shape,
    /// The mean of each channel, in the unit in which a byte of 255 is 1.
    pub mean: Vec<f32>,
    pub sd: Vec<f32>,
    pub workers: usize,
    /// Batches that each worker keeps ready.
    pub prefetch: usize,
    pub shuffle: bool,
    pub drop_last: bool,
}

/// One epoch of an engine that feeds itself.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct OwnEpoch {
    pub epoch_s: f64,
    /// The time that the loop waited for its loader.
    pub wait_s: f64,
    /// The time in training steps, including copies of the batch; `None` where the steps run asynchronously, as on a
    /// GPU.
    pub compute_s: Option<f64>,
    /// Processor time of its processes during the epoch, including workers.
    pub user_s: Option<f64>,
    pub system_s: Option<f64>,
    pub examples: usize,
    /// The loss of each step, before its update.
    #[serde(skip)]
    pub losses: Vec<f64>,
}

/// A network in training that feeds itself.
pub trait EpochTrainer {
    /// An epoch, or its first `steps` steps. `epoch` selects the order of the examples.
    ///
    /// # Errors
    /// As [`Trainer::step`].
    fn epoch(&mut self, epoch: usize, steps: Option<usize>) -> Result<OwnEpoch>;

    /// Classifies the test examples.
    ///
    /// # Errors
    /// As [`Trainer::step`].
    fn evaluate(&mut self) -> Result<Score>;

    /// Back to the initial parameters.
    ///
    /// # Errors
    /// As [`Trainer::step`].
    fn reset(&mut self) -> Result<()>;
}

/// Refuses workloads that no engine can train on labelled examples.
///
/// # Errors
/// [`crate::error::Kind::Spec`].
pub fn check(workload: &Workload) -> Result<()> {
    super::check_shapes(workload)?;
    let Settings { loss, data, .. } = &workload.settings;
    let what = format!("a training on labelled examples needs a cross-entropy, and the loss is {loss}");
    super::refuse(*loss != Loss::CategoricalCrossEntropy, what, "leave `loss` out of [train]")?;
    if *data == DataPath::Resident { Ok(()) } else { Err(no_copy(*data)) }
}

fn no_copy(data: DataPath) -> Error {
    Error::spec(format!("`data = \"{data}\"` has no meaning in a training: each batch comes from the loader"))
        .hint("leave `data` out of [train]; [loader] says how batches are made")
}

/// The settings with which `engine`, which is not `auto`, takes the batches of a loader. For a GPU each batch is copied
/// in every step, from page-locked memory unless the spec says otherwise; the other engines read it where the loader
/// has put it, or bring their own loader.
///
/// # Errors
/// [`crate::error::Kind::Spec`] for a data path that the engine does not have.
pub fn fed(settings: Settings, engine: EngineName) -> Result<Settings> {
    match (engine, settings.data) {
        (EngineName::Cudnn, DataPath::Resident) => Ok(Settings { data: DataPath::Pinned, ..settings }),
        (EngineName::Cudnn, _) | (_, DataPath::Resident) => Ok(settings),
        (engine, data) => Err(no_copy(data).at(format!("engine `{engine}`"))),
    }
}

pub fn refusal(device: &str) -> Error {
    Error::spec(format!("this engine, on {device}, does not train on batches of a loader"))
        .hint("`kind = \"training\"` runs with the engines `cpu`, `candle`, `torch` and `cudnn`: name one in [engine]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_score_is_the_count_of_largest_outputs_and_the_cross_entropy() {
        // By hand: softmax of (0, ln 3) is (1/4, 3/4); -ln(1/4) = 1.386294, -ln(3/4) = 0.287682.
        let outputs = [0.0, 3f64.ln(), 0.0, 3f64.ln()];
        let score = Score::of(&outputs, &[0, 1]);
        assert_eq!((score.examples, score.correct, score.accuracy()), (2, 1, Some(0.5)));
        assert!((score.loss - 1.673976).abs() < 1e-6, "{}", score.loss);
        let both = score.and(Score::of(&outputs[2..], &[1]));
        assert_eq!((both.examples, both.correct), (3, 2));
        assert_eq!((Score::default().accuracy(), Score::default().mean_loss()), (None, None));
        assert_eq!(Score::of(&[1.0, 1.0], &[1]).correct, 0, "of equal outputs the first counts");
    }
}

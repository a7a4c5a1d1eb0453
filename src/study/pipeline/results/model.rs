//! The rate that the stages of an input pipeline allow together, from the time that each of them takes by itself: the smallest of the asymptotic bounds
//! of operational analysis (Denning & Buzen, "The operational analysis of queueing network models", ACM Computing Surveys 10, 1978). Without workers
//! nothing overlaps: X = 1 / (D + S). docs/pipeline.md has the bounds, and what other processes change in them.
//!
//! What the model leaves out: bounded buffers lose a little where two bounds are close, and stages disturb one another's caches; both make X smaller.

/// What an image takes, from the measurement of each stage by itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Demands {
    /// 0: the training thread makes its batches itself.
    pub workers: usize,
    /// Cores, less those that other processes use.
    pub cores: f64,
    /// The share of the time that other processes leave to the training thread: 1 if there are none.
    pub training_share: f64,
    /// The same for a worker.
    pub worker_share: f64,
    pub stages: Vec<Stage>,
}

/// One stage.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    pub name: String,
    /// The time of an image, on one thread that never waits for a core.
    pub seconds: f64,
    /// Processor time of an image, with all threads that the cell has for it.
    pub cpu_s: f64,
    /// Images in a second with all of them, as measured.
    pub ceiling: f64,
}

impl Stage {
    /// Whether the training thread does it, rather than a worker.
    pub fn is_consumers(&self) -> bool {
        matches!(self.name.as_str(), "copy" | "step")
    }
}

impl Demands {
    /// What the training thread does.
    pub fn training(&self) -> impl Iterator<Item = &Stage> {
        self.stages.iter().filter(|stage| stage.is_consumers())
    }

    /// The name of the stage that takes a worker longest.
    pub fn longest_of_workers(&self) -> String {
        longest(self.stages.iter().filter(|stage| !stage.is_consumers()))
    }
}

fn longest<'a>(stages: impl Iterator<Item = &'a Stage>) -> String {
    stages.max_by(|a, b| a.seconds.total_cmp(&b.seconds)).map(|stage| stage.name.clone()).unwrap_or_default()
}

/// What holds a pipeline up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Nothing overlaps; named is the stage that takes longest.
    Serial { longest: String },
    /// The workers are busy all the time; named is the stage that takes longest.
    Workers { longest: String },
    /// One stage gives no more, however many workers ask: the storage device, or memory.
    Stage { name: String },
    /// The training step.
    Step,
    /// All cores are busy.
    Cores,
}

/// What the model says.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// Images in a second.
    pub rate: f64,
    pub limit: Limit,
}

/// The rate of all stages together; `None` where a stage took no time, so that nothing is known.
///
/// ```
/// use batchstep::study::pipeline::results::model::{Demands, Limit, Stage, predict};
/// let stage = |name: &str, seconds, ceiling| Stage { name: name.into(), seconds, cpu_s: seconds, ceiling };
/// let stages = vec![stage("decode", 0.004, 500.0), stage("step", 0.001, 1000.0)];
/// let prediction = predict(&Demands { workers: 2, cores: 8.0, training_share: 1.0, worker_share: 1.0, stages }).unwrap();
/// assert_eq!((prediction.rate, prediction.limit), (500.0, Limit::Workers { longest: "decode".into() }));
/// ```
pub fn predict(demands: &Demands) -> Option<Prediction> {
    let (consumer, worker): (Vec<&Stage>, Vec<&Stage>) = demands.stages.iter().partition(|stage| stage.is_consumers());
    let sum = |stages: &[&Stage]| stages.iter().map(|stage| stage.seconds).sum::<f64>();
    let (made_s, taken_s) = (sum(&worker), sum(&consumer));
    let cpu_s: f64 = demands.stages.iter().map(|stage| stage.cpu_s).sum();
    if !(made_s > 0.0 && taken_s > 0.0 && cpu_s > 0.0) {
        return None;
    }
    if demands.workers == 0 {
        return Some(Prediction {
            rate: demands.training_share / (made_s + taken_s),
            limit: Limit::Serial { longest: longest(demands.stages.iter()) },
        });
    }
    let threads = demands.workers as f64 * demands.worker_share;
    let mut bounds = vec![
        Prediction { rate: demands.training_share / taken_s, limit: Limit::Step },
        Prediction { rate: threads / made_s, limit: Limit::Workers { longest: demands.longest_of_workers() } },
        Prediction { rate: demands.cores / cpu_s, limit: Limit::Cores },
    ];
    bounds.extend(worker.iter().filter(|stage| stage.name != "batch").map(|stage| Prediction {
        // The limit of a device is its measured rate. A stage that computes is slowed by other stages, which is not a limit of its own; the
        // effect of its threads on each other, such as sharing memory, shows in its processor time.
        rate: if stage.name == "read" { stage.ceiling } else { threads / stage.cpu_s },
        limit: Limit::Stage { name: stage.name.clone() },
    }));
    bounds.into_iter().filter(|bound| bound.rate > 0.0).min_by(|a, b| a.rate.total_cmp(&b.rate))
}

/// The smallest ceiling of all stages: what a prediction without a model of the cores and of who does what would be.
pub fn slowest_stage(demands: &Demands) -> Option<&Stage> {
    let known = demands.stages.iter().filter(|stage| stage.ceiling > 0.0 && stage.name != "copy");
    known.min_by(|a, b| a.ceiling.total_cmp(&b.ceiling))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(name: &str, seconds: f64, cpu_s: f64, ceiling: f64) -> Stage {
        Stage { name: name.into(), seconds, cpu_s, ceiling }
    }

    /// Reading waits 2 ms and computes 0.2 ms, decoding takes 3 ms, the step 1 ms.
    fn demands(workers: usize, cores: f64) -> Demands {
        let ceiling = |seconds: f64| workers.max(1) as f64 / seconds;
        let stages = vec![
            stage("read", 0.002, 0.0002, ceiling(0.002).min(900.0)),
            stage("decode", 0.003, 0.003, ceiling(0.003)),
            stage("copy", 0.0, 0.0, 0.0),
            stage("step", 0.001, 0.001, 1000.0),
        ];
        Demands { workers, cores, training_share: 1.0, worker_share: 1.0, stages }
    }

    #[test]
    fn the_smallest_bound_is_predicted_and_named() {
        // By hand: D = 5 ms, S = 1 ms, 4.2 ms of processor time.
        let cases = [
            (0, 16.0, 1.0 / 0.006, Limit::Serial { longest: "decode".into() }),
            (1, 16.0, 1.0 / 0.005, Limit::Workers { longest: "decode".into() }),
            (4, 16.0, 4.0 / 0.005, Limit::Workers { longest: "decode".into() }),
            (8, 2.0, 2.0 / 0.0042, Limit::Cores),
            (8, 16.0, 900.0, Limit::Stage { name: "read".into() }),
        ];
        for (workers, cores, rate, limit) in cases {
            let found = predict(&demands(workers, cores)).expect("known");
            assert!((found.rate / rate - 1.0).abs() < 1e-12 && found.limit == limit, "{workers} workers: {found:?}");
        }
        let mut fast = demands(8, 16.0);
        fast.stages[0].ceiling = 4000.0;
        assert_eq!(predict(&fast), Some(Prediction { rate: 1000.0, limit: Limit::Step }));
        assert_eq!(predict(&Demands::default()), None);
        // A worker that others keep from its core for a quarter of the time.
        let shared = predict(&Demands { worker_share: 0.75, ..demands(1, 16.0) }).expect("known");
        assert!((shared.rate - 150.0).abs() < 1e-9, "{shared:?}");
        assert_eq!(slowest_stage(&demands(1, 2.0)).map(|stage| stage.name.as_str()), Some("decode"));
    }

    /// A slow oracle: workers that make batches and a consumer, event by event, with buffers of two batches for each worker. The time of a
    /// batch is that of 16 images, each exponential.
    fn simulated(workers: usize, made_s: f64, taken_s: f64) -> f64 {
        let mut random = crate::random::Rng::new(7);
        let mut time = |mean: f64| (0..16).map(|_| -mean / 16.0 * (1.0 - random.uniform()).ln()).sum::<f64>();
        let capacity = 2 * workers;
        let mut free: Vec<f64> = vec![0.0; workers];
        // When each batch was taken, from the first one on.
        let mut taken: Vec<f64> = Vec::new();
        let (mut ended, images) = (0.0f64, 20_000);
        let mut ready: Vec<f64> = Vec::new();
        for image in 0..images {
            // Made by the worker that is free first, no sooner than there is room.
            let room = if image >= capacity { taken[image - capacity] } else { 0.0 };
            let first = (0..workers).min_by(|&a, &b| free[a].total_cmp(&free[b])).unwrap_or(0);
            free[first] = free[first].max(room) + time(made_s);
            ready.push(free[first]);
            let begins = ended.max(ready[image]);
            taken.push(begins);
            ended = begins + time(taken_s);
        }
        images as f64 / ended
    }

    #[test]
    fn a_simulated_pipeline_reaches_its_bound() {
        for (workers, made_s, taken_s) in [(1, 5.0, 1.0), (1, 1.0, 5.0), (4, 20.0, 1.0), (4, 1.0, 2.0), (2, 3.0, 1.0)] {
            let stages = vec![
                stage("decode", made_s, made_s, workers as f64 / made_s),
                stage("step", taken_s, taken_s, 1.0 / taken_s),
            ];
            let bound = predict(&Demands { workers, cores: 100.0, training_share: 1.0, worker_share: 1.0, stages })
                .expect("known")
                .rate;
            let share = simulated(workers, made_s, taken_s) / bound;
            assert!((0.97..1.02).contains(&share), "{workers} {made_s} {taken_s}: {share}");
        }
    }
}
